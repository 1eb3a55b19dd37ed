//! The EVM decoder on counterparties that no table knows: one rule per test.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, Log, Word, may_trade};
use blotter::registry::Registry;

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, ZERO, account, call, case,
    entry_point, log, number, operation, swap, transfer, unwrap, v2_swap, weth, word, wrap,
};

const ROWS: [(char, Account, u64, Option<u64>); 2] = [('s', AAA, 500, None), ('b', BBB, 7, None)];

/// What an account says of its own exchange, in words that no table has.
fn says(who: Account, amounts: [u64; 2]) -> Log {
    log(who, "Exchanged(uint256,uint256)", &[], &amounts.map(number))
}

/// Whether the calls of a transaction are asked for.
fn asks(case: &Case) -> bool {
    let registry = Registry::embedded().unwrap();
    may_trade(registry.evm(), registry.chain_named("eth").unwrap(), &case.tx)
}

/// AAA for CCC at one account, and CCC for BBB at another.
fn steps(inner: u64, left: u64, more: &[Log]) -> Case {
    let moved = [
        transfer(AAA, WALLET, POOL, 500),
        transfer(CCC, POOL, POOL_2, inner),
        transfer(BBB, POOL_2, ROUTER, 7 + left),
        transfer(BBB, ROUTER, WALLET, 7),
    ];
    case([&moved[..], more].concat())
}

#[test]
fn a_route_over_accounts_in_no_table_is_found_by_its_steps() {
    let both = [says(POOL, [500, 31]), says(POOL_2, [31, 7])];
    steps(31, 0, &both).gives(&ROWS);
    let notes = steps(31, 0, &both).decode().notes;
    assert_eq!(notes[0].kind, NoteKind::UnknownVenue);
    // A router states a step, with its tokens.
    let stated = [word(AAA), word(CCC), number(500), number(31)];
    let routed = log(ROUTER, "Step(address,address,uint256,uint256)", &[], &stated);
    steps(31, 0, &[routed, both[1].clone()]).gives(&ROWS);
    // A step that no event states: neither its account's, nor one that names a token.
    steps(31, 0, &both[..1]).gives_none(None);
    steps(31, 0, &[says(ROUTER, [500, 31]), both[1].clone()]).gives_none(None);
    // A step at a fixed price.
    steps(5_000, 0, &[says(POOL, [500, 5_000]), says(POOL_2, [5_000, 7])]).gives_none(None);
    // Most of what the last step gave stayed elsewhere.
    steps(31, 7, &[both[0].clone(), says(POOL_2, [31, 14])]).gives_none(None);
    steps(31, 6, &[both[0].clone(), says(POOL_2, [31, 13])]).gives(&ROWS);
    // A token that keeps a tax; one that is the called contract.
    let taxed = steps(31, 0, &[both.as_slice(), &[transfer(AAA, WALLET, AAA, 20)]].concat());
    taxed.gives(&[('s', AAA, 520, None), ('b', BBB, 7, None)]);
    steps(31, 0, &both).to(BBB).gives_none(None);
    // A share was minted for the inner token.
    let share = transfer(CCC, ZERO, OTHER, 3);
    steps(31, 0, &[both.as_slice(), &[share]].concat()).gives_none(None);
}

#[test]
fn a_smart_account_trades_over_accounts_in_no_table_too() {
    let both = [says(POOL, [500, 31]), says(POOL_2, [31, 7])];
    // By an entry point, by another account's call of the wallet, and by the wallet's call of itself.
    let operated = steps(31, 0, &[both.as_slice(), &[operation(WALLET, ZERO)]].concat());
    operated.from(OTHER).to(entry_point()).gives(&ROWS);
    let called = steps(31, 0, &both).to(WALLET);
    called.gives(&ROWS);
    called.from(OTHER).gives(&ROWS);
    // The operation of another account, or none.
    let others = steps(31, 0, &[both.as_slice(), &[operation(OTHER, ZERO)]].concat());
    others.from(OTHER).to(entry_point()).gives_none(None);
    steps(31, 0, &both).from(OTHER).gives_none(None);
    // A contract in no table that others call to exchange with it, by its own event.
    let named = [word(AAA), word(BBB), number(500), number(7)];
    let dealt = |by: Account| {
        let said = log(by, "Dealt(address,address,uint256,uint256)", &[], &named);
        let moved = vec![transfer(AAA, WALLET, OTHER, 500), transfer(BBB, OTHER, WALLET, 7), said];
        case(moved).from(OTHER).to(WALLET)
    };
    dealt(POOL).gives(&ROWS);
    dealt(WALLET).gives_none(None);
}

