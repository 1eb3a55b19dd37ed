//! An API over a store that a test fills itself, and clients for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use blotter::api::{Api, ApiLimits, ApiParts, Drained, KeyInfo, KeyRing, Keys};
use blotter::domain::{
    Address, ChainId, Clock, Height, KeyId, Side, Trade, TradeKey, TxId, Units, UnixMillis,
    UnixSeconds, ValueSource, Wallet,
};
use blotter::history::{History, HistoryLimits, HistoryParts, Tasks};
use blotter::registry::Registry;
use blotter::store::{Chunk, Store, StoreOptions, TokenRecord, Written};
use bytes::Bytes;
use redb::backends::InMemoryBackend;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use warp::http::Response;

use super::source::{self, Node};

/// 2026-11-21T07:05:51Z.
pub(crate) const NOW: UnixMillis = UnixMillis(1_795_244_751_000);
pub(crate) const SOL: ChainId = ChainId(1);
/// The height up to which filled wallets are known.
pub(crate) const HEAD: Height = 1_000_000;
/// Has no limits.
pub(crate) const KEY: &str = "key-without-limits";

#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> UnixMillis {
        NOW
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) history: History,
    pub(crate) keys: Keys,
    store: Store,
    tasks: Tasks,
}

pub(crate) fn key(id: u64, change: impl FnOnce(&mut KeyInfo)) -> KeyInfo {
    let mut info = KeyInfo {
        id: KeyId(id),
        public_id: format!("{id:012x}"),
        name: None,
        rate_millis: None,
        quota: None,
        streams: None,
        chains: None,
        expires: None,
        revoked: false,
    };
    change(&mut info);
    info
}

pub(crate) fn ring(keys: &[(&str, KeyInfo)]) -> KeyRing {
    keys.iter().map(|(text, info)| (Sha256::digest(text).into(), info.clone())).collect()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(ApiLimits::default(), &[])
    }

    pub(crate) fn with(limits: ApiLimits, more_keys: &[(&str, KeyInfo)]) -> Self {
        Self::on(Node::Silent, HistoryLimits::default(), limits, more_keys)
    }

    pub(crate) fn on(
        node: Node,
        history_limits: HistoryLimits,
        limits: ApiLimits,
        more_keys: &[(&str, KeyInfo)],
    ) -> Self {
        let options = StoreOptions { cache_bytes: 8 << 20 };
        let store = Store::in_step(InMemoryBackend::new(), options).unwrap();
        Self::on_store(store, node, history_limits, limits, more_keys)
    }

    pub(crate) fn on_store(
        store: Store,
        node: Node,
        history_limits: HistoryLimits,
        limits: ApiLimits,
        more_keys: &[(&str, KeyInfo)],
    ) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(FixedClock);
        let (registry, tasks) = (Arc::new(Registry::embedded().unwrap()), Tasks::new());
        let history = History::new(HistoryParts {
            store: store.clone(),
            sources: HashMap::from([(SOL, source::solana(node, &registry, Arc::clone(&clock)))]),
            candles: None,
            registry,
            clock,
            limits: history_limits,
            tasks: tasks.clone(),
        });
        let first = [(KEY, key(1, |_| {}))];
        let keys = Keys::new(ring(&[&first, more_keys].concat()));
        let parts = ApiParts { history: history.clone(), keys: keys.clone(), limits, seed: 0xab };
        Self { api: Api::new(parts), history, keys, store, tasks }
    }

    /// Stores trades as all that the wallet did from `low` to the head.
    pub(crate) async fn fill(
        &self,
        wallet: &Wallet,
        low: Height,
        trades: Vec<Trade>,
        tokens: Vec<TokenRecord>,
    ) {
        let record = self.store.intern(wallet).await.unwrap();
        let chunk = Chunk {
            id: record.id,
            epoch: record.epoch,
            low,
            high: HEAD,
            decoder: blotter::decode::solana::DECODER_VERSION,
            resume: None,
            proof: blotter::domain::Proof::default(),
            missing: vec![],
            reread: None,
            unshown: std::collections::HashSet::new(),
            trades,
            tokens,
            accounts: vec![],
            anchors: None,
            prices: vec![],
            side_payment: HashMap::new(),
            checked_at: Some(NOW),
        };
        let written = self.store.write_chunk(chunk).await.unwrap();
        assert!(matches!(written, Written::Stored { .. }));
    }

    /// GET with the key that has no limits.
    pub(crate) async fn get(&self, path: &str) -> Response<Bytes> {
        self.get_as(KEY, path).await
    }

    pub(crate) async fn get_as(&self, key: &str, path: &str) -> Response<Bytes> {
        self.send("GET", path, &[("authorization", &format!("Bearer {key}"))]).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response<Bytes> {
        let mut request = warp::test::request().method(method).path(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.reply(&self.api.routes()).await
    }

    /// Puts it behind a port of its own.
    pub(crate) async fn serve(&self) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let api = self.api.clone();
        let (done, ended) = oneshot::channel();
        self.tasks.spawn(async move {
            let drained = api.serve(listener, async move { drop(stopped.await) }).await;
            done.send(drained).unwrap();
        });
        Served { address, stop, ended }
    }

    pub(crate) async fn close(self) {
        assert!(self.tasks.shutdown(Duration::from_secs(10)).await, "tasks ended");
        self.history.close().await.unwrap();
    }
}

