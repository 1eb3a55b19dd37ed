//! Writes a history in one format, with checkpoints from which an interrupted call can resume.
//!
//! The side file `FILE.resume` next to `FILE.part` holds the subject, number and checksum of the
//! bytes that are complete, and the cursor at their end. A resumed call truncates the file to
//! those bytes.

mod parquet;
mod plain;
mod tax;
mod thrift;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::output::RowSink;
use crate::cli::args::Format;
use crate::cli::errors::CliError;
use crate::cli::output::{Encode, Ending, State, TradeLine};
use crate::cli::target::{Synced, Target, with_suffix};
use parquet::Parquet;
use plain::Plain;
use tax::{Layout, Tax};

const RESUME_SUFFIX: &str = ".resume";
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// What is exported; only a call with the same subject can resume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExportSubject {
    pub(super) wallet: String,
    pub(super) chain: String,
    /// Symbol of the native coin.
    pub(super) native: String,
    pub(super) format: Format,
    pub(super) limit: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Checkpoint {
    subject: ExportSubject,
    cursor: String,
    rows: u64,
    bytes: u64,
    /// CRC-32 of these bytes; missing in files of earlier versions.
    #[serde(default)]
    crc: Option<u32>,
    /// Time of the last row; missing in files of earlier versions.
    #[serde(default)]
    oldest: Option<String>,
    state: State,
}

pub(super) struct Export {
    subject: ExportSubject,
    target: Target,
    encoder: Box<dyn Encode>,
    /// Whether the header is written, which happens with the first row or at the end.
    has_begun: bool,
    rows: u64,
    cursor: Option<String>,
    /// Time of the last row, of this call or the resumed one.
    oldest: Option<String>,
    /// The side file, if the output is a file.
    side: Option<PathBuf>,
    saved_at: Instant,
}

fn encoder(subject: &ExportSubject, colour: bool) -> Box<dyn Encode> {
    match subject.format {
        Format::Table | Format::Ndjson | Format::Json | Format::Csv => {
            Box::new(Plain::new(subject, colour))
        }
        Format::Parquet => Box::new(Parquet::new(subject)),
        Format::Koinly => Box::new(Tax::new(Layout::Koinly, subject)),
        Format::Cointracking => Box::new(Tax::new(Layout::Cointracking, subject)),
    }
}

impl Export {
    pub(super) fn begin(
        subject: ExportSubject,
        target: Target,
        path: Option<&Path>,
        colour: bool,
    ) -> Result<Self, CliError> {
        let side = path.map(|path| with_suffix(path, RESUME_SUFFIX));
        side.as_deref().map_or(Ok(()), remove)?;
        let encoder = encoder(&subject, colour);
        let (has_begun, saved_at) = (false, Instant::now());
        let (rows, cursor, oldest) = (0, None, None);
        Ok(Self { subject, target, encoder, has_begun, rows, cursor, oldest, side, saved_at })
    }

