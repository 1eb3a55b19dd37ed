//! Decimal texts of rows as integers.

use crate::domain::Units;

/// Digits, and how many of them stand behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Number {
    pub(in crate::cli) units: Units,
    pub(in crate::cli) decimals: u8,
}

impl Number {
    /// A JSON number as the API writes them: no sign, no exponent.
    pub(in crate::cli) fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let decimals = u8::try_from(part.len()).ok()?;
        let digits = format!("{whole}{part}");
        let is_number = !whole.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let units = Units::from_str_radix(&digits, 10).ok().filter(|_| is_number)?;
        Some(Self { units, decimals })
    }

    /// As a whole number of units with more digits behind the point.
    pub(in crate::cli) fn scaled(self, decimals: u8) -> Option<Units> {
        let more = decimals.checked_sub(self.decimals)?;
        self.units.checked_mul(Units::from(10).checked_pow(Units::from(more))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly() {
        let read =
            |text| Number::parse(text).map(|number| (number.units.to_string(), number.decimals));
        assert_eq!(read("0"), Some(("0".to_owned(), 0)));
        assert_eq!(read("12.050"), Some(("12050".to_owned(), 3)));
        assert_eq!(read("0.000000000000000001"), Some(("1".to_owned(), 18)));
        for wrong in ["", ".5", "-1", "1e5", "1.2.3", "abc", "1_0", "+1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let one = Number::parse("1.5").unwrap();
        assert_eq!(one.scaled(3), Some(Units::from(1500)));
        assert_eq!(one.scaled(0), None);
    }
}
