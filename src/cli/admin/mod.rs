//! `blotter admin`: commands to a running server through a Unix socket in its data folder. Each
//! connection carries one request and one response, a line of JSON each.

mod client;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(super) use client::run;

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
