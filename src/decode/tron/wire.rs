//! The used fields of `gettransactionbyid` and `gettransactioninfobyid`, borrowed from the answers.

use crate::decode::evm::{Account, Log, RawError, Topics, Word, bytes};
use crate::decode::json::Reader;
use crate::domain::{Address, Family};

/// Limit of a list in an answer, with its name for errors. Blocks allow far less.
type Bound = (usize, &'static str);
const LOGS: Bound = (65_536, "logs");
const INTERNAL: Bound = (65_536, "internal transactions");
const CALL_VALUES: Bound = (65_536, "values of an internal transaction");
const ORDERS: Bound = (65_536, "orders");
const CONTRACTS: Bound = (1_024, "contracts");
/// The initial capacity of lists; most are no longer.
const ROOM: usize = 8;
/// Hex digits of a word.
const WORD_DIGITS: usize = 64;

/// A transaction with its first contract. The protocol allows only one.
#[derive(Default)]
pub(super) struct RawTransaction<'a> {
    pub(super) id: Option<&'a [u8]>,
    pub(super) results: Vec<Option<&'a [u8]>>,
    pub(super) contract: Option<RawContract<'a>>,
}

#[derive(Default)]
pub(super) struct RawContract<'a> {
    pub(super) kind: &'a [u8],
    pub(super) value: CallFields<'a>,
}

/// The used fields of all kinds of contract.
#[derive(Default)]
pub(super) struct CallFields<'a> {
    pub(super) owner: &'a [u8],
    pub(super) contract: Option<&'a [u8]>,
    pub(super) to: Option<&'a [u8]>,
    pub(super) data: &'a [u8],
    pub(super) called_with: u64,
    pub(super) amount: u64,
    pub(super) called_with_token: u64,
    pub(super) token_id: Option<TokenId<'a>>,
    pub(super) asset_name: Option<&'a [u8]>,
    /// The TRX that is sent to a contract with its creation.
    pub(super) created_with: u64,
    pub(super) exchange_id: u64,
    pub(super) quant: u64,
    pub(super) sell_token_id: Option<&'a [u8]>,
    pub(super) buy_token_id: Option<&'a [u8]>,
}

/// A number for a call's token, text for an exchange's.
#[derive(Clone, Copy)]
pub(super) enum TokenId<'a> {
    Number(u64),
    Text(&'a [u8]),
}

#[derive(Default)]
pub(super) struct Info<'a> {
    pub(super) id: Option<&'a [u8]>,
    pub(super) block: u64,
    pub(super) time_millis: Option<u64>,
    pub(super) result: Option<&'a [u8]>,
    /// The contract's own.
    pub(super) contract_result: Option<&'a [u8]>,
    pub(super) logs: Vec<Log>,
    pub(super) internal: Option<Vec<Internal<'a>>>,
    pub(super) exchange_received: u64,
    /// What each order that it filled sold and bought.
    pub(super) orders: Vec<(u64, u64)>,
}

#[derive(Default)]
pub(super) struct Internal<'a> {
    pub(super) from: &'a [u8],
    pub(super) to: Option<&'a [u8]>,
    /// The amounts that it moved, never zero, each with its token unless that is TRX.
    pub(super) values: Vec<CallValue<'a>>,
    pub(super) rejected: bool,
    /// The kind of entry, as hex: `call`, `create`, or the name of an instruction.
    pub(super) note: Option<&'a [u8]>,
}

type CallValue<'a> = (u64, Option<TokenId<'a>>);
type Read<T> = Result<T, RawError>;

/// Reads an object. `field` reads the members that it knows by name, and returns whether it did.
fn object<'a>(
    r: &mut Reader<'a>,
    mut field: impl FnMut(&mut Reader<'a>, &'a [u8]) -> Read<bool>,
) -> Read<()> {
    r.object(|r, name| {
        if !field(r, name)? {
            r.skip()?;
        }
        Ok(())
    })
}

