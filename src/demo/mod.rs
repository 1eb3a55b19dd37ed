//! Chains that exist only here, in the wire formats of the real ones: for `blotter demo`, tests,
//! benches and examples.
//!
//! A [`solana::SolanaModel`] or an [`evm::EvmModel`] (Tron too) is a whole chain out of one number. A
//! [`DemoNode`] is one endpoint over it (a node, and for EVM chains account lists or a gateway too),
//! with its own lag, limits and [`Faults`]; several nodes may share a model. A [`DemoTransport`]
//! reaches nodes by host and path without a network, a [`Loopback`] serves them on a port. What a
//! wallet traded is told by the model's `truth`, from how the chain was made and not from reading
//! its transactions back, so that it can judge a decoder. [`DemoChains`] is all of it at once.
//!
//! Nothing here reads a clock, sleeps in earnest under paused time, or keeps a history: a wallet of
//! a million trades costs as much as one of ten.

mod base58;
mod chains;
pub mod evm;
mod faults;
mod loopback;
mod mix;
mod node;
mod refusal;
mod rpc;
mod service;
pub mod solana;
mod timeline;
mod transport;
mod walk;

pub use chains::{DemoChains, DemoPaths, DemoWallet, LARGE_TRADES, LARGE_TRADES_MAX};
pub use faults::{Faults, Rate};
pub use loopback::{Loopback, LoopbackHandle, LoopbackLimits};
pub use node::{DemoNode, NodeStats};
pub use refusal::Refusal;
pub use service::Options;
pub use transport::{DemoTransport, Exchange, ExchangeError};
