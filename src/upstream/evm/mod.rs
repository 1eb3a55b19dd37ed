//! EVM chains: how a wallet's transactions are found and read.

mod abi;
mod alchemy;
mod descent;
mod discovery;
mod explorer;
mod explorer_wire;
mod merge;
mod portal;
mod portal_wire;
mod subject;
mod texts;
mod tokens;
