//! Writes the access log, one line for each request, on a thread of its own, so that a slow disk
//! does not delay responses.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use serde_json::{Value, json};

use crate::api::{Access, AccessLog};
use crate::store::private_file;

const STDERR: &str = "stderr";
/// Longest queue of the writer. Further lines are dropped and counted.
const LINES_MAX: usize = 8192;

#[derive(Debug)]
enum Job {
    Line(String),
    /// Reopens the file, which a log rotation may have moved.
    Reopen,
}

/// The handle of the writer's thread.
#[derive(Debug)]
pub(in crate::cli) struct AccessFile {
    jobs: SyncSender<Job>,
    /// Lines dropped since the last queued one.
    lost: AtomicU64,
}

impl AccessFile {
    /// Starts the writer; `None` if the path is empty.
    pub(in crate::cli) fn start(path: &str) -> io::Result<Option<Self>> {
        if path.is_empty() {
            return Ok(None);
        }
        let path = (path != STDERR).then(|| PathBuf::from(path));
        let out = open(path.as_deref())?;
        let (jobs, queue) = sync_channel(LINES_MAX);
        let write = move || run(path.as_deref(), out, &queue);
        thread::Builder::new().name("access-log".to_owned()).spawn(write)?;
        Ok(Some(Self { jobs, lost: AtomicU64::new(0) }))
    }

    pub(in crate::cli) fn reopen(&self) {
        // If the queue is full, its lines matter more than a reopened file.
        let _ = self.jobs.try_send(Job::Reopen);
    }

    fn send(&self, line: String) {
        if let Err(TrySendError::Full(_)) = self.jobs.try_send(Job::Line(line)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl AccessLog for AccessFile {
    fn record(&self, entry: &Access) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.send(format!("{}\n", json!({ "lost": lost })));
        }
        self.send(format!("{}\n", line(entry)));
    }
}

fn line(entry: &Access) -> Value {
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut line = json!({
        "time": entry.time.seconds().to_string(),
        "requestId": entry.request_id,
        "client": entry.client,
        "key": entry.key,
        "method": entry.method,
        "route": entry.route,
        "status": entry.status,
        "bytes": entry.bytes,
        "beganMs": millis(entry.began),
        "endedMs": millis(entry.ended),
    });
    if let (Some(members), Some(path)) = (line.as_object_mut(), &entry.path) {
        members.insert("path".to_owned(), json!(path));
    }
    line
}

fn open(path: Option<&Path>) -> io::Result<Box<dyn Write + Send>> {
    let Some(path) = path else { return Ok(Box::new(io::stderr())) };
    Ok(Box::new(private_file().append(true).create(true).open(path)?))
}

/// Ends with all lines written once the server has dropped its handle.
fn run(path: Option<&Path>, mut out: Box<dyn Write + Send>, queue: &Receiver<Job>) {
    let mut is_failing = false;
    for job in queue {
        let done = match job {
            Job::Line(line) => out.write_all(line.as_bytes()),
            Job::Reopen => open(path).map(|file| out = file),
        };
        if let Err(error) = &done
            && !is_failing
        {
            tracing::warn!(%error, "cannot write or reopen the access log");
        }
        is_failing = done.is_err();
    }
}
