//! A transaction of any family, decoded for one wallet.

use super::explain::Explanation;
use super::{Decoded, evm, solana, tron};
use crate::domain::{Address, Height, TxId, Units, UnixSeconds, Wallet};
use crate::registry::Registry;

/// A transaction in its family's shape, with its block time.
#[derive(Debug)]
pub enum RawTx {
    Solana(Box<solana::Transaction>, UnixSeconds),
    Evm(Box<evm::Transaction>, UnixSeconds),
    Tron(Box<tron::Transaction>, UnixSeconds),
}

impl RawTx {
    /// `None` for bytes that hold no id.
    pub fn id(&self) -> Option<TxId> {
        match self {
            Self::Solana(tx, _) => tx.id(),
            Self::Evm(tx, _) => Some(TxId::Evm(tx.hash)),
            Self::Tron(tx, _) => Some(TxId::Tron(tx.call.hash)),
        }
    }

    /// Whether native coin of inner calls is unknown only because an endpoint failed.
    pub fn awaits_native(&self) -> bool {
        let native = match self {
            Self::Solana(..) => return false,
            Self::Evm(tx, _) => &tx.native,
            Self::Tron(tx, _) => &tx.call.native,
        };
        *native == evm::NativeFlows::Refused
    }

    /// Whether a trade may depend on native coin of inner calls that no endpoint reports now but an
    /// earlier read may have seen: nodes prune traces and states of old blocks. If no endpoint ever
    /// had them, this read saw as much as any before it.
    pub fn is_unshown(&self, registry: &Registry, wallet: &Wallet) -> bool {
        let Some(chain) = registry.chain(wallet.chain) else { return false };
        let (tx, tables, is_unshown) = match self {
            Self::Solana(..) => return false,
            Self::Evm(tx, _) => (&**tx, registry.evm(), tx.native == evm::NativeFlows::Gone),
            // An answer without inner calls does not show whether another node had them.
            Self::Tron(tx, _) => {
                let is_shown = matches!(tx.call.native, evm::NativeFlows::Calls(_));
                (&tx.call, registry.tron(), !is_shown)
            }
        };
        is_unshown && evm::may_trade(tables, chain, tx)
    }

    /// The time of its block.
    pub fn time(&self) -> UnixSeconds {
        match self {
            Self::Solana(_, time) | Self::Evm(_, time) | Self::Tron(_, time) => *time,
        }
    }

    pub fn height(&self) -> Height {
        match self {
            Self::Solana(tx, _) => tx.slot(),
            Self::Evm(tx, _) => tx.block,
            Self::Tron(tx, _) => tx.call.block,
        }
    }

    /// Position in its block, where nodes report it with the transaction.
    pub fn index(&self) -> Option<u32> {
        match self {
            Self::Solana(tx, _) => tx.index(),
            Self::Evm(tx, _) => Some(tx.index),
            Self::Tron(..) => None,
        }
    }

    /// Returns nothing for a wallet of another family or of an unknown chain.
    pub fn decode(&self, registry: &Registry, wallet: &Wallet) -> Decoded {
        let Some(chain) = registry.chain(wallet.chain) else { return Decoded::default() };
        match (self, &wallet.address) {
            (Self::Solana(tx, _), Address::Solana(key)) => solana::decode(registry, key, tx),
            (Self::Evm(tx, _), Address::Evm(key)) => evm::decode(registry.evm(), chain, key, tx),
            (Self::Tron(tx, _), Address::Tron(key)) => {
                tron::decode(registry.tron(), chain, key, tx)
            }
            (Self::Solana(..) | Self::Evm(..) | Self::Tron(..), _) => Decoded::default(),
        }
    }

    /// `fee` is the network fee, where it is known separately.
    pub fn explain(
        &self,
        registry: &Registry,
        wallet: &Wallet,
        fee: Option<Units>,
    ) -> Option<Explanation> {
        let chain = registry.chain(wallet.chain)?;
        Some(match (self, &wallet.address) {
            (Self::Solana(tx, _), Address::Solana(key)) => solana::explain(registry, key, tx),
            (Self::Evm(tx, _), Address::Evm(key)) => {
                evm::explain(registry.evm(), chain, key, tx, fee)
            }
            (Self::Tron(tx, _), Address::Tron(key)) => {
                tron::explain(registry.tron(), chain, key, tx)
            }
            (Self::Solana(..) | Self::Evm(..) | Self::Tron(..), _) => return None,
        })
    }
}
