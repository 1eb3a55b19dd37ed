//! The wire form of `getTransaction` (`json` and `jsonParsed`), borrowed from the reply.

use super::call_log::CallLog;
use super::raw_error::{LIMITS, RawError};
use crate::decode::json::{Reader, Unread};

/// The shortest base58 text of 32 bytes.
const ADDRESS_LEN_MIN: usize = 32;

/// The fields of a reply that are used.
#[derive(Debug, Default)]
pub(super) struct ReplyEntry<'a> {
    pub(super) slot: Option<u64>,
    pub(super) block_time: Option<i64>,
    pub(super) transaction_index: Option<u32>,
    pub(super) message: Option<Message<'a>>,
    pub(super) meta: Option<Meta<'a>>,
    /// The accounts of all instructions, outer and inner.
    pub(super) accounts: Vec<AccountRef<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    /// The first one.
    pub(super) signature: Option<&'a [u8]>,
    pub(super) account_keys: Vec<KeyText<'a>>,
    /// In `json` only.
    pub(super) signers: Option<u64>,
    pub(super) instructions: Vec<RawInstruction<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct Meta<'a> {
    pub(super) failed: bool,
    /// The older form of `err`, preferred if both are present, because some archives rewrite `err`.
    pub(super) status: Option<bool>,
    pub(super) fee: u64,
    pub(super) pre_balances: Vec<u64>,
    pub(super) post_balances: Vec<u64>,
    /// `None`, here and for inner instructions: the node did not record or return them.
    pub(super) pre_token_balances: Option<Vec<TokenBalance<'a>>>,
    pub(super) post_token_balances: Option<Vec<TokenBalance<'a>>>,
    /// Each with the index of its outer instruction.
    pub(super) inner_instructions: Option<Vec<(u64, RawInstruction<'a>)>>,
    pub(super) log: Option<CallLog<'a>>,
    pub(super) writable: Vec<&'a [u8]>,
    pub(super) readonly: Vec<&'a [u8]>,
}

/// A key as text, or as an object that contains it (`jsonParsed`).
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyText<'a> {
    pub(super) text: &'a [u8],
    pub(super) signer: bool,
}

#[derive(Debug)]
pub(super) struct TokenBalance<'a> {
    pub(super) account_index: u64,
    pub(super) mint: &'a [u8],
    pub(super) owner: Option<&'a [u8]>,
    pub(super) amount: &'a [u8],
    pub(super) decimals: u64,
}

#[derive(Debug, Default)]
pub(super) struct RawInstruction<'a> {
    pub(super) program: Option<AccountRef<'a>>,
    /// Range in the entry's accounts.
    pub(super) accounts: std::ops::Range<usize>,
    pub(super) data: &'a [u8],
    pub(super) parsed: Option<&'a [u8]>,
    pub(super) stack_height: Option<u64>,
}

/// An account by its index among the keys, or by its text (`jsonParsed`).
#[derive(Debug, Clone, Copy)]
pub(super) enum AccountRef<'a> {
    Index(u64),
    Text(&'a [u8]),
}

type Read<T> = Result<T, RawError>;

impl From<Unread> for RawError {
    fn from(Unread(at): Unread) -> Self {
        Self::Json(format!("not as expected at byte {at}"))
    }
}

