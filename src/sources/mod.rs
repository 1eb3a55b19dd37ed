//! How each family pages through a wallet's history and queries tokens, blocks and prices.
//!
//! Never writes anything. What a read could not confirm is a doubt of its chunk.

mod ability;
mod activity;
mod candles;
mod chunk;
mod evm;
mod gateway;
mod hash_check;
mod known_pools;
mod page_sizes;
mod pager;
mod prefetch;
mod reference;
mod scan;
mod second_answers;
mod server_reach;
mod solana;
mod source;
mod spaced;
mod symbol;
mod tron;

pub use ability::{Ability, AbilityKind, Offered};
pub use activity::Activity;
pub use candles::Candles;
pub use chunk::{FoundTx, GapRequest, LateAccounts, RawChunk, RawTx, Tip};
pub use evm::{Discovery, EvmLimits, EvmParts, EvmSource};
pub use hash_check::HashCheck;
pub use prefetch::RunAhead;
pub use scan::{ScanTarget, Scanned};
pub use solana::{SolanaLimits, SolanaSource};
pub use source::{GapReader, Source};
pub use symbol::TokenMeta;
pub use tron::{TronDiscovery, TronLimits, TronSource, tron_reading, tron_rpc_reading};
