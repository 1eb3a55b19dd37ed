//! Chains whose sources are replaced while wallets load.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport, Faults, Rate};
use blotter::domain::{ChainId, Clock, UnixMillis, Wallet};
use blotter::history::{Extent, History, HistoryError, HistoryLimits, HistoryParts, Tasks};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Pool, PoolLimits};
use blotter::sources::{SolanaLimits, SolanaSource, Source};
use blotter::store::{Store, StoreOptions};

use crate::support::paused::{Disk, TestClock};
use crate::support::truth::{facts, same};
use crate::support::world::{World, finish};

/// Panics once when it is armed.
#[derive(Debug)]
struct Trap {
    clock: Arc<dyn Clock>,
    armed: AtomicBool,
}

impl Clock for Trap {
    fn now(&self) -> UnixMillis {
        assert!(!self.armed.swap(false, Ordering::Relaxed), "armed by a test");
        self.clock.now()
    }
}

fn source(node: &DemoNode, clock: &Arc<Trap>, registry: &Registry) -> Source {
    let transport = Arc::new(DemoTransport::new([("node0".to_owned(), node.clone())]));
    let endpoints = vec![EndpointConfig::new("http://node0/".to_owned())];
    let clock: Arc<dyn Clock> = Arc::clone(&clock.clock);
    let pool = Pool::new(endpoints, transport, PoolLimits::default(), clock, 7);
    let genesis = registry.chain(ChainId(1)).unwrap().genesis_hash.clone();
    Source::Solana(SolanaSource::new(pool, genesis, SolanaLimits::default()))
}

/// A worker that restarts after a panic uses the chain's current source: a replaced one is closed.
#[tokio::test(start_paused = true)]
async fn a_worker_that_panicked_goes_on_at_the_endpoints_of_a_reload() {
    let (model, chain) = (SolanaModel::new(1), ChainId(1));
    let [dead, well] = [0, 1].map(|number| DemoNode::new(model.clone(), number));
    dead.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    let registry = Arc::new(Registry::embedded().unwrap());
    let clock = Arc::new(Trap { clock: TestClock::start(), armed: AtomicBool::new(false) });
    let history = History::new(HistoryParts {
        store: Store::in_step(Disk::default(), StoreOptions { cache_bytes: 4 << 20 }).unwrap(),
        registry: Arc::clone(&registry),
        sources: HashMap::from([(chain, source(&dead, &clock, &registry))]),
        candles: None,
        clock: Arc::<Trap>::clone(&clock),
        limits: HistoryLimits::default(),
        tasks: Tasks::new(),
    });
    let wallet = Wallet { chain, address: model.add_named("trapped", WalletPlan::trades(60)) };
    let mut stays = history.walk(World::request(wallet, Extent::All)).unwrap();
    let mut fails = history.walk(World::request(wallet, Extent::All)).unwrap();
    clock.armed.store(true, Ordering::Relaxed);
    let (_, end) = finish(&mut fails).await;
    assert_eq!(end.error, Some(HistoryError::Internal));
    assert_eq!(history.metrics().worker_panics.get(), 1);
    history.replace_sources(HashMap::from([(chain, Some(source(&well, &clock, &registry)))]));
    tokio::time::sleep(HistoryLimits::default().retry_pause_max + Duration::from_secs(1)).await;
    let (rows, end) = finish(&mut stays).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &facts(&model, wallet.address));
}
