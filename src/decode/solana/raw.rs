//! Converts the wire form of a reply to a [`Transaction`]. Hostile bytes give an error, never a
//! panic, and take no more memory than their size.

use super::action;
use super::base58::Decoder;
use super::frames;
use super::keys::{AccountKeys, AddressCache, units};
use super::raw_error::{LIMITS, RawError};
use super::transaction::{Instruction, TokenAccount, Transaction};
use super::wire::{self, AccountRef, RawInstruction, ReplyEntry, TokenBalance};
use crate::domain::{Signature, TxId};

/// Parses one `getTransaction` result (`json` or `jsonParsed`), or a full entry of
/// `getTransactionsForAddress`.
pub fn parse(json: &[u8]) -> Result<Transaction, RawError> {
    if json.len() > LIMITS.bytes {
        return Err(RawError::TooMany("bytes"));
    }
    let entry = wire::read(json)?;
    let ReplyEntry { message, meta, accounts: listed, .. } = entry;
    let message = message.ok_or(RawError::Missing("message"))?;
    let meta = meta.ok_or(RawError::Missing("meta"))?;
    let keys = AccountKeys::read(&message.account_keys, &meta)?;
    let signers = match message.signers {
        Some(count) => usize::try_from(count).map_err(|_| RawError::Broken("header"))?,
        None => message.account_keys.iter().filter(|key| key.signer).count(),
    };
    if meta.pre_balances.len() != keys.bytes.len() || meta.post_balances.len() != keys.bytes.len() {
        return Err(RawError::Broken("balance list"));
    }
    let (before, after) = (meta.pre_token_balances, meta.post_token_balances);
    let inner = meta.inner_instructions;
    // A node that did not store inner calls with a block gives null, or an empty list.
    let logged = meta.log.map_or(0, |log| log.inner_calls);
    let has_calls = inner.as_ref().is_some_and(|list| list.len() >= logged);
    let has_all_lists = before.is_some() && after.is_some() && has_calls;
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let tokens = token_accounts(&keys, &before, &after)?;
    let mut reader = InstructionReader::new(&keys, &listed);
    reader.read(&message.instructions, &inner.unwrap_or_default())?;
    let log = if reader.heights_missing { meta.log } else { None };
    let InstructionReader { mut instructions, accounts, data, .. } = reader;
    if let Some(log) = log {
        frames::heights_from_logs(&keys, &mut instructions, log);
    }
    let has_guessed_heights = frames::link(&mut instructions, &accounts);
    let id = message.signature.and_then(Signature::parse);
    Ok(Transaction {
        slot: entry.slot.ok_or(RawError::Missing("slot"))?,
        block_time: entry.block_time,
        index: entry.transaction_index,
        id: id.map(TxId::Solana),
        failed: meta.status.unwrap_or(meta.failed),
        fee: meta.fee,
        signers,
        lamports: meta.pre_balances.into_iter().zip(meta.post_balances).collect(),
        keys: keys.bytes,
        tokens,
        instructions,
        has_guessed_heights,
        has_all_lists,
        accounts,
        data,
    })
}

fn token_accounts(
    keys: &AccountKeys<'_>,
    before: &[TokenBalance<'_>],
    after: &[TokenBalance<'_>],
) -> Result<Vec<TokenAccount>, RawError> {
    let mut accounts: Vec<TokenAccount> = Vec::with_capacity(before.len() + 4);
    let mut addresses = AddressCache::new();
    for (balances, is_before) in [(before, true), (after, false)] {
        for balance in balances {
            let account = u8::try_from(balance.account_index)
                .ok()
                .filter(|at| usize::from(*at) < keys.bytes.len())
                .ok_or(RawError::Broken("token balance"))?;
            let units = units(balance.amount).ok_or(RawError::Broken("token amount"))?;
            let decimals = u8::try_from(balance.decimals);
            let decimals = decimals.map_err(|_| RawError::Broken("number of decimals"))?;
            let mint = addresses.key(balance.mint)?;
            let owner = balance.owner.map(|owner| addresses.key(owner)).transpose()?;
            let at = accounts.iter().position(|a| a.account == account && a.mint == mint);
            let at = at.unwrap_or_else(|| {
                accounts.push(TokenAccount::new(account, mint, decimals));
                accounts.len() - 1
            });
            let Some(account) = accounts.get_mut(at) else { continue };
            if is_before {
                (account.before, account.owner_before) = (Some(units), owner);
            } else {
                (account.after, account.owner_after) = (Some(units), owner);
            }
        }
    }
    Ok(accounts)
}

struct InstructionReader<'a> {
    keys: &'a AccountKeys<'a>,
    listed: &'a [AccountRef<'a>],
    instructions: Vec<Instruction>,
    accounts: Vec<u8>,
    data: Vec<u8>,
    heights_missing: bool,
    decoder: Decoder,
}

impl<'a> InstructionReader<'a> {
    fn new(keys: &'a AccountKeys<'a>, listed: &'a [AccountRef<'a>]) -> Self {
        Self {
            keys,
            listed,
            instructions: Vec::with_capacity(64),
            accounts: Vec::with_capacity(listed.len()),
            data: Vec::with_capacity(4_096),
            heights_missing: false,
            decoder: Decoder::new(),
        }
    }

    fn read(
        &mut self,
        outer: &[RawInstruction<'_>],
        inner: &[(u64, RawInstruction<'_>)],
    ) -> Result<(), RawError> {
        for (at, instruction) in (0_u64..).zip(outer) {
            self.push(instruction, 1)?;
            for (_, instruction) in inner.iter().filter(|(index, _)| *index == at) {
                self.heights_missing |= instruction.stack_height.is_none();
                let height = instruction.stack_height.and_then(|h| u8::try_from(h).ok());
                self.push(instruction, height.unwrap_or(0))?;
            }
        }
        Ok(())
    }

    fn place(&self, account: AccountRef<'_>) -> Option<u8> {
        let place = match account {
            AccountRef::Index(index) => u8::try_from(index).ok(),
            AccountRef::Text(text) => self.keys.find(text),
        };
        place.filter(|at| usize::from(*at) < self.keys.bytes.len())
    }

    fn push(&mut self, raw: &RawInstruction<'_>, height: u8) -> Result<(), RawError> {
        if self.instructions.len() >= LIMITS.instructions {
            return Err(RawError::TooMany("instructions"));
        }
        let program = raw.program.and_then(|program| self.place(program));
        let program = program.ok_or(RawError::Broken("program index"))?;
        let program_key =
            self.keys.bytes.get(usize::from(program)).ok_or(RawError::Broken("program index"))?;
        let start = self.accounts.len();
        for account in self.listed.get(raw.accounts.clone()).unwrap_or_default() {
            let place = self.place(*account).ok_or(RawError::Broken("account index"))?;
            self.accounts.push(place);
        }
        let listed = self.accounts.get(start..).unwrap_or_default();
        let accounts = start..self.accounts.len();
        let data_start = self.data.len();
        if !action::is_built_in(program_key) {
            self.data.extend_from_slice(raw.data);
        }
        let data = data_start..self.data.len();
        let instructions = &mut self.instructions;
        let add = |action| {
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
            action::from_parsed(program_key, parsed, self.keys, add);
        } else {
            let (keys, decoder) = (&self.keys.bytes, &mut self.decoder);
            action::from_data(program_key, raw.data, listed, keys, decoder, add);
        }
        // A batch is several instructions in one.
        if self.instructions.len() > LIMITS.instructions {
            return Err(RawError::TooMany("instructions"));
        }
        Ok(())
    }
}
