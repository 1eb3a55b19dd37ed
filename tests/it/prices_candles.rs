//! Native prices from a price service: a fake one that has records of a known price and answers as
//! the documented service does.

#![expect(clippy::print_stderr, reason = "shows how far estimates are off")]

use std::sync::{Arc, Mutex};

use blotter::demo::evm::EvmModel;
use blotter::domain::{Price, Units, UnixSeconds};
use blotter::registry::Registry;
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, Transport, TransportError,
};
use blotter::sources::Candles;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::support::prices::Errors;
use super::support::reading::lane;
use super::support::script::Epoch;

/// Keeps a record every so many seconds.
#[derive(Debug)]
struct Service {
    model: EvmModel,
    every: u32,
    status: u16,
    asked: Mutex<Vec<String>>,
}

impl Service {
    fn new(every: u32) -> Arc<Self> {
        let registry = Registry::embedded().unwrap();
        let model = EvmModel::new(3, registry.chain_named("base").unwrap());
        Arc::new(Self { model, every, status: 200, asked: Mutex::default() })
    }

    fn truth(&self, time: u32) -> Price {
        self.model.price_at(self.model.height_at(UnixSeconds(time)))
    }

    fn answer(&self, url: &str) -> Value {
        let query = url.split_once("/batchHistorical?").unwrap().1;
        let mut coins = Value::Null;
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap();
            if name == "coins" {
                coins = serde_json::from_str(&unescaped(value)).unwrap();
            } else {
                assert_eq!((name, value), ("searchWidth", "3600"));
            }
        }
        let (coin, times) = coins.as_object().unwrap().iter().next().unwrap();
        assert_eq!(coin, "coingecko:ethereum");
        let row = |time: &Value| {
            let time = u32::try_from(time.as_u64().unwrap()).unwrap();
            let record = (time + self.every / 2) / self.every * self.every;
            let price = self.truth(record).0;
            let text = format!("{}.{:012}", price / 1_000_000_000_000, price % 1_000_000_000_000);
            let price: Value = serde_json::from_str(&text).unwrap();
            json!({"timestamp": record, "price": price, "confidence": 0.99})
        };
        let prices: Vec<Value> = times.as_array().unwrap().iter().map(row).collect();
        json!({"coins": {coin.clone(): {"symbol": "ETH", "prices": prices}}})
    }
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits: Vec<u8> = rest.by_ref().take(2).collect();
            bytes.extend(hex::decode(digits).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

impl Transport for Service {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        let url = request.url.expose().to_owned();
        let body = self.answer(&url).to_string().into();
        self.asked.lock().unwrap().push(url);
        let status = self.status;
        Box::pin(async move { Ok(Response { status, retry_after: None, body }) })
    }
}

fn candles(service: &Arc<Service>) -> Candles {
    let transport: Arc<dyn Transport> = Arc::<Service>::clone(service);
    let endpoints = vec![EndpointConfig::new("https://prices.test")];
    let pool = Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 7);
    Candles::new(pool, &Registry::embedded().unwrap())
}

const NOW: u32 = 1_767_000_000;

/// For records that are minutes apart, and for records that are an hour apart.
#[tokio::test(start_paused = true)]
async fn estimates_are_near_the_truth() {
    for every in [300, 3_600] {
        let service = Service::new(every);
        let times: Vec<UnixSeconds> = (0..1_000).map(|n| UnixSeconds(NOW - n * 7_907)).collect();
        let prices = candles(&service).prices("base", &times, &lane()).await.unwrap();
        let mut errors = Errors::default();
        for (time, price) in times.iter().zip(&prices) {
            errors
                .add(price.map(|price| Units::from(price.0)), Units::from(service.truth(time.0).0));
        }
        let asked = service.asked.lock().unwrap();
        eprintln!("candles every {every} s: {errors}, {} requests for 1,000", asked.len());
        errors.check(1_000, 0);
        assert!(asked.len() <= 70 && asked.iter().all(|url| url.len() < 2_048), "{}", asked.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_price_depends_on_its_time_alone() {
    let service = Service::new(3_600);
    let times: Vec<UnixSeconds> = (0..90).map(|n| UnixSeconds(NOW - n * 431)).collect();
    let together = candles(&service).prices("base", &times, &lane()).await.unwrap();
    for (time, expected) in times.iter().zip(&together).step_by(9) {
        let alone = candles(&service).prices("base", &[*time], &lane()).await.unwrap();
        assert_eq!(alone, [*expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_service_gives_no_price_and_one_without_a_price_says_so() {
    let mut service = Service::new(300);
    assert_eq!(
        candles(&service).prices("nowhere", &[UnixSeconds(NOW)], &lane()).await,
        Ok(vec![None])
    );
    assert!(service.asked.lock().unwrap().is_empty(), "an unknown coin is not asked for");
    Arc::get_mut(&mut service).unwrap().status = 503;
    assert!(candles(&service).prices("base", &[UnixSeconds(NOW)], &lane()).await.is_err());
}
