//! Hand-written Solana transactions, one per rule; the expected rows are worked out by hand too.

use blotter::decode::explain::Why;
use blotter::decode::solana::{decode, explain, parse};
use blotter::decode::{Decoded, NoteKind};
use blotter::domain::{Address, Side, Units};
use blotter::registry::Registry;

use crate::support::solana::{RENT, SYSTEM, TOKEN, TOKEN_2022, Tx, WSOL, key};

pub(crate) const RAYDIUM: &str = "675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8";
pub(crate) const WHIRLPOOL: &str = "whirLbMiicVdio4qvUfM5KAg6Ct8VwpYzGff3uctyCc";
pub(crate) const PUMP: &str = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
pub(crate) const JUPITER: &str = "JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4";
pub(crate) const DFLOW: &str = "DF1ow4tspfHX9JwWJsAb9epbkA8hmpSEAtxXy1V27QBH";
pub(crate) const OKX: &str = "proVF4pMXVaYqmy4NjniPh4pqKNfMmsihgd4wdkCX3u";
const PHOTON: &str = "BSfD6SHZigAfDWSjzD5Q41jw8LmKwtmjskPH9XW1mrRW";
pub(crate) const LIMIT: &str = "jupoNjAxXgZ4rjzxzPMP4oxduvQsQtZzyknqvzYNrNu";
const DCA: &str = "DCA265Vj8a9CEuX1eb1LWRnDT7uK6q1xMipnNyatn23M";
const MARINADE: &str = "MarBmsSgKXdrN1egZf5sqe1TMai9K1rChYNDJgjq7aD";
const PHOENIX: &str = "PhoeNiXZ8ByJGLkxNfZRnkUfjvmuYqLR89jjFHGqdXY";
const SERUM: &str = "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin";
const JITO_TIP: &str = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";

/// Side, mint, units, lamports, venue.
pub(crate) type Row = (Side, &'static str, u64, Option<u64>, &'static str);

pub(crate) fn run(tx: &Tx, wallet: &str) -> Decoded {
    let tx = parse(tx.json().to_string().as_bytes()).unwrap();
    decode(&Registry::embedded().unwrap(), &key(wallet), &tx)
}

#[track_caller]
pub(crate) fn check(tx: &Tx, wallet: &str, expected: &[Row]) {
    let decoded = run(tx, wallet);
    let mut rows: Vec<_> = decoded
        .trades
        .iter()
        .map(|row| (row.side == Side::Buy, row.mint, row.units, row.native, row.venue.to_string()))
        .collect();
    let mut wanted: Vec<_> = expected
        .iter()
        .map(|(side, mint, units, native, venue)| {
            let mint = Address::Solana(key(mint));
            let native = native.map(Units::from);
            (*side == Side::Buy, mint, Some(Units::from(*units)), native, (*venue).to_owned())
        })
        .collect();
    rows.sort();
    wanted.sort();
    assert_eq!(rows, wanted, "{:?}", decoded.notes);
}

#[track_caller]
pub(crate) fn check_none(tx: &Tx, wallet: &str, note: Option<NoteKind>) {
    let decoded = run(tx, wallet);
    assert_eq!(decoded.trades, []);
    assert_eq!(decoded.notes.first().map(|note| note.kind), note);
}

/// SOL to BONK through a temporary wrapped-SOL account, with an account for BONK, a tip and a fee.
pub(crate) fn bought() -> Tx {
    let mut tx = Tx::new("w");
    tx.account("pool sol", WSOL, "pool", 900_000_000_000).account(
        "pool bonk",
        "BONK",
        "pool",
        5_000,
    );
    tx.open(1, "w", "w bonk", "BONK", "w", RENT);
    tx.open(1, "w", "w sol", WSOL, "w", RENT + 1_000_000_000);
    tx.call(RAYDIUM, &["pool sol", "pool bonk", "w sol", "w bonk", "w", "pool"], &[9]);
    tx.transfer(2, "w sol", "pool sol", "w", 950_000_000);
    tx.transfer(2, "pool bonk", "w bonk", "pool", 1_200);
    tx.close(1, "w sol", "w", "w");
    tx.pay(1, "w", JITO_TIP, 100_000);
    tx
}

#[test]
fn rent_tips_and_unspent_wrapped_sol_are_not_in_the_price() {
    let expected = [(Side::Buy, "BONK", 1_200, Some(950_000_000), "Raydium AMM v4")];
    check(&bought(), "w", &expected);
    // The pool's owner is on the other side of the same swap.
    let pool = [(Side::Sell, "BONK", 1_200, Some(950_000_000), "Raydium AMM v4")];
    check(&bought(), "pool", &pool);
    check(&bought(), "another wallet", &[]);
}

/// A transfer funds a temporary account with rent and the swapped lamports; a later call allocates
/// it.
#[test]
fn rent_that_a_transfer_pays_is_explained_like_any_other() {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "p", 5_000);
    tx.account("p sol", WSOL, "p", 900).lamports("t", 0);
    tx.pay(1, "w", "t", RENT + 3_000);
    tx.call(SYSTEM, &["t"], &[&[8, 0, 0, 0], 165_u64.to_le_bytes().as_slice()].concat());
    tx.call(TOKEN, &["t", WSOL], &[[18].as_slice(), &key("w")].concat());
    tx.call(RAYDIUM, &["t", "p sol", "p bonk", "w bonk", "w", "p"], &[9]);
    let swapped = [[3].as_slice(), &2_000_u64.to_le_bytes()].concat();
    tx.inner(2, TOKEN, &["t", "p sol", "w"], &swapped).drift("t", -2_000).drift("p sol", 2_000);
    tx.transfer(2, "p bonk", "w bonk", "p", 700);
    let left = i64::try_from(RENT).unwrap() + 1_000;
    tx.call(TOKEN, &["t", "w", "w"], &[9]).drift("t", -left).drift("w", left);
    check(&tx, "w", &[(Side::Buy, "BONK", 700, Some(2_000), "Raydium AMM v4")]);
    assert_eq!(explained_rent(&tx), [Some(RENT), Some(RENT)]);
}

/// The rent that the wallet paid for its accounts, and the rent that it got back.
fn explained_rent(tx: &Tx) -> [Option<u64>; 2] {
    let tx = parse(tx.json().to_string().as_bytes()).unwrap();
    let left_out = explain(&Registry::embedded().unwrap(), &key("w"), &tx).left_out;
    [Why::Rent, Why::RentBack].map(|why| {
        let found = left_out.iter().find(|out| out.why == why);
        found.map(|out| u64::try_from(out.units).unwrap())
    })
}

/// A router's authority has an account that is made with rent and SOL at once, at a rate that
/// nothing else in the transaction states.
#[test]
fn rent_of_a_routers_account_is_no_price_at_any_rate() {
    for (rate, rest) in [(6_960, 0), (5_080, 0), (5_080, 1_000)] {
        let rent = 293 * rate + rest;
        let mut tx = Tx::new("w");
        tx.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "p", 5_000);
        tx.account("p sol", WSOL, "p", 900);
        tx.call("some bot", &["w", "t", "w bonk", "p bonk", "p sol"], &[1]);
        tx.create(2, "w", "t", rent + 2_000, 165);
        tx.inner(2, TOKEN, &["t", WSOL], &[[18].as_slice(), &key("authority")].concat());
        tx.inner(2, RAYDIUM, &["t", "p sol", "p bonk", "w bonk", "authority", "p"], &[9]);
        let swapped = [[3].as_slice(), &2_000_u64.to_le_bytes()].concat();
        tx.inner(3, TOKEN, &["t", "p sol", "authority"], &swapped);
        tx.drift("t", -2_000).drift("p sol", 2_000).transfer(3, "p bonk", "w bonk", "p", 700);
        let left = i64::try_from(rent).unwrap();
        tx.inner(2, TOKEN, &["t", "w", "authority"], &[9]).drift("t", -left).drift("w", left);
        check(&tx, "w", &[(Side::Buy, "BONK", 700, Some(2_000), "Raydium AMM v4")]);
    }
}

