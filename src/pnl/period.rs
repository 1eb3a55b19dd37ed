//! The time that a report is about.

use crate::domain::UnixSeconds;

/// From one moment on, until right before another; all time where neither is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Period {
    pub from: Option<UnixSeconds>,
    pub to: Option<UnixSeconds>,
}

impl Period {
    /// Rows before it are carried over: their lots are sold in it.
    pub fn is_before(&self, time: UnixSeconds) -> bool {
        self.from.is_some_and(|from| time < from)
    }

    pub fn is_after(&self, time: UnixSeconds) -> bool {
        self.to.is_some_and(|to| time >= to)
    }
}
