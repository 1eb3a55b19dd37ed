//! EVM chains generated from one seed each: the chain, its wire formats, and the answers of nodes,
//! account lists and gateways. Public contracts have their real addresses. Tron's contracts run the
//! same way, so Tron is such a chain too, in another wire format ([`tron`]).

mod calls;
mod coins;
mod cycle;
mod deal;
mod desk;
mod explorer;
mod hash;
mod logs;
mod model;
mod node;
mod noise;
mod options;
mod orders;
mod places;
mod pools;
mod portal;
mod references;
mod script;
mod transfers;
pub mod tron;
mod tron_trades;
mod tx;
mod wire;

pub use super::timeline::Crowd;
pub use explorer::ExplorerOptions;
pub(super) use explorer::{answer as explorer, refused};
pub use model::{EvmModel, TrueTrade};
pub(super) use node::answer;
pub use options::{LimitTexts, NodeOptions};
pub use portal::PortalOptions;
pub(super) use portal::{answer as portal, asked, by_block, reply};
pub use script::WalletPlan;

listed! {
    /// Kinds of trades. Where a chain lacks a protocol, the nearest one is used.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize)]
    pub enum TradeKind {
        /// A pair of the coin and the wrapped native coin, through its router.
        V2,
        /// Two pairs, to or from the dollar: two rows, valued by the hop.
        V2Hop,
        /// A pool, with more value sent than needed and the rest refunded.
        V3,
        /// A pool of the coin and the dollar: two rows without a value.
        V3Dollar,
        /// A pool of the coin and unwrapped native coin.
        V4,
        /// A route over two pools with a fee taken inside.
        Aggregator,
        /// A pair whose coin keeps a part of each transfer.
        Taxed,
        Launchpad,
        /// A solver fills the wallet's order; on Tron a relayer sends the wallet's swap.
        Cow,
        /// A bundler sends an operation of the wallet, which is a smart account.
        UserOp,
        /// An exchange of one coin that holds unwrapped native coin (`SunSwap` V1).
        V1,
        /// A pool of the protocol itself, for a token without a contract (TRC-10).
        Exchange,
    }
}
