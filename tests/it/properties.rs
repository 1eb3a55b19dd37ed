//! Properties of stored and delivered data, each against an independent model: amounts as text,
//! order of keys, cursors, and the rows of streams and pages.

use std::cmp::Reverse;
use std::sync::Arc;

use blotter::domain::{
    Address, ChainId, Cursor, Decimal, Family, FilterTag, Position, Side, Trade, TradeKey, TxId,
    Units, UnixSeconds, ValueSource, Wallet,
};
use blotter::store::{Store, TokenRecord};
use proptest::prelude::*;
use redb::backends::InMemoryBackend;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::support::served::{self, SOL, World};
use crate::support::trades::{OPTIONS, chunk};

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

// Amounts.

/// An integer's digits, by doubling from its highest bit down.
fn digits(units: Units) -> String {
    let mut digits: Vec<u8> = vec![0];
    for bit in (0..256).rev() {
        let mut carry = u8::from(units.bit(bit));
        for digit in &mut digits {
            let doubled = *digit * 2 + carry;
            (*digit, carry) = (doubled % 10, doubled / 10);
        }
        if carry > 0 {
            digits.push(carry);
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

/// A quantity as text: inserts the point, and removes zeros without meaning.
fn quantity(units: Units, decimals: u8) -> String {
    let places = usize::from(decimals);
    let padded = format!("{:0>width$}", digits(units), width = places + 1);
    let (whole, part) = padded.split_at(padded.len() - places);
    match part.trim_end_matches('0') {
        "" => whole.to_owned(),
        part => format!("{whole}.{part}"),
    }
}

/// Units of every length, with zeros at either end.
fn units() -> impl Strategy<Value = Units> {
    let any_units =
        (any::<[u64; 4]>(), 0_usize..256, 0_u32..78).prop_map(|(limbs, shift, zeros)| {
            let ten = Units::from(10).pow(Units::from(zeros));
            (Units::from_limbs(limbs) >> shift) / ten * ten
        });
    prop_oneof![1 => Just(Units::ZERO), 1 => Just(Units::MAX), 8 => any_units]
}

proptest! {
    #[test]
    fn an_amount_is_the_text_of_its_integer_at_all_decimals(units in units()) {
        for decimals in 0..=u8::MAX {
            prop_assert_eq!(Decimal { units, decimals }.to_string(), quantity(units, decimals));
        }
    }
}

// Keys and cursors.

/// A few values at the limits of bytes and of the type, so that every field matters in comparisons.
fn edges(max: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..3_u64, 1 => Just(255), 1 => Just(256), 1 => Just(max - 1), 1 => Just(max)]
}

fn tx(family: Family, seed: u8, byte: u8, at: usize) -> TxId {
    let len = if family == Family::Solana { 64 } else { 32 };
    let mut bytes = vec![seed; len];
    bytes[at % len] = byte;
    TxId::from_bytes(family, &bytes).unwrap()
}

fn key(family: Family) -> impl Strategy<Value = TradeKey> {
    let id = (prop_oneof![Just(0_u8), Just(128), Just(255)], any::<u8>(), any::<usize>());
    let (u16s, u32s) = (u64::from(u16::MAX), u64::from(u32::MAX));
    (edges(u32s), edges(u64::MAX), edges(u32s), edges(u16s), id).prop_map(
        move |(time, height, index, leg, (seed, byte, at))| TradeKey {
            time: UnixSeconds(u32::try_from(time).unwrap()),
            height,
            index: u32::try_from(index).unwrap(),
            tx: tx(family, seed, byte, at),
            leg: u16::try_from(leg).unwrap(),
        },
    )
}

fn families() -> impl Strategy<Value = Family> {
    prop_oneof![Just(Family::Solana), Just(Family::Evm), Just(Family::Tron)]
}

fn wallet_of(family: Family, seed: u8) -> Wallet {
    let address = match family {
        Family::Solana => Address::Solana([seed; 32]),
        Family::Evm => Address::Evm([seed; 20]),
        Family::Tron => Address::Tron([seed; 20]),
    };
    Wallet { chain: ChainId(1), address }
}

/// The order of delivery, as the documentation defines it.
fn rank(key: &TradeKey) -> impl Ord + use<> {
    let newest_first = (Reverse(key.time.0), Reverse(key.height), Reverse(key.index));
    (newest_first, key.tx.to_bytes(), key.leg)
}

fn trade_at(key: TradeKey, family: Family, number: usize) -> Trade {
    Trade {
        key,
        side: if number.is_multiple_of(2) { Side::Buy } else { Side::Sell },
        mint: wallet_of(family, 9).address,
        units: Some(Units::from(number)),
        native: Some(Units::MAX - Units::from(number)),
        valued: ValueSource::Direct,
        venue: "Raydium".into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Rows leave the store in the order of delivery, each unchanged.
    #[test]
    fn stored_rows_come_in_the_order_of_delivery(
        (family, keys) in families().prop_flat_map(|family| {
            (Just(family), proptest::collection::vec(key(family), 1..90))
        }),
    ) {
        let mut trades: Vec<Trade> =
            keys.into_iter().enumerate().map(|(at, key)| trade_at(key, family, at)).collect();
        trades.sort_by_key(|trade| rank(&trade.key));
        trades.dedup_by_key(|trade| trade.key);
        // A transaction has one place.
        let mut seen = std::collections::HashMap::new();
        trades.retain(|trade| {
            let key = trade.key;
            let place = (key.time, key.height, key.index);
            *seen.entry(key.tx).or_insert(place) == place
        });
        let wallet = wallet_of(family, 7);
        let rows = run(async {
            let store = Store::in_step(InMemoryBackend::new(), OPTIONS).unwrap();
            let id = store.intern(&wallet).await.unwrap().id;
            let mut mixed = trades.clone();
            mixed.sort_by_key(|trade| trade.units);
            store.write_chunk(chunk(id, 0, u64::MAX, mixed)).await.unwrap();
            store.view().unwrap().rows(id, Position::Start, 0, usize::MAX).await.unwrap()
        });
        let rows: Vec<Trade> = rows.into_iter().map(|row| row.trade).collect();
        prop_assert_eq!(rows, trades);
    }

    #[test]
    fn a_cursor_comes_back_whole_or_not_at_all(
        (family, key) in families().prop_flat_map(|f| (Just(f), proptest::option::of(key(f)))),
        head in any::<Option<u64>>(), filter in any::<u32>(), live in any::<bool>(),
    ) {
        let cursor = Cursor {
            head,
            filter: FilterTag(filter),
            live: live && head.is_some(),
            position: key.map_or(Position::Start, Position::After),
            passed: (filter % 2 == 0).then_some(u64::from(filter)),
        };
        let wallet = wallet_of(family, 7);
        let text = cursor.encode(&wallet);
        prop_assert_eq!(Cursor::decode(&text, &wallet), Ok(cursor));
        for other in [
            wallet_of(family, 8),
            Wallet { chain: ChainId(2), ..wallet },
        ] {
            prop_assert!(Cursor::decode(&text, &other).is_err());
        }
        let mut damaged: Vec<String> = (0..text.len()).map(|end| text[..end].to_owned()).collect();
        damaged.extend(["A", "=", " ", "\n"].map(|more| format!("{text}{more}")));
        for at in 0..text.len() {
            let other = if &text[at..=at] == "A" { "B" } else { "A" };
            damaged.push(format!("{}{other}{}", &text[..at], &text[at + 1..]));
        }
        for damaged in damaged {
            prop_assert!(Cursor::decode(&damaged, &wallet).is_err(), "{}", damaged);
        }
    }
}

// What is written for clients, read back by a JSON reader.

/// Any text, including control characters, quotes and line breaks of every kind.
fn text() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        Just('"'),
        Just('\\'),
        Just('\n'),
        Just('\r'),
        Just('\0'),
        Just('\u{7f}'),
        Just('\u{85}'),
        Just('\u{2028}'),
        Just('\u{2029}'),
        Just('\u{feff}'),
        Just('\u{10ffff}'),
        proptest::char::range('\u{1}', '\u{1f}'),
    ];
    let any_char =
        prop_oneof![2 => special, 3 => any::<char>(), 3 => proptest::char::range(' ', '~')];
    proptest::collection::vec(any_char, 0..24).prop_map(String::from_iter)
}

/// A trade, and what is known of its token.
#[derive(Debug, Clone)]
struct Sample {
    time: u32,
    sell: bool,
    units: Option<Units>,
    native: Option<Units>,
    venue: String,
    mint: u8,
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let one = (
        any::<u32>(),
        any::<bool>(),
        proptest::option::of(units()),
        proptest::option::of(units()),
        text(),
        0_u8..4,
    );
    let one = one.prop_map(|(time, sell, units, native, venue, mint)| Sample {
        time,
        sell,
        units,
        native,
        venue,
        mint,
    });
    proptest::collection::vec(one, 0..30).prop_map(|mut all| {
        all.sort_by_key(|sample| sample.time);
        all
    })
}

type Known = (Option<String>, Option<u8>);

fn tokens() -> impl Strategy<Value = Vec<Known>> {
    let symbol = proptest::option::weighted(0.8, text());
    let decimals = proptest::option::weighted(0.8, any::<u8>());
    proptest::collection::vec((symbol, decimals), 4)
}

fn mint(number: u8) -> Address {
    Address::Solana([number + 1; 32])
}

fn trade_of(number: usize, sample: &Sample) -> Trade {
    let mut tx = [0xA5; 64];
    tx[..8].copy_from_slice(&u64::try_from(number).unwrap().to_be_bytes());
    Trade {
        key: TradeKey {
            time: UnixSeconds(sample.time),
            height: u64::try_from(number).unwrap() + 1,
            index: 0,
            tx: TxId::solana(&tx),
            leg: 0,
        },
        side: if sample.sell { Side::Sell } else { Side::Buy },
        mint: mint(sample.mint),
        units: sample.units,
        native: sample.native,
        valued: ValueSource::of_transaction(sample.native),
        venue: sample.venue.as_str().into(),
    }
}

/// A row as clients know it: these members, and no other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Line {
    signature: String,
    side: String,
    token: String,
    token_mint: String,
    amount_sol: Option<Box<RawValue>>,
    amount: Option<Box<RawValue>>,
    dex: String,
    block_time: String,
}

