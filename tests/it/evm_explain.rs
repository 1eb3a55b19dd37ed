//! An explanation names the rule by which an EVM transaction is a trade or none.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Log, explain};
use blotter::decode::explain::{Asset, Explanation, Why};
use blotter::domain::{Address, Units};
use blotter::registry::Registry;

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, ZERO, buy, call, case, entry_point,
    log, number, operation, sell, swap, transfer, weth, word, wrap,
};

fn explained(case: &Case) -> Explanation {
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named(case.chain).unwrap();
    explain(registry.evm(), chain, &case.wallet, &case.tx, None)
}

fn with(mut base: Case, more: &[Log]) -> Case {
    base.tx.logs.extend_from_slice(more);
    base
}

/// Rows, and the rule of the first note.
#[track_caller]
fn says(case: &Case, rows: usize, kind: Option<NoteKind>) {
    let explanation = explained(case);
    let note = explanation.decoded.notes.first();
    assert_eq!(note.map(|note| note.kind), kind, "{:?}", explanation.decoded);
    assert!(note.is_none_or(|note| !note.detail.is_empty()));
    assert_eq!(explanation.decoded.trades.len(), rows);
}

/// Why a token of the wallet is in no row, and how much of it.
#[track_caller]
fn leaves_out(case: &Case, token: [u8; 20], why: Why, units: u64) {
    let explanation = explained(case);
    let of_token = |asset: Asset| asset == Asset::Token(Address::Evm(token));
    let left = explanation.left_out.iter().find(|left| of_token(left.asset)).unwrap();
    assert_eq!((left.why, left.units), (why, Units::from(units)));
    assert!(!explanation.decoded.trades.is_empty());
}

#[test]
fn an_unknown_venue_is_named_as_such() {
    let amounts = log(
        ROUTER,
        "Traded(address,uint256,uint256)",
        &[],
        &[word(WALLET), number(500), number(7)],
    );
    let moved = [transfer(AAA, WALLET, POOL, 500), transfer(BBB, POOL, WALLET, 7)];
    says(&case([&moved[..], &[amounts]].concat()), 2, Some(NoteKind::UnknownVenue));
    // Without the event no rule finds a trade.
    says(&case(moved.to_vec()), 0, None);
}

#[test]
fn legs_that_only_follow_say_so() {
    let tracker = transfer(CCC, WALLET, ZERO, 500);
    leaves_out(&with(sell(), &[tracker]), CCC, Why::Follows, 500);
    let minted = transfer(CCC, ZERO, WALLET, 20);
    says(&with(buy().value(150), std::slice::from_ref(&minted)), 0, Some(NoteKind::Liquidity));
    // A reward next to a whole exchange, minted or not.
    leaves_out(&with(buy(), &[minted]), CCC, Why::Follows, 20);
    let moved = transfer(CCC, OTHER, WALLET, 20);
    leaves_out(&with(buy(), &[moved]), CCC, Why::NotExchanged, 20);
}

#[test]
fn what_a_gas_sponsor_kept_is_named() {
    let mut logs = vec![transfer(AAA, WALLET, CCC, 30)];
    logs.extend(swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET)));
    logs.extend([transfer(AAA, CCC, WALLET, 10), operation(WALLET, CCC)]);
    let sponsored = case(logs).from(OTHER).to(entry_point());
    leaves_out(&sponsored, AAA, Why::GasSponsor, 20);
}

#[test]
fn a_payment_to_the_block_producer_is_a_tip() {
    let logs = swap(POOL, (weth(), 60, WALLET), (AAA, 500, WALLET));
    let mut tipped = case(logs).from(OTHER).to(WALLET).calls(&[call(WALLET, CCC, 9)]);
    tipped.tx.producer = Some(CCC);
    let left_out = explained(&tipped).left_out;
    let all: Vec<_> = left_out.iter().map(|left| (left.why, left.asset, left.units)).collect();
    assert_eq!(all, [(Why::Tip, Asset::Native, Units::from(9_u64))]);
}

#[test]
fn an_output_that_went_on_is_a_rule_of_its_own() {
    let mut logs = vec![wrap(ROUTER, 100)];
    logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 500, ROUTER)));
    logs.extend([transfer(AAA, ROUTER, WALLET, 20), transfer(AAA, ROUTER, OTHER, 480)]);
    let routed = case(logs).value(100).calls(&[call(ROUTER, weth(), 100)]);
    says(&routed, 0, Some(NoteKind::OneSided));
    let detail = &explained(&routed).decoded.notes[0].detail;
    assert!(detail.contains("went on to another account"), "{detail}");
}

#[test]
fn a_round_trip_and_a_lack_of_value_are_named() {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (BBB, 7, POOL_2));
    logs.extend(swap(POOL_2, (BBB, 7, POOL), (AAA, 510, WALLET)).into_iter().skip(1));
    says(&case(logs), 0, Some(NoteKind::RoundTrip));
    says(&sell().unknown().to(ROUTER), 1, Some(NoteKind::Unvalued));
}