pub(super) fn transaction<'a>(r: &mut Reader<'a>) -> Read<RawTransaction<'a>> {
    let mut tx = RawTransaction::default();
    object(r, |r, name| {
        match name {
            b"txID" => tx.id = r.optional(text)?,
            b"ret" => tx.results = list(r, CONTRACTS, |r| member(r, b"contractRet", text))?,
            b"raw_data" => tx.contract = r.optional(raw_data)?.flatten(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(tx)
}

fn raw_data<'a>(r: &mut Reader<'a>) -> Read<Option<RawContract<'a>>> {
    let contracts = member(r, b"contract", |r| list(r, CONTRACTS, contract))?;
    Ok(contracts.and_then(|contracts| contracts.into_iter().next()))
}

fn contract<'a>(r: &mut Reader<'a>) -> Read<RawContract<'a>> {
    let (mut kind, mut called) = (None, None);
    object(r, |r, name| {
        match name {
            b"type" => kind = Some(text(r)?),
            b"parameter" => called = member(r, b"value", value)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let parts = kind.zip(called).ok_or(RawError::Missing("part of a contract"))?;
    Ok(RawContract { kind: parts.0, value: parts.1 })
}

fn value<'a>(r: &mut Reader<'a>) -> Read<CallFields<'a>> {
    let (mut value, mut owner) = (CallFields::default(), None);
    object(r, |r, name| {
        match name {
            b"owner_address" => owner = Some(text(r)?),
            b"contract_address" => value.contract = r.optional(text)?,
            b"to_address" => value.to = r.optional(text)?,
            b"data" => value.data = r.optional(Reader::long_text)?.unwrap_or_default(),
            b"call_value" => value.called_with = r.unsigned()?,
            b"amount" => value.amount = r.unsigned()?,
            b"call_token_value" => value.called_with_token = r.unsigned()?,
            b"token_id" => value.token_id = r.optional(token_id)?,
            b"asset_name" => value.asset_name = r.optional(text)?,
            b"new_contract" => value.created_with = created_with(r)?,
            b"exchange_id" => value.exchange_id = r.unsigned()?,
            b"quant" => value.quant = r.unsigned()?,
            b"sell_token_id" => value.sell_token_id = r.optional(text)?,
            b"buy_token_id" => value.buy_token_id = r.optional(text)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    value.owner = owner.ok_or(RawError::Missing("owner"))?;
    Ok(value)
}

fn created_with(r: &mut Reader<'_>) -> Read<u64> {
    let called_with = r.optional(|r| member(r, b"call_value", number))?;
    Ok(called_with.flatten().unwrap_or_default())
}

fn token_id<'a>(r: &mut Reader<'a>) -> Read<TokenId<'a>> {
    if r.peek() == Some(b'"') { text(r).map(TokenId::Text) } else { number(r).map(TokenId::Number) }
}

pub(super) fn info<'a>(r: &mut Reader<'a>) -> Read<Info<'a>> {
    let mut info = Info::default();
    object(r, |r, name| {
        match name {
            b"id" => info.id = r.optional(text)?,
            b"blockNumber" => info.block = r.unsigned()?,
            b"blockTimeStamp" => info.time_millis = r.optional(number)?,
            b"result" => info.result = r.optional(text)?,
            b"receipt" => info.contract_result = r.optional(result)?.flatten(),
            b"log" => info.logs = list(r, LOGS, log)?,
            b"internal_transactions" => {
                info.internal = r.optional(|r| list(r, INTERNAL, internal))?;
            }
            b"exchange_received_amount" => info.exchange_received = r.unsigned()?,
            b"orderDetails" => info.orders = list(r, ORDERS, order)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(info)
}

fn result<'a>(r: &mut Reader<'a>) -> Read<Option<&'a [u8]>> {
    member(r, b"result", text)
}

