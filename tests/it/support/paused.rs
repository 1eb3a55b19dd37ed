//! Clock and disk for a whole service in one process on paused time. The loading benchmark uses
//! this file too.

use std::sync::{Arc, Mutex};

use blotter::domain::{Clock, UnixMillis};
use tokio::time::Instant;

/// 2026-01-01; with paused time it moves as tokio's clock does.
const START_MS: u64 = 1_767_225_600_000;

#[derive(Debug)]
pub(crate) struct TestClock(Instant);

impl TestClock {
    pub(crate) fn start() -> Arc<dyn Clock> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for TestClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(START_MS + u64::try_from(self.0.elapsed().as_millis()).unwrap())
    }
}

/// A store's bytes, which outlive the service that has it open. A file that is memory: real ones
/// answer on other threads, which paused time does not wait for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Vec<u8>>>);

impl redb::StorageBackend for Disk {
    fn len(&self) -> std::io::Result<u64> {
        Ok(u64::try_from(self.0.lock().unwrap().len()).unwrap())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.0.lock().unwrap()[at..at + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        let at = usize::try_from(offset).unwrap();
        self.0.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}
