//! `blotter admin`: a running server is looked after by a Unix socket in its data folder. One request
//! and one answer, a line of JSON each, on every connection.

mod client;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(super) use client::run;

/// Name of the socket in the data folder.
pub(super) const SOCKET_NAME: &str = "admin.sock";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(super) enum AdminRequest {
    Backup {
        path: PathBuf,
    },
    Forget {
        chain: String,
        address: String,
    },
    Compact,
    /// The keys file was changed.
    Keys,
    Status,
    Loads,
    Pause,
    Resume,
    Reload,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AdminResponse {
    Ok(serde_json::Value),
    Error(String),
}
