//! Parses the decimal numbers of rows.

use crate::domain::{Decimal, Units};

/// Parses a JSON number in the API's form: no sign and no exponent.
pub(in crate::cli) fn decimal(text: &str) -> Option<Decimal> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let decimals = u8::try_from(part.len()).ok()?;
    let digits = format!("{whole}{part}");
    let is_number = !whole.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let units = Units::from_str_radix(&digits, 10).ok().filter(|_| is_number)?;
    Some(Decimal { units, decimals })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly() {
        let read = |text| decimal(text).map(|read| (read.units.to_string(), read.decimals));
        assert_eq!(read("0"), Some(("0".to_owned(), 0)));
        assert_eq!(read("12.050"), Some(("12050".to_owned(), 3)));
        assert_eq!(read("0.000000000000000001"), Some(("1".to_owned(), 18)));
        for wrong in ["", ".5", "-1", "1e5", "1.2.3", "abc", "1_0", "+1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let one = decimal("1.5").unwrap();
        assert_eq!(one.scaled(3), Some(Units::from(1500)));
        assert_eq!(one.scaled(0), None);
    }
}
