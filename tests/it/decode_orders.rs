//! Orders that keepers fill, in every form that the programs have; hand-written.

use blotter::domain::{Side, Units};

use crate::decode::{DFLOW, JUPITER, OKX, RAYDIUM, WHIRLPOOL, check, filled, run, sold_to_curve};
use crate::support::solana::{RENT, Tx, WSOL};

const LIMIT_V2: &str = "j1o2qRpjcyUwEvwtcfhEQefh773ZgjxcVRry7LDqg5X";
const DCA: &str = "DCA265Vj8a9CEuX1eb1LWRnDT7uK6q1xMipnNyatn23M";
const KAMINO: &str = "LiMoM9rMhrdYrfzUCxQppvxCSG1FcrUK9G8uLq4A1GF";
const VALUE_AVERAGE: &str = "VALaaymxQh2mNy2trH9jUqHT1mTow76wpTcGmSWSwJe";
const MINT_RENT: u64 = (128 + 372) * 6_960;

fn keepers_accounts(tx: &mut Tx) {
    tx.account("k usdc", "USDC", "keeper", 0).account("k wif", "WIF", "keeper", 5);
    tx.account("p usdc", "USDC", "pool", 900).account("p wif", "WIF", "pool", 900);
}

/// A keeper swaps the 200 USDC that it borrowed.
fn keepers_route(tx: &mut Tx, got: u64) {
    tx.call(JUPITER, &["keeper", "k usdc", "k wif"], &[1]);
    tx.inner(2, RAYDIUM, &["k usdc", "p usdc", "p wif", "k wif", "keeper", "pool"], &[9]);
    tx.transfer(3, "k usdc", "p usdc", "keeper", 200).transfer(3, "p wif", "k wif", "pool", got);
}

/// A keeper borrows what the order holds, swaps it, and pays the maker: two calls of the order's
/// program with a route between them.
fn flash_filled() -> Tx {
    let mut tx = Tx::new("keeper");
    tx.account("escrow", "USDC", "order", 500).account("m wif", "WIF", "maker", 0);
    keepers_accounts(&mut tx);
    tx.call(LIMIT_V2, &["keeper", "order", "escrow", "k usdc"], &[1]);
    tx.transfer(2, "escrow", "k usdc", "order", 200);
    keepers_route(&mut tx, 82);
    tx.call(LIMIT_V2, &["keeper", "order", "escrow", "maker", "k wif", "m wif"], &[2]);
    tx.transfer(2, "k wif", "m wif", "keeper", 80);
    tx
}

/// Like `flash_filled`, routed through SOL.
fn flash_filled_through_sol(got: u64, lamports: u64) -> Tx {
    let mut tx = Tx::new("keeper");
    tx.account("escrow", "USDC", "order", 500).account("m wif", "WIF", "maker", 0);
    keepers_accounts(&mut tx);
    tx.account("k sol", WSOL, "keeper", 0).account("q sol", WSOL, "pool", 1_000_000);
    tx.account("p sol", WSOL, "pool", 1_000_000);
    tx.call(LIMIT_V2, &["keeper", "order", "escrow", "k usdc"], &[1]);
    tx.transfer(2, "escrow", "k usdc", "order", 200);
    tx.call(JUPITER, &["keeper", "k usdc", "k sol", "k wif"], &[1]);
    tx.inner(2, RAYDIUM, &["k usdc", "p usdc", "p sol", "k sol", "keeper", "pool"], &[9]);
    tx.transfer(3, "k usdc", "p usdc", "keeper", 200)
        .transfer(3, "p sol", "k sol", "pool", lamports);
    tx.inner(2, WHIRLPOOL, &["k sol", "q sol", "p wif", "k wif", "keeper", "pool"], &[9]);
    tx.transfer(3, "k sol", "q sol", "keeper", lamports).transfer(3, "p wif", "k wif", "pool", got);
    tx.call(LIMIT_V2, &["keeper", "order", "escrow", "maker", "k wif", "m wif"], &[2]);
    tx.transfer(2, "k wif", "m wif", "keeper", 80);
    tx
}

