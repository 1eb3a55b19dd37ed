//! A transaction under construction. Instructions and balances change together, so that they agree.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::keys::{KnownAccount, ModelKey};
use super::le;
use super::tokens::DemoToken;

/// Lamports of a program or sysvar; the same for all.
const PROGRAM_LAMPORTS: u64 = 1_141_440;
/// The remaining compute units that a call logs at its start.
const COMPUTE_BUDGET: u64 = 600_000;
const BASE_FEE: u64 = 5_000;

/// An account of the transaction, by order of first mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acc(pub(super) u8);

#[derive(Debug, Clone, Copy)]
pub(super) struct TokenState {
    pub(super) token: DemoToken,
    pub(super) owner: ModelKey,
    /// `None` while the account does not exist.
    pub(super) before: Option<u64>,
    pub(super) after: Option<u64>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct AccountState {
    pub(super) key: ModelKey,
    pub(super) signer: bool,
    pub(super) writable: bool,
    /// Loaded from a lookup table (version 0 only).
    pub(super) loaded: bool,
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) token: Option<TokenState>,
}

#[derive(Debug, Clone)]
pub(super) struct InstructionState {
    pub(super) program: Acc,
    pub(super) accounts: Vec<Acc>,
    pub(super) data: Vec<u8>,
    /// 1 is the outer level.
    pub(super) height: u8,
}

#[derive(Debug, Default)]
pub(super) struct Tx {
    /// `None` is legacy.
    pub(super) version: Option<u8>,
    pub(super) accounts: Vec<AccountState>,
    pub(super) instructions: Vec<InstructionState>,
    /// The lines of the log as JSON strings with commas in between.
    pub(super) log: Vec<u8>,
    pub(super) fee: u64,
    /// Instruction and custom error code.
    pub(super) error: Option<(u8, u32)>,
    pub(super) compute_units: u64,
    pub(super) return_data: Option<(KnownAccount, [u8; 8])>,
    calls: Vec<KnownAccount>,
    pub(super) seed: u64,
}

impl Tx {
    pub(super) fn new(seed: u64, version: Option<u8>) -> Self {
        Self {
            seed,
            version,
            accounts: Vec::with_capacity(40),
            instructions: Vec::with_capacity(24),
            log: Vec::with_capacity(4_096),
            ..Self::default()
        }
    }

    /// A plain account; its lamports count at the first mention.
    pub(super) fn account(&mut self, key: ModelKey, lamports: u64) -> Acc {
        if let Some(at) = self.accounts.iter().position(|account| account.key == key) {
            return Acc(u8::try_from(at).unwrap_or(u8::MAX));
        }
        let at = Acc(u8::try_from(self.accounts.len()).unwrap_or(u8::MAX));
        let new =
            AccountState { key, before: lamports, after: lamports, ..AccountState::default() };
        self.accounts.push(new);
        at
    }

    pub(super) fn known(&mut self, known: KnownAccount) -> Acc {
        self.account(known.key(), PROGRAM_LAMPORTS)
    }

    /// An account that signs and pays; the first one is the fee payer.
    pub(super) fn signer(&mut self, key: ModelKey, lamports: u64) -> Acc {
        let at = self.account(key, lamports);
        self.touch(at);
        self.change(at, |account| account.signer = true);
        at
    }

    pub(super) fn writable(&mut self, key: ModelKey, lamports: u64) -> Acc {
        let at = self.account(key, lamports);
        self.touch(at);
        at
    }

    /// An account that the message names through a lookup table, where the version has them.
    pub(super) fn lookup(&mut self, at: Acc) -> Acc {
        let can = self.version == Some(0);
        self.change(at, |account| account.loaded = can && !account.signer);
        at
    }

    /// A token account; `amount` is `None` where it does not exist yet.
    pub(super) fn token_account(
        &mut self,
        key: ModelKey,
        owner: ModelKey,
        token: DemoToken,
        amount: Option<u64>,
    ) -> Acc {
        let native = if token == DemoToken::WrappedSol { amount.unwrap_or(0) } else { 0 };
        let rent = if amount.is_some() { token.account_rent() } else { 0 };
        let at = self.writable(key, rent.saturating_add(native));
        let state = TokenState { token, owner, before: amount, after: amount };
        self.change(at, |account| account.token = account.token.or(Some(state)));
        at
    }

