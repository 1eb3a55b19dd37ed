//! A disk in memory that can lose power, run full and fail.

use std::io;
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::{BackendError, StorageBackend};

/// The bytes of a sector, which are written together or not at all.
const SECTOR_BYTES: usize = 512;

/// Clones share the disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What the program reads back.
    live: Vec<u8>,
    /// What the last completed sync made safe.
    durable: Vec<u8>,
    /// What came since, in order.
    pending: Vec<Change>,
    syncs: u64,
    /// Writes, changes of length and syncs.
    changes: u64,
    /// Power is lost during this sync: it and all later changes fail.
    power_off_at_sync: Option<u64>,
    failing_changes: Range<u64>,
    reads_fail: bool,
    /// The disk is full at this length.
    capacity: Option<usize>,
    panics: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Len(usize),
}

/// Which of the changes since the last sync are on the disk after the power loss.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kept {
    Nothing,
    All,
    /// The header alone, as in redb's own test.
    Header,
    /// Each sector or not, by this seed.
    Some(u64),
}

impl Disk {
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        let disk = Self::default();
        *disk.lock() = State { live: bytes.clone(), durable: bytes, ..State::default() };
        disk
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    pub(crate) fn changes(&self) -> u64 {
        self.lock().changes
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lock().live.len()
    }

    pub(crate) fn power_off_at_sync(&self, sync: u64) {
        self.lock().power_off_at_sync = Some(sync);
    }

    /// From now on nothing fails on purpose.
    pub(crate) fn keep_well(&self) {
        let mut state = self.lock();
        state.power_off_at_sync = None;
        state.failing_changes = 0..0;
        state.capacity = None;
    }

    /// Whether the power is off.
    pub(crate) fn is_off(&self) -> bool {
        self.lock().check_power().is_err()
    }

    /// Counted from the first one ever.
    pub(crate) fn fail_changes(&self, which: Range<u64>) {
        self.lock().failing_changes = which;
    }

    pub(crate) fn fail_reads(&self, fail: bool) {
        self.lock().reads_fail = fail;
    }

    pub(crate) fn set_capacity(&self, bytes: Option<usize>) {
        self.lock().capacity = bytes;
    }

    /// From now on every change panics, as a defect below the store would.
    pub(crate) fn panic_on_change(&self) {
        self.lock().panics = true;
    }

    /// What the next start finds.
    pub(crate) fn image(&self, kept: Kept) -> Vec<u8> {
        let state = self.lock();
        let mut image = state.durable.clone();
        let mut seed = match kept {
            Kept::Some(seed) => seed,
            Kept::Nothing | Kept::All | Kept::Header => 0,
        };
        for change in &state.pending {
            match (kept, change) {
                (Kept::All, change) => apply(&mut image, change),
                (Kept::Header, Change::Write(0, data)) if image.len() >= data.len() => {
                    image[..data.len()].copy_from_slice(data);
                }
                (Kept::Nothing | Kept::Header, _) => {}
                (Kept::Some(_), Change::Len(len)) => {
                    if next(&mut seed).is_multiple_of(2) {
                        image.resize(*len, 0);
                    }
                }
                (Kept::Some(_), Change::Write(offset, data)) => {
                    for (at, sector) in data.chunks(SECTOR_BYTES).enumerate() {
                        let to = offset + at * SECTOR_BYTES;
                        if next(&mut seed).is_multiple_of(2) && to + sector.len() <= image.len() {
                            image[to..to + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
            }
        }
        image
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn change(&mut self, change: Change) -> io::Result<()> {
        self.admit()?;
        let end = match &change {
            Change::Write(offset, data) => offset + data.len(),
            Change::Len(len) => *len,
        };
        if self.capacity.is_some_and(|capacity| end > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        apply(&mut self.live, &change);
        self.pending.push(change);
        Ok(())
    }

    fn admit(&mut self) -> io::Result<()> {
        assert!(!self.panics, "the disk is set to panic");
        self.check_power()?;
        self.changes += 1;
        if self.failing_changes.contains(&self.changes) {
            return Err(io::Error::other("a change is set to fail"));
        }
        Ok(())
    }

    fn check_power(&self) -> io::Result<()> {
        match self.power_off_at_sync {
            Some(sync) if self.syncs >= sync => Err(io::Error::other("the power is off")),
            Some(_) | None => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        let state = self.lock();
        state.check_power()?;
        Ok(state.live.len().try_into().unwrap())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.lock();
        state.check_power()?;
        if state.reads_fail {
            return Err(io::Error::other("a read is set to fail"));
        }
        let offset = usize::try_from(offset).unwrap();
        let bytes = state.live.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.lock().change(Change::Len(usize::try_from(len).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.admit()?;
        state.syncs += 1;
        state.check_power()?;
        let State { durable, pending, .. } = &mut *state;
        pending.drain(..).for_each(|change| apply(durable, &change));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.lock().change(Change::Write(usize::try_from(offset).unwrap(), data.to_vec()))
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Len(len) => bytes.resize(*len, 0),
        Change::Write(offset, data) => {
            let end = offset + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset..end].copy_from_slice(data);
        }
    }
}

/// splitmix64
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
