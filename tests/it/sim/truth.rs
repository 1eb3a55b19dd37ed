//! What a wallet's rows are, by the chain's model: in every version that the chain ever had.

use std::collections::HashSet;

use blotter::demo::solana::{SolanaModel, TrueTrade};
use blotter::domain::{Address, Height, Row, Side, TxId, Units, UnixSeconds};

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) slot: Height,
    pub(super) time: UnixSeconds,
    pub(super) tx: TxId,
    pub(super) leg: u16,
    side: Side,
    mint: Address,
    units: Units,
    native: Option<Units>,
}

/// Which row it is.
pub(super) type Mark = (Address, TxId, u16);

#[derive(Debug)]
pub(super) struct Truth {
    /// Newest first.
    now: Vec<Fact>,
    /// All that ever was true, where the chain was replaced.
    ever: HashSet<(TxId, u16)>,
}

impl Truth {
    pub(super) fn of(model: &SolanaModel, wallet: Address) -> Self {
        let now = model.truth(wallet).map(fact).collect();
        Self { now, ever: HashSet::new() }
    }

    pub(super) fn advance(&mut self, model: &SolanaModel, wallet: Address) {
        let top = self.now.first().map(|fact| fact.slot);
        let news =
            model.truth(wallet).map(fact).take_while(|fact| top.is_none_or(|t| fact.slot > t));
        let news: Vec<Fact> = news.collect();
        self.now.splice(0..0, news);
    }

    pub(super) fn fork(&mut self, model: &SolanaModel, wallet: Address) {
        self.ever.extend(self.now.iter().map(|fact| (fact.tx, fact.leg)));
        self.now = model.truth(wallet).map(fact).collect();
    }

    /// Rows up to a height, newest first.
    pub(super) fn below(&self, head: Height) -> &[Fact] {
        &self.now[self.now.partition_point(|fact| fact.slot > head)..]
    }

    pub(super) fn all(&self) -> &[Fact] {
        &self.now
    }

    /// Whether a row was true at some time.
    pub(super) fn was(&self, row: &Row) -> bool {
        let key = (row.trade.key.tx, row.trade.key.leg);
        self.ever.contains(&key) || self.now.iter().any(|fact| (fact.tx, fact.leg) == key)
    }
}

impl Fact {
    /// The native value of a token for a token may be unknown or worked out by a price; what its
    /// transaction tells is never another one.
    pub(super) fn is_told_by(&self, row: &Row) -> bool {
        let (trade, key) = (&row.trade, row.trade.key);
        (key.height, key.time, key.tx, key.leg) == (self.slot, self.time, self.tx, self.leg)
            && (trade.side, trade.mint, trade.units) == (self.side, self.mint, Some(self.units))
            && (trade.valued.is_derived() || trade.native.or(self.native) == self.native)
    }
}

fn fact(t: TrueTrade) -> Fact {
    Fact {
        slot: t.slot,
        time: t.time,
        tx: t.signature,
        leg: t.leg,
        side: t.side,
        mint: t.mint,
        units: t.units,
        native: t.native,
    }
}
