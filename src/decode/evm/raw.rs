//! The wire forms of `eth_getTransactionByHash` and `eth_getTransactionReceipt`, and their
//! conversion to a [`Transaction`]. Hostile bytes give an error, never a panic, and take no more
//! memory than a few times their size.

use serde::Deserialize;

use super::calldata;
use super::transaction::{Log, NativeFlows, Transaction, Word};
use crate::domain::Units;

/// Bounds of one answer; blocks allow far less.
struct Limits {
    bytes: usize,
    logs: usize,
}

const LIMITS: Limits = Limits { bytes: 32 << 20, logs: 65_536 };

/// An event has at most four topics (the LOG4 instruction).
const TOPIC_COUNT_MAX: usize = 4;

/// Why an answer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    #[error("not the JSON that was asked for: {0}")]
    Json(String),
    #[error("there is no {0}")]
    Missing(&'static str),
    #[error("there are too many {0}")]
    TooMany(&'static str),
    #[error("there is a broken {0}")]
    Broken(&'static str),
}

/// Long hex is lent as bytes: as text each digit would be looked at once more than it is decoded.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTransaction<'a> {
    hash: &'a [u8],
    block_number: Option<&'a str>,
    transaction_index: Option<&'a str>,
    from: &'a [u8],
    to: Option<&'a [u8]>,
    #[serde(default)]
    value: &'a str,
    #[serde(default)]
    input: &'a [u8],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt<'a> {
    transaction_hash: &'a [u8],
    /// Absent before Byzantium, when a receipt held the state's root instead.
    status: Option<&'a str>,
    #[serde(borrow)]
    logs: Vec<RawLog<'a>>,
}

#[derive(Deserialize)]
struct RawLog<'a> {
    address: &'a [u8],
    #[serde(borrow)]
    topics: Vec<&'a [u8]>,
    data: &'a [u8],
    #[serde(default)]
    removed: bool,
}

/// Parses the answers of `eth_getTransactionByHash` and `eth_getTransactionReceipt` for one
/// transaction. Its inner calls are unknown as yet.
pub fn parse(tx: &[u8], receipt: &[u8]) -> Result<Transaction, RawError> {
    let tx: RawTransaction<'_> = read(tx, "transaction")?;
    let receipt: Receipt<'_> = read(receipt, "receipt")?;
    let hash: Word = bytes(tx.hash, "hash")?;
    if bytes(receipt.transaction_hash, "hash")? != hash {
        return Err(RawError::Broken("receipt: it belongs to another transaction"));
    }
    if receipt.logs.len() > LIMITS.logs {
        return Err(RawError::TooMany("logs"));
    }
    let block = tx.block_number.ok_or(RawError::Missing("block: it is not mined"))?;
    let index = tx.transaction_index.ok_or(RawError::Missing("position in the block"))?;
    let index = quantity(index, "position in the block")?;
    let from = bytes(tx.from, "sender")?;
    let to = tx.to.filter(|to| !to.is_empty()).map(|to| bytes(to, "recipient")).transpose()?;
    Ok(Transaction {
        hash,
        block: number(block, "block number")?,
        index: u32::try_from(index).map_err(|_| RawError::Broken("position in the block"))?,
        from,
        to,
        value: quantity(tx.value, "value")?,
        selector: selector(tx.input),
        terms: calldata::terms(tx.input, from, to),
        succeeded: receipt.status.map_or(Ok(true), |status| {
            quantity(status, "status").map(|status| !status.is_zero())
        })?,
        logs: receipt.logs.iter().map(log).collect::<Result<_, _>>()?,
        native: NativeFlows::Unknown,
    })
}

/// Parses JSON of bounded size; nodes return `null` for what they do not have.
pub(super) fn read<'a, T: Deserialize<'a>>(
    json: &'a [u8],
    what: &'static str,
) -> Result<T, RawError> {
    if json.len() > LIMITS.bytes {
        return Err(RawError::TooMany("bytes"));
    }
    let read: Option<T> =
        serde_json::from_slice(json).map_err(|e| RawError::Json(e.to_string()))?;
    read.ok_or(RawError::Missing(what))
}

fn log(raw: &RawLog<'_>) -> Result<Log, RawError> {
    if raw.removed {
        return Err(RawError::Broken("log: its block was taken back"));
    }
    if raw.topics.len() > TOPIC_COUNT_MAX {
        return Err(RawError::TooMany("topics"));
    }
    Ok(Log {
        address: bytes(raw.address, "log address")?,
        topics: raw.topics.iter().map(|topic| bytes(topic, "topic")).collect::<Result<_, _>>()?,
        data: const_hex::decode(raw.data).map_err(|_| RawError::Broken("log data"))?,
    })
}

/// An account or a word.
pub(in crate::decode) fn bytes<const N: usize>(
    digits: impl AsRef<[u8]>,
    what: &'static str,
) -> Result<[u8; N], RawError> {
    let mut bytes = [0; N];
    const_hex::decode_to_slice(digits, &mut bytes).map_err(|_| RawError::Broken(what))?;
    Ok(bytes)
}

/// A hex quantity with its prefix, without which it could be decimal; some nodes write zero as `0x`
/// or omit it.
pub(super) fn quantity(text: &str, what: &'static str) -> Result<Units, RawError> {
    if text.is_empty() {
        return Ok(Units::ZERO);
    }
    let digits = text.strip_prefix("0x").ok_or(RawError::Broken(what))?;
    if digits.is_empty() {
        return Ok(Units::ZERO);
    }
    // The number parser allows signs and underscores.
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(RawError::Broken(what));
    }
    Units::from_str_radix(digits, 16).map_err(|_| RawError::Broken(what))
}

