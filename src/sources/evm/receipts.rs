//! Pure: whether a receipt is consistent with itself, its transaction and the list, and a trace
//! with both. An answer that leaves out logs or calls would otherwise lose a trade for good.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha3::{Digest as _, Keccak256};

use super::wire;
use crate::decode::evm::{Account, Log, TRANSFER, Transaction, Word};
use crate::domain::Units;

/// Bytes of a bloom filter (Yellow Paper, 4.4.3).
const BLOOM_BYTES: usize = 256;

/// A token transfer to or from the wallet in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenTransfer {
    pub(super) wallet: Account,
    /// A log shows it. Some indexes also list native coin as a token, without a log.
    pub(super) is_logged: bool,
}

impl TokenTransfer {
    /// Whether the receipt has a log that matches the listed transfer.
    pub(super) fn is_in(self, tx: &Transaction) -> bool {
        tx.succeeded && tx.logs.iter().any(|log| log.mentions(&self.wallet))
    }

    /// Whether the listed transfer can be one of native coin, which has no log.
    pub(super) fn may_be_native(self, tx: &Transaction) -> bool {
        tx.succeeded && !self.is_logged && tx.value != Units::ZERO
    }
}

/// Sender and recipient of a token transfer above zero.
pub(super) fn transfer(log: &Log) -> Option<(Account, Account)> {
    let moves = log.topics.len() == 3 && log.data.iter().any(|byte| *byte != 0);
    transfer_ends(log).filter(|_| moves)
}

/// Sender and recipient of any transfer, also of an NFT.
pub(super) fn transfer_ends(log: &Log) -> Option<(Account, Account)> {
    let [topic, from, to, ..] = log.topics.as_slice() else { return None };
    let end = |word: &[u8; 32]| word.last_chunk::<20>().copied();
    (*topic == TRANSFER).then_some(())?;
    Some((end(from)?, end(to)?))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place<'a> {
    block_hash: Option<&'a str>,
    chain_id: Option<&'a str>,
}

fn place(raw: &RawValue) -> Place<'_> {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// The hash of the block that a transaction or a receipt names.
pub(super) fn block_hash(raw: &RawValue) -> Option<Word> {
    place(raw).block_hash.and_then(wire::word)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter<'a> {
    logs_bloom: Option<&'a str>,
}

/// Whether transaction and receipt name the same block and this chain, as far as they name any, and
/// a failed transaction has no logs.
pub(super) fn are_of_one(
    chain_id: Option<u64>,
    [tx, receipt]: [&RawValue; 2],
    parsed: &Transaction,
) -> bool {
    let (of_tx, of_receipt) = (place(tx), place(receipt));
    let blocks = of_tx.block_hash.zip(of_receipt.block_hash);
    let is_one = blocks.is_none_or(|(one, other)| one.eq_ignore_ascii_case(other));
    // Old transactions name no chain.
    let named = of_tx.chain_id.and_then(wire::hex_number).filter(|chain| *chain > 0);
    let is_here = named.is_none() || chain_id.is_none() || named == chain_id;
    is_one && is_here && (parsed.succeeded || parsed.logs.is_empty())
}

/// Whether the logs explain each bit of the receipt's bloom filter. `None` of chains without
/// filters, which omit it or leave it empty.
pub(super) fn fills_filter(receipt: &RawValue, logs: &[Log]) -> Option<bool> {
    let filter: Option<Filter<'_>> = serde_json::from_str(receipt.get()).ok();
    let text = filter.and_then(|filter| filter.logs_bloom).unwrap_or_default();
    let mut open = [0; BLOOM_BYTES];
    if const_hex::decode_to_slice(text, &mut open).is_err() || open == [0; BLOOM_BYTES] {
        return None;
    }
    let parts = |log: &'_ Log| {
        let topics = log.topics.iter().map(|topic| topic.to_vec());
        topics.chain([log.address.to_vec()]).collect::<Vec<_>>()
    };
    for part in logs.iter().flat_map(parts).collect::<BTreeSet<_>>() {
        let hash = Keccak256::digest(&part);
        for pair in hash.as_chunks::<2>().0.iter().take(3) {
            let bit = usize::from(u16::from_be_bytes(*pair)) % (8 * BLOOM_BYTES);
            if let Some(byte) = open.get_mut(BLOOM_BYTES - 1 - bit / 8) {
                *byte &= !(1 << (bit % 8));
            }
        }
    }
    Some(open == [0; BLOOM_BYTES])
}

/// Whether a trace has calls from or to all of these accounts: a contract that emitted an event has
/// run.
pub(super) fn names_all(trace: &RawValue, accounts: &BTreeSet<Account>) -> bool {
    let text = trace.get().to_ascii_lowercase();
    // With quotes: inputs and outputs contain addresses too, within longer strings.
    accounts.iter().all(|account| text.contains(&format!("\"{}\"", wire::hex(account))))
}
