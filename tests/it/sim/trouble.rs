//! The faults of endpoints of EVM chains and of Tron, for a while.
//!
//! Any endpoint may fail with an error. Of the endpoints of one kind, at most one at a time returns
//! false answers without a sign; if it is the only one, its false answers are transient (see
//! [`Faults::transient`]).

use std::time::Duration;

use blotter::demo::evm::TradeKind;
use blotter::demo::{Faults, Rate, Refusal};
use blotter::domain::TxId;

use super::chain::Chain;
use super::dice::Dice;
use super::peer::{Peer, Role};
use super::solana;
use super::way::Way;
use super::world::World;

/// Blocks of the newest that are not final.
const UNFINAL: u64 = 64;

/// A while in which each endpoint has troubles of its own.
pub(super) fn begin(world: &mut World, dice: &mut Dice) {
    let hidden = hidden_nonce(world);
    // Uses separate random numbers, so that the rest of the seed is unchanged.
    let mut apart = Dice::new(dice.clone().next(), 516);
    say(&format!("at once and in a batch {:?}", world.setup.endpoints));
    for kind in [is_node, is_list] {
        let peers: Vec<&Peer> = world.peers.iter().filter(|peer| kind(&peer.role)).collect();
        let Some(last) = peers.len().checked_sub(1) else { continue };
        let liar = dice.range(0, u64::try_from(last).unwrap());
        for (at, peer) in (0..).zip(&peers) {
            let lies = liar == at && dice.one_in(2);
            let mut faults = faults(&peer.role, lies, dice);
            // Without a payment that an event names, two traces without any are believed.
            if world.setup.only == Some(TradeKind::V2) && apart.one_in(2) {
                faults.nulled = &["calls"];
            }
            if lies && world.setup.hostile {
                faults.lies_twice = world.way == Way::Lists;
                faults = agreeing(faults, &mut Dice::new(dice.clone().next(), 519));
                // Answers to windows that overlap would be cut in step, which is believed.
                if matches!(peer.role, Role::Portal(_)) {
                    faults.cut_at_edge = Rate::NEVER;
                }
            }
            show(peer, lies, &faults);
            peer.node.set_faults(faults);
            options(peer, (lies, hidden), &world.chain, dice);
        }
    }
    withhold(world, dice);
    let ahead = if dice.one_in(8) { Duration::from_secs(30 * 86_400) } else { Duration::ZERO };
    world.clock.set_ahead(ahead);
    say(&format!("head {}, clock ahead by {ahead:?}", world.chain.head()));
}

/// With `BLOTTER_SIM_SHOW` set, what is wrong with each endpoint is printed.
fn is_shown() -> bool {
    std::env::var_os("BLOTTER_SIM_SHOW").is_some()
}

pub(super) fn say(what: &str) {
    if is_shown() {
        eprintln!("{what}");
    }
}

fn show(peer: &Peer, lies: bool, faults: &Faults) {
    let lies = if lies { "which lies" } else { "" };
    say(&format!("{:?} {lies}\n    {faults:?}", peer.role));
}

/// All endpoints work again and return everything; a node may lack old blocks if another has them.
pub(super) fn end(world: &World) {
    world.set_faults(Faults::none);
    world.peers.iter().for_each(Peer::make_well);
    world.chain.withhold(world.poison.as_slice());
    fail_on(world, world.failing.filter(|failing| world.poison == Some(*failing)));
    world.clock.set_ahead(Duration::ZERO);
}

/// Each look-up of a transaction by its id fails at every endpoint: its rows come late.
pub(super) fn fail_on(world: &World, fails_on: Option<TxId>) {
    if fails_on.is_some() {
        world.set_aside.set(true);
    }
    for Peer { node, .. } in &world.peers {
        node.set_faults(Faults { fails_on, ..node.faults() });
    }
}

fn is_node(role: &Role) -> bool {
    matches!(role, Role::Rpc(_) | Role::Tron(_))
}

fn is_list(role: &Role) -> bool {
    matches!(role, Role::Explorer(_) | Role::Portal(_))
}

