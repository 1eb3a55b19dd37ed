//! Hand-written Solana transactions at a program that no table knows.

use blotter::decode::NoteKind;
use blotter::decode::explain::Asset;
use blotter::decode::solana::{explain, parse};
use blotter::domain::{Side, Units};
use blotter::registry::Registry;
use sha2::Digest as _;

use crate::decode::{check, check_none, run};
use crate::support::solana::{RENT, Tx, WSOL, key};

/// In no table.
const PROGRAM: &str = "5iBxaUfhynRgQLKe8o6jtKyfbrqDEuKXJDjJwNy9MNHL";
const MARINADE: &str = "MarBmsSgKXdrN1egZf5sqe1TMai9K1rChYNDJgjq7aD";
const SOL: u64 = 987_654_321;
const FEE: u64 = 9_876_543;
const BONK: u64 = 34_567_890_123_456;
const USDC: u64 = 123_456_789;

fn named(instruction: &str) -> Vec<u8> {
    sha2::Sha256::digest(format!("global:{instruction}"))[..8].to_vec()
}

/// An event of two amounts behind its tag and a flag.
fn event(amounts: [u64; 2]) -> Vec<u8> {
    let mut data = vec![0xe4, 0x45, 0xa5, 0x2e, 0x51, 0xcb, 0x9a, 0x1d];
    data.extend([1, 2, 3, 4, 5, 6, 7, 8, 1]);
    data.extend(amounts.iter().flat_map(|amount| amount.to_le_bytes()));
    data
}

fn accounts() -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", BONK).account("c bonk", "BONK", "curve", 2 * BONK);
    tx
}

/// BONK for SOL and a fee of the platform's.
fn purchase(instruction: &str, [sol, fee, bonk]: [u64; 3]) -> Tx {
    let mut tx = accounts();
    tx.call(PROGRAM, &["w", "w bonk", "c bonk", "curve", "fees"], &named(instruction));
    tx.pay(2, "w", "curve", sol).pay(2, "w", "fees", fee);
    tx.transfer(2, "c bonk", "w bonk", "curve", bonk);
    tx
}

/// SOL that the curve pays without an instruction, and a fee from it.
fn sale(instruction: &str) -> Tx {
    let mut tx = accounts();
    tx.call(PROGRAM, &["w", "w bonk", "c bonk", "curve", "fees"], &named(instruction));
    tx.transfer(2, "w bonk", "c bonk", "w", BONK);
    tx.drift("curve", -997_530_864).drift("w", 987_654_321).drift("fees", 9_876_543);
    tx
}

/// What the wallet gives goes to the account of `taker`, and what it gets comes from the pool.
fn exchange(instruction: &str, taker: &str) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w usdc", "USDC", "w", USDC).account("p usdc", "USDC", taker, 0);
    tx.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "pool", BONK);
    tx.call(PROGRAM, &["w", "w usdc", "p usdc", "p bonk", "w bonk", "pool"], &named(instruction));
    tx.transfer(2, "w usdc", "p usdc", "w", USDC).transfer(2, "p bonk", "w bonk", "pool", BONK);
    tx
}

fn with_event(mut tx: Tx, amounts: [u64; 2]) -> Tx {
    tx.inner(2, PROGRAM, &["events"], &event(amounts));
    tx
}

#[test]
fn a_curve_in_no_table_trades_for_sol() {
    let bought = [(Side::Buy, "BONK", BONK, Some(SOL + FEE), PROGRAM)];
    for stated in [SOL, SOL + FEE] {
        let tx = with_event(purchase("buy", [SOL, FEE, BONK]), [stated, BONK]);
        check(&tx, "w", &bought);
        let kinds: Vec<_> = run(&tx, "w").notes.iter().map(|note| note.kind).collect();
        assert_eq!(kinds, [NoteKind::UnknownVenue]);
    }
    let sold = [(Side::Sell, "BONK", BONK, Some(SOL), PROGRAM)];
    for stated in [SOL, SOL + FEE] {
        check(&with_event(sale("sell"), [BONK, stated]), "w", &sold);
    }
    let json = with_event(sale("sell"), [BONK, SOL]).json().to_string();
    let tx = parse(json.as_bytes()).unwrap();
    let explained = explain(&Registry::embedded().unwrap(), &key("w"), &tx);
    let coin = explained.movements.iter().find(|moved| moved.asset == Asset::Native).unwrap();
    assert_eq!((coin.got, coin.gave), (Units::from(SOL), Units::ZERO));
    // The rent of an account that the wallet opens, and a tip, are outside.
    let mut tx = with_event(purchase("buy", [SOL, FEE, BONK]), [SOL, BONK]);
    tx.open(2, "w", "w other", "OTHER", "w", RENT);
    tx.pay(1, "w", "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5", 100_000);
    check(&tx, "w", &bought);
}