#[test]
fn a_fill_has_the_value_of_the_coin_that_its_route_passed() {
    let filled = |native, got| {
        let expected = [
            (Side::Sell, "USDC", 200, native, "Raydium AMM v4"),
            (Side::Buy, "WIF", 80, native, "Orca Whirlpool"),
        ];
        check(&flash_filled_through_sol(got, 7_000), "maker", &expected);
    };
    filled(Some(7_000), 80);
    // More than the order's tokens were exchanged.
    filled(None, 120);
}

/// What it borrowed and paid belongs to the maker; the rest that it keeps is not a purchase.
#[test]
fn a_keeper_that_routes_through_its_own_accounts_trades_nothing() {
    check(&flash_filled(), "keeper", &[]);
    check(&flash_filled_through_sol(80, 7_000), "keeper", &[]);
    // A swap of its own in the same transaction is its trade.
    let mut more = flash_filled();
    more.account("k bonk", "BONK", "keeper", 40).account("p bonk", "BONK", "pool", 900);
    more.account("k sol", WSOL, "keeper", 0).account("p sol", WSOL, "pool", 1_000_000);
    more.call(JUPITER, &["keeper", "k bonk", "k sol"], &[1]);
    more.inner(2, RAYDIUM, &["k bonk", "p bonk", "p sol", "k sol", "keeper", "pool"], &[9]);
    more.transfer(3, "k bonk", "p bonk", "keeper", 33);
    more.transfer(3, "p sol", "k sol", "pool", 5_000);
    check(&more, "keeper", &[(Side::Sell, "BONK", 33, Some(5_000), "Raydium AMM v4")]);
    // One unit of its own follows the same route.
    let mut own = flash_filled();
    own.account("k usdc", "USDC", "keeper", 1);
    own.call(JUPITER, &["keeper", "k usdc", "k wif"], &[1]);
    own.inner(2, RAYDIUM, &["k usdc", "p usdc", "p wif", "k wif", "keeper", "pool"], &[9]);
    own.transfer(3, "k usdc", "p usdc", "keeper", 1);
    check(&own, "keeper", &[]);
}

/// It cancels one order, sells what came back, and places another: nothing was lent.
#[test]
fn a_swap_between_two_orders_of_ones_own_is_a_trade() {
    let mut tx = Tx::new("w");
    tx.account("escrow", "WIF", "order", 80).account("w wif", "WIF", "w", 0);
    tx.account("w usdc", "USDC", "w", 0);
    tx.account("p usdc", "USDC", "pool", 900).account("p wif", "WIF", "pool", 900);
    tx.call(LIMIT_V2, &["w", "order", "escrow", "w wif"], &[1]);
    tx.transfer(2, "escrow", "w wif", "order", 80);
    tx.call(JUPITER, &["w", "w wif", "w usdc"], &[1]);
    tx.inner(2, RAYDIUM, &["w wif", "p wif", "p usdc", "w usdc", "w", "pool"], &[9]);
    tx.transfer(3, "w wif", "p wif", "w", 80).transfer(3, "p usdc", "w usdc", "pool", 210);
    tx.call(LIMIT_V2, &["w", "new order", "new escrow", "w usdc"], &[3]);
    tx.create(2, "w", "new order", MINT_RENT, 372);
    tx.open(2, "w", "new escrow", "USDC", "new order", RENT);
    tx.transfer(2, "w usdc", "new escrow", "w", 209);
    let expected = [
        (Side::Sell, "WIF", 80, None, "Raydium AMM v4"),
        (Side::Buy, "USDC", 210, None, "Raydium AMM v4"),
    ];
    check(&tx, "w", &expected);
}

#[test]
fn a_fill_is_named_after_the_venue_that_filled_it() {
    let expected = [
        (Side::Sell, "USDC", 200, None, "Raydium AMM v4"),
        (Side::Buy, "WIF", 80, None, "Raydium AMM v4"),
    ];
    check(&flash_filled(), "maker", &expected);
    // If the keeper fills from its own balance, no other venue runs.
    let expected = [
        (Side::Sell, "USDC", 200, None, "Jupiter Limit Order v1"),
        (Side::Buy, "WIF", 80, None, "Jupiter Limit Order v1"),
    ];
    check(&filled(), "maker", &expected);
}