fn number(text: &str, what: &'static str) -> Result<u64, RawError> {
    quantity(text, what)?.try_into().map_err(|_| RawError::Broken(what))
}

fn selector(input: &[u8]) -> Option<[u8; 4]> {
    let (mut bytes, digits) = ([0; 4], input.strip_prefix(b"0x").unwrap_or(input));
    const_hex::decode_to_slice(digits.get(..8)?, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";
    const TOPIC: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    const ALICE: &str = "0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const TOKEN: &str = "0xcccccccccccccccccccccccccccccccccccccccc";

    fn tx_json(more: &str) -> String {
        format!(
            r#"{{"hash":"{HASH}","blockNumber":"0x10","transactionIndex":"0x2","from":"{ALICE}",
            "to":"{TOKEN}","value":"0xde0b6b3a7640000","input":"0xa9059cbb00"{more}}}"#
        )
    }

    fn receipt_json(status: &str, logs: &str) -> String {
        format!(r#"{{"transactionHash":"{HASH}","logs":[{logs}]{status}}}"#)
    }

    fn parsed(status: &str, logs: &str) -> Result<Transaction, RawError> {
        parse(tx_json(r#","type":"0x2""#).as_bytes(), receipt_json(status, logs).as_bytes())
    }

    #[test]
    fn reads_a_transaction_with_its_receipt() {
        let log = format!(r#"{{"address":"{TOKEN}","topics":["{TOPIC}"],"data":"0x0102"}}"#);
        let tx = parsed(r#","status":"0x1""#, &log).unwrap();
        assert_eq!((tx.block, tx.index, tx.succeeded), (16, 2, true));
        assert_eq!((tx.from, tx.to), ([0xaa; 20], Some([0xcc; 20])));
        assert_eq!(tx.value, Units::from(1_000_000_000_000_000_000_u64));
        assert_eq!(tx.selector, Some([0xa9, 0x05, 0x9c, 0xbb]));
        assert_eq!(tx.logs.len(), 1);
        assert_eq!(tx.logs[0].address, [0xcc; 20]);
        assert_eq!(tx.logs[0].topics[0][..2], [0xdd, 0xf2]);
        assert_eq!(tx.logs[0].data, [1, 2]);
        assert_eq!(tx.native, NativeFlows::Unknown);
    }

    #[test]
    fn reads_a_failed_transaction_and_receipts_without_a_status() {
        assert!(!parsed(r#","status":"0x0""#, "").unwrap().succeeded);
        assert!(parsed("", "").unwrap().succeeded);
        assert!(parsed(r#","root":"0x12""#, "").unwrap().succeeded);
    }

    #[test]
    fn a_creation_has_no_recipient_and_a_plain_payment_no_selector() {
        let tx = format!(
            r#"{{"hash":"{HASH}","blockNumber":"0x0","transactionIndex":"0x0","from":"{ALICE}",
            "to":null,"value":"0x","input":"0x"}}"#
        );
        let tx = parse(tx.as_bytes(), receipt_json("", "").as_bytes()).unwrap();
        assert_eq!((tx.to, tx.selector, tx.value), (None, None, Units::ZERO));
    }

    #[test]
    fn refuses_what_is_no_transaction() {
        let receipt = receipt_json("", "");
        let check = |tx: &str, receipt: &str| parse(tx.as_bytes(), receipt.as_bytes()).unwrap_err();
        assert_eq!(check("null", &receipt), RawError::Missing("transaction"));
        assert_eq!(check(&tx_json(""), "null"), RawError::Missing("receipt"));
        assert!(matches!(check("[", &receipt), RawError::Json(_)));
        assert!(matches!(check("{}", &receipt), RawError::Json(_)));
        let other = receipt.replace("0x11", "0x21");
        assert!(matches!(check(&tx_json(""), &other), RawError::Broken(_)));
        let pending = tx_json("").replace(r#""0x10""#, "null");
        assert!(matches!(check(&pending, &receipt), RawError::Missing(_)));
        let huge = tx_json("").replace("0xde0b6b3a7640000", &format!("0x{}", "f".repeat(65)));
        assert_eq!(check(&huge, &receipt), RawError::Broken("value"));
        let signed = tx_json("").replace("0xde0b6b3a7640000", "0x+1");
        assert_eq!(check(&signed, &receipt), RawError::Broken("value"));
    }

    #[test]
    fn refuses_logs_that_cannot_be() {
        let log = |topics: &str, data: &str, more: &str| {
            parsed(
                "",
                &format!(r#"{{"address":"{TOKEN}","topics":[{topics}],"data":"{data}"{more}}}"#),
            )
        };
        let topic = format!(r#""{TOPIC}""#);
        assert!(log(&topic, "0x", "").is_ok());
        let five = [&*topic; 5].join(",");
        assert_eq!(log(&five, "0x", "").unwrap_err(), RawError::TooMany("topics"));
        assert_eq!(log("\"0x12\"", "0x", "").unwrap_err(), RawError::Broken("topic"));
        assert_eq!(log(&topic, "0x1", "").unwrap_err(), RawError::Broken("log data"));
        assert!(log(&topic, "0x", r#","removed":true"#).is_err());
    }
}
