//! What several tests build on.

pub(crate) mod disk;
pub(crate) mod trades;
pub(crate) mod world;
