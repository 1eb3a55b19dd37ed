//! What is Solana's own in a world: nodes, wallets, their source, and what goes wrong at nodes.

use std::sync::Arc;
use std::time::Duration;

use blotter::demo::solana::{Crowd, NodeOptions, SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, Faults, Rate};
use blotter::domain::{ChainId, Wallet};
use blotter::registry::Registry;
use blotter::rpc::Pool;
use blotter::sources::{SolanaLimits, SolanaSource, Source};

use super::chain::Chain;
use super::dice::Dice;
use super::peer::{Peer, Role};
use super::seeds;
use super::trouble::{agreeing, say};
use super::world::{Seeded, Setup, setup};

pub(super) const SOL: ChainId = ChainId(1);

/// How the source is set up.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) limits: SolanaLimits,
    /// Prices come from reference pools.
    pub(super) references: bool,
}

/// Seeds from here on have nodes whose pages of full transactions lie.
pub(super) const LIARS_FROM: u64 = 10_000;

/// Pages that have only the newest slots, or only entries that name the wallet, without saying so.
fn lie(options: &mut NodeOptions, dice: &mut Dice) {
    options.transactions_for_address = true;
    if dice.one_in(3) {
        options.full_pages_from = 300_000_000 + dice.pick(&[1_000, 1_000_000, 20_000_000]);
    }
    options.full_pages_by_owner = !dice.one_in(3);
}

pub(super) fn seeded(seed: u64, dice: &mut Dice) -> Seeded {
    let model = SolanaModel::new(seed);
    let torn = Dice::new(seed, 501).one_in(6);
    let count = dice.pick(&[1, 1, 2, 2, 3]).max(if torn { 3 } else { 1 });
    let nodes: Vec<DemoNode> =
        (0..count).map(|at| DemoNode::new(model.clone(), dice.next() ^ at)).collect();
    for (at, node) in (0..).zip(&nodes) {
        let (transactions_for_address, transaction_index) = (dice.one_in(5), !dice.one_in(3));
        let known = NodeOptions::default();
        let mut options = NodeOptions { transactions_for_address, transaction_index, ..known };
        options.full_page_max = Dice::new(seed, 503).pick(&[100, 1_000]);
        options.list_page_max = Dice::new(seed, 518 + at).pick(&[20, 100, 1_000, 1_000]);
        if seed >= LIARS_FROM && !seeds::is_hostile(seed) && !seeds::strays(seed) {
            lie(&mut options, &mut Dice::new(seed, 504 + at));
        }
        node.set_options(options);
    }
    let wallets: Vec<Wallet> = (0..dice.pick(&[1, 1, 2, 3]))
        .map(|at: u64| {
            let mut plan = plan(&model, dice);
            if torn {
                plan.keeper_percent = 80;
            }
            Wallet { chain: SOL, address: model.add_named(&format!("wallet {at}"), plan) }
        })
        .collect();
    let lies = |node: &DemoNode| {
        let options = node.options();
        let is_whole = options.full_pages_from == 0 && options.full_pages_by_owner;
        options.transactions_for_address && !is_whole
    };
    let lying_pages = nodes.iter().any(lies);
    let hostile = seeds::is_hostile(seed);
    let mut setup = Setup { torn, lying_pages, hostile, ..setup(nodes.len(), dice) };
    setup.solana.references = Dice::new(seed, 500).one_in(2);
    // Often new heights come in while a walk waits for older ones.
    let freshness = Dice::new(seed, 502).pick(&[200, 2_000, 10_000]);
    setup.limits.freshness = Duration::from_millis(freshness);
    if torn {
        setup.endpoints.iter_mut().for_each(|(_, batch)| *batch = Some(1));
    }
    let peers = nodes.into_iter().map(|node| Peer::new(Role::Solana, node)).collect();
    Seeded { chain: Chain::Solana(model), peers, wallets, setup }
}

pub(super) fn no_trades() -> WalletPlan {
    WalletPlan::trades(0)
}

/// So many nodes and one wallet, by lists of signatures or by pages of full transactions.
pub(super) fn plain_of(copies: u64, by_full_pages: bool) -> Seeded {
    let model = SolanaModel::new(1);
    let node = |at| {
        let node = DemoNode::new(model.clone(), at);
        let usual = NodeOptions::default();
        node.set_options(NodeOptions { transactions_for_address: by_full_pages, ..usual });
        Peer::new(Role::Solana, node)
    };
    let peers: Vec<Peer> = (7..7 + copies).map(node).collect();
    let address = model.add_named("plain", WalletPlan::trades(40));
    let setup = setup(peers.len(), &mut Dice::new(1, 1));
    let wallets = vec![Wallet { chain: SOL, address }];
    Seeded { chain: Chain::Solana(model), peers, wallets, setup }
}

