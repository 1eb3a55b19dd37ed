//! Solana transactions of venues that also do other things than swap, built by hand, one a rule.

use blotter::domain::Side;

use crate::decode::{RAYDIUM, check, run};
use crate::support::solana::{Tx, WSOL};

const HEAVEN: &str = "HEAVENoP2qxoeuF8Dj2oT1GHEnu49U5mJYkdeC8BAX2o";

/// The wallet mints `supply`, hands `handed` of it to a pool of `program` with some SOL, and gets
/// `back` of it.
fn launched(program: &str, [supply, handed, back]: [u64; 3]) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 0);
    tx.account("p sol", WSOL, "p", 50_000);
    tx.mint_to(1, "NEW", "w new", supply);
    tx.call(program, &["w", "w new", "p new", "p sol", "p"], &[1]);
    tx.transfer(2, "w new", "p new", "w", handed).pay(2, "w", "p sol", 530_000);
    if back > 0 {
        tx.transfer(2, "p new", "w new", "p", back);
    }
    tx
}

#[test]
fn the_supply_of_a_launch_is_no_side_of_its_first_purchase() {
    let bought = [(Side::Buy, "NEW", 15_000, Some(530_000), "Heaven")];
    check(&launched(HEAVEN, [1_000_000, 1_000_000, 15_000]), "w", &bought);
    // What the creator keeps is not bought.
    check(&launched(HEAVEN, [1_000_000, 900_000, 15_000]), "w", &bought);
    // Without a purchase, and at a pool that is no curve.
    assert_eq!(run(&launched(HEAVEN, [1_000_000, 1_000_000, 0]), "w").trades, []);
    assert_eq!(run(&launched(RAYDIUM, [1_000_000, 1_000_000, 15_000]), "w").trades, []);
}

#[test]
fn what_was_minted_may_be_sold_to_a_curve() {
    let mut tx = Tx::new("w");
    tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 0);
    tx.mint_to(1, "NEW", "w new", 1_000);
    tx.call(HEAVEN, &["w", "w new", "p new", "p"], &[2]);
    tx.transfer(2, "w new", "p new", "w", 1_000).drift("p", -600_000).drift("w", 600_000);
    check(&tx, "w", &[(Side::Sell, "NEW", 1_000, Some(600_000), "Heaven")]);
}
