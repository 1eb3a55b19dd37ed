//! A transaction of any family.

use super::{evm, solana, tron};
use crate::domain::{Height, TxId, UnixSeconds};

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

    /// Whether native coin that moved inside is not known only because an endpoint failed.
    pub fn awaits_native(&self) -> bool {
        matches!(self, Self::Evm(tx, _) if tx.native == evm::NativeFlows::Refused)
    }

    /// Of its block.
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
}
