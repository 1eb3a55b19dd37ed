//! Values of rows while other native coin of the wallet moves: what it adds or keeps, what a caller
//! sends to it, and what it pays to the block's producer.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, Log, NativeFlows};
use blotter::domain::Units;

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, account, buy, call, case, log,
    number, swap, transfer, unwrap, v2_swap, weth, word, wrap,
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
    // The caller sends some coin, which stays.
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
    // The coin may have been passed on.
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

fn bought() -> Vec<Log> {
    swap(POOL, (weth(), 60, WALLET), (AAA, 500, WALLET))
}

fn sold() -> Vec<Log> {
    swap(POOL, (AAA, 500, WALLET), (weth(), 60, WALLET))
}

#[test]
fn coin_that_stays_at_a_called_wallet_is_no_part_of_a_single_row() {
    let row = [('b', AAA, 500, Some(60))];
    // Even if it is more than the purchase cost.
    for came in [3, 60, 70] {
        let purchase = called_with(came, bought());
        purchase.gives(&row);
        purchase.unknown().gives(&row);
        called_with(came, sold()).gives(&[('s', AAA, 500, Some(60))]);
    }
    // A part goes on.
    let gone = [call(WALLET, ROUTER, 2), call(ROUTER, OTHER, 2)];
    called_with(3, bought()).calls(&gone).gives(&row);
    // Without traces it may have paid for the purchase, of which a pool shows less than was given.
    let fee = [bought(), vec![transfer(weth(), WALLET, OTHER, 1)]].concat();
    called_with(3, fee.clone()).gives(&[('b', AAA, 500, Some(61))]);
    called_with(3, fee).unknown().gives(&[('b', AAA, 500, None)]);
    called_with(3, sold()).unknown().gives(&[('s', AAA, 500, None)]);
}

#[test]
fn what_is_bought_with_coin_that_came_with_the_call_is_no_trade_of_the_called() {
    let mut logs = vec![wrap(ROUTER, 60)];
    logs.extend(swap(POOL, (weth(), 60, ROUTER), (AAA, 500, WALLET)));
    let through = [call(WALLET, ROUTER, 60), call(ROUTER, weth(), 60)];
    let spent = called_with(60, logs);
    spent.clone().calls(&through).gives_none(Some(NoteKind::OneSided));
    spent.clone().unknown().gives_none(Some(NoteKind::OneSided));
    // The wallet's own coin.
    spent.clone().value(0).calls(&through).gives(&[('b', AAA, 500, Some(60))]);
    spent.value(0).unknown().gives(&[('b', AAA, 500, None)]);
}

#[test]
fn a_balance_shows_whether_what_came_with_a_call_stays() {
    let balance = |logs: Vec<Log>, gained: u64| {
        let gained = Units::from(gained);
        called_with(3, logs).native(NativeFlows::Net { gained, lost: Units::ZERO })
    };
    balance(bought(), 3).gives(&[('b', AAA, 500, Some(60))]);
    balance(sold(), 3).gives(&[('s', AAA, 500, Some(60))]);
    balance(sold(), 5).gives(&[('s', AAA, 500, None)]);
    let fee = [bought(), vec![transfer(weth(), WALLET, OTHER, 1)]].concat();
    balance(fee, 3).gives(&[('b', AAA, 500, Some(61))]);
}

#[test]
fn a_balance_shows_that_a_called_wallet_pays_or_gets_more_than_came() {
    let net = |logs: Vec<Log>, gained: u64, lost: u64| {
        let (gained, lost) = (Units::from(gained), Units::from(lost));
        called_with(3, logs).native(NativeFlows::Net { gained, lost })
    };
    let mut purchase = vec![wrap(ROUTER, 60)];
    purchase.extend(swap(POOL, (weth(), 60, ROUTER), (AAA, 500, WALLET)));
    net(purchase.clone(), 0, 60).gives(&[('b', AAA, 500, None)]);
    net(purchase, 0, 0).gives_none(Some(NoteKind::OneSided));
    let sale = swap(POOL, (AAA, 500, WALLET), (weth(), 60, ROUTER));
    net(sale.clone(), 63, 0).gives(&[('s', AAA, 500, None)]);
    net(sale, 3, 0).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn coin_that_stays_at_a_called_wallet_is_no_payment_next_to_two_tokens() {
    let exchanged = called_with(3, swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET)));
    assert_eq!(exchanged.decode().side_payment, Units::ZERO);
    assert_eq!(exchanged.unknown().decode().side_payment, Units::from(3_u64));
}