#[test]
fn a_pool_in_no_table_trades() {
    let rows =
        [(Side::Sell, "USDC", USDC, None, PROGRAM), (Side::Buy, "BONK", BONK, None, PROGRAM)];
    check(&with_event(exchange("swap", "pool"), [USDC, BONK]), "w", &rows);
    // Wrapped SOL in an account that the wallet opens before and closes behind.
    let mut tx = accounts();
    tx.account("c sol", WSOL, "curve", 5);
    tx.open(1, "w", "w sol", WSOL, "w", RENT + SOL);
    tx.call(PROGRAM, &["w", "w sol", "w bonk", "c sol", "c bonk", "curve"], &named("swap"));
    tx.transfer(2, "w sol", "c sol", "w", SOL).transfer(2, "c bonk", "w bonk", "curve", BONK);
    let mut tx = with_event(tx, [SOL, BONK]);
    tx.close(1, "w sol", "w", "w");
    check(&tx, "w", &[(Side::Buy, "BONK", BONK, Some(SOL), PROGRAM)]);
}

/// Each differs from a trade above in one thing.
#[test]
fn at_a_program_in_no_table_other_dealings_are_no_trades() {
    let stated = |tx| with_event(tx, [USDC, BONK]);
    // A farm's deposit with a harvest, a loan against a deposit.
    for name in ["deposit", "stake", "deposit_and_borrow", "open_position", "take"] {
        check_none(&stated(exchange(name, "pool")), "w", None);
        check_none(&with_event(purchase(name, [SOL, FEE, BONK]), [SOL, BONK]), "w", None);
    }
    // A claim for a fee.
    let mut claim = accounts();
    claim.call(PROGRAM, &["w", "w bonk", "c bonk", "curve", "fees"], &named("trade"));
    claim.pay(2, "w", "fees", FEE).transfer(2, "c bonk", "w bonk", "curve", BONK);
    check_none(&with_event(claim, [FEE, BONK]), "w", None);
    // A presale: 0.5 SOL for 1,000,000 of the token, also with a fee.
    for fee in [0, 2_500_001] {
        let sums = [500_000_000, fee, 1_000_000_000_000];
        check_none(&with_event(purchase("buy", sums), [sums[0], sums[2]]), "w", None);
    }
    // An escrow that pays its maker, and one whose maker signs.
    check_none(&stated(exchange("exchange", "maker")), "w", None);
    let mut swap = stated(exchange("exchange", "pool"));
    let rows = run(&swap, "w").trades.len();
    swap.signers = 99;
    assert_eq!((rows, run(&swap, "w").trades.len()), (2, 0));
    // A fee of more than a tenth.
    let sums = [SOL, SOL / 8, BONK];
    check_none(&with_event(purchase("buy", sums), [SOL, BONK]), "w", None);
    // A token that is minted, and another one that comes with it.
    let mut minted = stated(exchange("swap", "pool"));
    minted.account("w share", "SHARE", "w", 0).mint_to(2, "SHARE", "w share", 7);
    check_none(&minted, "w", None);
    let mut reward = stated(exchange("swap", "pool"));
    reward.account("w reward", "REWARD", "w", 0).account("p reward", "REWARD", "pool", 9);
    reward.transfer(2, "p reward", "w reward", "pool", 9);
    check_none(&reward, "w", None);
}

#[test]
fn a_trade_at_a_program_in_no_table_needs_its_event_and_its_call_alone() {
    for amounts in [[SOL - 1, BONK], [SOL, BONK + 1], [SOL + FEE + 1, BONK]] {
        check_none(&with_event(purchase("buy", [SOL, FEE, BONK]), amounts), "w", None);
    }
    check_none(&purchase("buy", [SOL, FEE, BONK]), "w", None);
    check_none(&sale("sell"), "w", None);
    check_none(&exchange("swap", "pool"), "w", None);
    // The event of another program, and of another call.
    let mut other = exchange("swap", "pool");
    other.inner(2, "other program", &["events"], &event([USDC, BONK]));
    check_none(&other, "w", None);
    let mut later = exchange("swap", "pool");
    later.call(PROGRAM, &["events"], &event([USDC, BONK]));
    check_none(&later, "w", None);
    // Another call that acts, one of a program of the tables, and a wallet that signs nothing.
    let swap = with_event(exchange("swap", "pool"), [USDC, BONK]);
    let mut two = swap.clone();
    two.call("other program", &["w"], &[1]).pay(2, "w", "friend", 5);
    check_none(&two, "w", None);
    let mut known = swap.clone();
    known.call(MARINADE, &["w"], &[1]);
    check_none(&known, "w", None);
    let mut unsigned = swap;
    unsigned.signers = 0;
    check_none(&unsigned, "w", None);
}
