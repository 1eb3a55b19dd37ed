//! Solana transactions that end near to where they began, and an order book of settled orders, built by
//! hand, one a rule.

use blotter::decode::NoteKind;
use blotter::domain::Side;

use crate::decode::{JUPITER, RAYDIUM, check, run};
use crate::support::solana::{Tx, WSOL};

const MARINADE: &str = "MarBmsSgKXdrN1egZf5sqe1TMai9K1rChYNDJgjq7aD";
const STAR_ATLAS: &str = "traderDnaR5w6Tcoi3NFm53i48FTDNbGjBSZwWXDRrg";

/// The wallet's accounts of wrapped SOL, USDC and mSOL, and a pool of each pair.
fn accounts(usdc: u64) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w sol", WSOL, "w", 100_000).account("w usdc", "USDC", "w", usdc);
    tx.account("w msol", "MSOL", "w", 0).account("p msol", "MSOL", "p", 90_000);
    tx.account("p sol", WSOL, "p", 90_000).account("p usdc", "USDC", "p", 90_000);
    tx
}

/// `gave` of one account to the pool, and `got` from it.
fn swap(tx: &mut Tx, (from, gave): (&str, u64), (to, got): (&str, u64)) {
    let (into, out) = (from.replace('w', "p"), to.replace('w', "p"));
    tx.call(RAYDIUM, &[from, &into, &out, to, "w", "p"], &[9]);
    tx.transfer(2, from, &into, "w", gave).transfer(2, &out, to, "p", got);
}

/// mSOL to a stake pool, which keeps a fee, for SOL of its reserve.
fn unstake(tx: &mut Tx, msol: u64, paid: u64) {
    tx.account("reserve msol", "MSOL", "reserve", 0).account("fees", "MSOL", "treasury", 0);
    tx.account("reserve sol", WSOL, "reserve", 900_000);
    tx.call(JUPITER, &["w msol", "w sol", "w"], &[1]);
    tx.inner(2, MARINADE, &["w msol", "reserve msol", "fees", "reserve sol", "w sol", "w"], &[1]);
    tx.transfer(3, "w msol", "reserve msol", "w", msol - 1).transfer(3, "w msol", "fees", "w", 1);
    tx.transfer(3, "reserve sol", "w sol", "reserve", paid);
}

fn is_round_trip(tx: &Tx) -> bool {
    let decoded = run(tx, "w");
    assert_eq!(decoded.trades, []);
    decoded.notes.iter().any(|note| note.kind == NoteKind::RoundTrip)
}

#[test]
fn a_swap_that_a_conversion_closes_went_round() {
    for paid in [8_463, 7_900] {
        let mut tx = accounts(0);
        swap(&mut tx, ("w sol", 8_000), ("w msol", 811));
        unstake(&mut tx, 811, paid);
        assert!(is_round_trip(&tx), "{paid}");
    }
    // A rest of another token on the way does not make it a trade.
    let mut tx = accounts(0);
    swap(&mut tx, ("w sol", 8_000), ("w usdc", 500));
    swap(&mut tx, ("w usdc", 491), ("w msol", 811));
    unstake(&mut tx, 811, 8_001);
    assert!(is_round_trip(&tx));
}

#[test]
fn a_conversion_of_what_was_bought_with_another_token_closes_nothing() {
    let mut tx = accounts(900);
    swap(&mut tx, ("w usdc", 500), ("w msol", 811));
    unstake(&mut tx, 811, 8_463);
    let rows = [
        (Side::Sell, "USDC", 500, None, "Raydium AMM v4"),
        (Side::Buy, "MSOL", 811, None, "Raydium AMM v4"),
    ];
    check(&tx, "w", &rows);
}

/// What was bought, and converted only in part or with more of the same, was bought.
#[test]
fn a_conversion_of_another_amount_closes_nothing() {
    for (held, converted) in [(0, 100), (900, 1_500)] {
        let mut tx = Tx::new("w");
        tx.account("w sol", WSOL, "w", 100_000).account("w msol", "MSOL", "w", held);
        tx.account("p msol", "MSOL", "p", 90_000).account("p sol", WSOL, "p", 90_000);
        swap(&mut tx, ("w sol", 8_000), ("w msol", 811));
        unstake(&mut tx, converted, converted * 10);
        check(&tx, "w", &[(Side::Buy, "MSOL", 811, Some(8_000), "Raydium AMM v4")]);
    }
}

