//! Tron: contracts run there as on EVM chains, so an [`super::EvmModel`] of a Tron chain holds its
//! wallets and trades. This module adds `SunSwap`, `SunPump`, the protocol's own exchanges, and the
//! answers of `TronGrid` and of nodes.

mod lists;
mod node;
mod options;
mod wire;

pub(in crate::demo) use node::{HttpRequest, answer, call, too_often};
pub use options::NodeOptions;