    pub(super) fn mint(&mut self, token: DemoToken) -> Acc {
        self.account(token.mint(), 1_461_600)
    }

    pub(super) fn get(&self, at: Acc) -> Option<&AccountState> {
        self.accounts.get(usize::from(at.0))
    }

    fn change(&mut self, at: Acc, change: impl FnOnce(&mut AccountState)) {
        if let Some(account) = self.accounts.get_mut(usize::from(at.0)) {
            change(account);
        }
    }

    pub(super) fn touch(&mut self, at: Acc) {
        self.change(at, |account| account.writable = true);
    }

    pub(super) fn key(&self, at: Acc) -> ModelKey {
        self.get(at).map(|account| account.key).unwrap_or_default()
    }

    fn token_of(&self, at: Acc) -> Option<TokenState> {
        self.get(at)?.token
    }

    pub(super) fn amount(&self, at: Acc) -> u64 {
        self.token_of(at).and_then(|state| state.after).unwrap_or(0)
    }

    // Movements without an instruction of their own.

    pub(super) fn move_lamports(&mut self, from: Acc, to: Acc, lamports: u64) {
        self.change(from, |account| account.after = account.after.saturating_sub(lamports));
        self.change(to, |account| account.after = account.after.saturating_add(lamports));
        self.touch(from);
        self.touch(to);
    }

    fn set_amount(&mut self, at: Acc, amount: Option<u64>) {
        self.change(at, |account| {
            account.token = account.token.map(|state| TokenState { after: amount, ..state });
        });
    }

    fn take(&mut self, from: Acc, amount: u64) {
        self.set_amount(from, Some(self.amount(from).saturating_sub(amount)));
    }

    fn give(&mut self, to: Acc, amount: u64) {
        self.set_amount(to, Some(self.amount(to).saturating_add(amount)));
        self.touch(to);
    }

    fn line(&mut self, parts: &[&[u8]]) {
        if !self.log.is_empty() {
            self.log.push(b',');
        }
        self.log.push(b'"');
        for part in parts {
            self.log.extend_from_slice(part);
        }
        self.log.push(b'"');
    }

    /// `Program log: …`; the text must not need escaping in JSON.
    pub(super) fn say(&mut self, text: &str) {
        self.line(&[b"Program log: ", text.as_bytes()]);
    }

    /// `Program data: …`, an event in the log.
    pub(super) fn say_data(&mut self, data: &[u8]) {
        let text = STANDARD.encode(data);
        self.line(&[b"Program data: ", text.as_bytes()]);
    }

    /// Begins a call; all that follows until [`Tx::leave`] is inside it.
    pub(super) fn enter(
        &mut self,
        program: KnownAccount,
        accounts: &[Acc],
        data: &[u8],
        name: &str,
    ) {
        let at = self.known(program);
        let height = u8::try_from(self.calls.len() + 1).unwrap_or(u8::MAX);
        let (accounts, data) = (accounts.to_vec(), data.to_vec());
        self.instructions.push(InstructionState { program: at, accounts, data, height });
        self.calls.push(program);
        let digits = height.to_string();
        let (text, digits) = (program.text().as_bytes(), digits.as_bytes());
        self.line(&[b"Program ", text, b" invoke [", digits, b"]"]);
        if !name.is_empty() {
            self.line(&[b"Program log: Instruction: ", name.as_bytes()]);
        }
    }

    /// Ends the innermost call. Builtin programs log no units.
    pub(super) fn leave(&mut self, units: u64) {
        let Some(program) = self.calls.pop() else { return };
        let text = program.text().as_bytes();
        if units > 0 {
            let left = COMPUTE_BUDGET.saturating_sub(self.compute_units);
            let used = format!(" consumed {units} of {left} compute units");
            self.line(&[b"Program ", text, used.as_bytes()]);
        }
        if self.calls.is_empty() {
            self.compute_units += units.max(150);
        }
        self.line(&[b"Program ", text, b" success"]);
    }

