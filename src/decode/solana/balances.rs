//! Finds the wallet's accounts and lists every movement of lamports and tokens, in order.
//!
//! Lamports are tracked per account, so that closing an account reveals what it returned. What the
//! instructions do not explain remains as a residue: programs may move lamports of their own
//! accounts without an instruction.

use sha2::{Digest as _, Sha256};

use super::action::Action;
use super::base58::address;
use super::keys::AccountKey;
use super::transaction::{TokenAccount, Transaction};
use super::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM, WRAPPED_SOL};

pub(super) const ASSOCIATED_TOKEN_PROGRAM: AccountKey =
    address("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");
/// Derived addresses use the highest bump off the curve. Only one in 2^32 has a bump below this.
const BUMP_MIN: u8 = 255 - 32;

/// A kind of asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asset {
    /// Lamports, loose or wrapped.
    Native,
    /// Index in [`Ledger::mints`].
    Token(usize),
}

/// The kind of movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// A System transfer.
    Pay,
    /// Lamports for an account's creation.
    Create,
    /// A token transfer, wrapped SOL too.
    Transfer,
    Mint,
    Burn,
    /// The lamports of a token account that was closed; `rent` of them were not wrapped SOL.
    Close {
        rent: u64,
    },
}

/// One movement; `None` at one end is a mint or a burn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow {
    pub(super) instruction: usize,
    pub(super) asset: Asset,
    pub(super) means: Means,
    pub(super) from: Option<u8>,
    pub(super) to: Option<u8>,
    pub(super) amount: u64,
    /// Less than `amount` where the mint takes a transfer fee.
    pub(super) received: u64,
    /// The receiver had no lamports before.
    pub(super) fresh: bool,
}

impl Flow {
    /// The amount that arrived, without the rent of accounts.
    pub(super) fn without_rent(&self) -> i128 {
        match self.means {
            Means::Create => 0,
            Means::Close { rent } => i128::from(self.received) - i128::from(rent),
            Means::Pay | Means::Transfer | Means::Mint | Means::Burn => i128::from(self.received),
        }
    }
}

/// State of one key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LedgerAccount {
    /// Index in [`Ledger::mints`] of a token account's mint.
    pub(super) mint: Option<usize>,
    pub(super) wrapped: bool,
    pub(super) own: bool,
    /// The last instruction that allocated its data.
    pub(super) allocated: Option<usize>,
    /// Below zero if it spent lamports that it was paid without an instruction.
    lamports: i128,
    tokens: u64,
    /// For a wrapped-SOL account, the lamports that are rent and not wrapped SOL.
    pub(super) rent: u64,
}

impl LedgerAccount {
    fn held(&self) -> u64 {
        u64::try_from(self.lamports.max(0)).unwrap_or(u64::MAX)
    }
}

/// All movements of one transaction, as one wallet sees them.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) wallet: Option<u8>,
    pub(super) accounts: Vec<LedgerAccount>,
    pub(super) mints: Vec<AccountKey>,
    pub(super) flows: Vec<Flow>,
    /// Rent in lamports per byte in this transaction, if an account creation reveals it.
    pub(super) rent_rate: Option<u64>,
    /// Per key: lamports that moved without an instruction.
    pub(super) residue: Vec<i128>,
    /// Per key: whether the token balance differs from what the instructions leave.
    unexplained: Vec<bool>,
}

impl Ledger {
    pub(super) fn new(tx: &Transaction, wallet: &AccountKey) -> Self {
        let mut ledger = Self {
            wallet: tx.find(wallet),
            accounts: Vec::with_capacity(tx.keys.len()),
            mints: Vec::with_capacity(8),
            flows: Vec::with_capacity(tx.instructions.len()),
            rent_rate: rent_rate(tx),
            residue: Vec::new(),
            unexplained: vec![false; tx.keys.len()],
        };
        ledger.accounts.extend(tx.lamports.iter().map(|(before, _)| LedgerAccount {
            lamports: i128::from(*before),
            ..LedgerAccount::default()
        }));
        ledger.mark_own(tx, wallet);
        if let Some(fee) = ledger.accounts.first_mut() {
            fee.lamports -= i128::from(tx.fee);
        }
        for (at, instruction) in tx.instructions.iter().enumerate() {
            ledger.apply(tx, at, instruction.action);
        }
        ledger.check_balances(tx);
        ledger
    }

    pub(super) fn account(&self, index: u8) -> LedgerAccount {
        self.accounts.get(usize::from(index)).copied().unwrap_or_default()
    }

