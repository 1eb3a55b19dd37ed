//! EVM chains: how a wallet's transactions are found and read.

mod descent;
mod discovery;
mod explorer;
mod explorer_wire;
mod merge;
mod subject;
mod texts;
