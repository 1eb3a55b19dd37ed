//! Every movement of assets in a transaction, read from token events and calls.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use super::transaction::{Account, Log, NativeFlows, NativeMove, Transaction, Word};
use super::words::{ZERO, address, topic, units, word};
use crate::decode::flow::Flow;
use crate::domain::{Address, Units};
use crate::registry::Chain;

/// `Transfer(address,address,uint256)` of ERC-20 and ERC-721 (which indexes all three).
pub(crate) const TRANSFER: Word =
    topic("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
/// `transfer(address,uint256)`.
pub(super) const TRANSFER_CALL: [u8; 4] = [0xa9, 0x05, 0x9c, 0xbb];
/// `UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)`, whose second indexed
/// parameter is the account (ERC-4337).
pub(crate) const USER_OPERATION: Word =
    topic("49628fd1471006c1482da88028e9ce4dbb080b815c9b0344d39e5a8e6ec1419f");
/// `ERC20Transfer(address,address,uint256)` states the amounts of early ERC-404 tokens; their
/// `Transfer` states an id.
const AMOUNT_TRANSFER: Word =
    topic("e59fdd36d0d223c0c7d996db7ad796880f45e1936cb0bb7ac102e7082e031487");
/// `Approval(address,address,uint256)`.
const APPROVAL: Word = topic("8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925");
/// `TransferSingle` and `TransferBatch` of ERC-1155: operator, from, to.
const TRANSFER_SINGLE: Word =
    topic("c3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62");
const TRANSFER_BATCH: Word =
    topic("4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb");
/// `Deposit(address,uint256)` and `Withdrawal(address,uint256)` of wrapped native coin (WETH9).
pub(in crate::decode) const DEPOSIT: Word =
    topic("e1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c");
pub(crate) const WITHDRAWAL: Word =
    topic("7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65");

/// Whether inner calls are missing: an event shows that wrapped coin was unwrapped, which its
/// contract pays out by a call, yet no known call moves native coin.
pub(crate) fn hides_payment(tx: &Transaction, moves: &[NativeMove], wrapped: &[u8]) -> bool {
    let is_paid = |log: &Log| {
        log.address == wrapped
            && log.topics.first() == Some(&WITHDRAWAL)
            && log.data.iter().any(|byte| *byte != 0)
    };
    moves.is_empty() && tx.logs.iter().any(is_paid)
}

/// Polygon's native token contract logs every movement of native coin as `LogTransfer(token, from,
/// to, amount, …)`, and each transaction ends with a `LogFeeTransfer`.
const NATIVE_TRANSFER: Word =
    topic("e6497e3ee548a3372136af2fcb0696db31fc6cf20260707645068bd3fe97f3c4");
const NATIVE_FEE: Word = topic("4dfe1bbbcf077ddc3e01291eea2d5c70c2b422b415d95645b9adcfd678cb1d63");

/// A chain with EIP-7708 logs every movement of native coin as a token transfer of this account,
/// which has no code. The transfer of the transaction's value comes first.
const SYSTEM: Account = {
    let mut account = [0xff; 20];
    account[19] = 0xfe;
    account
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Asset {
    Native,
    Token(Account),
}

/// One movement. A mint is from the zero address, a burn is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) asset: Asset,
    pub(super) from: Account,
    pub(super) to: Account,
    pub(super) amount: Units,
}

/// A non-fungible token changed hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unique {
    pub(super) token: Account,
    pub(super) from: Account,
    pub(super) to: Account,
}

#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) moves: Vec<Move>,
    pub(super) uniques: Vec<Unique>,
    pub(super) wrapped: Account,
    /// Amounts of native coin that each account wrapped and unwrapped.
    pub(super) wraps: Vec<(Account, Units)>,
    pub(super) unwraps: Vec<(Account, Units)>,
    /// Whether all movements of native coin are among the moves.
    pub(super) native_known: bool,
}