/// An order that sells for SOL pays unwrapped lamports; its account's returned rent is no proceeds.
#[test]
fn an_order_for_sol_pays_lamports() {
    let mut tx = Tx::new("keeper");
    tx.account("escrow", "USDC", "order", 200).account("k usdc", "USDC", "keeper", 0);
    tx.lamports("order", MINT_RENT);
    tx.call(LIMIT_V2, &["keeper", "order", "escrow", "maker", "k usdc"], &[2]);
    tx.transfer(2, "escrow", "k usdc", "order", 200).pay(2, "keeper", "maker", 1_000_000_000);
    tx.close(2, "escrow", "maker", "order");
    check(
        &tx,
        "maker",
        &[(Side::Sell, "USDC", 200, Some(1_000_000_000), "Jupiter Limit Order v2")],
    );
}

#[test]
fn an_order_of_wrapped_sol_is_a_buy_for_lamports() {
    let mut tx = Tx::new("keeper");
    tx.account("escrow", WSOL, "order", 3_000_000_000).account("m wif", "WIF", "maker", 7);
    tx.account("k sol", WSOL, "keeper", 0).account("k wif", "WIF", "keeper", 90);
    tx.call(LIMIT_V2, &["keeper", "order", "escrow", "maker", "k wif", "m wif", "k sol"], &[2]);
    tx.transfer(2, "escrow", "k sol", "order", 2_000_000_000);
    tx.transfer(2, "k wif", "m wif", "keeper", 80);
    let expected = [(Side::Buy, "WIF", 80, Some(2_000_000_000), "Jupiter Limit Order v2")];
    check(&tx, "maker", &expected);
}

/// An instalment that a keeper borrows, swaps and gives back, and that is paid out with a fee.
fn flash_instalment() -> Tx {
    let mut tx = Tx::new("keeper");
    tx.account("in", "USDC", "order", 500).account("out", "WIF", "order", 0);
    tx.account("u wif", "WIF", "user", 3).account("f wif", "WIF", "fees", 0);
    keepers_accounts(&mut tx);
    tx.call(DCA, &["keeper", "order", "in", "k usdc", "user"], &[1]);
    tx.transfer(2, "in", "k usdc", "order", 200);
    keepers_route(&mut tx, 81);
    tx.transfer(2, "k wif", "out", "keeper", 81);
    tx.call(DCA, &["keeper", "order", "in", "out", "f wif", "user"], &[2]);
    tx.transfer(2, "out", "f wif", "order", 1);
    tx.call(DCA, &["keeper", "order", "out", "u wif", "user"], &[3]);
    tx.transfer(2, "out", "u wif", "order", 80);
    tx
}

#[test]
fn only_the_maker_of_an_order_trades_by_its_fill() {
    let expected = [
        (Side::Sell, "USDC", 200, None, "Raydium AMM v4"),
        (Side::Buy, "WIF", 80, None, "Raydium AMM v4"),
    ];
    check(&flash_instalment(), "user", &expected);
    check(&flash_instalment(), "keeper", &[]);
    // The receiver of the fee gives nothing for it.
    check(&flash_instalment(), "fees", &[]);
    check(&filled(), "fees", &[]);
}

