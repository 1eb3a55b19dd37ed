//! An EVM transaction with its effects, as far as nodes report them.

use smallvec::SmallVec;

pub use crate::decode::universal_router::CoinSale;
pub use crate::decode::v4_commands::CoinRoute;
pub use crate::domain::{Account, Word};
use crate::domain::{Height, Units};

/// A transaction with its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub hash: Word,
    pub block: Height,
    /// Its position in the block.
    pub index: u32,
    /// The account that receives the fees of its block, if known.
    pub producer: Option<Account>,
    pub from: Account,
    /// `None` for the creation of a contract.
    pub to: Option<Account>,
    /// Native coin that the sender gave with it, in wei.
    pub value: Units,
    /// The first four bytes of its input.
    pub selector: Option<[u8; 4]>,
    /// Terms of the call, as far as its kind is known.
    pub terms: Terms,
    pub succeeded: bool,
    /// In the order of emission.
    pub logs: Vec<Log>,
    pub native: NativeFlows,
}

/// What a call's input states about its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    pub receiver: Option<Account>,
    /// Native coin that a platform keeps.
    pub charged: Option<Units>,
    /// The receivers of native coin.
    pub coin: CoinTo,
    /// How the call's commands divide the native coin of a sale.
    pub sale: Option<CoinSale>,
}

/// The receivers of native coin in a call. What no command gives away stays in the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CoinTo {
    /// The sender alone; or the call has no such commands, or not all of them are known.
    #[default]
    Unstated,
    /// The sender alone, by the layout of the call.
    Sender,
    /// Other accounts, not the sender.
    Others,
    /// The sender and others; or the sender, by payments that events do not fully show.
    Shared,
}

/// An event has at most four (the LOG4 instruction).
pub type Topics = SmallVec<[Word; 4]>;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub address: Account,
    pub topics: Topics,
    pub data: Vec<u8>,
}

impl Log {
    /// Whether a topic, or a whole word of the data, is this account: old tokens do not index their
    /// transfers.
    pub fn mentions(&self, account: &Account) -> bool {
        let is_it = |word: &Word| word.last_chunk() == Some(account);
        self.topics.iter().any(is_it) || self.data.as_chunks::<32>().0.iter().any(is_it)
    }
}

/// What is known of native coin that moved below the outermost call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NativeFlows {
    /// Every call that transferred value and was not reverted; at least all that begin or end at
    /// the wallet.
    Calls(Vec<NativeMove>),
    /// Only the change of the wallet's balance over the transaction, without the fee for its
    /// execution. Includes the outermost call's value.
    Net { gained: Units, lost: Units },
    /// No endpoint reports them.
    #[default]
    Unknown,
    /// No endpoint reports them any more, or none that does is reachable: an earlier read may have
    /// had them. Otherwise like `Unknown`.
    Gone,
    /// An endpoint that reports them failed; the next read may succeed. Else like `Unknown`.
    Refused,
}

/// Native coin that one call transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NativeMove {
    pub from: Account,
    pub to: Account,
    /// In wei, never zero.
    pub value: Units,
}
