//! Factories of pools that were derived before: a derivation takes a hundred hashes, and wallets
//! trade in the same pools again.

use std::sync::{Arc, Mutex};

use foldhash::HashMap;

use crate::domain::{Account, ChainId, lock};

/// Derived pools that are kept, about 130 bytes each; beyond that all are derived again.
const POOLS_MAX: usize = 16_384;

/// All that a pool's factory depends on, next to the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolPlace {
    pub chain: ChainId,
    pub pool: Account,
    /// Its tokens, the lower one first.
    pub pair: [Account; 2],
}

/// The names of factories by pool; `None` for pools of none.
#[derive(Debug, Default)]
pub(super) struct PoolMakers(Mutex<HashMap<PoolPlace, Option<Arc<str>>>>);

impl PoolMakers {
    pub(super) fn get(
        &self,
        place: PoolPlace,
        derive: impl FnOnce() -> Option<Arc<str>>,
    ) -> Option<Arc<str>> {
        if let Some(known) = lock(&self.0).get(&place) {
            return known.clone();
        }
        // Without the lock: others look up meanwhile.
        let derived = derive();
        let mut known = lock(&self.0);
        if known.len() >= POOLS_MAX {
            known.clear();
        }
        known.insert(place, derived.clone());
        derived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(chain: u16, pool: u32) -> PoolPlace {
        let mut account = [0; 20];
        account[..4].copy_from_slice(&pool.to_be_bytes());
        PoolPlace { chain: ChainId(chain), pool: account, pair: [[1; 20], [2; 20]] }
    }

    #[test]
    fn a_pool_is_derived_once_and_for_its_chain_and_pair_alone() {
        let (makers, derived) = (PoolMakers::default(), std::cell::Cell::new(0));
        let get = |place, name: Option<&str>| {
            makers.get(place, || {
                derived.set(derived.get() + 1);
                name.map(Into::into)
            })
        };
        assert_eq!(get(place(1, 7), Some("V2")).as_deref(), Some("V2"));
        assert_eq!(get(place(1, 8), None), None);
        assert_eq!(derived.get(), 2);
        // Known, that there is none as well.
        assert_eq!(get(place(1, 7), Some("other")).as_deref(), Some("V2"));
        assert_eq!(get(place(1, 8), Some("other")), None);
        assert_eq!(derived.get(), 2);
        assert_eq!(get(place(2, 7), Some("V3")).as_deref(), Some("V3"));
        let swapped = PoolPlace { pair: [[1; 20], [3; 20]], ..place(1, 7) };
        assert_eq!(get(swapped, None), None);
        assert_eq!(derived.get(), 4);
    }

    #[test]
    fn no_more_pools_are_kept_than_the_limit() {
        let makers = PoolMakers::default();
        for pool in 0..=u32::try_from(POOLS_MAX).unwrap() {
            assert_eq!(makers.get(place(1, pool), || None), None);
        }
        assert_eq!(makers.0.lock().unwrap().len(), 1);
    }
}
