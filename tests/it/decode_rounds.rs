//! Hand-written Solana transactions, one per rule: round trips, routes through conversions, and
//! order books whose other side is settled elsewhere.

use blotter::decode::NoteKind;
use blotter::domain::{Address, Side, Units};

use crate::decode::{JUPITER, RAYDIUM, Row, WHIRLPOOL, check, run};
use crate::support::solana::{TOKEN, TOKEN_2022, Tx, WSOL, key};

const MARINADE: &str = "MarBmsSgKXdrN1egZf5sqe1TMai9K1rChYNDJgjq7aD";
const SANCTUM: &str = "stkitrT1Uoy18Dk1fTrgPw8W6MVzoCfYoAFT4MLsmhq";
const STAKE_POOL: &str = "SP12tWFxD9oJsVWNavTTBZvMbA6gkAmxtVgxdqvyvhY";
const PHOENIX: &str = "PhoeNiXZ8ByJGLkxNfZRnkUfjvmuYqLR89jjFHGqdXY";
const STAR_ATLAS: &str = "traderDnaR5w6Tcoi3NFm53i48FTDNbGjBSZwWXDRrg";

/// The wallet's accounts of wrapped SOL, USDC and mSOL, and a pool of each pair.
fn accounts(usdc: u64) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w sol", WSOL, "w", 100_000).account("w usdc", "USDC", "w", usdc);
    tx.account("w msol", "MSOL", "w", 0).account("p msol", "MSOL", "p", 90_000);
    tx.account("p sol", WSOL, "p", 90_000).account("p usdc", "USDC", "p", 90_000);
    tx
}

/// Moves `gave` from an account to the pool, and `got` back.
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
    // A remainder of an intermediate token does not make it a trade.
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

/// What was bought stays a purchase if only a part, or more of it, was converted.
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

/// A route through the wallet's own wrapped SOL may leave a little of it. What each known venue took
/// or gave is exact.
#[test]
fn dust_of_sol_on_the_route_does_not_hide_its_value() {
    let through = |venue: &str, came: u64| {
        let mut tx = accounts(900);
        tx.account("q sol", WSOL, "q", 90_000).account("q usdc", "USDC", "q", 0);
        tx.call(JUPITER, &["w usdc", "w msol", "w sol", "w"], &[1]);
        tx.inner(2, venue, &["w usdc", "q usdc", "q sol", "w sol", "w", "q"], &[9]);
        tx.transfer(3, "w usdc", "q usdc", "w", 500).transfer(3, "q sol", "w sol", "q", came);
        tx.inner(2, venue, &["w sol", "p sol", "p msol", "w msol", "w", "p"], &[9]);
        tx.transfer(3, "w sol", "p sol", "w", 10_000).transfer(3, "p msol", "w msol", "p", 900);
        tx
    };
    for (came, value) in [(10_000, Some(10_000)), (10_100, Some(10_100)), (10_300, None)] {
        let rows = [
            (Side::Sell, "USDC", 500, value, "Jupiter v6"),
            (Side::Buy, "MSOL", 900, value, "Jupiter v6"),
        ];
        check(&through("some pool", came), "w", &rows);
        let rows = [
            (Side::Sell, "USDC", 500, Some(came), "Raydium AMM v4"),
            (Side::Buy, "MSOL", 900, Some(10_000), "Raydium AMM v4"),
        ];
        check(&through(RAYDIUM, came), "w", &rows);
    }
}

/// A call of the aggregator that exchanges is a pool's, also where no table has its program.
#[test]
fn pools_that_no_table_has_give_a_route_its_value() {
    let mut tx = accounts(900);
    tx.account("q sol", WSOL, "q", 90_000).account("q usdc", "USDC", "q", 0);
    tx.call(JUPITER, &["w usdc", "w msol", "w sol", "w"], &[1]);
    tx.inner(2, "some pool", &["w usdc", "q usdc", "q sol", "w sol", "w", "q"], &[9]);
    tx.transfer(3, "w usdc", "q usdc", "w", 500).transfer(3, "q sol", "w sol", "q", 10_000);
    tx.inner(2, "other pool", &["w sol", "p sol", "p msol", "w msol", "w", "p"], &[9]);
    tx.transfer(3, "w sol", "p sol", "w", 10_000).transfer(3, "p msol", "w msol", "p", 900);
    let rows = [
        (Side::Sell, "USDC", 500, Some(10_000), "Jupiter v6"),
        (Side::Buy, "MSOL", 900, Some(10_000), "Jupiter v6"),
    ];
    check(&tx, "w", &rows);
}

