//! The history engine on the demo chain: readers get exactly the model's rows.

use std::time::Duration;

use blotter::demo::solana::{NodeOptions, WalletPlan};
use blotter::demo::{Faults, Rate};
use blotter::domain::{Address, KeyId, Row, Wallet};
use blotter::history::{Extent, HistoryError, HistoryLimits, Step, Walk, WalkRequest};
use blotter::store::{Chunk, WalletId};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::trades::{chunk, trade};
use crate::support::truth::same;
use crate::support::world::{Build, World, finish, pages};

/// Loads a wallet to its end.
async fn load(world: &World, wallet: Wallet) {
    let (_, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
}

/// Walks to the end, resuming after each cut.
async fn resumed(world: &World, wallet: Wallet) -> Vec<Row> {
    let (mut rows, mut resume) = (Vec::new(), None);
    for _ in 0..50 {
        let mut walk = world.walk(wallet, Extent::All, resume);
        let (more, end) = finish(&mut walk).await;
        rows.extend(more);
        if end.complete && !end.more {
            break;
        }
        resume = Some(walk.cursor());
    }
    rows
}

/// Lets background work go on until the wallet is complete.
async fn settle(world: &World, wallet: Wallet) {
    for _ in 0..10_000 {
        let view = world.store.view().unwrap();
        let record = view.wallet(&wallet).await.unwrap().unwrap();
        if view.pending_of(record.id).await.unwrap().is_none()
            && record.coverage.top().is_some_and(|t| record.coverage.is_complete(t))
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the background did not finish");
}

#[tokio::test(start_paused = true)]
async fn a_stream_and_pages_give_the_models_rows_in_the_models_order() {
    let world = Build::default().world();
    let wallet = world.add("mixed", WalletPlan::trades(1500));
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    let truth = world.truth(wallet);
    assert_eq!(end.error, None);
    assert!(end.complete && !end.more);
    same(&rows, &truth);
    assert_eq!(end.trade_count, u64::try_from(truth.len()).unwrap());
    assert_eq!(end.first_trade, rows.last().map(|row| row.trade.key.time));
    for size in [7, 500, 10_000_000] {
        same(&pages(&world, wallet, size).await, &truth);
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_an_unknown_wallet_load_as_they_are_read() {
    let world = Build::default().world();
    let wallet = world.add("paged", WalletPlan::trades(300));
    same(&pages(&world, wallet, 9).await, &world.truth(wallet));
}

#[tokio::test(start_paused = true)]
async fn a_stream_cut_anywhere_and_resumed_loses_and_repeats_nothing() {
    let world = Build::default().world();
    let wallet = world.add("cut", WalletPlan::trades(400));
    let truth = world.truth(wallet);
    for cut in [1, 2, 3, 5, 8] {
        let (mut rows, mut resume, mut steps) = (Vec::new(), None, 0);
        loop {
            // Hangs up after `cut` steps, while the wallet loads, and comes back by the cursor.
            let mut walk = world.walk(wallet, Extent::All, resume);
            let end = loop {
                match walk.next().await {
                    Step::Rows(more) => rows.extend(more),
                    Step::End(end) => break Some(end),
                }
                steps += 1;
                if steps % cut == 0 {
                    break None;
                }
            };
            if end.is_some_and(|end| end.complete && !end.more) {
                break;
            }
            assert!(rows.len() <= truth.len(), "rows come again after a cut every {cut} steps");
            resume = Some(walk.cursor());
        }
        same(&rows, &truth);
    }
}

#[tokio::test(start_paused = true)]
async fn many_readers_of_one_wallet_share_one_load() {
    let world = Build::default().world();
    let (alone, shared) =
        (world.add("alone", WalletPlan::trades(500)), world.add("shared", WalletPlan::trades(500)));
    load(&world, alone).await;
    let one = world.nodes[0].stats().calls_of("getTransaction");
    world.nodes[0].reset_stats();
    let mut walks: Vec<_> = (0..20).map(|_| world.walk(shared, Extent::All, None)).collect();
    for walk in &mut walks {
        same(&finish(walk).await.0, &world.truth(shared));
    }
    let twenty = world.nodes[0].stats().calls_of("getTransaction");
    assert!(twenty <= one + one / 4, "{twenty} calls for twenty readers, {one} for one");
}

#[tokio::test(start_paused = true)]
async fn a_page_loads_about_as_much_as_it_shows_and_then_the_loading_stops() {
    for (count, most) in [(10, 80), (100, 240), (300, 600)] {
        let world = Build::default().world();
        world.set_faults(Faults::latency(Duration::from_millis(80)));
        let wallet = world.add("big", WalletPlan::trades(20_000));
        let (rows, end) = finish(&mut world.walk(wallet, Extent::Rows(count), None)).await;
        assert_eq!(rows.len(), usize::try_from(count).unwrap());
        assert!(!end.complete && end.more && end.error.is_none());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let calls = world.nodes[0].stats().calls_of("getTransaction");
        assert!(calls <= most, "{calls} transactions fetched for a page of {count}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let later = world.nodes[0].stats().calls_of("getTransaction");
        assert_eq!(later, calls, "the loading went on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_stops_what_it_alone_asked_for() {
    let world = Build::default().world();
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let wallet = world.add("big", WalletPlan::trades(20_000));
    let (mut leaves, mut stays) =
        (world.walk(wallet, Extent::All, None), world.walk(wallet, Extent::All, None));
    assert!(matches!(leaves.next().await, Step::Rows(_)));
    drop(leaves);
    let before = world.calls();
    for _ in 0..5 {
        assert!(matches!(stays.next().await, Step::Rows(_)));
    }
    assert!(world.calls() > before, "the other reader's load goes on");
    drop(stays);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stopped = world.calls();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.calls(), stopped, "no reader is left, and still it loads");
}

#[tokio::test(start_paused = true)]
async fn what_a_window_leaves_goes_on_in_the_background_and_over_a_restart() {
    let mut world = Build::default().world();
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let wallet = world.add("big", WalletPlan::trades(4000));
    let window = Duration::from_secs(2);
    let request = WalkRequest { window, ..World::request(wallet, Extent::All) };
    let mut walk = world.history.walk(request).unwrap();
    let (rows, end) = finish(&mut walk).await;
    assert!(!end.complete && end.error.is_none() && !rows.is_empty());
    let cursor = walk.cursor();
    drop(walk);
    let before = world.calls();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(world.calls() > before, "nothing goes on in the background");

    world = world.restart().await;
    assert_eq!(world.history.resume_pending().await.unwrap(), 1);
    settle(&world, wallet).await;
    let calls = world.calls();
    let (rest, end) = finish(&mut world.walk(wallet, Extent::All, Some(cursor))).await;
    assert!(end.complete && !end.more);
    assert_eq!(world.calls(), calls, "the background had loaded all");
    same(&[rows, rest].concat(), &world.truth(wallet));
}

#[tokio::test(start_paused = true)]
async fn background_loads_are_capped_per_key_and_lapse() {
    let limits = HistoryLimits {
        background_per_key_max: 2,
        background_loads_max: 1,
        background_lapse: Duration::from_secs(30),
        ..HistoryLimits::default()
    };
    let world = Build { limits, ..Build::default() }.world();
    world.set_faults(Faults::latency(Duration::from_millis(500)));
    let mut pending = Vec::new();
    for name in ["one", "two", "three"] {
        let wallet = world.add(name, WalletPlan::trades(20_000));
        let window = Duration::from_secs(4);
        let request = WalkRequest { window, ..World::request(wallet, Extent::All) };
        finish(&mut world.history.walk(request).unwrap()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        let view = world.store.view().unwrap();
        let record = view.wallet(&wallet).await.unwrap().unwrap();
        pending.push(view.pending_of(record.id).await.unwrap().is_some());
    }
    assert_eq!(pending, [true, true, false]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let calls = world.calls();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.calls(), calls, "a lapsed load goes on");
    assert!(world.store.view().unwrap().pending().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_fresh_check_is_reused_and_an_old_one_is_renewed() {
    let world = Build::default().world();
    let wallet = world.add("live", WalletPlan::trades(60));
    load(&world, wallet).await;
    let (calls, began) = (world.calls(), Instant::now());
    load(&world, wallet).await;
    assert_eq!(world.calls(), calls, "a walk within the freshness asks no node");
    assert!(began.elapsed() < Duration::from_millis(10), "and waits for none");

    world.model.arrive(wallet.address, 5);
    world.model.advance(500);
    tokio::time::sleep(Duration::from_secs(11)).await;
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete);
    same(&rows, &world.truth(wallet));
    assert!(world.nodes[0].stats().calls_of("getTransaction") <= calls + 30);
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_delays_a_stored_wallet_by_two_seconds_at_most() {
    let world = Build::default().world();
    let wallet = world.add("stored", WalletPlan::trades(60));
    load(&world, wallet).await;
    let checked = world.walk(wallet, Extent::All, None).as_of().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.set_faults(Faults { silence: Rate::ALWAYS, ..Faults::none() });
    let began = Instant::now();
    let mut walk = world.walk(wallet, Extent::All, None);
    let (rows, end) = finish(&mut walk).await;
    assert!(began.elapsed() <= Duration::from_millis(2_100), "{:?}", began.elapsed());
    assert!(end.complete && end.error.is_none());
    same(&rows, &world.truth(wallet));
    assert_eq!(walk.as_of().await, Some(checked), "the answer says that it is of the last check");
}

#[tokio::test(start_paused = true)]
async fn a_dead_node_is_reported_when_nothing_is_stored() {
    let world = Build::default().world();
    let wallet = world.add("unknown", WalletPlan::trades(60));
    world.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(rows.is_empty() && !end.complete);
    let Some(HistoryError::UpstreamUnavailable { detail }) = end.error else {
        panic!("{:?}", end.error)
    };
    assert!(!detail.contains("planted"), "the URL's secret is shown: {detail}");
}

#[tokio::test(start_paused = true)]
async fn faults_of_every_kind_change_no_row() {
    for seed in 0..6 {
        let world = Build { seed, nodes: 2, batch: Some(5), ..Build::default() }.world();
        world.set_faults(Faults { head_back: Rate(0), ..Faults::storm(Rate(40)) });
        let wallet = world.add("stormy", WalletPlan::trades(250));
        same(&resumed(&world, wallet).await, &world.truth(wallet));
    }
}

/// No node returns positions in a block, and each fifth answer is `null`, that for a block too.
#[tokio::test(start_paused = true)]
async fn a_block_that_is_returned_as_null_is_requested_again() {
    for seed in 1..=4 {
        let world = Build { seed, ..Build::default() }.world();
        let options = world.nodes[0].options();
        world.nodes[0].set_options(NodeOptions { transaction_index: false, ..options });
        world.set_faults(Faults { null_result: Rate(200), ..Faults::none() });
        let wallet = world.add("ordered", WalletPlan { burst: 20, ..WalletPlan::trades(200) });
        same(&resumed(&world, wallet).await, &world.truth(wallet));
        assert!(world.nodes[0].stats().calls_of("getBlock") > 0, "no order was asked for");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_history_is_never_reported_complete() {
    let world = Build::default().world();
    let wallet = world.add("pruned", WalletPlan::trades(300));
    let truth = world.truth(wallet);
    let kept = world.model.truth(wallet.address).nth(100).unwrap().slot;
    let mut options = world.nodes[0].options();
    options.first_available = kept;
    world.nodes[0].set_options(options);
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(!end.complete);
    assert_eq!(end.error, Some(HistoryError::HistoryCut { first: kept }));
    same(&rows, &truth[..rows.len()]);
    assert!(rows.len() >= 99);
    let report = world.history.coverage(wallet).await.unwrap().unwrap();
    assert_eq!((report.cut, report.complete), (Some(kept), false));
    let mut page = world.walk(wallet, Extent::Rows(1000), None);
    let (paged, end) = finish(&mut page).await;
    assert_eq!((paged.len(), end.complete), (rows.len(), false), "what lies above is served");
    let (paged, end) = finish(&mut world.walk(wallet, Extent::Rows(7), Some(page.cursor()))).await;
    assert!(paged.is_empty(), "{}", paged.len());
    assert_eq!(end.error, Some(HistoryError::HistoryCut { first: kept }));
}

/// A stream that has delivered the history is away for longer than the node keeps blocks.
#[tokio::test(start_paused = true)]
async fn a_gap_below_what_is_new_ends_a_stream_that_follows_with_the_cut() {
    let world = Build::default().world();
    let wallet = world.add("away", WalletPlan::trades(60));
    let before = world.truth(wallet);
    let (mut rows, mut resume) = (Vec::new(), None);
    for (arrive, first_available) in [(400, true), (0, false), (0, false)] {
        let follow = WalkRequest { follow: true, ..World::request(wallet, Extent::All) };
        let mut walk = world.history.walk(WalkRequest { resume, ..follow }).unwrap();
        let (more, end) = finish(&mut walk).await;
        assert!(walk.is_live() && !end.complete);
        rows.extend(more);
        same(&rows, &before);
        if arrive == 0 {
            let Some(HistoryError::HistoryCut { first }) = end.error else { panic!("{end:?}") };
            assert_eq!(first, world.nodes[0].options().first_available);
        }
        resume = Some(Box::new(walk.cursor()));
        world.model.arrive(wallet.address, arrive);
        if first_available {
            let first_available = world.model.truth(wallet.address).nth(100).unwrap().slot;
            let options = world.nodes[0].options();
            world.nodes[0].set_options(NodeOptions { first_available, ..options });
        }
        tokio::time::sleep(Duration::from_secs(11)).await;
    }
}

/// No request for newer heights can succeed: each begins only after a pause.
#[tokio::test(start_paused = true)]
async fn a_node_that_keeps_no_block_is_named_and_not_asked_again() {
    let world = Build::default().world();
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let wallet = world.add("unkept", WalletPlan::trades(60));
    let options = world.nodes[0].options();
    let first_available = world.model.head() + 1_000;
    world.nodes[0].set_options(NodeOptions { first_available, ..options.clone() });
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(rows.is_empty() && !end.complete);
    assert!(matches!(end.error, Some(HistoryError::HistoryCut { .. })), "{:?}", end.error);
    let asked = world.calls();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(world.calls() < 2 * asked, "{asked} calls, then {}", world.calls());
    world.nodes[0].set_options(options);
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(wallet));
}

#[tokio::test(start_paused = true)]
async fn only_final_heights_are_delivered() {
    let world = Build::default().world();
    let wallet = world.add("early", WalletPlan::trades(200));
    let slot = world.model.truth(wallet.address).nth(50).unwrap().slot;
    world.model.set_head(slot - 1);
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete);
    assert!(rows.iter().all(|row| row.trade.key.height < slot));
    let record = world.store.view().unwrap().wallet(&wallet).await.unwrap().unwrap();
    assert_eq!(record.coverage.top(), Some(slot - 1), "coverage ends at the source's head");
}

#[tokio::test(start_paused = true)]
async fn a_reorganisation_is_cut_back_and_read_again() {
    let world = Build { nodes: 2, ..Build::default() }.world();
    let wallet = world.add("forked", WalletPlan::trades(120));
    load(&world, wallet).await;
    let before = world.truth(wallet);
    let from = world.model.truth(wallet.address).nth(20).unwrap().slot;
    world.model.reorg(from);
    assert_ne!(world.truth(wallet), before, "the model replaced something");
    tokio::time::sleep(Duration::from_secs(11)).await;
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete);
    same(&rows, &world.truth(wallet));
    assert_eq!(world.history.metrics().reorganisations.get(), 1);
}

/// Heights above the last row that were read without one: the chain has replaced them since.
#[tokio::test(start_paused = true)]
async fn a_reorganisation_above_all_rows_is_noticed() {
    let world = Build { nodes: 2, ..Build::default() }.world();
    let wallet = world.add("quiet", WalletPlan::trades(60));
    load(&world, wallet).await;
    let head = world.model.head();
    let top = world.model.advance(50_000);
    tokio::time::sleep(Duration::from_secs(11)).await;
    load(&world, wallet).await;
    // One of the blocks that were read as empty holds a trade now.
    world.model.set_head(head);
    let slot = world.model.arrive(wallet.address, 1);
    assert!(head < slot && slot <= top, "{head} {slot} {top}");
    world.model.set_head(top + 1_000);
    world.model.reorg(head + 1);
    tokio::time::sleep(Duration::from_secs(11)).await;
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(wallet));
    assert_eq!(world.history.metrics().reorganisations.get(), 1);
}

/// A reorg between the rows and a hash that is requested after them would go unnoticed.
#[tokio::test(start_paused = true)]
async fn a_reorganisation_right_behind_the_rows_is_noticed() {
    let world = Build { nodes: 2, ..Build::default() }.world();
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let wallet = world.add("overtaken", WalletPlan::trades(60));
    let before = world.truth(wallet);
    let mut walk = world.walk(wallet, Extent::All, None);
    world.until_asked("getTransaction", &mut walk).await;
    world.model.reorg(before[0].slot);
    assert!(matches!(walk.next().await, Step::Rows(_)));
    tokio::time::sleep(Duration::from_secs(11)).await;
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(wallet));
    assert_eq!(world.history.metrics().reorganisations.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_small_wallet_is_not_kept_waiting_by_a_large_one() {
    let world = Build::default().world();
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let (large, small) = (
        world.add("large", WalletPlan::trades(20_000)),
        world.add("small", WalletPlan::trades(30)),
    );
    let mut walk = world.walk(large, Extent::All, None);
    for _ in 0..5 {
        assert!(matches!(walk.next().await, Step::Rows(_)));
    }
    let began = Instant::now();
    let mut quick = world.walk(small, Extent::All, None);
    let (rows, _) = finish(&mut quick).await;
    same(&rows, &world.truth(small));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn rows_below_a_gap_stay_hidden_until_it_is_closed() {
    let world = Build::default().world();
    let wallet = world.add("gap", WalletPlan::trades(50));
    load(&world, wallet).await;
    let old = world.truth(wallet);
    world.model.arrive(wallet.address, 400);
    world.model.advance(50_000);
    tokio::time::sleep(Duration::from_secs(11)).await;
    let mut walk = world.walk(wallet, Extent::All, None);
    let truth = world.truth(wallet);
    assert!(truth.len() > old.len() + 300);
    let mut rows = Vec::new();
    loop {
        match walk.next().await {
            Step::Rows(more) => {
                rows.extend(more);
                same(&rows, &truth[..rows.len()]);
            }
            Step::End(end) => break assert!(end.complete),
        }
    }
    same(&rows, &truth);
}

/// A walk whose head is fixed by heights that were checked and hold no trade; no node answers.
async fn settled_at_1_100(world: &World) -> (WalletId, Walk) {
    world.set_faults(Faults { unavailable: Rate::ALWAYS, ..Faults::none() });
    let wallet = world.add("grows", WalletPlan::trades(1));
    let id = world.store.intern(&wallet).await.unwrap().id;
    let checked_at = Some(world.now());
    let quiet = Chunk { checked_at, ..chunk(id, 1_000, 1_100, vec![]) };
    world.store.write_chunk(quiet).await.unwrap();
    let mut walk = world.walk(wallet, Extent::All, None);
    assert!(tokio::time::timeout(Duration::from_millis(1), walk.next()).await.is_err());
    assert_eq!(walk.cursor().head, Some(1_100));
    (id, walk)
}

/// A walk's head is fixed before its first row: rows that are stored above it meanwhile, behind a
/// gap, belong to later walks.
#[tokio::test(start_paused = true)]
async fn rows_above_a_walks_head_are_not_delivered() {
    let world = Build::default().world();
    let (id, mut walk) = settled_at_1_100(&world).await;
    let above = chunk(id, 1_150, 1_160, vec![trade(2_000_000, 1_155, 4)]);
    let below = chunk(id, 900, 999, vec![trade(1_000_000, 950, 2)]);
    for part in [above, below] {
        world.store.write_chunk(part).await.unwrap();
    }
    let (rows, end) = finish(&mut walk).await;
    assert!(!end.complete);
    assert_eq!(rows.iter().map(|row| row.trade.key.height).collect::<Vec<_>>(), [950]);
}

/// The same if nothing lies below the head: a row that the count excludes is not the first trade.
#[tokio::test(start_paused = true)]
async fn a_first_trade_above_a_walks_head_is_not_reported() {
    let world = Build::default().world();
    let (id, mut walk) = settled_at_1_100(&world).await;
    let above = vec![trade(2_000_000, 1_155, 4)];
    world.store.write_chunk(chunk(id, 1_101, 1_160, above)).await.unwrap();
    world.store.write_chunk(chunk(id, 0, 999, vec![])).await.unwrap();
    let (rows, end) = finish(&mut walk).await;
    assert!(rows.is_empty() && end.complete && !end.more, "{end:?}");
    assert_eq!((end.trade_count, end.first_trade), (0, None));
}

/// One node keeps only new blocks, neither returns positions in a block, each fifth answer is
/// `null`.
#[tokio::test(start_paused = true)]
async fn a_load_over_nulls_and_a_pruned_node_takes_a_bounded_number_of_requests() {
    let world = Build { nodes: 2, ..Build::default() }.world();
    let head = world.model.head();
    for (node, first_available) in world.nodes.iter().zip([0, head - 5_000_000]) {
        let known = node.options();
        node.set_options(NodeOptions { transaction_index: false, first_available, ..known });
    }
    world.set_faults(Faults { null_result: Rate(200), ..Faults::none() });
    let wallet = world.add("bursts", WalletPlan { burst: 20, ..WalletPlan::trades(600) });
    let transactions = world.model.transaction_count(wallet.address);
    let (mut rows, mut resume) = (Vec::new(), None);
    for _ in 0..100 {
        let mut walk = world.walk(wallet, Extent::All, resume);
        let (more, end) = finish(&mut walk).await;
        rows.extend(more);
        let requests: u64 = world.nodes.iter().map(|node| node.stats().requests).sum();
        assert!(requests <= 600 + 4 * transactions, "{requests} for {transactions}: {end:?}");
        if end.complete && !end.more {
            break;
        }
        resume = Some(walk.cursor());
        tokio::time::sleep(Duration::from_secs(11)).await;
    }
    same(&rows, &world.truth(wallet));
}

#[tokio::test(start_paused = true)]
async fn each_trade_counts_once_per_key_over_modes_cursors_and_restarts() {
    let mut world = Build::default().world();
    let wallet = world.add("counted", WalletPlan::trades(200));
    let total = u64::try_from(world.truth(wallet).len()).unwrap();
    pages(&world, wallet, 13).await;
    assert_eq!(world.history.usage(KeyId(1)).await.unwrap(), total);
    load(&world, wallet).await;
    assert_eq!(world.history.usage(KeyId(1)).await.unwrap(), total);
    world = world.restart().await;
    pages(&world, wallet, 50).await;
    assert_eq!(world.history.usage(KeyId(1)).await.unwrap(), total);
    let other = WalkRequest { key: KeyId(2), ..World::request(wallet, Extent::Rows(10)) };
    finish(&mut world.history.walk(other).unwrap()).await;
    assert_eq!(world.history.usage(KeyId(2)).await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn what_was_counted_right_before_a_stop_is_known_after_it() {
    let world = Build::default().world();
    let wallet = world.add("stopped", WalletPlan::trades(60));
    load(&world, wallet).await;
    let (last, began) =
        (WalkRequest { key: KeyId(2), ..World::request(wallet, Extent::Rows(10)) }, Instant::now());
    finish(&mut world.history.walk(last).unwrap()).await;
    assert!(began.elapsed().is_zero(), "usage may be written down meanwhile");
    let world = world.restart().await;
    assert_eq!(world.history.usage(KeyId(2)).await.unwrap(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_quota_ends_a_walk_with_its_last_row_counted() {
    let world = Build::default().world();
    let wallet = world.add("quota", WalletPlan::trades(100));
    let request = WalkRequest { quota: Some(25), ..World::request(wallet, Extent::All) };
    let (rows, end) = finish(&mut world.history.walk(request.clone()).unwrap()).await;
    assert_eq!(rows.len(), 25);
    assert_eq!(end.error, Some(HistoryError::QuotaExceeded));
    let (again, _) = finish(&mut world.history.walk(request).unwrap()).await;
    assert_eq!(again.len(), 25, "what was counted may be read again");
}

#[tokio::test(start_paused = true)]
async fn whole_pages_are_read_where_a_node_offers_them_and_give_the_same_rows() {
    let world = Build::default().world();
    let mut options = world.nodes[0].options();
    options.transactions_for_address = true;
    world.nodes[0].set_options(options.clone());
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let wallet = world.add("whole", WalletPlan::trades(1200));
    let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&rows, &world.truth(wallet));
    let stats = world.nodes[0].stats();
    assert_eq!(stats.calls_of("getTransaction"), 0, "{:?}", stats.calls);
    assert!(stats.calls_of("getTransactionsForAddress") <= 20, "{:?}", stats.calls);

    // Taken away in the middle, the lists go on where the pages ended.
    let other = world.add("taken away", WalletPlan::trades(900));
    let mut walk = world.walk(other, Extent::All, None);
    let Step::Rows(rows) = walk.next().await else { panic!("no rows") };
    let mut rows = rows.to_vec();
    options.transactions_for_address = false;
    world.nodes[0].set_options(options);
    let (rest, end) = finish(&mut walk).await;
    assert!(end.complete, "{end:?}");
    rows.extend(rest);
    same(&rows, &world.truth(other));
}

/// A page that names no further one may end in the middle of a slot.
#[tokio::test(start_paused = true)]
async fn a_whole_page_that_ends_early_costs_no_row() {
    for seed in 1..=6 {
        let world = Build { seed, ..Build::default() }.world();
        let options = world.nodes[0].options();
        world.nodes[0].set_options(NodeOptions { transactions_for_address: true, ..options });
        world.set_faults(Faults { short_page: Rate(200), ..Faults::none() });
        let plan = WalletPlan { burst: 40, ..WalletPlan::trades(800) };
        let wallet = world.add("short", plan);
        let (rows, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
        assert!(end.complete, "{end:?}");
        same(&rows, &world.truth(wallet));
        assert_eq!(world.nodes[0].stats().calls_of("getTransaction"), 0, "lists were read");
    }
}

/// Full pages that fail before their first chunk may have found token accounts. Every later task of
/// the read must know these, because some transactions name nothing else.
#[tokio::test(start_paused = true)]
async fn accounts_that_whole_pages_found_are_known_below_the_lists_that_took_over() {
    let mut world = Build::default().world();
    let options = world.nodes[0].options();
    let offers = |yes| NodeOptions { transactions_for_address: yes, ..options.clone() };
    world.nodes[0].set_options(offers(true));
    world.set_faults(Faults::latency(Duration::from_millis(80)));
    let other = world.add("other", WalletPlan::trades(3));
    load(&world, other).await;
    world.nodes[0].set_options(offers(false));
    let plan = WalletPlan { keeper_percent: 80, ..WalletPlan::trades(1500) };
    let wallet = world.add("kept", plan);
    let (rows, _) = finish(&mut world.walk(wallet, Extent::Rows(1), None)).await;
    assert_eq!(rows.len(), 1);
    let view = world.store.view().unwrap();
    let record = view.wallet(&wallet).await.unwrap().unwrap();
    let stored = view.accounts(record.id).await.unwrap();
    let stored: Vec<String> =
        stored.iter().map(|known| Address::Solana(known.account).to_string()).collect();
    let open = open_accounts(&world, wallet);
    assert!(open.len() > 5 && open.iter().all(|account| stored.contains(account)), "{stored:?}");
    drop(view);
    world = world.restart().await;
    let (all, end) = finish(&mut world.walk(wallet, Extent::All, None)).await;
    assert!(end.complete, "{end:?}");
    same(&all, &world.truth(wallet));
}

/// Token accounts as the node lists them.
fn open_accounts(world: &World, wallet: Wallet) -> Vec<String> {
    let programs = [
        "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
        "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
    ];
    let of = |program: &str| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "getTokenAccountsByOwner",
            "params": [wallet.address.to_string(), {"programId": program},
                {"encoding": "jsonParsed", "commitment": "finalized"}]});
        let answer = world.nodes[0].respond(call.to_string().as_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let accounts = answer["result"]["value"].as_array().unwrap().clone();
        accounts.into_iter().map(|one| one["pubkey"].as_str().unwrap().to_owned())
    };
    programs.into_iter().flat_map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_rows_come_within_four_round_trips_and_the_whole_in_few_requests() {
    let world = Build::default().world();
    let trip = Duration::from_millis(80);
    world.set_faults(Faults::latency(trip));
    let wallet = world.add("measured", WalletPlan::trades(3000));
    let began = Instant::now();
    let mut walk = world.walk(wallet, Extent::All, None);
    assert!(matches!(walk.next().await, Step::Rows(_)));
    assert!(began.elapsed() <= trip * 4 + Duration::from_millis(100), "{:?}", began.elapsed());
    finish(&mut walk).await;
    let stats = world.nodes[0].stats();
    let n = world.model.transaction_count(wallet.address);
    let record = world.store.view().unwrap().wallet(&wallet).await.unwrap().unwrap();
    let accounts = world.store.view().unwrap().accounts(record.id).await.unwrap().len();
    let least = n / 10 + n / 1000 + u64::try_from(accounts).unwrap();
    let bound = least + least / 20 + 20;
    assert!(stats.requests <= bound, "{} requests, bound {bound}", stats.requests);
}

#[tokio::test(start_paused = true)]
async fn prefetch_is_bounded_for_wallets_of_any_size() {
    let wide = Build { batch: Some(100), concurrency: Some(64), ..Build::default() };
    let world = wide.world();
    world.set_faults(Faults::latency(Duration::from_secs(1)));
    let wallet = world.add("huge", WalletPlan::trades(20_000));
    let mut walk = world.walk(wallet, Extent::All, None);
    assert!(matches!(walk.next().await, Step::Rows(_)));
    let asked = world.nodes[0].stats().calls_of("getTransaction");
    // 400 a reader, and those that the first delivered chunks made room for.
    assert!((100..=1500).contains(&asked), "{asked} transactions asked for");
}
