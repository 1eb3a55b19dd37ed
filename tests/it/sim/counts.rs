//! An index or a gateway omits one transaction that the wallet sent, in every answer: only the
//! number of sent transactions shows it. And nodes that count wrongly.

use std::time::Duration;

use blotter::demo::evm::{ExplorerOptions, NodeOptions, PortalOptions};
use blotter::demo::{Faults, Refusal};
use blotter::domain::Doubts;
use blotter::history::{End, Extent, HistoryError};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::cut::{read, walk};
use super::peer::{Peer, Role};
use super::way::Way;
use super::world::World;

/// Whose lists show the nonces of all that a wallet sent.
const COUNTED: [Way; 2] = [Way::Explorer, Way::Portal];

/// Nonces of the wallet: its newest, one in the middle, its first.
fn hidden(world: &World) -> [u64; 3] {
    [sent(world) - 1, 20, 0]
}

fn sent(world: &World) -> u64 {
    let node = world.peers.iter().find(|peer| node(peer).is_some()).unwrap();
    let wallet = world.wallets[0].address.to_string();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionCount",
        "params": [wallet, "latest"]});
    let answer = node.node.respond(call.to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    u64::from_str_radix(&answer["result"].as_str().unwrap()[2..], 16).unwrap()
}

fn hide(world: &World, nonce: Option<u64>) {
    for peer in &world.peers {
        match &peer.role {
            Role::Explorer(lists) => {
                peer.node.set_options(ExplorerOptions { hidden_nonce: nonce, ..lists.clone() });
            }
            Role::Portal(gateway) => {
                peer.node.set_options(PortalOptions { hidden_nonce: nonce, ..gateway.clone() });
            }
            Role::Solana | Role::Rpc(_) | Role::Tron(_) => {}
        }
    }
}

/// The first of so many nodes count more than there is.
fn miscount(world: &World, nodes: usize) {
    let nodes =
        world.peers.iter().filter_map(|peer| node(peer).map(|node| (peer, node))).take(nodes);
    for (peer, mut options) in nodes {
        options.sent_more = 3;
        peer.node.set_options(options);
    }
}

fn node(peer: &Peer) -> Option<NodeOptions> {
    match &peer.role {
        Role::Rpc(options) => Some(options.clone()),
        Role::Solana | Role::Explorer(_) | Role::Portal(_) | Role::Tron(_) => None,
    }
}

fn refuse_logs(world: &World) {
    refuse(world, &["eth_getLogs"]);
}

fn refuse(world: &World, methods: &[&'static str]) {
    for peer in world.peers.iter().filter(|peer| node(peer).is_some()) {
        let refused = methods.iter().map(|method| (*method, Refusal::ALL[0])).collect();
        peer.node.set_faults(Faults { refused, ..Faults::none() });
    }
}

/// The gateways leave nonces out of their answers.
fn without_nonces(world: &World) {
    for peer in &world.peers {
        if let Role::Portal(gateway) = &peer.role {
            peer.node.set_options(PortalOptions { nonces: false, ..gateway.clone() });
        }
    }
}

async fn rows(world: &World) -> (usize, End) {
    let (rows, end) = read(&mut walk(world, world.wallets[0], Extent::All, None)).await;
    (rows.len(), end)
}

/// Walks until it is complete; how many walks that took.
async fn completed(world: &World, all: usize) -> usize {
    for walks in 1..=20 {
        let (found, end) = rows(world).await;
        assert!(!end.complete || found == all, "{found} of {all} rows are called complete");
        if end.complete {
            return walks;
        }
        sleep(Duration::from_secs(60)).await;
    }
    panic!("it is not complete");
}

fn truth(world: &World) -> usize {
    world.truths.borrow()[0].all().len()
}

#[tokio::test(start_paused = true)]
async fn what_the_index_hides_is_found_by_another_way() {
    for way in COUNTED {
        for (copies, which) in [(1, 0), (1, 1), (2, 1), (1, 2)] {
            let world = World::counted(way, copies, true);
            hide(&world, Some(hidden(&world)[which]));
            completed(&world, truth(&world)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_the_count_shows_is_a_named_doubt_until_the_index_has_it() {
    for (way, which) in COUNTED.into_iter().flat_map(|way| [(way, 0), (way, 1), (way, 2)]) {
        let world = World::counted(way, 2, true);
        hide(&world, Some(hidden(&world)[which]));
        refuse_logs(&world);
        for _ in 0..10 {
            let (_, end) = rows(&world).await;
            assert!(!end.complete);
            let Some(HistoryError::Unproved { doubts, .. }) = end.error else { panic!("{end:?}") };
            assert!(doubts.contains(Doubts::SENT_COUNT), "{doubts}");
            sleep(Duration::from_secs(600)).await;
        }
        hide(&world, None);
        completed(&world, truth(&world)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_counts_wrongly_holds_up_no_honest_wallet() {
    for way in COUNTED {
        for (nodes, is_plain, most) in [(1, true, 2), (2, true, 20), (2, false, 1)] {
            let world = World::counted(way, 2, is_plain);
            miscount(&world, nodes);
            let walks = completed(&world, truth(&world)).await;
            assert!(walks <= most, "{way:?}, {nodes} nodes: {walks} walks");
        }
    }
}

/// Nothing else than the gateway shows the rows: a doubt would last.
#[tokio::test(start_paused = true)]
async fn a_gateway_without_nonces_and_nodes_without_counts_hold_up_no_wallet() {
    for (nonces, refused) in
        [(false, &["eth_getLogs"][..]), (true, &["eth_getLogs", "eth_getTransactionCount"])]
    {
        let world = World::counted(Way::Portal, 1, true);
        if !nonces {
            without_nonces(&world);
        }
        refuse(&world, refused);
        let walks = completed(&world, truth(&world)).await;
        assert!(walks <= 2, "nonces {nonces}: {walks} walks");
    }
}