#[derive(Debug, Deserialize)]
struct Batch {
    #[serde(default)]
    trades: Vec<Line>,
    cursor: Option<String>,
    complete: Option<bool>,
    #[serde(rename = "tradeCount")]
    trade_count: Option<usize>,
}

/// Every field of a line, compared with the trade and its token.
fn check(line: &Line, trade: &Trade, (symbol, decimals): &Known) {
    let TxId::Solana(tx) = trade.key.tx else { panic!("of another chain") };
    let Address::Solana(mint) = trade.mint else { panic!("of another chain") };
    let mint = bs58::encode(mint).into_string();
    let short = format!("{}…{}", &mint[..4], &mint[mint.len() - 4..]);
    assert_eq!(line.signature, bs58::encode(tx.to_bytes()).into_string());
    assert_eq!(line.side, if trade.side == Side::Buy { "buy" } else { "sell" });
    assert_eq!(&line.token, symbol.as_ref().unwrap_or(&short));
    assert_eq!(line.token_mint, mint);
    let literal = |raw: &Option<Box<RawValue>>| raw.as_ref().map(|raw| raw.get().to_owned());
    assert_eq!(literal(&line.amount_sol), trade.native.map(|native| quantity(native, 9)));
    let amount = trade.units.zip(*decimals).map(|(units, decimals)| quantity(units, decimals));
    assert_eq!(literal(&line.amount), amount);
    assert_eq!(line.dex, &*trade.venue);
    let time = jiff::Timestamp::from_second(i64::from(trade.key.time.0)).unwrap();
    assert_eq!(line.block_time, time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string());
}

