//! Parses `eth_getTransactionByHash` and `eth_getTransactionReceipt` and converts them to a
//! [`Transaction`]. Hostile input gives an error, never a panic, and takes no more memory than a
//! few times its size.

use serde::Deserialize;

use super::calldata;
use super::transaction::{Log, NativeFlows, Topics, Transaction, Word};
use crate::decode::json::{Reader, Unread};
use crate::domain::Units;

/// Bounds of one answer; blocks allow far less.
struct Limits {
    bytes: usize,
    logs: usize,
}

const LIMITS: Limits = Limits { bytes: 32 << 20, logs: 65_536 };

/// Hex digits of an account and of a word.
const ACCOUNT_DIGITS: usize = 40;
const WORD_DIGITS: usize = 64;

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

/// The used fields of `eth_getTransactionByHash`; hex strings are borrowed.
#[derive(Default)]
struct RawTransaction<'a> {
    hash: Option<&'a [u8]>,
    block_number: Option<&'a [u8]>,
    transaction_index: Option<&'a [u8]>,
    from: Option<&'a [u8]>,
    to: Option<&'a [u8]>,
    value: &'a [u8],
    input: &'a [u8],
}

#[derive(Default)]
struct Receipt<'a> {
    transaction_hash: Option<&'a [u8]>,
    /// Absent before Byzantium, when receipts held the state root instead.
    status: Option<&'a [u8]>,
    logs: Option<Vec<Log>>,
}

type Read<T> = Result<T, RawError>;

impl From<Unread> for RawError {
    fn from(Unread(at): Unread) -> Self {
        Self::Json(format!("not as expected at byte {at}"))
    }
}

/// Parses the answers of `eth_getTransactionByHash` and `eth_getTransactionReceipt` for one
/// transaction. Its inner calls are not known yet.
pub fn parse(tx: &[u8], receipt: &[u8]) -> Read<Transaction> {
    let tx = whole(tx, "transaction", transaction)?;
    let receipt = whole(receipt, "receipt", self::receipt)?;
    let hash: Word = present(tx.hash, "hash")?;
    if present(receipt.transaction_hash, "hash")? != hash {
        return Err(RawError::Broken("receipt: it belongs to another transaction"));
    }
    let block = tx.block_number.ok_or(RawError::Missing("block: it is not mined"))?;
    let index = tx.transaction_index.ok_or(RawError::Missing("position in the block"))?;
    let index = number(index, "position in the block")?;
    let from = present(tx.from, "sender")?;
    let to = tx.to.filter(|to| !to.is_empty()).map(|to| bytes(to, "recipient")).transpose()?;
    Ok(Transaction {
        hash,
        block: number(block, "block number")?,
        index: u32::try_from(index).map_err(|_| RawError::Broken("position in the block"))?,
        producer: None,
        from,
        to,
        value: digits(tx.value, "value")?,
        selector: selector(tx.input),
        terms: calldata::terms(tx.input, from, to),
        succeeded: receipt
            .status
            .map_or(Ok(true), |status| digits(status, "status").map(|status| !status.is_zero()))?,
        logs: receipt.logs.ok_or(RawError::Missing("logs"))?,
        native: NativeFlows::Unknown,
    })
}

/// Parses an answer of bounded size. Nodes return `null` for what they do not have.
fn whole<'a, T>(
    json: &'a [u8],
    what: &'static str,
    each: impl FnOnce(&mut Reader<'a>) -> Read<T>,
) -> Read<T> {
    if json.len() > LIMITS.bytes {
        return Err(RawError::TooMany("bytes"));
    }
    let mut reader = Reader::new(json);
    let read = reader.optional(each)?;
    reader.end()?;
    read.ok_or(RawError::Missing(what))
}

