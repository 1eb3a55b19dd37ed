//! Returns free space while the store is in use: makes a copy without free pages next to the file,
//! applies what is committed meanwhile to the copy as well, and replaces the file by the copy.
//! Readers keep the file that they began with; writes wait for the last step only.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use tokio::sync::oneshot;

use super::file::{self, Shared};
use super::file_store::FileStore;
use super::intern::Known;
use super::job::Job;
use super::snapshot::Snapshot;
use super::{FILE_NAME, LIMITS, Result, StoreError, backup, journal};

/// Name of the copy until it replaces the file.
const COPY_NAME: &str = "trades.redb.compact";
/// How often to check whether the old file is still read.
const RETIRED_POLL: Duration = Duration::from_millis(20);

/// Removes a copy that a crash left before it replaced the file.
pub(super) fn remove_leftover(folder: &Path) {
    match fs::remove_file(folder.join(COPY_NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!(%error, "the unfinished copy of a compaction cannot be removed");
        }
        Ok(()) | Err(_) => {}
    }
}

impl FileStore {
    /// Compacts the file. The caller does not wait for the last reader of the old one.
    pub(super) async fn compact(&self) -> Result<(u64, u64)> {
        let shared = Arc::clone(&self.inner.shared);
        let path = shared.backend().path.clone();
        let folder = path.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let folder = folder.ok_or(StoreError::Invalid("a compaction of what is no file"))?;
        let (reply, begun) = oneshot::channel();
        let of_begin = Arc::clone(&shared);
        let begin = Box::new(move || drop(reply.send(begin(&of_begin))));
        let snapshot = self.ask(Job::Alone(begin), begun).await?;
        let jobs = self.inner.jobs.clone().ok_or(StoreError::Closed)?;
        let (reply, done) = oneshot::channel();
        let work = move || {
            let copy = Copy { shared, folder };
            let compacted = copy.run(snapshot, |last| {
                let (sender, outcome) = mpsc::channel();
                let last = Box::new(move || drop(sender.send(last())));
                jobs.blocking_send(Job::Alone(last)).map_err(|_| StoreError::Closed)?;
                outcome.recv().map_err(|_| StoreError::WriterGone)?
            });
            copy.shared.journal.end();
            if compacted.is_err() {
                remove_leftover(&copy.folder);
            }
            // A sender would keep the writer from ending when the store is closed.
            drop(jobs);
            let _ = reply.send(compacted);
            copy.release();
        };
        thread::Builder::new().name("store-compact".to_owned()).spawn(work)?;
        done.await.unwrap_or(Err(StoreError::Closed))
    }
}

/// Runs between two transactions: each commit is in the snapshot or in the journal, never in both.
fn begin(shared: &Arc<Shared>) -> Result<Snapshot> {
    shared.journal.begin()?;
    shared.snapshot().inspect_err(|_| shared.journal.end())
}

type Last = Box<dyn FnOnce() -> Result<()> + Send>;

struct Copy {
    shared: Arc<Shared>,
    folder: PathBuf,
}

impl Copy {
    fn run(
        &self,
        snapshot: Snapshot,
        alone: impl FnOnce(Last) -> Result<()>,
    ) -> Result<(u64, u64)> {
        let before = self.shared.file_bytes()?;
        let path = self.folder.join(COPY_NAME);
        let bytes = self.shared.disk_bytes()?;
        if self.shared.disk_free_bytes().is_some_and(|free| free < bytes) {
            let text = "the disk has too little room for the copy that a compaction makes";
            return Err(io::Error::new(io::ErrorKind::StorageFull, text).into());
        }
        backup::write_copy(&snapshot.txn, &path)?;
        // The file may reuse pages from here on.
        drop(snapshot);
        let options = self.shared.options;
        let backend = file::open_file(&path, options)?.moved_to(&self.folder.join(FILE_NAME));
        let (database, mut known) = (file::open_database(&backend, options)?, Known::default());
        loop {
            let (entries, records) = self.shared.journal.take()?;
            journal::replay(entries, &database, &mut known)?;
            if records <= LIMITS.journal_records_last {
                break;
            }
        }
        let (shared, folder) = (Arc::clone(&self.shared), self.folder.clone());
        // On the writer thread: nothing is committed meanwhile.
        alone(Box::new(move || {
            let (entries, _) = shared.journal.take()?;
            journal::replay(entries, &database, &mut known)?;
            fs::rename(folder.join(COPY_NAME), folder.join(FILE_NAME))?;
            // The name leads to the copy from here on, so later commits must go there.
            shared.replace(backend, database);
            fs::File::open(folder)?.sync_all()?;
            Ok(())
        }))?;
        Ok((before, self.shared.file_bytes()?))
    }

    /// Closes the old file, which frees its space, as soon as no snapshot reads from it.
    fn release(&self) {
        let started = Instant::now();
        while !self.shared.release_retired() && started.elapsed() < LIMITS.retired_wait {
            thread::sleep(RETIRED_POLL);
        }
    }
}
