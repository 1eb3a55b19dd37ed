//! The output of a command: stdout, a pipe or device, or a file that appears only when complete.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{
    self, BufWriter, IsTerminal as _, Read as _, Seek as _, SeekFrom, StdoutLock, Write,
};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flate2::{Crc, CrcReader};

use super::destination::Destination;
use super::errors::CliError;

/// Suffix of the file's name while it is being written.
const PART_SUFFIX: &str = ".part";

pub(super) enum Target {
    Stdout(BufWriter<StdoutLock<'static>>),
    Straight(BufWriter<File>),
    File { writer: BufWriter<File>, sum: Crc, part: PathBuf, path: PathBuf },
}

/// What of a file is complete.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Synced {
    pub(super) bytes: u64,
    /// CRC-32 of these bytes, if known.
    pub(super) crc: Option<u32>,
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Opens a partial file that no other call has open: two would mix their rows in it.
fn alone(part: &Path, options: &mut OpenOptions) -> io::Result<Result<File, CliError>> {
    locked(options.write(true).open(part)?, part)
}

fn locked(file: File, part: &Path) -> io::Result<Result<File, CliError>> {
    // A file system without locks has none of these errors.
    let is_open = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    // A part that was finished since it was opened has the final name now, and a third call may
    // have begun another one. A link in its place leads to a file that is none.
    let own = file.metadata()?;
    let is_same = |found: fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
    let is_taken = is_open || !fs::symlink_metadata(part).is_ok_and(is_same);
    let wait = "another call writes it: wait for that one, or name another file";
    let taken = || CliError::plain(format!("{}: {wait}", part.display()));
    Ok(if is_taken { Err(taken()) } else { Ok(file) })
}

impl Target {
    pub(super) fn open(destination: &Destination) -> Result<Self, CliError> {
        match destination {
            Destination::Stdout => Ok(Self::Stdout(BufWriter::new(io::stdout().lock()))),
            Destination::Straight(path) => {
                let file = OpenOptions::new().write(true).open(path);
                Ok(Self::Straight(BufWriter::new(file.map_err(CliError::file("write to", path))?)))
            }
            Destination::File(path) => {
                let part = with_suffix(path, PART_SUFFIX);
                let error = CliError::file("create", &part);
                let file = alone(&part, OpenOptions::new().create(true)).map_err(&error)??;
                file.set_len(0).map_err(error)?;
                let (writer, sum) = (BufWriter::new(file), Crc::new());
                Ok(Self::File { writer, sum, part, path: path.to_owned() })
            }
        }
    }

    /// Reopens the partial file of an earlier call, truncated to the bytes that are complete.
    pub(super) fn reopen(path: &Path, synced: Synced) -> Result<Self, CliError> {
        let part = with_suffix(path, PART_SUFFIX);
        let error = CliError::file("go on with", &part);
        let mut file = alone(&part, OpenOptions::new().read(true)).map_err(&error)??;
        let mut reader = CrcReader::new((&file).take(synced.bytes));
        let found = io::copy(&mut reader, &mut io::sink()).map_err(&error)?;
        let mut sum = Crc::new();
        sum.combine(reader.crc());
        if found < synced.bytes || synced.crc.is_some_and(|crc| crc != sum.sum()) {
            let how = if found < synced.bytes { "shorter than" } else { "not what" };
            let what = format!("{} is {how} it was: begin without --resume", part.display());
            return Err(CliError::plain(what));
        }
        file.set_len(synced.bytes).map_err(&error)?;
        file.seek(SeekFrom::End(0)).map_err(error)?;
        Ok(Self::File { writer: BufWriter::new(file), sum, part, path: path.to_owned() })
    }

    /// Syncs the file to disk.
    pub(super) fn sync(&mut self) -> Result<Synced, CliError> {
        self.flush().map_err(CliError::Output)?;
        let Self::File { writer, sum, .. } = self else { return Ok(Synced::default()) };
        let file = writer.get_ref();
        file.sync_data().map_err(CliError::Output)?;
        let bytes = file.metadata().map_err(CliError::Output)?.len();
        Ok(Synced { bytes, crc: Some(sum.sum()) })
    }

    pub(super) fn is_terminal(&self) -> bool {
        match self {
            Self::Stdout(_) => io::stdout().is_terminal(),
            Self::Straight(to) => to.get_ref().is_terminal(),
            Self::File { .. } => false,
        }
    }

    /// Syncs the file and gives it its final name.
    pub(super) fn keep(mut self) -> Result<(), CliError> {
        self.flush().map_err(CliError::Output)?;
        if let Self::File { writer, part, path, .. } = self {
            let error = CliError::file("write", &path);
            writer.get_ref().sync_all().map_err(&error)?;
            fs::rename(part, &path).map_err(error)?;
        }
        Ok(())
    }

    pub(super) fn discard(self) {
        if let Self::File { part, .. } = self
            && let Err(error) = fs::remove_file(&part)
        {
            tracing::warn!(%error, "cannot remove a partial output file");
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(to) => to.write(bytes),
            Self::Straight(to) => to.write(bytes),
            Self::File { writer, sum, .. } => {
                let written = writer.write(bytes)?;
                sum.update(bytes.get(..written).unwrap_or(bytes));
                Ok(written)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(to) => to.flush(),
            Self::Straight(to) | Self::File { writer: to, .. } => to.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_appears_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trades.csv");
        let mut target = Target::open(&Destination::File(path.clone())).unwrap();
        target.write_all(b"half").unwrap();
        assert!(!path.exists());
        target.discard();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        let mut target = Target::open(&Destination::File(path.clone())).unwrap();
        target.write_all(b"whole").unwrap();
        target.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_has_one_writer_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trades.csv");
        let open = || Target::open(&Destination::File(path.clone()));
        let mut first = open().unwrap();
        first.write_all(b"first").unwrap();
        for second in [open(), Target::reopen(&path, Synced::default())] {
            let error = second.err().unwrap().report();
            assert!(error.contains("another call writes it"), "{error}");
        }
        first.keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        open().unwrap().keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    /// A second call opens the part, the first one ends before it is locked, a third one begins.
    #[test]
    fn a_part_that_was_finished_before_it_was_locked_is_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trades.csv");
        let open = || Target::open(&Destination::File(path.clone()));
        let mut first = open().unwrap();
        first.write_all(b"first").unwrap();
        let part = with_suffix(&path, PART_SUFFIX);
        let second = OpenOptions::new().write(true).open(&part).unwrap();
        first.keep().unwrap();
        let third = open().unwrap();
        assert!(locked(second, &part).unwrap().is_err());
        third.discard();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
    }

    /// In a folder that others may write to.
    #[test]
    fn a_link_in_place_of_a_part_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["trades.csv", "other"].map(|name| folder.path().join(name));
        fs::write(&other, "other").unwrap();
        symlink(&other, with_suffix(&path, PART_SUFFIX)).unwrap();
        assert!(Target::open(&Destination::File(path.clone())).is_err());
        assert!(Target::reopen(&path, Synced::default()).is_err());
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
    }
}