    /// Ends all open calls with an error of the current program, and the transaction with it.
    pub(super) fn fail(&mut self, code: u32) {
        let outer = self.instructions.iter().filter(|call| call.height == 1).count();
        self.error = Some((u8::try_from(outer.saturating_sub(1)).unwrap_or(0), code));
        let text = format!(" failed: custom program error: {code:#x}");
        while let Some(program) = self.calls.pop() {
            self.line(&[b"Program ", program.text().as_bytes(), text.as_bytes()]);
        }
    }

    pub(super) fn call(
        &mut self,
        program: KnownAccount,
        accounts: &[Acc],
        data: &[u8],
        name: &str,
        units: u64,
    ) {
        self.enter(program, accounts, data, name);
        self.leave(units);
    }

    /// Sets the compute budget, as every wallet does; version 1 has it in the message.
    pub(super) fn budget(&mut self, price: u64) {
        if self.version == Some(1) {
            return;
        }
        let limit = [&[2_u8][..], &200_000_u32.to_le_bytes()].concat();
        let price = [&[3][..], &le([price])].concat();
        self.call(KnownAccount::ComputeBudget, &[], &limit, "", 0);
        self.call(KnownAccount::ComputeBudget, &[], &price, "", 0);
    }

    /// Charges the fee to the first account and completes the transaction.
    pub(super) fn pay_fee(&mut self, priority: u64) {
        // Programs of outer instructions cannot come from a lookup table, nor can a signer.
        let outer = self.instructions.iter().filter(|call| call.height == 1);
        let programs: Vec<Acc> = outer.map(|call| call.program).collect();
        for program in programs {
            self.change(program, |account| account.loaded = false);
        }
        for account in &mut self.accounts {
            account.loaded &= !account.signer;
        }
        let signers = self.accounts.iter().filter(|account| account.signer).count();
        self.fee = priority + BASE_FEE * u64::try_from(signers).unwrap_or(1);
        let fee = self.fee;
        if let Some(payer) = self.accounts.first_mut() {
            payer.after = payer.after.saturating_sub(fee);
        }
    }

    pub(super) fn transfer(&mut self, from: Acc, to: Acc, lamports: u64) {
        self.move_lamports(from, to, lamports);
        let data = [&2_u32.to_le_bytes()[..], &le([lamports])].concat();
        self.call(KnownAccount::System, &[from, to], &data, "", 0);
    }

    /// `ends`: the payer and the new account; `sums`: its lamports and its bytes.
    pub(super) fn create_account(&mut self, ends: [Acc; 2], sums: [u64; 2], owner: KnownAccount) {
        self.create(&[0; 4], ends, sums, owner);
    }

    pub(super) fn create_with_seed(&mut self, ends: [Acc; 2], sums: [u64; 2], owner: KnownAccount) {
        let (text, [payer, _]) = (b"demo-seed-0123456789abcdef", ends);
        let length = u64::try_from(text.len()).unwrap_or(0);
        let base = [&3_u32.to_le_bytes()[..], &self.key(payer), &le([length]), text].concat();
        self.create(&base, ends, sums, owner);
    }

    fn create(&mut self, head: &[u8], ends: [Acc; 2], sums: [u64; 2], owner: KnownAccount) {
        let ([payer, new], [lamports, _]) = (ends, sums);
        self.move_lamports(payer, new, lamports);
        let data = [head, &le(sums), &owner.key()].concat();
        self.call(KnownAccount::System, &ends, &data, "", 0);
    }

    /// Opens the associated token account, with the program's inner calls.
    pub(super) fn create_associated(&mut self, payer: Acc, account: Acc, owner: Acc) {
        let Some(state) = self.token_of(account) else { return };
        let mint = self.mint(state.token);
        let program = state.token.program();
        let (system, token) = (self.known(KnownAccount::System), self.known(program));
        let accounts = [payer, account, owner, mint, system, token];
        self.enter(KnownAccount::AssociatedToken, &accounts, &[1], "");
        self.say("CreateIdempotent");
        self.call(program, &[mint], &[21, 7, 0], "GetAccountDataSize", 1_569);
        let space = if state.token.is_2022() { 170 } else { 165 };
        self.create_account([payer, account], [state.token.account_rent(), space], program);
        self.say("Initialize the associated token account");
        self.call(program, &[account], &[22], "InitializeImmutableOwner", 1_405);
        let owner_key = self.key(owner);
        let init = [&[18_u8][..], &owner_key].concat();
        self.call(program, &[account, mint], &init, "InitializeAccount3", 3_158);
        self.set_amount(account, Some(0));
        self.leave(20_815);
    }

