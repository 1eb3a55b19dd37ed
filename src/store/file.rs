//! Opens the file, and reopens it after a failure.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use redb::backends::FileBackend;
use redb::{BackendError, Builder, Database, DatabaseError, ReadableDatabase as _, StorageBackend};

use super::disk;
use super::journal::Journal;
use super::read_only::{ReadOnly, forward_locks, is_refusal};
use super::reader_cache::ReaderCache;
use super::schema::{self, FileFormat};
use super::snapshot::{Latest, Snapshot};
use super::{Result, StoreError, StoreOptions, upgrade};
use crate::domain::lock;

/// Length of redb's magic number at the start of a file, of its header page, and more than it
/// writes before it writes the magic number.
const MARK_BYTES: usize = 9;
const HEADER_BYTES: usize = 4096;
const CREATION_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What readers and the writer thread share.
#[derive(Debug)]
pub(super) struct Shared {
    /// `None` once closed, and while a failed file could not be reopened.
    database: RwLock<Option<Opened>>,
    /// The file that was replaced, until no snapshot reads from it.
    retired: Mutex<Option<Opened>>,
    pub(super) journal: Journal,
    pub(super) cache: ReaderCache,
    pub(super) latest: Latest,
    backend: RwLock<SharedBackend>,
    pub(super) options: StoreOptions,
    /// How often the file was opened.
    opened: AtomicU64,
    /// The opening of the file during which it failed last: redb refuses all work after a failure,
    /// so the writer reopens the file.
    failed: AtomicU64,
    closed: AtomicBool,
}

impl Shared {
    pub(super) fn open(backend: SharedBackend, options: StoreOptions) -> Result<Self> {
        let database = open_database(&backend, options)?;
        Ok(Self {
            database: RwLock::new(Some(Opened::new(database))),
            retired: Mutex::default(),
            journal: Journal::default(),
            cache: ReaderCache::default(),
            latest: Latest::default(),
            backend: RwLock::new(backend),
            options,
            opened: AtomicU64::new(1),
            failed: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// A new snapshot of what is stored now.
    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        let (edition, opened) = (self.cache.edition(), self.opened());
        let (txn, pin) =
            self.record_failure(opened, self.with_pin(|database| Ok(database.begin_read()?)))?;
        Ok(Snapshot::new(txn, edition, opened, pin))
    }

    pub(super) fn with<T>(&self, run: impl FnOnce(&Database) -> Result<T>) -> Result<T> {
        self.with_pin(run).map(|(result, _)| result)
    }

    fn with_pin<T>(&self, run: impl FnOnce(&Database) -> Result<T>) -> Result<(T, Arc<()>)> {
        match &*self.database.read().unwrap_or_else(PoisonError::into_inner) {
            Some(opened) => Ok((run(&opened.database)?, Arc::clone(&opened.pin))),
            None if self.is_closed() => Err(StoreError::Closed),
            None => Err(io::Error::other("the file failed and could not be opened again").into()),
        }
    }

    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Acquire)
    }

    /// Marks the file as failed after an I/O error during that opening of it.
    pub(super) fn record_failure<T>(&self, opened: u64, result: Result<T>) -> Result<T> {
        if let Err(StoreError::Io(_)) = &result {
            self.mark_failed(opened);
        }
        result
    }

