//! The setting `storage.engine`.

use super::units::one_of_words;
use crate::domain::named;

named! {
    /// Where trades, keys and usage are stored.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::cli) enum StorageEngine {
        /// In a database if one is configured, else in a file.
        Auto = "auto",
        File = "file",
        Postgres = "postgres",
    }
}

one_of_words!(StorageEngine, "expected \"auto\", \"file\" or \"postgres\"");
