//! Cache of the reference pools of a chain that its nodes know.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::reference::ReferencePool;
use crate::domain::lock;

/// Consecutive answers without a pool, of different endpoints if possible, after which the pool
/// counts as missing: a row that is stored without a value because of it is not valued again.
pub(super) const MISSING_ANSWERS: usize = 3;
/// A missing pool is queried again after this long: the node may have been behind the head, or
/// returned nonsense.
const MISSING_RETRY_AFTER: Duration = Duration::from_secs(600);
/// A lookup that gave no answer is repeated after this long.
const UNANSWERED_RETRY_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct CachedPools {
    pools: Arc<Vec<ReferencePool>>,
    /// When the pools are queried again; `None` if none is missing.
    retry_at: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct KnownPools(Mutex<Option<CachedPools>>);

impl KnownPools {
    /// The cached pools; `None`: the caller must fetch them. The first caller that gets `None`
    /// fetches; until it has finished, the others get the previous pools, if any.
    pub(super) fn get(&self) -> Option<Arc<Vec<ReferencePool>>> {
        let mut known = lock(&self.0);
        let known = known.as_mut()?;
        let now = Instant::now();
        if known.retry_at.is_some_and(|at| at <= now) {
            known.retry_at = Some(now + UNANSWERED_RETRY_AFTER);
            return None;
        }
        Some(Arc::clone(&known.pools))
    }

    /// `wanted`: number of pools in the chain's row; with fewer, they are queried again later.
    pub(super) fn set(&self, pools: Vec<ReferencePool>, wanted: usize) -> Arc<Vec<ReferencePool>> {
        let retry_at = (pools.len() < wanted).then(|| Instant::now() + MISSING_RETRY_AFTER);
        let pools = Arc::new(pools);
        *lock(&self.0) = Some(CachedPools { pools: Arc::clone(&pools), retry_at });
        pools
    }
}
