//! Shapes of the answers that the source reads (Solana JSON-RPC documentation, solana.com/docs/rpc).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::list::Entry;
use crate::domain::{Height, TxId};

/// Offset and length of the balance in a token account (SPL Token: mint 32, owner 32, amount 8).
pub(super) const AMOUNT_OFFSET: usize = 64;
pub(super) const AMOUNT_BYTES: usize = 8;

#[derive(Deserialize)]
struct SignatureRow<'a> {
    #[serde(borrow)]
    signature: Cow<'a, str>,
    slot: Height,
    #[serde(default, rename = "blockTime")]
    block_time: Option<i64>,
    #[serde(default, borrow, deserialize_with = "given")]
    err: Option<&'a RawValue>,
}

/// A field's value, also where it is `null`.
fn given<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(value).map(Some)
}

/// `getSignaturesForAddress`.
pub(super) fn signatures(raw: &RawValue) -> Option<Vec<Entry>> {
    let rows: Vec<SignatureRow<'_>> = serde_json::from_str(raw.get()).ok()?;
    rows.into_iter()
        .map(|row| {
            let id = TxId::parse_solana(&row.signature)?;
            Some(Entry {
                slot: row.slot,
                id,
                time: row.block_time,
                failed: row.err.and_then(failure),
            })
        })
        .collect()
}

/// Whether a list marks a transaction as failed; with a value that is neither null nor an error,
/// the transaction itself decides.
fn failure(err: &RawValue) -> Option<bool> {
    if err.get() == "null" { Some(false) } else { is_error(err).then_some(true) }
}

/// An error is an object or a text (solana.com, `TransactionError`).
pub(super) fn is_error(err: &RawValue) -> bool {
    err.get().starts_with(['{', '"'])
}

#[derive(Deserialize)]
struct InContext<T> {
    context: Context,
    value: T,
}

/// The slot at which an answer about accounts was true.
#[derive(Deserialize)]
struct Context {
    slot: Height,
}

/// An open token account.
#[derive(Debug, Clone, Copy)]
pub(super) struct Balance {
    pub(super) account: [u8; 32],
    /// In base units.
    pub(super) amount: u64,
    /// The slot at which it had this balance.
    pub(super) at: Height,
}

#[derive(Deserialize)]
struct KeyedAccount<'a> {
    #[serde(borrow)]
    pubkey: Cow<'a, str>,
    #[serde(borrow)]
    account: AccountReply<'a>,
}

/// `getAccountInfo` and friends, data in base64.
#[derive(Deserialize)]
pub(super) struct AccountReply<'a> {
    #[serde(borrow)]
    data: (Cow<'a, str>, Cow<'a, str>),
    #[serde(borrow)]
    pub(super) owner: Cow<'a, str>,
    #[serde(default)]
    pub(super) executable: bool,
}

impl AccountReply<'_> {
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.data.0.as_bytes()).ok()
    }
}

/// `getTokenAccountsByOwner`: accounts with their balances, and the slot. A node that honours
/// `dataSlice` returns the balance alone, one that does not the whole account.
pub(super) fn token_accounts(raw: &RawValue) -> Option<(Height, Vec<Balance>)> {
    let rows: InContext<Vec<KeyedAccount<'_>>> = serde_json::from_str(raw.get()).ok()?;
    let at = rows.context.slot;
    let all: Option<Vec<Balance>> = rows
        .value
        .iter()
        .map(|row| {
            let data = row.account.bytes()?;
            let offset = if data.len() == AMOUNT_BYTES { 0 } else { AMOUNT_OFFSET };
            let amount = data.get(offset..)?.first_chunk::<AMOUNT_BYTES>()?;
            let account = pubkey(&row.pubkey)?;
            Some(Balance { account, amount: u64::from_le_bytes(*amount), at })
        })
        .collect();
    Some((at, all?))
}

/// `getAccountInfo`: the account, `None` where there is none.
pub(super) fn account(raw: &RawValue) -> Result<Option<AccountReply<'_>>, serde_json::Error> {
    Ok(serde_json::from_str::<InContext<Option<AccountReply<'_>>>>(raw.get())?.value)
}

/// `getMultipleAccounts`.
pub(super) fn accounts(raw: &RawValue) -> Result<Vec<Option<AccountReply<'_>>>, serde_json::Error> {
    Ok(serde_json::from_str::<InContext<Vec<Option<AccountReply<'_>>>>>(raw.get())?.value)
}

/// `getLatestBlockhash`: the slot of the newest block, and its hash.
pub(super) fn latest_blockhash(raw: &RawValue) -> Option<(Height, [u8; 32])> {
    let latest: InContext<Block> = serde_json::from_str(raw.get()).ok()?;
    Some((latest.context.slot, pubkey(&latest.value.blockhash)?))
}

/// A bare number: `getSlot`, `getFirstAvailableBlock`, `getBlockTime`.
pub(super) fn number(raw: &RawValue) -> Option<u64> {
    serde_json::from_str(raw.get()).ok()
}

/// A bare text: `getGenesisHash`.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

#[derive(Deserialize)]
pub(super) struct Block {
    pub(super) blockhash: String,
    #[serde(default)]
    pub(super) signatures: Vec<String>,
}

/// `getBlock`; `None` inside for a block that the node does not have.
pub(super) fn block(raw: &RawValue) -> Result<Option<Block>, serde_json::Error> {
    serde_json::from_str(raw.get())
}

pub(super) fn pubkey(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    five8::decode_32(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}
