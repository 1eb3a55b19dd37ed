//! `keys.toml` in the data folder: the API keys by their hashes.
//!
//! A change replaces the whole file by a rename, under a lock file, so that a reader sees the old
//! or the new list, and two writers do not lose each other's changes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::cli::config::units::{RateSetting, serde_as_text};
use crate::cli::errors::CliError;
use crate::domain::{KeyId, UnixMillis, UnixSeconds};
use crate::store::{StoreError, create_private_folder, make_private, private_file};

const FILE_NAME: &str = "keys.toml";
const NEW_NAME: &str = "keys.toml.new";
const LOCK_NAME: &str = "keys.lock";
/// Prefix of every key, by which leaked keys are recognised.
const KEY_PREFIX: &str = "blt_";
const KEY_BYTES: usize = 32;
/// 48 bits: no collisions in practice, and short to type.
const ID_BYTES: usize = 6;
/// A larger file was not written by blotter.
const FILE_BYTES_MAX: u64 = 16 << 20;
const HEAD: &str =
    "# API keys of blotter, hashed. Changed by `blotter keys`; a running server follows.\n\n";

#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum KeysError {
    #[error("cannot {action} {}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{}: {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    #[error("there is no key {0}; `blotter keys list` shows them")]
    NoSuchKey(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("other processes keep changing the keys; try again")]
    Contended,
}

impl KeysError {
    fn file(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { action, path: path.clone(), source }
    }
}

impl From<KeysError> for CliError {
    fn from(error: KeysError) -> Self {
        Self::Keys(Box::new(error))
    }
}

/// A key's id, shown as 12 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct ShownId(pub(in crate::cli) KeyId);

impl std::fmt::Display for ShownId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:012x}", self.0.0)
    }
}

impl std::str::FromStr for ShownId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let expected = "expected a key id of 12 hex digits; `blotter keys list` shows them";
        let right = text.len() == 2 * ID_BYTES && text.chars().all(|c| c.is_ascii_hexdigit());
        let id = u64::from_str_radix(text, 16).ok().filter(|_| right).ok_or(expected)?;
        if id == KeyId::LOCAL.0 {
            return Err("no key has this id; `blotter keys list` shows those there are");
        }
        Ok(Self(KeyId(id)))
    }
}

serde_as_text!(ShownId);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct KeyHash(pub(in crate::cli) [u8; 32]);

impl std::fmt::Display for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl std::str::FromStr for KeyHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let mut bytes = [0; 32];
        let read = hex::decode_to_slice(text, &mut bytes);
        read.map(|()| Self(bytes)).map_err(|_| "expected 64 hex digits")
    }
}

serde_as_text!(KeyHash);

/// A time in the file: RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct FileTime(pub(in crate::cli) UnixSeconds);

impl std::fmt::Display for FileTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for FileTime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let expected = "expected a time such as \"2027-01-31T00:00:00+00:00\"";
        let second = text.parse::<jiff::Timestamp>().map_err(|_| expected)?.as_second();
        u32::try_from(second).map(|s| Self(UnixSeconds(s))).map_err(|_| expected)
    }
}

serde_as_text!(FileTime);

/// The limits of a key; absent values are unlimited.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct KeyTerms {
    pub(in crate::cli) name: Option<String>,
    /// Requests per second.
    pub(in crate::cli) rate: Option<RateSetting>,
    /// Total trades.
    pub(in crate::cli) quota: Option<u64>,
    /// Concurrent streams.
    pub(in crate::cli) streams: Option<u32>,
    /// Slugs; empty means every chain.
    pub(in crate::cli) chains: Vec<String>,
    pub(in crate::cli) expires: Option<FileTime>,
}

// TOML has no null: its serializer leaves out `None`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct KeyEntry {
    pub(in crate::cli) id: ShownId,
    pub(in crate::cli) hash: KeyHash,
    pub(in crate::cli) name: Option<String>,
    pub(in crate::cli) created: FileTime,
    pub(in crate::cli) rate: Option<RateSetting>,
    pub(in crate::cli) quota: Option<u64>,
    pub(in crate::cli) streams: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::cli) chains: Vec<String>,
    pub(in crate::cli) expires: Option<FileTime>,
    pub(in crate::cli) revoked: Option<FileTime>,
}

