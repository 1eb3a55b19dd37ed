//! The setting that chooses where the store is.

use std::str::FromStr;

/// Where trades, keys and usage are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum StorageEngine {
    /// In a database where one is named, else in a file.
    Auto,
    File,
    Postgres,
}

impl FromStr for StorageEngine {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "auto" => Ok(Self::Auto),
            "file" => Ok(Self::File),
            "postgres" => Ok(Self::Postgres),
            _ => Err("expected \"auto\", \"file\" or \"postgres\""),
        }
    }
}

impl std::fmt::Display for StorageEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::File => "file",
            Self::Postgres => "postgres",
        })
    }
}

super::units::serde_as_text!(StorageEngine);
