//! The wire shapes of `getTransaction` (`json` and `jsonParsed`) and how they become a
//! [`Transaction`]. Hostile bytes give an error, never a panic, and no more memory than their size.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::action;
use super::frames;
use super::transaction::{Instruction, TokenAccount, Transaction};
use crate::domain::TxId;

pub(super) type Key = [u8; 32];

/// What one transaction may hold; the chain allows far less.
struct Limits {
    bytes: usize,
    keys: usize,
    instructions: usize,
    token_balances: usize,
}

const LIMITS: Limits =
    Limits { bytes: 8 << 20, keys: 256, instructions: 512, token_balances: 1_024 };

/// Why a reply holds no transaction that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    #[error("not the JSON of a transaction: {0}")]
    Json(String),
    #[error("the transaction has no {0}")]
    Missing(&'static str),
    #[error("the transaction has too many {0}")]
    TooMany(&'static str),
    #[error("the transaction holds a broken {0}")]
    Broken(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    slot: Option<u64>,
    block_time: Option<i64>,
    transaction_index: Option<u32>,
    #[serde(borrow)]
    transaction: Signed<'a>,
    #[serde(borrow)]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Signed<'a> {
    #[serde(borrow)]
    signatures: Vec<&'a str>,
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    account_keys: Vec<KeyText<'a>>,
    header: Option<Header>,
    #[serde(borrow)]
    instructions: Vec<RawInstruction<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    num_required_signatures: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    err: Option<IgnoredAny>,
    /// Older, and where both stand the one to believe: some archives rewrite `err`.
    status: Option<Status>,
    #[serde(default)]
    fee: u64,
    pre_balances: Vec<u64>,
    post_balances: Vec<u64>,
    #[serde(borrow)]
    pre_token_balances: Option<Vec<TokenBalance<'a>>>,
    #[serde(borrow)]
    post_token_balances: Option<Vec<TokenBalance<'a>>>,
    #[serde(borrow)]
    inner_instructions: Option<Vec<InnerInstructions<'a>>>,
    #[serde(borrow)]
    log_messages: Option<&'a RawValue>,
    #[serde(borrow)]
    loaded_addresses: Option<Loaded<'a>>,
}

#[derive(Deserialize)]
enum Status {
    Ok(IgnoredAny),
    Err(IgnoredAny),
}

#[derive(Deserialize)]
struct Loaded<'a> {
    #[serde(borrow, default)]
    writable: Vec<&'a str>,
    #[serde(borrow, default)]
    readonly: Vec<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenBalance<'a> {
    account_index: u16,
    mint: &'a str,
    owner: Option<&'a str>,
    #[serde(borrow)]
    ui_token_amount: Amount<'a>,
}

#[derive(Deserialize)]
struct Amount<'a> {
    amount: &'a str,
    decimals: u8,
}

#[derive(Deserialize)]
struct InnerInstructions<'a> {
    index: usize,
    #[serde(borrow)]
    instructions: Vec<RawInstruction<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawInstruction<'a> {
    program_id_index: Option<u16>,
    program_id: Option<&'a str>,
    #[serde(borrow, default)]
    accounts: Vec<AccountRef<'a>>,
    data: Option<&'a str>,
    #[serde(borrow)]
    parsed: Option<&'a RawValue>,
    stack_height: Option<u32>,
}

/// A key as text, or as an object that holds it (`jsonParsed`).
struct KeyText<'a> {
    text: &'a str,
    signer: bool,
}

/// An account by its place among the keys, or by its text (`jsonParsed`).
enum AccountRef<'a> {
    Index(u64),
    Text(&'a str),
}

impl<'de: 'a, 'a> Deserialize<'de> for AccountRef<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RefVisitor;
        impl<'de> Visitor<'de> for RefVisitor {
            type Value = AccountRef<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an account's index or address")
            }

            fn visit_u64<E: de::Error>(self, index: u64) -> Result<Self::Value, E> {
                Ok(AccountRef::Index(index))
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(AccountRef::Text(text))
            }
        }
        deserializer.deserialize_any(RefVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for KeyText<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = KeyText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address, or an object that holds one")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(KeyText { text, signer: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut text, mut signer) = (None, false);
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    match name.as_ref() {
                        "pubkey" => text = Some(map.next_value::<&'de str>()?),
                        "signer" => signer = map.next_value()?,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                let text = text.ok_or_else(|| de::Error::missing_field("pubkey"))?;
                Ok(KeyText { text, signer })
            }
        }
        deserializer.deserialize_any(KeyVisitor)
    }
}