/// An aggregator that also keeps orders: the user opens one, a filler fills it in a transaction of
/// its own. Accounts as in the program's interface file.
#[test]
fn an_order_of_an_aggregator_is_a_trade_when_it_is_filled() {
    const OPEN: [u8; 8] = [206, 88, 88, 143, 38, 136, 50, 224];
    const FILL: [u8; 8] = [232, 122, 115, 25, 199, 143, 136, 162];
    let mut opened = Tx::new("user");
    opened.account("u usdc", "USDC", "user", 500).account("u wif", "WIF", "user", 3);
    let accounts = ["order", "vault", "u usdc", "u wif", "u usdc", "USDC", "user", "user"];
    opened.call(DFLOW, &accounts, &OPEN);
    opened.create(2, "user", "order", MINT_RENT, 372);
    opened.open(2, "user", "vault", "USDC", "order", RENT);
    opened.transfer(2, "u usdc", "vault", "user", 200);
    check(&opened, "user", &[]);

    let filled = |discriminator: [u8; 8]| {
        let mut tx = Tx::new("filler");
        tx.account("vault", "USDC", "order", 200).account("u wif", "WIF", "user", 3);
        tx.account("f usdc", "USDC", "filler", 0).account("f wif", "WIF", "filler", 90);
        tx.account("u usdc", "USDC", "user", 300);
        let accounts = [
            "order", "vault", "u wif", "u usdc", "user", "f usdc", "USDC", "f wif", "WIF", "filler",
        ];
        tx.call(DFLOW, &accounts, &discriminator);
        tx.transfer(2, "vault", "f usdc", "order", 200);
        tx.transfer(2, "f wif", "u wif", "filler", 80);
        tx.close(2, "vault", "user", "order");
        tx
    };
    let expected =
        [(Side::Sell, "USDC", 200, None, "DFlow"), (Side::Buy, "WIF", 80, None, "DFlow")];
    check(&filled(FILL), "user", &expected);
    check(&filled(OPEN), "user", &[]);
}

/// A quote of an aggregator's maker: the first call keeps what is sold, or what a pool gives for it, and
/// the second gives what is bought. `DFlow`'s documents describe both.
#[test]
fn a_quote_that_is_filled_by_a_call_of_its_own_is_a_trade() {
    const OPEN: [u8; 8] = [181, 125, 33, 230, 205, 63, 67, 108];
    const FILL: [u8; 8] = [50, 203, 135, 122, 42, 118, 61, 47];
    for (token, sold, venue) in [("USDC", 100, "DFlow"), ("USDT", 101, "Raydium AMM v4")] {
        let mut tx = Tx::new("w");
        tx.account("w sold", token, "w", sold).account("vault", "USDC", "order", 0);
        tx.account("p sold", token, "p", 0).account("p usdc", "USDC", "p", 900);
        tx.account("m usdc", "USDC", "maker", 0).account("m new", "NEW", "maker", 50);
        tx.account("w new", "NEW", "w", 0);
        tx.call(DFLOW, &["w", "w sold", "vault", "order", "p"], &OPEN);
        if token == "USDC" {
            tx.transfer(2, "w sold", "vault", "w", sold);
        } else {
            tx.inner(2, RAYDIUM, &["w sold", "p sold", "p usdc", "vault", "w", "p"], &[9]);
            tx.transfer(3, "w sold", "p sold", "w", sold).transfer(3, "p usdc", "vault", "p", 100);
        }
        tx.call(DFLOW, &["maker", "order", "vault", "m usdc", "m new", "w new"], &FILL);
        tx.transfer(2, "m new", "w new", "maker", 7).transfer(2, "vault", "m usdc", "order", 100);
        let rows = [(Side::Sell, token, sold, None, venue), (Side::Buy, "NEW", 7, None, "DFlow")];
        check(&tx, "w", &rows);
    }
}

const COW: &str = "Moook87DzJ25dELx3LXJ3dnu5a4ERVFwKo1PWWF4p7Y";

/// Each of two programs takes one token of the wallet in one call and gives it another in the next.
fn two_calls_each(programs: [(&str, [&[u8]; 2]); 2]) -> Tx {
    let mut tx = Tx::new("w");
    for (token, amount) in [("USDC", 100), ("NEW", 7), ("USDT", 50), ("WIF", 79)] {
        tx.account(&format!("w {token}"), token, "w", amount);
        tx.account(&format!("m {token}"), token, "m", amount);
    }
    let amounts = [[("USDC", 100), ("NEW", 7)], [("USDT", 50), ("WIF", 79)]];
    for ((program, [take, give]), [sold, bought]) in programs.into_iter().zip(amounts) {
        let [from, to] = ["w", "m"].map(|owner| format!("{owner} {}", sold.0));
        tx.call(program, &["w", &from, &to], take).transfer(2, &from, &to, "w", sold.1);
        let [from, to] = ["m", "w"].map(|owner| format!("{owner} {}", bought.0));
        tx.call(program, &["m", &from, &to], give).transfer(2, &from, &to, "m", bought.1);
    }
    tx
}

