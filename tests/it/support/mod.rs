//! Helpers that several tests share.

pub(crate) mod arms;
pub(crate) mod bounds;
pub(crate) mod disk;
pub(crate) mod evm_node;
pub(crate) mod loops;
pub(crate) mod mangle;
pub(crate) mod paused;
pub(crate) mod places;
pub(crate) mod prices;
pub(crate) mod program;
pub(crate) mod reading;
pub(crate) mod ready;
pub(crate) mod recorded;
pub(crate) mod replies;
pub(crate) mod schema;
pub(crate) mod script;
pub(crate) mod served;
pub(crate) mod solana;
pub(crate) mod solana_node;
pub(crate) mod source;
pub(crate) mod trades;
pub(crate) mod tron_node;
pub(crate) mod truth;
#[cfg(feature = "postgres")]
pub(crate) mod wire;
pub(crate) mod world;
