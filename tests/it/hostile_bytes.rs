//! Input that is changed at random from a seed: nothing panics, and nothing is accepted that was
//! never issued. `BLOTTER_FUZZ_ROUNDS` makes the run longer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use blotter::api::{Api, ApiLimits, ApiParts, Keys};
use blotter::domain::{ChainId, Cursor, FilterTag, Position, TradeKey, TxId, UnixSeconds, Wallet};
use blotter::registry::Registry;
use blotter::rpc::{Pool, PoolLimits, Request, Response, Transport, TransportError};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::support::mangle::{Dice, mangle};
use crate::support::script::{Epoch, at, calls, lane};
use crate::support::served::{KEY, key, ring};
use crate::support::world::Build;

fn rounds(usual: u64) -> u64 {
    std::env::var("BLOTTER_FUZZ_ROUNDS").map_or(usual, |rounds| rounds.parse().unwrap())
}

#[test]
fn a_cursor_is_what_was_given_or_none() {
    let registry = Registry::embedded().unwrap();
    let text = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";
    let family = registry.chain(ChainId(1)).unwrap().family;
    let wallet = Wallet {
        chain: ChainId(1),
        address: blotter::domain::Address::parse(family, text).unwrap(),
    };
    let mut seed = Dice(1);
    for round in 0..rounds(50_000) {
        let mut id = [0; 64];
        id.fill_with(|| u8::try_from(seed.roll() & 0xff).unwrap());
        let key = TradeKey {
            time: UnixSeconds(u32::try_from(seed.roll() >> 32).unwrap()),
            height: seed.roll(),
            index: u32::try_from(seed.roll() >> 32).unwrap(),
            tx: TxId::solana(&id),
            leg: u16::try_from(round % 7).unwrap(),
        };
        let head = (round % 3 > 0).then(|| seed.roll());
        let position = if round % 4 > 0 { Position::After(key) } else { Position::Start };
        let cursor =
            Cursor { head, filter: FilterTag::default(), live: false, position, passed: None };
        let given = cursor.encode(&wallet);
        assert_eq!(Cursor::decode(&given, &wallet), Ok(cursor));
        let mut changed = given.clone().into_bytes();
        mangle(&mut changed, &mut seed);
        let changed = String::from_utf8_lossy(&changed).into_owned();
        if changed != given {
            assert!(Cursor::decode(&changed, &wallet).is_err(), "{given} {changed}");
        }
    }
}

/// Answers rightly, then changes the bytes.
#[derive(Debug)]
struct Mangler(Mutex<Dice>);

impl Transport for Mangler {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let entry = |call: &Value| serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "result": call["params"][0]});
        let answer: Value = match asked.as_array() {
            Some(all) => all.iter().map(entry).collect(),
            None => entry(&asked),
        };
        let mut body = answer.to_string().into_bytes();
        let mut seed = self.0.lock().unwrap();
        mangle(&mut body, &mut seed);
        let status = [200, 200, 200, 429, 500][seed.below(5)];
        let response = Response { status, retry_after: None, body: body.into() };
        Box::pin(std::future::ready(Ok(response)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_garbled_envelope_ends_in_an_error_and_in_time() {
    for seed in 0..rounds(300) {
        let transport: Arc<dyn Transport> = Arc::new(Mangler(Mutex::new(Dice(seed))));
        let pool = Pool::new(vec![at("one")], transport, PoolLimits::default(), Arc::new(Epoch), 1);
        let asked = calls(7);
        let options = lane(1);
        let answers = tokio::time::timeout(Duration::from_secs(600), pool.batch(&asked, &options));
        assert_eq!(answers.await.expect("it ends").len(), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn a_garbled_query_is_a_client_error() {
    let world = Build::default().world();
    let keys = Keys::new(ring(&[(KEY, key(1, |_| {}))]));
    let limits = ApiLimits { stream_window: Duration::from_secs(1), ..ApiLimits::default() };
    let api = Api::new(ApiParts { history: world.history.clone(), keys, limits, seed: 1 });
    let routes = api.routes();
    let wallet = world.add("fuzzed", blotter::demo::solana::WalletPlan::trades(3)).address;
    let good = format!("/v1/wallets/{wallet}/history?chain=sol&limit=2&cursor=AbC-_");
    let (mut seed, mut refused) = (Dice(7), 0);
    for _ in 0..rounds(1500) {
        let mut target = good.clone().into_bytes();
        mangle(&mut target, &mut seed);
        let target: String = target
            .iter()
            .map(|b| if b.is_ascii_graphic() { char::from(*b) } else { '%' })
            .collect();
        if target.parse::<http::Uri>().is_err() || !target.starts_with('/') || target.len() > 8000 {
            continue;
        }
        let answer =
            warp::test::request().path(&target).header("x-api-key", KEY).reply(&routes).await;
        assert!(answer.status().as_u16() < 500, "{target}: {answer:?}");
        refused += u64::from(answer.status().as_u16() >= 400);
    }
    assert!(refused > 100, "only {refused} were refused");
}