/// The wallet, an aggregator's account, a pool and a market maker, with accounts of each token.
fn parties() -> Tx {
    let mut tx = Tx::new("w");
    for (owner, [a, b, sol, usdc]) in [
        ("w", [5_239_400_000, 0, 0, 0]),
        ("hub", [0; 4]),
        ("p", [0, 900, 9_000_000_000, 900_000_000]),
        ("m", [0, 0, 0, 900_000_000]),
    ] {
        let named = |token: &str| format!("{owner} {token}");
        tx.account(&named("a"), "A", owner, a).account(&named("b"), "B", owner, b);
        tx.account(&named("sol"), WSOL, owner, sol).account(&named("usdc"), "USDC", owner, usdc);
    }
    tx.call(JUPITER, &["w a", "w usdc", "w b", "w"], &[1]);
    tx
}

/// A step of the aggregator's route at a venue's pool or market maker.
fn step(tx: &mut Tx, at: &str, (sold, gave): (&str, u64), (bought, got): (&str, u64)) {
    let [from, into] = ["hub", at].map(|owner| format!("{owner} {sold}"));
    let [out, to] = [at, "hub"].map(|owner| format!("{owner} {bought}"));
    let venue = if at == "m" { WHIRLPOOL } else { RAYDIUM };
    tx.inner(2, venue, &[&from, &into, &out, &to, "hub", at], &[9]);
    tx.transfer(3, &from, &into, "hub", gave).transfer(3, &out, &to, at, got);
}

/// The rest of a token goes directly to a market maker, and is not valued at what went through SOL.
/// Amounts of `2pbFktFoaNbT7Wuo…`.
#[test]
fn one_leg_of_a_split_route_has_not_the_value_of_the_others() {
    let mut tx = parties();
    tx.transfer(2, "w a", "hub a", "w", 5_239_400_000);
    step(&mut tx, "p", ("a", 3_840_044_344), ("sol", 999_382_179));
    step(&mut tx, "m", ("a", 219_437_000), ("usdc", 4_838_213));
    step(&mut tx, "p", ("a", 1_179_918_656), ("sol", 307_573_873));
    step(&mut tx, "p", ("sol", 1_306_956_052), ("usdc", 110_401_136));
    tx.transfer(2, "hub usdc", "w usdc", "hub", 115_239_349);
    let rows = [
        (Side::Sell, "USDC", 4_838_213, None, "Orca Whirlpool"),
        (Side::Buy, "A", 219_437_000, None, "Orca Whirlpool"),
    ];
    check(&tx, "m", &rows);
    // 5,019,963,000 of 5,239,400,000 went by way of 1,306,956,052 lamports.
    let value = Some(1_364_086_854);
    let rows = [
        (Side::Sell, "A", 5_239_400_000, value, "Raydium AMM v4"),
        (Side::Buy, "USDC", 115_239_349, value, "Raydium AMM v4"),
    ];
    check(&tx, "w", &rows);
}

/// A platform's fee is at most a tenth of what is received; more belongs to another account.
#[test]
fn a_platforms_fee_of_what_is_received_is_in_the_value() {
    for (fee, value) in [(9, Some(5_000)), (12, None)] {
        let mut tx = parties();
        tx.account("fees b", "B", "platform", 0).transfer(2, "w a", "hub a", "w", 700);
        step(&mut tx, "m", ("a", 700), ("usdc", 300));
        step(&mut tx, "p", ("usdc", 300), ("sol", 5_000));
        step(&mut tx, "p", ("sol", 5_000), ("b", 100));
        tx.transfer(2, "hub b", "fees b", "hub", fee);
        tx.transfer(2, "hub b", "w b", "hub", 100 - fee);
        let rows = [
            (Side::Sell, "A", 700, value, "Orca Whirlpool"),
            (Side::Buy, "B", 100 - fee, value, "Raydium AMM v4"),
        ];
        check(&tx, "w", &rows);
    }
}

