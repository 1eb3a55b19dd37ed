//! A keeper's fill into accounts that another authority has closed since, from the node to the rows.

use std::collections::HashMap;
use std::sync::Arc;

use blotter::domain::{Address, ChainId, Clock, Side, Wallet};
use blotter::history::{Extent, History, HistoryLimits, HistoryParts, Tasks};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Pool, PoolLimits};
use blotter::sources::{SolanaLimits, SolanaSource, Source};
use blotter::store::{Store, StoreOptions};

use crate::decode::RAYDIUM;
use crate::support::paused::{Disk, TestClock};
use crate::support::solana::{Tx, key};
use crate::support::solana_node::{Chain, GENESIS, Net, Ways};
use crate::support::world::{World, finish};

/// The keeper trades as the delegate of the wallet's account; the message names its accounts alone.
fn filled() -> Tx {
    let mut tx = Tx::new("keeper");
    tx.account("w bonk", "BONK", "w", 100).account("p bonk", "BONK", "pool", 0);
    tx.account("w usdc", "USDC", "w", 0).account("p usdc", "USDC", "pool", 90);
    tx.call(RAYDIUM, &["w bonk", "p bonk", "p usdc", "w usdc", "keeper", "pool"], &[9]);
    tx.transfer(2, "w bonk", "p bonk", "keeper", 50);
    tx.transfer(2, "p usdc", "w usdc", "pool", 45);
    tx
}

/// The wallet opened both accounts long before.
fn opened() -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w bonk", "BONK", "w", 100).account("w usdc", "USDC", "w", 0);
    tx
}

fn history(net: &Arc<Net>) -> History {
    let clock: Arc<dyn Clock> = TestClock::start();
    let transport: Arc<Net> = Arc::clone(net);
    let endpoint =
        EndpointConfig { batch: Some(10), ..EndpointConfig::new("http://node0/".to_owned()) };
    let pool = Pool::new(vec![endpoint], transport, PoolLimits::default(), Arc::clone(&clock), 3);
    let genesis = Some(GENESIS.to_owned());
    let source = Source::Solana(SolanaSource::new(pool, genesis, SolanaLimits::default()));
    let options = StoreOptions { cache_bytes: 4 << 20 };
    History::new(HistoryParts {
        store: Store::in_step(Disk::default(), options).unwrap(),
        registry: Arc::new(Registry::embedded().unwrap()),
        sources: HashMap::from([(ChainId(1), source)]),
        candles: None,
        clock,
        limits: HistoryLimits::default(),
        tasks: Tasks::new(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_fill_into_accounts_that_another_authority_closed_has_its_rows() {
    let (wallet, accounts) = (key("w"), [key("w bonk"), key("w usdc")]);
    let mut chain = Chain::new(10_000);
    chain.add(500, &[wallet, accounts[0], accounts[1]]).shows(opened().json());
    chain.add(700, &accounts).shows(filled().json());
    for account in accounts {
        chain.add(800, &[[5; 32], account]);
    }
    for slot in 0..400 {
        chain.add(2000 + slot, &[wallet]);
    }
    let net = Net::new(chain, vec![Ways::default()]);
    let history = history(&net);
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana(wallet) };
    let walk = || history.walk(World::request(wallet, Extent::All)).unwrap();
    let (_, end) = finish(&mut walk()).await;
    assert!(end.complete, "{end:?}");
    let (rows, end) = finish(&mut walk()).await;
    assert!(end.complete, "{end:?}");
    let got: Vec<_> = rows.iter().map(|row| (row.trade.key.height, row.trade.side)).collect();
    assert_eq!(got, [(700, Side::Sell), (700, Side::Buy)]);
}
