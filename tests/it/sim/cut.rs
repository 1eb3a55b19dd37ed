//! Nodes that do not keep the beginning of a chain: rows above are served, the cut is reported with
//! its height, and disappears with nodes that have the rest.

use std::time::Duration;

use blotter::demo::evm::NodeOptions;
use blotter::domain::{Cursor, Height, Rows, Wallet};
use blotter::history::{End, Extent, HistoryError, Step, Walk, WalkRequest};
use tokio::time::sleep;

use super::peer::Role;
use super::way::Way;
use super::world::World;
use crate::support::world::World as Plain;

/// Trades above the cut.
const KEPT: usize = 20;
/// Blocks by which a cut may be named too high: that of one query.
const BLUR_MAX: Height = 10_000;

/// The first height that the nodes keep from now on.
fn prune(world: &World, is_silent: bool) -> Height {
    let kept = world.chain.trade_height(world.wallets[0].address, KEPT).unwrap();
    for peer in &world.peers {
        match &peer.role {
            Role::Rpc(options) => peer.node.set_options(NodeOptions {
                first_available: kept,
                prunes_silently: is_silent,
                ..options.clone()
            }),
            Role::Tron(options) => {
                let mut options = options.clone();
                options.node.first_available = kept;
                peer.node.set_options(options);
            }
            Role::Solana | Role::Explorer(_) | Role::Portal(_) => {}
        }
    }
    kept
}

pub(super) fn walk(world: &World, wallet: Wallet, want: Extent, resume: Option<Cursor>) -> Walk {
    let request = Plain::request(wallet, want);
    world.history.walk(WalkRequest { resume: resume.map(Box::new), ..request }).unwrap()
}

pub(super) async fn read(walk: &mut Walk) -> (Vec<(Height, String)>, End) {
    let mut all = Vec::new();
    let heights = |rows: &Rows| -> Vec<(Height, String)> {
        let each = rows.iter().map(|row| (row.bare.key.height, row.bare.key.tx.to_string()));
        each.collect()
    };
    loop {
        match walk.next().await {
            Step::Rows(rows) => all.extend(heights(&rows)),
            Step::End(end) => return (all, end),
        }
    }
}

fn cut_of(end: &End) -> Height {
    let Some(HistoryError::HistoryCut { first }) = end.error else { panic!("{end:?}") };
    assert!(!end.complete);
    first
}

async fn check(way: Way, is_silent: bool) {
    let world = World::plain(way);
    let wallet = world.wallets[0];
    let kept = prune(&world, is_silent);
    let (rows, end) = read(&mut walk(&world, wallet, Extent::All, None)).await;
    let first = cut_of(&end);
    assert!((kept..kept + BLUR_MAX).contains(&first), "{first}, kept from {kept}");
    let heights: Vec<Height> =
        world.truths.borrow()[0].all().iter().map(|fact| fact.slot).collect();
    let above = heights.iter().filter(|height| **height >= first).count();
    assert!(above >= KEPT / 2);
    assert_eq!(rows.iter().filter(|(height, _)| *height >= first).count(), above);
    let report = world.history.coverage(wallet).await.unwrap().unwrap();
    assert_eq!((report.cut, report.complete), (Some(first), false));
    pages(&world, &rows, first).await;
    heals(&world, heights.len()).await;
}

/// Each page that has rows is an answer; the one behind them names the cut.
async fn pages(world: &World, rows: &[(Height, String)], first: Height) {
    let (mut resume, mut paged) = (None, Vec::new());
    loop {
        let mut page = walk(world, world.wallets[0], Extent::Rows(7), resume);
        let (more, end) = read(&mut page).await;
        resume = Some(page.cursor());
        if more.is_empty() {
            assert_eq!(cut_of(&end), first);
            break;
        }
        assert!(!end.complete);
        paged.extend(more);
    }
    assert_eq!(paged, rows);
}

/// The nodes get their old blocks back: the history becomes complete by itself.
async fn heals(world: &World, rows: usize) {
    world.peers.iter().for_each(super::peer::Peer::make_well);
    for _ in 0..8 {
        sleep(Duration::from_secs(300)).await;
        let (found, end) = read(&mut walk(world, world.wallets[0], Extent::All, None)).await;
        if end.complete {
            assert_eq!((found.len(), end.error), (rows, None));
            let report = world.history.coverage(world.wallets[0]).await.unwrap().unwrap();
            assert_eq!((report.cut, report.complete), (None, true));
            return;
        }
    }
    panic!("it never became complete");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_reports_pruned_logs_names_the_cut() {
    check(Way::Logs, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_returns_nothing_for_pruned_logs_names_the_cut() {
    check(Way::Logs, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_tron_node_without_old_events_names_the_cut() {
    check(Way::Events, true).await;
}
