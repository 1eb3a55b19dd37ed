//! Exact amounts: 256-bit integers of base units, and their decimal text in JSON.

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
    /// In units with more digits behind the point; `None` where it has too many, or is too large.
    pub fn scaled(self, decimals: u8) -> Option<Units> {
        let more = decimals.checked_sub(self.decimals)?;
        self.units.checked_mul(Units::from(10).checked_pow(Units::from(more))?)
    }

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

/// How exact numbers are written into JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// As number literals with every digit.
    #[default]
    Literal,
    /// As strings, for readers whose numbers are doubles.
    Text,
}

impl Numbers {
    /// Appends a number, or `null`.
    pub fn push(self, value: Option<Decimal>, out: &mut Vec<u8>) {
        match (value, self) {
            (None, _) => out.extend_from_slice(b"null"),
            (Some(value), Self::Literal) => value.push_text(out),
            (Some(value), Self::Text) => {
                out.push(b'"');
                value.push_text(out);
                out.push(b'"');
            }
        }
    }
}
