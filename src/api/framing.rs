//! Sees a `content-length` that stands with a `transfer-encoding`: the parser drops it, and what a
//! proxy in front takes for the end of a body must be the end here too.
//!
//! Lines that begin with the name are counted as they arrive, and compared with those that the
//! parser has passed on. A line of a body may be counted too, which refuses more and never less.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use warp::http::HeaderMap;
use warp::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};

const LINE: &[u8] = b"\ncontent-length:";

/// What one connection has announced.
#[derive(Debug, Default)]
pub(super) struct Framing {
    arrived: AtomicU64,
    passed_on: AtomicU64,
}

impl Framing {
    /// Whether the head of the next request has both.
    pub(super) fn is_ambiguous(&self, headers: &HeaderMap) -> bool {
        let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
        let lengths = u64::try_from(lengths).unwrap_or(u64::MAX);
        let before = self.passed_on.fetch_add(lengths, Ordering::Relaxed);
        let arrived = self.arrived.load(Ordering::Relaxed);
        headers.contains_key(TRANSFER_ENCODING) && arrived > before
    }
}

/// Counts in the bytes that arrive on one connection.
#[derive(Debug, Default)]
pub(super) struct ByteCounter {
    pub(super) framing: Arc<Framing>,
    /// Bytes of the line's beginning that have matched.
    matched: usize,
}

impl ByteCounter {
    pub(super) fn count(&mut self, mut bytes: &[u8]) {
        loop {
            if self.matched == 0 {
                // Nothing in the rest of a line matters.
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
