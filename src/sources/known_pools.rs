//! Which pools of a chain's row nodes know for what the row says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::reference::ReferencePool;
use crate::domain::lock;

/// Answers in a row that know nothing of a pool, of different endpoints where there are some, after which
/// it is missing: a row that is stored without a value for that gets none later.
pub(super) const MISSING_ANSWERS: usize = 3;
/// A node that has not come so far yet, or answers nonsense, knows none of a pool that is there:
/// the pools that are missing are asked for again after so long.
const MISSING_REST: Duration = Duration::from_secs(600);
/// The same where the answer does not come.
const UNANSWERED_REST: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Known {
    pools: Arc<Vec<ReferencePool>>,
    /// `None`: none is missing.
    again_at: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct KnownPools(Mutex<Option<Known>>);

impl KnownPools {
    /// The known state; `None`: it must be fetched. The first caller that gets `None` fetches it,
    /// and until then the others use the previous state, if there is one.
    pub(super) fn get(&self) -> Option<Arc<Vec<ReferencePool>>> {
        let mut known = lock(&self.0);
        let known = known.as_mut()?;
        let now = Instant::now();
        if known.again_at.is_some_and(|at| at <= now) {
            known.again_at = Some(now + UNANSWERED_REST);
            return None;
        }
        Some(Arc::clone(&known.pools))
    }

    /// `wanted`: how many the row names.
    pub(super) fn set(&self, pools: Vec<ReferencePool>, wanted: usize) -> Arc<Vec<ReferencePool>> {
        let again_at = (pools.len() < wanted).then(|| Instant::now() + MISSING_REST);
        let pools = Arc::new(pools);
        *lock(&self.0) = Some(Known { pools: Arc::clone(&pools), again_at });
        pools
    }
}