impl KeyEntry {
    pub(in crate::cli) fn state(&self, now: UnixMillis) -> &'static str {
        if self.revoked.is_some() {
            "revoked"
        } else if self.expires.is_some_and(|at| at.0 <= now.seconds()) {
            "expired"
        } else {
            "active"
        }
    }
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    key: Vec<KeyEntry>,
}

/// A newly created key. Its text is not stored.
pub(in crate::cli) struct Created {
    pub(in crate::cli) id: ShownId,
    pub(in crate::cli) key: String,
}

#[derive(Debug, Clone)]
pub(in crate::cli) struct KeysFile {
    folder: PathBuf,
}

impl KeysFile {
    pub(in crate::cli) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The file's text; empty if there is no file.
    pub(in crate::cli) fn text(&self) -> Result<String, KeysError> {
        let path = self.folder.join(FILE_NAME);
        let error = KeysError::file("read", &path);
        match fs::metadata(&path) {
            Ok(meta) if meta.len() > FILE_BYTES_MAX => {
                Err(KeysError::Wrong { path, reason: "the file is too large".to_owned() })
            }
            Ok(_) => fs::read_to_string(&path).map_err(error),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(e) => Err(error(e)),
        }
    }

    pub(in crate::cli) fn parse(&self, text: &str) -> Result<Vec<KeyEntry>, KeysError> {
        parse(&self.folder.join(FILE_NAME), text)
    }

    pub(in crate::cli) fn make_private(&self) {
        make_private(&self.folder.join(FILE_NAME));
    }

    /// Changes the keys under the lock. Creates the folder if it is missing.
    pub(in crate::cli) fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<KeyEntry>) -> Result<T, KeysError>,
    ) -> Result<T, KeysError> {
        create_private_folder(&self.folder).map_err(KeysError::file("create", &self.folder))?;
        let lock_path = self.folder.join(LOCK_NAME);
        let lock = private_file().write(true).create(true).truncate(false).open(&lock_path);
        let lock = lock.map_err(KeysError::file("open", &lock_path))?;
        lock.lock().map_err(KeysError::file("lock", &lock_path))?;
        let before = self.text()?;
        let path = self.folder.join(FILE_NAME);
        let (text, result) = edited(&path, &before, change)?;
        if text != before {
            self.replace(&path, &text).map_err(KeysError::file("write", &path))?;
        }
        Ok(result)
    }

    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let new_path = self.folder.join(NEW_NAME);
        let mut new = private_file().write(true).create(true).truncate(true).open(&new_path)?;
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        fs::rename(&new_path, path)?;
        // So that the rename survives a power loss.
        File::open(&self.folder)?.sync_all()
    }
}

/// Parses a keys file; `path` names it in errors.
pub(in crate::cli) fn parse(path: &Path, text: &str) -> Result<Vec<KeyEntry>, KeysError> {
    let wrong = |error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let reason = format!("line {line}: {}", error.message());
        KeysError::Wrong { path: path.to_owned(), reason }
    };
    toml::from_str(text).map(|document: Document| document.key).map_err(wrong)
}

/// Applies a change to the keys of a text. Returns the new text.
pub(in crate::cli) fn edited<T>(
    path: &Path,
    before: &str,
    change: impl FnOnce(&mut Vec<KeyEntry>) -> Result<T, KeysError>,
) -> Result<(String, T), KeysError> {
    let mut keys = parse(path, before)?;
    let outcome = change(&mut keys)?;
    let text = toml::to_string(&Document { key: keys })
        .map_err(|error| KeysError::Wrong { path: path.to_owned(), reason: error.to_string() })?;
    Ok((format!("{HEAD}{text}"), outcome))
}

pub(in crate::cli) fn revoke(
    keys: &mut [KeyEntry],
    id: ShownId,
    now: UnixMillis,
) -> Result<(), KeysError> {
    let key = keys.iter_mut().find(|key| key.id == id);
    let key = key.ok_or_else(|| KeysError::NoSuchKey(id.to_string()))?;
    key.revoked.get_or_insert(FileTime(now.seconds()));
    Ok(())
}

