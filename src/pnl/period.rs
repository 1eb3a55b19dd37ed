//! The period of a report.

use crate::domain::UnixSeconds;

/// From `from`, inclusive, to `to`, exclusive; all time where neither is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    pub from: Option<UnixSeconds>,
    pub to: Option<UnixSeconds>,
}

impl Period {
    /// Lots of rows before the period are carried over into it.
    pub fn is_before(&self, time: UnixSeconds) -> bool {
        self.from.is_some_and(|from| time < from)
    }

    pub fn is_after(&self, time: UnixSeconds) -> bool {
        self.to.is_some_and(|to| time >= to)
    }
}