pub(super) fn mirrors(chain: &Chain) -> impl Iterator<Item = Account> {
    chain.mirrors.iter().filter_map(|mirror| mirror.bytes().try_into().ok())
}

/// Movements of native coin, and whether they are complete.
fn native_moves(tx: &Transaction, mirrors: &[Account]) -> (Vec<NativeMove>, bool) {
    let value = tx.to.map(|to| NativeMove { from: tx.from, to, value: tx.value });
    // The address of a created contract is not read: only what the sender gave matters.
    let given = value.unwrap_or(NativeMove { from: tx.from, to: ZERO, value: tx.value });
    match &tx.native {
        NativeFlows::Calls(calls) => {
            return (iter::once(given).chain(calls.iter().copied()).collect(), true);
        }
        NativeFlows::Net { .. } => return (vec![given], false),
        NativeFlows::Unknown | NativeFlows::Gone | NativeFlows::Refused => {}
    }
    let of_system: Vec<NativeMove> = tx.logs.iter().filter_map(system_transfer).collect();
    let starts = value.is_none_or(|value| {
        value.value.is_zero() || value.from == value.to || of_system.first() == Some(&value)
    });
    if starts && !of_system.is_empty() {
        return (of_system, true);
    }
    let mirrored = || tx.logs.iter().filter(|log| mirrors.contains(&log.address));
    let logged: Vec<NativeMove> = mirrored().filter_map(native_transfer).collect();
    let first = value.is_none_or(|value| value.value.is_zero() || logged.first() == Some(&value));
    if first && mirrored().any(|log| log.topics.first() == Some(&NATIVE_FEE)) {
        return (logged, true);
    }
    (vec![given], false)
}

/// Whether a log repeats a movement of native coin, which indexes need not list as a token's.
pub(crate) fn repeats_native(log: &Log, chain: &Chain) -> bool {
    log.address == SYSTEM || mirrors(chain).any(|mirror| mirror == log.address)
}

/// Whether a transfer is that of the next log in another unit, as both tokens are interfaces to one
/// balance.
fn repeats_next(tx: &Transaction, chain: &Chain, at: usize) -> bool {
    let (Some(log), Some(next)) = (tx.logs.get(at), tx.logs.get(at + 1)) else { return false };
    let are_both =
        |[one, other]: &[Address; 2]| one.bytes() == log.address && other.bytes() == next.address;
    chain.interfaces.iter().any(are_both)
        && transfer(log).is_some_and(|sides| transfer(next) == Some(sides))
}

fn native_transfer(log: &Log) -> Option<NativeMove> {
    let [NATIVE_TRANSFER, _, from, to] = log.topics.as_slice() else { return None };
    Some(NativeMove { from: address(from)?, to: address(to)?, value: units(word(log, 0)?) })
}

fn system_transfer(log: &Log) -> Option<NativeMove> {
    if log.address != SYSTEM {
        return None;
    }
    let Move { from, to, amount, .. } = token_move(log)?;
    Some(NativeMove { from, to, value: amount })
}

/// Sender and receiver of a token, from a transfer event.
pub(super) fn transfer(log: &Log) -> Option<(Account, Account)> {
    match log.topics.as_slice() {
        [TRANSFER | AMOUNT_TRANSFER, from, to] => Some((address(from)?, address(to)?)),
        [TRANSFER] => Some((address(word(log, 0)?)?, address(word(log, 1)?)?)),
        _ => None,
    }
}

/// The movement that a transfer event states.
pub(super) fn token_move(log: &Log) -> Option<Move> {
    let (from, to) = transfer(log)?;
    // Early tokens do not index their arguments.
    let amount = units(word(log, if log.topics.len() == 1 { 2 } else { 0 })?);
    Some(Move { asset: Asset::Token(log.address), from, to, amount })
}

fn is_amount(log: &Log) -> bool {
    log.topics.first() == Some(&AMOUNT_TRANSFER)
}

