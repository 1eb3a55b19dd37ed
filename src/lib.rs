//! Every buy and sell of a wallet, from ordinary chain nodes.

// The routes are one nested type of `warp`, and the futures of handlers nest deep within it.
#![recursion_limit = "256"]

pub mod api;
pub mod cli;
pub mod decode;
pub mod demo;
pub mod domain;
pub mod enrich;
pub mod history;
pub mod pnl;
pub mod registry;
pub mod rpc;
pub mod sources;
pub mod store;