    pub(super) fn mark_failed(&self, opened: u64) {
        self.failed.fetch_max(opened, Ordering::AcqRel);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire) == self.opened()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Reopens a failed file; after an error the next call tries again. Only the writer may call
    /// it, between its transactions. Open views get errors from then on.
    pub(super) fn reopen(&self) -> Result<()> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        // Closed first, because it holds the lock on the file.
        self.close_database(&mut database);
        *database = Some(Opened::new(open_database(&self.backend(), self.options)?));
        // The changes of a failed commit may be in the file.
        self.cache.forget_all();
        self.opened.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Open views get errors from here on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.close_database(&mut self.database.write().unwrap_or_else(PoisonError::into_inner));
        drop(lock(&self.retired).take());
    }

    /// Replaces the file by another one. Snapshots keep the old one, which stays open until
    /// [`Shared::release_retired`]. Only the writer may call it, between its transactions.
    pub(super) fn replace(&self, backend: SharedBackend, database: Database) {
        let mut current = self.database.write().unwrap_or_else(PoisonError::into_inner);
        self.latest.forget();
        *lock(&self.retired) = current.replace(Opened::new(database));
        *self.backend.write().unwrap_or_else(PoisonError::into_inner) = backend;
        self.opened.fetch_add(1, Ordering::AcqRel);
        self.latest.forget();
    }

    /// Closes the replaced file; false while a snapshot reads from it.
    pub(super) fn release_retired(&self) -> bool {
        let mut retired = lock(&self.retired);
        if retired.as_ref().is_some_and(|old| Arc::strong_count(&old.pin) > 1) {
            return false;
        }
        drop(retired.take());
        true
    }

    pub(super) fn backend(&self) -> SharedBackend {
        self.backend.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the database. A clean close needs the shared snapshot gone, and a reader may begin
    /// another one until the database is taken.
    fn close_database(&self, database: &mut Option<Opened>) {
        self.latest.forget();
        drop(database.take());
        self.latest.forget();
    }

    pub(super) fn file_bytes(&self) -> Result<u64> {
        Ok(self.backend().len()?)
    }

    /// Allocated bytes of the file.
    pub(super) fn disk_bytes(&self) -> Result<u64> {
        let backend = self.backend();
        Ok(match backend.path.as_deref() {
            Some(path) => disk::used_bytes(path)?,
            None => backend.len()?,
        })
    }

    pub(super) fn disk_free_bytes(&self) -> Option<u64> {
        self.backend().path.as_deref().and_then(disk::free_bytes)
    }
}

/// An open database, with a reference count of the snapshots that read from it.
#[derive(Debug)]
struct Opened {
    database: Database,
    pin: Arc<()>,
}

impl Opened {
    fn new(database: Database) -> Self {
        Self { database, pin: Arc::default() }
    }
}

/// A backend that outlives its database, so that the database can be reopened.
#[derive(Debug, Clone)]
pub(super) struct SharedBackend {
    backend: Arc<dyn StorageBackend>,
    /// The backend again, where the file is read-only.
    read_only: Option<Arc<ReadOnly>>,
    pub(super) name: Arc<str>,
    /// `None` where it is not a file.
    pub(super) path: Option<Arc<Path>>,
}

impl SharedBackend {
    fn new(backend: impl StorageBackend, name: &str) -> Self {
        Self { backend: Arc::new(backend), read_only: None, name: Arc::from(name), path: None }
    }

    /// The file under another name.
    pub(super) fn moved_to(self, path: &Path) -> Self {
        Self { name: path.display().to_string().into(), path: Some(Arc::from(path)), ..self }
    }

    fn read_only(path: &Path, name: &str) -> Result<Self> {
        let backend = Arc::new(ReadOnly::open(path).map_err(|error| refuse(error, name))?);
        let read_only = Some(Arc::clone(&backend));
        let (name, path) = (Arc::from(name), Some(Arc::from(path)));
        Ok(Self { backend, read_only, name, path })
    }
}

/// Forwards methods to the backend.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> io::Result<$result> {
            self.backend.$name($($argument),*)
        })*
    };
}

impl StorageBackend for SharedBackend {
    forward! {
        len() -> u64;
        read(offset: u64, out: &mut [u8]) -> ();
        set_len(len: u64) -> ();
        sync_data() -> ();
        write(offset: u64, data: &[u8]) -> ();
        close() -> ();
    }

    forward_locks! {
        backend:
        try_lock_range => try_lock_range -> bool;
        try_lock_shared_range => try_lock_shared_range -> bool;
        lock_range => lock_range -> ();
        lock_shared_range => lock_shared_range -> ();
        unlock_range => unlock_range -> ();
        query_lock_range => query_lock_range -> bool;
    }
}

/// Opens or creates the file, readable by its owner only. An existing file is inspected before
/// anything is written to it: it may be another program's.
pub(super) fn open_file(path: &Path, options: StoreOptions) -> Result<SharedBackend> {
    if let Some(folder) = path.parent() {
        disk::create_private_folder(folder)?;
    }
    let name = path.display().to_string();
    let mut how = disk::private_file();
    let file = match how.read(true).write(true).create(true).truncate(false).open(path) {
        Err(error) if is_refusal(&error) && path.exists() => {
            tracing::warn!(file = name, %error, "the store cannot be written: what it holds is served, nothing is loaded");
            inspect_without_writing(path, &name, options)?;
            return SharedBackend::read_only(path, &name);
        }
        file => file?,
    };
    let backend = FileBackend::new(file).map_err(|error| refuse(error, &name))?;
    restart_creation(&backend, &name)?;
    if backend.len()? > 0 {
        inspect_without_writing(path, &name, options)?;
        disk::make_private(path);
    } else {
        sync_folders(path);
    }
    Ok(SharedBackend { path: Some(Arc::from(path)), ..SharedBackend::new(backend, &name) })
}