/// Tokens that log each amount in both transfer events.
fn repeated_amounts(logs: &[Log]) -> BTreeSet<Account> {
    if !logs.iter().any(is_amount) {
        return BTreeSet::new();
    }
    let plain = logs.iter().filter(|log| matches!(log.topics.as_slice(), [TRANSFER, _, _]));
    plain.map(|log| log.address).collect()
}

/// Whether an event only records that a token moved or may be moved.
pub(super) fn is_movement(log: &Log) -> bool {
    let all = [TRANSFER, AMOUNT_TRANSFER, APPROVAL];
    log.topics.first().is_some_and(|topic| all.contains(topic))
}

impl Ledger {
    /// Reads the logs, the value and the inner calls as far as these are known. `None` if the
    /// chain's addresses are not EVM addresses.
    pub(super) fn read(tx: &Transaction, chain: &Chain) -> Option<Self> {
        let wrapped = chain.wrapped_native.bytes().try_into().ok()?;
        // Mirrors only repeat the movements of other assets.
        let mirrors: Vec<Account> = mirrors(chain).collect();
        let repeats = repeated_amounts(&tx.logs);
        let is_tokens = |log: &&Log| {
            let other = log.address == SYSTEM || mirrors.contains(&log.address);
            !(other || is_amount(log) && repeats.contains(&log.address))
        };
        let (native, native_known) = native_moves(tx, &mirrors);
        let mut ledger = Self {
            moves: Vec::with_capacity(tx.logs.len() + 8),
            uniques: Vec::new(),
            wrapped,
            wraps: Vec::new(),
            unwraps: Vec::new(),
            native_known,
        };
        for NativeMove { from, to, value } in native {
            ledger.push(Asset::Native, from, to, value);
        }
        let placed = tx.logs.iter().enumerate();
        for (_, log) in placed.filter(|(at, log)| is_tokens(log) && !repeats_next(tx, chain, *at)) {
            ledger.read_log(log);
        }
        for log in tx.logs.iter().filter(|log| mirrors.contains(&log.address)) {
            ledger.read_mirror(log);
        }
        ledger.drop_repeats(&tx.logs);
        ledger.add_wraps(tx);
        Some(ledger)
    }

    fn push(&mut self, asset: Asset, from: Account, to: Account, amount: Units) {
        if from != to && !amount.is_zero() {
            self.moves.push(Move { asset, from, to, amount });
        }
    }

    fn read_log(&mut self, log: &Log) {
        let token = log.address;
        match log.topics.as_slice() {
            [TRANSFER] | [TRANSFER | AMOUNT_TRANSFER, _, _] => {
                if let Some(Move { asset, from, to, amount }) = token_move(log) {
                    self.push(asset, from, to, amount);
                }
            }
            [TRANSFER, from, to, _] | [TRANSFER_SINGLE | TRANSFER_BATCH, _, from, to] => {
                if let (Some(from), Some(to)) = (address(from), address(to)) {
                    self.uniques.push(Unique { token, from, to });
                }
            }
            _ => {}
        }
    }

    /// Drops ERC-1155 movements that repeat an ERC-20 token's own transfer: the id is then the
    /// address of that token.
    fn drop_repeats(&mut self, logs: &[Log]) {
        if self.uniques.is_empty() {
            return;
        }
        for log in logs {
            let [TRANSFER_SINGLE, _, from, to] = log.topics.as_slice() else { continue };
            let token = word(log, 0).and_then(address);
            let (Some(token), Some(amount)) = (token, word(log, 1).map(units)) else { continue };
            let (Some(from), Some(to)) = (address(from), address(to)) else { continue };
            if self.moves.contains(&Move { asset: Asset::Token(token), from, to, amount }) {
                let repeat = Unique { token: log.address, from, to };
                let at = self.uniques.iter().position(|unique| *unique == repeat);
                at.map(|at| self.uniques.remove(at));
            }
        }
    }