pub(super) fn source(settings: &Settings, pool: Pool, registry: &Arc<Registry>) -> Source {
    let chain = registry.chain(SOL).unwrap();
    let source = SolanaSource::new(pool, chain.genesis_hash.clone(), settings.limits.clone())
        .with_busy_account(chain);
    Source::Solana(if settings.references { source.with_references(chain) } else { source })
}

fn plan(model: &SolanaModel, dice: &mut Dice) -> WalletPlan {
    let trades = match dice.range(0, 39) {
        0..=3 => 0,
        4..=7 => dice.range(1, 3),
        8..=29 => dice.range(4, 60),
        30..=37 => dice.range(60, 250),
        38 => dice.range(250, 500),
        _ => dice.pick(&[100, 600, 2000]),
    };
    let usual = WalletPlan::trades(trades);
    let head = model.head();
    let apart = dice.pick(&[1, 2, 10, 100_000, 1_000_000]);
    let last_slot = head - dice.pick(&[0, 1, 200, 5000]);
    let burst = dice.pick(&[1, 3, 20, 64]).min(u32::try_from(trades).unwrap().max(1));
    let crowd = || Crowd { start: trades / 3, count: (trades / 2).max(1) };
    WalletPlan {
        failed_percent: dice.pick(&[0, 8, 60]),
        noise_percent: dice.pick(&[0, 12, 30]),
        keeper_percent: dice.pick(&[0, 20, 80]),
        open_accounts: dice.pick(&[0, 6, 6, 40]),
        spam_accounts: dice.pick(&[0, 4]),
        // Up to five transactions a trade.
        first: Some(last_slot.saturating_sub((trades + 2) * 6 * apart).max(1000)),
        last: Some(last_slot),
        burst,
        crowd: dice.one_in(6).then(crowd),
        live_every: dice.one_in(4).then_some(900),
        ..usual
    }
}

/// One node's lists end at what a client knows, or lack entries, or its transactions are marked as
/// failed. Pages that end early as well would agree with such a list.
pub(super) fn lie_in_agreement(peers: &[Peer], dice: &mut Dice) {
    let last = u64::try_from(peers.len() - 1).unwrap();
    let liar = dice.range(0, last);
    for (at, Peer { node, .. }) in (0..).zip(peers) {
        let usual = Faults { short_page: Rate::NEVER, lies_twice: true, ..node.faults() };
        let faults = if at == liar { agreeing(usual, dice) } else { usual };
        say(&format!("{faults:?}"));
        node.set_faults(faults);
    }
}

/// Each kind with its own chance, most of them off.
pub(super) fn faults(dice: &mut Dice) -> Faults {
    if dice.one_in(8) {
        return Faults::latency(Duration::from_millis(dice.range(0, 400)));
    }
    let strength = dice.pick(&[20, 60, 150]);
    let mut rate = || if dice.one_in(3) { Rate(strength) } else { Rate::NEVER };
    let mut faults = Faults {
        too_many: rate(),
        too_many_with_wait: rate(),
        unavailable: rate(),
        silence: rate(),
        slow_body: rate(),
        cut_body: rate(),
        garbage: rate(),
        html: rate(),
        reordered: rate(),
        wrong_id: rate(),
        null_result: rate(),
        busy: rate(),
        duplicate: rate(),
        lost: rate(),
        empty_page: rate(),
        flipped_order: rate(),
        head_back: rate(),
        ..Faults::default()
    };
    // Uses separate random numbers, so that the other faults are unchanged.
    let mut apart = Dice::new(dice.clone().next(), 503);
    faults.short_page = if apart.one_in(3) { Rate(strength) } else { Rate::NEVER };
    faults.head_back_slots = dice.pick(&[1, 50, 3000]);
    faults.latency = Duration::from_millis(dice.pick(&[0, 1, 80, 900]));
    faults.latency_jitter = Duration::from_millis(dice.pick(&[0, 100, 3000]));
    faults.requests_per_second = dice.one_in(6).then_some(20);
    faults
}