/// Answers that are false in agreement with what is known already. `BLOTTER_SIM_LIES=hole,hollow`
/// takes some kinds alone.
pub(super) fn agreeing(faults: Faults, dice: &mut Dice) -> Faults {
    let asked = std::env::var("BLOTTER_SIM_LIES").ok();
    let is_asked = |name| asked.as_ref().is_none_or(|all| all.split(',').any(|one| one == name));
    let mut rate = |name, most| {
        let hits = dice.one_in(2);
        if hits && is_asked(name) { Rate(most) } else { Rate::NEVER }
    };
    let hole = rate("hole", 400);
    Faults {
        cut_at_edge: rate("edge", 400),
        hole,
        // What two answers to a page lack is believed.
        lies_twice: faults.lies_twice && hole == Rate::NEVER,
        hollow: rate("hollow", 400),
        shallow: rate("shallow", 400),
        // Answers that are lost on their way count for those that are right.
        marked_failed: rate("failed", 100),
        ..faults
    }
}

fn faults(role: &Role, lies: bool, dice: &mut Dice) -> Faults {
    let loud = solana::faults(dice);
    let mut silent = Faults { refused: refused(role, dice), ..Faults::none() };
    let mut rate = |most: u16| if dice.one_in(3) { Rate(most) } else { Rate::NEVER };
    silent.null_tokens = rate(150);
    if lies {
        silent.empty_logs = rate(50);
        silent.short_logs = rate(50);
        silent.flipped_logs = rate(100);
        silent.empty_page = rate(50);
        silent.short_list = rate(50);
        silent.lost_cursor = rate(50);
        silent.lost = rate(50);
        silent.bare_receipts = rate(100);
        silent.head_back = rate(500);
    }
    silent.head_back_slots = UNFINAL + dice.pick(&[1, 6, 300]);
    Faults {
        // What Solana's own clients are tried with, and a liar's alone here.
        short_page: Rate::NEVER,
        empty_page: silent.empty_page,
        lost: silent.lost,
        head_back: silent.head_back,
        head_back_slots: silent.head_back_slots,
        lost_cursor: silent.lost_cursor,
        empty_logs: silent.empty_logs,
        short_logs: silent.short_logs,
        flipped_logs: silent.flipped_logs,
        short_list: silent.short_list,
        null_tokens: silent.null_tokens,
        bare_receipts: silent.bare_receipts,
        refused: silent.refused,
        transient: true,
        ..loud
    }
}

/// Methods and lists that this endpoint refuses.
fn refused(role: &Role, dice: &mut Dice) -> Vec<(&'static str, Refusal)> {
    let names: &[&'static str] = match role {
        Role::Solana => &[],
        Role::Rpc(_) => &[
            "eth_getLogs",
            "eth_getTransactionByHash",
            "eth_getTransactionReceipt",
            "eth_getBlockByNumber",
            "eth_blockNumber",
            "eth_call",
            "eth_chainId",
            "eth_getBalance",
            "debug_traceTransaction",
            "alchemy_getAssetTransfers",
        ],
        Role::Explorer(_) => &["txlist", "tokentx", "txlistinternal", "eth_blockNumber"],
        Role::Portal(_) => &["finalized-stream", "finalized-head"],
        Role::Tron(_) => &[
            "transactions",
            "trc20",
            "eth_getLogs",
            "gettransactionbyid",
            "gettransactioninfobyid",
            "getexchangebyid",
            "getblock",
            "triggerconstantcontract",
        ],
    };
    let count = if names.is_empty() || !dice.one_in(3) { 0 } else { dice.range(1, 2) };
    let one = |_| {
        let (name, how) = (dice.pick(names), dice.pick(&Refusal::ALL));
        let fits = how != Refusal::Processing || name == "txlistinternal";
        (name, if fits { how } else { Refusal::Unknown })
    };
    (0..count).map(one).collect()
}

/// By how many blocks an explorer's lists lag when they have stopped for long. On Tron the demo
/// does not return busy accounts often enough for that.
const FAR: u64 = 60_000;

