//! What is the EVM chains' and Tron's own in a world: endpoints of several kinds, wallets, and
//! their source.

use std::sync::Arc;
use std::time::Duration;

use blotter::demo::DemoNode;
use blotter::demo::evm::{
    Crowd, EvmModel, ExplorerOptions, LimitTexts, NodeOptions, PortalOptions, TradeKind,
    WalletPlan, tron,
};
use blotter::domain::Wallet;
use blotter::registry::{self, Registry};
use blotter::rpc::Pool;
use blotter::sources::{Discovery, EvmLimits, EvmParts, EvmSource, Source, TronLimits, TronSource};

use super::chain::Chain;
use super::dice::Dice;
use super::peer::{Peer, Role};
use super::seeds::is_hostile;
use super::way::Way;
use super::world::{Seeded, setup};

/// The head of a chain short enough to be searched for events quickly.
pub(super) const HEAD: u64 = 400_000;

pub(super) fn seeded(way: Way, registry: &Registry, seed: u64, dice: &mut Dice) -> Seeded {
    let slug = match way {
        Way::Lists | Way::Events => "tron",
        // Elsewhere that list shows no inner calls.
        Way::Transfers => "eth",
        Way::Solana | Way::Logs | Way::Explorer | Way::Portal => dice.pick(&["eth", "base", "bsc"]),
    };
    let chain = Arc::new(registry.chain_named(slug).unwrap().clone());
    let model = EvmModel::with_head(seed, &chain, Some(HEAD));
    let mut roles = roles(way, dice);
    roles.iter_mut().zip(518..).for_each(|(role, stream)| mark(role, &mut Dice::new(seed, stream)));
    let cuts =
        roles.iter().any(|role| matches!(role, Role::Rpc(node) if node.silent_max.is_some()));
    let peers: Vec<Peer> = roles.into_iter().map(|role| peer(&model, role, dice.next())).collect();
    let shows_nonces = matches!(way, Way::Explorer | Way::Portal);
    let counted = shows_nonces && chain.counts_sent && Dice::new(seed, 5).one_in(2);
    // Uses separate random numbers, so that the rest of the seed is unchanged.
    let unwraps = matches!(way, Way::Logs | Way::Transfers) && Dice::new(seed, 517).one_in(8);
    let only = unwraps.then_some(TradeKind::V2);
    let wallets = (0..dice.pick(&[1, 1, 2]))
        .map(|at: u64| {
            let plan = plan(&model, dice);
            let plan = if counted { without_code(plan, seed) } else { plan };
            // A node that truncates its answers would hide the rest of a single block.
            let crowd = plan.crowd.filter(|_| !cuts);
            let plan = WalletPlan { only: only.or(plan.only), crowd, ..plan };
            Wallet { chain: chain.id, address: model.add_named(&format!("wallet {at}"), plan) }
        })
        .collect();
    let mut setup = setup(peers.len(), dice);
    (setup.counted, setup.only, setup.hostile) = (counted, only, is_hostile(seed));
    setup.limits.freshness = Duration::from_millis(dice.pick(&[200, 2_000, 10_000]));
    Seeded { chain: Chain::Evm(model, chain, way), peers, wallets, setup }
}

pub(super) fn plain(way: Way, registry: &Registry) -> Seeded {
    plain_of(way, registry, 1)
}

/// So many endpoints of each kind.
pub(super) fn plain_of(way: Way, registry: &Registry, copies: usize) -> Seeded {
    let plan = WalletPlan { first: Some(HEAD / 2), ..WalletPlan::trades(40) };
    planned(way, registry, copies, plan)
}

/// A wallet that often trades up to so many times in one block.
pub(super) fn in_bursts(way: Way, registry: &Registry, burst: u32) -> Seeded {
    let plan = WalletPlan { first: Some(HEAD / 2), burst, ..WalletPlan::trades(120) };
    planned(way, registry, 1, plan)
}

