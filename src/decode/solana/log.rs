//! The log of a transaction: which programs ran, and at which heights of the call tree.

use crate::decode::json::{Reader, Unread};

#[derive(Debug, Clone, Copy)]
pub(super) struct Log<'a> {
    text: &'a [u8],
    /// Calls inside outer ones that it contains. Nodes cut long logs.
    pub(super) inner_calls: usize,
}

impl<'a> Log<'a> {
    pub(super) fn read(r: &mut Reader<'a>) -> Result<Self, Unread> {
        let mut inner_calls = 0;
        let text = r.texts(|line| {
            // Most lines end otherwise.
            let is_inner = line.ends_with(b"]") && called(line).is_some_and(|(_, at)| at > 1);
            inner_calls += usize::from(is_inner);
        })?;
        Ok(Self { text, inner_calls })
    }

    /// The program, as text, and the height of each call.
    pub(super) fn calls(&self, mut each: impl FnMut(&'a [u8], u8)) {
        // It was read once, so it can be read again.
        let _ = Reader::new(self.text).texts(|line| {
            if let Some((program, height)) = called(line) {
                each(program, height);
            }
        });
    }
}

/// The program, as text, and the height in `Program <id> invoke [<height>]`. What a program itself
/// logs begins with `Program log:`.
fn called(line: &[u8]) -> Option<(&[u8], u8)> {
    let rest = line.strip_prefix(b"Program ")?;
    let (program, rest) = rest.split_at_checked(rest.iter().position(|byte| *byte == b' ')?)?;
    if program.ends_with(b":") {
        return None;
    }
    let height = rest.strip_prefix(b" invoke [")?.strip_suffix(b"]")?;
    Some((program, std::str::from_utf8(height).ok()?.parse().ok()?))
}
