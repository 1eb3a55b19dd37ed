//! Writes the access log: a line for each request, by a thread of its own, so that a slow disk delays
//! no answer.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use serde_json::{Map, Value, json};

use crate::api::{Access, AccessLog};
use crate::store::private_file;

/// Stands for stderr where a path is expected.
const STDERR: &str = "stderr";
/// Lines that wait for the writer; further ones are counted and left out.
const LINES_MAX: usize = 8192;

#[derive(Debug)]
enum Job {
    Line(String),
    /// Opens the file again, which another program may have moved away.
    Reopen,
}

/// The way to the writer.
#[derive(Debug)]
pub(in crate::cli) struct AccessFile {
    jobs: SyncSender<Job>,
    /// Lines left out since the last one that was taken.
    lost: AtomicU64,
}

impl AccessFile {
    /// Starts the writer. `None` for an empty path.
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
        // A full queue has lines that are worth more.
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
    let mut line = Map::new();
    let mut put = |name: &str, value: Value| drop(line.insert(name.to_owned(), value));
    put("time", json!(entry.time.seconds().to_string()));
    put("requestId", json!(entry.request_id));
    put("client", json!(entry.client));
    put("key", json!(entry.key));
    put("method", json!(entry.method));
    put("route", json!(entry.route));
    if let Some(path) = &entry.path {
        put("path", json!(path));
    }
    put("status", json!(entry.status));
    put("bytes", json!(entry.bytes));
    put("beganMs", json!(millis(entry.began)));
    put("endedMs", json!(millis(entry.ended)));
    Value::Object(line)
}

fn open(path: Option<&Path>) -> io::Result<Box<dyn Write + Send>> {
    let Some(path) = path else { return Ok(Box::new(io::stderr())) };
    Ok(Box::new(private_file().append(true).create(true).open(path)?))
}

/// Ends when the server has let go of the log, with all lines written.
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
            tracing::warn!(%error, "the access log cannot be written");
        }
        is_failing = done.is_err();
    }
}