/// The mint may take more than a platform.
#[test]
fn a_tax_of_what_is_received_is_in_the_value() {
    let mut tx = parties();
    tx.lamports(TOKEN_2022, 1).transfer(2, "w a", "hub a", "w", 700);
    step(&mut tx, "m", ("a", 700), ("usdc", 300));
    step(&mut tx, "p", ("usdc", 300), ("sol", 5_000));
    step(&mut tx, "p", ("sol", 5_000), ("b", 100));
    tx.transfer_less_fee(2, ["hub b", "w b", "hub"], "B", 100, 12);
    let rows = [
        (Side::Sell, "A", 700, Some(5_000), "Orca Whirlpool"),
        (Side::Buy, "B", 88, Some(5_000), "Raydium AMM v4"),
    ];
    check(&tx, "w", &rows);
}

/// The market's caller takes an order, whose maker gave its side when it placed the order.
#[test]
fn an_order_of_a_market_is_a_trade_of_its_taker_and_its_maker() {
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

/// The aggregator's accounts, and those of a stake pool and of the two pools behind it.
fn staked() -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w pico", "PICO", "w", 6_827_421_318).account("hub pico", "PICO", "hub", 0);
    tx.account("w new", "NEW", "w", 0).account("q new", "NEW", "q", 900_000_000);
    tx.account("hub sol", WSOL, "hub", 0).account("hub usdc", "USDC", "hub", 0);
    tx.account("p sol", WSOL, "p", 0).account("p usdc", "USDC", "p", 900_000_000);
    tx.account("q usdc", "USDC", "q", 0).account("treasury pico", "PICO", "treasury", 0);
    tx.account("reserve", WSOL, "bridge", 9_000_000_000);
    tx.call(JUPITER, &["w pico", "w new", "w"], &[1]);
    tx.transfer(2, "w pico", "hub pico", "w", 6_827_421_318);
    tx
}

/// USDC for the new token.
fn bought_with_usdc(tx: &mut Tx) {
    tx.inner(2, WHIRLPOOL, &["hub usdc", "q usdc", "q new", "w new", "hub", "q"], &[9]);
    tx.transfer(3, "hub usdc", "q usdc", "hub", 681_995_425);
    tx.transfer(3, "q new", "w new", "q", 277_616_933);
}

fn unstaked_rows(value: Option<u64>) -> [Row; 2] {
    [
        (Side::Sell, "PICO", 6_827_421_318, value, "Jupiter v6"),
        (Side::Buy, "NEW", 277_616_933, value, "Orca Whirlpool"),
    ]
}

/// The stake pool burns what it was given less its fee. Amounts of `3xiEgNo1xXDgxATq…`.
#[test]
fn what_an_unstaking_on_a_route_gives_is_its_value() {
    let mut tx = staked();
    let unstaking = ["hub pico", "treasury pico", "reserve", "hub sol", "hub"];
    tx.inner(2, SANCTUM, &unstaking, &[8]).inner(3, STAKE_POOL, &unstaking, &[16]);
    tx.burn(4, "PICO", "hub pico", 6_820_593_896);
    tx.transfer(4, "hub pico", "treasury pico", "hub", 6_827_422);
    tx.transfer(3, "reserve", "hub sol", "bridge", 8_153_925_463);
    tx.inner(2, RAYDIUM, &["hub sol", "p sol", "p usdc", "hub usdc", "hub", "p"], &[9]);
    tx.transfer(3, "hub sol", "p sol", "hub", 8_153_925_463);
    tx.transfer(3, "p usdc", "hub usdc", "p", 681_995_425);
    bought_with_usdc(&mut tx);
    check(&tx, "w", &unstaked_rows(Some(8_153_925_463)));
}

