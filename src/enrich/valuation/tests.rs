//! Expected values are computed by hand.

use super::*;
use crate::domain::{Family, TradeKey};
use crate::registry::Registry;

const USDC: &str = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48";
const DAI: &str = "0x6B175474E89094C44Da98b954EedeAC495271d0F";
/// 2,000 dollars.
const PRICE: Price = Price(2_000 * 10_u128.pow(12));
const DAY: u32 = 1_700_000_000;

fn mint(text: &str) -> Address {
    Address::parse(Family::Evm, text).unwrap()
}

fn coin(number: u8) -> Address {
    Address::Evm([number; 20])
}

fn with_coins(run: impl FnOnce(&Coins<'_>)) {
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("eth").unwrap();
    run(&Coins { chain, decimals: HashMap::from([(mint(USDC), 6), (mint(DAI), 18)]) });
}

fn row(side: Side, mint: Address, units: u128, native: Option<u128>) -> Trade {
    let (native, tx) = (native.map(Units::from), TxId::Evm([1; 32]));
    Trade {
        key: TradeKey { time: UnixSeconds(DAY), height: 1, index: 0, tx, leg: 0 },
        side,
        mint,
        units: Some(Units::from(units)),
        native,
        valued: ValueSource::of_transaction(native),
        venue: "Uniswap".into(),
    }
}

fn sale(mint: Address, units: u128) -> Trade {
    row(Side::Sell, mint, units, None)
}

fn purchase(mint: Address, units: u128) -> Trade {
    row(Side::Buy, mint, units, None)
}

fn at(mut row: Trade, seconds: i32, tx: u8) -> Trade {
    row.key.time = UnixSeconds(DAY.checked_add_signed(seconds).unwrap());
    row.key.tx = TxId::Evm([tx; 32]);
    row
}

fn natives(rows: &[Trade]) -> Vec<Option<u128>> {
    rows.iter().map(|row| row.native.map(|native| native.to())).collect()
}

fn priced(coins: &Coins<'_>, mut rows: Vec<Trade>, side_payment: u128) -> Vec<Option<u128>> {
    let source = ValueSource::ReferencePool;
    by_price(coins, &mut rows, Units::from(side_payment), PRICE, source);
    for row in &rows {
        let expected = if row.native.is_some() { source } else { ValueSource::Unknown };
        assert!(row.valued == expected || row.valued.is_of_transaction());
    }
    natives(&rows)
}

const E: u128 = 10_u128.pow(18);

#[test]
fn dollars_at_two_thousand_are_these_coins() {
    let (usdc, dai, x) = (mint(USDC), mint(DAI), coin(9));
    with_coins(|coins| {
        // 3,000 USDC are one and a half coins, on both rows.
        let rows = vec![sale(usdc, 3_000_000_000), purchase(x, 7)];
        assert_eq!(priced(coins, rows, 0), [Some(E * 3 / 2); 2]);
        let rows = vec![sale(x, 7), purchase(dai, 3_000 * E)];
        assert_eq!(priced(coins, rows, 0), [Some(E * 3 / 2); 2]);
        // 1,000 USDC and 500 DAI for one token.
        let rows = vec![sale(usdc, 1_000_000_000), sale(dai, 500 * E), purchase(x, 7)];
        assert_eq!(priced(coins, rows, 0), [Some(E / 2), Some(E / 4), Some(E * 3 / 4)]);
        // For two tokens: the parts are ambiguous.
        let rows = vec![sale(usdc, 1_000_000_000), purchase(x, 7), purchase(coin(8), 7)];
        assert_eq!(priced(coins, rows, 0), [Some(E / 2), None, None]);
        // With another token: what was got is worth more than the dollars.
        let rows = vec![sale(usdc, 1_000_000_000), sale(coin(8), 7), purchase(x, 7)];
        assert_eq!(priced(coins, rows, 0), [Some(E / 2), None, None]);
        // One for the other: what was given counts.
        let rows = vec![sale(usdc, 1_000_000), purchase(dai, E * 99 / 100)];
        assert_eq!(priced(coins, rows, 0), [Some(E / 2_000); 2]);
        // Unless one of them was not worth a dollar.
        let rows = vec![sale(usdc, 1_000_000), purchase(dai, E * 3)];
        assert_eq!(priced(coins, rows, 0), [None; 2]);
        // The transaction's own value stays.
        let rows = vec![row(Side::Sell, usdc, 1_000_000, Some(5)), purchase(x, 7)];
        assert_eq!(priced(coins, rows, 0), [Some(5), Some(E / 2_000)]);
    });
}

#[test]
fn a_token_for_native_coin_gets_no_value_by_a_price() {
    with_coins(|coins| {
        let bought = [purchase(mint(USDC), 3_000_000_000)];
        let both = [bought[0].clone(), purchase(coin(9), 7)];
        let swap = [bought[0].clone(), sale(coin(9), 7)];
        let wants = |rows: &[Trade]| wants_price(coins, rows);
        assert_eq!([wants(&bought), wants(&both), wants(&swap)], [false, false, true]);
    });
}

#[test]
fn native_coin_next_to_dollars_is_a_fee_or_a_part_of_the_price() {
    with_coins(|coins| {
        let rows = || vec![sale(mint(USDC), 2_000_000_000), purchase(coin(9), 7)];
        assert_eq!(priced(coins, rows(), E / 100), [Some(E); 2]);
        assert_eq!(priced(coins, rows(), E / 99), [Some(E), None]);
        assert_eq!(priced(coins, rows(), u128::MAX), [Some(E), None]);
    });
}

#[test]
fn division_rounds_down_and_nothing_overflows() {
    with_coins(|coins| {
        let worth = |units, price| {
            let mut one = sale(mint(USDC), 0);
            one.units = Some(units);
            coins.worth(&one, Price(price))
        };
        // A millionth of a dollar at 3,000 dollars: 10^18 / (3 * 10^9) wei.
        assert_eq!(worth(Units::from(1), 3_000 * 10_u128.pow(12)), Some(Units::from(333_333_333)));
        assert_eq!(worth(Units::ZERO, PRICE.0), None, "nothing is no value");
        assert_eq!(worth(Units::MAX, 1), None, "more than 256 bits");
        assert_eq!(worth(Units::from(1), 0), None, "no price");
        // 2^256 - 1 is 2^128 - 1 times 2^128 + 1.
        let expected =
            ((Units::from(1) << 128_usize) + Units::from(1)) * Units::from(10).pow(Units::from(24));
        assert_eq!(worth(Units::MAX, u128::MAX), Some(expected));
    });
}

#[test]
fn one_token_for_another_at_one_value_went_through_native_coin() {
    use Side::{Buy, Sell};
    let valued = |mut rows: Vec<Trade>| {
        mark_routed(&mut rows);
        rows.iter().map(|row| row.valued).collect::<Vec<_>>()
    };
    let (x, y) = (coin(8), coin(9));
    let routed = vec![row(Sell, x, 1, Some(5)), row(Buy, y, 1, Some(5))];
    assert_eq!(valued(routed), [ValueSource::Route; 2]);
    let twice = vec![row(Sell, x, 1, Some(5)), row(Buy, y, 1, Some(4))];
    assert_eq!(valued(twice), [ValueSource::Direct; 2]);
    assert_eq!(valued(vec![row(Sell, x, 1, Some(5))]), [ValueSource::Direct]);
    let none = vec![sale(x, 1), purchase(y, 1)];
    assert_eq!(valued(none), [ValueSource::Unknown; 2]);
}

#[test]
fn only_clear_trades_of_dollars_teach_a_price() {
    with_coins(|coins| {
        let price = |rows: &[Trade], side_payment: u128| {
            teaches(coins, rows, Units::from(side_payment)).map(|price| price.price)
        };
        // 4,000 USDC for two coins.
        let usdc = |units, native| row(Side::Sell, mint(USDC), units, native);
        let sold = usdc(4_000_000_000, Some(2 * E));
        assert_eq!(price(std::slice::from_ref(&sold), 0), Some(PRICE));
        let routed = [sold.clone(), row(Side::Buy, coin(9), 1, Some(2 * E))];
        assert_eq!(price(&routed, 0), Some(PRICE));
        assert_eq!(price(&routed, E / 10), None, "something else moved");
        assert_eq!(price(&[usdc(10_000_000, Some(E / 200))], 0), Some(PRICE));
        assert_eq!(price(&[usdc(9_999_999, Some(E / 200))], 0), None, "dust");
        assert_eq!(price(&[usdc(4_000_000_000, None)], 0), None);
        let mut worked_out = sold.clone();
        worked_out.valued = ValueSource::ReferencePool;
        assert_eq!(price(&[worked_out], 0), None, "its value hangs on a price itself");
        assert_eq!(price(&[row(Side::Sell, coin(9), 4, Some(E))], 0), None);
        let dai = row(Side::Sell, mint(DAI), 10 * E, Some(E));
        assert_eq!(price(&[sold, dai], 0), None, "two stablecoins");
    });
}

fn learned(seconds: i32, price: u128, tag: u64) -> LearnedPrice {
    let time = UnixSeconds(DAY.checked_add_signed(seconds).unwrap());
    LearnedPrice { time, price: Price(price), tag }
}

#[test]
fn learned_prices_count_where_they_agree_nearby() {
    let at = |prices: &[LearnedPrice]| {
        let found = learned_at(prices, UnixSeconds(DAY)).map(|price| price.0);
        let back: Vec<_> = prices.iter().rev().copied().collect();
        assert_eq!(learned_at(&back, UnixSeconds(DAY)).map(|price| price.0), found);
        found
    };
    assert_eq!(at(&[]), None);
    assert_eq!(at(&[learned(0, 1000, 1)]), None, "one alone is not believed");
    assert_eq!(at(&[learned(0, 1000, 1), learned(0, 1000, 1)]), None, "the same trade twice");
    assert_eq!(at(&[learned(0, 1000, 1), learned(9, 1010, 2)]), Some(1000));
    assert_eq!(at(&[learned(0, 1000, 1), learned(301, 1010, 2)]), None, "too old");
    // The middle of the three nearest.
    let four = [learned(1, 1004, 1), learned(2, 1002, 2), learned(-3, 1003, 3), learned(99, 1, 4)];
    assert_eq!(at(&four), Some(1003));
    // An outlier is rejected, however near; two that disagree do not count.
    let wild = [learned(0, 2000, 1), learned(20, 1000, 2), learned(30, 1001, 3)];
    assert_eq!(at(&wild), Some(1000));
    assert_eq!(at(&[learned(0, 1000, 1), learned(9, 1060, 2)]), None);
}

#[test]
fn a_token_that_was_priced_within_a_minute_values_the_other() {
    use Side::{Buy, Sell};
    let (x, y) = (coin(8), coin(9));
    let swap = [sale(x, 500), purchase(y, 80)];
    let valued_by =
        |others: &[Trade]| by_token(&swap, Units::ZERO, &others.iter().collect::<Vec<_>>());
    let value = |native: u128| TokenValue::Value(Units::from(native));
    // 100 x were bought for 7: 500 are worth 35.
    assert_eq!(valued_by(&[at(row(Buy, x, 100, Some(7)), -60, 2)]), value(35));
    assert_eq!(valued_by(&[at(row(Buy, x, 100, Some(7)), -61, 2)]), TokenValue::Nothing, "too old");
    assert_eq!(valued_by(&[at(row(Buy, x, 49, Some(7)), -1, 2)]), TokenValue::Nothing, "too small");
    assert_eq!(valued_by(&[row(Buy, x, 100, Some(7))]), TokenValue::Nothing, "the swap itself");
    // The nearest one; what was given before what was got.
    let near = at(row(Sell, x, 100, Some(8)), 5, 3);
    let got = at(row(Sell, y, 80, Some(30)), 1, 4);
    assert_eq!(valued_by(&[at(row(Buy, x, 100, Some(7)), -6, 2), near.clone()]), value(40));
    assert_eq!(valued_by(&[got.clone(), near.clone()]), value(40));
    assert_eq!(valued_by(std::slice::from_ref(&got)), value(30));
    // Sides that disagree are refused.
    assert_eq!(
        valued_by(&[at(row(Sell, y, 80, Some(19)), 1, 4), near.clone()]),
        TokenValue::Nothing
    );
    // A value that depends on stored trades is no price; a pending one is waited for.
    let mut other = near.clone();
    other.valued = ValueSource::Learned;
    assert_eq!(valued_by(&[other.clone()]), TokenValue::Nothing);
    (other.native, other.valued) = (None, ValueSource::Pending);
    assert_eq!(valued_by(&[other, got]), TokenValue::Later);
    // The coin in addition to the tokens was a part of the price.
    assert_eq!(by_token(&swap, Units::from(1), &[&near]), TokenValue::Nothing);
}

/// Two swaps of tokens for tokens would wait for each other for ever.
#[test]
fn a_swap_that_waits_for_tokens_alone_is_known_by_its_rows() {
    let (usdc, x, y) = (mint(USDC), coin(8), coin(9));
    let pending = |rows: Vec<Trade>| -> Vec<Trade> {
        let waits = |row: Trade| Trade { valued: ValueSource::Pending, ..row };
        rows.into_iter().map(waits).collect()
    };
    with_coins(|coins| {
        let swap = vec![sale(x, 5), purchase(y, 7)];
        assert!(!awaits_tokens(coins, &swap), "nothing waits");
        assert!(awaits_tokens(coins, &pending(swap)));
        let dollars = vec![sale(usdc, 5), purchase(y, 7)];
        assert!(!awaits_tokens(coins, &pending(dollars)), "for a price");
        let native = vec![purchase(y, 7)];
        assert!(!awaits_tokens(coins, &pending(native)), "for what was paid");
    });
}
