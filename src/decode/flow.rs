//! What was received and given of one asset.

use crate::domain::{Side, Units};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flow {
    pub(super) got: Units,
    pub(super) gave: Units,
}

impl Flow {
    /// Saturates: no amount exceeds 2^256, so a contract that reports more is wrong.
    pub(super) fn join(&mut self, other: Self) {
        self.got = self.got.saturating_add(other.got);
        self.gave = self.gave.saturating_add(other.gave);
    }

    pub(super) fn add(&mut self, amount: Units, got: bool) {
        let sum = if got { &mut self.got } else { &mut self.gave };
        *sum = sum.saturating_add(amount);
    }

    /// The difference of the two; `None` if they are equal.
    pub(super) fn net(self) -> Option<(Side, Units)> {
        match self.got.checked_sub(self.gave) {
            Some(rest) if rest.is_zero() => None,
            Some(rest) => Some((Side::Buy, rest)),
            None => Some((Side::Sell, self.gave.saturating_sub(self.got))),
        }
    }
}