/// PICO to USDC, that to SOL, and that to a stake pool's token.
#[test]
fn what_a_staking_on_a_route_takes_is_its_value() {
    let mut tx = staked();
    tx.account("p pico", "PICO", "p", 0).account("q sol", WSOL, "q", 900_000);
    tx.account("w msol", "MSOL", "w", 0).account("treasury msol", "MSOL", "treasury", 0);
    tx.inner(2, RAYDIUM, &["hub pico", "p pico", "p usdc", "hub usdc", "hub", "p"], &[9]);
    tx.transfer(3, "hub pico", "p pico", "hub", 6_827_421_318);
    tx.transfer(3, "p usdc", "hub usdc", "p", 500);
    tx.inner(2, SANCTUM, &["hub sol", "reserve", "w msol", "treasury msol", "hub"], &[8]);
    tx.account("hub sol", WSOL, "hub", 5_000).transfer(3, "hub sol", "reserve", "hub", 5_000);
    tx.mint_to(3, "MSOL", "w msol", 480).mint_to(3, "MSOL", "treasury msol", 2);
    let rows = [
        (Side::Sell, "PICO", 6_827_421_318, Some(5_000), "Raydium AMM v4"),
        (Side::Buy, "MSOL", 480, Some(5_000), "Jupiter v6"),
    ];
    check(&tx, "w", &rows);
}

/// A stake pool pays a part out of its own pool of the token, and mints the rest.
#[test]
fn what_a_staking_pays_in_two_parts_has_its_value_once() {
    let mut tx = staked();
    tx.account("p pico", "PICO", "p", 0).account("leg", "MSOL", "pool", 900);
    tx.account("w msol", "MSOL", "w", 0).account("hub sol", WSOL, "hub", 5_000);
    tx.inner(2, RAYDIUM, &["hub pico", "p pico", "p usdc", "hub usdc", "hub", "p"], &[9]);
    tx.transfer(3, "hub pico", "p pico", "hub", 6_827_421_318);
    tx.transfer(3, "p usdc", "hub usdc", "p", 500);
    tx.inner(2, SANCTUM, &["hub sol", "reserve", "leg", "w msol", "pool", "hub"], &[8]);
    tx.transfer(3, "hub sol", "reserve", "hub", 5_000);
    tx.transfer(3, "leg", "w msol", "pool", 180).mint_to(3, "MSOL", "w msol", 300);
    let rows = [
        (Side::Sell, "PICO", 6_827_421_318, Some(5_000), "Raydium AMM v4"),
        (Side::Buy, "MSOL", 480, Some(5_000), "Jupiter v6"),
    ];
    check(&tx, "w", &rows);
}

/// Marinade takes loose SOL. Where a step burns one pool's token and mints another's, what is paid
/// is the rent of the stake account in between.
#[test]
fn loose_sol_that_a_route_stakes_is_its_price() {
    let mut tx = accounts(0);
    tx.call(JUPITER, &["w", "w msol", "w usdc"], &[1]);
    tx.inner(2, MARINADE, &["w", "reserve", "w msol"], &[1]);
    tx.pay(3, "w", "reserve", 1_000_000).mint_to(3, "MSOL", "w msol", 800);
    tx.inner(2, RAYDIUM, &["w msol", "p msol", "p usdc", "w usdc", "w", "p"], &[9]);
    tx.transfer(3, "w msol", "p msol", "w", 800).transfer(3, "p usdc", "w usdc", "p", 55);
    check(&tx, "w", &[(Side::Buy, "USDC", 55, Some(1_000_000), "Raydium AMM v4")]);

    let mut tx = accounts(0);
    tx.account("w pico", "PICO", "w", 500).call(JUPITER, &["w pico", "w sol", "w"], &[1]);
    tx.inner(2, SANCTUM, &["w pico", "stake account", "w msol", "w"], &[8]);
    tx.pay(3, "w", "stake account", 2_282_880).burn(3, "PICO", "w pico", 500);
    tx.mint_to(3, "MSOL", "w msol", 800);
    tx.inner(2, RAYDIUM, &["w msol", "p msol", "p sol", "w sol", "w", "p"], &[9]);
    tx.transfer(3, "w msol", "p msol", "w", 800).transfer(3, "p sol", "w sol", "p", 9_000);
    check(&tx, "w", &[(Side::Sell, "PICO", 500, Some(9_000), "Jupiter v6")]);
}

/// PICO leaves its pool as a stake account, whose rent is no price.
#[test]
fn the_rent_of_what_is_unstaked_is_no_value() {
    let mut tx = staked();
    tx.inner(2, SANCTUM, &["hub pico", "stake account", "prefund"], &[8]);
    tx.pay(3, "prefund", "stake account", 2_282_880);
    tx.burn(3, "PICO", "hub pico", 6_827_421_318);
    tx.account("hub usdc", "USDC", "hub", 681_995_425);
    bought_with_usdc(&mut tx);
    check(&tx, "w", &unstaked_rows(None));
}

