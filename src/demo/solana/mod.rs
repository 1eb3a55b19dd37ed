//! A Solana chain generated from one seed: the chain, its wire format, its JSON-RPC.

mod accounts;
mod aggregated;
mod build;
mod busy;
mod digits;
mod history;
mod keys;
mod lists;
mod maker;
mod model;
mod names;
mod noise;
mod paging;
mod params;
mod pools;
mod portal;
mod pump;
mod references;
mod rpc;
mod slots;
mod tokens;
mod tx;
mod wallet;
mod wire;

pub use super::timeline::Crowd;
pub use model::{SolanaModel, TrueTrade};
pub(super) use portal::portal;
pub use rpc::NodeOptions;
pub(super) use rpc::{RpcCall, answer};
pub use wallet::WalletPlan;

fn base58_text(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    crate::demo::base58::encode(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Kinds of trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TradeKind {
    /// On Pump.fun's bonding curve.
    PumpFun,
    /// Creation of a coin together with its first buy.
    PumpCreate,
    PumpSwap,
    RaydiumV4,
    Whirlpool,
    /// Jupiter, one to three pools, against SOL.
    JupiterSol,
    /// Jupiter against USDC: two rows.
    JupiterUsdc,
    /// A keeper fills the wallet's limit order; the transaction names the wallet.
    LimitFill,
    /// A keeper trades for the wallet; the transaction names only the wallet's token accounts.
    Settlement,
}

impl TradeKind {
    pub const ALL: [Self; 9] = [
        Self::PumpFun,
        Self::PumpCreate,
        Self::PumpSwap,
        Self::RaydiumV4,
        Self::Whirlpool,
        Self::JupiterSol,
        Self::JupiterUsdc,
        Self::LimitFill,
        Self::Settlement,
    ];
}

/// The meaning of a transaction for its wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TxKind {
    Trade(TradeKind),
    Failed,
    /// Transfers, spam, liquidity, staking, orders placed: not trades.
    Noise,
}