/// Reads one `getTransaction` result (`json` or `jsonParsed`), or a full entry of
/// `getTransactionsForAddress`.
pub fn parse(json: &[u8]) -> Result<Transaction, RawError> {
    if json.len() > LIMITS.bytes {
        return Err(RawError::TooMany("bytes"));
    }
    let entry: Entry<'_> =
        serde_json::from_slice(json).map_err(|e| RawError::Json(e.to_string()))?;
    let meta = entry.meta.ok_or(RawError::Missing("meta"))?;
    let message = entry.transaction.message;
    let keys = Keys::read(&message.account_keys, meta.loaded_addresses.as_ref())?;
    let signers = message.header.map_or_else(
        || message.account_keys.iter().filter(|key| key.signer).count(),
        |header| usize::from(header.num_required_signatures),
    );
    if meta.pre_balances.len() != keys.keys.len() || meta.post_balances.len() != keys.keys.len() {
        return Err(RawError::Broken("balance list"));
    }
    let tokens = token_accounts(&keys, meta.pre_token_balances, meta.post_token_balances)?;
    let mut reader = InstructionReader::new(&keys);
    reader.read(&message.instructions, &meta.inner_instructions.unwrap_or_default())?;
    let logs = if reader.heights_missing { meta.log_messages } else { None };
    let InstructionReader { mut instructions, accounts, data, .. } = reader;
    if let Some(logs) = logs {
        let lines: Vec<Cow<'_, str>> = serde_json::from_str(logs.get()).unwrap_or_default();
        frames::heights_from_logs(&keys.keys, &mut instructions, &lines);
    }
    frames::link(&mut instructions, &accounts);
    Ok(Transaction {
        slot: entry.slot.ok_or(RawError::Missing("slot"))?,
        block_time: entry.block_time,
        index: entry.transaction_index,
        id: entry.transaction.signatures.first().and_then(|text| TxId::parse_solana(text)),
        failed: match meta.status {
            Some(Status::Ok(_)) => false,
            Some(Status::Err(_)) => true,
            None => meta.err.is_some(),
        },
        fee: meta.fee,
        signers,
        lamports: meta.pre_balances.into_iter().zip(meta.post_balances).collect(),
        keys: keys.keys,
        tokens,
        instructions,
        accounts,
        data,
    })
}

/// The keys as bytes, and as the text by which `jsonParsed` refers to them.
pub(super) struct Keys<'a> {
    keys: Vec<Key>,
    texts: Vec<&'a str>,
}

impl<'a> Keys<'a> {
    fn read(listed: &[KeyText<'a>], loaded: Option<&Loaded<'a>>) -> Result<Self, RawError> {
        let mut texts: Vec<&str> = listed.iter().map(|key| key.text).collect();
        // In `jsonParsed` the list is whole already.
        if let Some(loaded) = loaded {
            let more = loaded.writable.iter().chain(&loaded.readonly);
            if !more.clone().all(|text| texts.contains(text)) {
                texts.extend(more);
            }
        }
        if texts.len() > LIMITS.keys {
            return Err(RawError::TooMany("account keys"));
        }
        let keys = texts.iter().map(|text| key(text)).collect::<Result<_, _>>()?;
        Ok(Self { keys, texts })
    }

    /// Place of an address among the keys.
    pub(super) fn find(&self, text: &str) -> Option<u8> {
        self.texts.iter().position(|known| *known == text).and_then(|at| u8::try_from(at).ok())
    }
}

pub(super) fn key(text: &str) -> Result<Key, RawError> {
    let mut bytes = [0; 32];
    five8::decode_32(text, &mut bytes).map_err(|_| RawError::Broken("address"))?;
    Ok(bytes)
}

fn token_accounts(
    keys: &Keys<'_>,
    before: Option<Vec<TokenBalance<'_>>>,
    after: Option<Vec<TokenBalance<'_>>>,
) -> Result<Vec<TokenAccount>, RawError> {
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before.len().max(after.len()) > LIMITS.token_balances {
        return Err(RawError::TooMany("token balances"));
    }
    let mut accounts: Vec<TokenAccount> = Vec::with_capacity(before.len() + 4);
    for (balances, is_before) in [(before, true), (after, false)] {
        for balance in balances {
            let account = u8::try_from(balance.account_index)
                .ok()
                .filter(|at| usize::from(*at) < keys.keys.len())
                .ok_or(RawError::Broken("token balance"))?;
            let amount = balance.ui_token_amount.amount;
            let units = amount.parse().map_err(|_| RawError::Broken("token amount"))?;
            let mint = key(balance.mint)?;
            let owner = balance.owner.map(key).transpose()?;
            let at = accounts.iter().position(|a| a.account == account && a.mint == mint);
            let at = at.unwrap_or_else(|| {
                let decimals = balance.ui_token_amount.decimals;
                accounts.push(TokenAccount::new(account, mint, decimals));
                accounts.len() - 1
            });
            let Some(told) = accounts.get_mut(at) else { continue };
            if is_before {
                (told.before, told.owner_before) = (Some(units), owner);
            } else {
                (told.after, told.owner_after) = (Some(units), owner);
            }
        }
    }
    Ok(accounts)
}

struct InstructionReader<'a> {
    keys: &'a Keys<'a>,
    instructions: Vec<Instruction>,
    accounts: Vec<u8>,
    data: String,
    heights_missing: bool,
}