    fn start(&mut self) -> Result<(), CliError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.encoder.begin(&mut self.target).map_err(CliError::Output)?;
        }
        Ok(())
    }

    /// Resumes an interrupted export; `None` if it has no checkpoint.
    pub(super) fn resume(
        subject: &ExportSubject,
        path: &Path,
        accepts: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, CliError> {
        let side = with_suffix(path, RESUME_SUFFIX);
        let noted = match fs::read(&side) {
            Ok(noted) => noted,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CliError::file("read", &side)(error)),
        };
        let saved: Checkpoint = serde_json::from_slice(&noted).map_err(|error| {
            let what = format!("{} cannot be read: begin without --resume", side.display());
            CliError::failed(what, error)
        })?;
        if saved.subject != *subject || !accepts(&saved.cursor) {
            let what = "--resume goes on with the same wallet, chain, format and limit only";
            return Err(CliError::Usage(what.to_owned()));
        }
        let mut encoder = encoder(subject, false);
        encoder.restore(saved.state, saved.rows);
        Ok(Some(Self {
            target: Target::reopen(path, Synced { bytes: saved.bytes, crc: saved.crc })?,
            subject: saved.subject,
            encoder,
            has_begun: true,
            rows: saved.rows,
            cursor: Some(saved.cursor),
            oldest: saved.oldest,
            side: Some(side),
            saved_at: Instant::now(),
        }))
    }

    pub(super) fn is_on_terminal(&self) -> bool {
        self.target.is_terminal()
    }

    /// The position behind the last row, from which an export resumes.
    pub(super) fn cursor(&self) -> Option<String> {
        self.cursor.clone()
    }

    /// Writes the end and renames the file; if rows are missing, keeps it with a checkpoint
    /// instead.
    pub(super) fn end(mut self, ending: Ending, short: Option<CliError>) -> Result<(), CliError> {
        self.start()?;
        // The last call of a resumed export may have read no rows.
        let known = self.oldest.clone().filter(|_| ending.is_whole());
        let ending = Ending { first_trade: ending.first_trade.or(known), ..ending };
        let Some(short) = short else {
            self.encoder.end(&mut self.target, &ending).map_err(CliError::Output)?;
            self.target.keep()?;
            return self.side.as_deref().map_or(Ok(()), remove);
        };
        if self.side.is_none() {
            self.encoder.end(&mut self.target, &ending).map_err(CliError::Output)?;
            self.target.flush().map_err(CliError::Output)?;
            return Err(short);
        }
        if matches!(short, CliError::Changed) {
            self.target.discard();
            self.side.as_deref().map_or(Ok(()), remove)?;
            return Err(short);
        }
        if self.rows == 0 {
            self.abandon();
            return Err(short);
        }
        self.encoder.pause(&mut self.target).map_err(CliError::Output)?;
        self.save()?;
        let rows = self.rows;
        let CliError::Incomplete(reason) = short else { return Err(short) };
        Err(CliError::Incomplete(format!(
            "{reason}; {rows} rows are kept, the same call with --resume goes on"
        )))
    }

    /// After a failure: removes the partial file unless it can be resumed.
    pub(super) fn abandon(self) {
        let is_kept = self.side.as_deref().is_some_and(|side| side.exists() && self.rows > 0);
        if !is_kept {
            self.target.discard();
        }
    }

    /// Writes a checkpoint. The rows are synced to disk before it.
    fn save(&mut self) -> Result<(), CliError> {
        let (Some(side), Some(cursor), Some(state)) =
            (&self.side, &self.cursor, self.encoder.state())
        else {
            return Ok(());
        };
        let Synced { bytes, crc } = self.target.sync()?;
        let checkpoint = Checkpoint {
            subject: self.subject.clone(),
            cursor: cursor.clone(),
            rows: self.rows,
            bytes,
            crc,
            oldest: self.oldest.clone(),
            state,
        };
        let text = serde_json::to_vec(&checkpoint)
            .map_err(|error| CliError::failed("the side file cannot be written", error))?;
        let fresh = with_suffix(side, ".new");
        let error = CliError::file("write", side);
        // Not through a link, which leads elsewhere.
        remove(&fresh)?;
        let written = fs::File::create_new(&fresh).and_then(|mut file| file.write_all(&text));
        written.map_err(&error)?;
        fs::rename(&fresh, side).map_err(error)?;
        self.saved_at = Instant::now();
        Ok(())
    }

    fn write(&mut self, rows: Vec<TradeLine>, cursor: &str) -> Result<(), CliError> {
        self.start()?;
        self.rows += u64::try_from(rows.len()).unwrap_or(u64::MAX);
        self.cursor = None;
        if let Some(last) = rows.last() {
            self.oldest = Some(last.block_time.clone());
        }
        self.encoder.rows(&mut self.target, rows, cursor).map_err(CliError::Output)
    }
}

impl RowSink for Export {
    fn rows(&mut self, rows: Vec<TradeLine>, cursor: &str) -> Result<(), CliError> {
        self.write(rows, cursor)?;
        self.cursor = Some(cursor.to_owned());
        if self.saved_at.elapsed() >= CHECKPOINT_EVERY {
            self.save()?;
        }
        Ok(())
    }

    /// No checkpoint follows these rows: a resumed call would read them again.
    fn last_rows(&mut self, rows: Vec<TradeLine>) -> Result<(), CliError> {
        self.write(rows, "")
    }

    fn written(&self) -> u64 {
        self.rows
    }
}

fn remove(path: &Path) -> Result<(), CliError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CliError::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod samples;

#[cfg(test)]
mod tests {
    use super::samples::{sample_row, sample_subject};
    use super::*;
    use crate::cli::destination::Destination;

    fn row() -> TradeLine {
        sample_row("T", Some("1"), Some("1"))
    }

