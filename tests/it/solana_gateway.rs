//! A gateway next to Solana's nodes: it shows transactions that no list names, and none of its
//! faults costs a row.

use std::collections::BTreeSet;
use std::sync::Arc;

use blotter::demo::evm::PortalOptions;
use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, DemoTransport, Faults, Rate, Refusal};
use blotter::domain::{Address, Height, TxId};
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, Transport};
use blotter::sources::{GapRequest, RawTx, ScanTarget, SolanaLimits, SolanaSource, Source};

use crate::support::reading::{all_of, lane};
use crate::support::script::Epoch;

/// Slots of the newest gap: within what a gateway is asked for.
const GAP: u64 = 8_000;

struct World {
    model: SolanaModel,
    node: DemoNode,
    gateway: DemoNode,
    wallet: Address,
}

/// A wallet for which keepers trade, at nodes that list no token accounts.
fn world() -> World {
    let model = SolanaModel::new(5);
    let plan = WalletPlan {
        keeper_percent: 80,
        open_accounts: 256,
        live_every: Some(40),
        last: Some(model.head() - 2 * GAP),
        ..WalletPlan::trades(400)
    };
    let wallet = model.add_named("followed", plan);
    let node = DemoNode::new(model.clone(), 1);
    let refused = vec![("getTokenAccountsByOwner", Refusal::NoMethod)];
    node.set_faults(Faults { refused, ..Faults::none() });
    let gateway = DemoNode::solana_portal(model.clone(), 2);
    World { model, node, gateway, wallet }
}

impl World {
    fn source(&self, with_gateway: bool) -> Source {
        let mounts = [("node.test/sol", &self.node), ("gateway.test/sol", &self.gateway)];
        let mounts = mounts.map(|(name, node)| (name.to_owned(), node.clone()));
        let transport: Arc<dyn Transport> = Arc::new(DemoTransport::new(mounts));
        let pool = |url: &str| {
            let endpoints = vec![EndpointConfig::new(url)];
            let clock = Arc::new(Epoch);
            Pool::new(endpoints, Arc::clone(&transport), PoolLimits::default(), clock, 7)
        };
        let limits = SolanaLimits::default();
        let source = SolanaSource::new(pool("https://node.test/sol"), None, limits);
        let gateway = with_gateway.then(|| pool("https://gateway.test/sol"));
        Source::Solana(source.with_gateway(gateway))
    }

    fn low(&self) -> Height {
        self.model.head() - GAP
    }

    /// The transactions of the newest gap.
    async fn read(&self, with_gateway: bool) -> BTreeSet<TxId> {
        self.read_gap(with_gateway, self.low(), None).await
    }

    async fn read_gap(
        &self,
        with_gateway: bool,
        low: Height,
        high: Option<Height>,
    ) -> BTreeSet<TxId> {
        let request = GapRequest { low, high, first: false, ..all_of(self.wallet) };
        let mut reader = self.source(with_gateway).read(request);
        let mut found = BTreeSet::new();
        let mut reached = None;
        while let Some(chunk) = reader.next().await.unwrap() {
            for tx in chunk.txs {
                let RawTx::Solana(tx, _) = tx else { panic!("another family") };
                assert!(found.insert(tx.id().unwrap()), "twice");
            }
            reached = Some(chunk.low);
        }
        assert_eq!(reached, Some(low));
        found
    }

    /// A trade in a slot of which no list names anything: where a transaction of the wallet is next to
    /// it, that one shows the token accounts.
    async fn hidden(&self) -> (Height, TxId) {
        let newest: Vec<_> = self.model.truth(self.wallet).take(200).collect();
        for trade in newest {
            if self.read_gap(false, trade.slot, Some(trade.slot)).await.is_empty() {
                return (trade.slot, trade.signature);
            }
        }
        panic!("lists name every trade");
    }

    fn trades(&self) -> BTreeSet<TxId> {
        let newest = self.model.truth(self.wallet).take_while(|trade| trade.slot >= self.low());
        newest.map(|trade| trade.signature).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_shows_trades_that_no_list_names() {
    let world = world();
    let (slot, hidden) = world.hidden().await;
    let found = world.read_gap(true, slot, Some(slot)).await;
    assert_eq!(found, BTreeSet::from([hidden]));
    world.gateway.reset_stats();
    assert!(world.read(true).await.is_superset(&world.trades()));
    let asked = world.gateway.stats().calls_of("finalized-stream");
    assert!((1..=2).contains(&asked), "{asked}");
}

/// It is behind, away, forgets, or has answers of a few transactions each: what the lists show
/// comes all the same, and each answer of a few is followed by the next.
#[tokio::test(start_paused = true)]
async fn a_gateway_that_fails_costs_no_row() {
    let world = world();
    let (listed, all) = (world.read(false).await, world.read(true).await);
    for lag in [GAP / 2, 2 * GAP] {
        world.gateway.set_options(PortalOptions { lag, ..PortalOptions::default() });
        assert!(world.read(true).await.is_superset(&listed), "{lag}");
    }
    world.gateway.set_options(PortalOptions { transactions_max: 20, ..PortalOptions::default() });
    assert_eq!(world.read(true).await, all);
    world.gateway.set_options(PortalOptions::default());
    world.gateway.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    assert_eq!(world.read(true).await, listed);
    world.gateway.set_faults(Faults { garbage: Rate::ALWAYS, ..Faults::none() });
    assert_eq!(world.read(true).await, listed);
}

/// A gateway of another fork names transactions that no node has.
#[tokio::test(start_paused = true)]
async fn what_no_node_returns_is_no_row() {
    let mut world = world();
    let listed = world.read(false).await;
    let other = SolanaModel::new(6);
    other.add_wallet(world.wallet, WalletPlan { live_every: Some(30), ..WalletPlan::trades(400) });
    world.gateway = DemoNode::solana_portal(other, 2);
    assert_eq!(world.read(true).await, listed);
}

/// A long gap is not scanned: lists alone.
#[tokio::test(start_paused = true)]
async fn a_gateway_is_not_asked_for_a_whole_history() {
    let world = world();
    let mut reader = world.source(true).read(all_of(world.wallet));
    while reader.next().await.unwrap().is_some() {}
    assert_eq!(world.gateway.stats().requests, 0);
}

#[tokio::test(start_paused = true)]
async fn a_scan_sees_wallets_that_trade_by_owner_alone() {
    let world = world();
    let (slot, _) = world.hidden().await;
    world.model.set_head(slot);
    let idle = Address::Solana([77; 32]);
    world
        .model
        .add_wallet(idle, WalletPlan { last: Some(slot - 2 * GAP), ..WalletPlan::trades(3) });
    let target = |wallet| ScanTarget { wallet, top: slot - 1, seen: slot - 1 };
    let targets = [target(world.wallet), target(idle)];
    let moved = async |with_gateway: bool| {
        let scanned = world.source(with_gateway).scan(&targets, &lane()).await.unwrap();
        scanned.moved
    };
    assert!(moved(false).await.is_empty());
    assert_eq!(moved(true).await, [(world.wallet, slot)]);
}
