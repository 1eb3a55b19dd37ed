//! The first window of account lists is requested before it is proved. If another window proves
//! right, that one is delivered, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use blotter::demo::evm::{EvmModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport};
use blotter::domain::{Address, Doubts, TxId};
use blotter::registry::Registry;
use blotter::rpc::{
    EndpointConfig, Pool, PoolLimits, Request, Response, SecretUrl, Transport, TransportError,
};
use blotter::sources::{
    Discovery, EvmLimits, EvmParts, EvmSource, GapRequest, RawTx, RunAhead, Source,
};
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::sleep;

use crate::support::reading::all_of;
use crate::support::script::Epoch;

/// Two answers for each of three lists.
const PAGES: usize = 6;
/// Blocks by which an index falls behind, which hide a part of the wallet's transactions.
const FALLEN: u64 = 400_000;
const WORKED_ON: &str =
    "Some internal transactions within this block range have not yet been processed";

/// What an index does from the wallet's first page on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// All lists are behind, until each was looked at once after the pages.
    FallsBehind,
    /// Before, it works on the newest calls, and refuses to list any.
    ShowsCallsLate,
}

#[derive(Debug)]
struct Index {
    inner: DemoTransport,
    wallet: String,
    head: u64,
    trouble: Trouble,
    pages: AtomicUsize,
    looks: AtomicUsize,
}

impl Index {
    fn is_list(request: &Request) -> bool {
        request.url.expose().contains("module=account")
    }

    /// The same request of an index that is behind.
    fn behind(&self, request: Request) -> Request {
        let url = request.url.expose();
        let (before, rest) = url.split_once("endblock=").unwrap();
        let (end, after) = rest.split_once('&').unwrap();
        let end = end.parse::<u64>().unwrap().min(self.head - FALLEN);
        let url = SecretUrl::new(format!("{before}endblock={end}&{after}"));
        Request { url, ..request }
    }

    /// The answer in place of the index's own.
    fn refusal(&self, request: &Request) -> Option<Response> {
        let is_early = self.pages.load(Ordering::Relaxed) == 0;
        let is_calls = request.url.expose().contains("action=txlistinternal");
        let refuses = self.trouble == Trouble::ShowsCallsLate && is_early && is_calls;
        let body = json!({"status": "2", "message": WORKED_ON, "result": []}).to_string();
        refuses.then(|| Response { status: 200, retry_after: None, body: body.into() })
    }

    fn is_behind(&self, is_own: bool) -> bool {
        let count = if is_own { &self.pages } else { &self.looks };
        let most = if is_own { PAGES } else { PAGES / 2 };
        let is_begun = is_own || self.pages.load(Ordering::Relaxed) > 0;
        let is_early = is_begun && count.fetch_add(1, Ordering::Relaxed) < most;
        is_early && self.trouble == Trouble::FallsBehind
    }
}

impl Transport for Index {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            if !Self::is_list(&request) {
                return self.inner.send(request).await;
            }
            let is_own = request.url.expose().contains(&self.wallet);
            if let Some(refusal) = self.refusal(&request).filter(|_| !is_own) {
                return Ok(refusal);
            }
            let is_behind = self.is_behind(is_own);
            let request = if is_behind { self.behind(request) } else { request };
            self.inner.send(request).await
        })
    }
}

struct World {
    model: EvmModel,
    index: Arc<Index>,
    source: Source,
    wallet: Address,
}

fn world(trouble: Trouble) -> World {
    let registry = Arc::new(Registry::embedded().unwrap());
    let chain = registry.chain_named("eth").unwrap().clone();
    let model = EvmModel::new(11, &chain);
    let wallet = model.add_named("trader", WalletPlan::trades(300));
    let mounts = [
        ("demo.test/rpc".to_owned(), DemoNode::evm(model.clone(), 1)),
        ("demo.test/index".to_owned(), DemoNode::explorer(model.clone(), 2)),
    ];
    let index = Arc::new(Index {
        inner: DemoTransport::new(mounts),
        wallet: format!("0x{}", hex::encode(wallet.bytes())),
        head: model.head(),
        trouble,
        pages: AtomicUsize::new(0),
        looks: AtomicUsize::new(0),
    });
    let pool = |path: &str| {
        let endpoint = EndpointConfig::new(format!("https://demo.test/{path}"));
        let endpoint = EndpointConfig { batch: Some(50), ..endpoint };
        let transport: Arc<dyn Transport> = index.clone();
        Pool::new(vec![endpoint], transport, PoolLimits::default(), Arc::new(Epoch), 7)
    };
    let source = Source::Evm(EvmSource::new(EvmParts {
        chain,
        registry,
        rpc: pool("rpc"),
        explorer: Some(pool("index")),
        portal: None,
        discovery: vec![Discovery::Explorer],
        limits: EvmLimits::default(),
    }));
    World { model, index, source, wallet }
}

impl World {
    /// All transactions that are read, newest first, what is in doubt of them, and errors on the way.
    async fn read(&self) -> (Vec<TxId>, Doubts, usize) {
        let mut gap = all_of(self.wallet);
        let (mut found, mut doubts, mut errors) = (Vec::new(), Doubts::NONE, 0);
        let mut reader = self.source.read(gap.clone());
        loop {
            reader.set_run_ahead(RunAhead::All);
            match reader.next().await {
                Ok(None) => return (found, doubts, errors),
                Ok(Some(chunk)) => {
                    gap.high = chunk.low.checked_sub(1);
                    doubts = doubts.union(chunk.proof.doubts);
                    found.extend(chunk.txs.into_iter().map(|tx| match tx {
                        RawTx::Evm(tx, _) => TxId::Evm(tx.hash),
                        RawTx::Solana(..) | RawTx::Tron(..) => panic!("another family"),
                    }));
                }
                Err(error) => {
                    errors += 1;
                    assert!(errors < 4, "{error}");
                    // The lag that was seen of an index is remembered for a while.
                    sleep(Duration::from_secs(150)).await;
                    reader = self.source.read(GapRequest { resume: None, ..gap.clone() });
                }
            }
        }
    }

    /// How many transactions of true trades were not read.
    fn missing(&self, found: &[TxId]) -> usize {
        let truth = self.model.truth(self.wallet);
        truth.filter(|trade| !found.contains(&trade.hash)).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_window_of_an_index_that_fell_behind_is_not_delivered() {
    let world = world(Trouble::FallsBehind);
    let (found, doubts, errors) = world.read().await;
    assert!(errors > 0, "it never fell behind");
    assert_eq!((world.missing(&found), doubts), (0, Doubts::NONE));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_proves_another_one_is_delivered_as_that() {
    let world = world(Trouble::ShowsCallsLate);
    let (found, doubts, errors) = world.read().await;
    assert!(world.index.pages.load(Ordering::Relaxed) > PAGES, "its pages were not asked again");
    assert_eq!((world.missing(&found), doubts, errors), (0, Doubts::NONE, 0));
    let each: std::collections::HashSet<&TxId> = found.iter().collect();
    assert_eq!(each.len(), found.len(), "a transaction was delivered twice");
}
