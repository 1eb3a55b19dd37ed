//! What the EVM decoder makes of standards that log movements in a way of their own: one rule a test.

use blotter::decode::evm::{Account, Log};

use crate::evm_decode::{AAA, Case, ROUTER, WALLET, account, buy, call, sell, transfer, weth};

/// What a chain with EIP-7708 logs of native coin that moves.
fn coin(from: Account, to: Account, amount: u64) -> Log {
    transfer(account("fffffffffffffffffffffffffffffffffffffffe"), from, to, amount)
}

fn first(logs: &[Log], mut base: Case) -> Case {
    base.tx.logs.splice(0..0, logs.iter().cloned());
    base
}

#[test]
fn what_a_chain_logs_of_its_own_coin_is_no_token() {
    let bought = first(&[coin(WALLET, ROUTER, 130), coin(ROUTER, weth(), 100)], buy().value(130));
    let back = coin(ROUTER, WALLET, 30);
    let with_calls = bought.clone().calls(&[call(ROUTER, weth(), 100), call(ROUTER, WALLET, 30)]);
    first(std::slice::from_ref(&back), with_calls).gives(&[('b', AAA, 500, Some(100))]);
    // They are all: nothing else is asked for.
    let mut logged = bought.unknown();
    logged.tx.logs.push(back);
    logged.gives(&[('b', AAA, 500, Some(100))]);
    let mut sold = sell().unknown();
    sold.tx.logs.extend([coin(weth(), ROUTER, 100), coin(ROUTER, WALLET, 97)]);
    sold.gives(&[('s', AAA, 500, Some(97))]);
    // A wallet with code of its own that calls itself: its own value is not logged.
    let to_itself = sold.to(WALLET).value(7);
    to_itself.gives(&[('s', AAA, 500, Some(97))]);
}

#[test]
fn logs_of_coin_without_that_of_the_value_are_not_all() {
    let bought = first(&[coin(ROUTER, weth(), 100)], buy().value(130).unknown());
    bought.gives(&[('b', AAA, 500, None)]);
}