/// Calls are joined per aggregator; calls that a program's row does not list are not.
#[test]
fn calls_are_joined_by_their_aggregator_and_only_where_they_swap() {
    let quoted: (&str, [&[u8]; 2]) = (DFLOW, [&[181; 8], &[50; 8]]);
    let rows = [
        (Side::Sell, "USDC", 100, None, "DFlow"),
        (Side::Buy, "NEW", 7, None, "DFlow"),
        (Side::Sell, "USDT", 50, None, "CoW Swap"),
        (Side::Buy, "WIF", 79, None, "CoW Swap"),
    ];
    check(&two_calls_each([quoted, (COW, [&[0], &[1]])]), "w", &rows);
    check(&two_calls_each([quoted, (COW, [&[2], &[1]])]), "w", &rows[..2]);
}

/// A batch: one call takes what its orders sell, the solver swaps, and another call pays their owners.
#[test]
fn an_order_that_a_batch_settles_is_a_trade_of_its_owner() {
    let mut tx = Tx::new("solver");
    tx.account("w usdc", "USDC", "w", 100).account("w wif", "WIF", "w", 0);
    tx.account("b usdc", "USDC", "state", 5).account("b wif", "WIF", "state", 5);
    tx.account("p usdc", "USDC", "p", 0).account("p wif", "WIF", "p", 900);
    tx.call(COW, &["solver", "state", "w usdc", "b usdc"], &[0]);
    tx.transfer(2, "w usdc", "b usdc", "state", 100);
    tx.call(JUPITER, &["solver", "b usdc", "b wif"], &[1]);
    tx.inner(2, RAYDIUM, &["b usdc", "p usdc", "p wif", "b wif", "state", "p"], &[9]);
    tx.transfer(3, "b usdc", "p usdc", "state", 100).transfer(3, "p wif", "b wif", "p", 80);
    tx.call(COW, &["solver", "state", "b wif", "w wif"], &[1]);
    tx.transfer(2, "b wif", "w wif", "state", 79);
    let rows =
        [(Side::Sell, "USDC", 100, None, "CoW Swap"), (Side::Buy, "WIF", 79, None, "CoW Swap")];
    check(&tx, "w", &rows);
    check(&tx, "solver", &[]);
}

/// `fill_order_by_resolver` of OKX.
const FILL: [u8; 8] = [176, 206, 126, 248, 50, 215, 39, 44];

/// The order is swapped inside of the call that fills it, and paid to the maker by the pool.
#[test]
fn the_pool_in_which_an_order_is_filled_is_no_part_of_the_order() {
    let mut tx = Tx::new("resolver");
    tx.account("escrow", "USDC", "order", 200).account("m wif", "WIF", "maker", 3);
    tx.account("p usdc", "USDC", "pool", 900).account("p wif", "WIF", "pool", 900);
    tx.call(OKX, &["resolver", "maker", "order", "escrow", "m wif", "p usdc", "p wif"], &FILL);
    tx.inner(2, RAYDIUM, &["escrow", "p usdc", "p wif", "m wif", "order", "pool"], &[9]);
    tx.transfer(3, "escrow", "p usdc", "order", 200).transfer(3, "p wif", "m wif", "pool", 80);
    tx.close(2, "escrow", "maker", "order");
    let expected = [
        (Side::Sell, "USDC", 200, None, "Raydium AMM v4"),
        (Side::Buy, "WIF", 80, None, "Raydium AMM v4"),
    ];
    check(&tx, "maker", &expected);
    check(&tx, "resolver", &[]);
    // Two hops, the first through a pool whose vaults have owners of their own.
    let mut tx = Tx::new("resolver");
    tx.account("escrow", "USDC", "order", 200).account("m wif", "WIF", "maker", 3);
    tx.account("p usdc", "USDC", "one vault", 900).account("p sol", WSOL, "other vault", 900);
    tx.account("q sol", WSOL, "pool", 900).account("q wif", "WIF", "pool", 900);
    let accounts = ["maker", "order", "escrow", "m wif", "p sol", "p usdc", "q sol", "q wif"];
    tx.call(OKX, &accounts, &FILL);
    tx.inner(2, RAYDIUM, &["escrow", "p usdc", "p sol", "q sol", "order", "one vault"], &[9]);
    tx.transfer(3, "escrow", "p usdc", "order", 200).transfer(
        3,
        "p sol",
        "q sol",
        "other vault",
        5,
    );
    tx.inner(2, RAYDIUM, &["q sol", "q wif", "m wif", "pool"], &[9]);
    tx.transfer(3, "q wif", "m wif", "pool", 80);
    let expected =
        expected.map(|(side, mint, units, _, venue)| (side, mint, units, Some(5), venue));
    check(&tx, "maker", &expected);
    assert_eq!(run(&tx, "maker").side_payment, Units::ZERO);
}