const PRODUCER: Account = [0xb1; 20];

fn produced(mut base: Case, by: Option<Account>) -> Case {
    base.tx.producer = by;
    base
}

#[test]
fn a_contracts_payment_to_the_block_producer_is_no_part_of_its_trade() {
    let tipped = |tip, logs| called_with(0, logs).calls(&[call(WALLET, PRODUCER, tip)]);
    let of = |value| [('b', AAA, 500, value)];
    produced(tipped(9, bought()), Some(PRODUCER)).gives(&of(Some(60)));
    // Another account was paid, or it is not known who.
    produced(tipped(9, bought()), Some(POOL_2)).gives(&of(Some(69)));
    tipped(9, bought()).gives(&of(None));
    // The coin came with the call.
    produced(tipped(9, bought()).value(9), Some(PRODUCER)).gives(&of(Some(60)));
    // An account that gave something took part in the trade.
    let gave = [bought(), vec![transfer(CCC, PRODUCER, OTHER, 1)]].concat();
    produced(tipped(9, gave), Some(PRODUCER)).gives(&of(Some(69)));
    // More than the sale brought.
    let sale = produced(tipped(70, sold()), Some(PRODUCER));
    sale.gives(&[('s', AAA, 500, Some(60))]);
    produced(sale, Some(POOL_2)).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn a_sale_that_mostly_pays_the_block_producer_is_a_sale() {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
    logs.push(unwrap(ROUTER, 100));
    let paid = [call(weth(), ROUTER, 100), call(ROUTER, PRODUCER, 60), call(ROUTER, WALLET, 40)];
    let sale = case(logs).calls(&paid);
    produced(sale.clone(), Some(PRODUCER)).gives(&[('s', AAA, 500, Some(40))]);
    for other in [None, Some(POOL_2)] {
        produced(sale.clone(), other).gives_none(Some(NoteKind::OneSided));
    }
    // What a router takes of the coin sent for a purchase is inside.
    let bought = buy().value(109).calls(&[call(ROUTER, weth(), 100), call(ROUTER, PRODUCER, 9)]);
    produced(bought, Some(PRODUCER)).gives(&[('b', AAA, 500, Some(109))]);
}

/// Builders on BNB Smart Chain have accounts for tips that no header names.
#[test]
fn what_a_builder_is_paid_is_a_tip() {
    let wbnb = account("bb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c");
    let builder = account("4848489f0b2bedd788c696e2d79b6b69d7484848");
    let sale = |taker| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (wbnb, 100, ROUTER));
        logs.push(log(wbnb, "Withdrawal(address,uint256)", &[word(ROUTER)], &[number(100)]));
        let paid = [call(wbnb, ROUTER, 100), call(ROUTER, taker, 60), call(ROUTER, WALLET, 40)];
        produced(case(logs).on("bsc").calls(&paid), Some(PRODUCER))
    };
    sale(builder).gives(&[('s', AAA, 500, Some(40))]);
    sale(OTHER).gives_none(Some(NoteKind::OneSided));
    // A contract pays one itself, and the block's header is not known.
    let bought = |taker| {
        let logs = swap(POOL, (wbnb, 60, WALLET), (AAA, 500, WALLET));
        called_with(0, logs).on("bsc").calls(&[call(WALLET, taker, 9)])
    };
    bought(builder).gives(&[('b', AAA, 500, Some(60))]);
    bought(POOL_2).gives(&[('b', AAA, 500, None)]);
}

/// Forks of Uniswap's routers, where the inner calls are unknown.
#[test]
fn forks_of_known_routers_pay_out_what_they_unwrap() {
    let weth = account("4200000000000000000000000000000000000006");
    let routers = [
        "6cb442acf35158d5eda88fe602221b67b400be3e",
        "6df1c91424f79e40e33b1a48f0687b666be71075",
        "01d40099fcd87c018969b0e8d4ab1633fb34763c",
        "6bded42c6da8fbf0d2ba55b2fa120c5e0c8d7891",
    ];
    for router in routers {
        let router = account(router);
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth, 41, router));
        logs.push(log(weth, "Withdrawal(address,uint256)", &[word(router)], &[number(41)]));
        let sold = case(logs).on("base").unknown();
        sold.clone().to(router).gives(&[('s', AAA, 500, Some(41))]);
        // An unknown contract may keep a part.
        sold.gives(&[('s', AAA, 500, None)]);
    }
}
