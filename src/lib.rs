//! Every buy and sell of a wallet, from ordinary chain nodes.

pub mod api;
pub mod cli;
pub mod demo;
pub mod history;
pub mod upstream;

pub use blotter_base::{decode, domain, pnl, registry, store};
