//! Price of a chain's native coin, exact.

use super::{Height, UnixSeconds};

/// US dollars for one whole native coin, in units of 10⁻¹² dollars. Stablecoins of a chain's row
/// count as one dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(pub u128);

impl Price {
    /// Decimal places of the integer.
    pub const DECIMALS: u8 = 12;
}

/// When on a chain something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    pub height: Height,
    pub time: UnixSeconds,
}
