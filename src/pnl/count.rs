//! Enters a ledger's rows into books, oldest first, one row at a time: a caller can pause between
//! any two, and reads the disposals as they come.

use std::sync::Arc;

use super::book::{Book, BookEntry};
use super::ledger::{HeldToken, LedgerToken, TradeLedger};
use super::method::Method;
use super::period::Period;
use super::position::TokenPosition;
use super::report::{Report, TokenReport};
use super::sale::{Origin, Sale};
use crate::domain::{Address, TxId, UnixSeconds};

/// One pass over a ledger. A second pass returns the same disposals, so that none is kept.
#[derive(Debug)]
pub struct Count {
    ledger: Arc<TradeLedger>,
    method: Method,
    period: Period,
    books: Vec<Book>,
    /// Rows not yet entered: the oldest stands last.
    left: usize,
    has_begun: bool,
    trades: u64,
}

#[derive(Debug)]
pub enum CountStep {
    Row,
    /// A sell of the period.
    Sale(Box<Disposal>),
    /// No row of the period is left.
    All,
}

/// A sell with the buys of its parts.
#[derive(Debug)]
pub struct Disposal {
    pub symbol: String,
    pub mint: Address,
    /// Decimals of the quantities.
    pub decimals: u8,
    pub time: UnixSeconds,
    pub tx: Option<TxId>,
    pub sale: Sale,
    /// Time and transaction of each part's buy; `None` for a pool and for units beyond the lots.
    pub bought: Vec<Option<(UnixSeconds, Option<TxId>)>>,
}

impl Count {
    pub fn new(ledger: Arc<TradeLedger>, method: Method, period: Period) -> Self {
        let books = ledger.tokens.iter().map(|_| Book::new(method)).collect();
        let left = ledger.len();
        Self { ledger, method, period, books, left, has_begun: false, trades: 0 }
    }

    pub fn step(&mut self) -> CountStep {
        let Some(at) = self.left.checked_sub(1) else { return CountStep::All };
        let ledger = Arc::clone(&self.ledger);
        let Some(row) = ledger.rows.get(at).filter(|row| !self.period.is_after(row.time)) else {
            return CountStep::All;
        };
        self.left = at;
        if !self.period.is_before(row.time) {
            self.begin_period();
            self.trades += 1;
        }
        let (Some(book), Some(token)) =
            (self.books.get_mut(row.token), ledger.tokens.get(row.token))
        else {
            return CountStep::Row;
        };
        let quantity = row.quantity(token.decimals);
        let entry = BookEntry { side: row.side, quantity, native: row.native, row: at };
        match book.enter(entry) {
            Some(sale) if self.has_begun => {
                CountStep::Sale(Box::new(disposal(&ledger, at, row, token, sale)))
            }
            Some(_) | None => CountStep::Row,
        }
    }

    fn begin_period(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) && self.period.from.is_some() {
            self.books.iter_mut().for_each(Book::begin_period);
        }
    }

    /// The positions after the rows that were entered so far.
    pub fn report(mut self) -> Report {
        // A period after the last row holds what was carried over.
        self.begin_period();
        let tokens = self.ledger.tokens.iter().zip(&self.books);
        let tokens = tokens.filter(|(_, book)| !book.position().is_untouched());
        let report = |(token, book): (&LedgerToken, &Book)| TokenReport {
            symbol: token.symbol.clone(),
            mint: token.mint,
            decimals: token.decimals,
            position: *book.position(),
        };
        let tokens: Vec<TokenReport> = tokens.map(report).collect();
        let mut totals = TokenPosition::default();
        for token in &tokens {
            totals.add(&token.position);
        }
        let Self { method, period, trades, .. } = self;
        Report { method, period, trades, totals, tokens }
    }
}

fn disposal(
    ledger: &TradeLedger,
    at: usize,
    row: &HeldToken,
    token: &LedgerToken,
    sale: Sale,
) -> Disposal {
    let bought = sale.parts.iter().map(|part| match part.origin {
        Origin::Lot(at) => Some((ledger.rows.get(at)?.time, ledger.transaction(at))),
        Origin::Pool | Origin::Unmatched => None,
    });
    Disposal {
        symbol: token.symbol.clone(),
        mint: token.mint,
        decimals: token.decimals,
        time: row.time,
        tx: ledger.transaction(at),
        bought: bought.collect(),
        sale,
    }
}
