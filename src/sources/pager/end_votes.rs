//! Pure: counts the answers that agree that a list has ended.

use crate::rpc::EndpointId;

/// Number of answers that suffice: from several endpoints, or all from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sources) struct Quorum {
    pub(in crate::sources) from_several: u8,
    pub(in crate::sources) from_one: u8,
}

#[derive(Debug, Clone, Default)]
pub(super) struct EndVotes {
    pub(super) count: u8,
    last_by: Option<EndpointId>,
    is_from_several: bool,
}

impl EndVotes {
    pub(super) fn add(&mut self, by: Option<EndpointId>) {
        self.count = self.count.saturating_add(1);
        self.is_from_several |= self.last_by.zip(by).is_some_and(|(last, by)| last != by);
        self.last_by = by.or(self.last_by);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn reach(&self, quorum: Quorum) -> bool {
        let needed = if self.is_from_several { quorum.from_several } else { quorum.from_one };
        self.count >= needed
    }
}