    /// The asset of a mint, if it moved.
    pub(super) fn asset(&self, mint: &AccountKey) -> Option<Asset> {
        if *mint == WRAPPED_SOL {
            return Some(Asset::Native);
        }
        self.mints.iter().position(|known| known == mint).map(Asset::Token)
    }

    pub(super) fn is_own(&self, index: Option<u8>) -> bool {
        index.is_some_and(|index| self.account(index).own)
    }

    fn mint(&mut self, mint: &AccountKey) -> usize {
        let known = self.mints.iter().position(|known| known == mint);
        known.unwrap_or_else(|| {
            self.mints.push(*mint);
            self.mints.len() - 1
        })
    }

    fn mark_own(&mut self, tx: &Transaction, wallet: &AccountKey) {
        if let Some(account) = self.wallet.and_then(|at| self.at(at)) {
            account.own = true;
        }
        for token in &tx.tokens {
            let mint = self.mint(&token.mint);
            let owners = [token.owner_before.as_ref(), token.owner_after.as_ref()];
            let own = match owners {
                [None, None] => {
                    self.wallet.is_some_and(|at| owns_unreported(tx, token, wallet, at))
                }
                owners => owners.contains(&Some(wallet)),
            };
            let Some(account) = self.at(token.account) else { continue };
            account.mint = Some(mint);
            account.wrapped = token.mint == WRAPPED_SOL;
            account.own |= own;
            account.tokens = token.before.unwrap_or(0);
            if account.wrapped && token.before.is_some() {
                account.rent = account.held().saturating_sub(account.tokens);
            }
        }
        for instruction in &tx.instructions {
            let Action::Open { account, mint, owner } = instruction.action else { continue };
            let Some(mint) = tx.key(mint) else { continue };
            let index = self.mint(mint);
            let Some(account) = self.at(account) else { continue };
            account.mint = Some(index);
            account.wrapped = *mint == WRAPPED_SOL;
            account.own |= owner == *wallet;
        }
    }

    fn at(&mut self, index: u8) -> Option<&mut LedgerAccount> {
        self.accounts.get_mut(usize::from(index))
    }

    fn apply(&mut self, tx: &Transaction, at: usize, action: Action) {
        match action {
            Action::Pay { from, to, lamports } => self.pay(at, Means::Pay, from, to, lamports),
            Action::Create { from, to, lamports, .. } => {
                self.pay(at, Means::Create, from, to, lamports);
                self.mark_allocated(at, to);
            }
            Action::Allocate { account, .. } | Action::Assign { account } => {
                self.mark_allocated(at, account);
            }
            Action::Transfer { from, to, amount, mint, withheld, .. } => {
                let mint = mint.and_then(|mint| tx.key(mint)).copied();
                self.transfer(at, from, to, amount, amount.saturating_sub(withheld), mint);
            }
            Action::Mint { mint, to, amount } => {
                let Some(asset) = self.mint_of(tx, to, mint) else { return };
                self.move_tokens(None, Some(to), amount, amount);
                self.push(at, Asset::Token(asset), Means::Mint, None, Some(to), amount, amount);
            }
            Action::Burn { mint, from, amount } => {
                let Some(asset) = self.mint_of(tx, from, mint) else { return };
                self.move_tokens(Some(from), None, amount, amount);
                self.push(at, Asset::Token(asset), Means::Burn, Some(from), None, amount, amount);
            }
            Action::Close { account, to, .. } => self.close(at, account, to),
            Action::Unwrap { from, to, amount } => {
                let held = self.account(from).tokens;
                let amount = amount.unwrap_or(held);
                self.move_tokens(Some(from), None, amount, amount);
                self.pay(at, Means::Transfer, from, to, amount);
            }
            Action::Open { account, .. } => {
                let rate = self.rent_rate;
                if let Some(account) = self.at(account).filter(|account| account.wrapped) {
                    account.rent = rent_within(account.held(), rate);
                }
            }
            Action::Approve { .. } | Action::Still | Action::Call => {}
        }
    }

    /// The mint of a token account if known, else the mint that the instruction names.
    fn mint_of(&mut self, tx: &Transaction, account: u8, mint: u8) -> Option<usize> {
        let held = self.account(account).mint;
        held.or_else(|| tx.key(mint).map(|key| self.mint(key)))
    }

    fn mark_allocated(&mut self, at: usize, account: u8) {
        if let Some(account) = self.at(account) {
            account.allocated = Some(at);
        }
    }

    fn pay(&mut self, at: usize, means: Means, from: u8, to: u8, lamports: u64) {
        let fresh = self.account(to).lamports == 0;
        self.move_lamports(from, to, lamports);
        self.push(at, Asset::Native, means, Some(from), Some(to), lamports, lamports);
        if let Some(flow) = self.flows.last_mut() {
            flow.fresh = fresh;
        }
    }