/// Orders of two makers, filled in one transaction out of one pool.
#[test]
fn the_smaller_of_two_fills_is_no_fee_of_the_larger_one() {
    let mut tx = Tx::new("resolver");
    tx.account("p usdc", "USDC", "pool", 900).account("p wif", "WIF", "pool", 900);
    for (maker, escrow, order, wif, units) in
        [("one", "e 1", "o 1", "wif 1", 80), ("two", "e 2", "o 2", "wif 2", 200)]
    {
        tx.account(escrow, "USDC", order, units * 2).account(wif, "WIF", maker, 0);
        tx.call(OKX, &[maker, order, escrow, wif, "p usdc", "p wif"], &FILL);
        tx.inner(2, RAYDIUM, &[escrow, "p usdc", "p wif", wif, order, "pool"], &[9]);
        tx.transfer(3, escrow, "p usdc", order, units * 2).transfer(3, "p wif", wif, "pool", units);
    }
    for (maker, units) in [("one", 80), ("two", 200)] {
        let expected = [
            (Side::Sell, "USDC", units * 2, None, "Raydium AMM v4"),
            (Side::Buy, "WIF", units, None, "Raydium AMM v4"),
        ];
        check(&tx, maker, &expected);
    }
}

/// One authority holds what all makers sell (Kamino's orders); each call names its maker.
#[test]
fn two_orders_at_one_owner_are_each_their_makers() {
    for (second, flash) in [("USDC", false), ("EURC", false), ("USDC", true)] {
        let mut tx = Tx::new("taker");
        tx.account("vault USDC", "USDC", "authority", 900).account("t USDC", "USDC", "taker", 0);
        tx.account("vault EURC", "EURC", "authority", 900).account("t EURC", "EURC", "taker", 0);
        tx.account("t wif", "WIF", "taker", 900);
        tx.account("wif 1", "WIF", "one", 0).account("wif 2", "WIF", "two", 0);
        for (maker, sold, gave, wif, got) in
            [("one", "USDC", 160, "wif 1", 80), ("two", second, 50, "wif 2", 20)]
        {
            let [vault, taken] = [format!("vault {sold}"), format!("t {sold}")];
            let accounts = ["taker", maker, "authority", maker, &vault, &taken, "t wif", wif];
            tx.call(KAMINO, &accounts, &[1]).transfer(2, &vault, &taken, "authority", gave);
            if flash {
                tx.call(KAMINO, &accounts, &[2]);
            }
            tx.transfer(2, "t wif", wif, "taker", got);
        }
        for (maker, sold, gave, got) in [("one", "USDC", 160, 80), ("two", second, 50, 20)] {
            let row = |side, mint, units| (side, mint, units, None, "Kamino Limit Order");
            check(&tx, maker, &[row(Side::Sell, sold, gave), row(Side::Buy, "WIF", got)]);
        }
    }
}

