//! The chain of a world, of any family.

use std::sync::Arc;

use blotter::demo::evm::{EvmModel, TradeKind};
use blotter::demo::solana::SolanaModel;
use blotter::domain::{Address, Height, TxId};
use blotter::registry;

use super::way::Way;
use crate::support::truth::{Fact, evm_facts, facts};

#[derive(Debug, Clone)]
pub(super) enum Chain {
    Solana(SolanaModel),
    Evm(EvmModel, Arc<registry::Chain>, Way),
}

impl Chain {
    pub(super) fn head(&self) -> Height {
        match self {
            Self::Solana(model) => model.head(),
            Self::Evm(model, ..) => model.head(),
        }
    }

    /// Blocks by which a node's index may lag behind its head.
    pub(super) fn index_lag(&self) -> u64 {
        match self {
            Self::Solana(_) => 1,
            Self::Evm(_, chain, _) => chain.index_lag,
        }
    }

    pub(super) fn advance(&self, blocks: u64) {
        match self {
            Self::Solana(model) => drop(model.advance(blocks)),
            Self::Evm(model, ..) => drop(model.advance(blocks)),
        }
    }

    pub(super) fn set_head(&self, head: Height) {
        match self {
            Self::Solana(model) => model.set_head(head),
            Self::Evm(model, ..) => model.set_head(head),
        }
    }

    pub(super) fn arrive(&self, wallet: Address, trades: u64) {
        match self {
            Self::Solana(model) => drop(model.arrive(wallet, trades)),
            Self::Evm(model, ..) => drop(model.arrive(wallet, trades)),
        }
    }

    pub(super) fn reorg(&self, from: Height) {
        match self {
            Self::Solana(model) => model.reorg(from),
            Self::Evm(model, ..) => model.reorg(from),
        }
    }

    pub(super) fn transaction_count(&self, wallet: Address) -> u64 {
        match self {
            Self::Solana(model) => model.transaction_count(wallet),
            Self::Evm(model, ..) => model.transaction_count(wallet),
        }
    }

    /// The wallet's rows as the chain is now, newest first.
    pub(super) fn facts(&self, wallet: Address) -> Vec<Fact> {
        match self {
            Self::Solana(model) => facts(model, wallet),
            Self::Evm(model, chain, way) => evm_facts(model, chain, wallet, way.blind()),
        }
    }

    /// Height of a trade of the wallet, counted from the newest; of the oldest where there are less.
    pub(super) fn trade_height(&self, wallet: Address, deep: usize) -> Option<Height> {
        match self {
            Self::Solana(model) => model.truth(wallet).take(deep + 1).last().map(|t| t.slot),
            Self::Evm(model, ..) => model.truth(wallet).take(deep + 1).last().map(|t| t.height),
        }
    }

    /// What kind of trade a transaction is, where the model names it.
    pub(super) fn kind(&self, wallet: Address, tx: TxId) -> Option<TradeKind> {
        match self {
            Self::Solana(_) => None,
            Self::Evm(model, ..) => model.truth(wallet).find(|t| t.hash == tx).map(|t| t.kind),
        }
    }

    /// Transactions that no node gives from now on.
    pub(super) fn withhold(&self, ids: &[TxId]) {
        if let Self::Evm(model, ..) = self {
            model.withhold(ids);
        }
    }
}