    fn transfer(
        &mut self,
        at: usize,
        from: u8,
        to: u8,
        amount: u64,
        received: u64,
        mint: Option<AccountKey>,
    ) {
        self.move_tokens(Some(from), Some(to), amount, received);
        if self.account(from).wrapped || self.account(to).wrapped || mint == Some(WRAPPED_SOL) {
            return self.pay(at, Means::Transfer, from, to, amount);
        }
        let ends = (self.account(from).mint, self.account(to).mint);
        // Both ends of a transfer have the same mint.
        if let (Some(one), Some(other)) = ends
            && one != other
        {
            self.mark_unexplained(from);
            self.mark_unexplained(to);
        }
        let held = if self.is_own(Some(to)) { ends.1.or(ends.0) } else { ends.0.or(ends.1) };
        let named = mint.map(|mint| self.mint(&mint));
        let Some(mint) = held.or(named) else { return };
        // The mint of a temporary account may be known only from a transfer.
        for end in [from, to] {
            if let Some(account) = self.at(end) {
                account.mint.get_or_insert(mint);
            }
        }
        let (from, to) = (Some(from), Some(to));
        self.push(at, Asset::Token(mint), Means::Transfer, from, to, amount, received);
    }

    fn close(&mut self, at: usize, account: u8, to: u8) {
        let closed = self.account(account);
        let held = closed.held();
        let rent = if closed.wrapped { closed.rent.min(held) } else { held };
        // No more than what is left was rent, also where no creation reveals the rate.
        if let Some(left) = self.at(account) {
            left.rent = rent;
        }
        // Only an empty account can be closed, except for wrapped SOL.
        if !closed.wrapped && closed.tokens > 0 {
            self.mark_unexplained(account);
        }
        self.set_tokens(account, Some(0));
        self.pay(at, Means::Close { rent }, account, to, held);
    }

    fn move_lamports(&mut self, from: u8, to: u8, lamports: u64) {
        if let Some(account) = self.at(from) {
            account.lamports -= i128::from(lamports);
        }
        if let Some(account) = self.at(to) {
            account.lamports += i128::from(lamports);
        }
    }

    fn move_tokens(&mut self, from: Option<u8>, to: Option<u8>, amount: u64, received: u64) {
        if let Some(at) = from {
            let left = self.account(at).tokens.checked_sub(amount);
            self.set_tokens(at, left);
        }
        if let Some(at) = to {
            let grown = self.account(at).tokens.checked_add(received);
            self.set_tokens(at, grown);
        }
    }

    /// `tokens` is `None` if the amount is out of range.
    fn set_tokens(&mut self, at: u8, tokens: Option<u64>) {
        if let Some(account) = self.at(at) {
            account.tokens = tokens.unwrap_or_default();
        }
        if tokens.is_none() {
            self.mark_unexplained(at);
        }
    }

    fn mark_unexplained(&mut self, at: u8) {
        if let Some(unexplained) = self.unexplained.get_mut(usize::from(at)) {
            *unexplained = true;
        }
    }

    /// Whether the balances agree with what the instructions moved into and out of an account.
    pub(super) fn is_explained(&self, at: u8) -> bool {
        self.unexplained.get(usize::from(at)) == Some(&false)
    }

    /// Whether they agree for all of the wallet's accounts of this mint.
    pub(super) fn is_mint_explained(&self, mint: usize) -> bool {
        let of_mint = |account: &LedgerAccount| account.own && account.mint == Some(mint);
        let mut accounts = self.accounts.iter().zip(&self.unexplained);
        !accounts.any(|(account, unexplained)| *unexplained && of_mint(account))
    }

    /// Compares the flows with the balance lists.
    fn check_balances(&mut self, tx: &Transaction) {
        self.residue = tx
            .lamports
            .iter()
            .zip(&self.accounts)
            .map(|((_, after), account)| i128::from(*after) - account.lamports)
            .collect();
        for token in &tx.tokens {
            let account = self.account(token.account);
            let after = token.after.unwrap_or(0);
            // Wrapped SOL has no transfer fee; its lamports are checked by the residue.
            if account.wrapped {
                continue;
            }
            let mut excess = account.tokens.saturating_sub(after);
            if account.own {
                excess = self.withhold(token.account, excess);
            }
            if excess > 0 || account.tokens < after {
                self.mark_unexplained(token.account);
            }
        }
        self.check_unlisted(tx);
    }

