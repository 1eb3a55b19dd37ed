//! Detects requests with both a `content-length` and a `transfer-encoding`, which enable request
//! smuggling behind a proxy. The parser drops the `content-length` of such a request.
//!
//! So lines with this name are counted as they arrive, and compared with those that the parser has
//! passed on. Lines of a body may count too, which can only reject more requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warp::http::HeaderMap;
use warp::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};

const LINE: &[u8] = b"\ncontent-length:";

#[derive(Debug, Default)]
pub(super) struct Framing {
    arrived: AtomicU64,
    passed_on: AtomicU64,
}

impl Framing {
    /// Whether the next request has both headers.
    pub(super) fn is_ambiguous(&self, headers: &HeaderMap) -> bool {
        let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
        let lengths = u64::try_from(lengths).unwrap_or(u64::MAX);
        let before = self.passed_on.fetch_add(lengths, Ordering::Relaxed);
        let arrived = self.arrived.load(Ordering::Relaxed);
        headers.contains_key(TRANSFER_ENCODING) && arrived > before
    }
}

/// Counts the lines in the bytes that arrive on one connection.
#[derive(Debug, Default)]
pub(super) struct ByteCounter {
    pub(super) framing: Arc<Framing>,
    /// Matched bytes of the line's prefix.
    matched: usize,
}

impl ByteCounter {
    pub(super) fn count(&mut self, mut bytes: &[u8]) {
        loop {
            if self.matched == 0 {
                // Skip the rest of a line that does not match.
                let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
                bytes = bytes.get(end + 1..).unwrap_or_default();
                self.matched = 1;
            }
            let Some((byte, rest)) = bytes.split_first() else { return };
            bytes = rest;
            self.matched = match LINE.get(self.matched) {
                Some(expected) if byte.eq_ignore_ascii_case(expected) => self.matched + 1,
                _ => usize::from(*byte == b'\n'),
            };
            if self.matched == LINE.len() {
                self.framing.arrived.fetch_add(1, Ordering::Relaxed);
                self.matched = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_however_they_arrive() {
        let text =
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\ncontent-length:2\nx-content-length: 3\r\n\
                     content-length-x: 4\r\n\n\nCONTENT-LENGTH:5";
        for size in 1..text.len() {
            let mut counter = ByteCounter::default();
            text.chunks(size).for_each(|part| counter.count(part));
            assert_eq!(counter.framing.arrived.load(Ordering::Relaxed), 3, "{size}");
        }
    }
}