#[test]
fn coin_that_a_route_wraps_is_exchanged_by_accounts_in_no_table() {
    let paid = vec![
        wrap(ROUTER, 100),
        transfer(weth(), ROUTER, POOL, 100),
        transfer(AAA, POOL, WALLET, 500),
        says(POOL, [100, 500]),
    ];
    let bought = case(paid).value(130);
    let bought = bought.calls(&[call(ROUTER, weth(), 100), call(ROUTER, WALLET, 30)]);
    bought.gives(&[('b', AAA, 500, Some(100))]);
    let paid = vec![
        transfer(AAA, WALLET, POOL, 500),
        transfer(weth(), POOL, ROUTER, 100),
        says(POOL, [500, 100]),
        unwrap(ROUTER, 100),
    ];
    let sold = case(paid).calls(&[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 97)]);
    sold.gives(&[('s', AAA, 500, Some(97))]);
    // Without its calls the amount is open, and so is the trade: they are asked for. Where all of
    // the value was wrapped, none came back.
    bought.clone().value(100).unknown().gives(&[('b', AAA, 500, Some(100))]);
    let registry = Registry::embedded().unwrap();
    let asks =
        |case: &Case| may_trade(registry.evm(), registry.chain_named("eth").unwrap(), &case.tx);
    for open in [&bought, &sold] {
        open.clone().unknown().gives_none(None);
        assert!(asks(open));
    }
    assert!(!asks(&case(vec![wrap(WALLET, 100)]).to(weth()).value(100)));
    assert!(!asks(&case(vec![transfer(AAA, WALLET, OTHER, 500)])));
    // A plain transfer of a token that is minted for coin.
    let steth = account("ae7ab96520de3a18e5e111b5eaab095312d7fe84");
    assert!(!asks(&case(vec![transfer(steth, WALLET, OTHER, 500)]).to(steth)));
}

#[test]
fn coin_is_exchanged_with_an_account_in_no_table() {
    const COIN: u64 = 1_000_000_007;
    const TOKEN: u64 = 123_456_789_012_345;
    let bought = |sent: u64, token: u64, said: Log| {
        case(vec![transfer(AAA, POOL, WALLET, token), said]).to(POOL).value(sent)
    };
    let row = [('b', AAA, TOKEN, Some(COIN))];
    bought(COIN, TOKEN, says(POOL, [COIN, TOKEN])).gives(&row);
    // A part came back; a fee of one in a hundred is left out.
    let back = bought(COIN + 5, TOKEN, says(POOL, [COIN - 10_000_000, TOKEN]));
    back.calls(&[call(POOL, WALLET, 5), call(POOL, OTHER, 10_000_000)]).gives(&row);
    // Its router names the token.
    let named = [word(AAA), number(COIN), number(TOKEN)];
    let named = log(POOL, "Bought(address,uint256,uint256)", &[], &named);
    bought(COIN, TOKEN, named).to(ROUTER).gives(&row);
    let sold = |got: u64| {
        let logs = vec![transfer(AAA, WALLET, POOL, TOKEN), says(POOL, [TOKEN, COIN])];
        case(logs).to(POOL).calls(&[call(POOL, WALLET, got)])
    };
    sold(COIN - 10_000_000).gives(&[('s', AAA, TOKEN, Some(COIN - 10_000_000))]);
    // Goods at 250.123 for 1, before a fee; a larger fee; another account's event, or one that names no
    // token; more than was sent.
    let goods = says(POOL, [999_999_937, 250_123_000_000]);
    bought(1_000_000_000, 250_123_000_000, goods).gives_none(None);
    bought(COIN, TOKEN, says(POOL, [COIN - 200_000_000, TOKEN])).gives_none(None);
    bought(COIN, TOKEN, says(OTHER, [COIN, TOKEN])).to(OTHER).gives_none(None);
    bought(COIN, TOKEN, says(POOL, [COIN, TOKEN])).to(ROUTER).gives_none(None);
    bought(COIN, TOKEN, says(POOL, [COIN + 5, TOKEN])).gives_none(None);
    sold(COIN + 5).gives_none(None);
    // The calls show what came back: they are asked for.
    for open in [bought(COIN, TOKEN, says(POOL, [COIN, TOKEN])), sold(COIN)] {
        open.clone().unknown().gives_none(None);
        assert!(asks(&open));
    }
    let mut silent = sold(COIN);
    silent.tx.logs.pop();
    assert!(!asks(&silent));
}

