//! Simulated chains in the wire formats of the real ones: for `blotter demo`, tests, benches and
//! examples.
//!
//! A [`solana::SolanaModel`] or an [`evm::EvmModel`] (Tron too) is a whole chain generated from one
//! seed; its `truth` are a wallet's trades by construction, so that they can judge a decoder. A
//! [`DemoNode`] is one endpoint of it (a node, account lists, a gateway) with its own lag, limits
//! and [`Faults`]. A [`DemoTransport`] reaches nodes without a network, a [`Loopback`] serves them
//! on a port. [`DemoChains`] combines all of it.
//!
//! Nothing here reads a clock, sleeps in real time under paused time, or stores a history: a wallet
//! of a million trades costs as much as one of ten.

/// An enum with the list of its variants.
macro_rules! listed {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident,)* }) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            $vis const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];
        }
    };
}

mod chains;
pub mod evm;
mod faults;
mod loopback;
mod mix;
mod node;
mod rpc;
mod service;
pub mod solana;
mod state;
mod timeline;
mod transport;

pub use chains::{DemoChains, DemoPaths, DemoWallet, LARGE_TRADES, LARGE_TRADES_MAX};
pub use faults::{Faults, Rate, Refusal};
pub use loopback::{Loopback, LoopbackHandle, LoopbackLimits};
pub use node::{DemoNode, NodeStats};
pub use service::Options;
pub use state::ChainState;
pub use timeline::Plan;
pub use transport::DemoTransport;
