//! Accounts at the head: wallets, mints with their metadata, token accounts.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::history::{LANES, NoiseKind, STEPS, WalletHistory, noise_number};
use super::keys::{KnownAccount, ModelKey};
use super::model::{ListSubject, SolanaModel};
use super::noise::{POSITION_UNITS, SHARE_UNITS, SPAM_UNITS};
use super::tokens::{DemoToken, SPL_TOKENS};
use super::wire::{self, member, quoted};
use super::{COIN_URI, borsh_text, maker, number};
use crate::demo::mix;
use crate::domain::{Height, program_address};

/// Spam tokens whose metadata account is known.
const SPAM_METADATA: u32 = 32;
const METADATA_SPACE: usize = 679;
const TOKEN_ACCOUNT: usize = 165;

/// Metadata accounts of the tokens that have one, by address.
static METADATA: LazyLock<HashMap<ModelKey, DemoToken>> = LazyLock::new(|| {
    let coins = (0..SPL_TOKENS).map(DemoToken::Coin);
    let spam = (0..SPAM_METADATA).map(DemoToken::Spam);
    let all = coins.chain(spam).chain([DemoToken::Usdc, DemoToken::Position]);
    let program = KnownAccount::Metaplex.key();
    all.filter(|token| token.has_metadata())
        .map(|token| (program_address(&[b"metadata", &program, &token.mint()], &program), token))
        .collect()
});

struct AccountData {
    data: Vec<u8>,
    lamports: u64,
    owner: KnownAccount,
}

