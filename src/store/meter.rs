//! How far into the file was written, and how far writing may go.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes from the start of a file to the end of what was written. redb doubles the length of a small
/// file ahead of need, so the length alone overstates what the file takes of a disk.
#[derive(Debug)]
pub(super) struct Meter {
    written: AtomicU64,
    /// Writes that end behind it are refused.
    limit: AtomicU64,
}

impl Meter {
    pub(super) fn new(written: u64) -> Self {
        Self { written: AtomicU64::new(written), limit: AtomicU64::new(u64::MAX) }
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Sets the limit. What was written before stays writable: a limit below it would make every
    /// commit fail, also those that delete.
    pub(super) fn limit_to(&self, bytes: Option<u64>) {
        let limit = bytes.map_or(u64::MAX, |bytes| bytes.max(self.written()));
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub(super) fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit < u64::MAX)
    }

    /// # Errors
    /// `StorageFull` for a write that ends behind the limit.
    pub(super) fn check(&self, offset: u64, len: usize) -> io::Result<()> {
        let end = offset.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
        if end > self.limit.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "storage.max_size is reached"));
        }
        self.written.fetch_max(end, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn cut(&self, len: u64) {
        self.written.fetch_min(len, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_behind_the_limit_is_refused_and_not_counted() {
        let meter = Meter::new(0);
        meter.check(0, 100).unwrap();
        meter.limit_to(Some(150));
        meter.check(100, 50).unwrap();
        let refused = meter.check(150, 1).unwrap_err();
        assert_eq!((refused.kind(), meter.written()), (io::ErrorKind::StorageFull, 150));
        meter.limit_to(Some(10));
        meter.check(100, 50).unwrap();
        meter.cut(40);
        assert_eq!(meter.written(), 40);
        meter.limit_to(None);
        meter.check(1 << 40, 1).unwrap();
    }
}
