//! From a wallet's rows to its positions, realised gains and disposals. Pure: exact integers in,
//! exact integers out.
//!
//! One [`Book`] holds one token; a [`TradeLedger`] holds a wallet's rows, and a [`Count`] enters
//! them into books, oldest first. Unknown amounts and values are counted separately, never guessed.
//! Token quantities may be in any unit that is the same for all rows of a token: only their ratios
//! matter.

mod book;
mod count;
mod json;
mod ledger;
mod lots;
mod method;
mod period;
mod position;
mod report;
mod sale;
mod share;
mod signed;

pub use book::{Book, BookEntry};
pub use count::{Count, CountStep, Disposal};
pub use json::{JsonWriter, ReportSubject};
pub use ledger::{LedgerRow, TradeLedger};
pub use method::Method;
pub use period::Period;
pub use position::TokenPosition;
pub use report::{Report, TokenReport, rate};
pub use sale::{Gain, Origin, Part, Sale};
pub use signed::Signed;
