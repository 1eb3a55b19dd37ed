//! What others do for a wallet: who fills its order.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, Log};

use crate::evm_decode::{
    AAA, BBB, Case, OTHER, ROUTER, WALLET, ZERO, account, case, log, number, transfer, weth,
};

fn filled() -> Log {
    let exchange = account("111111125421ca6dc452d289314280a0f8842a65");
    log(exchange, "OrderFilled(bytes32,uint256)", &[], &[[9; 32], number(0)])
}

/// The wallet gives 31 AAA for 158 BBB, which their issuer mints for an account.
fn issued_to(holder: Account) -> Case {
    let mut logs = vec![transfer(AAA, WALLET, ROUTER, 31), transfer(BBB, ZERO, holder, 158)];
    if holder != WALLET {
        logs.push(transfer(BBB, holder, WALLET, 158));
    }
    logs.push(filled());
    case(logs)
}

#[test]
fn what_is_minted_for_who_fills_an_order_is_no_share() {
    let filled = issued_to(ROUTER).from(OTHER);
    filled.gives(&[('s', AAA, 31, None), ('b', BBB, 158, None)]);
    issued_to(WALLET).from(OTHER).gives_none(Some(NoteKind::Liquidity));
    // The wallet itself had it minted by a contract that filled an order of others.
    issued_to(ROUTER).gives_none(Some(NoteKind::Liquidity));
}

/// An order of the wallet sells 800 AAA, of which so much goes to another account than the buyer.
fn sold_less(taken: u64, to: Account) -> Case {
    let logs = vec![
        transfer(AAA, WALLET, to, taken),
        transfer(AAA, WALLET, ROUTER, 800 - taken),
        transfer(weth(), ROUTER, WALLET, 15),
        filled(),
    ];
    case(logs).from(OTHER)
}

#[test]
fn a_tax_or_a_burn_on_a_sale_by_an_order_is_no_withdrawal() {
    for to in [AAA, ZERO] {
        sold_less(8, to).gives(&[('s', AAA, 800, Some(15))]);
        sold_less(400, to).gives(&[('s', AAA, 800, Some(15))]);
        sold_less(401, to).gives_none(Some(NoteKind::Liquidity));
    }
}