/// How far an endpoint lags, and what it does not keep.
fn options(peer: &Peer, (lies, hidden): (bool, Option<u64>), chain: &Chain, dice: &mut Dice) {
    let head = chain.head();
    let lag = if dice.one_in(3) { dice.pick(&[6, UNFINAL + 6, UNFINAL + 600]) } else { 0 };
    let kept = head - dice.pick(&[200, 20_000, 100_000]).min(head);
    let pruned = lies && dice.one_in(3);
    let (first, list_lag) = (if pruned { kept } else { 0 }, UNFINAL + dice.pick(&[1, 6, 60]));
    let list_lag = if dice.one_in(4) { list_lag } else { 0 };
    // Uses separate random numbers, so that the rest of the seed is unchanged.
    let is_far = Dice::new(dice.clone().next(), 509).one_in(4);
    let explorers_lag = if is_far && list_lag > 0 { FAR } else { list_lag };
    let mut apart = Dice::new(dice.clone().next(), 511);
    let logs_lag = if apart.one_in(4) { apart.range(1, chain.index_lag()) } else { 0 };
    say(&format!(
        "    lag {lag}, logs {logs_lag}, lists {list_lag}, keeps from {first}, hidden {hidden:?}"
    ));
    match peer.role.clone() {
        Role::Solana => {}
        Role::Rpc(mut node) => {
            (node.lag, node.first_available) = (lag, first);
            node.prunes_silently = dice.one_in(2);
            node.logs_lag = logs_lag;
            node.hashes_from = if dice.one_in(6) { kept } else { 0 };
            peer.node.set_options(node);
        }
        Role::Explorer(mut lists) => {
            (lists.lag, lists.list_lag, lists.hidden_nonce) = (lag, explorers_lag, hidden);
            lists.marks_failed = apart.one_in(4);
            say(&format!("    marks all as failed: {}", lists.marks_failed));
            peer.node.set_options(lists);
        }
        Role::Portal(mut gateway) => {
            gateway.lag = lag;
            gateway.ignores_filters = lies && dice.one_in(2);
            gateway.hidden_nonce = hidden;
            peer.node.set_options(gateway);
        }
        Role::Tron(mut node) => {
            (node.node.lag, node.node.first_available, node.list_lag) = (lag, first, list_lag);
            node.node.prunes_silently = dice.one_in(2);
            peer.node.set_options(node);
        }
    }
}

/// A nonce whose transactions every index omits. Only the number of sent transactions shows it, if
/// nodes keep old states.
fn hidden_nonce(world: &World) -> Option<u64> {
    let mut dice = Dice::new(world.chain.head(), 9);
    let keeps_states = world.peers.iter().all(|peer| match &peer.role {
        Role::Rpc(node) => node.state_blocks.is_none(),
        Role::Solana | Role::Explorer(_) | Role::Portal(_) | Role::Tron(_) => true,
    });
    let is_hidden = world.setup.counted && keeps_states && dice.one_in(2);
    is_hidden.then(|| dice.range(0, 40))
}

/// A transaction of a wallet that nodes do not return although lists name it: they return null or
/// fail on it, for a while or for ever. Solana's nodes only fail.
pub(super) fn withhold(world: &mut World, dice: &mut Dice) {
    if world.poison.is_some() {
        return fail_on(world, world.failing);
    }
    let wallet = dice.pick(&world.wallets);
    let truths = world.truths.borrow();
    let at = world.wallets.iter().position(|one| *one == wallet).unwrap();
    let all = truths[at].all();
    let withheld = (!all.is_empty() && dice.one_in(6)).then(|| {
        let last = u64::try_from(all.len() - 1).unwrap();
        all[usize::try_from(dice.range(0, last)).unwrap()].tx
    });
    drop(truths);
    // Uses separate random numbers, so that the rest of the seed is unchanged.
    let fails = world.way == Way::Solana || Dice::new(dice.clone().next(), 515).one_in(3);
    say(&format!("withheld {withheld:?}, fails: {fails}"));
    world.chain.withhold(withheld.as_slice());
    world.poison = withheld.filter(|_| dice.one_in(3));
    world.failing = withheld.filter(|_| fails);
    fail_on(world, world.failing);
}
