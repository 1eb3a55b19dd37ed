//! From a wallet's rows to its positions and gains. Pure: exact integers in, exact integers out.
//!
//! One [`Book`] holds one token. Rows are entered oldest first, by the first-in-first-out rule or at
//! the average cost; unknown values are kept apart and never guessed. Token quantities
//! may be in any unit, if it is the same for all rows of a token: only their ratios matter.

mod book;
mod lots;
mod pool;
mod position;
mod share;
mod signed;

pub use book::{Book, Entry, Gain};
pub use position::{Position, Totals};
pub use signed::Signed;

/// Which units are sold first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// The oldest ones.
    Fifo,
    /// None in particular: each costs the average.
    Average,
}
