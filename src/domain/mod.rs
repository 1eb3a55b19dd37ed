//! Types that every layer shares. No input or output, no async, no clock of its own.

mod address;
mod amount;
pub mod base58;
mod cache;
mod coverage;
mod cursor;
mod defaults;
mod filter;
mod lock;
mod named;
mod opaque;
mod price;
mod program_address;
mod proof;
pub mod row_json;
mod rows;
mod signature;
mod source;
mod time;
mod trade;

pub(crate) use address::keccak256;
pub use address::{Account, Address, AddressError, TxId, Word};
pub use amount::{Decimal, Numbers, Units};
pub use cache::BoundedCache;
pub use coverage::{Coverage, Gap, Height, Resume, Span};
pub use cursor::{Cursor, CursorError, FilterTag, Position};
pub(crate) use defaults::defaults;
pub use filter::Filter;
pub use lock::lock;
pub(crate) use named::named;
pub(crate) use opaque::opaque;
pub use price::{LearnedPrice, Minute, Moment, Price};
pub use program_address::program_address;
pub use proof::{Doubts, Proof, Way};
pub use rows::{BareRow, RowRef, Rows};
pub use signature::Signature;
pub use source::SourceAccount;
pub use time::{Clock, TimeText, UnixMillis, UnixSeconds};
pub use trade::{Row, Side, Token, Trade, TradeKey, ValueSource};

/// Number of a chain's row in `data/chains.toml`; stored in keys, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Deserialize)]
pub struct ChainId(pub u16);

/// Which wire formats and address form a chain has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Solana,
    Evm,
    Tron,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wallet {
    pub chain: ChainId,
    pub address: Address,
}

/// The number of an API key, under which usage is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub u64);

impl KeyId {
    /// The command line on its own data folder: no usage is counted.
    pub const LOCAL: Self = Self(0);
}