/// A wallet whose nonces count what it sent, or a smart account with the same history.
pub(super) fn counted(way: Way, registry: &Registry, copies: usize, is_plain: bool) -> Seeded {
    let first = Some(HEAD / 2);
    let plan = WalletPlan { first, plain: is_plain, ..WalletPlan::only(TradeKind::V3, 40) };
    planned(way, registry, copies, WalletPlan { noise_percent: 24, ..plan })
}

fn planned(way: Way, registry: &Registry, copies: usize, plan: WalletPlan) -> Seeded {
    let slug = if way.is_tron() { "tron" } else { "eth" };
    let chain = Arc::new(registry.chain_named(slug).unwrap().clone());
    let model = EvmModel::with_head(1, &chain, Some(HEAD));
    let mut roles = vec![match way {
        Way::Lists | Way::Events => {
            let lists = way == Way::Lists;
            Role::Tron(tron::NodeOptions { lists, ..tron::NodeOptions::default() })
        }
        Way::Solana | Way::Logs | Way::Explorer | Way::Transfers | Way::Portal => {
            let transfers = way == Way::Transfers;
            Role::Rpc(NodeOptions { transfers, ..NodeOptions::default() })
        }
    }];
    match way {
        Way::Explorer => roles.push(Role::Explorer(ExplorerOptions::default())),
        Way::Portal => roles.push(Role::Portal(PortalOptions::default())),
        Way::Solana | Way::Logs | Way::Transfers | Way::Lists | Way::Events => {}
    }
    let all = roles.into_iter().flat_map(|role| std::iter::repeat_n(role, copies));
    let peers: Vec<Peer> = all.map(|role| peer(&model, role, 7)).collect();
    let wallets = vec![Wallet { chain: chain.id, address: model.add_named("plain", plan) }];
    let setup = setup(peers.len(), &mut Dice::new(1, 1));
    Seeded { chain: Chain::Evm(model, chain, way), peers, wallets, setup }
}

pub(super) fn peer(model: &EvmModel, role: Role, number: u64) -> Peer {
    let model = model.clone();
    let node = match role {
        Role::Explorer(_) => DemoNode::explorer(model, number),
        Role::Portal(_) => DemoNode::portal(model, number),
        Role::Tron(_) => DemoNode::tron(model, number),
        Role::Rpc(_) | Role::Solana => DemoNode::evm(model, number),
    };
    Peer::new(role, node)
}

/// Endpoints as they are when nothing is wrong with them.
fn roles(way: Way, dice: &mut Dice) -> Vec<Role> {
    let nodes = dice.pick(&[1, 2, 2, 3]);
    let mut roles: Vec<Role> = (0..nodes)
        .map(|at| match way {
            Way::Lists | Way::Events => tron_node(way, at, dice),
            Way::Solana | Way::Logs | Way::Explorer | Way::Transfers | Way::Portal => {
                Role::Rpc(rpc_node(way, dice))
            }
        })
        .collect();
    let lists = dice.pick(&[1, 1, 2]);
    if way == Way::Explorer {
        let blockscout = dice.one_in(2);
        let rows_max = dice.pick(&[20, 1_000, 10_000]);
        let options = ExplorerOptions { blockscout, rows_max, ..ExplorerOptions::default() };
        roles.extend((0..lists).map(|_| Role::Explorer(options.clone())));
    }
    if way == Way::Portal {
        let transactions_max = dice.pick(&[7, 500]);
        let options = PortalOptions { transactions_max, ..PortalOptions::default() };
        roles.extend((0..lists).map(|_| Role::Portal(options.clone())));
    }
    roles
}

/// Fixed limits of an endpoint. Uses separate random numbers, so that the rest of the seed is
/// unchanged.
fn mark(role: &mut Role, dice: &mut Dice) {
    match role {
        Role::Rpc(node) if dice.one_in(4) => {
            node.silent_max = Some(dice.pick(&[100, 100, 1_000, 10_000]));
        }
        Role::Explorer(lists) => lists.flags_booleans = dice.one_in(3),
        Role::Rpc(_) | Role::Solana | Role::Portal(_) | Role::Tron(_) => {}
    }
}