    fn to_file(path: &Path, format: Format) -> (ExportSubject, Export) {
        let subject = sample_subject(format);
        let target = Target::open(&Destination::File(path.to_owned())).unwrap();
        let export = Export::begin(subject.clone(), target, Some(path), false).unwrap();
        (subject, export)
    }

    /// A file with two rows and a checkpoint behind them.
    async fn noted(format: Format) -> (tempfile::TempDir, PathBuf, ExportSubject, Export) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("rows");
        let (subject, mut export) = to_file(&path, format);
        tokio::time::advance(CHECKPOINT_EVERY).await;
        export.rows(vec![row(), row()], "c1").unwrap();
        (temp, path, subject, export)
    }

    /// Its cursor would be rejected each time.
    #[tokio::test(start_paused = true)]
    async fn an_export_is_not_resumed_after_the_chain_changed() {
        let (temp, path, _, export) = noted(Format::Csv).await;
        assert!(with_suffix(&path, RESUME_SUFFIX).exists());
        let cursor = Some("c1".to_owned());
        let ending = Ending { complete: false, trade_count: 2, first_trade: None, cursor };
        let ended = export.end(ending, Some(CliError::Changed));
        assert!(matches!(ended, Err(CliError::Changed)));
        assert_eq!(temp.path().read_dir().unwrap().count(), 0, "neither rows nor a note");
        let (subject, _) = to_file(&path, Format::Csv);
        assert!(Export::resume(&subject, &path, |_| true).unwrap().is_none(), "it begins anew");
    }

    /// An interruption between them and the end would repeat them.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_noted_behind_the_last_rows() {
        let (_temp, path, subject, mut export) = noted(Format::Csv).await;
        tokio::time::advance(CHECKPOINT_EVERY).await;
        export.last_rows(vec![row()]).unwrap();
        assert_eq!(export.written(), 3);
        drop(export);
        let again = Export::resume(&subject, &path, |cursor| cursor == "c1").unwrap().unwrap();
        assert_eq!((again.written(), again.cursor()), (2, Some("c1".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_was_changed_is_not_continued() {
        let (_temp, path, subject, mut export) = noted(Format::Csv).await;
        tokio::time::advance(CHECKPOINT_EVERY).await;
        export.rows(vec![row()], "c2").unwrap();
        drop(export);
        let again = || Export::resume(&subject, &path, |_| true);
        // A resumed export counts on, from what it found.
        let mut export = again().unwrap().unwrap();
        tokio::time::advance(CHECKPOINT_EVERY).await;
        export.rows(vec![row()], "c3").unwrap();
        drop(export);
        assert_eq!(again().unwrap().unwrap().written(), 4);

        let (part, side) = (with_suffix(&path, ".part"), with_suffix(&path, RESUME_SUFFIX));
        let mut bytes = fs::read(&part).unwrap();
        bytes[3] ^= 1;
        fs::write(&part, bytes).unwrap();
        let error = again().err().unwrap().report();
        assert!(error.contains("is not what it was: begin without --resume"), "{error}");
        // Earlier versions noted no checksum.
        let mut noted: serde_json::Value =
            serde_json::from_slice(&fs::read(&side).unwrap()).unwrap();
        noted.as_object_mut().unwrap().remove("crc").unwrap();
        fs::write(&side, noted.to_string()).unwrap();
        assert_eq!(again().unwrap().unwrap().written(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_checkpoint_is_not_written_through_a_link() {
        let (temp, path, _, mut export) = noted(Format::Csv).await;
        let (other, side) = (temp.path().join("other"), with_suffix(&path, RESUME_SUFFIX));
        fs::write(&other, "other").unwrap();
        std::os::unix::fs::symlink(&other, with_suffix(&side, ".new")).unwrap();
        tokio::time::advance(CHECKPOINT_EVERY).await;
        export.rows(vec![row()], "c2").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        assert!(fs::read_to_string(&side).unwrap().contains("c2"));
    }

    /// Its last call reads no row at all.
    #[tokio::test(start_paused = true)]
    async fn a_resumed_history_knows_its_first_trade() {
        let (_temp, path, subject, export) = noted(Format::Ndjson).await;
        drop(export);
        let again = Export::resume(&subject, &path, |_| true).unwrap().unwrap();
        let ending = Ending { complete: true, trade_count: 2, first_trade: None, cursor: None };
        again.end(ending, None).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(last["firstTrade"], "2026-11-21T07:05:51+00:00", "{text}");
    }
}