    /// Initializes a token account whose system account exists already.
    pub(super) fn initialize(&mut self, account: Acc, owner: Acc) {
        let Some(state) = self.token_of(account) else { return };
        let (mint, rent) = (self.mint(state.token), self.known(KnownAccount::Rent));
        let accounts = [account, mint, owner, rent];
        self.call(state.token.program(), &accounts, &[1], "InitializeAccount", 3_443);
        let held = self.get(account).map_or(0, |account| account.after);
        let native = held.saturating_sub(state.token.account_rent());
        let amount = if state.token == DemoToken::WrappedSol { native } else { 0 };
        self.set_amount(account, Some(amount));
    }

    /// Transfers tokens by either instruction; wrapped SOL with its lamports.
    pub(super) fn send(&mut self, from: Acc, to: Acc, authority: Acc, amount: u64, checked: bool) {
        let Some(state) = self.token_of(from) else { return };
        self.take(from, amount);
        self.give(to, amount);
        self.touch(from);
        if state.token == DemoToken::WrappedSol {
            self.move_lamports(from, to, amount);
        }
        let program = state.token.program();
        if checked || state.token.is_2022() {
            let mint = self.mint(state.token);
            let data = [&[12][..], &le([amount]), &[state.token.decimals()]].concat();
            self.call(program, &[from, mint, to, authority], &data, "TransferChecked", 6_147);
        } else {
            let data = [&[3][..], &le([amount])].concat();
            self.call(program, &[from, to, authority], &data, "Transfer", 4_645);
        }
    }

    pub(super) fn mint_to(&mut self, mint: Acc, to: Acc, authority: Acc, amount: u64) {
        let Some(state) = self.token_of(to) else { return };
        self.give(to, amount);
        self.touch(mint);
        let data = [&[7][..], &le([amount])].concat();
        self.call(state.token.program(), &[mint, to, authority], &data, "MintTo", 4_492);
    }

    pub(super) fn burn(&mut self, from: Acc, mint: Acc, authority: Acc, amount: u64) {
        let Some(state) = self.token_of(from) else { return };
        self.take(from, amount);
        self.touch(mint);
        let data = [&[8][..], &le([amount])].concat();
        self.call(state.token.program(), &[from, mint, authority], &data, "Burn", 4_753);
    }

    /// Adds lamports that were sent to a wrapped SOL account to its amount.
    pub(super) fn sync_native(&mut self, account: Acc) {
        let held = self.get(account).map_or(0, |account| account.after);
        self.set_amount(account, Some(held.saturating_sub(DemoToken::WrappedSol.account_rent())));
        self.call(KnownAccount::Token, &[account], &[17], "SyncNative", 3_045);
    }

    /// Closes a token account; all its lamports go to `to`.
    pub(super) fn close(&mut self, account: Acc, to: Acc, owner: Acc) {
        let Some(state) = self.token_of(account) else { return };
        let held = self.get(account).map_or(0, |account| account.after);
        self.move_lamports(account, to, held);
        self.set_amount(account, None);
        self.call(state.token.program(), &[account, to, owner], &[9], "CloseAccount", 2_915);
    }

    /// An anchor event: the program calls itself with the event as data.
    pub(super) fn event(&mut self, program: KnownAccount, authority: Acc, event: &[u8]) {
        let data = [&EVENT_TAG[..], event].concat();
        self.call(program, &[authority], &data, "", 2_003);
    }
}

/// Prefix of the data of an event that a program calls itself with.
const EVENT_TAG: [u8; 8] = [0xe4, 0x45, 0xa5, 0x2e, 0x51, 0xcb, 0x9a, 0x1d];