pub(super) fn read(json: &[u8]) -> Read<ReplyEntry<'_>> {
    let mut entry = ReplyEntry { accounts: Vec::with_capacity(256), ..ReplyEntry::default() };
    let mut reader = Reader::new(json);
    let accounts = &mut entry.accounts;
    reader.object(|r, name| -> Read<()> {
        match name {
            b"slot" => entry.slot = r.optional(Reader::unsigned)?,
            b"blockTime" => entry.block_time = r.optional(Reader::signed)?,
            b"transactionIndex" => entry.transaction_index = r.optional(index)?,
            b"transaction" => entry.message = Some(signed(r, accounts)?),
            b"meta" => entry.meta = r.optional(|r| meta(r, accounts))?,
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    reader.end()?;
    Ok(entry)
}

fn index(r: &mut Reader<'_>) -> Result<u32, Unread> {
    let number = r.unsigned()?;
    u32::try_from(number).or_else(|_| r.fail())
}

fn signed<'a>(r: &mut Reader<'a>, accounts: &mut Vec<AccountRef<'a>>) -> Read<Message<'a>> {
    let (mut read, mut signature) = (None, None);
    r.object(|r, name| -> Read<()> {
        match name {
            b"signatures" => r.array(|r| {
                let text = r.text()?;
                signature.get_or_insert(text);
                Read::Ok(())
            })?,
            b"message" => read = Some(message(r, accounts)?),
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    let message = read.ok_or(RawError::Missing("message"))?;
    Ok(Message { signature, ..message })
}

fn message<'a>(r: &mut Reader<'a>, accounts: &mut Vec<AccountRef<'a>>) -> Read<Message<'a>> {
    let mut message = Message {
        account_keys: Vec::with_capacity(32),
        instructions: Vec::with_capacity(8),
        ..Message::default()
    };
    r.object(|r, name| -> Read<()> {
        match name {
            b"accountKeys" => r.array(|r| {
                message.account_keys.push(key_text(r)?);
                within(message.account_keys.len(), LIMITS.keys, "account keys")
            })?,
            b"header" => {
                let header = r.optional(header)?;
                message.signers = header.flatten();
            }
            b"instructions" => r.array(|r| {
                message.instructions.push(instruction(r, accounts)?);
                within(message.instructions.len(), LIMITS.instructions, "instructions")
            })?,
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    Ok(message)
}

/// A string in the place of an address.
fn address<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], Unread> {
    r.text_of(ADDRESS_LEN_MIN)
}

fn header(r: &mut Reader<'_>) -> Read<Option<u64>> {
    let mut signers = None;
    r.object(|r, name| -> Read<()> {
        match name {
            b"numRequiredSignatures" => signers = Some(r.unsigned()?),
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    Ok(signers)
}

fn key_text<'a>(r: &mut Reader<'a>) -> Read<KeyText<'a>> {
    if r.peek() == Some(b'"') {
        return Ok(KeyText { text: address(r)?, signer: false });
    }
    r.usual(key_object).map_or_else(|| any_key_object(r), Ok)
}

fn key_object<'a>(r: &mut Reader<'a>) -> Option<KeyText<'a>> {
    r.next(b"{\"pubkey\":")?;
    let text = address(r).ok()?;
    r.next(b",\"signer\":")?;
    let signer = r.boolean().ok()?;
    if r.next(b",\"source\":").is_some() {
        r.text().ok()?;
    }
    r.next(b",\"writable\":")?;
    r.boolean().ok()?;
    r.next(b"}")?;
    Some(KeyText { text, signer })
}

fn any_key_object<'a>(r: &mut Reader<'a>) -> Read<KeyText<'a>> {
    let (mut text, mut signer) = (None, false);
    r.object(|r, name| -> Read<()> {
        match name {
            b"pubkey" => text = Some(address(r)?),
            b"signer" => signer = r.boolean()?,
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    Ok(KeyText { text: text.ok_or(RawError::Missing("public key"))?, signer })
}

fn meta<'a>(r: &mut Reader<'a>, accounts: &mut Vec<AccountRef<'a>>) -> Read<Meta<'a>> {
    let mut meta = Meta::default();
    r.object(|r, name| -> Read<()> {
        match name {
            b"err" => meta.failed = r.optional(Reader::skip)?.is_some(),
            b"status" => meta.status = r.optional(status)?,
            b"fee" => meta.fee = r.unsigned()?,
            b"preBalances" => meta.pre_balances = balances(r)?,
            b"postBalances" => meta.post_balances = balances(r)?,
            b"preTokenBalances" => meta.pre_token_balances = token_balances(r)?,
            b"postTokenBalances" => meta.post_token_balances = token_balances(r)?,
            b"innerInstructions" => {
                meta.inner_instructions = inner(r, accounts)?;
            }
            b"logMessages" => meta.log = r.optional(CallLog::read)?,
            b"loadedAddresses" => drop(r.optional(|r| loaded(r, &mut meta))?),
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    Ok(meta)
}

fn status(r: &mut Reader<'_>) -> Read<bool> {
    let mut failed = None;
    r.object(|r, name| -> Read<()> {
        match name {
            b"Ok" => failed = Some(false),
            b"Err" => failed = Some(true),
            _ => {}
        }
        r.skip()?;
        Ok(())
    })?;
    failed.ok_or(RawError::Broken("status"))
}

fn balances(r: &mut Reader<'_>) -> Read<Vec<u64>> {
    let mut list = Vec::with_capacity(32);
    r.array(|r| {
        list.push(r.unsigned()?);
        within(list.len(), LIMITS.keys, "balances")
    })?;
    Ok(list)
}

fn token_balances<'a>(r: &mut Reader<'a>) -> Read<Option<Vec<TokenBalance<'a>>>> {
    let mut list = Vec::with_capacity(8);
    let given = r.optional(|r| {
        r.array(|r| {
            list.push(token_balance(r)?);
            within(list.len(), LIMITS.token_balances, "token balances")
        })
    })?;
    Ok(given.map(|()| list))
}

fn token_balance<'a>(r: &mut Reader<'a>) -> Read<TokenBalance<'a>> {
    r.usual(usual_token_balance).map_or_else(|| any_token_balance(r), Ok)
}

fn usual_token_balance<'a>(r: &mut Reader<'a>) -> Option<TokenBalance<'a>> {
    r.next(b"{\"accountIndex\":")?;
    let account_index = r.unsigned().ok()?;
    r.next(b",\"mint\":")?;
    let mint = address(r).ok()?;
    r.next(b",\"owner\":")?;
    let owner = Some(address(r).ok()?);
    r.next(b",\"programId\":")?;
    let token = r.next(b"\"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA\"");
    token.or_else(|| r.text().ok().map(drop))?;
    r.next(b",\"uiTokenAmount\":")?;
    let (amount, decimals) = token_amount(r).ok()?;
    r.next(b"}")?;
    Some(TokenBalance { account_index, mint, owner, amount, decimals })
}

fn any_token_balance<'a>(r: &mut Reader<'a>) -> Read<TokenBalance<'a>> {
    let (mut account, mut mint, mut owner, mut tokens) = (None, None, None, None);
    r.object(|r, name| -> Read<()> {
        match name {
            b"accountIndex" => account = Some(r.unsigned()?),
            b"mint" => mint = Some(address(r)?),
            b"owner" => owner = r.optional(address)?,
            b"uiTokenAmount" => tokens = Some(token_amount(r)?),
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    let missing = RawError::Missing("token balance");
    let ((account_index, mint), (amount, decimals)) =
        account.zip(mint).zip(tokens).ok_or(missing)?;
    Ok(TokenBalance { account_index, mint, owner, amount, decimals })
}

fn token_amount<'a>(r: &mut Reader<'a>) -> Read<(&'a [u8], u64)> {
    r.usual(usual_token_amount).map_or_else(|| any_token_amount(r), Ok)
}

fn usual_token_amount<'a>(r: &mut Reader<'a>) -> Option<(&'a [u8], u64)> {
    r.next(b"{\"amount\":")?;
    let amount = r.text().ok()?;
    r.next(b",\"decimals\":")?;
    let decimals = r.unsigned().ok()?;
    r.next(b",\"uiAmount\":")?;
    r.skip().ok()?;
    r.next(b",\"uiAmountString\":")?;
    r.text().ok()?;
    r.next(b"}")?;
    Some((amount, decimals))
}

fn any_token_amount<'a>(r: &mut Reader<'a>) -> Read<(&'a [u8], u64)> {
    let (mut amount, mut decimals) = (None, None);
    r.object(|r, name| -> Read<()> {
        match name {
            b"amount" => amount = Some(r.text()?),
            b"decimals" => decimals = Some(r.unsigned()?),
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    amount.zip(decimals).ok_or(RawError::Missing("token amount"))
}

fn inner<'a>(
    r: &mut Reader<'a>,
    accounts: &mut Vec<AccountRef<'a>>,
) -> Read<Option<Vec<(u64, RawInstruction<'a>)>>> {
    let mut list: Vec<(u64, RawInstruction<'a>)> = Vec::with_capacity(32);
    let given = r.optional(|r| {
        r.array(|r| {
            let (first, mut index) = (list.len(), None);
            r.object(|r, name| -> Read<()> {
                match name {
                    b"index" => index = Some(r.unsigned()?),
                    b"instructions" => r.array(|r| {
                        list.push((0, instruction(r, accounts)?));
                        within(list.len(), LIMITS.instructions, "instructions")
                    })?,
                    _ => drop(r.skip()?),
                }
                Ok(())
            })?;
            let index = index.ok_or(RawError::Missing("index of inner instructions"))?;
            for (outer, _) in list.get_mut(first..).unwrap_or_default() {
                *outer = index;
            }
            Read::Ok(())
        })
    })?;
    Ok(given.map(|()| list))
}

fn instruction<'a>(
    r: &mut Reader<'a>,
    accounts: &mut Vec<AccountRef<'a>>,
) -> Read<RawInstruction<'a>> {
    let known = accounts.len();
    if let Some(raw) = r.usual(|r| usual_instruction(r, accounts)) {
        return Ok(raw);
    }
    accounts.truncate(known);
    any_instruction(r, accounts)
}

fn usual_instruction<'a>(
    r: &mut Reader<'a>,
    accounts: &mut Vec<AccountRef<'a>>,
) -> Option<RawInstruction<'a>> {
    let mut raw = RawInstruction { accounts: accounts.len()..accounts.len(), ..Default::default() };
    if r.next(b"{\"accounts\":").is_some() {
        raw.accounts = account_list(r, accounts).ok()?;
        r.next(b",\"data\":")?;
        raw.data = r.text().ok()?;
    } else {
        r.next(b"{\"parsed\":")?;
        raw.parsed = r.optional(Reader::skip).ok()?;
        r.next(b",\"program\":")?;
        r.text().ok()?;
    }
    raw.program = if r.next(b",\"programIdIndex\":").is_some() {
        r.unsigned().ok().map(AccountRef::Index)
    } else {
        r.next(b",\"programId\":")?;
        address(r).ok().map(AccountRef::Text)
    };
    if r.next(b",\"stackHeight\":").is_some() {
        raw.stack_height = r.optional(Reader::unsigned).ok()?;
    }
    r.next(b"}")?;
    Some(raw)
}

/// The range in the entry's accounts.
fn account_list<'a>(
    r: &mut Reader<'a>,
    accounts: &mut Vec<AccountRef<'a>>,
) -> Read<std::ops::Range<usize>> {
    let start = accounts.len();
    r.array(|r| {
        accounts.push(account_ref(r)?);
        within(accounts.len(), LIMITS.accounts, "accounts of instructions")
    })?;
    Ok(start..accounts.len())
}