pub(in crate::cli) fn add(
    keys: &mut Vec<KeyEntry>,
    terms: KeyTerms,
    now: UnixMillis,
) -> Result<Created, KeysError> {
    let mut secret = [0; KEY_BYTES];
    let mut id = [0; 8];
    let random = |error: getrandom::Error| KeysError::Random(error.to_string());
    getrandom::fill(&mut secret).map_err(random)?;
    if let Some((_, low)) = id.split_last_chunk_mut::<ID_BYTES>() {
        getrandom::fill(low).map_err(random)?;
    }
    let id = ShownId(KeyId(u64::from_be_bytes(id).max(KeyId::LOCAL.0 + 1)));
    let key = format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
    keys.push(KeyEntry {
        id,
        hash: hash(&key),
        name: terms.name,
        created: FileTime(now.seconds()),
        rate: terms.rate,
        quota: terms.quota,
        streams: terms.streams,
        chains: terms.chains,
        expires: terms.expires,
        revoked: None,
    });
    Ok(Created { id, key })
}

/// The hash by which a key is stored and found.
pub(in crate::cli) fn hash(key: &str) -> KeyHash {
    KeyHash(Sha256::digest(key.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

    fn folder() -> (tempfile::TempDir, KeysFile) {
        let temp = tempfile::tempdir().unwrap();
        let keys = KeysFile::new(&temp.path().join("data"));
        (temp, keys)
    }

    fn create(keys: &KeysFile, terms: KeyTerms) -> Result<Created, KeysError> {
        keys.change(|keys| add(keys, terms, NOW))
    }

    fn list(keys: &KeysFile) -> Vec<KeyEntry> {
        keys.parse(&keys.text().unwrap()).unwrap()
    }

    #[test]
    fn revoked_and_expired_keys_have_states_of_their_own() {
        let (_temp, keys) = folder();
        let at = |seconds: u32| Some(FileTime(UnixSeconds(seconds)));
        let first = create(&keys, KeyTerms::default()).unwrap();
        for expires in [at(NOW.seconds().0), at(NOW.seconds().0 + 1)] {
            create(&keys, KeyTerms { expires, ..KeyTerms::default() }).unwrap();
        }
        let end = |id| keys.change(|keys| revoke(keys, id, NOW));
        end(first.id).unwrap();
        let states: Vec<_> = list(&keys).iter().map(|key| key.state(NOW)).collect();
        assert_eq!(states, ["revoked", "expired", "active"]);
        let unknown = ShownId(KeyId(7));
        assert!(matches!(end(unknown), Err(KeysError::NoSuchKey(_))));
    }

    #[test]
    fn writers_do_not_lose_each_others_keys() {
        let (_temp, keys) = folder();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| create(&keys, KeyTerms::default()).unwrap());
            }
        });
        assert_eq!(list(&keys).len(), 8);
    }

    #[test]
    fn a_damaged_file_is_refused_and_left_alone() {
        let (_temp, keys) = folder();
        create(&keys, KeyTerms::default()).unwrap();
        let path = keys.folder.join(FILE_NAME);
        fs::write(&path, "[[key]]\nid = 5\n").unwrap();
        let Err(error) = create(&keys, KeyTerms::default()) else { panic!("a key was made") };
        assert!(error.to_string().contains("keys.toml: line 2: "), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "[[key]]\nid = 5\n");
    }

    proptest::proptest! {
        /// Any file content gives its keys, or an error that shows nothing of a line's value.
        #[test]
        fn no_text_makes_a_reader_panic(
            at in proptest::prelude::any::<proptest::sample::Index>(),
            odd in proptest::sample::select(vec!["", "\0", "\u{202e}", "= ", "[[", "\"", "-1", "9e999", "[keys]", "\n"]),
        ) {
            let (_temp, keys) = folder();
            create(&keys, KeyTerms { quota: Some(5), name: Some("planted-name".into()), ..KeyTerms::default() }).unwrap();
            let text = fs::read_to_string(keys.folder.join(FILE_NAME)).unwrap();
            let at = at.index(text.len());
            proptest::prop_assume!(text.is_char_boundary(at));
            let changed = format!("{}{odd}{}", &text[..at], &text[at..]);
            let _ = keys.parse(&changed);
            let _ = keys.parse(&text[..at]);
            let _ = keys.parse(odd);
        }
    }
}