impl SolanaModel {
    pub(super) fn write_account(&self, out: &mut Vec<u8>, key: &ModelKey, head: Height) {
        match self.account_data(key, head) {
            Some(account) => write(out, &account, None),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn account_data(&self, key: &ModelKey, head: Height) -> Option<AccountData> {
        if let Some(token) = DemoToken::from_mint(key) {
            return Some(self.mint_data(token));
        }
        if let Some(known) = KnownAccount::of(key) {
            let is_program = known.is_program();
            let owner = if is_program { KnownAccount::Loader } else { KnownAccount::System };
            return Some(AccountData { data: Vec::new(), lamports: 1_141_440, owner });
        }
        if let Some(token) = METADATA.get(key) {
            let (data, owner) = (metaplex(*token), KnownAccount::Metaplex);
            return Some(AccountData { data, lamports: 5_616_720, owner });
        }
        match self.subject(key)? {
            ListSubject::TokenAccount(wallet, token) => {
                let amount = self.holding(&wallet, token, wallet.count_at(head))?;
                Some(token_account(&wallet.address, token, amount))
            }
            ListSubject::Wallet(wallet) => {
                let count = wallet.count_at(head);
                let lamports = 3_000_000_000 + mix::mix(wallet.tag ^ count) % 40_000_000_000;
                let (data, owner) = (Vec::new(), KnownAccount::System);
                let account = AccountData { data, lamports, owner };
                (count > 0).then_some(account)
            }
        }
    }

    fn mint_data(&self, token: DemoToken) -> AccountData {
        let supply = token.supply(self.seed());
        let mut data =
            [&[0; 36][..], &supply.to_le_bytes(), &[token.decimals(), 1], &[0; 36]].concat();
        if token.is_2022() {
            data.resize(TOKEN_ACCOUNT, 0);
            data.push(1);
            let (mint, symbol) = (token.mint(), token.symbol());
            let pointer =
                [&18_u16.to_le_bytes()[..], &64_u16.to_le_bytes(), &[0; 32], &mint].concat();
            data.extend(pointer);
            let name = format!("{symbol} coin");
            let names = [name.as_str(), &symbol, COIN_URI].map(borsh_text).concat();
            let body = [&[0; 32][..], &mint, &names, &[0; 4]].concat();
            let length = u16::try_from(body.len()).unwrap_or(0).to_le_bytes();
            data.extend([&19_u16.to_le_bytes()[..], &length, &body].concat());
        }
        AccountData { data, lamports: 1_461_600, owner: token.program() }
    }

    /// Base units of the wallet after `count` transactions; `None` without an account.
    pub(super) fn holding(
        &self,
        wallet: &WalletHistory,
        token: DemoToken,
        count: u64,
    ) -> Option<u64> {
        let script = self.script(wallet);
        let trades = wallet.trades_below(count);
        let noises = wallet.noises_below(count);
        let rounds = |kind| (noises + 7).saturating_sub(noise_number(kind, 0)) / 8;
        match token {
            DemoToken::WrappedSol => None,
            DemoToken::Usdc => script.usdc_balance(trades),
            DemoToken::Coin(_) | DemoToken::Created(..) => {
                let (lane, first, period) = script.cycles_of(token)?;
                let turns = trades.checked_sub(lane + 1)? / LANES;
                let begun = turns / STEPS;
                let cycle = begun - begun.checked_sub(first)? % period;
                let step = if cycle == begun { turns % STEPS } else { STEPS - 1 };
                let closed = step == STEPS - 1 && !script.keeps(lane, cycle);
                (!closed).then(|| script.balance(lane, cycle, step))
            }
            DemoToken::Spam(number) => {
                let accounts = u64::from(wallet.plan.spam_accounts.max(1));
                let number = u64::from(number);
                let times =
                    (rounds(NoiseKind::Spam) + accounts - 1).saturating_sub(number) / accounts;
                (number < accounts && times > 0).then(|| SPAM_UNITS.saturating_mul(times))
            }
            DemoToken::Position => match rounds(NoiseKind::Liquidity) {
                0 => None,
                done => Some(if done % 2 == 1 { POSITION_UNITS } else { 0 }),
            },
            DemoToken::PositionShare => match rounds(NoiseKind::Liquidity) {
                0 | 1 => None,
                done => Some(if done % 4 == 2 { SHARE_UNITS } else { 0 }),
            },
            DemoToken::Idle => (rounds(NoiseKind::TokenAccount) % 2 == 1).then_some(0),
        }
    }

    /// The wallet's open token accounts after `count` transactions.
    pub(super) fn holdings(&self, wallet: &WalletHistory, count: u64) -> Vec<(DemoToken, u64)> {
        let script = self.script(wallet);
        let mut tokens =
            vec![DemoToken::Usdc, DemoToken::Position, DemoToken::PositionShare, DemoToken::Idle];
        tokens.extend((0..wallet.plan.spam_accounts.max(1)).map(DemoToken::Spam));
        for lane in 0..LANES {
            tokens
                .extend((0..64).filter(|c| script.keeps(lane, *c)).map(|c| script.token(lane, c)));
            let turns = wallet.trades_below(count).checked_sub(lane + 1).map(|t| t / LANES / STEPS);
            tokens.extend(turns.map(|cycle| script.token(lane, cycle)));
        }
        tokens.sort_unstable();
        tokens.dedup();
        let held = |token: DemoToken| Some((token, self.holding(wallet, token, count)?));
        tokens.into_iter().filter_map(held).collect()
    }

    /// Writes `{"pubkey":…,"account":…}` of one open token account.
    pub(super) fn write_holding(
        &self,
        out: &mut Vec<u8>,
        wallet: &WalletHistory,
        (token, amount): (DemoToken, u64),
        parsed: bool,
    ) {
        let account = token_account(&wallet.address, token, amount);
        out.extend_from_slice(b"{\"account\":");
        write(out, &account, parsed.then_some((&wallet.address, token, amount)));
        out.extend_from_slice(b",\"pubkey\":");
        wire::quoted_base58(out, &maker::token_account(self.seed(), wallet.tag, token));
        out.push(b'}');
    }
}

fn token_account(owner: &ModelKey, token: DemoToken, amount: u64) -> AccountData {
    let mut data =
        [&token.mint()[..], owner, &amount.to_le_bytes(), &[0; 36], &[1], &[0; 56]].concat();
    if token.is_2022() {
        // Account type, then the immutable-owner extension.
        data.extend([2, 7, 0, 0, 0]);
    }
    AccountData { data, lamports: token.account_rent(), owner: token.program() }
}

/// A Metaplex metadata account: strings padded to their longest.
fn metaplex(token: DemoToken) -> Vec<u8> {
    let padded = |value: &str, size: usize| borsh_text(&format!("{value:\0<size$.size$}"));
    let symbol = token.symbol();
    let name = padded(&format!("{symbol} coin"), 32);
    let names = [name, padded(&symbol, 10), padded("", 200)].concat();
    let mut data = [&[4][..], &[0; 32], &token.mint(), &names, &[0, 0, 0, 0, 1]].concat();
    data.resize(METADATA_SPACE, 0);
    data
}

/// `parsed`: the owner, the token and the amount of a token account whose data are shown as JSON.
fn write(out: &mut Vec<u8>, account: &AccountData, parsed: Option<(&ModelKey, DemoToken, u64)>) {
    let space = u64::try_from(account.data.len()).unwrap_or(0);
    out.extend_from_slice(b"{\"data\":");
    if let Some((owner, token, amount)) = parsed {
        out.extend_from_slice(b"{\"parsed\":{\"info\":{\"isNative\":false");
        wire::quoted_base58(member(out, "mint"), &token.mint());
        wire::quoted_base58(member(out, "owner"), owner);
        quoted(member(out, "state"), "initialized");
        wire::token_amount(member(out, "tokenAmount"), amount, token.decimals());
        out.extend_from_slice(b"},\"type\":\"account\"}");
        let program = if token.is_2022() { "spl-token-2022" } else { "spl-token" };
        quoted(member(out, "program"), program);
        number(member(out, "space"), space);
        out.push(b'}');
    } else {
        wire::list(out, [STANDARD.encode(&account.data).as_str(), "base64"], quoted);
    }
    let executable = (account.owner == KnownAccount::Loader).to_string();
    member(out, "executable").extend_from_slice(executable.as_bytes());
    number(member(out, "lamports"), account.lamports);
    quoted(member(out, "owner"), account.owner.text());
    number(member(out, "rentEpoch"), u64::MAX);
    number(member(out, "space"), space);
    out.push(b'}');
}
