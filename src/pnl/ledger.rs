//! The rows of one wallet, small: a row takes some 100 bytes, and 65 more with its transaction.

use std::collections::HashMap;

use crate::domain::{Address, Decimal, Side, TxId, Units, UnixSeconds};

/// A wallet's rows, newest first, as they are served.
#[derive(Debug, Default)]
pub struct TradeLedger {
    pub(super) tokens: Vec<LedgerToken>,
    places: HashMap<Address, usize>,
    pub(super) rows: Vec<HeldToken>,
    /// Of each row, where disposals are requested.
    transactions: Option<Vec<TxId>>,
}

#[derive(Debug)]
pub(super) struct LedgerToken {
    pub(super) symbol: String,
    pub(super) mint: Address,
    /// The most digits behind the point of any of its amounts.
    pub(super) decimals: u8,
}

#[derive(Debug)]
pub(super) struct HeldToken {
    pub(super) token: usize,
    pub(super) side: Side,
    pub(super) time: UnixSeconds,
    amount: Option<Decimal>,
    pub(super) native: Option<Units>,
}

impl HeldToken {
    /// The amount in units of `decimals`; `None` where it is unknown or too large.
    pub(super) fn quantity(&self, decimals: u8) -> Option<Units> {
        self.amount?.scaled(decimals)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct LedgerRow {
    pub mint: Address,
    pub side: Side,
    pub time: UnixSeconds,
    pub amount: Option<Decimal>,
    /// Base units of native coin.
    pub native: Option<Units>,
    pub tx: TxId,
}

impl TradeLedger {
    /// Keeps the transaction of each row, so that disposals can name theirs.
    pub fn with_transactions() -> Self {
        Self { transactions: Some(Vec::new()), ..Self::default() }
    }

    /// Adds the next older row. `symbol` is called once a token.
    pub fn push(&mut self, row: &LedgerRow, symbol: impl FnOnce() -> String) {
        let &LedgerRow { mint, side, time, amount, native, tx } = row;
        let token = *self.places.entry(mint).or_insert_with(|| {
            self.tokens.push(LedgerToken { symbol: symbol(), mint, decimals: 0 });
            self.tokens.len() - 1
        });
        if let (Some(amount), Some(token)) = (amount, self.tokens.get_mut(token)) {
            token.decimals = token.decimals.max(amount.decimals);
        }
        if let Some(transactions) = &mut self.transactions {
            transactions.push(tx);
        }
        self.rows.push(HeldToken { token, side, time, amount, native });
    }

    /// Rows of all tokens.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn transaction(&self, at: usize) -> Option<TxId> {
        self.transactions.as_ref()?.get(at).copied()
    }
}