#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<Drained>,
}

impl Served {
    /// Asks it to stop; how it ended comes later.
    pub(crate) fn stop(self) -> oneshot::Receiver<Drained> {
        self.stop.send(()).unwrap();
        self.ended
    }

    /// Sends a GET and leaves the answer to be read.
    pub(crate) async fn open(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n\
             connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// The whole answer as it came over the wire.
    pub(crate) async fn get(&self, path: &str) -> String {
        let mut text = String::new();
        self.open(path).await.read_to_string(&mut text).await.unwrap();
        text
    }
}

/// Reads until the text ends so.
pub(crate) async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        let byte = stream.read_u8().await.unwrap();
        text.push(byte);
    }
    String::from_utf8(text).unwrap()
}

pub(crate) fn wallet(seed: u8) -> Wallet {
    Wallet { chain: SOL, address: Address::Solana([seed; 32]) }
}

/// The wallet's history path.
pub(crate) fn path(wallet: &Wallet) -> String {
    format!("/v1/wallets/{}/history", wallet.address)
}

/// The `number`th oldest trade, one a minute.
pub(crate) fn trade(number: u32) -> Trade {
    let mut tx = [0; 64];
    tx[..4].copy_from_slice(&number.to_be_bytes());
    let key = TradeKey {
        time: UnixSeconds(1_700_000_000 + number * 60),
        height: u64::from(number) + 1,
        index: 0,
        tx: TxId::solana(&tx),
        leg: 0,
    };
    let mint = Address::Solana([u8::try_from(number % 5).unwrap() + 1; 32]);
    Trade {
        key,
        side: if number.is_multiple_of(3) { Side::Sell } else { Side::Buy },
        mint,
        units: Some(Units::from(number)),
        native: Some(Units::from(u64::from(number) * 1_000_000)),
        valued: ValueSource::Direct,
        venue: "Raydium".into(),
    }
}

pub(crate) fn trades(count: u32) -> Vec<Trade> {
    (0..count).rev().map(trade).collect()
}

pub(crate) fn json(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

pub(crate) fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

pub(crate) fn header<'a>(response: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

/// The lines of a stream that are not blank.
pub(crate) fn lines(response: &Response<Bytes>) -> Vec<Value> {
    let lines = text(response).lines().filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// All trades of some lines or pages.
pub(crate) fn trades_of(values: &[Value]) -> Vec<Value> {
    let arrays = values.iter().filter_map(|value| value.get("trades")?.as_array());
    arrays.flatten().cloned().collect()
}