fn transaction<'a>(r: &mut Reader<'a>) -> Read<RawTransaction<'a>> {
    let mut tx = RawTransaction::default();
    r.object(|r, name| -> Read<()> {
        match name {
            b"hash" => tx.hash = Some(r.text()?),
            b"blockNumber" => tx.block_number = r.optional(Reader::text)?,
            b"transactionIndex" => tx.transaction_index = r.optional(Reader::text)?,
            b"from" => tx.from = Some(r.text()?),
            b"to" => tx.to = r.optional(Reader::text)?,
            b"value" => tx.value = r.text()?,
            b"input" => tx.input = r.long_text()?,
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    Ok(tx)
}

fn receipt<'a>(r: &mut Reader<'a>) -> Read<Receipt<'a>> {
    let mut receipt = Receipt::default();
    r.object(|r, name| -> Read<()> {
        match name {
            b"transactionHash" => receipt.transaction_hash = Some(r.text()?),
            b"status" => receipt.status = r.optional(Reader::text)?,
            b"logs" => receipt.logs = Some(logs(r)?),
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    Ok(receipt)
}

fn logs(r: &mut Reader<'_>) -> Read<Vec<Log>> {
    let mut logs = Vec::new();
    r.array(|r| {
        logs.push(log(r)?);
        if logs.len() > LIMITS.logs { Err(RawError::TooMany("logs")) } else { Ok(()) }
    })?;
    Ok(logs)
}

fn log(r: &mut Reader<'_>) -> Read<Log> {
    let (mut address, mut topics, mut data, mut removed) = (None, None, None, false);
    r.object(|r, name| -> Read<()> {
        match name {
            b"address" => address = Some(bytes(r.text_of(ACCOUNT_DIGITS)?, "log address")?),
            b"topics" => topics = Some(self::topics(r)?),
            b"data" => {
                let read = const_hex::decode(r.long_text()?);
                data = Some(read.map_err(|_| RawError::Broken("log data"))?);
            }
            b"removed" => removed = r.optional(Reader::boolean)? == Some(true),
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    if removed {
        return Err(RawError::Broken("log: its block was taken back"));
    }
    let (Some(address), Some(topics), Some(data)) = (address, topics, data) else {
        return Err(RawError::Missing("part of a log"));
    };
    Ok(Log { address, topics, data })
}

fn topics(r: &mut Reader<'_>) -> Read<Topics> {
    let mut topics = Topics::new();
    r.array(|r| {
        if topics.len() == topics.inline_size() {
            return Err(RawError::TooMany("topics"));
        }
        topics.push(bytes(r.text_of(WORD_DIGITS)?, "topic")?);
        Ok(())
    })?;
    Ok(topics)
}

/// Parses JSON of bounded size; nodes return `null` for what they do not have.
pub(super) fn read<'a, T: Deserialize<'a>>(json: &'a [u8], what: &'static str) -> Read<T> {
    if json.len() > LIMITS.bytes {
        return Err(RawError::TooMany("bytes"));
    }
    let read: Option<T> =
        serde_json::from_slice(json).map_err(|e| RawError::Json(e.to_string()))?;
    read.ok_or(RawError::Missing(what))
}

fn present<const N: usize>(text: Option<&[u8]>, what: &'static str) -> Read<[u8; N]> {
    bytes(text.ok_or(RawError::Missing(what))?, what)
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

/// A hex quantity. The `0x` prefix is required, because without it the number could be decimal.
/// Some nodes write zero as `0x` or omit it.
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

/// [`quantity`] of bytes.
fn digits(text: &[u8], what: &'static str) -> Read<Units> {
    quantity(std::str::from_utf8(text).map_err(|_| RawError::Broken(what))?, what)
}

fn number(text: &[u8], what: &'static str) -> Read<u64> {
    digits(text, what)?.try_into().map_err(|_| RawError::Broken(what))
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
        assert_eq!(check("{}", &receipt), RawError::Missing("hash"));
        assert!(matches!(check(&tx_json(""), &format!("{receipt}}}")), RawError::Json(_)));
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
        assert!(log(&topic, "0x", r#","removed":null"#).is_ok());
        let five = [&*topic; 5].join(",");
        assert_eq!(log(&five, "0x", "").unwrap_err(), RawError::TooMany("topics"));
        // Shorter than a word, also if more topics follow.
        let behind = format!(r#""0x12",{topic},{topic}"#);
        assert_eq!(log(&behind, "0x", "").unwrap_err(), RawError::Broken("topic"));
        assert!(log(r#""0x12""#, "0x", "").is_err());
        assert_eq!(log(&topic, "0x1", "").unwrap_err(), RawError::Broken("log data"));
        assert!(log(&topic, "0x", r#","removed":true"#).is_err());
    }
}
