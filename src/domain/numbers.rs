//! How exact numbers are written into JSON.

use super::Decimal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbers {
    /// As number literals with every digit.
    #[default]
    Literal,
    /// As strings, for readers whose numbers are doubles.
    Text,
}

impl Numbers {
    /// Adds a number, or `null`.
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