    /// Reads a mirror as a token of its own unless another contract logs the same movements. On
    /// Gnosis, Monerium's euro had only its old contract before the new one existed. Mirrors of
    /// native coin have reserved addresses.
    fn read_mirror(&mut self, log: &Log) {
        let reserved = log.address.starts_with(&[0; 18]);
        let (before, uniques) = (self.moves.len(), self.uniques.len());
        self.read_log(log);
        self.uniques.truncate(uniques);
        let Some(last) = self.moves.get(before).copied() else { return };
        let same = |m: &Move| (m.from, m.to, m.amount) == (last.from, last.to, last.amount);
        if reserved || self.moves.iter().take(before).any(|m| m.asset != last.asset && same(m)) {
            self.moves.truncate(before);
        }
    }

    /// Wraps and unwraps, unless the contract also logs them as transfers from or to zero.
    fn add_wraps(&mut self, tx: &Transaction) {
        let wrapped = self.wrapped;
        let asset = Asset::Token(wrapped);
        let of_wrapped = |m: &&Move| m.asset == asset;
        let mut logged: Vec<Move> = self.moves.iter().filter(of_wrapped).copied().collect();
        for m in &logged {
            if m.from == ZERO {
                self.wraps.push((m.to, m.amount));
            } else if m.to == ZERO {
                self.unwraps.push((m.from, m.amount));
            }
        }
        for log in tx.logs.iter().filter(|log| log.address == wrapped) {
            let [kind, who] = log.topics.as_slice() else { continue };
            let (Some(who), Some(amount)) = (address(who), word(log, 0).map(units)) else {
                continue;
            };
            let m = match *kind {
                DEPOSIT => Move { asset, from: ZERO, to: who, amount },
                WITHDRAWAL => Move { asset, from: who, to: ZERO, amount },
                _ => continue,
            };
            if let Some(at) = logged.iter().position(|other| *other == m) {
                logged.swap_remove(at);
                continue;
            }
            if m.from == ZERO { &mut self.wraps } else { &mut self.unwraps }.push((who, amount));
            self.push(m.asset, m.from, m.to, m.amount);
        }
    }

    /// The account that unwrapped native coin in this event.
    pub(super) fn unwraps_by(&self, log: &Log) -> Option<Account> {
        if log.address != self.wrapped {
            return None;
        }
        match log.topics.as_slice() {
            [WITHDRAWAL, who] => address(who),
            [TRANSFER, from, to] if address(to) == Some(ZERO) => address(from),
            _ => None,
        }
    }

    /// The accounts that unwrapped native coin in these logs, with the amounts.
    pub(super) fn unwraps_in<'a>(
        &'a self,
        logs: &'a [Log],
    ) -> impl Iterator<Item = (Account, Units)> + 'a {
        // If a contract also logs a transfer to the zero address, only its `Withdrawal` counts.
        let own =
            |log: &Log| log.address == self.wrapped && log.topics.first() == Some(&WITHDRAWAL);
        let by_event = logs.iter().any(own);
        logs.iter().filter(move |log| !by_event || own(log)).filter_map(|log| {
            let amount = word(log, 0).map(units)?;
            Some((self.unwraps_by(log)?, amount))
        })
    }

    /// Whether an asset is native coin, loose or wrapped, in which values are measured.
    pub(super) fn is_measure(&self, asset: Asset) -> bool {
        match asset {
            Asset::Native => true,
            Asset::Token(token) => token == self.wrapped,
        }
    }

    /// What an account received and gave, by asset.
    pub(super) fn of(&self, account: &Account) -> BTreeMap<Asset, Flow> {
        let mut flows: BTreeMap<Asset, Flow> = BTreeMap::new();
        for m in self.moves.iter().filter(|m| m.from == *account || m.to == *account) {
            flows.entry(m.asset).or_default().add(m.amount, m.to == *account);
        }
        flows
    }
}
