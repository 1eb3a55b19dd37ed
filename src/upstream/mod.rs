//! Talks to nodes: a pool of endpoints per chain, and how each family pages a wallet's history.
//!
//! Never writes anything. URLs and keys of nodes never reach an error, a log or a metric.

mod activity;
mod ask;
mod candles;
mod choice;
mod classify;
mod endpoint;
mod error;
mod evm;
mod http;
mod jsonrpc;
mod known_pools;
mod limits;
mod policy;
mod pool;
mod queue;
mod reference;
mod refusals;
mod secret;
mod send;
mod solana;
mod source;
mod symbol;
mod transport;
mod tries;
mod tron;
mod vetting;

pub use activity::Activity;
pub use ask::{Ask, Reading, Reply};
pub use candles::Candles;
pub use endpoint::{CallCounts, EndpointConfig, EndpointId, EndpointStatus};
pub use error::UpstreamError;
pub use evm::{Discovery, EvmLimits, EvmParts, EvmSource};
pub use http::{HttpSetupError, HttpTransport};
pub use limits::PoolLimits;
pub use pool::{Answer, Call, CallOptions, Pool};
pub use queue::{Lane, Priority};
pub use secret::{SecretText, SecretUrl};
pub use solana::{SolanaLimits, SolanaSource};
pub use source::{
    FoundTx, GapReader, GapRequest, HashCheck, RawChunk, RawTx, Source, SourceStatus, Tip,
    TokenMeta,
};
pub use transport::{Method, Request, Response, Transport, TransportError};
pub use tron::{TronDiscovery, TronLimits, TronSource, tron_reading, tron_rpc_reading};
