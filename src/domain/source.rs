//! State of a wallet that a source keeps between reads.

use super::Height;

/// A token account of a wallet, on chains where balances live in accounts of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceAccount {
    pub account: [u8; 32],
    /// The balance seen at the last head, in base units; `None` once it is closed, `OPEN` where it
    /// is open and the balance at that head is not known.
    pub amount: Option<u64>,
    /// Set once its list was read to the end: the height of its oldest transaction.
    pub oldest: Option<Height>,
}

impl SourceAccount {
    /// No known balance: it equals no other one, not even itself.
    pub const OPEN: u64 = u64::MAX;

    /// Whether it is known to have held this at the last head.
    pub fn held(&self, amount: u64) -> bool {
        amount != Self::OPEN && self.amount == Some(amount)
    }

    /// Whether it was open at the last head, and what it held there is known.
    pub fn is_balance_known(&self) -> bool {
        self.amount.is_some_and(|amount| amount != Self::OPEN)
    }
}
