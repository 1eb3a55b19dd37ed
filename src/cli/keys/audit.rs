//! The audit log in the data folder: one JSON line for each change by an operator.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::file::ShownId;
use crate::cli::clock::SystemClock;
use crate::domain::Clock as _;
use crate::store::{create_private_folder, private_file};

const FILE_NAME: &str = "audit.ndjson";

/// The folder of the log; `None` if auditing is disabled.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Audit(Option<PathBuf>);

impl Audit {
    pub(in crate::cli) fn new(folder: &Path, is_on: bool) -> Self {
        Self(is_on.then(|| folder.to_owned()))
    }

    pub(in crate::cli) fn created(&self, id: ShownId, name: Option<&str>) {
        self.record("key created", &json!({ "key": id, "name": name }));
    }

    /// Appends one line. If that fails, the change itself stands, and the failure is logged.
    pub(in crate::cli) fn record(&self, event: &str, details: &Value) {
        let Some(folder) = &self.0 else { return };
        let mut line = json!({
            "time": SystemClock.now().seconds().to_string(),
            "event": event,
            "uid": rustix::process::getuid().as_raw(),
        });
        if let (Some(line), Some(details)) = (line.as_object_mut(), details.as_object()) {
            line.extend(details.clone());
        }
        if let Err(error) = append(folder, &line) {
            tracing::warn!(%error, event, "cannot write the audit log; the change stands without an entry");
        }
    }
}

/// Appends the line by one write, so that lines of two processes do not mix. Creates the folder,
/// which a shared store may lack.
fn append(folder: &Path, line: &Value) -> io::Result<()> {
    create_private_folder(folder)?;
    let mut file = private_file().append(true).create(true).open(folder.join(FILE_NAME))?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shared store makes no folder.
    #[test]
    fn a_folder_that_is_not_there_is_made_for_the_log() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("not/yet");
        Audit::new(&folder, false).record("reload", &json!({}));
        assert!(!folder.exists(), "it is switched off");
        Audit::new(&folder, true).record("reload", &json!({}));
        let text = std::fs::read_to_string(folder.join(FILE_NAME)).unwrap();
        assert!(text.contains("\"event\":\"reload\""), "{text}");
    }
}
