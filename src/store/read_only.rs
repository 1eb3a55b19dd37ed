//! A backend over a read-only file. Opening a database writes to its header: these writes stay in
//! memory, and later ones fail as those of a read-only file system do.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use crate::domain::lock;
use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend};

const BLOCK_BYTES: usize = 4096;

/// Forwards each lock of a backend to a lock of another one.
macro_rules! forward_locks {
    ($to:ident: $($name:ident => $lock:ident -> $result:ty;)*) => {
        $(fn $name(&self, start: Bound<u64>, end: Bound<u64>) -> Result<$result, BackendError> {
            self.$to.$lock(start, end)
        })*
    };
}

pub(super) use forward_locks;

#[derive(Debug)]
pub(super) struct ReadOnly {
    file: FileBackend,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    len: u64,
    /// Blocks that differ from the file's.
    changed: HashMap<u64, Vec<u8>>,
    is_opening: bool,
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Whether a file that cannot be opened for writing with this error may still be readable.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

impl ReadOnly {
    pub(super) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let storage = redb::StorageError::Io;
        let file = FileBackend::new(File::open(path).map_err(storage)?)?;
        let state = State { len: 0, changed: HashMap::new(), is_opening: false };
        Ok(Self { file, state: Mutex::new(state) })
    }

    /// Keeps writes in memory from here on, and drops those of an earlier opening.
    pub(super) fn begin(&self) -> io::Result<()> {
        let len = self.file.len()?;
        *lock(&self.state) = State { len, changed: HashMap::new(), is_opening: true };
        Ok(())
    }

    /// Refuses writes from here on.
    pub(super) fn seal(&self) {
        lock(&self.state).is_opening = false;
    }

    fn writable(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = lock(&self.state);
        if state.is_opening { Ok(state) } else { Err(io::ErrorKind::ReadOnlyFilesystem.into()) }
    }

    /// A block with its changes; bytes beyond the file are zero.
    fn block(&self, state: &State, number: u64) -> io::Result<Vec<u8>> {
        if let Some(block) = state.changed.get(&number) {
            return Ok(block.clone());
        }
        let mut block = vec![0; BLOCK_BYTES];
        let offset = number * wide(BLOCK_BYTES);
        let stored = usize::try_from(self.file.len()?.saturating_sub(offset)).unwrap_or(usize::MAX);
        if let Some(part) = block.get_mut(..stored.min(BLOCK_BYTES)).filter(|part| !part.is_empty())
        {
            self.file.read(offset, part)?;
        }
        Ok(block)
    }

    /// Calls `run` for each block of a range of bytes: its number, the range within the block, and
    /// within the bytes.
    fn each_block(
        offset: u64,
        len: usize,
        mut run: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < len {
            let at = offset + wide(done);
            let begin = usize::try_from(at % wide(BLOCK_BYTES)).unwrap_or_default();
            let part = (BLOCK_BYTES - begin).min(len - done);
            run(at / wide(BLOCK_BYTES), begin..begin + part, done..done + part)?;
            done += part;
        }
        Ok(())
    }
}

impl StorageBackend for ReadOnly {
    fn len(&self) -> io::Result<u64> {
        let state = lock(&self.state);
        if state.is_opening || !state.changed.is_empty() { Ok(state.len) } else { self.file.len() }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = lock(&self.state);
        if state.changed.is_empty() && !state.is_opening {
            drop(state);
            return self.file.read(offset, out);
        }
        Self::each_block(offset, out.len(), |number, inside, place| {
            let block = self.block(&state, number)?;
            if let (Some(to), Some(from)) = (out.get_mut(place), block.get(inside)) {
                to.copy_from_slice(from);
            }
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.writable()?.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.writable().map(drop)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.writable()?;
        Self::each_block(offset, data.len(), |number, inside, place| {
            let mut block = self.block(&state, number)?;
            if let (Some(to), Some(from)) = (block.get_mut(inside), data.get(place)) {
                to.copy_from_slice(from);
            }
            state.changed.insert(number, block);
            Ok(())
        })
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    // A file that is open only for reading can be locked against writers, not against readers.
    forward_locks! {
        file:
        try_lock_range => try_lock_shared_range -> bool;
        try_lock_shared_range => try_lock_shared_range -> bool;
        lock_range => lock_shared_range -> ();
        lock_shared_range => lock_shared_range -> ();
        unlock_range => unlock_range -> ();
        query_lock_range => query_lock_range -> bool;
    }
}
