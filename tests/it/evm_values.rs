//! Values of several rows of one transaction, where the wallet's own coin is next to them.

use blotter::decode::evm::Log;

use crate::evm_decode::{
    AAA, BBB, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, call, case, swap, transfer, unwrap,
    v2_swap, weth,
};
use crate::evm_long_tail::taxed_route;

/// Another account calls the wallet with some coin.
fn called_with(value: u64, logs: Vec<Log>) -> Case {
    case(logs).from(OTHER).to(WALLET).value(value)
}

/// The wallet sells AAA, which keeps a part and sells what it kept before, for 100, and buys BBB for 150.
fn sale_and_purchase() -> Vec<Log> {
    let mut logs = swap(POOL, (AAA, 40, AAA), (weth(), 9, ROUTER));
    logs.extend([
        transfer(AAA, WALLET, AAA, 25),
        transfer(AAA, WALLET, POOL, 475),
        transfer(weth(), POOL, WALLET, 100),
        v2_swap(POOL, [475, 0, 0, 100]),
    ]);
    logs.extend(swap(POOL_2, (weth(), 150, WALLET), (BBB, 7, WALLET)));
    logs
}

#[test]
fn coin_that_the_wallet_adds_to_a_purchase_is_no_part_of_its_sale() {
    let rows = [('s', AAA, 500, Some(100)), ('b', BBB, 7, Some(150))];
    // Some coin comes with the call, and stays.
    for both in [case(sale_and_purchase()), called_with(3, sale_and_purchase())] {
        both.gives(&rows);
        both.unknown().gives(&rows);
    }
    // The wallet pays more for something else: only its own pool values a row.
    let mut paid = sale_and_purchase();
    paid.push(transfer(weth(), WALLET, OTHER, 1));
    let open = case(paid);
    open.gives(&[('s', AAA, 500, None), ('b', BBB, 7, Some(150))]);
    open.unknown().gives(&[('s', AAA, 500, None), ('b', BBB, 7, Some(150))]);
}

#[test]
fn a_fee_in_coin_next_to_a_route_leaves_its_value_on_both_rows() {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 1_000, POOL_2));
    logs.extend([
        transfer(BBB, POOL_2, BBB, 1),
        transfer(BBB, POOL_2, WALLET, 6),
        v2_swap(POOL_2, [1_000, 0, 0, 7]),
    ]);
    let route = |fee| case(logs.clone()).value(fee).calls(&[call(ROUTER, OTHER, fee)]);
    route(10).gives(&[('s', AAA, 500, Some(1_000)), ('b', BBB, 6, Some(1_000))]);
    route(11).gives(&[('s', AAA, 500, Some(1_000)), ('b', BBB, 6, None)]);
}

#[test]
fn coin_that_the_wallet_keeps_of_a_route_leaves_its_values_open() {
    let kept = [taxed_route(), vec![transfer(weth(), POOL, WALLET, 30)]].concat();
    case(kept).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
}

#[test]
fn coin_that_stays_at_a_called_wallet_is_no_part_of_its_rows() {
    let mut sales = swap(POOL, (AAA, 500, WALLET), (weth(), 60, WALLET));
    sales.extend(swap(POOL_2, (BBB, 7, WALLET), (weth(), 40, WALLET)));
    let sold = called_with(3, sales);
    sold.gives(&[('s', AAA, 500, Some(60)), ('s', BBB, 7, Some(40))]);
    // It may have gone on.
    let open = [('s', AAA, 500, None), ('s', BBB, 7, None)];
    let gone = [call(WALLET, OTHER, 1), call(ROUTER, WALLET, 1)];
    sold.clone().calls(&gone).gives(&open);
    sold.unknown().gives(&open);
    let mut purchases = swap(POOL, (weth(), 60, WALLET), (AAA, 500, WALLET));
    purchases.extend(swap(POOL_2, (weth(), 40, WALLET), (BBB, 7, WALLET)));
    let bought = called_with(3, purchases);
    bought.gives(&[('b', AAA, 500, Some(60)), ('b', BBB, 7, Some(40))]);
    bought.unknown().gives(&[('b', AAA, 500, Some(60)), ('b', BBB, 7, Some(40))]);
}

#[test]
fn a_tax_is_no_reason_to_leave_the_parts_of_a_sum_open() {
    let mut logs = vec![
        transfer(AAA, WALLET, AAA, 5),
        transfer(AAA, WALLET, POOL, 495),
        transfer(weth(), POOL, ROUTER, 60),
        v2_swap(POOL, [495, 0, 0, 60]),
    ];
    logs.extend(swap(POOL_2, (BBB, 7, WALLET), (weth(), 40, ROUTER)));
    logs.push(unwrap(ROUTER, 100));
    let sold = case(logs).calls(&[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100)]);
    sold.gives(&[('s', AAA, 500, Some(60)), ('s', BBB, 7, Some(40))]);
}