/// Makes the directory entries of a new file and its folder durable where the system supports that:
/// a commit syncs only the file.
fn sync_folders(path: &Path) {
    for folder in path.ancestors().skip(1).take(2) {
        let here = Path::new(".");
        let folder = if folder.as_os_str().is_empty() { here } else { folder };
        if let Err(error) = File::open(folder).and_then(|folder| folder.sync_all()) {
            tracing::debug!(%error, folder = %folder.display(), "a folder could not be synced");
        }
    }
}

pub(super) fn open_backend(backend: impl StorageBackend) -> Result<SharedBackend> {
    let name = "the given storage";
    restart_creation(&backend, name)?;
    Ok(SharedBackend::new(backend, name))
}

/// Empties a file whose creation a crash interrupted: it would count as a foreign one.
fn restart_creation(backend: &impl StorageBackend, name: &str) -> Result<()> {
    if !is_unfinished(backend)? {
        return Ok(());
    }
    // The file is not examined while another process is creating it.
    lock_whole(backend, name)?;
    if is_unfinished(backend)? {
        backend.set_len(0)?;
    }
    match backend.unlock_range(Bound::Unbounded, Bound::Unbounded) {
        Ok(()) | Err(BackendError::Unsupported) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Locks the whole backend, where locks are supported.
///
/// # Errors
/// `Locked` while another process holds the lock.
pub(super) fn lock_whole(backend: &impl StorageBackend, name: &str) -> Result<()> {
    match backend.try_lock_range(Bound::Unbounded, Bound::Unbounded) {
        Ok(true) | Err(BackendError::Unsupported) => Ok(()),
        Ok(false) => Err(StoreError::Locked { file: name.to_owned() }),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Whether nothing was written but a header without the magic number, which redb writes last.
fn is_unfinished(backend: &impl StorageBackend) -> io::Result<bool> {
    let len = backend.len()?;
    if len == 0 || len > CREATION_BYTES_MAX {
        return Ok(false);
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
    backend.read(0, &mut bytes)?;
    let (mark, body) = (bytes.get(..MARK_BYTES), bytes.get(HEADER_BYTES..).unwrap_or(&[]));
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    Ok(mark.is_some_and(zero) && zero(body))
}

fn inspect_without_writing(path: &Path, name: &str, options: StoreOptions) -> Result<()> {
    let database = match builder(options).open_read_only(path) {
        Ok(database) => database,
        // After an unclean close it must be opened for writing; the check comes then.
        Err(DatabaseError::RepairAborted) => return Ok(()),
        Err(error) => return Err(refuse(error, name)),
    };
    schema::inspect(&database.begin_read()?, name).map(drop)
}

pub(super) fn open_database(backend: &SharedBackend, options: StoreOptions) -> Result<Database> {
    if let Some(read_only) = &backend.read_only {
        read_only.begin()?;
    }
    let opened = open_and_complete(backend, options);
    if let Some(read_only) = &backend.read_only {
        read_only.seal();
    }
    opened
}

fn open_and_complete(backend: &SharedBackend, options: StoreOptions) -> Result<Database> {
    let name = &backend.name;
    let database = create_plain(backend, options)?;
    match schema::inspect(&database.begin_read()?, name)? {
        FileFormat::Empty => schema::initialize(&database)?,
        FileFormat::Earlier(found) => upgrade::upgrade(&database, found)?,
        FileFormat::Current => schema::complete(&database)?,
    }
    Ok(database)
}

/// Opens the database without creating tables.
pub(super) fn create_plain(backend: &SharedBackend, options: StoreOptions) -> Result<Database> {
    let created = builder(options).create_with_backend(backend.clone());
    created.map_err(|error| refuse(error, &backend.name))
}

fn builder(options: StoreOptions) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(options.cache_bytes);
    builder
}

fn refuse(error: DatabaseError, name: &str) -> StoreError {
    let file = name.to_owned();
    if let DatabaseError::DatabaseAlreadyOpen = error {
        return StoreError::Locked { file };
    }
    let reason = error.to_string();
    if let DatabaseError::Storage(redb::StorageError::Io(error)) = error
        && !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
    {
        return error.into();
    }
    StoreError::Foreign { file, reason }
}
