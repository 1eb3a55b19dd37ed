//! A Solana out of one number: the chain, its wire format, its JSON-RPC.

mod accounts;
mod aggregated;
mod build;
mod curve;
mod history;
mod keys;
mod lists;
mod model;
mod names;
mod noise;
mod paging;
mod params;
mod pools;
mod pump;
mod references;
mod rpc;
mod slots;
mod tokens;
mod tx;
mod wallet;
mod wire;

pub use super::timeline::Crowd;
pub use model::{SampleWallet, SolanaModel, TrueTrade};
pub use rpc::NodeOptions;
pub(super) use rpc::{Call, answer};
pub use wallet::WalletPlan;

/// Bounds of a model.
#[derive(Debug, Clone, Copy)]
pub struct ModelLimits {
    /// Addresses remembered; beyond it an address still has its history, but its token accounts
    /// are not found by their own address.
    pub wallets_max: usize,
    /// Trades that an address nobody registered has at most.
    pub unknown_trades_max: u64,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { wallets_max: 100_000, unknown_trades_max: 500 }
    }
}

/// The ways to trade that the chain knows.
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
    /// A keeper fills the wallet's limit order; the wallet is named.
    LimitFill,
    /// A keeper trades for the wallet; only the wallet's token accounts are named.
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

/// What a transaction is to its wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TxKind {
    Trade(TradeKind),
    Failed,
    /// Transfers, spam, liquidity, staking, orders placed: no trade.
    Noise,
}
