//! Native values: given once and kept, waited for while a source fails, and never at the cost of a
//! stream.

use std::collections::HashSet;
use std::future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::demo::solana::{TradeKind, WalletPlan};
use blotter::domain::{
    Address, ChainId, Family, LearnedPrice, Minute, Position, Price, Row, Side, Trade, Units,
    UnixSeconds, ValueSource, Wallet,
};
use blotter::history::Extent;
use blotter::rpc::{Request, Response, Transport, TransportError};
use blotter::store::{
    Chunk, KeptCandle, NewValue, PriceRecord, Store, TokenRecord, WalletId, WalletPatch,
    WantedPlace, Written, upkeep,
};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::support::arms::{self, both_arms};
use crate::support::trades::{OPTIONS, chunk, trade, wallet};
use crate::support::world::{Build, World, finish, pages};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Dollars for the coin, at every time.
    Price(u32),
    KnowsNone,
    Refuses,
    Silent,
}

/// A price service with configured answers.
#[derive(Debug, Clone)]
struct Service(Arc<Mutex<(Mode, u64)>>);

impl Service {
    fn new(mode: Mode) -> Self {
        Self(Arc::new(Mutex::new((mode, 0))))
    }

    fn set(&self, mode: Mode) {
        self.0.lock().unwrap().0 = mode;
    }

    fn asked(&self) -> u64 {
        self.0.lock().unwrap().1
    }
}

impl Transport for Service {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let mut state = self.0.lock().unwrap();
        state.1 += 1;
        let digits = request.url.expose().split(|c: char| !c.is_ascii_digit());
        let record = |dollars, time: &str| format!(r#"{{"timestamp":{time},"price":{dollars}}}"#);
        let stated: Vec<String> = match state.0 {
            Mode::Silent => return Box::pin(future::pending()),
            Mode::Refuses => {
                let refused = Err(TransportError::Connect("refused".to_owned()));
                return Box::pin(future::ready(refused));
            }
            Mode::KnowsNone => Vec::new(),
            Mode::Price(dollars) => {
                digits.filter(|text| text.len() == 10).map(|time| record(dollars, time)).collect()
            }
        };
        let list = stated.join(",");
        let body = format!(r#"{{"coins":{{"coingecko:solana":{{"prices":[{list}]}}}}}}"#);
        let response = Response { status: 200, retry_after: None, body: body.into() };
        Box::pin(future::ready(Ok(response)))
    }
}

const USDC: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

fn world(service: &Service) -> World {
    Build { candles: Some(Arc::new(service.clone())), ..Build::default() }.world()
}

fn dollar_trader(world: &World, trades: u64) -> Wallet {
    let only = Some(TradeKind::JupiterUsdc);
    world.add("dollars", WalletPlan { only, ..WalletPlan::trades(trades) })
}

/// How many rows have a value by a price, wait for one, and are valued by their transaction. Every
/// value by a candle is the dollars' at 150.
fn check(rows: &[Row]) -> (usize, usize, usize) {
    let (mut derived, mut pending, mut of_transaction) = (0, 0, 0);
    for legs in rows.chunk_by(|a, b| a.trade.key.tx == b.trade.key.tx) {
        let dollars = legs.iter().find(|leg| leg.trade.mint.to_string() == USDC);
        for leg in legs {
            let Trade { native, valued, .. } = leg.trade;
            of_transaction += usize::from(valued.is_of_transaction());
            derived += usize::from(valued.is_derived());
            assert_eq!(
                native.is_none(),
                [ValueSource::Pending, ValueSource::Unknown].contains(&valued)
            );
            pending += usize::from(valued == ValueSource::Pending);
            if valued == ValueSource::Candle {
                // A millionth of a dollar is 1000 / 150 lamports.
                let units = dollars.unwrap().trade.units.unwrap();
                assert_eq!(native.unwrap(), units * Units::from(1000) / Units::from(150));
            }
        }
    }
    (derived, pending, of_transaction)
}

async fn stream(world: &World, wallet: Wallet) -> Vec<Row> {
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    rows
}

fn values(rows: &[Row]) -> Vec<(Option<Units>, ValueSource)> {
    rows.iter().map(|row| (row.trade.native, row.trade.valued)).collect()
}

#[tokio::test(start_paused = true)]
async fn dollars_are_valued_alike_in_streams_pages_and_after_a_restart() {
    let service = Service::new(Mode::Price(150));
    let world = world(&service);
    let wallet = dollar_trader(&world, 600);
    let rows = stream(&world, wallet).await;
    let (derived, pending, _) = check(&rows);
    let candles = rows.iter().filter(|row| row.trade.valued == ValueSource::Candle).count();
    assert!(candles >= 100, "{candles} of {derived} rows by candles");
    let is_unknown = |row: &&Row| row.trade.valued == ValueSource::Unknown;
    assert_eq!(rows.iter().find(is_unknown), None, "dollars without a value");
    assert_eq!(pending, 0);
    // Sixty times of the service at once.
    assert!(service.asked() * 4 < 600, "{} calls", service.asked());
    // From now on the service returns another price.
    service.set(Mode::Price(9));
    assert_eq!(values(&pages(&world, wallet, 7).await), values(&rows));
    let counted: u64 = world.history.metrics().values.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, u64::try_from(rows.len()).unwrap());
    let world = world.restart().await;
    assert_eq!(values(&stream(&world, wallet).await), values(&rows));
}

