//! A Solana chain generated from one seed: the chain, its wire format, its JSON-RPC.

mod accounts;
mod history;
mod keys;
mod maker;
mod model;
mod noise;
mod paging;
mod pools;
mod portal;
mod references;
mod rpc;
mod slots;
mod tokens;
mod trades;
mod tx;
mod wire;

pub use super::timeline::Crowd;
pub use history::WalletPlan;
pub use model::{SolanaModel, TrueTrade};
pub(super) use portal::portal;
pub use rpc::NodeOptions;
pub(super) use rpc::answer;

const SOL: u64 = 1_000_000_000;

fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Numbers as instructions and events contain them.
fn le<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.map(u64::to_le_bytes).concat()
}

const COIN_URI: &str = "https://demo.invalid/coin.json";

/// A text as borsh encodes it.
fn borsh_text(value: &str) -> Vec<u8> {
    let length = u32::try_from(value.len()).unwrap_or(0).to_le_bytes();
    [&length[..], value.as_bytes()].concat()
}

fn base58_text(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    wire::base58(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

listed! {
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
}

impl TradeKind {
    /// Whether a keeper sends the transaction.
    fn is_keepers(self) -> bool {
        matches!(self, Self::LimitFill | Self::Settlement)
    }
}

/// The meaning of a transaction for its wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TxKind {
    Trade(TradeKind),
    Failed,
    /// Transfers, spam, liquidity, staking, orders placed: not trades.
    Noise,
}