impl<'a> InstructionReader<'a> {
    fn new(keys: &'a Keys<'a>) -> Self {
        Self {
            keys,
            instructions: Vec::with_capacity(32),
            accounts: Vec::with_capacity(256),
            data: String::with_capacity(2_048),
            heights_missing: false,
        }
    }

    fn read(
        &mut self,
        outer: &[RawInstruction<'_>],
        inner: &[InnerInstructions<'_>],
    ) -> Result<(), RawError> {
        for (at, instruction) in outer.iter().enumerate() {
            self.push(instruction, 1)?;
            for group in inner.iter().filter(|group| group.index == at) {
                for instruction in &group.instructions {
                    self.heights_missing |= instruction.stack_height.is_none();
                    let height = instruction.stack_height.and_then(|h| u8::try_from(h).ok());
                    self.push(instruction, height.unwrap_or(0))?;
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, raw: &RawInstruction<'_>, height: u8) -> Result<(), RawError> {
        if self.instructions.len() >= LIMITS.instructions {
            return Err(RawError::TooMany("instructions"));
        }
        let program = match (raw.program_id_index, raw.program_id) {
            (Some(index), _) => u8::try_from(index).ok(),
            (None, Some(text)) => self.keys.find(text),
            (None, None) => None,
        };
        let program = program.ok_or(RawError::Broken("program index"))?;
        let program_key =
            self.keys.keys.get(usize::from(program)).ok_or(RawError::Broken("program index"))?;
        let start = self.accounts.len();
        for account in &raw.accounts {
            let index = match account {
                AccountRef::Index(index) => u8::try_from(*index).ok(),
                AccountRef::Text(text) => self.keys.find(text),
            };
            let index = index.filter(|at| usize::from(*at) < self.keys.keys.len());
            self.accounts.push(index.ok_or(RawError::Broken("account index"))?);
        }
        let listed = self.accounts.get(start..).unwrap_or_default();
        let accounts = start..self.accounts.len();
        let data_start = self.data.len();
        if !action::is_built_in(program_key) {
            self.data.push_str(raw.data.unwrap_or_default());
        }
        let data = data_start..self.data.len();
        let instructions = &mut self.instructions;
        let mut add = |action| {
            let (accounts, data) = (accounts.clone(), data.clone());
            instructions.push(Instruction {
                program,
                height,
                parent: None,
                accounts,
                data,
                action,
            });
        };
        if let Some(parsed) = raw.parsed {
            add(action::from_parsed(program_key, parsed, self.keys));
        } else {
            let data = raw.data.unwrap_or_default();
            action::from_data(program_key, data, listed, &self.keys.keys, add);
        }
        // A batch is many instructions in one.
        if self.instructions.len() > LIMITS.instructions {
            return Err(RawError::TooMany("instructions"));
        }
        Ok(())
    }
}
