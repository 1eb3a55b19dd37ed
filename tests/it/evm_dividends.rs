//! What a token's contracts pay to its holders meanwhile, and tokens that were only sent: no part of
//! an exchange in the same transaction.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Log, NativeFlows};
use blotter::domain::Units;

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, ROUTER, WALLET, buy, call, case, log, number, sell, swap,
    transfer, uniswap_v2_router, unwrap, v2_swap, weth, word,
};

/// A tracker says what it pays to a holder before it pays.
fn dividend(tracker: [u8; 20], amount: u64) -> Log {
    log(tracker, "DividendWithdrawn(address,uint256)", &[word(WALLET)], &[number(amount)])
}

fn after(first: &[Log], mut base: Case) -> Case {
    base.tx.logs.splice(0..0, first.iter().cloned());
    base
}

#[test]
fn a_token_that_a_tracker_paid_is_no_row() {
    let paid = [dividend(CCC, 9), transfer(BBB, CCC, WALLET, 9)];
    let sold = [('s', AAA, 500, Some(100))];
    after(&paid, sell()).gives(&sold);
    after(&paid, sell().to(uniswap_v2_router())).gives(&sold);
    after(&paid, buy()).gives(&[('b', AAA, 500, Some(100))]);
    // A plain node shows the sale too.
    let to_wallet = swap(POOL, (AAA, 500, WALLET), (weth(), 100, WALLET));
    after(&paid, case(to_wallet).unknown()).gives(&sold);
    // What the event does not say is a purchase of the known router.
    let more = [dividend(CCC, 8), transfer(BBB, CCC, WALLET, 9)];
    let both = after(&more, sell().to(uniswap_v2_router())).decode();
    assert_eq!(both.trades.len(), 2);
}

#[test]
fn coin_that_a_tracker_paid_is_not_in_the_value() {
    let paid = [dividend(CCC, 9)];
    let mut sold = after(&paid, sell());
    let calls = [call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100), call(CCC, WALLET, 9)];
    sold = sold.calls(&calls);
    sold.gives(&[('s', AAA, 500, Some(100))]);
    let bought = after(&paid, buy()).calls(&[call(ROUTER, weth(), 100), call(CCC, WALLET, 9)]);
    bought.gives(&[('b', AAA, 500, Some(100))]);
    // Whether it arrived is not in a difference of balances.
    let gained = |units: u64| NativeFlows::Net { gained: Units::from(units), lost: Units::ZERO };
    sold.native(gained(109)).gives(&[('s', AAA, 500, None)]);
    // Another contract says so, or to another holder.
    let calls = &[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100), call(CCC, WALLET, 9)];
    after(&[dividend(OTHER, 9)], sell()).calls(calls).gives(&[('s', AAA, 500, Some(109))]);
}

#[test]
fn a_token_that_was_only_sent_is_not_sold() {
    // Its contract sells what it collected, and pays the wallet.
    let mut logs = swap(POOL, (AAA, 20, AAA), (weth(), 7, ROUTER));
    logs.extend([unwrap(ROUTER, 7), transfer(AAA, WALLET, OTHER, 500)]);
    let calls = [call(weth(), ROUTER, 7), call(ROUTER, AAA, 7), call(AAA, WALLET, 7)];
    let mut sent = case(logs).to(AAA).calls(&calls);
    sent.tx.selector = Some([0xa9, 0x05, 0x9c, 0xbb]);
    sent.gives_none(Some(NoteKind::OneSided));
    sent.unknown().gives_none(Some(NoteKind::OneSided));
    // To a contract that answers it with coin, or to the token's own pool.
    for (receiver, payer) in [(OTHER, OTHER), (POOL, ROUTER)] {
        let logs = vec![transfer(AAA, WALLET, receiver, 500), v2_swap(receiver, [500, 0, 0, 7])];
        let mut sold = case(logs).to(AAA).calls(&[call(payer, WALLET, 7)]);
        sold.tx.selector = Some([0xa9, 0x05, 0x9c, 0xbb]);
        sold.gives(&[('s', AAA, 500, Some(7))]);
    }
}
