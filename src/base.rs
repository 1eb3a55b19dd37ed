//! What everything stands on: the trades, the decoders that find them and the store that keeps them.

pub mod decode;
pub mod domain;
pub mod pnl;
pub mod registry;
pub mod store;