/// The unused rest of the order's input comes back with the fill.
#[test]
fn the_rest_of_an_order_that_comes_back_was_not_sold() {
    let mut tx = Tx::new("resolver");
    tx.account("escrow", "USDC", "order", 200).account("m wif", "WIF", "maker", 3);
    tx.account("r usdc", "USDC", "resolver", 0).account("r wif", "WIF", "resolver", 90);
    tx.account("m usdc", "USDC", "maker", 7);
    tx.call(OKX, &["maker", "order", "escrow", "m wif", "m usdc", "r usdc", "r wif"], &FILL);
    tx.transfer(2, "escrow", "r usdc", "order", 180).transfer(2, "escrow", "m usdc", "order", 20);
    tx.transfer(2, "r wif", "m wif", "resolver", 80).close(2, "escrow", "maker", "order");
    let expected =
        [(Side::Sell, "USDC", 180, None, "OKX DEX"), (Side::Buy, "WIF", 80, None, "OKX DEX")];
    check(&tx, "maker", &expected);
    // The filler has no trade of its own.
    check(&tx, "resolver", &[]);
}

/// Placing and cancelling move one asset, rent and all.
#[test]
fn placing_and_cancelling_an_order_is_no_trade() {
    for program in [LIMIT_V2, DCA, VALUE_AVERAGE] {
        let mut placed = Tx::new("maker");
        placed.account("m usdc", "USDC", "maker", 500);
        placed.call(program, &["maker", "order", "escrow", "m usdc"], &[1]);
        placed.create(2, "maker", "order", MINT_RENT, 372);
        placed.open(2, "maker", "escrow", "USDC", "order", RENT);
        placed.transfer(2, "m usdc", "escrow", "maker", 500);
        check(&placed, "maker", &[]);
        let mut cancelled = Tx::new("maker");
        cancelled.account("m usdc", "USDC", "maker", 0).account("escrow", "USDC", "order", 300);
        // What was bought so far comes back with what was not spent.
        cancelled.account("m wif", "WIF", "maker", 0).account("out", "WIF", "order", 40);
        cancelled.call(program, &["maker", "order", "escrow", "m usdc", "out", "m wif"], &[3]);
        cancelled.transfer(2, "escrow", "m usdc", "order", 300);
        cancelled.transfer(2, "out", "m wif", "order", 40);
        cancelled.close(2, "escrow", "maker", "order").close(2, "out", "maker", "order");
        check(&cancelled, "maker", &[]);
    }
}

/// An instalment that is paid at once.
#[test]
fn instalments_are_trades() {
    for (program, name) in [(DCA, "Jupiter DCA"), (VALUE_AVERAGE, "Jupiter Value Average")] {
        let mut tx = Tx::new("keeper");
        tx.account("in", "USDC", "order", 500).account("u wif", "WIF", "user", 3);
        tx.account("k usdc", "USDC", "keeper", 0).account("k wif", "WIF", "keeper", 90);
        tx.call(program, &["keeper", "order", "in", "k usdc", "user"], &[1]);
        tx.transfer(2, "in", "k usdc", "order", 200);
        tx.call(program, &["keeper", "order", "in", "k wif", "u wif", "user"], &[2]);
        tx.transfer(2, "k wif", "u wif", "keeper", 80);
        let expected = [(Side::Sell, "USDC", 200, None, name), (Side::Buy, "WIF", 80, None, name)];
        check(&tx, "user", &expected);
        check(&tx, "another wallet", &[]);
    }
}

/// An amount that an instruction states and no balance confirms gives no row.
#[test]
fn an_amount_that_balances_contradict_gives_no_row() {
    use blotter::decode::solana::{decode, parse};
    use blotter::registry::Registry;

    use crate::support::solana::key;

    let mut tx = Tx::new("w");
    tx.account("w usdc", "USDC", "w", 1_000).account("p usdc", "USDC", "p", 0);
    tx.account("w wif", "WIF", "w", 0).account("p wif", "WIF", "p", 500);
    tx.call(RAYDIUM, &["w usdc", "p usdc", "p wif", "w wif", "w", "p"], &[9]);
    tx.transfer(2, "w usdc", "p usdc", "w", 100).transfer(2, "p wif", "w wif", "p", 7);
    let mut json = tx.json();
    for balance in json["meta"]["postTokenBalances"].as_array_mut().unwrap() {
        if balance["uiTokenAmount"]["amount"] == "900" {
            balance["uiTokenAmount"]["amount"] = "950".into();
        }
    }
    let decoded = decode(
        &Registry::embedded().unwrap(),
        &key("w"),
        &parse(json.to_string().as_bytes()).unwrap(),
    );
    let units: Vec<_> = decoded.trades.iter().map(|row| row.units).collect();
    assert_eq!(units, [None, Some(Units::from(7_u64))]);
}

