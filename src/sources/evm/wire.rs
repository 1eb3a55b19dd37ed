//! Decodes nodes' answers: hex numbers, blocks, logs.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::decode::evm::{Account, Word};
use crate::domain::{Height, Units, UnixSeconds};
use crate::rpc::Call;

/// A quantity that fits 64 bits.
pub(crate) fn number(raw: &RawValue) -> Option<u64> {
    hex_number(serde_json::from_str(raw.get()).ok()?)
}

pub(crate) fn hex_number(text: &str) -> Option<u64> {
    u64::from_str_radix(hex_digits(text)?, 16).ok()
}

/// A quantity of up to 256 bits.
pub(super) fn units(raw: &RawValue) -> Option<Units> {
    hex_units(serde_json::from_str(raw.get()).ok()?)
}

pub(super) fn hex_units(text: &str) -> Option<Units> {
    Units::from_str_radix(hex_digits(text)?, 16).ok()
}

/// The number parsers would accept signs and underscores.
fn hex_digits(text: &str) -> Option<&str> {
    let digits = text.strip_prefix("0x")?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(digits)
}

pub(super) fn word(text: &str) -> Option<Word> {
    bytes(text)
}

pub(crate) fn account(text: &str) -> Option<Account> {
    bytes(text)
}

pub(super) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}

pub(super) fn data(text: &str) -> Option<Vec<u8>> {
    hex::decode(text.strip_prefix("0x")?).ok()
}

/// The return data of an `eth_call`.
pub(crate) fn returned(raw: &RawValue) -> Option<Vec<u8>> {
    data(&serde_json::from_str::<String>(raw.get()).ok()?)
}

/// The low 20 bytes of a topic.
pub(crate) fn account_of(word: &Word) -> Option<Account> {
    word.last_chunk().copied()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    const_hex::encode_prefixed(bytes)
}

pub(crate) fn head_call() -> Call {
    Call { method: "eth_blockNumber", params: json!([]) }
}

pub(crate) fn eth_call(to: &[u8], data: &[u8]) -> Call {
    Call { method: "eth_call", params: json!([{"to": hex(to), "data": hex(data)}, "latest"]) }
}

pub(crate) fn log_filter(
    (low, high): (Height, Height),
    by: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let range = [("fromBlock", low), ("toBlock", high)];
    let range = range.map(|(name, height)| (name, format!("{height:#x}").into()));
    range.into_iter().chain(by).collect()
}

