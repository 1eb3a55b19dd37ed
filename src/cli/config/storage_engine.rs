//! The setting that chooses where the store is.

/// Where trades, keys and usage are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum StorageEngine {
    /// In a database where one is named, else in a file.
    Auto,
    File,
    Postgres,
}

super::units::one_of_words!(StorageEngine, "expected \"auto\", \"file\" or \"postgres\"", {
    Auto: "auto",
    File: "file",
    Postgres: "postgres",
});
