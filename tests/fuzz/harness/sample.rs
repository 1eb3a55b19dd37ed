//! Sources of each family, and demo chains whose answers are the seeds.

use std::sync::Arc;
use std::time::Duration;

use blotter::demo::evm::{self, EvmModel, NodeOptions, tron};
use blotter::demo::solana::{self, SolanaModel};
use blotter::demo::{DemoNode, DemoTransport};
use blotter::domain::{Address, Height, Moment, TxId};
use blotter::registry::Chain;
use blotter::rpc::{EndpointConfig, HttpMethod, Pool, PoolLimits, Request, SecretUrl, Transport};
use blotter::sources::{Discovery, EvmLimits, EvmParts, EvmSource, SolanaLimits, SolanaSource, Source, TronLimits, TronSource};
use serde_json::{Value, json};

use crate::reading::SECRET;
use crate::tape::Recorder;
use crate::{Epoch, REGISTRY, on_paused_time};

const RPC: &str = "demo.test/rpc";
const EXPLORER: &str = "demo.test/explorer";
const PORTAL: &str = "demo.test/portal";

pub fn chain(slug: &str) -> &'static Chain {
    REGISTRY.chain_named(slug).expect("a chain of the table")
}

pub fn pool(transport: &Arc<dyn Transport>, url: &str) -> Pool {
    let url = format!("https://{url}?key={SECRET}");
    let endpoint = EndpointConfig { batch: Some(10), ..EndpointConfig::new(url) };
    Pool::new(vec![endpoint], Arc::clone(transport), PoolLimits::default(), Arc::new(Epoch), 7)
}

pub fn solana_source(transport: &Arc<dyn Transport>) -> Source {
    let genesis = chain("sol").genesis_hash.clone();
    let source = SolanaSource::new(pool(transport, RPC), genesis, SolanaLimits::default());
    Source::Solana(source.with_references(chain("sol")))
}

/// One that finds the wallet's transactions in this way alone.
pub fn evm_source(transport: &Arc<dyn Transport>, chain: &Chain, way: Discovery) -> Source {
    Source::Evm(EvmSource::new(EvmParts {
        chain: chain.clone(),
        registry: Arc::clone(&REGISTRY),
        rpc: pool(transport, RPC),
        explorer: Some(pool(transport, EXPLORER)),
        portal: Some(pool(transport, PORTAL)),
        discovery: vec![way],
        limits: EvmLimits::default(),
    }))
}

pub fn tron_source(transport: &Arc<dyn Transport>) -> Source {
    Source::Tron(TronSource::new(pool(transport, RPC), chain("tron"), TronLimits::default()))
}

/// A chain with a wallet, and what its nodes answer.
pub struct Sample {
    pub wallet: Address,
    pub ids: Vec<TxId>,
    pub moments: Vec<Moment>,
    pub transport: Arc<dyn Transport>,
}

/// Blocks that are searched for events in a moment.
const NEAR: u64 = 10_000;

/// The height up from which little is to be searched on Tron.
pub fn near_head() -> Height {
    EvmModel::new(11, chain("tron")).head() - NEAR
}

/// How many transactions of each kind become seeds of a decoder.
const OF_EACH: usize = 2;

impl Sample {
    pub fn solana(only: Option<solana::TradeKind>, trades: u64, whole_pages: bool) -> Self {
        let model = SolanaModel::new(5);
        let mixed = solana::WalletPlan::trades(trades);
        let plan = only.map_or(mixed, |kind| solana::WalletPlan::only(kind, trades));
        let wallet = model.add_named("sample", plan);
        let node = DemoNode::new(model.clone(), 1);
        let options = solana::NodeOptions {
            transactions_for_address: whole_pages,
            ..solana::NodeOptions::default()
        };
        node.set_options(options);
        let moment = |row: solana::TrueTrade| Moment { height: row.slot, time: row.time };
        Self {
            wallet,
            ids: model.signatures(wallet).collect(),
            moments: model.truth(wallet).map(moment).collect(),
            transport: Arc::new(DemoTransport::new([(RPC.to_owned(), node)])),
        }
    }