fn any_instruction<'a>(
    r: &mut Reader<'a>,
    accounts: &mut Vec<AccountRef<'a>>,
) -> Read<RawInstruction<'a>> {
    let mut raw = RawInstruction { accounts: accounts.len()..accounts.len(), ..Default::default() };
    r.object(|r, name| -> Read<()> {
        match name {
            b"programIdIndex" => raw.program = r.optional(account_ref)?,
            b"programId" => raw.program = raw.program.or(r.optional(account_ref)?),
            b"accounts" => raw.accounts = account_list(r, accounts)?,
            b"data" => raw.data = r.optional(Reader::text)?.unwrap_or_default(),
            b"parsed" => raw.parsed = r.optional(Reader::skip)?,
            b"stackHeight" => raw.stack_height = r.optional(Reader::unsigned)?,
            _ => drop(r.skip()?),
        }
        Ok(())
    })?;
    Ok(raw)
}

#[inline]
fn account_ref<'a>(r: &mut Reader<'a>) -> Result<AccountRef<'a>, Unread> {
    if r.peek() == Some(b'"') {
        address(r).map(AccountRef::Text)
    } else {
        r.unsigned().map(AccountRef::Index)
    }
}

fn loaded<'a>(r: &mut Reader<'a>, meta: &mut Meta<'a>) -> Read<()> {
    r.object(|r, name| -> Read<()> {
        let list = match name {
            b"writable" => &mut meta.writable,
            b"readonly" => &mut meta.readonly,
            _ => {
                r.skip()?;
                return Ok(());
            }
        };
        r.array(|r| {
            list.push(address(r)?);
            within(list.len(), LIMITS.keys, "account keys")
        })
    })
}