/// Phoenix's log of a take: one fill, and the summary with the lots of the base, the quote and the fee.
fn log_of_take(base_lots: u64) -> Vec<u8> {
    let mut log = vec![0; 93 + 67];
    (log[0], log[1], log[93]) = (0x0f, 1, 2);
    log.extend([6, 1, 0]);
    log.extend([0; 16]);
    for lots in [base_lots, 224_924_885, 112_519] {
        log.extend(lots.to_le_bytes());
    }
    log
}

/// The wallet cancels an order, whose tokens stay at the exchange, and sells them there for `quote`.
fn sold_free_funds(quote: &str, tag: u8, base_lots: u64) -> Tx {
    take(quote, (tag, base_lots), ("v quote", "w quote", "vault", 224_924_885))
}

/// Of a take, one side moves: from, to, who signs, and how much.
fn take(quote: &str, (tag, base_lots): (u8, u64), moved: (&str, &str, &str, u64)) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w base", "BASE", "w", 3).account("w quote", quote, "w", 0);
    tx.account("v base", "BASE", "vault", 900).account("v quote", quote, "vault", 900_000_000);
    let market = [PHOENIX, "log authority", "market", "w"];
    tx.call(PHOENIX, &market, &[9]).inner(2, PHOENIX, &["log authority"], &[0x0f, 1, 9]);
    let accounts = ["w base", "w quote", "v base", "v quote", TOKEN];
    tx.call(PHOENIX, &[&market[..], &accounts].concat(), &[tag, 2, 1]);
    tx.transfer(2, moved.0, moved.1, moved.2, moved.3);
    tx.inner(2, PHOENIX, &["log authority"], &log_of_take(base_lots));
    tx
}

/// Lots of unknown size give no amount. Amounts of `26LC6Jhm3egss46w…`.
#[test]
fn a_take_that_free_funds_pay_for_has_the_amount_of_one_side() {
    let rows = |tx: &Tx| -> Vec<_> {
        let trades = run(tx, "w").trades;
        assert!(trades.iter().all(|trade| &*trade.venue == "Phoenix"));
        trades.iter().map(|trade| (trade.side, trade.mint, trade.units, trade.native)).collect()
    };
    let mint = |name| Address::Solana(key(name));
    let got = Some(Units::from(224_924_885_u64));
    let sold = |native| (Side::Sell, mint("BASE"), None, native);
    let expected = [sold(None), (Side::Buy, mint("USDC"), got, None)];
    assert_eq!(rows(&sold_free_funds("USDC", 0, 15_716)), expected);
    assert_eq!(rows(&sold_free_funds(WSOL, 0, 15_716)), [sold(got)]);
    // Nothing was taken; a call that takes nothing.
    assert_eq!(rows(&sold_free_funds("USDC", 0, 0)), []);
    assert_eq!(rows(&sold_free_funds("USDC", 12, 15_716)), []);
    // What is sold is worth less than a lot: the wallet only gives.
    assert_eq!(rows(&take("USDC", (0, 3), ("w base", "v base", "w", 3))), []);
}

/// 15,716 lots of a million are sold for 224,924,885 of one, or bought.
#[test]
fn what_free_funds_pay_in_part_is_open() {
    let sold = |quote: &str, paid: u64| {
        let mut tx = sold_free_funds(quote, 0, 15_716);
        tx.account("w base", "BASE", "w", 20_000_000_000);
        tx.transfer(2, "w base", "v base", "w", paid);
        run(&tx, "w").trades.into_iter().map(|row| (row.units, row.native)).collect::<Vec<_>>()
    };
    let (got, whole) = (Some(Units::from(224_924_885_u64)), 15_716_000_000_u64);
    assert_eq!(sold("USDC", whole), [(Some(Units::from(whole)), None), (got, None)]);
    assert_eq!(sold("USDC", whole - 1_000_000), [(None, None), (got, None)]);
    assert_eq!(sold(WSOL, whole - 1_000_000), [(None, got)]);
    // A multiple of the lots that is not a power of ten.
    assert_eq!(sold("USDC", whole / 5 * 3), [(None, None), (got, None)]);
    // The price of a purchase, without the free funds at the exchange.
    let bought = |paid: u64| {
        let mut tx = take(WSOL, (0, 15_716), ("v base", "w base", "vault", 800));
        tx.account("w quote", WSOL, "w", 900_000_000);
        tx.transfer(2, "w quote", "v quote", "w", paid);
        run(&tx, "w").trades.into_iter().map(|row| (row.units, row.native)).collect::<Vec<_>>()
    };
    let units = Some(Units::from(800_u64));
    assert_eq!(bought(224_924_885), [(units, got)]);
    assert_eq!(bought(224_924_885 - 70), [(units, None)]);
}

