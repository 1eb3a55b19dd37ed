//! Every buy and sell of a wallet, from ordinary chain nodes.

pub mod demo;
pub mod domain;
pub mod registry;
