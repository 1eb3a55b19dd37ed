//! Accounts at the head: wallets, mints with their metadata, token accounts.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::history::{LANES, NoiseKind, STEPS, WalletHistory, noise_number};
use super::keys::{KnownAccount, ModelKey};
use super::model::{ListSubject, SolanaModel};
use super::noise::{POSITION_UNITS, SHARE_UNITS, SPAM_UNITS};
use super::tokens::{DemoToken, SPL_TOKENS};
use super::{COIN_URI, base58_text, borsh_text, maker, wire};
use crate::demo::mix;
use crate::demo::rpc::set;
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

impl SolanaModel {
    /// `None` where there is no account.
    pub(super) fn account(&self, key: &ModelKey, head: Height) -> Option<Value> {
        if let Some(token) = DemoToken::from_mint(key) {
            return Some(account(&self.mint_data(token), 1_461_600, token.program()));
        }
        if let Some(known) = KnownAccount::of(key) {
            let is_program = known.is_program();
            let owner = if is_program { KnownAccount::Loader } else { KnownAccount::System };
            return Some(account(&[], 1_141_440, owner));
        }
        if let Some(token) = METADATA.get(key) {
            return Some(account(&metaplex(*token), 5_616_720, KnownAccount::Metaplex));
        }
        match self.subject(key)? {
            ListSubject::TokenAccount(wallet, token) => {
                let amount = self.holding(&wallet, token, wallet.count_at(head))?;
                Some(token_account(&wallet.address, token, amount))
            }
            ListSubject::Wallet(wallet) => {
                let count = wallet.count_at(head);
                let lamports = 3_000_000_000 + mix::mix(wallet.tag ^ count) % 40_000_000_000;
                (count > 0).then(|| account(&[], lamports, KnownAccount::System))
            }
        }
    }

    fn mint_data(&self, token: DemoToken) -> Vec<u8> {
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
        data
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

    /// An open token account with its address; `parsed`: its data are shown as JSON.
    pub(super) fn held_account(
        &self,
        wallet: &WalletHistory,
        (token, amount): (DemoToken, u64),
        parsed: bool,
    ) -> Value {
        let mut account = token_account(&wallet.address, token, amount);
        if parsed {
            let mut sum = Vec::new();
            wire::token_amount(&mut sum, amount, token.decimals());
            let info = json!({
                "isNative": false, "mint": base58_text(&token.mint()),
                "owner": base58_text(&wallet.address), "state": "initialized",
                "tokenAmount": serde_json::from_slice::<Value>(&sum).unwrap_or_default(),
            });
            let program = if token.is_2022() { "spl-token-2022" } else { "spl-token" };
            let (parsed, space) =
                (json!({"info": info, "type": "account"}), account.get("space").cloned());
            set(
                &mut account,
                "data",
                json!({"parsed": parsed, "program": program, "space": space}),
            );
        }
        let address = maker::token_account(self.seed(), wallet.tag, token);
        json!({"account": account, "pubkey": base58_text(&address)})
    }
}

fn token_account(owner: &ModelKey, token: DemoToken, amount: u64) -> Value {
    let mut data =
        [&token.mint()[..], owner, &amount.to_le_bytes(), &[0; 36], &[1], &[0; 56]].concat();
    if token.is_2022() {
        // Account type, then the immutable-owner extension.
        data.extend([2, 7, 0, 0, 0]);
    }
    account(&data, token.account_rent(), token.program())
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

/// An account as nodes show it, its data in base64.
fn account(data: &[u8], lamports: u64, owner: KnownAccount) -> Value {
    json!({
        "data": [STANDARD.encode(data), "base64"], "executable": owner == KnownAccount::Loader,
        "lamports": lamports, "owner": owner.text(), "rentEpoch": u64::MAX, "space": data.len(),
    })
}
