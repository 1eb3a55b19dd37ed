//! A `getTransaction` reply and a wallet to trades: never an amount that no balance moved by.
//!
//! The first byte chooses the wallet: one of the owners and keys that the reply names, so that the
//! fuzzer need not guess an address. The rest is the reply.

#![no_main]

use blotter::decode::solana::{decode, parse};
use blotter::demo::solana::TradeKind;
use blotter_fuzz::sample::Sample;
use blotter_fuzz::{REGISTRY, target};
use serde_json::Value;

#[path = "../../it/support/bounds.rs"]
mod bounds;
#[path = "../../it/support/replies.rs"]
#[allow(dead_code, reason = "the other half is for the tests")]
mod replies;

fn seeds() -> Vec<Vec<u8>> {
    let kinds = TradeKind::ALL.map(Some);
    let replies = kinds.into_iter().chain([None]).flat_map(|kind| {
        let sample = Sample::solana(kind, 3, false);
        sample.called(&["getTransaction"])
    });
    // The wallet signs first, where it signs.
    replies.map(|reply| [b"\0".to_vec(), reply].concat()).collect()
}

fn attempt(bytes: &[u8]) {
    let Some((choice, json)) = bytes.split_first() else { return };
    let Ok(tx) = parse(json) else { return };
    // What the reader takes and a strict one does not is still decoded, with no wallet of it.
    let value = serde_json::from_slice::<Value>(json).unwrap_or_default();
    let named = replies::Reply::read(&value).map(|reply| {
        let owners = reply.held.values().filter_map(|held| held.owner.clone());
        reply.keys.iter().cloned().chain(owners).collect::<Vec<String>>()
    });
    let named = named.unwrap_or_default();
    let wallet = named.get(usize::from(*choice) % named.len().max(1)).cloned().unwrap_or_default();
    let mut key = [0; 32];
    let known = bs58::decode(&wallet).onto(&mut key).is_ok();
    let decoded = decode(&REGISTRY, &key, &tx);
    tx.closed_token_accounts(&key);
    if known {
        let beyond = bounds::beyond_balances(&value, &wallet, &decoded);
        assert_eq!(beyond, None, "{:?}", decoded.trades);
    }
}

target!(seeds, attempt);