fn internal<'a>(r: &mut Reader<'a>) -> Read<Internal<'a>> {
    let (mut internal, mut from) = (Internal::default(), None);
    object(r, |r, name| {
        match name {
            b"caller_address" => from = Some(text(r)?),
            b"transferTo_address" => internal.to = r.optional(text)?,
            b"callValueInfo" => call_values(r, &mut internal.values)?,
            b"rejected" => internal.rejected = r.boolean()?,
            b"note" if r.peek() == Some(b'"') => internal.note = Some(text(r)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    internal.from = from.ok_or(RawError::Missing("caller"))?;
    Ok(internal)
}

/// Most calls move nothing.
fn call_values<'a>(r: &mut Reader<'a>, values: &mut Vec<CallValue<'a>>) -> Read<()> {
    r.array(|r| {
        values.extend(Some(call_value(r)?).filter(|(value, _)| *value > 0));
        within(values.len(), CALL_VALUES)
    })
}

fn call_value<'a>(r: &mut Reader<'a>) -> Read<CallValue<'a>> {
    let (mut value, mut token) = (0, None);
    object(r, |r, name| {
        match name {
            b"callValue" => value = r.unsigned()?,
            b"tokenId" => token = r.optional(token_id)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((value, token))
}

fn order(r: &mut Reader<'_>) -> Read<(u64, u64)> {
    let (mut sold, mut bought) = (0, 0);
    object(r, |r, name| {
        match name {
            b"fillSellQuantity" => sold = r.unsigned()?,
            b"fillBuyQuantity" => bought = r.unsigned()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((sold, bought))
}

fn log(r: &mut Reader<'_>) -> Read<Log> {
    let (mut address, mut topics, mut data) = (None, Topics::new(), Vec::new());
    object(r, |r, name| {
        match name {
            b"address" => address = Some(account(text(r)?)?),
            b"topics" => topics = self::topics(r)?,
            b"data" => {
                let read = const_hex::decode(r.long_text()?);
                data = read.map_err(|_| RawError::Broken("log data"))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Log { address: address.ok_or(RawError::Missing("log address"))?, topics, data })
}

fn topics(r: &mut Reader<'_>) -> Read<Topics> {
    let mut topics = Topics::new();
    r.array(|r| {
        topics.push(masked(bytes(r.text_of(WORD_DIGITS)?, "topic")?));
        within(topics.len(), (topics.inline_size(), "topics"))
    })?;
    Ok(topics)
}

/// An address in a topic without the `41` prefix that callers may leave in: contracts read only the
/// last 20 bytes.
fn masked(mut topic: Word) -> Word {
    const PREFIXED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x41];
    if topic.starts_with(&PREFIXED)
        && let Some(padding) = topic.first_chunk_mut()
    {
        *padding = [0; 12];
    }
    topic
}

/// Reads the one member of an object that is used.
fn member<'a, T>(
    r: &mut Reader<'a>,
    of: &[u8],
    read: impl Fn(&mut Reader<'a>) -> Read<T>,
) -> Read<Option<T>> {
    let mut found = None;
    object(r, |r, name| {
        let is_it = name == of;
        if is_it {
            found = r.optional(&read)?;
        }
        Ok(is_it)
    })?;
    Ok(found)
}

fn number(r: &mut Reader<'_>) -> Read<u64> {
    Ok(r.unsigned()?)
}

/// A string as it is in the answer; the used fields have no escapes.
fn text<'a>(r: &mut Reader<'a>) -> Read<&'a [u8]> {
    Ok(r.string()?)
}

/// Reads an array of bounded length.
fn list<'a, T>(
    r: &mut Reader<'a>,
    bound: Bound,
    read: impl Fn(&mut Reader<'a>) -> Read<T>,
) -> Read<Vec<T>> {
    let mut list = Vec::with_capacity(ROOM);
    r.array(|r| {
        list.push(read(r)?);
        within(list.len(), bound)
    })?;
    Ok(list)
}

fn within(len: usize, (most, what): Bound) -> Read<()> {
    if len > most { Err(RawError::TooMany(what)) } else { Ok(()) }
}

/// The last 20 bytes of an address in any form: 21 bytes after `41`, 20 bytes, or `T…`.
pub fn account(text: impl AsRef<[u8]>) -> Result<Account, RawError> {
    let text = text.as_ref();
    if let (b'T', Ok(text)) = (*text.first().unwrap_or(&0), std::str::from_utf8(text))
        && let Ok(Address::Tron(account)) = Address::parse(Family::Tron, text)
    {
        return Ok(account);
    }
    let hex = text.strip_prefix(b"0x").unwrap_or(text);
    bytes(if hex.len() == 42 { hex.get(2..).unwrap_or_default() } else { hex }, "address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_in_all_spellings() {
        let usdt = "a614f803b6fd780986a42c78ec9c7f77e6ded13c";
        let expected = account(usdt).unwrap();
        for text in
            [format!("41{usdt}"), format!("0x{usdt}"), "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t".into()]
        {
            assert_eq!(account(&text).unwrap(), expected);
        }
        assert!(account("41").is_err() && account("T9").is_err());
    }
}