fn rpc_node(way: Way, dice: &mut Dice) -> NodeOptions {
    let texts = [LimitTexts::Infura, LimitTexts::Reth, LimitTexts::PublicNode, LimitTexts::Curt];
    NodeOptions {
        log_blocks_max: dice.pick(&[None, None, Some(10_000), Some(2_000)]),
        texts: dice.pick(&texts),
        traces: !dice.one_in(3),
        state_blocks: dice.one_in(3).then_some(128),
        transfers: way == Way::Transfers,
        log_times: dice.one_in(2),
        ..NodeOptions::default()
    }
}

fn tron_node(way: Way, at: u32, dice: &mut Dice) -> Role {
    // Uses separate random numbers, so that the rest of the seed is unchanged. One node keeps them.
    let lacks_calls = at > 0 && Dice::new(dice.clone().next(), 513).one_in(3);
    Role::Tron(tron::NodeOptions {
        lists: way == Way::Lists,
        page_max: dice.pick(&[200, 200, 20]),
        solid: !dice.one_in(6) || at == 0,
        inner_calls: !lacks_calls,
        ..tron::NodeOptions::default()
    })
}

/// Its nonces count what it sent.
fn without_code(plan: WalletPlan, seed: u64) -> WalletPlan {
    let only = Some(Dice::new(seed, 6).pick(&[TradeKind::V2, TradeKind::V3]));
    WalletPlan { plain: true, only, ..plan }
}

fn plan(model: &EvmModel, dice: &mut Dice) -> WalletPlan {
    let trades = match dice.range(0, 19) {
        0 => 0,
        1..=3 => dice.range(1, 3),
        4..=15 => dice.range(4, 60),
        _ => dice.range(60, 200),
    };
    let apart = dice.pick(&[1, 10, 100, 250]);
    let last = model.head() - dice.pick(&[0, 1, 200, 5000]);
    let crowd = || Crowd { start: trades / 3, count: (trades / 2).max(1) };
    WalletPlan {
        failed_percent: dice.pick(&[0, 6, 40]),
        noise_percent: dice.pick(&[0, 24, 40]),
        first: Some(last.saturating_sub((trades + 2) * 6 * apart).max(1_000)),
        last: Some(last),
        burst: dice.pick(&[1, 3, 20]).min(u32::try_from(trades).unwrap().max(1)),
        crowd: dice.one_in(8).then(crowd),
        live_every: dice.one_in(4).then_some(900),
        ..WalletPlan::trades(trades)
    }
}

pub(super) fn source(
    way: Way,
    chain: &registry::Chain,
    registry: &Arc<Registry>,
    pool: impl Fn(fn(&Role) -> bool) -> Option<Pool>,
) -> Source {
    if way.is_tron() {
        let pool = pool(|role| matches!(role, Role::Tron(_))).unwrap();
        // Contracts run on this chain from its first block on.
        let limits = TronLimits { events_from: 0, ..TronLimits::default() };
        return Source::Tron(TronSource::new(pool, chain, limits));
    }
    let first = match way {
        Way::Explorer => Some(Discovery::Explorer),
        Way::Transfers => Some(Discovery::Alchemy),
        Way::Portal => Some(Discovery::Portal),
        Way::Solana | Way::Logs | Way::Lists | Way::Events => None,
    };
    Source::Evm(EvmSource::new(EvmParts {
        chain: chain.clone(),
        registry: Arc::clone(registry),
        rpc: pool(|role| matches!(role, Role::Rpc(_))).unwrap(),
        explorer: pool(|role| matches!(role, Role::Explorer(_))),
        portal: pool(|role| matches!(role, Role::Portal(_))),
        discovery: first.into_iter().chain([Discovery::Logs]).collect(),
        limits: EvmLimits::default(),
    }))
}