#[tokio::test(start_paused = true)]
async fn without_a_service_dollars_have_no_value_and_nothing_waits() {
    let world = Build::default().world();
    let wallet = dollar_trader(&world, 100);
    let rows = stream(&world, wallet).await;
    let (_, pending, _) = check(&rows);
    assert_eq!(pending, 0);
    let candles = rows.iter().filter(|row| row.trade.valued == ValueSource::Candle).count();
    assert_eq!(candles, 0);
    assert_eq!(wanted(&world.store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_service_does_not_know_is_final() {
    let service = Service::new(Mode::KnowsNone);
    let world = world(&service);
    let wallet = dollar_trader(&world, 100);
    let rows = stream(&world, wallet).await;
    assert!(rows.iter().any(|row| row.trade.valued == ValueSource::Unknown));
    assert!(!rows.iter().any(|row| row.trade.valued == ValueSource::Pending));
}

/// Time for the side to ask again.
async fn wait_for_values(world: &World, wallet: Wallet) -> Vec<Row> {
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let rows = stream(world, wallet).await;
        if rows.iter().all(|row| row.trade.valued != ValueSource::Pending) {
            return rows;
        }
    }
    panic!("values were not filled in");
}

#[tokio::test(start_paused = true)]
async fn what_a_failing_service_left_open_is_filled_in_later() {
    let service = Service::new(Mode::Refuses);
    let world = world(&service);
    let wallet = dollar_trader(&world, 600);
    let before = stream(&world, wallet).await;
    let (learned, pending, stated) = check(&before);
    assert!(pending >= 200, "{pending} rows wait");
    // Also by a server that was started anew.
    let world = world.restart().await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(check(&stream(&world, wallet).await), (learned, pending, stated));
    service.set(Mode::Price(150));
    let after = wait_for_values(&world, wallet).await;
    assert_eq!(check(&after), (learned + pending, 0, stated));
    assert_eq!(wanted(&world.store).await, 0);
    // Rows with a value kept it.
    for (before, after) in before.iter().zip(&after) {
        assert!(before.trade.native.is_none() || before.trade == after.trade);
    }
}

/// Values are filled in before a command reads, as it ends before the next background pass.
#[tokio::test(start_paused = true)]
async fn what_an_earlier_call_left_open_is_filled_in_at_once_where_that_is_asked_for() {
    let service = Service::new(Mode::Refuses);
    let world = world(&service);
    let wallet = dollar_trader(&world, 600);
    let (learned, pending, stated) = check(&stream(&world, wallet).await);
    assert!(pending >= 200, "{pending} rows wait");
    let world = world.restart().await;
    service.set(Mode::Price(150));
    world.history.complete_values(&wallet).await;
    assert_eq!(check(&stream(&world, wallet).await), (learned + pending, 0, stated));
    assert_eq!(wanted(&world.store).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_silent_service_holds_a_stream_up_once_and_not_for_long() {
    let begun = Instant::now();
    let without = Build::default().world();
    stream(&without, dollar_trader(&without, 2000)).await;
    let plain = begun.elapsed();
    let service = Service::new(Mode::Silent);
    let world = world(&service);
    let wallet = dollar_trader(&world, 2000);
    let begun = Instant::now();
    let rows = stream(&world, wallet).await;
    let waited = begun.elapsed();
    assert!(waited <= plain + Duration::from_secs(4), "{waited:?} against {plain:?}");
    let (learned, pending, stated) = check(&rows);
    service.set(Mode::Price(150));
    let after = wait_for_values(&world, wallet).await;
    assert_eq!(check(&after), (learned + pending, 0, stated));
}

both_arms! {
    a_row_that_is_read_otherwise_keeps_nothing,
    an_exact_value_that_a_second_read_cannot_see_stays,
    rows_that_wait_are_found_filled_once_and_forgotten_with_their_rows,
    a_side_payment_waits_with_its_rows_and_goes_with_them,
    a_side_payment_stays_with_rows_that_a_second_read_leaves_out,
    prices_of_a_chunk_are_kept_by_chain_and_minute,
}

async fn rows(store: &Store, id: WalletId) -> Vec<Trade> {
    let rows = store.view().unwrap().rows(id, Position::Start, 0, 99).await.unwrap();
    rows.into_iter().map(|row| row.trade).collect()
}

async fn wanted(store: &Store) -> usize {
    let view = store.view().unwrap();
    view.wanted_values(ChainId(1), &WantedPlace::default(), 99).await.unwrap().len()
}

fn valued(trade: Trade, native: Option<u64>, valued: ValueSource) -> Trade {
    Trade { native: native.map(Units::from), valued, ..trade }
}

/// Two rows of one transaction.
fn pair(height: u64, native: Option<u64>, how: ValueSource) -> Vec<Trade> {
    let sell = Trade { side: Side::Sell, ..trade(1_000, height, 4) };
    let mut buy = Trade { side: Side::Buy, mint: trade(1, 1, 5).mint, ..sell.clone() };
    buy.key.leg += 1;
    [sell, buy].map(|row| valued(row, native, how)).to_vec()
}

#[tokio::test]
async fn a_row_that_is_read_again_keeps_the_value_that_it_was_given() {
    use ValueSource::{Candle, Direct, Pending, ReferencePool, Unknown};
    for (given, read, kept) in [
        (ReferencePool, (Some(9), Candle), (Some(5), ReferencePool)),
        (ReferencePool, (Some(9), ReferencePool), (Some(5), ReferencePool)),
        (ReferencePool, (None, Pending), (Some(5), ReferencePool)),
        (ReferencePool, (None, Unknown), (Some(5), ReferencePool)),
        // A value in the transaction is no estimate.
        (ReferencePool, (Some(9), Direct), (Some(9), Direct)),
        // The transaction shows that it has none.
        (Direct, (None, Unknown), (None, Unknown)),
    ] {
        let store = arms::embedded();
        let id = store.intern(&wallet(1)).await.unwrap().id;
        store.write_chunk(chunk(id, 10, 20, pair(15, Some(5), given))).await.unwrap();
        store.write_chunk(chunk(id, 14, 16, pair(15, read.0, read.1))).await.unwrap();
        let found: Vec<_> =
            rows(&store, id).await.iter().map(|row| (row.native, row.valued)).collect();
        assert_eq!(found, [(kept.0.map(Units::from), kept.1); 2], "{given:?} then {read:?}");
        assert_eq!(wanted(&store).await, 0);
    }
}

async fn a_row_that_is_read_otherwise_keeps_nothing(store: Store) {
    let id = store.intern(&wallet(1)).await.unwrap().id;
    let given = pair(15, Some(5), ValueSource::ReferencePool);
    let mut other = pair(15, None, ValueSource::Pending);
    other[1].units = Some(Units::from(77));
    store.write_chunk(chunk(id, 10, 20, given)).await.unwrap();
    store.write_chunk(chunk(id, 10, 20, other.clone())).await.unwrap();
    assert_eq!(rows(&store, id).await, other);
    assert_eq!(wanted(&store).await, 1);
}

/// Nodes prune traces and states of old blocks: what an earlier read saw cannot be read again.
async fn an_exact_value_that_a_second_read_cannot_see_stays(store: Store) {
    use ValueSource::{Direct, Pending, ReferencePool, Route, Unknown};
    let id = store.intern(&wallet(1)).await.unwrap().id;
    let first = pair(15, Some(5), Direct);
    let tx = first[0].key.tx;
    store.write_chunk(chunk(id, 10, 20, first.clone())).await.unwrap();
    let again = async |trades: Vec<Trade>, unshown: HashSet<_>| {
        let reread = Some(HashSet::from([tx]));
        let again = Chunk { reread, unshown, ..chunk(id, 10, 20, trades) };
        let Written::Stored { count, .. } = store.write_chunk(again).await.unwrap() else {
            panic!()
        };
        let rows = rows(&store, id).await;
        assert_eq!((count, wanted(&store).await), (u64::try_from(rows.len()).unwrap(), 0));
        rows
    };
    let corrected = pair(15, Some(7), Route);
    for (read, kept) in [
        (pair(15, None, Unknown), &first),
        (pair(15, None, Pending), &first),
        (pair(15, Some(9), ReferencePool), &first),
        // Without the payment it is no trade.
        (vec![], &first),
        // What this decoder finds in the transaction itself.
        (corrected.clone(), &corrected),
    ] {
        assert_eq!(again(read.clone(), HashSet::from([tx])).await, *kept, "{read:?}");
    }
    // With all calls known it is no trade; and without a trade nothing shows that an earlier read
    // saw more.
    let none = pair(15, None, Unknown);
    assert_eq!(again(none.clone(), HashSet::new()).await, none);
    assert_eq!(again(vec![], HashSet::from([tx])).await, []);
    // The payment of a purchase is always visible: a purchase that is no longer found was none.
    let [sell, buy] = first.try_into().unwrap();
    for (row, kept) in [(buy, false), (sell, true)] {
        store.write_chunk(chunk(id, 10, 20, vec![row.clone()])).await.unwrap();
        let expected = if kept { vec![row] } else { vec![] };
        assert_eq!(again(vec![], HashSet::from([tx])).await, expected);
    }
}

async fn rows_that_wait_are_found_filled_once_and_forgotten_with_their_rows(store: Store) {
    let id = store.intern(&wallet(1)).await.unwrap().id;
    let waiting = |height| pair(height, None, ValueSource::Pending);
    store.write_chunk(chunk(id, 10, 20, waiting(15))).await.unwrap();
    store.write_chunk(chunk(id, 21, 30, waiting(25))).await.unwrap();
    // Read again, it waits once.
    store.write_chunk(chunk(id, 10, 20, waiting(15))).await.unwrap();
    let view = store.view().unwrap();
    let all = view.wanted_values(ChainId(1), &WantedPlace::default(), 99).await.unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(view.wanted_values(ChainId(2), &WantedPlace::default(), 99).await.unwrap(), []);
    let first = view.wanted_values(ChainId(1), &WantedPlace::default(), 1).await.unwrap();
    let second = view.wanted_values(ChainId(1), &first[0].place, 9).await.unwrap();
    assert_eq!([first, second].concat(), all);
    assert_eq!(all[0].trades, waiting(25), "newest first");

    let value = |trade: &Trade, native| NewValue {
        key: trade.key,
        units: trade.units,
        native: Some(Units::from(native)),
        valued: ValueSource::Candle,
    };
    let write = async |epoch, values| store.write_values(id, epoch, values, vec![]).await.unwrap();
    // One leg: the other one still waits.
    let [sell, buy] = waiting(25).try_into().unwrap();
    assert!(matches!(write(0, vec![value(&sell, 3_u64)]).await, Written::Stored { count: 4, .. }));
    assert_eq!(wanted(&store).await, 2);
    // A second answer changes nothing, nor does one for other amounts or another epoch.
    let odd = NewValue { units: Some(Units::from(1)), ..value(&buy, 8) };
    write(0, vec![value(&sell, 4), odd]).await;
    assert_eq!(write(1, vec![value(&buy, 8)]).await, Written::Stale);
    let expected = [valued(sell, Some(3), ValueSource::Candle), buy.clone()];
    assert_eq!(rows(&store, id).await[..2], expected);
    write(0, vec![value(&buy, 3)]).await;
    assert_eq!(wanted(&store).await, 1);
    // A block that was taken back waits for nothing, nor do heights that are open again.
    store.write_chunk(chunk(id, 31, 40, waiting(35))).await.unwrap();
    assert_eq!(wanted(&store).await, 2);
    let patch = WalletPatch { reopen: vec![(31, 40)], ..WalletPatch::default() };
    store.update_wallet(id, 0, patch).await.unwrap();
    assert_eq!(wanted(&store).await, 1);
    store.cut_back(id, 12).await.unwrap();
    assert_eq!((wanted(&store).await, rows(&store, id).await.len()), (0, 0));
}

/// A price that came late fills all rows of a transaction as one in time would have: with a fee in
/// addition to the dollars both sides, with a part of the price the dollars alone.
#[tokio::test(start_paused = true)]
async fn a_side_payment_is_known_when_the_price_of_the_dollars_comes() {
    let service = Service::new(Mode::Price(150));
    let world = world(&service);
    let usdc = Address::parse(Family::Solana, USDC).unwrap();
    let token = TokenRecord {
        chain: ChainId(1),
        mint: usdc,
        symbol: None,
        decimals: Some(6),
        asked_at: None,
    };
    // 15 dollars are a tenth of the coin, whose hundredth part is a fee.
    let tenth = 100_000_000;
    for (number, side_payment, other) in
        [(1, 0, true), (2, tenth / 100, true), (3, tenth / 99, false)]
    {
        let id = world.store.intern(&wallet(number)).await.unwrap().id;
        let mut rows = pair(15, None, ValueSource::Pending);
        (rows[0].mint, rows[0].units) = (usdc, Some(Units::from(15_000_000)));
        rows[1].units = Some(Units::from(7));
        for row in &mut rows {
            row.key.time = UnixSeconds(1_700_000_000);
        }
        let side_payment = [(rows[0].key.tx, Units::from(side_payment))].into();
        let tokens = vec![token.clone()];
        world
            .store
            .write_chunk(Chunk { side_payment, tokens, ..chunk(id, 10, 20, rows) })
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let found: Vec<_> =
            self::rows(&world.store, id).await.iter().map(|row| (row.native, row.valued)).collect();
        let value = (Some(Units::from(tenth)), ValueSource::Candle);
        let second = if other { value } else { (None, ValueSource::Unknown) };
        assert_eq!(found, [value, second], "{number}");
        assert_eq!(wanted(&world.store).await, 0);
    }
}

async fn a_side_payment_waits_with_its_rows_and_goes_with_them(store: Store) {
    let id = store.intern(&wallet(1)).await.unwrap().id;
    let write = async |how, side_payment: u64| {
        let rows = pair(15, None, how);
        let side_payment = [(rows[0].key.tx, Units::from(side_payment))].into();
        store.write_chunk(Chunk { side_payment, ..chunk(id, 10, 20, rows) }).await.unwrap();
        let view = store.view().unwrap();
        let all = view.wanted_values(ChainId(1), &WantedPlace::default(), 99).await.unwrap();
        all.iter().map(|one| one.side_payment).collect::<Vec<_>>()
    };
    assert_eq!(write(ValueSource::Pending, 5).await, [Units::from(5)]);
    assert_eq!(write(ValueSource::Pending, 0).await, [Units::ZERO], "read again");
    assert_eq!(write(ValueSource::Pending, 6).await, [Units::from(6)]);
    assert!(write(ValueSource::Unknown, 7).await.is_empty());
    assert_eq!(write(ValueSource::Pending, 0).await, [Units::ZERO]);
}

/// A later price would count the side payment as part of the tokens' value.
async fn a_side_payment_stays_with_rows_that_a_second_read_leaves_out(store: Store) {
    let id = store.intern(&wallet(1)).await.unwrap().id;
    let rows = pair(15, None, ValueSource::Pending);
    let side_payment = [(rows[0].key.tx, Units::from(5))].into();
    store.write_chunk(Chunk { side_payment, ..chunk(id, 10, 20, rows) }).await.unwrap();
    let second = Chunk { reread: Some(HashSet::new()), ..chunk(id, 10, 20, vec![]) };
    store.write_chunk(second).await.unwrap();
    let view = store.view().unwrap();
    let all = view.wanted_values(ChainId(1), &WantedPlace::default(), 99).await.unwrap();
    let left: Vec<_> = all.iter().map(|one| (one.trades.len(), one.side_payment)).collect();
    assert_eq!(left, [(2, Units::from(5))]);
}

/// The pending values of a forgotten wallet block no other wallet's.
#[tokio::test]
async fn rows_of_a_forgotten_wallet_wait_for_nothing() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path(), OPTIONS).unwrap();
    for number in [1, 2] {
        let id = store.intern(&wallet(number)).await.unwrap().id;
        let rows = pair(15, None, ValueSource::Pending);
        store.write_chunk(chunk(id, 10, 20, rows)).await.unwrap();
    }
    assert_eq!(wanted(&store).await, 2);
    store.close().await;
    drop(store);
    assert_eq!(upkeep::forget(place.path(), OPTIONS, &wallet(1), [1; 4]).unwrap(), Some(2));
    let store = Store::open(place.path(), OPTIONS).unwrap();
    assert_eq!(wanted(&store).await, 1);
    store.close().await;
}

async fn prices_of_a_chunk_are_kept_by_chain_and_minute(store: Store) {
    let id = store.intern(&wallet(1)).await.unwrap().id;
    let price = |time, tag| LearnedPrice { time: UnixSeconds(time), price: Price(7), tag };
    let prices = vec![
        PriceRecord::Learned(price(600, 2)),
        PriceRecord::Learned(price(659, 1)),
        PriceRecord::Learned(price(660, 3)),
        PriceRecord::Candle(Minute(10), Some(Price(8))),
        PriceRecord::Candle(Minute(11), None),
    ];
    store.write_chunk(Chunk { prices, ..chunk(id, 0, 9, vec![]) }).await.unwrap();
    let view = store.view().unwrap();
    let learned = async |chain, from, to| {
        let part = (UnixSeconds(from), UnixSeconds(to));
        view.learned_prices(ChainId(chain), part.0, part.1).await.unwrap()
    };
    assert_eq!(learned(1, 0, 9999).await, [price(659, 1), price(600, 2), price(660, 3)]);
    assert_eq!(learned(1, 601, 659).await, [price(659, 1)]);
    assert_eq!(learned(2, 0, 9999).await, []);
    let candle = async |chain, minute| view.candle(ChainId(chain), Minute(minute)).await.unwrap();
    assert_eq!(candle(1, 10).await, KeptCandle::Price(Price(8)));
    assert_eq!(candle(1, 11).await, KeptCandle::Nothing);
    assert_eq!(candle(1, 12).await, KeptCandle::Unasked);
    assert_eq!(candle(2, 10).await, KeptCandle::Unasked);
}
