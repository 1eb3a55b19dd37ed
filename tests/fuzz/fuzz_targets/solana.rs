//! A reply and a wallet to trades: never a panic, never an amount that no balance moved by.
//!
//! The first byte chooses the wallet: one of the owners and keys that the reply names, so that the
//! fuzzer need not guess an address. The rest is the reply.

#![no_main]

use std::sync::LazyLock;

use blotter::decode::solana::{decode, parse};
use blotter::registry::Registry;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

#[path = "../../it/support/bounds.rs"]
mod bounds;
#[path = "../../it/support/replies.rs"]
mod replies;

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::embedded().unwrap());

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, json)) = bytes.split_first() else { return };
    let Ok(tx) = parse(json) else { return };
    // What the reader takes and a strict one does not is still decoded, with no wallet of it.
    let value = serde_json::from_slice::<Value>(json).unwrap_or_default();
    let named = replies::Reply::read(&value).map(|reply| {
        let owners = reply.held.values().filter_map(|held| held.owner.clone());
        owners.chain(reply.keys.iter().cloned()).collect::<Vec<String>>()
    });
    let named = named.unwrap_or_default();
    let wallet = named.get(usize::from(*choice) % named.len().max(1)).cloned().unwrap_or_default();
    let mut key = [0; 32];
    let known = bs58::decode(&wallet).onto(&mut key).is_ok();
    let decoded = decode(&REGISTRY, &key, &tx);
    tx.closed_token_accounts(&key);
    if known {
        assert_eq!(
            bounds::beyond_balances(&value, &wallet, &decoded),
            None,
            "{:?}",
            decoded.trades
        );
    }
});
