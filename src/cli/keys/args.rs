//! The flags of `blotter keys`.

use clap::{Args as ClapArgs, Subcommand, value_parser};

use super::file::ShownId;
use crate::cli::config::units::RateSetting;

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct KeysArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum KeysCommand {
    /// Create a key; it is shown once
    Create(CreateArgs),
    /// List the keys
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key
    Revoke {
        /// The key's id
        id: ShownId,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct CreateArgs {
    /// Its name in lists
    #[arg(long)]
    pub(in crate::cli) name: Option<String>,
    /// Requests a second
    #[arg(long)]
    pub(in crate::cli) rate: Option<RateSetting>,
    /// Trades in all
    #[arg(long, value_name = "TRADES")]
    pub(in crate::cli) quota: Option<u64>,
    /// When it expires: unix seconds, a date or time such as 2027-01-31T00:00:00Z, or a duration from
    /// now such as 30d
    #[arg(long, value_name = "TIME")]
    pub(in crate::cli) expires: Option<String>,
    /// Concurrent streams; a page of more than 1,000 rows is one of them
    #[arg(long, value_parser = value_parser!(u32).range(1..))]
    pub(in crate::cli) streams: Option<u32>,
    /// Only these chains
    #[arg(long, value_delimiter = ',', value_name = "CHAIN,…")]
    pub(in crate::cli) chains: Vec<String>,
    /// As JSON: {"id":…,"key":…}
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