#[test]
fn swaps_that_leave_some_of_each_token_went_round() {
    let mut tx = accounts(900);
    swap(&mut tx, ("w usdc", 500), ("w msol", 811));
    swap(&mut tx, ("w msol", 800), ("w usdc", 503));
    assert!(is_round_trip(&tx));
    // One of the two for less of the other.
    let mut tx = accounts(900);
    swap(&mut tx, ("w usdc", 500), ("w msol", 811));
    swap(&mut tx, ("w msol", 800), ("w usdc", 480));
    let rows = [
        (Side::Sell, "USDC", 20, None, "Raydium AMM v4"),
        (Side::Buy, "MSOL", 11, None, "Raydium AMM v4"),
    ];
    check(&tx, "w", &rows);
}

/// A route through the wallet's own wrapped SOL may leave a little of it.
#[test]
fn dust_of_sol_on_the_route_does_not_hide_its_value() {
    let through = |came: u64| {
        let mut tx = accounts(900);
        tx.account("q sol", WSOL, "q", 90_000).account("q usdc", "USDC", "q", 0);
        tx.call(JUPITER, &["w usdc", "w msol", "w sol", "w"], &[1]);
        tx.inner(2, RAYDIUM, &["w usdc", "q usdc", "q sol", "w sol", "w", "q"], &[9]);
        tx.transfer(3, "w usdc", "q usdc", "w", 500).transfer(3, "q sol", "w sol", "q", came);
        tx.inner(2, RAYDIUM, &["w sol", "p sol", "p msol", "w msol", "w", "p"], &[9]);
        tx.transfer(3, "w sol", "p sol", "w", 10_000).transfer(3, "p msol", "w msol", "p", 900);
        tx
    };
    for (came, value) in [(10_000, Some(10_000)), (10_100, Some(10_100)), (10_300, None)] {
        let rows = [
            (Side::Sell, "USDC", 500, value, "Raydium AMM v4"),
            (Side::Buy, "MSOL", 900, value, "Raydium AMM v4"),
        ];
        check(&through(came), "w", &rows);
    }
}

/// Who calls the market takes an order. Its maker gave what is sold when the order was placed.
#[test]
fn an_order_of_a_market_is_a_trade_of_who_takes_and_of_who_placed_it() {
    let called = |data: [u8; 8]| {
        let mut tx = Tx::new("w");
        tx.account("w atlas", "ATLAS", "w", 900).account("w food", "FOOD", "w", 0);
        tx.account("m atlas", "ATLAS", "maker", 0).account("m food", "FOOD", "maker", 0);
        tx.account("vault", "FOOD", "authority", 700).account("fees", "ATLAS", "treasury", 0);
        let sides = ["w", "w atlas", "w food", "maker", "m atlas", "m food"];
        tx.call(STAR_ATLAS, &[&sides[..], &["vault", "authority", "fees"]].concat(), &data);
        tx.transfer(2, "w atlas", "m atlas", "w", 800).transfer(2, "w atlas", "fees", "w", 50);
        tx.transfer(2, "vault", "w food", "authority", 500);
        tx
    };
    let exchange = called([0x70, 0xc2, 0x3f, 0x63, 0x34, 0x93, 0x55, 0x30]);
    let rows = |atlas: u64, (gave, got): (Side, Side)| {
        [
            (gave, "ATLAS", atlas, None, "Star Atlas Marketplace"),
            (got, "FOOD", 500, None, "Star Atlas Marketplace"),
        ]
    };
    check(&exchange, "w", &rows(850, (Side::Sell, Side::Buy)));
    check(&exchange, "maker", &rows(800, (Side::Buy, Side::Sell)));
    check(&exchange, "treasury", &[]);
    // Any other call only places or cancels.
    assert_eq!(run(&called([1; 8]), "w").trades, []);
    assert_eq!(run(&called([1; 8]), "maker").trades, []);
}
