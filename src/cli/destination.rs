//! The destination that `--output` names: stdout, a file, or a device or pipe.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::errors::CliError;

const STDOUT_NAME: &str = "-";
/// Most links that are followed, as on Linux.
const LINKS_MAX: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    Stdout,
    /// A device or a pipe, written into directly instead of replaced by a file.
    Straight(PathBuf),
    /// A regular file, existing or not, with links resolved, so that renaming the result over it
    /// replaces the file and not the link.
    File(PathBuf),
}

impl Destination {
    pub(super) fn of(named: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = named.filter(|path| path.as_os_str() != STDOUT_NAME) else {
            return Ok(Self::Stdout);
        };
        let error = CliError::file("follow", path);
        match fs::metadata(path) {
            Ok(found) if is_stdout(&found) => Ok(Self::Stdout),
            Ok(found) if found.is_file() => fs::canonicalize(path).map(Self::File).map_err(error),
            Ok(found) if found.is_dir() => Err(CliError::Usage(format!(
                "--output {} is a folder: name a file in it",
                path.display()
            ))),
            Ok(_) => Ok(Self::Straight(path.to_owned())),
            // There is no file, or a link's target is missing.
            Err(_) => linked(path).map(Self::File).map_err(error),
        }
    }

    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdout | Self::Straight(_) => None,
        }
    }
}

/// Whether a path is the file that stdout writes to, as `/dev/stdout` is. Renaming another file
/// over it would discard what other programs wrote there.
fn is_stdout(found: &fs::Metadata) -> bool {
    let stdout = rustix::fs::fstat(io::stdout());
    stdout.is_ok_and(|stdout| (stdout.st_dev, stdout.st_ino) == (found.dev(), found.ino()))
}

/// The path at the end of a chain of links, which need not exist.
fn linked(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or_else(|| Path::new("")).join(next);
    }
    Err(io::Error::other("its links lead in a circle"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_and_what_is_no_file_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/old.csv"), "old").unwrap();
        symlink("deep/old.csv", at("link")).unwrap();
        symlink("link", at("chain")).unwrap();
        symlink("deep/new.csv", at("open")).unwrap();
        symlink("round", at("round")).unwrap();
        let fifo = at("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        symlink("fifo", at("to_fifo")).unwrap();
        let of = |name: &str| Destination::of(Some(&at(name)));
        let file = |name: &str| Some(Destination::File(at(name)));
        for (named, expected) in [
            ("deep/old.csv", file("deep/old.csv")),
            ("new.csv", file("new.csv")),
            ("link", file("deep/old.csv")),
            ("chain", file("deep/old.csv")),
            ("open", file("deep/new.csv")),
            ("fifo", Some(Destination::Straight(at("fifo")))),
            ("to_fifo", Some(Destination::Straight(at("to_fifo")))),
            ("deep", None),
            ("round", None),
        ] {
            assert_eq!(of(named).ok(), expected, "{named}");
        }
        assert_eq!(Destination::of(Some(Path::new("-"))).unwrap(), Destination::Stdout);
        assert_eq!(Destination::of(None).unwrap(), Destination::Stdout);
    }
}
