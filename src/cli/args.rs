//! Flags and arguments. The doc comments are the help texts.
#![expect(clippy::doc_markdown, reason = "the help is shown as it stands, without backticks")]

use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, value_parser};
use serde::{Deserialize, Serialize};

use super::VERSION;
use super::config::{Flags, Listen};
use super::keys::args::KeysArgs;
use crate::api::{read_time, read_year};
use crate::demo::{LARGE_TRADES, LARGE_TRADES_MAX};
use crate::domain::UnixSeconds;
use crate::pnl::{Method, Period};

/// Every buy and sell of a wallet, from ordinary chain nodes.
#[derive(Debug, Parser)]
#[command(name = "blotter", version = VERSION, propagate_version = true)]
#[command(
    after_help = "Each setting of the configuration also has a variable BLOTTER_<SECTION>_<KEY>, \
those of chains BLOTTER_CHAINS_<SLUG>_RPC, _PORTAL, _EXPLORER (address), _DISCOVERY and _ENABLED; \
flag before variable before file before default.\n\
Exit codes: 0 done, 1 failed (also: what was verified differs), 2 wrong flags or configuration, \
3 the history is not complete."
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Common {
    /// Configuration file [variable: BLOTTER_CONFIG] [default: blotter.toml where there is one]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Folder of trades, keys and usage [variable: BLOTTER_DATA_DIR] [default: blotter-data]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub(super) data_dir: Option<PathBuf>,
    /// A PostgreSQL database to use as the store in place of the folder, by its address; better by
    /// the variable, as others see flags [variable: BLOTTER_STORAGE_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub(super) storage_url: Option<String>,
    /// Logs as JSON lines; what is logged: BLOTTER_LOG, e.g. "info" or "blotter=debug"
    #[arg(long, global = true)]
    pub(super) log_json: bool,
    /// Print only results and errors, no progress
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum StorageCommand {
    /// Copy all wallets, usage and keys from one store into another, and compare each copy with its
    /// original; if it was interrupted, another run continues
    Copy(CopyArgs),
}

#[derive(Debug, ClapArgs)]
pub(super) struct CopyArgs {
    /// A data folder, or the address of a database (postgres://…)
    #[arg(long, value_name = "STORE")]
    pub(super) from: String,
    /// The same; other wallets that it holds stay
    #[arg(long, value_name = "STORE")]
    pub(super) to: String,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the built-in demo chain: no network, no configuration
    Demo(DemoArgs),
    /// Serve the API
    Serve {
        /// Address and port; port 0 takes a free one [variable: BLOTTER_LISTEN] [default: 127.0.0.1:8080]
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<Listen>,
    },
    /// Read the history of one wallet
    History(HistoryArgs),
    /// Compute a wallet's realised gains and open positions
    Pnl(PnlArgs),
    /// Explain why a transaction is a trade of a wallet, or why it is not
    Explain(ExplainArgs),
    /// Check a wallet's trades against its balances, and its rows against another node's
    ///
    /// With --url (or BLOTTER_URL) the chain's nodes have to be configured: the wallet's transactions
    /// are read from them, and the default public nodes would learn of the wallet.
    Verify(VerifyArgs),
    /// Create, list and revoke API keys
    Keys(KeysArgs),
    /// Show the chains and what their endpoints can do
    Chains {
        /// Ask each endpoint what it can do
        #[arg(long)]
        check: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the merged configuration, secrets hidden
    Config,
    /// Copy the data folder's trades and keys while no server has it open
    Backup(BackupArgs),
    /// Return the data folder's free space to the disk, while no server has it open
    Compact,
    /// Delete all that is stored of a wallet, while no server has the data folder open
    Forget(ForgetArgs),
    /// Move a store between a data folder and a database
    Storage {
        #[command(subcommand)]
        command: StorageCommand,
    },
    /// Administer a running server through the socket in its data folder
    Admin(AdminArgs),
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DemoArgs {
    /// Address and port; port 0 takes a free one [variable: BLOTTER_LISTEN] [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<Listen>,
    /// Seed of the demo chains: the same number gives the same trades
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Trades of the large wallet on each chain
    #[arg(long, value_name = "TRADES", default_value_t = LARGE_TRADES, value_parser = value_parser!(u64).range(1..=LARGE_TRADES_MAX))]
    pub(super) large: u64,
    /// Seconds between new trades of the large wallet on each chain; without this flag there are none
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    pub(super) trade_every: Option<u64>,
    /// Also serve the demo chain's own node interface at this address. Without --data-dir the demo's
    /// data is in a temporary folder, which is removed at the end
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) node: Option<Listen>,
}

// The chain and where it is read from. (A doc comment would replace those of the commands.)
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct SourceArgs {
    /// Chain, by slug or by name
    #[arg(long, default_value = "sol")]
    pub(super) chain: String,
    /// Ask a running server instead of the nodes [variable: BLOTTER_URL]
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// The API key for --url [variable: BLOTTER_KEY]
    #[arg(long, value_name = "KEY")]
    pub(super) key: Option<String>,
    /// Allow plain http to other machines: keys and answers can be read on the way
    #[arg(long)]
    pub(super) insecure: bool,
}

#[derive(Debug, Clone, ClapArgs)]
pub(super) struct WalletArgs {
    /// The wallet's address
    pub(super) address: String,
    #[command(flatten)]
    pub(super) source: SourceArgs,
}

#[derive(Debug, ClapArgs)]
pub(super) struct HistoryArgs {
    #[command(flatten)]
    pub(super) wallet: WalletArgs,
    /// Stop after this many trades
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// How to write the trades [default: as the file of --output ends, such as .csv; else table]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write to this file, which appears only once it is complete; a pipe or a device is written to
    /// directly, and - is stdout
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Continue the file of --output at which an earlier, interrupted call stopped
    #[arg(long)]
    pub(super) resume: bool,
}

impl HistoryArgs {
    /// The form that was asked for, else the one that the file's ending names.
    pub(super) fn format(&self) -> Format {
        let ending = self.output.as_deref().and_then(Path::extension);
        let named =
            ending.and_then(|ending| Format::from_str(&ending.to_string_lossy(), true).ok());
        self.format.or(named).unwrap_or(Format::Table)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    /// Columns for people
    Table,
    /// One JSON object a line
    Ndjson,
    /// One JSON object
    Json,
    /// Comma-separated, with a header line
    Csv,
    /// Apache Parquet: amounts as text with every digit, times as UTC timestamps
    Parquet,
    /// Koinly's universal CSV: one line a swap
    Koinly,
    /// CoinTracking's CSV: one line a swap
    Cointracking,
}

#[derive(Debug, ClapArgs)]
pub(super) struct PnlArgs {
    #[command(flatten)]
    pub(super) wallet: WalletArgs,
    /// Which units are sold first
    #[arg(long, value_enum, default_value_t = Method::Fifo)]
    pub(super) method: Method,
    /// How to write the result
    #[arg(long, value_enum, default_value_t = PnlFormat::Table)]
    pub(super) format: PnlFormat,
    /// Only trades from this time on, with lots bought before: an ISO 8601 date or time, or unix
    /// seconds
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(super) from: Option<UnixSeconds>,
    /// Only trades before this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(super) to: Option<UnixSeconds>,
    /// Only that calendar year, in UTC
    #[arg(long, value_name = "YEAR", conflicts_with_all = ["from", "to"], value_parser = parse_year)]
    pub(super) year: Option<Period>,
    /// Each sale with its lots: in JSON with the figures, in a table and CSV in place of them
    #[arg(long)]
    pub(super) disposals: bool,
}

impl PnlArgs {
    pub(super) fn period(&self) -> Period {
        self.year.unwrap_or(Period { from: self.from, to: self.to })
    }
}

fn parse_moment(text: &str) -> Result<UnixSeconds, String> {
    read_time(text).ok_or_else(|| {
        "expected a date or time of ISO 8601 such as 2026-01-31, or unix seconds".to_owned()
    })
}

fn parse_year(text: &str) -> Result<Period, String> {
    read_year(text)
        .map(|(from, to)| Period { from: Some(from), to: Some(to) })
        .ok_or_else(|| "expected a year from 1970 to 2105".to_owned())
}

impl ValueEnum for Method {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Fifo => "First in, first out",
            Self::Lifo => "Last in, first out",
            Self::Hifo => "Highest cost first",
            Self::Average => "At the average cost",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PnlFormat {
    /// Columns for people
    Table,
    /// One JSON object
    Json,
    /// Comma-separated, with a header line, one line a token, or a lot of a disposal
    Csv,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ExplainArgs {
    /// The transaction: a signature, or a hash
    pub(super) signature: String,
    /// The wallet's address
    #[arg(long, value_name = "ADDRESS")]
    pub(super) wallet: String,
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// As JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    pub(super) wallet: WalletArgs,
    /// Read the wallet from this node too, and list what differs
    #[arg(long, value_name = "URL")]
    pub(super) against: Option<String>,
    /// First read all finished heights again, in another way if there is one, and store missing rows
    #[arg(long)]
    pub(super) repair: bool,
    /// Show the tokens without a residue too
    #[arg(long)]
    pub(super) all: bool,
    /// As JSON, with all tokens
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct BackupArgs {
    /// Folder for the copy; nothing in it is overwritten
    pub(super) path: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ForgetArgs {
    /// The wallet's address
    pub(super) address: String,
    /// Chain, by slug or by name
    #[arg(long, default_value = "sol")]
    pub(super) chain: String,
}

#[derive(Debug, ClapArgs)]
pub(super) struct AdminArgs {
    #[command(subcommand)]
    pub(super) command: AdminCommand,
    /// The answer as JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum AdminCommand {
    /// Copy trades and keys while the server runs
    Backup(BackupArgs),
    /// Delete all that is stored of a wallet
    Forget(ForgetArgs),
    /// Return the data folder's free space to the disk while the server runs
    Compact,
    /// Create, list and revoke API keys, effective at once
    Keys(KeysArgs),
    /// Show the store, the chains and the last reload
    Status,
    /// List what is loading, how far, and by which endpoints
    Loads,
    /// Stop background work until it is resumed or the server starts again
    Pause,
    /// Resume background work
    Resume,
    /// Read the configuration again, as SIGHUP does
    Reload,
}

impl Args {
    /// The settings that the flags provide.
    pub(super) fn flags(&self) -> Flags {
        let listen = if let Command::Serve { listen } | Command::Demo(DemoArgs { listen, .. }) =
            &self.command
        {
            *listen
        } else {
            None
        };
        let storage_url = self.common.storage_url.as_deref().and_then(|url| url.parse().ok());
        let (config, data_dir) = (self.common.config.clone(), self.common.data_dir.clone());
        Flags { config, data_dir, storage_url, listen }
    }
}
