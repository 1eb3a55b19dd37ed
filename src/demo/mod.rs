//! Chains that exist only here, in the wire formats of the real ones: for `blotter demo`, tests,
//! benches and examples.

mod base58;
mod faults;
mod loopback;
mod mix;
mod node;
pub mod solana;
mod transport;

pub use faults::{Faults, Rate};
pub use loopback::{Loopback, LoopbackHandle, LoopbackLimits};
pub use node::{DemoNode, NodeStats};
pub use transport::{DemoTransport, Exchange, ExchangeError};
