//! What several tests build on.

pub(crate) mod disk;
pub(crate) mod served;
pub(crate) mod solana;
pub(crate) mod source;
pub(crate) mod trades;
pub(crate) mod world;
