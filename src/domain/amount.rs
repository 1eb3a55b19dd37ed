//! Exact amounts: 256-bit integers of base units, and their decimal text.

use std::fmt::{self, Write as _};

/// An amount in the asset's smallest unit (lamports, wei, sun, token base units).
pub type Units = ruint::aliases::U256;

/// Base units together with the asset's decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    pub units: Units,
    pub decimals: u8,
}

/// A JSON number literal with every digit: no exponent, no sign, no trailing zeros, at least one
/// digit before the point.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = usize::from(self.decimals);
        let mut buffer = DigitBuffer::default();
        // Nearly all amounts are that small, and machine integers are written several times faster.
        match u128::try_from(self.units) {
            Ok(small) => write!(buffer, "{small}")?,
            Err(_) => write!(buffer, "{}", self.units)?,
        }
        let digits = buffer.as_str();
        if digits.len() > decimals {
            let (whole, part) = digits.split_at(digits.len() - decimals);
            let part = part.trim_end_matches('0');
            return match part {
                "" => f.write_str(whole),
                _ => write!(f, "{whole}.{part}"),
            };
        }
        match digits.trim_end_matches('0') {
            "" => f.write_str("0"),
            part => {
                f.write_str("0.")?;
                for _ in 0..decimals - digits.len() {
                    f.write_char('0')?;
                }
                f.write_str(part)
            }
        }
    }
}

/// Room for the 78 digits of the largest 256-bit integer, so that writing allocates nothing.
struct DigitBuffer {
    bytes: [u8; 80],
    len: usize,
}

impl Default for DigitBuffer {
    fn default() -> Self {
        Self { bytes: [0; 80], len: 0 }
    }
}

impl DigitBuffer {
    fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or("0")
    }
}

impl fmt::Write for DigitBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(units: &str, decimals: u8, expected: &str) {
        let units = units.parse().unwrap();
        assert_eq!(Decimal { units, decimals }.to_string(), expected);
    }

    #[test]
    fn writes_every_digit_and_no_exponent() {
        check("0", 0, "0");
        check("0", 18, "0");
        check("1", 9, "0.000000001");
        check("1500000000", 9, "1.5");
        check("1000000000", 9, "1");
        check("10", 0, "10");
        check("100", 2, "1");
        check("12345", 5, "0.12345");
        check(
            "115792089237316195423570985008687907853269984665640564039457584007913129639935",
            18,
            "115792089237316195423570985008687907853269984665640564039457.584007913129639935",
        );
        check("7", 255, &format!("0.{}7", "0".repeat(254)));
    }

    proptest! {
        /// Moving the point back to the right gives the integer that went in.
        #[test]
        fn text_holds_the_integer(limbs in any::<[u64; 4]>(), decimals in any::<u8>()) {
            let units = Units::from_limbs(limbs);
            let text = Decimal { units, decimals }.to_string();
            let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
            prop_assert!(part.len() <= usize::from(decimals) && !part.ends_with('0'));
            let zeros = "0".repeat(usize::from(decimals) - part.len());
            let joined = format!("{whole}{part}{zeros}");
            let expected = units.to_string();
            prop_assert_eq!(joined.trim_start_matches('0'), expected.trim_start_matches('0'));
        }
    }
}
