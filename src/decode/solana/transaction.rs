//! A transaction as the decoder and the source need it: owned, small, every index checked.

use std::ops::Range;

use super::WRAPPED_SOL;
use super::action::Action;
use super::base58::Decoder;
use super::keys::AccountKey;
use crate::domain::{Height, TxId};

/// Nodes recorded inner calls and token balances long before the first slot (October 2021), and
/// account owners from the second slot on (December 2021).
const LISTS_FROM: Height = 100_000_000;
pub const OWNERS_FROM: Height = 111_491_819;

/// One executed (or failed) transaction with its balances.
#[derive(Debug, Clone)]
pub struct Transaction {
    pub(super) slot: Height,
    pub(super) block_time: Option<i64>,
    pub(super) index: Option<u32>,
    pub(super) id: Option<TxId>,
    pub(super) failed: bool,
    /// Base and priority fee in lamports, paid by the first key.
    pub(super) fee: u64,
    /// The number of signers, which are the first keys.
    pub(super) signers: usize,
    pub(super) keys: Vec<AccountKey>,
    /// Before and after, in the order of the keys.
    pub(super) lamports: Vec<(u64, u64)>,
    pub(super) tokens: Vec<TokenAccount>,
    /// In the order of execution, inner ones directly after their caller.
    pub(super) instructions: Vec<Instruction>,
    /// Neither the node nor the log contained the heights of some calls.
    pub(super) has_guessed_heights: bool,
    /// The reply has both token balance lists and the inner calls; each may be empty, that of inner
    /// calls only where the log shows none.
    pub(super) has_all_lists: bool,
    pub(super) accounts: Vec<u8>,
    /// The base58 texts of the calls' data.
    pub(super) data: Vec<u8>,
}

/// A token account of the balance lists. Amounts are base units.
#[derive(Debug, Clone)]
pub(super) struct TokenAccount {
    pub(super) account: u8,
    pub(super) mint: AccountKey,
    pub(super) decimals: u8,
    /// `None`: it did not exist.
    pub(super) before: Option<u64>,
    pub(super) after: Option<u64>,
    /// Nodes of 2021 report no owner.
    pub(super) owner_before: Option<AccountKey>,
    pub(super) owner_after: Option<AccountKey>,
}

