//! An EVM transaction with what it did, as far as nodes told.

use crate::domain::{Height, Units};

/// The 20 bytes of an account or contract.
pub type Account = [u8; 20];
/// A hash, a topic, or any other word.
pub type Word = [u8; 32];

/// A transaction with its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub hash: Word,
    pub block: Height,
    /// Its position in the block.
    pub index: u32,
    pub from: Account,
    /// `None`: it creates a contract.
    pub to: Option<Account>,
    /// Native coin that the sender gave with it, in wei.
    pub value: Units,
    /// The first four bytes of its input.
    pub selector: Option<[u8; 4]>,
    /// What the input of the call says, as far as that call is known.
    pub terms: Terms,
    pub succeeded: bool,
    /// In the order in which they were emitted.
    pub logs: Vec<Log>,
    pub native: NativeFlows,
}

/// What the input of a call says of what is bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Who gets it.
    pub receiver: Option<Account>,
    /// Native coin that a platform keeps of it.
    pub charged: Option<Units>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub address: Account,
    pub topics: Vec<Word>,
    pub data: Vec<u8>,
}

/// What is known of native coin that moved below the outermost call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NativeFlows {
    /// Every call that moved some and was not taken back; at least all that begin or end at the
    /// wallet.
    Calls(Vec<NativeMove>),
    /// Only by how much the wallet's balance changed over the transaction, the fee for its
    /// execution left out. Holds the outermost call's value too.
    Net { gained: Units, lost: Units },
    /// Nobody tells.
    #[default]
    Unknown,
}

/// Native coin that one call gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeMove {
    pub from: Account,
    pub to: Account,
    /// In wei, never zero.
    pub value: Units,
}
