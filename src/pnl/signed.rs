//! An exact amount that may be below zero.

use std::fmt;
use std::ops::AddAssign;

use crate::domain::{Decimal, Units};

/// A gain less a loss. Zero is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Signed {
    negative: bool,
    magnitude: Units,
}

impl Signed {
    pub const ZERO: Self = Self { negative: false, magnitude: Units::ZERO };

    pub fn difference(gained: Units, lost: Units) -> Self {
        match gained.checked_sub(lost) {
            Some(magnitude) => Self { negative: false, magnitude },
            None => Self { negative: true, magnitude: lost.saturating_sub(gained) },
        }
    }

    pub fn is_positive(&self) -> bool {
        !self.negative && !self.magnitude.is_zero()
    }

    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// With its point set.
    pub fn decimal(self, decimals: u8) -> SignedDecimal {
        SignedDecimal { negative: self.negative, part: Decimal { units: self.magnitude, decimals } }
    }
}

impl AddAssign for Signed {
    fn add_assign(&mut self, other: Self) {
        // Native coin in existence is far below the width of the integer.
        *self = if self.negative == other.negative {
            let magnitude = self.magnitude.saturating_add(other.magnitude);
            Self { negative: self.negative, magnitude }
        } else if self.negative {
            Self::difference(other.magnitude, self.magnitude)
        } else {
            Self::difference(self.magnitude, other.magnitude)
        };
    }
}

/// A JSON number literal with every digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedDecimal {
    negative: bool,
    part: Decimal,
}

impl fmt::Display for SignedDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        self.part.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn adds_as_integers_do(parts in proptest::collection::vec(any::<(u64, u64)>(), 0..20)) {
            let mut sum = Signed::ZERO;
            let mut expected = 0_i128;
            for (gained, lost) in parts {
                sum += Signed::difference(Units::from(gained), Units::from(lost));
                expected += i128::from(gained) - i128::from(lost);
            }
            prop_assert_eq!(sum.decimal(0).to_string(), expected.to_string());
            prop_assert_eq!(sum.is_positive(), expected > 0);
            prop_assert_eq!(sum.is_negative(), expected < 0);
        }
    }

    #[test]
    fn is_written_with_its_point() {
        let loss = Signed::difference(Units::from(5), Units::from(1_000_000_005_u64));
        assert_eq!(loss.decimal(9).to_string(), "-1");
        assert_eq!(loss.decimal(12).to_string(), "-0.001");
    }
}
