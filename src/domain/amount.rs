//! Exact amounts: 256-bit integers of base units, and their decimal text.

use std::fmt;

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
        let mut text = Vec::new();
        self.push_text(&mut text);
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl Decimal {
    /// Appends the displayed text.
    pub fn push_text(&self, out: &mut Vec<u8>) {
        let (mut buffer, large);
        let digits = match *self.units.as_limbs() {
            [low, 0, 0, 0] => {
                buffer = itoa::Buffer::new();
                buffer.format(low)
            }
            [low, high, 0, 0] => {
                buffer = itoa::Buffer::new();
                buffer.format(u128::from(high) << 64 | u128::from(low))
            }
            _ => {
                large = self.units.to_string();
                &large
            }
        };
        let (digits, decimals) = (digits.as_bytes(), usize::from(self.decimals));
        let (whole, part) = digits.split_at(digits.len().saturating_sub(decimals));
        let zeros = part.iter().rev().take_while(|digit| **digit == b'0').count();
        let (part, _) = part.split_at(part.len() - zeros);
        out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
        if !part.is_empty() {
            out.push(b'.');
            out.resize(out.len() + decimals.saturating_sub(digits.len()), b'0');
            out.extend_from_slice(part);
        }
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
