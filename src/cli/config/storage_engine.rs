//! The setting `storage.engine`.

/// Where trades, keys and usage are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum StorageEngine {
    /// In a database if one is configured, else in a file.
    Auto,
    File,
    Postgres,
}

super::units::one_of_words!(StorageEngine, "expected \"auto\", \"file\" or \"postgres\"", {
    Auto: "auto",
    File: "file",
    Postgres: "postgres",
});