/// An account that may hold lamports already is funded by a transfer, and its data allocated then.
#[test]
fn rent_of_a_venues_token_account_is_no_price() {
    let made = |tx: &mut Tx, mint: &str, wrapped: u64| {
        // The rent may come in two parts.
        tx.lamports("f", 0).pay(2, "w", "f", 1_000).pay(2, "w", "f", RENT - 1_000);
        if wrapped > 0 {
            tx.pay(2, "w", "f", wrapped);
        }
        let space = [[8, 0, 0, 0].as_slice(), &165_u64.to_le_bytes()].concat();
        tx.inner(2, SYSTEM, &["f"], &space);
        tx.inner(2, TOKEN, &["f", mint], &[[18].as_slice(), &key("fees")].concat());
    };
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
    tx.call(PUMP, &["w bonk", "c bonk", "curve", "f", "w"], &[102]);
    made(&mut tx, "BONK", 0);
    tx.transfer(2, "c bonk", "w bonk", "curve", 1_000).pay(2, "w", "curve", 40_000_000);
    check(&tx, "w", &[(Side::Buy, "BONK", 1_000, Some(40_000_000), "Pump.fun")]);

    // A fee in wrapped SOL goes to the new account, with its rent or behind.
    for wrapped in [0, 300] {
        let mut tx = Tx::new("w");
        tx.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "p", 900);
        tx.account("w sol", WSOL, "w", 5_000).account("p sol", WSOL, "p", 900);
        tx.call(RAYDIUM, &["w sol", "p sol", "p bonk", "w bonk", "f", "w", "p"], &[9]);
        made(&mut tx, WSOL, wrapped);
        let fee = [[3].as_slice(), &(300 - wrapped).to_le_bytes()].concat();
        let moved = i64::try_from(300 - wrapped).unwrap();
        tx.inner(2, TOKEN, &["w sol", "f", "w"], &fee).drift("w sol", -moved).drift("f", moved);
        tx.transfer(2, "w sol", "p sol", "w", 4_700).transfer(2, "p bonk", "w bonk", "p", 700);
        check(&tx, "w", &[(Side::Buy, "BONK", 700, Some(5_000), "Raydium AMM v4")]);
    }
}

/// The Token program gives back rent that is no longer needed (`WithdrawExcessLamports`). The
/// instruction does not state how much.
#[test]
fn rent_that_an_own_account_gives_back_is_no_part_of_a_price() {
    let mut bought = Tx::new("w");
    bought.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "p", 900);
    bought.account("w sol", WSOL, "w", 5_000).account("p sol", WSOL, "p", 900);
    bought.call(RAYDIUM, &["w sol", "p sol", "p bonk", "w bonk", "w", "p"], &[9]);
    bought.transfer(2, "w sol", "p sol", "w", 5_000).transfer(2, "p bonk", "w bonk", "p", 700);
    // A withdrawal of stake, by an account that the swap was not given.
    bought.call("stake program", &["stake", "w"], &[4, 0, 0, 0]);
    bought.drift("stake", -10_000).drift("w", 10_000);
    let sold = [(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")];
    let bonk = [(Side::Buy, "BONK", 700, Some(5_000), "Raydium AMM v4")];
    for (mut tx, rows) in [(bought, bonk), (sold_to_curve(), sold)] {
        tx.call(TOKEN, &["w bonk", "w", "w"], &[38]).drift("w bonk", -550_840).drift("w", 550_840);
        check(&tx, "w", &rows);
    }
}

#[test]
fn a_failed_transaction_holds_no_trade() {
    let mut tx = bought();
    tx.failed = true;
    check_none(&tx, "w", None);
}

/// BONK to USDC in one pool and USDC to WIF in two, through the aggregator's own accounts.
pub(crate) fn routed() -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 1_000).account("w wif", "WIF", "w", 0);
    tx.account("hub usdc", "USDC", "hub", 50);
    tx.account("a bonk", "BONK", "a", 0).account("a usdc", "USDC", "a", 900);
    tx.account("b usdc", "USDC", "b", 0).account("b wif", "WIF", "b", 900);
    tx.account("c usdc", "USDC", "c", 0).account("c wif", "WIF", "c", 900);
    tx.call(JUPITER, &["w bonk", "w wif", "w"], &[1]);
    tx.inner(2, RAYDIUM, &["w bonk", "a bonk", "a usdc", "hub usdc", "w", "a"], &[9]);
    tx.transfer(3, "w bonk", "a bonk", "w", 700).transfer(3, "a usdc", "hub usdc", "a", 300);
    tx.inner(2, WHIRLPOOL, &["hub usdc", "b usdc", "b wif", "w wif", "hub", "b"], &[1]);
    tx.transfer(3, "hub usdc", "b usdc", "hub", 200).transfer(3, "b wif", "w wif", "b", 41);
    tx.inner(2, RAYDIUM, &["hub usdc", "c usdc", "c wif", "w wif", "hub", "c"], &[9]);
    tx.transfer(3, "hub usdc", "c usdc", "hub", 100).transfer(3, "c wif", "w wif", "c", 20);
    tx
}

const ROUTED: [Row; 2] = [
    (Side::Sell, "BONK", 700, None, "Raydium AMM v4"),
    (Side::Buy, "WIF", 61, None, "Orca Whirlpool"),
];

#[test]
fn a_token_for_a_token_is_two_rows_each_at_the_venue_of_its_largest_share() {
    check(&routed(), "w", &ROUTED);
    check(&full_size(), "w", &ROUTED);
}

/// For a pool or a market maker that is one leg of a route, the leg's venue is named.
#[test]
fn a_leg_of_a_route_is_named_after_its_own_venue() {
    for (owner, venue) in
        [("a", "Raydium AMM v4"), ("b", "Orca Whirlpool"), ("c", "Raydium AMM v4")]
    {
        let rows = run(&routed(), owner).trades;
        let venues: Vec<&str> = rows.iter().map(|row| &*row.venue).collect();
        assert_eq!(venues, [venue, venue], "{owner}");
    }
}

/// The same route in a transaction of ordinary size: a tip, an event after each hop, and logs.
pub(crate) fn full_size() -> Tx {
    let mut tx = routed();
    let event: Vec<u8> = (0..128).collect();
    for program in [JUPITER, RAYDIUM, WHIRLPOOL] {
        tx.inner(2, program, &["w", "hub"], &event);
    }
    for (at, account) in ["b", "c", "d", "e"].into_iter().enumerate() {
        tx.account(&format!("{account} other"), "OTHER", account, u64::try_from(at).unwrap());
        tx.inner(2, JUPITER, &["w", &format!("{account} other")], &event);
    }
    for line in 0..40 {
        tx.logs.push(format!("Program log: step {line} of a route, as long as such lines are"));
    }
    tx.pay(1, "w", JITO_TIP, 100_000);
    tx
}

#[test]
fn the_call_tree_comes_from_heights_or_logs_or_accounts() {
    let mut tx = routed();
    tx.heights = false;
    check(&tx, "w", &ROUTED);
    tx.logs = vec!["Log truncated".to_owned()];
    check(&tx, "w", &ROUTED);
}

#[test]
fn looked_up_keys_stand_behind_the_listed_ones() {
    let mut tx = routed();
    tx.loaded = 5;
    tx.version = 0.into();
    check(&tx, "w", &ROUTED);
}

#[test]
fn a_transaction_of_2021_has_no_owners() {
    let mut tx = bought();
    tx.owners = false;
    // The owner of the opened account is known from its creation, the other's from a transfer's
    // signer.
    check(&tx, "w", &[(Side::Buy, "BONK", 1_200, Some(950_000_000), "Raydium AMM v4")]);
}

/// BONK to a curve that pays out of its own account without an instruction.
pub(crate) fn sold_to_curve() -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 1_000).account("c bonk", "BONK", "curve", 0);
    tx.call(PUMP, &["w bonk", "c bonk", "curve", "fees", "w"], &[51]);
    tx.transfer(2, "w bonk", "c bonk", "w", 1_000);
    tx.drift("curve", -600_000).drift("w", 590_000).drift("fees", 10_000);
    tx
}