fn check_all(lines: &[Line], trades: &[Trade], known: &[Known]) {
    assert_eq!(lines.len(), trades.len());
    for (line, trade) in lines.iter().zip(trades) {
        let number = (0..4).find(|number| mint(*number) == trade.mint).unwrap();
        check(line, trade, &known[usize::from(number)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn streams_and_pages_are_read_back_as_what_is_stored(
        samples in samples(), known in tokens(), size in 1_usize..12,
    ) {
        let mut trades: Vec<Trade> =
            samples.iter().enumerate().map(|(at, one)| trade_of(at, one)).collect();
        trades.reverse();
        run(async {
            let world = World::new();
            let wallet = served::wallet(1);
            let record = |(number, (symbol, decimals)): (u8, &Known)| TokenRecord {
                chain: SOL,
                mint: mint(number),
                symbol: symbol.as_deref().map(Arc::from),
                decimals: *decimals,
                asked_at: None,
            };
            let records = (0..).zip(&known).map(record).collect();
            world.fill(&wallet, 0, trades.clone(), records).await;

            let stream = world.get(&served::path(&wallet)).await;
            let body = std::str::from_utf8(stream.body()).unwrap();
            // Lines can be separated in any way; their number is the same.
            let breaks = |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
            assert_eq!(body.matches(breaks).count(), body.matches('\n').count());
            assert!(!body.contains(|c: char| c.is_control() && c != '\n'));
            let batches: Vec<Batch> = body
                .split_terminator('\n')
                .filter(|line| !line.is_empty())
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let end = batches.last().unwrap();
            assert_eq!((end.complete, end.trade_count), (Some(true), Some(trades.len())));
            let lines: Vec<Line> = batches.into_iter().flat_map(|batch| batch.trades).collect();
            check_all(&lines, &trades, &known);

            let (mut lines, mut next) = (Vec::new(), None);
            loop {
                let cursor = next.map_or(String::new(), |cursor: String| format!("&cursor={cursor}"));
                let path = format!("{}?limit={size}{cursor}", served::path(&wallet));
                let page: Batch = serde_json::from_slice(world.get(&path).await.body()).unwrap();
                assert!(page.trades.len() <= size);
                assert_eq!((page.complete, page.trade_count), (Some(true), Some(trades.len())));
                lines.extend(page.trades);
                next = page.cursor;
                if next.is_none() {
                    break;
                }
            }
            check_all(&lines, &trades, &known);
            world.close().await;
        });
    }
}
