//! Some endpoints of a pool.

use super::endpoint::EndpointId;

/// A set of endpoints of one pool; endpoints with numbers from 128 on are never in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EndpointSet(u128);

impl EndpointSet {
    fn bit(id: EndpointId) -> u128 {
        u32::try_from(id.0).ok().and_then(|at| 1_u128.checked_shl(at)).unwrap_or(0)
    }

    pub(crate) fn insert(&mut self, id: EndpointId) {
        self.0 |= Self::bit(id);
    }

    pub(crate) fn contains(self, id: EndpointId) -> bool {
        self.0 & Self::bit(id) != 0
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
