//! What the tables say of Tron's venues, shown by hand-made transactions.

use std::sync::LazyLock;

use blotter::decode::Decoded;
use blotter::decode::evm::{Account, Log};
use blotter::decode::tron::{Transaction, decode};
use blotter::domain::UnixSeconds;
use blotter::registry::Registry;

use crate::evm_decode::{AAA, BBB, OTHER, POOL, ROUTER, WALLET, account, case, swap, transfer};

/// SUN's Universal Router, the one before the present one.
const UNIVERSAL: &str = "a31d689a84244bc01be56e07aeafb7686f56bb89";

/// The wallet calls a contract of Tron.
fn called(to: Account, logs: Vec<Log>) -> Decoded {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::embedded().unwrap());
    let tx = Transaction {
        call: case(logs).to(to).tx,
        time: UnixSeconds(1_770_000_000),
        input: Vec::new(),
        assets: Vec::new(),
        native_trade: None,
    };
    decode(REGISTRY.tron(), REGISTRY.chain_named("tron").unwrap(), &WALLET, &tx)
}

#[test]
fn a_router_of_pools_alone_trades_nothing_without_their_events() {
    // A module with a fixed price and no event: 500 AAA for 50 BBB.
    let converted = vec![transfer(AAA, WALLET, OTHER, 500), transfer(BBB, OTHER, WALLET, 50)];
    assert_eq!(called(account(UNIVERSAL), converted.clone()).trades, []);
    // The same on the way to a pool.
    let onward = swap(POOL, (BBB, 50, ROUTER), ([0xc3; 20], 7, WALLET));
    let route = [vec![converted[0].clone(), transfer(BBB, OTHER, ROUTER, 50)], onward].concat();
    assert_eq!(called(account(UNIVERSAL), route).trades.len(), 2);
}
