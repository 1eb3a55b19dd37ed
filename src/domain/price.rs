//! Price of a chain's native coin, exact.

use super::{Height, UnixSeconds};

/// US dollars for one whole native coin, in units of 10⁻¹² dollars. The stablecoins of a chain's
/// row count as one dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(pub u128);

impl Price {
    pub const DECIMALS: u8 = 12;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    pub height: Height,
    pub time: UnixSeconds,
}

/// A minute of the clock, counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minute(pub u32);

impl Minute {
    pub fn of(time: UnixSeconds) -> Self {
        Self(time.0 / 60)
    }

    /// Its first second.
    pub fn start(self) -> UnixSeconds {
        UnixSeconds(self.0.saturating_mul(60))
    }
}

/// A price derived from a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LearnedPrice {
    pub time: UnixSeconds,
    pub price: Price,
    /// A tag of the transaction's id: one transaction counts once, whichever wallet's history it is
    /// read from.
    pub tag: u64,
}