    /// If a reply has balance lists at all, every account with tokens is in them.
    fn check_unlisted(&mut self, tx: &Transaction) {
        let listed = |at: u8| tx.tokens.iter().any(|token| token.account == at);
        for at in (0..=u8::MAX).take(self.accounts.len()) {
            let account = self.account(at);
            let holds = account.own && account.mint.is_some() && !account.wrapped;
            if holds && account.tokens > 0 && !tx.tokens.is_empty() && !listed(at) {
                self.mark_unexplained(at);
            }
        }
    }

    /// Subtracts the mint's transfer fee from what arrived at one of the wallet's accounts. Returns
    /// the excess that no transfer fee explains.
    fn withhold(&mut self, account: u8, mut excess: u64) -> u64 {
        let into = |flow: &&mut Flow| flow.to == Some(account) && flow.means == Means::Transfer;
        for flow in self.flows.iter_mut().filter(into) {
            let part = excess.min(flow.received);
            flow.received -= part;
            excess -= part;
        }
        excess
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a flow, in one place")]
    fn push(
        &mut self,
        instruction: usize,
        asset: Asset,
        means: Means,
        from: Option<u8>,
        to: Option<u8>,
        amount: u64,
        received: u64,
    ) {
        self.flows.push(Flow {
            instruction,
            asset,
            means,
            from,
            to,
            amount,
            received,
            fresh: false,
        });
    }
}

/// Rent is charged for this many bytes per account in addition to its data.
pub(super) const ACCOUNT_OVERHEAD: u64 = 128;
const TOKEN_ACCOUNT_SPACE: u64 = 165;
/// The rent rate until 2026, when it began to fall; used only as an upper bound.
const RENT_RATE_MAX: u64 = 6_960;

/// Derived from an account creation whose lamports are a multiple of the account's size.
fn rent_rate(tx: &Transaction) -> Option<u64> {
    tx.instructions.iter().find_map(|instruction| {
        let Action::Create { lamports, space, .. } = instruction.action else { return None };
        let size = ACCOUNT_OVERHEAD.checked_add(space)?;
        let rate = lamports.checked_div(size)?;
        let whole = lamports.is_multiple_of(size) && (1..=RENT_RATE_MAX).contains(&rate);
        whole.then_some(rate)
    })
}

/// How much of a new wrapped-SOL account's lamports is rent.
fn rent_within(lamports: u64, rate: Option<u64>) -> u64 {
    let size = ACCOUNT_OVERHEAD + TOKEN_ACCOUNT_SPACE;
    if lamports.is_multiple_of(size) && lamports <= size * RENT_RATE_MAX {
        return lamports;
    }
    lamports.min(size * rate.unwrap_or(RENT_RATE_MAX))
}

/// Whether a token account without a reported owner belongs to the wallet: the wallet signs for it,
/// or it is the wallet's associated token account.
fn owns_unreported(tx: &Transaction, token: &TokenAccount, wallet: &AccountKey, at: u8) -> bool {
    let signs = tx.instructions.iter().any(|instruction| {
        let (account, signer) = match instruction.action {
            Action::Transfer { from, authority, .. } => (from, authority),
            Action::Close { account, owner, .. } => (account, owner),
            Action::Approve { account, owner } => (account, Some(owner)),
            Action::Pay { .. }
            | Action::Create { .. }
            | Action::Allocate { .. }
            | Action::Assign { .. }
            | Action::Mint { .. }
            | Action::Burn { .. }
            | Action::Open { .. }
            | Action::Unwrap { .. }
            | Action::Still
            | Action::Call => return false,
        };
        account == token.account && signer == Some(at)
    });
    signs
        || tx.key(token.account).is_some_and(|account| {
            let programs = [TOKEN_PROGRAM, TOKEN_2022_PROGRAM];
            let mut programs = programs.iter().filter(|program| tx.find(program).is_some());
            programs.any(|program| is_associated(account, wallet, program, &token.mint))
        })
}

/// Whether an account is the associated token account of this owner, token program and mint.
fn is_associated(
    account: &AccountKey,
    owner: &AccountKey,
    program: &AccountKey,
    mint: &AccountKey,
) -> bool {
    let start = Sha256::new_with_prefix(owner).chain_update(program);
    (BUMP_MIN..=u8::MAX).rev().any(|bump| {
        let mut hash = start.clone();
        for part in [mint.as_slice(), &[bump], &ASSOCIATED_TOKEN_PROGRAM] {
            hash.update(part);
        }
        hash.update(b"ProgramDerivedAddress");
        hash.finalize().as_slice() == account
    })
}