fn within(len: usize, limit: usize, what: &'static str) -> Read<()> {
    if len > limit { Err(RawError::TooMany(what)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    const KEY: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";

    /// Asserts that the usual text, its members in reverse order, and a spaced form read alike.
    fn same<'a, T: Debug>(members: &[&str], read: impl Fn(&mut Reader<'a>) -> Read<T>) -> String {
        let mut others = members.to_vec();
        others.reverse();
        let texts = [members.join(","), others.join(","), members.join(" ,\n ")];
        let read_back = texts.map(|text| {
            let json: &'a str = String::leak(format!("{{{text}}}").replace("KEY", KEY));
            let mut reader = Reader::new(json.as_bytes());
            let read_back = format!("{:?}", read(&mut reader));
            assert_eq!(reader.end(), Ok(()), "{json}");
            read_back
        });
        assert!(read_back.iter().all(|other| *other == read_back[0]), "{read_back:#?}");
        read_back[0].clone()
    }

    #[test]
    fn members_may_stand_in_any_order() {
        let amount = [r#""amount":"15""#, r#""decimals":6"#, r#""uiAmount":1.5e-5"#];
        let amount = [amount.as_slice(), &[r#""uiAmountString":"0.000015""#]].concat();
        assert_eq!(same(&amount, token_amount), "Ok(([49, 53], 6))");
        let tokens = format!(r#""uiTokenAmount":{{{}}}"#, amount.join(","));
        let start = [r#""accountIndex":3"#, r#""mint":"KEY""#, r#""owner":"KEY""#];
        for program in [r#""programId":"KEY""#, r#""programId":"KE\"Y""#] {
            let read_back = same(&[start.as_slice(), &[program, &tokens]].concat(), token_balance);
            assert!(
                read_back.contains("account_index: 3") && read_back.contains("decimals: 6"),
                "{read_back}"
            );
        }
        let key = [r#""pubkey":"KEY""#, r#""signer":true"#, r#""source":"lookupTable""#];
        let read_back = same(&[key.as_slice(), &[r#""writable":false"#]].concat(), key_text);
        assert!(read_back.contains("signer: true"), "{read_back}");
    }

    #[test]
    fn instructions_are_read_in_any_order() {
        let read = |r: &mut Reader<'_>| {
            let mut accounts = vec![AccountRef::Index(9)];
            let raw = instruction(r, &mut accounts)?;
            Ok(format!("{raw:?} {accounts:?}"))
        };
        let data = [r#""accounts":[0,12,255]"#, r#""data":"3Bxs""#];
        let program = [r#""programIdIndex":7"#, r#""stackHeight":2"#];
        let read_back = same(&[data, program].concat(), read);
        let wanted = ["Index(7)", "1..4", "Some(2)", "Index(9), Index(0), Index(12), Index(255)]"];
        assert!(wanted.iter().all(|wanted| read_back.contains(wanted)), "{read_back}");
        let program = [r#""programId":"KEY""#, r#""stackHeight":null"#];
        let parsed = [r#""parsed":{"info":{},"type":"x"}"#, r#""program":"spl-token""#];
        let read_back = same(&[parsed, program].concat(), read);
        assert!(read_back.contains("1..1") && read_back.contains("parsed: Some"), "{read_back}");
        let listed = [r#""accounts":["KEY","KEY"]"#, r#""data":"""#];
        assert!(same(&[listed, program].concat(), read).contains("1..3"));
    }
}
