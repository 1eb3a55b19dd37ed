//! Tron: contracts run there as on EVM chains, so an [`super::EvmModel`] of a Tron chain holds its
//! wallets and trades. This module adds `SunSwap`, `SunPump`, the protocol's own exchanges, and the
//! answers of `TronGrid` and of nodes.

mod lists;
mod node;
mod trades;
mod wire;

pub use node::NodeOptions;
pub(in crate::demo) use node::{HttpRequest, answer, call, too_often};
pub(super) use trades::{build, venue};

use super::TradeKind as K;

/// Sun for one unit of energy.
pub(super) const ENERGY_PRICE: u128 = 100;

/// How a lane trades an ordinary coin: the first and the second of every two coins.
pub(super) const KINDS: [[[K; 8]; 2]; 4] = [
    [
        [K::V2, K::V3, K::V2Hop, K::V1, K::Aggregator, K::V2, K::Cow, K::V3],
        [K::V3, K::V1, K::V2, K::V3, K::V3Dollar, K::V2Hop, K::V1, K::V2],
    ],
    [
        [K::V4, K::Aggregator, K::V3Dollar, K::V3Dollar, K::V4, K::V1, K::Aggregator, K::V4],
        [K::Exchange; 8],
    ],
    [[K::V3, K::V4, K::V2Hop, K::V3Dollar, K::V2, K::V4, K::V1, K::Cow], [K::Taxed; 8]],
    [
        [K::Launchpad; 8],
        [K::Aggregator, K::V2, K::Cow, K::V2Hop, K::V4, K::V3, K::V2, K::Aggregator],
    ],
];