    pub fn evm(chain: &Chain, only: Option<evm::TradeKind>, trades: u64) -> Self {
        let (model, wallet) = contracts(chain, only, trades);
        let rpc = DemoNode::evm(model.clone(), 1);
        let options = NodeOptions { flat_traces: true, transfers: true, ..NodeOptions::default() };
        rpc.set_options(options);
        let lists = DemoNode::explorer(model.clone(), 1);
        let gateway = DemoNode::portal(model.clone(), 1);
        let nodes = [(RPC, rpc), (EXPLORER, lists), (PORTAL, gateway)];
        Self::of_contracts(&model, wallet, DemoTransport::new(nodes.map(named)))
    }

    /// Without lists, whose wallet trades near the head: all blocks in between are searched.
    pub fn tron(only: Option<evm::TradeKind>, trades: u64, lists: bool) -> Self {
        let (model, wallet) = contracts(chain("tron"), only, trades);
        if !lists {
            let (first, last) = (Some(model.head() - NEAR / 2), Some(model.head() - 100));
            model.add_wallet(
                wallet,
                evm::WalletPlan { first, last, ..evm::WalletPlan::trades(trades) },
            );
        }
        let node = DemoNode::tron(model.clone(), 1);
        node.set_options(tron::NodeOptions { lists, ..tron::NodeOptions::default() });
        Self::of_contracts(&model, wallet, DemoTransport::new([named((RPC, node))]))
    }

    fn of_contracts(model: &EvmModel, wallet: Address, transport: DemoTransport) -> Self {
        let moment = |row: evm::TrueTrade| Moment { height: row.height, time: row.time };
        Self {
            wallet,
            ids: model.transactions_of(wallet).map(|(id, _)| id).collect(),
            moments: model.truth(wallet).map(moment).collect(),
            transport: Arc::new(transport),
        }
    }

    /// Answers of the nodes during a read.
    pub fn record(&self, read: impl FnOnce(&Arc<dyn Transport>)) -> Vec<u8> {
        let recorder = Recorder::new(Arc::clone(&self.transport));
        let transport: Arc<dyn Transport> = recorder.clone();
        read(&transport);
        recorder.lines()
    }

    /// What a node answers about the first transactions, one line a method.
    pub fn called(&self, methods: &[&str]) -> Vec<Vec<u8>> {
        self.lines(methods, |method, id| {
            let params = match method {
                "getTransaction" => json!([id, {"maxSupportedTransactionVersion": 1}]),
                "debug_traceTransaction" => json!([id, {"tracer": "callTracer"}]),
                _ => json!([id]),
            };
            let call = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
            self.post("", &call)["result"].take()
        })
    }

    /// The same of paths that take an id.
    pub fn posted(&self, paths: &[&str]) -> Vec<Vec<u8>> {
        self.lines(paths, |path, id| self.post(path, &json!({"value": id})))
    }

    fn lines(&self, what: &[&str], ask: impl Fn(&str, &str) -> Value) -> Vec<Vec<u8>> {
        let ids = self.ids.iter().take(OF_EACH);
        ids.map(|id| {
            let answer = |what: &&str| ask(what, &id.to_string()).to_string().into_bytes();
            what.iter().map(answer).collect::<Vec<_>>().join(b"\n".as_slice())
        })
        .collect()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let request = Request {
            method: HttpMethod::Post,
            url: SecretUrl::new(format!("https://{RPC}{path}")),
            headers: Vec::new(),
            body: body.to_string().into(),
            timeout: Duration::from_secs(60),
            body_bytes_max: 1 << 24,
        };
        let response = on_paused_time(self.transport.send(request)).expect("the demo answers");
        serde_json::from_slice(&response.body).expect("JSON")
    }
}

fn named((place, node): (&str, DemoNode)) -> (String, DemoNode) {
    (place.to_owned(), node)
}

fn contracts(chain: &Chain, only: Option<evm::TradeKind>, trades: u64) -> (EvmModel, Address) {
    let model = EvmModel::new(11, chain);
    let mixed = evm::WalletPlan::trades(trades);
    let plan = only.map_or(mixed, |kind| evm::WalletPlan::only(kind, trades));
    let wallet = model.add_named("sample", plan);
    (model, wallet)
}