#[test]
fn other_dealings_with_accounts_in_no_table_are_no_trades() {
    let given = transfer(AAA, WALLET, POOL, 500);
    let both = [word(WALLET), number(500), number(7)];
    let opened = |by: Account| log(by, "Opened(address,uint256,uint256)", &[], &both);
    // A loan whose collateral another account holds; one whose two sides two events state; a stake
    // with a reward is the same.
    let lent = transfer(BBB, POOL_2, WALLET, 7);
    case(vec![given.clone(), lent, opened(POOL_2)]).gives_none(None);
    let lent = transfer(BBB, POOL, WALLET, 7);
    let half = |amount| log(POOL, "Moved(address,uint256)", &[], &[word(WALLET), number(amount)]);
    case(vec![given.clone(), lent.clone(), half(500), half(7)]).gives_none(None);
    // One event with both is an exchange.
    case(vec![given, lent, opened(POOL)]).gives(&ROWS);
    // A market's own share, which its contract gives without a mint, by a contract between.
    let share = vec![
        transfer(AAA, WALLET, ROUTER, 500),
        transfer(AAA, ROUTER, BBB, 500),
        transfer(BBB, BBB, ROUTER, 7),
        transfer(BBB, ROUTER, WALLET, 7),
        opened(BBB),
    ];
    case(share).gives_none(None);
    // A migration at 20 for 1, by a contract between.
    let (old, new) = (5_000_000_000_000, 250_000_000_000);
    let migrated = |new: u64| {
        case(vec![
            transfer(AAA, WALLET, ROUTER, old),
            transfer(AAA, ROUTER, POOL, old),
            transfer(BBB, POOL, WALLET, new),
            says(POOL, [old, new]),
        ])
    };
    migrated(new).gives_none(None);
    migrated(new + 1_000_003).gives(&[('s', AAA, old, None), ('b', BBB, new + 1_000_003, None)]);
}

/// One account holds both assets of a loan at Fluid, Ajna or Morpho, and one event states both
/// amounts, of a loan that another account repays for its collateral too.
#[test]
fn a_loan_that_one_event_states_is_no_trade() {
    let operated = [word(WALLET), number(5), number(500), number(7), word(WALLET)];
    let drawn = [word(WALLET), number(7), number(500), number(9)];
    let sides = [[3; 32], word(WALLET), word(POOL_2)];
    let liquidated = [&sides[..], &[500, 9, 7, 0, 0].map(number)].concat();
    let loan = |signature: &str, words: &[Word]| {
        let logs = vec![transfer(AAA, WALLET, POOL, 500), transfer(BBB, POOL, WALLET, 7)];
        case([logs, vec![log(POOL, signature, &[], words)]].concat()).to(POOL)
    };
    loan("LogOperate(address,uint256,int256,int256,address)", &operated).gives_none(None);
    loan("DrawDebt(address,uint256,uint256,uint256)", &drawn).gives_none(None);
    loan("RepayDebt(address,uint256,uint256,uint256)", &drawn).gives_none(None);
    let of_collateral = "(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)";
    loan(&format!("Liquidate{of_collateral}"), &liquidated).gives_none(None);
    // Any other event of both amounts is an exchange.
    loan("Exchanged(address,uint256,int256,int256,address)", &operated).gives(&ROWS);
    loan("Exchanged(address,uint256,uint256,uint256)", &drawn).gives(&ROWS);
    loan(&format!("Exchanged{of_collateral}"), &liquidated).gives(&ROWS);
}

/// A pool of the tables exchanges AAA for CCC; an account in no table CCC for BBB.
fn linked(inner: u64, more: &[Log]) -> Case {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (CCC, inner, POOL_2));
    logs.push(transfer(BBB, POOL_2, WALLET, 7));
    logs.extend_from_slice(more);
    case(logs)
}

#[test]
fn a_step_by_an_account_in_no_table_is_part_of_a_known_route() {
    let said = [says(POOL_2, [31, 7])];
    linked(31, &said).gives(&ROWS);
    // As the first step.
    let first = vec![
        transfer(AAA, WALLET, POOL_2, 500),
        transfer(CCC, POOL_2, POOL, 31),
        says(POOL_2, [500, 31]),
        transfer(BBB, POOL, WALLET, 7),
        v2_swap(POOL, [31, 0, 0, 7]),
    ];
    case(first).gives(&ROWS);
    // For native coin.
    let mut logs = vec![wrap(ROUTER, 100)];
    logs.extend(swap(POOL, (weth(), 100, ROUTER), (CCC, 31, POOL_2)));
    logs.extend([transfer(BBB, POOL_2, WALLET, 7), says(POOL_2, [31, 7])]);
    let bought = case(logs).value(100).calls(&[call(ROUTER, weth(), 100)]);
    bought.gives(&[('b', BBB, 7, Some(100))]);
    // A smart account's operation.
    let operated = linked(31, &[said[0].clone(), operation(WALLET, ZERO)]);
    operated.from(OTHER).to(entry_point()).gives(&ROWS);
    let none = |case: Case| case.gives_none(Some(NoteKind::OneSided));
    none(linked(31, &said).from(OTHER));
    // No event states it; a fixed price; another token came with it.
    none(linked(31, &[]));
    none(linked(70, &[says(POOL_2, [70, 7])]));
    let other = transfer([0xc4; 20], OTHER, WALLET, 3);
    none(linked(31, &[said[0].clone(), other]));
    // A vault's share was minted for it.
    let mut share = linked(31, &said);
    share.tx.logs[3] = transfer(BBB, ZERO, WALLET, 7);
    share.gives_none(Some(NoteKind::Liquidity));
}
