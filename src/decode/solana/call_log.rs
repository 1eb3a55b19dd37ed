//! The log of a transaction: which programs ran, and at which heights of the call tree.

use crate::decode::json::{Reader, Unread};

#[derive(Debug, Clone, Copy)]
pub(super) struct CallLog<'a> {
    text: &'a [u8],
    /// Calls inside outer ones that it contains. Nodes cut long logs.
    pub(super) inner_calls: usize,
}

impl<'a> CallLog<'a> {
    pub(super) fn read(r: &mut Reader<'a>) -> Result<Self, Unread> {
        let mut inner_calls = 0;
        let text = r.texts(|line| {
            let is_inner = called(line).is_some_and(|(_, height)| height > 1);
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
    // Most lines end otherwise; heights have one digit.
    let [call @ .., b'[', height @ b'1'..=b'9', b']'] = line else { return None };
    let program = call.strip_prefix(b"Program ")?.strip_suffix(b" invoke ")?;
    (!program.starts_with(b"log:")).then_some((program, height - b'0'))
}
