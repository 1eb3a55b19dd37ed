//! The audit log: what was changed by an operator, one JSON line each, in the data folder.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::file::ShownId;
use crate::cli::clock::SystemClock;
use crate::domain::Clock as _;
use crate::store::private_file;

const FILE_NAME: &str = "audit.ndjson";

/// Where changes are recorded; `None` where that is switched off.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Audit(Option<PathBuf>);

impl Audit {
    pub(in crate::cli) fn new(folder: &Path, is_on: bool) -> Self {
        Self(is_on.then(|| folder.join(FILE_NAME)))
    }

    pub(in crate::cli) fn created(&self, id: ShownId, name: Option<&str>) {
        self.record("key created", &json!({ "key": id, "name": name }));
    }

    /// Appends one line. Where the log cannot be written, the change itself stands, and the failure is
    /// logged with the event.
    pub(in crate::cli) fn record(&self, event: &str, details: &Value) {
        let Some(path) = &self.0 else { return };
        let mut line = Map::new();
        line.insert("time".to_owned(), json!(SystemClock.now().seconds().to_string()));
        line.insert("event".to_owned(), json!(event));
        line.insert("uid".to_owned(), json!(rustix::process::getuid().as_raw()));
        if let Value::Object(details) = details {
            line.extend(details.clone());
        }
        if let Err(error) = append(path, &Value::Object(line)) {
            tracing::warn!(%error, event, "the audit log cannot be written");
        }
    }
}

/// One write of the whole line, so that lines of two processes do not mix.
fn append(path: &Path, line: &Value) -> io::Result<()> {
    let mut file = private_file().append(true).create(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
}
