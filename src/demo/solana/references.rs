//! Reference pools: other users swap SOL for dollars in them every few slots, at the current price.
//! Blocks in `accounts` detail contain only these swaps.

use serde_json::{Value, json};

use super::keys::{KnownAccount, Role, account};
use super::tokens::DemoToken;
use super::{base58_text, slots};
use crate::demo::mix::{self, Dice};

/// The price moves around this value, in trillionths of a dollar.
const PRICE_MIDDLE: u128 = 150_000_000_000_000;
/// A pool's own price may differ by so many millionths: the margin that its fee leaves.
const BAND: u64 = 300;
const MILLION: u128 = 1_000_000;

/// Accounts of pools on mainnet, and the fee of each on the input, in millionths.
const POOLS: [(KnownAccount, KnownAccount, u128); 2] = [
    (KnownAccount::WhirlpoolVaultSol, KnownAccount::WhirlpoolVaultUsdc, 400),
    (KnownAccount::RaydiumV4VaultSol, KnownAccount::RaydiumV4VaultUsdc, 2_500),
];

pub(super) fn price(seed: u64, slot: u64) -> u128 {
    mix::price(seed, PRICE_MIDDLE, slots::time(slot))
}

/// Micro-USDC for lamports at a price, and the reverse.
pub(super) fn usdc(lamports: u64, price: u128) -> u64 {
    u64::try_from(u128::from(lamports) * price / 1_000_000_000_000_000).unwrap_or(u64::MAX)
}

pub(super) fn lamports(usdc: u64, price: u128) -> u64 {
    let lamports = u128::from(usdc) * 1_000_000_000_000_000 / price.max(1);
    u64::try_from(lamports).unwrap_or(u64::MAX)
}

/// The swaps of a slot's block, as `transactionDetails: "accounts"` shows them.
pub(super) fn swaps(seed: u64, slot: u64) -> Vec<Value> {
    let mut swaps = Vec::new();
    for (number, pool) in (0..).zip(POOLS) {
        let mut dice = Dice::new(seed, &[slot, number, 29]);
        for _ in 0..dice.range(0, 2) {
            swaps.push(swap(seed, slot, pool, &mut dice));
        }
    }
    swaps
}

fn swap(
    seed: u64,
    slot: u64,
    (sol, usdc_vault, fee): (KnownAccount, KnownAccount, u128),
    dice: &mut Dice,
) -> Value {
    let offset = u128::from(dice.range(0, 2 * BAND));
    let price = price(seed, slot) / MILLION * (MILLION - u128::from(BAND) + offset);
    let fair = dice.range(20_000_000, 900_000_000_000);
    let (held, worth) = (80_000_000_000_000_u64, 12_000_000_000_000_u64);
    // The input includes the fee.
    let with_fee = |amount: u64| {
        let amount = u128::from(amount) * MILLION / (MILLION - fee);
        u64::try_from(amount).unwrap_or(u64::MAX)
    };
    let (sol_after, usdc_after) = if dice.percent(50) {
        (held - fair, worth + with_fee(usdc(fair, price)))
    } else {
        (held + with_fee(fair), worth - usdc(fair, price))
    };
    let user = account(seed, Role::Stranger, [dice.next() % 1_000, 5]);
    let mut signature = [0; 64];
    mix::fill(dice.next(), &mut signature);
    let key = |pubkey: &[u8], signer: bool| json!({"pubkey": base58_text(pubkey), "signer": signer, "source": "transaction", "writable": true});
    let balance = |at: u64, token: DemoToken, amount: u64| {
        json!({
            "accountIndex": at, "mint": base58_text(&token.mint()), "programId": KnownAccount::Token.text(),
            "uiTokenAmount": {
                "amount": amount.to_string(), "decimals": token.decimals(),
                "uiAmountString": amount.to_string(),
            },
        })
    };
    let balances = |native: u64, dollars: u64| {
        json!([balance(1, DemoToken::WrappedSol, native), balance(2, DemoToken::Usdc, dollars)])
    };
    json!({
        "meta": {
            "err": null, "status": {"Ok": null}, "fee": 5_000,
            "preBalances": [9_000_000_000_u64, 2_039_280, 2_039_280],
            "postBalances": [8_999_995_000_u64, 2_039_280, 2_039_280],
            "preTokenBalances": balances(held, worth),
            "postTokenBalances": balances(sol_after, usdc_after),
        },
        "transaction": {
            "accountKeys": [
                key(&user, true), key(&sol.key(), false), key(&usdc_vault.key(), false),
            ],
            "signatures": [base58_text(&signature)],
        },
        "version": 0,
    })
}