/// 12 lots of 10 are sold, of which free funds pay 20, next to a purchase for 1,000 lamports.
#[test]
fn what_free_funds_add_to_a_sale_of_what_was_bought_is_sold() {
    let next_to = |quote: &str, bought: u64| {
        let mut tx = take(quote, (0, 12), ("v quote", "w quote", "vault", 1_200));
        tx.account("w base", "BASE", "w", 100).transfer(2, "w base", "v base", "w", 100);
        tx.account("w sol", WSOL, "w", 100_000).account("p sol", WSOL, "p", 90_000);
        tx.account("p base", "BASE", "p", 900);
        swap(&mut tx, ("w sol", 1_000), ("w base", bought));
        let trades = run(&tx, "w").trades.into_iter();
        trades.map(|row| (row.side, row.units, row.native)).collect::<Vec<_>>()
    };
    let units = |units: u64| Some(Units::from(units));
    let got = (Side::Buy, units(1_200), None);
    assert_eq!(next_to(WSOL, 100), [(Side::Sell, None, None)]);
    assert_eq!(next_to("USDC", 100), [(Side::Sell, None, None), got]);
    assert_eq!(next_to(WSOL, 90), [(Side::Sell, None, units(200))]);
    // More may have been bought than was sold.
    assert_eq!(next_to(WSOL, 150), []);
    assert_eq!(next_to("USDC", 150), [got]);
}

#[test]
fn a_take_that_free_funds_pay_for_is_one_next_to_another_trade() {
    let next_to = |token: &str| {
        let mut tx = sold_free_funds("USDC", 0, 15_716);
        tx.account("w sol", WSOL, "w", 100_000).account("p sol", WSOL, "p", 90_000);
        tx.account("w token", token, "w", 0).account("p token", token, "p", 900);
        swap(&mut tx, ("w sol", 8_000), ("w token", 811));
        let trades = run(&tx, "w").trades.into_iter();
        trades.map(|row| (row.side, row.mint, row.units, row.native)).collect::<Vec<_>>()
    };
    let mint = |name| Address::Solana(key(name));
    let units = |units: u64| Some(Units::from(units));
    let bought = |name| (Side::Buy, mint(name), units(811), units(8_000));
    let (sold, got) = (
        (Side::Sell, mint("BASE"), None, None),
        (Side::Buy, mint("USDC"), units(224_924_885), None),
    );
    let rows = next_to("WIF");
    assert!(rows.len() == 3 && [sold, got, bought("WIF")].iter().all(|row| rows.contains(row)));
    // More of the token may have been sold than was bought.
    assert_eq!(next_to("BASE"), [bought("BASE")]);
    // Two takes of one side are one row per token; for takes of both sides, what was given is
    // unknown.
    let twice = |(from, to): (&str, &str)| {
        let mut tx = sold_free_funds("USDC", 0, 15_716);
        let market = [PHOENIX, "log authority", "market", "w"];
        let accounts = ["w base", "w quote", "v base", "v quote", TOKEN];
        tx.call(PHOENIX, &[&market[..], &accounts].concat(), &[0, 2, 1]);
        tx.transfer(2, from, to, "vault", 15);
        tx.inner(2, PHOENIX, &["log authority"], &log_of_take(1));
        run(&tx, "w").trades.into_iter().map(|row| (row.side, row.units)).collect::<Vec<_>>()
    };
    let both = [(Side::Sell, None), (Side::Buy, units(224_924_900))];
    assert_eq!(twice(("v quote", "w quote")), both);
    assert_eq!(twice(("v base", "w base")), []);
}