impl TokenAccount {
    pub(super) fn new(account: u8, mint: AccountKey, decimals: u8) -> Self {
        Self {
            account,
            mint,
            decimals,
            before: None,
            after: None,
            owner_before: None,
            owner_after: None,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Instruction {
    pub(super) program: u8,
    /// Depth of the call, 1 for outer instructions.
    pub(super) height: u8,
    /// The instruction that called it.
    pub(super) parent: Option<usize>,
    pub(super) accounts: Range<usize>,
    pub(super) data: Range<usize>,
    pub(super) action: Action,
}

impl Transaction {
    pub fn slot(&self) -> Height {
        self.slot
    }

    /// Seconds since 1970-01-01 UTC.
    pub fn block_time(&self) -> Option<i64> {
        self.block_time
    }

    /// Position in the block, where the node reports it.
    pub fn index(&self) -> Option<u32> {
        self.index
    }

    /// The first signature.
    pub fn id(&self) -> Option<TxId> {
        self.id
    }

    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Whether the reply has all that nodes record for its slot. Without inner calls (null from a
    /// node that does not store them), token balances or owners, a trade looks like a transaction
    /// that moved nothing of the wallet. A failed transaction moved nothing; nodes give null if it
    /// failed before its first call.
    pub fn is_whole(&self) -> bool {
        let has_owners = |token: &TokenAccount| {
            token.before.is_some() == token.owner_before.is_some()
                && token.after.is_some() == token.owner_after.is_some()
        };
        let has_lists = self.slot < LISTS_FROM || self.has_all_lists;
        let is_owned = || self.tokens.iter().all(has_owners) && self.is_consistent();
        self.failed || has_lists && (self.slot < OWNERS_FROM || is_owned())
    }

    /// Whether an address is among the accounts of the transaction.
    pub fn names(&self, address: &[u8; 32]) -> bool {
        self.keys.contains(address)
    }

    /// The owner's token accounts that existed before and are closed or transferred to another
    /// owner in this transaction, without wrapped SOL.
    pub fn closed_token_accounts(&self, owner: &[u8; 32]) -> Vec<[u8; 32]> {
        let is_owner = |at: u8| self.key(at).is_some_and(|key| key == owner);
        let closes = |token: &TokenAccount| {
            let mut closes = self.instructions.iter().filter_map(|instruction| {
                let Action::Close { account, owner, .. } = instruction.action else { return None };
                (account == token.account).then_some(owner)
            });
            match token.owner_before {
                Some(before) => before == *owner && closes.next().is_some(),
                // Nodes report no owners for old transactions: the account's closer is its owner.
                None => closes.any(|by| by.is_some_and(is_owner)),
            }
        };
        let gives = |token: &TokenAccount| {
            let is_others = token.owner_after.is_some_and(|after| after != *owner);
            token.owner_before == Some(*owner) && is_others
        };
        self.tokens
            .iter()
            .filter(|token| token.before.is_some() && token.mint != WRAPPED_SOL)
            .filter(|token| match token.after {
                None => closes(token),
                Some(_) => gives(token),
            })
            .filter_map(|token| self.key(token.account).copied())
            .collect()
    }

    /// All token accounts of this transaction, with their balances before and after in base units.
    pub(crate) fn token_balances(
        &self,
    ) -> impl Iterator<Item = ([u8; 32], [Option<u64>; 2])> + use<'_> {
        let of =
            |token: &TokenAccount| Some((*self.key(token.account)?, [token.before, token.after]));
        self.tokens.iter().filter_map(of)
    }

    /// The owner's token accounts after this transaction, without wrapped SOL, each with its
    /// balances before and after in base units.
    pub fn held_token_accounts(&self, owner: &[u8; 32]) -> Vec<([u8; 32], [Option<u64>; 2])> {
        let is_held = |token: &&TokenAccount| {
            token.owner_after.as_ref() == Some(owner) && token.mint != WRAPPED_SOL
        };
        let held = self.tokens.iter().filter(is_held);
        let held = held.map(|token| Some((*self.key(token.account)?, [token.before, token.after])));
        held.flatten().collect()
    }

    /// The total lamports of all accounts before the transaction.
    pub(super) fn lamports_in_all(&self) -> u128 {
        self.lamports.iter().map(|(before, _)| u128::from(*before)).sum()
    }

    /// Sum of the balance changes of a mint, over all accounts.
    pub(super) fn units_moved(&self, mint: &AccountKey) -> u128 {
        let of_mint = self.tokens.iter().filter(|token| token.mint == *mint);
        let change = |token: &TokenAccount| {
            let (before, after) = (token.before.unwrap_or(0), token.after.unwrap_or(0));
            u128::from(before.abs_diff(after))
        };
        of_mint.map(change).sum()
    }

    pub(super) fn key(&self, index: u8) -> Option<&AccountKey> {
        self.keys.get(usize::from(index))
    }

    pub(super) fn find(&self, key: &AccountKey) -> Option<u8> {
        self.keys.iter().position(|known| known == key).and_then(|at| u8::try_from(at).ok())
    }

    pub(super) fn accounts_of(&self, instruction: &Instruction) -> &[u8] {
        self.accounts.get(instruction.accounts.clone()).unwrap_or_default()
    }

    /// An instruction with those that it called.
    pub(super) fn subtree(&self, at: usize) -> Range<usize> {
        let behind = self.instructions.get(at + 1..).unwrap_or_default();
        let height = self.instructions.get(at).map_or(0, |instruction| instruction.height);
        let called = behind.iter().take_while(|inner| inner.height > height).count();
        at..at + 1 + called
    }

    /// The data of a call; empty where the text is not base58.
    pub(super) fn data_of(&self, instruction: &Instruction) -> Vec<u8> {
        let text = self.data.get(instruction.data.clone()).unwrap_or_default();
        let mut decoder = Decoder::new();
        decoder.decode(text).map(<[u8]>::to_vec).unwrap_or_default()
    }
}
