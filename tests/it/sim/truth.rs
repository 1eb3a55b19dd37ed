//! A wallet's rows by the chain's model, in every version that the chain ever had.

use std::collections::HashSet;

use blotter::domain::{Address, Height, Row, TxId};

use super::chain::Chain;
use crate::support::truth::Fact;

/// The identity of a row, without its index in the block, which a late row may change.
pub(super) type Mark = (Address, TxId, u16);

#[derive(Debug)]
pub(super) struct Truth {
    /// Newest first.
    now: Vec<Fact>,
    /// All that ever was true, where the chain was replaced.
    ever: HashSet<(TxId, u16)>,
}

impl Truth {
    pub(super) fn of(chain: &Chain, wallet: Address) -> Self {
        Self { now: chain.facts(wallet), ever: HashSet::new() }
    }

    pub(super) fn advance(&mut self, chain: &Chain, wallet: Address) {
        self.now = chain.facts(wallet);
    }

    pub(super) fn fork(&mut self, chain: &Chain, wallet: Address) {
        self.ever.extend(self.now.iter().map(|fact| (fact.tx, fact.leg)));
        self.now = chain.facts(wallet);
    }

    /// Rows up to a height, newest first.
    pub(super) fn below(&self, head: Height) -> &[Fact] {
        &self.now[self.now.partition_point(|fact| fact.slot > head)..]
    }

    pub(super) fn all(&self) -> &[Fact] {
        &self.now
    }

    /// Whether a row is true now.
    pub(super) fn is(&self, row: &Row) -> bool {
        self.like(row).is_some_and(|fact| fact.is_shown_by(row))
    }

    /// What is true of the row's transaction and leg.
    pub(super) fn like(&self, row: &Row) -> Option<&Fact> {
        let key = (row.trade.key.tx, row.trade.key.leg);
        self.now.iter().find(|fact| (fact.tx, fact.leg) == key)
    }

    /// Whether a row was true at some time.
    pub(super) fn was(&self, row: &Row) -> bool {
        let key = (row.trade.key.tx, row.trade.key.leg);
        self.ever.contains(&key) || self.now.iter().any(|fact| (fact.tx, fact.leg) == key)
    }
}