#[test]
fn a_curve_pays_without_an_instruction() {
    check(&sold_to_curve(), "w", &[(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")]);
    // The curve is still the payer next to another venue's swap.
    let mut tx = sold_to_curve();
    tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 90);
    tx.account("w usdc", "USDC", "w", 9).account("p usdc", "USDC", "p", 0);
    tx.call(RAYDIUM, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[9]);
    tx.transfer(2, "w usdc", "p usdc", "w", 9).transfer(2, "p wif", "w wif", "p", 3);
    let expected = [
        (Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun"),
        (Side::Sell, "USDC", 9, None, "Raydium AMM v4"),
        (Side::Buy, "WIF", 3, None, "Raydium AMM v4"),
    ];
    check(&tx, "w", &expected);
}

/// What a curve's own account bought is valued at all that it paid, fees included.
#[test]
fn a_curves_own_account_pays_without_an_instruction() {
    let bought = [(Side::Buy, "BONK", 1_000, Some(600_000), "Pump.fun")];
    check(&sold_to_curve(), "curve", &bought);
    // Two sales to it are one row; the supply of a launch does not count.
    let again = |tx: &mut Tx| {
        tx.account("v bonk", "BONK", "v", 500);
        tx.call(PUMP, &["v bonk", "c bonk", "curve", "fees", "v"], &[51]);
        tx.transfer(2, "v bonk", "c bonk", "v", 500).drift("curve", -200_000).drift("v", 200_000);
    };
    let mut tx = sold_to_curve();
    again(&mut tx);
    tx.call(PUMP, &["curve", "c bonk"], &[24]).mint_to(2, "BONK", "c bonk", 9_000);
    check(&tx, "curve", &[(Side::Buy, "BONK", 1_500, Some(800_000), "Pump.fun")]);
    // What it sells in the same transaction is netted.
    for (sold, got, rows) in [
        (1_000, 600_001, vec![]),
        (300, 200_000, vec![(Side::Buy, "BONK", 700, Some(400_000), "Pump.fun")]),
    ] {
        let mut tx = sold_to_curve();
        tx.account("v bonk", "BONK", "v", 0);
        tx.call(PUMP, &["v bonk", "c bonk", "curve", "fees", "v"], &[102]);
        tx.transfer(2, "c bonk", "v bonk", "curve", sold).pay(2, "v", "curve", got);
        check(&tx, "curve", &rows);
    }
}

/// A curve's price may pay for more than the wallet held before.
#[test]
fn a_price_without_an_instruction_may_be_spent_at_once() {
    let mut tx = sold_to_curve();
    tx.lamports("w", 6_000).drift("w", 590_000 - 5_000);
    tx.pay(1, "w", "friend", 500_000);
    check(&tx, "w", &[(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")]);
}

/// The event of a sale to a curve at this price, of which 10,000 lamports are fees. Current events
/// also state the cashback.
fn sale_event(price: u64, cashback: Option<u64>) -> Vec<u8> {
    let mut event = vec![0xe4, 0x45, 0xa5, 0x2e, 0x51, 0xcb, 0x9a, 0x1d];
    event.extend([0xbd, 0xdb, 0x7f, 0xd3, 0x4e, 0xe6, 0x61, 0xee]);
    let mut body = vec![0; 217];
    body[32..40].copy_from_slice(&price.to_le_bytes());
    body[49..81].copy_from_slice(&key("w"));
    body[161..169].copy_from_slice(&9_000_u64.to_le_bytes());
    body[209..217].copy_from_slice(&1_000_u64.to_le_bytes());
    event.extend(body);
    if let Some(cashback) = cashback {
        // Volumes and a time; the instruction's name; a flag and the rate.
        event.extend([0; 33]);
        event.extend(7_u32.to_le_bytes());
        event.extend(b"sell_v2");
        event.push(0);
        event.extend(30_u64.to_le_bytes());
        event.extend(cashback.to_le_bytes());
        event.extend([0; 16]);
    }
    event
}

/// Two sales to curves: each is valued by its event if the events explain the total.
#[test]
fn sales_to_two_curves_are_distinguished_by_their_events() {
    let both = |first: Vec<u8>| {
        let mut tx = sold_to_curve();
        tx.inner(2, PUMP, &["events"], &first);
        tx.account("w wif", "WIF", "w", 50).account("d wif", "WIF", "other curve", 0);
        tx.call(PUMP, &["w wif", "d wif", "other curve", "fees", "w"], &[51]);
        let second = sale_event(300_000, None);
        tx.transfer(2, "w wif", "d wif", "w", 50).inner(2, PUMP, &["events"], &second);
        tx.drift("other curve", -300_000).drift("w", 290_000).drift("fees", 10_000);
        tx
    };
    let rows = |bonk, wif| {
        [(Side::Sell, "BONK", 1_000, bonk, "Pump.fun"), (Side::Sell, "WIF", 50, wif, "Pump.fun")]
    };
    let each = rows(Some(590_000), Some(290_000));
    check(&both(sale_event(600_000, None)), "w", &each);
    check(&both(sale_event(602_000, Some(2_000))), "w", &each);
    check(&both(sale_event(600_001, None)), "w", &rows(None, None));
    // The rest came from another account.
    let mut tx = both(sale_event(600_000, None));
    claim(&mut tx);
    check(&tx, "w", &each);
}

/// One call of a program may sell several tokens, or buy them: each for what its own venue moved.
#[test]
fn tokens_that_one_call_exchanges_at_several_venues_have_their_own_values() {
    let sold = |price: u64| {
        let mut tx = Tx::new("w");
        tx.account("w bonk", "BONK", "w", 1_000).account("c bonk", "BONK", "curve", 0);
        tx.account("w wif", "WIF", "w", 50).account("d wif", "WIF", "other curve", 0);
        tx.call("some bot", &["w"], &[1]);
        tx.inner(2, PUMP, &["w bonk", "c bonk", "curve", "w"], &[51]);
        tx.transfer(3, "w bonk", "c bonk", "w", 1_000);
        tx.inner(3, PUMP, &["events"], &sale_event(price, None));
        tx.inner(2, PUMP, &["w wif", "d wif", "other curve", "w"], &[51]);
        tx.transfer(3, "w wif", "d wif", "w", 50);
        tx.inner(3, PUMP, &["events"], &sale_event(300_000, None));
        tx.drift("curve", -590_000).drift("other curve", -290_000).drift("w", 880_000);
        tx
    };
    // Events that do not add up to what came state no part of it.
    for (price, [bonk, wif]) in [(600_000, [Some(590_000), Some(290_000)]), (600_001, [None, None])]
    {
        let rows = [
            (Side::Sell, "BONK", 1_000, bonk, "Pump.fun"),
            (Side::Sell, "WIF", 50, wif, "Pump.fun"),
        ];
        check(&sold(price), "w", &rows);
    }
    let mut tx = Tx::new("w");
    tx.account("w sol", WSOL, "w", 9_000).account("p sol", WSOL, "p", 0);
    tx.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "p", 900);
    tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 900);
    tx.call("some bot", &["w"], &[1]);
    for (venue, paid, bought) in [(WHIRLPOOL, 1_000, 9), (RAYDIUM, 3_000, 30)] {
        tx.inner(2, venue, &["w sol", "p sol", "p bonk", "w bonk", "w", "p"], &[9]);
        tx.transfer(3, "w sol", "p sol", "w", paid);
        tx.transfer(3, "p bonk", "w bonk", "p", bought);
    }
    tx.inner(2, WHIRLPOOL, &["w sol", "p sol", "p wif", "w wif", "w", "p"], &[9]);
    tx.transfer(3, "w sol", "p sol", "w", 5_000).transfer(3, "p wif", "w wif", "p", 70);
    let rows = [
        (Side::Buy, "BONK", 39, Some(4_000), "Raydium AMM v4"),
        (Side::Buy, "WIF", 70, Some(5_000), "Orca Whirlpool"),
    ];
    check(&tx, "w", &rows);
}

/// A claim of 70,000 lamports that a curve's program had set aside for the wallet.
fn claim(tx: &mut Tx) {
    tx.call(PUMP, &["w", "saved"], &[37, 58, 35, 126, 190, 53, 228, 197]);
    tx.inner(2, PUMP, &["events"], &[1]).drift("saved", -70_000).drift("w", 70_000);
}

#[test]
fn a_claim_next_to_a_trade_at_a_curve_is_no_part_of_its_price() {
    let mut tx = Tx::new("w");
    claim(&mut tx);
    tx.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
    tx.call(PUMP, &["w bonk", "c bonk", "curve", "saved", "w"], &[102]);
    tx.transfer(2, "c bonk", "w bonk", "curve", 1_000).pay(2, "w", "curve", 40_000_000);
    check(&tx, "w", &[(Side::Buy, "BONK", 1_000, Some(40_000_000), "Pump.fun")]);
    // A sale is valued by its event; without an event it could be any part.
    for (event, value) in [(Some(sale_event(600_000, None)), Some(590_000)), (None, None)] {
        let mut tx = sold_to_curve();
        if let Some(event) = event {
            tx.inner(2, PUMP, &["events"], &event);
        }
        claim(&mut tx);
        check(&tx, "w", &[(Side::Sell, "BONK", 1_000, value, "Pump.fun")]);
    }
}

/// Pump.fun's third trades leave the creator's fee on the curve: a sweep moves it to the creator's
/// vault, and the claim empties that.
#[test]
fn what_a_curve_kept_for_its_creator_is_no_part_of_the_price_of_a_sale() {
    // sha256("global:sweep_creator_fee") and sha256("global:collect_creator_fee_v2").
    let sweep = [32, 246, 191, 52, 8, 201, 73, 186];
    let collect = [207, 17, 138, 242, 4, 34, 19, 56];
    for (event, value) in [(Some(sale_event(600_000, None)), Some(590_000)), (None, None)] {
        let mut tx = sold_to_curve();
        if let Some(event) = event {
            tx.inner(2, PUMP, &["events"], &event);
        }
        tx.call(PUMP, &["w", "curve", "vault"], &sweep).inner(2, PUMP, &["events"], &[1]);
        tx.call(PUMP, &["w", "vault"], &collect).inner(2, PUMP, &["events"], &[1]);
        tx.drift("curve", -70_000).drift("w", 70_000);
        check(&tx, "w", &[(Side::Sell, "BONK", 1_000, value, "Pump.fun")]);
    }
}

#[test]
fn a_purchase_next_to_a_sale_that_a_curve_pays_is_worth_what_it_cost() {
    let mut tx = sold_to_curve();
    tx.account("w wif", "WIF", "w", 0).account("d wif", "WIF", "other curve", 500);
    tx.call(PUMP, &["w wif", "d wif", "other curve", "w"], &[102]);
    tx.transfer(2, "d wif", "w wif", "other curve", 50).pay(2, "w", "other curve", 300_000);
    let expected = [
        (Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun"),
        (Side::Buy, "WIF", 50, Some(300_000), "Pump.fun"),
    ];
    check(&tx, "w", &expected);
}

/// A withdrawal of stake is paid by an account that was not passed to the swap.
#[test]
fn lamports_of_an_account_outside_a_swap_are_no_part_of_it() {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "p", 900);
    tx.account("w sol", WSOL, "w", 5_000).account("p sol", WSOL, "p", 900);
    tx.call("stake program", &["stake", "w"], &[4, 0, 0, 0]);
    tx.drift("stake", -10_000).drift("w", 10_000);
    tx.call(RAYDIUM, &["w sol", "p sol", "p bonk", "w bonk", "w", "p"], &[9]);
    tx.transfer(2, "w sol", "p sol", "w", 5_000).transfer(2, "p bonk", "w bonk", "p", 700);
    check(&tx, "w", &[(Side::Buy, "BONK", 700, Some(5_000), "Raydium AMM v4")]);
    // Next to a sale without an event, any part of the lamports could be the price.
    let mut tx = sold_to_curve();
    tx.call("stake program", &["stake", "w"], &[4, 0, 0, 0]);
    tx.drift("stake", -70_000).drift("w", 70_000);
    check(&tx, "w", &[(Side::Sell, "BONK", 1_000, None, "Pump.fun")]);
}

#[test]
fn what_a_closed_account_had_left_is_no_price() {
    let mut tx = sold_to_curve();
    tx.lamports("old account", 70_000).drift("old account", -70_000).drift("w", 70_000);
    check(&tx, "w", &[(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")]);
    assert_eq!(explained_rent(&tx), [None, Some(70_000)]);
}

/// Another account's order is closed in the same transaction: its owner gets the remainder.
#[test]
fn what_a_closed_account_leaves_to_others_is_no_part_of_a_price() {
    for given in [["order", "owner"].as_slice(), &["order", "owner", "w"]] {
        let mut tx = sold_to_curve();
        tx.call("program of orders", given, &[1]);
        tx.lamports("order", 70_000).drift("order", -70_000).drift("owner", 70_000);
        check(&tx, "w", &[(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")]);
        assert_eq!(explained_rent(&tx), [None, None]);
    }
    // Its owner got a part, without the wallet in the call.
    let mut tx = sold_to_curve();
    tx.call("program of orders", &["order", "owner", "fees"], &[1]);
    tx.lamports("order", 70_000).drift("order", -70_000);
    tx.drift("owner", 60_000).drift("fees", 10_000);
    check(&tx, "w", &[(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")]);
    assert_eq!(explained_rent(&tx), [None, None]);
    // One call closes the wallet's and another: each owner gets what its own had left.
    let mut tx = sold_to_curve();
    tx.call("program of orders", &["own order", "w", "order", "owner"], &[1]);
    for order in ["own order", "order"] {
        tx.lamports(order, 70_000).drift(order, -70_000);
    }
    tx.drift("w", 70_000).drift("owner", 70_000);
    check(&tx, "w", &[(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")]);
    assert_eq!(explained_rent(&tx), [None, Some(70_000)]);
    // The wallet's own may have as much left.
    let mut tx = sold_to_curve();
    tx.call("program of orders", &["own order", "w"], &[1]);
    tx.lamports("own order", 70_000).drift("own order", -70_000).drift("w", 70_000);
    tx.call("program of orders", &["order", "owner"], &[1]);
    tx.lamports("order", 70_000).drift("order", -70_000).drift("owner", 70_000);
    check(&tx, "w", &[(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")]);
    assert_eq!(explained_rent(&tx), [None, Some(70_000)]);
}

/// A curve is paid by instruction: its price, a first fee that gives an account its rent, and one
/// that does not.
#[test]
fn fees_of_the_venue_are_in_the_price_and_rent_is_not() {
    let mut tx = Tx::new("w");
    tx.account("c bonk", "BONK", "curve", 5_000);
    tx.lamports("creator vault", 0);
    tx.open(1, "w", "w bonk", "BONK", "w", RENT);
    tx.call(PUMP, &["w bonk", "c bonk", "curve", "creator vault", "fees", "w"], &[102]);
    tx.transfer(2, "c bonk", "w bonk", "curve", 1_000);
    tx.create(2, "w", "volume of w", (128 + 137) * 6_960, 137);
    tx.pay(2, "w", "creator vault", 128 * 6_960).pay(2, "w", "creator vault", 3_000);
    tx.pay(2, "w", "curve", 36 * 6_960).pay(2, "w", "curve", 990_000_000);
    tx.pay(2, "w", "fees", 9_900_000);
    let price = 990_000_000 + 3_000 + 9_900_000;
    check(&tx, "w", &[(Side::Buy, "BONK", 1_000, Some(price), "Pump.fun")]);
}

#[test]
fn what_a_bot_sends_to_itself_is_outside_the_swap() {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
    tx.call(PHOTON, &["w", "w bonk", "c bonk", "curve", "bot"], &[1]);
    tx.inner(2, PUMP, &["w bonk", "c bonk", "curve", "w"], &[102]);
    tx.transfer(3, "c bonk", "w bonk", "curve", 1_000).pay(3, "w", "curve", 40_000_000);
    tx.pay(2, "w", "bot", 400_000);
    check(&tx, "w", &[(Side::Buy, "BONK", 1_000, Some(40_000_000), "Pump.fun")]);
    // The same through a program that no table knows.
    let mut unknown = Tx::new("w");
    unknown.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
    unknown.call("some bot", &["w", "w bonk", "c bonk", "curve", "bot"], &[1]);
    unknown.inner(2, PUMP, &["w bonk", "c bonk", "curve", "w"], &[102]);
    unknown.transfer(3, "c bonk", "w bonk", "curve", 1_000).pay(3, "w", "curve", 40_000_000);
    unknown.pay(2, "w", "bot", 400_000);
    check(&unknown, "w", &[(Side::Buy, "BONK", 1_000, Some(40_000_000), "Pump.fun")]);
}

/// What a bot takes for a purchase may pass through two of its accounts; what it shares with others
/// is its fee.
#[test]
fn what_reaches_a_venue_by_two_accounts_is_the_price() {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
    tx.call("some bot", &["w", "vault", "user", "curve", "c bonk", "w bonk", "bot"], &[1]);
    tx.pay(2, "w", "vault", 40_400_000).pay(2, "vault", "user", 40_000_000);
    tx.inner(2, PUMP, &["user", "curve", "c bonk", "w bonk"], &[102]);
    tx.pay(3, "user", "curve", 40_000_000).transfer(3, "c bonk", "w bonk", "curve", 1_000);
    tx.pay(2, "w", "bot", 7_000).pay(2, "bot", "referrer", 3_000);
    check(&tx, "w", &[(Side::Buy, "BONK", 1_000, Some(40_400_000), "Pump.fun")]);
}

/// A router of the tables exchanges at a curve that is not in them: what the curve takes is the price,
/// unlike what the router sends, what a call without tokens keeps, and what a router between takes.
#[test]
fn a_venue_that_no_table_has_is_paid_the_price_behind_a_router() {
    for router in [PHOTON, JUPITER] {
        let mut tx = Tx::new("w");
        tx.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
        tx.call("some bot", &["w", "w bonk", "c bonk", "curve", "bot"], &[1]);
        tx.inner(2, router, &["w", "w bonk", "c bonk", "curve", "bot"], &[1]);
        tx.inner(3, "some keeper", &["w", "kept"], &[1]).pay(4, "w", "kept", 7_000);
        tx.inner(3, JUPITER, &["w bonk", "c bonk", "curve", "fees", "w"], &[1]);
        tx.inner(4, "some curve", &["w bonk", "c bonk", "curve", "fees", "w"], &[102]);
        tx.transfer(5, "c bonk", "w bonk", "curve", 1_000).pay(5, "w", "curve", 40_000_000);
        tx.pay(5, "w", "fees", 300_000).pay(3, "w", "bot", 400_000);
        check(&tx, "w", &[(Side::Buy, "BONK", 1_000, Some(40_300_000), "Jupiter v6")]);
        let mut between = Tx::new("w");
        between.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
        between.call(router, &["w", "w bonk", "c bonk", "curve", "bot"], &[1]);
        between.inner(2, "some router", &["w", "w bonk", "c bonk", "curve", "bot"], &[1]);
        between.inner(3, PUMP, &["w bonk", "c bonk", "curve", "w"], &[102]);
        between.transfer(4, "c bonk", "w bonk", "curve", 1_000).pay(4, "w", "curve", 40_000_000);
        between.pay(3, "w", "bot", 400_000);
        check(&between, "w", &[(Side::Buy, "BONK", 1_000, Some(40_000_000), "Pump.fun")]);
    }
}

#[test]
fn a_router_may_take_in_one_call_and_swap_in_the_next() {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "p", 5_000);
    tx.account("w usdc", "USDC", "w", 90).account("p usdc", "USDC", "p", 0);
    tx.account("r usdc", "USDC", "router", 0);
    tx.call("some router", &["w", "w usdc", "r usdc"], &[1]);
    tx.transfer(2, "w usdc", "r usdc", "w", 90);
    tx.call("some router", &["w", "r usdc", "p usdc", "p bonk", "w bonk"], &[2]);
    tx.inner(2, RAYDIUM, &["r usdc", "p usdc", "p bonk", "w bonk", "router", "p"], &[9]);
    tx.transfer(3, "r usdc", "p usdc", "router", 90).transfer(3, "p bonk", "w bonk", "p", 1_000);
    let expected = [
        (Side::Sell, "USDC", 90, None, "Raydium AMM v4"),
        (Side::Buy, "BONK", 1_000, None, "Raydium AMM v4"),
    ];
    check(&tx, "w", &expected);
}

/// Two swaps in separate calls of one transaction: a token that is bought and sold again is not a
/// trade, and what remains is against native coin alone or nothing.
#[test]
fn several_swaps_that_leave_one_token_are_netted() {
    let swaps = |back: u64| {
        let mut tx = Tx::new("w");
        tx.account("w usdc", "USDC", "w", 100).account("p usdc", "USDC", "p", 0);
        tx.account("w bonk", "BONK", "w", 0).account("p bonk", "BONK", "p", 50);
        tx.account("q bonk", "BONK", "q", 0).account("q usdc", "USDC", "q", 500);
        tx.call(RAYDIUM, &["w usdc", "p usdc", "p bonk", "w bonk", "w", "p"], &[9]);
        tx.transfer(2, "w usdc", "p usdc", "w", 100).transfer(2, "p bonk", "w bonk", "p", 50);
        tx.call(RAYDIUM, &["w bonk", "q bonk", "q usdc", "w usdc", "w", "q"], &[9]);
        tx.transfer(2, "w bonk", "q bonk", "w", 50).transfer(2, "q usdc", "w usdc", "q", back);
        tx
    };
    for back in [105, 95, 100] {
        check_none(&swaps(back), "w", Some(NoteKind::RoundTrip));
    }
    // Native coin for one token through another.
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
    tx.call(PUMP, &["w bonk", "c bonk", "curve", "w"], &[102]);
    tx.transfer(2, "c bonk", "w bonk", "curve", 1_000).pay(2, "w", "curve", 40_000_000);
    tx.account("p bonk", "BONK", "p", 0).account("p usdc", "USDC", "p", 90);
    tx.account("w usdc", "USDC", "w", 0);
    tx.call(RAYDIUM, &["w bonk", "p bonk", "p usdc", "w usdc", "w", "p"], &[9]);
    tx.transfer(2, "w bonk", "p bonk", "w", 1_000).transfer(2, "p usdc", "w usdc", "p", 60);
    check(&tx, "w", &[(Side::Buy, "USDC", 60, Some(40_000_000), "Raydium AMM v4")]);
}

/// A pool that also trades on a book is the venue, not the book.
#[test]
fn the_outermost_venue_names_the_row() {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 100).account("p bonk", "BONK", "p", 0);
    tx.account("w usdc", "USDC", "w", 0).account("p usdc", "USDC", "p", 900);
    tx.account("book usdc", "USDC", "book", 900);
    tx.call(RAYDIUM, &["w bonk", "p bonk", "p usdc", "w usdc", "w", "p", "book usdc"], &[9]);
    tx.inner(2, SERUM, &["book usdc", "p usdc", "book"], &[0, 5, 0, 0, 0]);
    tx.transfer(3, "book usdc", "p usdc", "book", 800);
    tx.transfer(2, "w bonk", "p bonk", "w", 100).transfer(2, "p usdc", "w usdc", "p", 90);
    let expected = [
        (Side::Sell, "BONK", 100, None, "Raydium AMM v4"),
        (Side::Buy, "USDC", 90, None, "Raydium AMM v4"),
    ];
    check(&tx, "w", &expected);
}

#[test]
fn an_unknown_program_alone_swaps_nothing() {
    let mut tx = Tx::new("w");
    tx.account("w nft", "NFT", "w", 0).account("s nft", "NFT", "s", 1);
    tx.call("some market", &["w", "w nft", "s nft", "s"], &[1]);
    tx.transfer(2, "s nft", "w nft", "s", 1).pay(2, "w", "s", 5_000_000_000);
    check_none(&tx, "w", None);
}

#[test]
fn liquidity_is_no_trade() {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 100).account("p bonk", "BONK", "p", 0);
    tx.account("w usdc", "USDC", "w", 100).account("p usdc", "USDC", "p", 0);
    tx.account("w share", "SHARE", "w", 0);
    tx.call(RAYDIUM, &["w bonk", "w usdc", "w share", "p bonk", "p usdc", "w", "p"], &[3]);
    tx.transfer(2, "w bonk", "p bonk", "w", 100).transfer(2, "w usdc", "p usdc", "w", 100);
    let mut one_sided = tx.clone();
    tx.mint_to(2, "SHARE", "w share", 10);
    check_none(&tx, "w", Some(NoteKind::Liquidity));
    one_sided.pay(1, "w", "friend", 1);
    check_none(&one_sided, "w", Some(NoteKind::OneSided));
}

/// A pool may pay one token and take the other while it changes a position; the Anchor name
/// decides.
#[test]
fn an_instruction_that_moves_a_position_is_no_swap() {
    use sha2::Digest as _;
    let name = sha2::Sha256::digest("global:rebalance_liquidity");
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 100).account("p bonk", "BONK", "p", 0);
    tx.account("w usdc", "USDC", "w", 0).account("p usdc", "USDC", "p", 100);
    tx.call("LBUZKhRxPF3XUpBCjp4YzTKgLccjZhTSDM9YuVaPwxo", &["w", "p"], &name[..8]);
    tx.transfer(2, "w bonk", "p bonk", "w", 100).transfer(2, "p usdc", "w usdc", "p", 90);
    check_none(&tx, "w", None);
}

#[test]
fn staking_is_no_trade() {
    for route in [MARINADE, JUPITER] {
        let mut tx = Tx::new("w");
        tx.account("w msol", "MSOL", "w", 0);
        tx.call(route, &["w", "w msol", "reserve"], &[1]);
        let height = if route == JUPITER { 3 } else { 2 };
        if route == JUPITER {
            tx.inner(2, MARINADE, &["w", "w msol", "reserve"], &[1]);
        }
        tx.mint_to(height, "MSOL", "w msol", 90).account("reserve sol", WSOL, "reserve", 0);
        tx.account("w sol", WSOL, "w", 100).transfer(height, "w sol", "reserve sol", "w", 100);
        let note = (route == JUPITER).then_some(NoteKind::Conversion);
        check_none(&tx, "w", note);
    }
}

#[test]
fn wrapping_and_paying_make_no_row() {
    let mut tx = Tx::new("w");
    tx.open(1, "w", "w sol", WSOL, "w", RENT + 5).pay(1, "w", "friend", 7);
    tx.call(RAYDIUM, &["w"], &[0]);
    check_none(&tx, "w", None);
}

#[test]
fn a_taken_order_is_a_trade_and_a_placed_one_is_not() {
    let order = |kind: u8| {
        let mut data = vec![0; 51];
        data[1] = 10;
        data[37] = kind;
        let mut tx = Tx::new("w");
        tx.account("w bonk", "BONK", "w", 100).account("m bonk", "BONK", "m", 0);
        tx.account("w usdc", "USDC", "w", 0).account("m usdc", "USDC", "m", 100);
        tx.call(SERUM, &["w", "w bonk", "m bonk"], &data);
        tx.transfer(2, "w bonk", "m bonk", "w", 100);
        tx.call(SERUM, &["w", "w usdc", "m usdc", "m"], &[0, 5, 0, 0, 0]);
        tx.transfer(2, "m usdc", "w usdc", "m", 90);
        tx
    };
    let expected = [
        (Side::Sell, "BONK", 100, None, "Serum DEX v3"),
        (Side::Buy, "USDC", 90, None, "Serum DEX v3"),
    ];
    check(&order(1), "w", &expected);
    check_none(&order(0), "w", Some(NoteKind::Order));
}

/// An order book's call that takes and settles is a trade next to calls that place or cancel.
#[test]
fn an_order_that_is_taken_next_to_another_call_of_its_book_is_a_trade() {
    let take = |tx: &mut Tx| {
        tx.call(PHOENIX, &["w", "w bonk", "m bonk", "w usdc", "m usdc", "m"], &[0]);
        tx.transfer(2, "w bonk", "m bonk", "w", 100).transfer(2, "m usdc", "w usdc", "m", 90);
    };
    let other = |tx: &mut Tx, tag: u8, (from, to): (&str, &str)| {
        tx.call(PHOENIX, &["w", "w usdc", "m usdc", "m"], &[tag]);
        tx.transfer(2, from, to, "w", 300);
    };
    let (placed, cancelled) = ((2, ("w usdc", "m usdc")), (6, ("m usdc", "w usdc")));
    for ((tag, way), is_first) in
        [(placed, true), (placed, false), (cancelled, true), (cancelled, false)]
    {
        let mut tx = Tx::new("w");
        tx.account("w bonk", "BONK", "w", 100).account("m bonk", "BONK", "m", 0);
        tx.account("w usdc", "USDC", "w", 500).account("m usdc", "USDC", "m", 900);
        if is_first {
            other(&mut tx, tag, way);
        }
        take(&mut tx);
        if !is_first {
            other(&mut tx, tag, way);
        }
        let expected =
            [(Side::Sell, "BONK", 100, None, "Phoenix"), (Side::Buy, "USDC", 90, None, "Phoenix")];
        check(&tx, "w", &expected);
    }
}

/// A keeper pays the maker and takes what the order's account holds.
pub(crate) fn filled() -> Tx {
    let mut tx = Tx::new("keeper");
    tx.account("k wif", "WIF", "keeper", 90).account("k usdc", "USDC", "keeper", 0);
    tx.account("m wif", "WIF", "maker", 0).account("escrow", "USDC", "order", 500);
    tx.account("f wif", "WIF", "fees", 0);
    tx.call(
        LIMIT,
        &["order", "escrow", "maker", "keeper", "m wif", "k wif", "k usdc", "f wif"],
        &[2],
    );
    tx.transfer(2, "escrow", "k usdc", "order", 200);
    tx.transfer(2, "k wif", "m wif", "keeper", 80).transfer(2, "k wif", "f wif", "keeper", 1);
    tx
}

#[test]
fn a_keeper_fills_an_order() {
    let expected = [
        (Side::Sell, "USDC", 200, None, "Jupiter Limit Order v1"),
        (Side::Buy, "WIF", 80, None, "Jupiter Limit Order v1"),
    ];
    check(&filled(), "maker", &expected);
}

#[test]
fn what_a_cancelled_order_gives_back_is_no_trade() {
    let mut tx = Tx::new("maker");
    tx.account("m usdc", "USDC", "maker", 0).account("escrow", "USDC", "order", 500);
    tx.call(LIMIT, &["order", "escrow", "maker", "m usdc"], &[3]);
    tx.transfer(2, "escrow", "m usdc", "order", 500).close(2, "escrow", "maker", "order");
    check_none(&tx, "maker", None);
}

#[test]
fn an_instalment_that_is_paid_out_later_is_read_from_its_event() {
    let mut event = vec![0xe4, 0x45, 0xa5, 0x2e, 0x51, 0xcb, 0x9a, 0x1d];
    event.extend([0x86, 0x04, 0x11, 0x3f, 0xdd, 0x2d, 0xb1, 0xad]);
    for name in ["user", "order", "USDC", "WIF"] {
        event.extend(key(name));
    }
    event.extend(200_u64.to_le_bytes());
    event.extend(81_u64.to_le_bytes());
    event.extend(key("WIF"));
    event.extend(1_u64.to_le_bytes());
    let mut tx = Tx::new("keeper");
    tx.account("in", "USDC", "order", 500).account("out", "WIF", "order", 0);
    tx.account("k usdc", "USDC", "keeper", 0).account("k wif", "WIF", "keeper", 90);
    tx.call(DCA, &["keeper", "order", "in", "k usdc"], &[1]);
    tx.transfer(2, "in", "k usdc", "order", 200);
    tx.call(DCA, &["keeper", "order", "out", "k wif"], &[2]);
    tx.transfer(2, "k wif", "out", "keeper", 80).inner(2, DCA, &["events"], &event);
    let expected = [
        (Side::Sell, "USDC", 200, None, "Jupiter DCA"),
        (Side::Buy, "WIF", 80, None, "Jupiter DCA"),
    ];
    check(&tx, "user", &expected);
}

#[test]
fn what_arrives_counts_where_the_mint_takes_a_fee() {
    let mut tx = Tx::new("w");
    tx.account("w tax", "TAX", "w", 5).account("p tax", "TAX", "p", 1_000);
    tx.account("w usdc", "USDC", "w", 100).account("p usdc", "USDC", "p", 0);
    tx.lamports(TOKEN_2022, 1);
    tx.call(RAYDIUM, &["w usdc", "p usdc", "p tax", "w tax", "w", "p"], &[9]);
    tx.transfer(2, "w usdc", "p usdc", "w", 100);
    tx.transfer_less_fee(2, ["p tax", "w tax", "p"], "TAX", 500, 15);
    let expected = [
        (Side::Sell, "USDC", 100, None, "Raydium AMM v4"),
        (Side::Buy, "TAX", 485, None, "Raydium AMM v4"),
    ];
    check(&tx, "w", &expected);
}

#[test]
fn swaps_of_one_transaction_are_netted_per_token() {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 100).account("p bonk", "BONK", "p", 0);
    tx.account("w usdc", "USDC", "w", 0).account("p usdc", "USDC", "p", 500);
    tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 500);
    tx.call(RAYDIUM, &["w bonk", "p bonk", "p usdc", "w usdc", "w", "p"], &[9]);
    tx.transfer(2, "w bonk", "p bonk", "w", 100).transfer(2, "p usdc", "w usdc", "p", 60);
    tx.call(WHIRLPOOL, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[9]);
    tx.transfer(2, "w usdc", "p usdc", "w", 60).transfer(2, "p wif", "w wif", "p", 7);
    let expected = [
        (Side::Sell, "BONK", 100, None, "Raydium AMM v4"),
        (Side::Buy, "WIF", 7, None, "Orca Whirlpool"),
    ];
    check(&tx, "w", &expected);
}

/// A front end's fee in the traded token, in a transfer of its own, belongs to the trade; a
/// transfer of the wallet to another account does not.
#[test]
fn a_platform_fee_is_small() {
    let swap = |sent: u64| {
        let mut tx = Tx::new("w");
        tx.account("w usdc", "USDC", "w", 2_000).account("p usdc", "USDC", "p", 0);
        tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 500);
        tx.account("x usdc", "USDC", "x", 0);
        tx.transfer(1, "w usdc", "x usdc", "w", sent);
        tx.call(RAYDIUM, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[9]);
        tx.transfer(2, "w usdc", "p usdc", "w", 1_000).transfer(2, "p wif", "w wif", "p", 7);
        tx
    };
    let rows = |sold| {
        [
            (Side::Sell, "USDC", sold, None, "Raydium AMM v4"),
            (Side::Buy, "WIF", 7, None, "Raydium AMM v4"),
        ]
    };
    check(&swap(9), "w", &rows(1_009));
    check(&swap(900), "w", &rows(1_000));
}

/// A sale for lamports through an account that the wallet funds and the aggregator closes.
fn sold_by_an_authority(program: &str, owner: &str, (to, sent_on): (&str, u64)) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w wif", "WIF", "w", 70).account("p wif", "WIF", "p", 0);
    tx.account("p sol", WSOL, "p", 9_000_000_000).lamports("receiver", 1_000_000);
    tx.lamports("authority", 1_000_000).lamports("platform", 1_000_000);
    tx.open(1, "w", "tmp", WSOL, owner, RENT);
    tx.call(program, &["w wif", "tmp", "w", "authority"], &[1]);
    tx.inner(2, RAYDIUM, &["w wif", "p wif", "p sol", "tmp", "w", "p"], &[9]);
    tx.transfer(3, "w wif", "p wif", "w", 70).transfer(3, "p sol", "tmp", "p", 200_000_000);
    tx.close(2, "tmp", "authority", "authority").pay(2, "authority", "platform", 2_000_000);
    tx.pay(2, "authority", "w", 198_000_000 + RENT);
    if sent_on > 0 {
        tx.pay(2, "w", to, sent_on);
    }
    tx
}

#[test]
fn rent_that_comes_back_by_way_of_an_authority_is_no_proceeds() {
    let rows = [(Side::Sell, "WIF", 70, Some(198_000_000), "Raydium AMM v4")];
    for owner in ["authority", "w"] {
        check(&sold_by_an_authority(OKX, owner, ("receiver", 0)), "w", &rows);
    }
    let own = sold_by_an_authority(OKX, "w", ("receiver", 0));
    assert_eq!(explained_rent(&own), [Some(RENT), Some(RENT)]);
}

/// A router's fee is a part of its payment; if it sends on most of it, another account sold.
#[test]
fn proceeds_that_are_sent_on_are_no_fee() {
    let rows = [(Side::Sell, "WIF", 70, Some(198_000_000), "Raydium AMM v4")];
    check(&sold_by_an_authority(OKX, "w", ("receiver", 3_000_000)), "w", &rows);
    for most in [150_000_000, 198_000_000] {
        check_none(
            &sold_by_an_authority(OKX, "w", ("receiver", most)),
            "w",
            Some(NoteKind::OneSided),
        );
    }
    // A tip, and what a bot's router sends as its fee, may be most of dust.
    for (program, to) in [(OKX, JITO_TIP), (PHOTON, "receiver")] {
        check(&sold_by_an_authority(program, "w", (to, 150_000_000)), "w", &rows);
    }
}

/// An aggregator may take its platform's fee by a call of its own, in the token that is sold or in
/// the one that is bought.
#[test]
fn a_platform_fee_by_a_call_of_the_aggregator_belongs_to_the_trade() {
    let swap = |fee: (&str, u64)| {
        let mut tx = Tx::new("w");
        tx.account("w usdc", "USDC", "w", 2_000).account("p usdc", "USDC", "p", 0);
        tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 500);
        tx.account("x usdc", "USDC", "x", 0).account("x wif", "WIF", "x", 0);
        tx.call(DFLOW, &["w usdc", "w wif", "w", "p"], &[248, 198, 158, 145, 225, 117, 135, 200]);
        tx.inner(2, RAYDIUM, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[9]);
        tx.transfer(3, "w usdc", "p usdc", "w", 1_000).transfer(3, "p wif", "w wif", "p", 70);
        let (token, units) = fee;
        let (from, to) = (format!("w {token}"), format!("x {token}"));
        tx.call(DFLOW, &[&from, &to, "w"], &[129, 164, 196, 21, 177, 48, 180, 162]);
        tx.transfer(2, &from, &to, "w", units);
        tx
    };
    let fees = [("usdc", 9), ("wif", 2), ("wif", 35)];
    // A call that moves more is no fee.
    for (fee, sold, bought) in [(fees[0], 1_009, 70), (fees[1], 1_000, 68), (fees[2], 1_000, 70)] {
        let rows = [
            (Side::Sell, "USDC", sold, None, "Raydium AMM v4"),
            (Side::Buy, "WIF", bought, None, "Raydium AMM v4"),
        ];
        check(&swap(fee), "w", &rows);
    }
}

/// Next to another swap, a platform's fee belongs to the swap of its token.
#[test]
fn a_platform_fee_belongs_to_the_swap_of_its_token() {
    let mut tx = bought();
    tx.account("w usdc", "USDC", "w", 2_000).account("p usdc", "USDC", "p", 0);
    tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 500);
    tx.account("x wif", "WIF", "x", 0);
    tx.call(WHIRLPOOL, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[1]);
    tx.transfer(2, "w usdc", "p usdc", "w", 1_000).transfer(2, "p wif", "w wif", "p", 70);
    tx.transfer(1, "w wif", "x wif", "w", 2);
    let rows = [
        (Side::Buy, "BONK", 1_200, Some(950_000_000), "Raydium AMM v4"),
        (Side::Sell, "USDC", 1_000, None, "Orca Whirlpool"),
        (Side::Buy, "WIF", 68, None, "Orca Whirlpool"),
    ];
    check(&tx, "w", &rows);
}

/// A token that the fee payer takes for the network fee is a fee outside the trade; what a front
/// end takes in a sponsored transaction is not.
#[test]
fn what_a_gas_sponsor_takes_is_no_part_of_the_trade() {
    let swap = |to: &str| {
        let mut tx = Tx::new("sponsor");
        tx.signers = 2;
        tx.lamports("w", 1_000_000);
        tx.account("w usdc", "USDC", "w", 2_000).account("p usdc", "USDC", "p", 0);
        tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 500);
        tx.account("s usdc", "USDC", "sponsor", 0).account("x usdc", "USDC", "x", 0);
        tx.transfer(1, "w usdc", to, "w", 9);
        tx.call(RAYDIUM, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[9]);
        tx.transfer(2, "w usdc", "p usdc", "w", 1_000).transfer(2, "p wif", "w wif", "p", 7);
        tx
    };
    for (to, sold) in [("s usdc", 1_000), ("x usdc", 1_009)] {
        let rows = [
            (Side::Sell, "USDC", sold, None, "Raydium AMM v4"),
            (Side::Buy, "WIF", 7, None, "Raydium AMM v4"),
        ];
        check(&swap(to), "w", &rows);
    }
}

/// Within the swap's own call the same holds for a small part of either token, outside of venues.
#[test]
fn what_a_gas_sponsor_takes_within_the_swap_is_no_part_of_it() {
    let swap = |height: u8, (from, to): (&str, &str), taken: u64| {
        let mut tx = Tx::new("sponsor");
        tx.signers = 2;
        tx.lamports("w", 1_000_000);
        tx.account("w usdc", "USDC", "w", 2_000).account("p usdc", "USDC", "p", 0);
        tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 500);
        tx.account("s usdc", "USDC", "sponsor", 0).account("s wif", "WIF", "sponsor", 0);
        tx.account("x usdc", "USDC", "x", 0);
        tx.call(JUPITER, &["w usdc", "w wif", "w", "p", from, to], &[1]);
        tx.inner(2, RAYDIUM, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[9]);
        tx.transfer(3, "w usdc", "p usdc", "w", 1_000).transfer(3, "p wif", "w wif", "p", 70);
        tx.transfer(height, from, to, "w", taken);
        tx
    };
    let (usdc, wif) = (("w usdc", "s usdc"), ("w wif", "s wif"));
    let cases = [
        (2, usdc, 9, 1_000, 70),
        (2, wif, 7, 1_000, 70),
        // More than a tenth, a venue's own fee, and another account's.
        (2, usdc, 900, 1_900, 70),
        (2, wif, 8, 1_000, 62),
        (3, usdc, 9, 1_009, 70),
        (2, ("w usdc", "x usdc"), 9, 1_009, 70),
    ];
    for (height, ends, taken, sold, bought) in cases {
        let rows = [
            (Side::Sell, "USDC", sold, None, "Raydium AMM v4"),
            (Side::Buy, "WIF", bought, None, "Raydium AMM v4"),
        ];
        check(&swap(height, ends, taken), "w", &rows);
    }
}

/// A bot's call in which "m" pays the other signer "s", and accounts of both for a new token.
fn bundle() -> Tx {
    let mut tx = Tx::new("m");
    tx.lamports("s", 5_000_000_000).signers = 2;
    tx.account("m new", "NEW", "m", 0).account("s new", "NEW", "s", 0);
    tx.account("c new", "NEW", "curve", 1_000);
    tx.call("bot", &["m", "s", "curve"], &[1]);
    tx
}

fn buys(tx: &mut Tx, (who, to): (&str, &str), units: u64, lamports: u64) {
    tx.inner(2, PUMP, &[who, "curve", to, "c new"], &[1]);
    tx.transfer(3, "c new", to, "curve", units).pay(3, who, "curve", lamports);
}

/// What one wallet of a bundle gives another for its purchase is no price of its own, and no
/// proceeds of the other's.
#[test]
fn each_wallet_of_a_bundle_has_its_own_purchase() {
    let mut tx = bundle();
    tx.pay(2, "m", "s", 1_000_000_000);
    buys(&mut tx, ("m", "m new"), 300, 500_000_000);
    buys(&mut tx, ("s", "s new"), 200, 990_000_000);
    check(&tx, "m", &[(Side::Buy, "NEW", 300, Some(500_000_000), "Pump.fun")]);
    check(&tx, "s", &[(Side::Buy, "NEW", 200, Some(990_000_000), "Pump.fun")]);
    // A signer that hands over what it bought, with or without a rest at an account that is new,
    // has bought for the wallet; so has one that sells some of it to the wallet.
    for units in [199, 200] {
        let mut tx = bundle();
        tx.account("x new", "NEW", "x", 0);
        tx.open(2, "s", "s2 new", "NEW", "s", RENT).pay(2, "m", "s", 990_000_000);
        buys(&mut tx, ("s", "s2 new"), 200, 990_000_000);
        tx.transfer(2, "s2 new", "x new", "s", units).transfer(2, "x new", "m new", "x", units);
        check(&tx, "m", &[(Side::Buy, "NEW", units, Some(990_000_000), "Pump.fun")]);
    }
    let mut tx = bundle();
    tx.pay(2, "m", "s", 250_000_000);
    buys(&mut tx, ("s", "s new"), 200, 990_000_000);
    tx.transfer(2, "s new", "m new", "s", 50);
    check(&tx, "m", &[(Side::Buy, "NEW", 50, Some(250_000_000), "Pump.fun")]);
    check(&tx, "s", &[(Side::Buy, "NEW", 150, Some(740_000_000), "Pump.fun")]);
    // One that keeps a venue's coin pays the wallet the price of its sale.
    let mut tx = Tx::new("m");
    tx.lamports("s", 5_000_000_000).signers = 2;
    tx.account("s new", "NEW", "s", 50).account("p new", "NEW", "p", 0);
    tx.account("m sol", WSOL, "m", 0).account("p sol", WSOL, "p", 9_000_000_000);
    tx.call("bot", &["m", "s", "p"], &[1]);
    tx.inner(2, RAYDIUM, &["s new", "p new", "p sol", "m sol", "s", "p"], &[9]);
    tx.transfer(3, "s new", "p new", "s", 50).transfer(3, "p sol", "m sol", "p", 710_000_000);
    tx.pay(2, "m", "s", 700_000_000);
    check(&tx, "s", &[(Side::Sell, "NEW", 50, Some(700_000_000), "Raydium AMM v4")]);
}

/// A swap within a bridge's call: where most of the bought token goes on, the rest is no trade.
#[test]
fn a_token_that_mostly_goes_on_is_no_trade() {
    let swap = |sent_on: u64| {
        let mut tx = Tx::new("w");
        tx.account("w usdc", "USDC", "w", 1_000).account("p usdc", "USDC", "p", 0);
        tx.account("w wif", "WIF", "w", 5).account("p wif", "WIF", "p", 500);
        tx.account("x wif", "WIF", "x", 0);
        tx.call("bridge", &["w usdc", "w wif", "x wif", "w"], &[1]);
        tx.inner(2, JUPITER, &["w usdc", "w wif", "w", "p"], &[1]);
        tx.inner(3, RAYDIUM, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[9]);
        tx.transfer(4, "w usdc", "p usdc", "w", 1_000).transfer(4, "p wif", "w wif", "p", 100);
        tx.transfer(2, "w wif", "x wif", "w", sent_on);
        tx
    };
    for sent_on in [51, 99] {
        check_none(&swap(sent_on), "w", Some(NoteKind::OneSided));
    }
    let rows = [
        (Side::Sell, "USDC", 1_000, None, "Raydium AMM v4"),
        (Side::Buy, "WIF", 50, None, "Raydium AMM v4"),
    ];
    check(&swap(50), "w", &rows);
}
