//! Recorded cases, which are no part of the project.

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The folder that a variable names, else the one of a chain family in `../shared/corpus`. Without
/// either the test is skipped, which is written past the harness that keeps what tests print.
pub(crate) fn recorded(variable: &str, family: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(variable) {
        return Some(folder.into());
    }
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus").join(family);
    if near.is_dir() {
        return Some(near);
    }
    let what = format!(
        "SKIPPED: recorded {family} cases: {variable} is not set, no ../shared/corpus/{family}\n"
    );
    let _ = std::io::stderr().write_all(what.as_bytes());
    None
}