pub(crate) fn logs_call<const N: usize>(
    range: (Height, Height),
    by: [(&'static str, Value); N],
) -> Call {
    Call { method: "eth_getLogs", params: json!([log_filter(range, by)]) }
}

pub(crate) fn topic(account: &Account) -> String {
    format!("0x{}{}", "0".repeat(24), hex::encode(account))
}

#[derive(Debug, Deserialize)]
pub(super) struct Block<'a> {
    number: &'a str,
    hash: &'a str,
    timestamp: &'a str,
    miner: Option<&'a str>,
    #[serde(borrow, default)]
    transactions: Vec<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockHead {
    pub(super) number: Height,
    pub(super) hash: Word,
    pub(super) time: UnixSeconds,
    /// The recipient of its fees; `None` if the node reports zeros, as on some chains (Polygon).
    pub(super) producer: Option<Account>,
    pub(super) transactions: Vec<Word>,
}

/// `Ok(None)` for a block that the node lacks.
pub(super) fn block(raw: &RawValue) -> Result<Option<BlockHead>, ()> {
    let block: Option<Block<'_>> = serde_json::from_str(raw.get()).map_err(|_| ())?;
    let Some(block) = block else { return Ok(None) };
    let read = || {
        let time = u32::try_from(hex_number(block.timestamp)?).ok()?;
        Some(BlockHead {
            number: hex_number(block.number)?,
            hash: word(block.hash)?,
            time: UnixSeconds(time),
            producer: block.miner.and_then(account).filter(|one| *one != Account::default()),
            transactions: block
                .transactions
                .iter()
                .map(|text| word(text))
                .collect::<Option<_>>()?,
        })
    };
    read().map(Some).ok_or(())
}

/// One log of `eth_getLogs`, with the fields that finding transactions needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundLog {
    pub(crate) address: Account,
    pub(crate) topics: Vec<Word>,
    pub(crate) data: Vec<u8>,
    pub(crate) block: Height,
    pub(crate) hash: Word,
    pub(crate) index: Option<u32>,
    /// Only newer nodes report it.
    pub(crate) time: Option<UnixSeconds>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLog<'a> {
    address: &'a str,
    #[serde(borrow)]
    topics: Vec<&'a str>,
    #[serde(default)]
    data: &'a str,
    block_number: &'a str,
    transaction_hash: &'a str,
    // A field that is not a string counts as absent.
    #[serde(borrow)]
    transaction_index: Option<&'a RawValue>,
    #[serde(borrow)]
    block_timestamp: Option<&'a RawValue>,
    removed: Option<bool>,
}

/// `None` if it is no list of logs. Logs that a reorg removed are left out.
pub(crate) fn logs(raw: &RawValue) -> Option<Vec<FoundLog>> {
    let all: Vec<RawLog<'_>> = serde_json::from_str(raw.get()).ok()?;
    all.iter().filter(|log| log.removed != Some(true)).map(found).collect()
}

fn found(log: &RawLog<'_>) -> Option<FoundLog> {
    let small = |raw: &RawValue| {
        let text: &str = serde_json::from_str(raw.get()).ok()?;
        u32::try_from(hex_number(text)?).ok()
    };
    Some(FoundLog {
        address: account(log.address)?,
        topics: log.topics.iter().map(|text| word(text)).collect::<Option<_>>()?,
        data: if log.data.is_empty() { Vec::new() } else { data(log.data)? },
        block: hex_number(log.block_number)?,
        hash: word(log.transaction_hash)?,
        index: log.transaction_index.and_then(small),
        time: log.block_timestamp.and_then(small).filter(|time| *time > 0).map(UnixSeconds),
    })
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    transactions: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    #[serde(alias = "hash")]
    transaction_hash: &'a str,
}

fn named(all: &[&RawValue], hash: &Word) -> Option<Box<RawValue>> {
    let is_it = |raw: &&&RawValue| {
        let named: Option<Named<'_>> = serde_json::from_str(raw.get()).ok();
        named.and_then(|named| word(named.transaction_hash)).as_ref() == Some(hash)
    };
    all.iter().find(is_it).map(|raw| (*raw).to_owned())
}

pub(super) fn transaction_in(block: &RawValue, hash: &Word) -> Option<Box<RawValue>> {
    let block: Whole<'_> = serde_json::from_str(block.get()).ok()?;
    named(&block.transactions, hash)
}

pub(super) fn receipt_in(receipts: &RawValue, hash: &Word) -> Option<Box<RawValue>> {
    let receipts: Vec<&RawValue> = serde_json::from_str(receipts.get()).ok()?;
    named(&receipts, hash)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TxHeader {
    pub(super) hash: Word,
    /// `None`: it is not in a block yet.
    pub(super) block: Option<Height>,
    pub(super) from: Account,
    pub(super) to: Option<Account>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSeen<'a> {
    hash: &'a str,
    block_number: Option<&'a str>,
    from: &'a str,
    to: Option<&'a str>,
}

pub(super) fn seen(raw: &RawValue) -> Option<TxHeader> {
    let tx: RawSeen<'_> = serde_json::from_str(raw.get()).ok()?;
    Some(TxHeader {
        hash: word(tx.hash)?,
        block: tx.block_number.and_then(hex_number),
        from: account(tx.from)?,
        to: tx.to.map(account).map_or(Some(None), |to| to.map(Some))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(more: &str) -> Option<Vec<FoundLog>> {
        let (account, word) = ("11".repeat(20), "22".repeat(32));
        let text = format!(
            r#"[{{"address":"0x{account}","topics":["0x{word}"],"blockNumber":"0x10","transactionHash":"0x{word}"{more}}}]"#
        );
        logs(&RawValue::from_string(text).unwrap())
    }

    #[test]
    fn what_a_log_lacks_of_no_weight_hides_no_other() {
        for more in ["", r#","data":"""#, r#","data":"0x","removed":null"#] {
            let found = of(more).unwrap();
            assert_eq!((found.len(), found[0].block, found[0].data.len()), (1, 16, 0), "{more}");
        }
        let placed = of(r#","transactionIndex":"0x3","blockTimestamp":7,"removed":false"#).unwrap();
        assert_eq!((placed[0].index, placed[0].time), (Some(3), None));
        assert!(of(r#","removed":true"#).unwrap().is_empty());
        assert!(of(r#","data":"0x1""#).is_none());
    }
}