/// The rate of rent falls in steps; a vault's first fee is its rent at any of them, also next to an
/// account for which a program states the first rate still.
#[test]
fn a_first_fee_is_rent_at_every_rate() {
    const PUMP: &str = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
    let fees =
        [(128 * 6_960, 40_000), (128 * 5_080, 40_000), (128 * 696, 40_000), (700_001, 740_001)];
    for (stated, (fee, price)) in [false, true].into_iter().flat_map(|s| fees.map(|fee| (s, fee))) {
        let mut tx = Tx::new("w");
        if stated {
            tx.create(1, "w", "made", 293 * 6_960, 165);
        }
        tx.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
        tx.lamports("vault", 0);
        tx.call(PUMP, &["w", "w bonk", "c bonk", "curve", "vault"], &[102]);
        tx.transfer(2, "c bonk", "w bonk", "curve", 1_000);
        tx.pay(2, "w", "vault", fee).pay(2, "w", "curve", 40_000);
        check(&tx, "w", &[(Side::Buy, "BONK", 1_000, Some(price), "Pump.fun")]);
    }
}

/// The accounts of pools and curves grow where their programs store more: who trades first then
/// pays the rent, as Pump.fun's `buy_v3` and `sell_v3` and `PumpSwap`'s `sell_v2` state.
#[test]
fn rent_by_which_an_account_of_a_venue_grows_is_no_price() {
    const PUMP_SWAP: &str = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA";
    let sold = |before: u64, paid: u64| {
        let mut tx = Tx::new("w");
        // A program that states the first rate still.
        tx.create(1, "w", "made", 293 * 6_960, 165);
        tx.account("w bonk", "BONK", "w", 1_000).account("p bonk", "BONK", "p", 0);
        tx.account("w sol", WSOL, "w", 0).account("p sol", WSOL, "p", 900_000);
        tx.lamports("pool", before).call(PUMP_SWAP, &["pool", "w", "w bonk", "w sol"], &[51]);
        tx.pay(2, "w", "pool", paid).transfer(2, "w bonk", "p bonk", "w", 1_000);
        tx.transfer(2, "p sol", "w sol", "p", 590_000);
        tx
    };
    let row = |lamports| [(Side::Sell, "BONK", 1_000, Some(lamports), "PumpSwap")];
    for rate in [6_960, 5_080] {
        check(&sold(429 * rate, 37 * rate), "w", &row(590_000));
        // A vault without data, or an account that holds more than rent, is paid a fee.
        check(&sold(128 * rate, 37 * rate), "w", &row(590_000 - 37 * rate));
        check(&sold(429 * rate + 1, 37 * rate), "w", &row(590_000 - 37 * rate));
        // A curve also holds the lamports of which it pays the price, which may be less.
        for bytes in [37, 100] {
            let mut tx = sold_to_curve();
            tx.pay(2, "w", "curve", bytes * rate);
            check(&tx, "w", &[(Side::Sell, "BONK", 1_000, Some(590_000), "Pump.fun")]);
        }
        // It may also pay a fee out of the price that it is paid, or for another account's sale.
        for paid in [1_000, 9_000_000] {
            let mut tx = Tx::new("w");
            tx.account("w bonk", "BONK", "w", 0).account("c bonk", "BONK", "curve", 5_000);
            tx.call("6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P", &["w", "curve", "fees"], &[102]);
            tx.pay(2, "w", "curve", 400 * rate).transfer(2, "c bonk", "w bonk", "curve", 1_000);
            tx.drift("curve", -paid).drift("fees", paid);
            check(&tx, "w", &[(Side::Buy, "BONK", 1_000, Some(400 * rate), "Pump.fun")]);
        }
    }
}
