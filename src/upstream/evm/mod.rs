//! EVM chains: how a wallet's transactions are found and read.

mod abi;
mod alchemy;
mod descent;
mod discovery;
mod explorer;
mod explorer_wire;
#[cfg(test)]
mod lists_model;
#[cfg(test)]
mod lists_tests;
mod merge;
mod portal;
mod portal_wire;
mod subject;
mod texts;
mod tokens;
