//! How far lists and nodes have come, against the model: indexes that are processing their newest
//! blocks or have no calls, nodes that accept one call per request.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::alchemy::AlchemyLister;
use super::busy_fault::BusyFault;
use super::discovery::Discovery;
use super::explorer_reach::{ExplorerReach, Reach};
use super::explorer_wire::ExplorerList;
use super::list_client::ListClient;
use super::lister::Lister;
use super::lists_model::{Ways, subject};
use super::lists_tests::{
    FAR, FAR_BEHIND, NEAR_HEAD, SaleKind, check, check_sales, explorer, model, read_all,
    read_from_head, sales, with_list_behind, world,
};
use super::node_model::{NO_METHOD, nodes};
use crate::rpc::{EndpointId, PoolLimits, UpstreamError};

/// Blockscout refuses a query for calls if it is still processing one of the blocks, which is
/// nearly always the case for the newest.
fn newest_worked_on() -> Ways {
    let busy_fault = Some(("txlistinternal", BusyFault::NewestProcessing, usize::MAX));
    Ways { busy_fault, ..Ways::default() }
}

#[tokio::test(start_paused = true)]
async fn calls_are_known_below_the_newest_blocks_that_an_index_always_works_on() {
    let model = model(&sales(), 20_000, newest_worked_on());
    let (high, windows) = read_from_head(&model).await;
    assert_eq!(high, NEAR_HEAD - subject().chain.index_lag);
    check_sales(high, &windows, true);
    // Another read, of heights that were looked at; and one after the list has fallen back.
    let windows = read_all(Discovery::Explorer, &model, high).await;
    check_sales(high, &windows, true);
    model.fall("txlistinternal", FAR);
    // It lists nothing for the blocks near the height, which shows no height.
    let windows = read_all(Discovery::Explorer, &model, high).await;
    check_sales(high, &windows, false);
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_behind_and_worked_on_are_not_known() {
    let model = with_list_behind("txlistinternal", newest_worked_on());
    let (high, windows) = read_from_head(&model).await;
    assert_eq!(high, NEAR_HEAD);
    check_sales(high, &windows, false);
}

/// It showed its newest blocks before, so their absence now does not indicate a lagging server.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_asked_up_to_a_height_alone_is_not_behind_by_what_is_above_it() {
    let model = model(&sales(), 20_000, newest_worked_on());
    model.abilities.reach.note(EndpointId(0), ExplorerList::Calls, &[NEAR_HEAD]);
    let (high, windows) = read_from_head(&model).await;
    assert_eq!(high, NEAR_HEAD - subject().chain.index_lag);
    check_sales(high, &windows, true);
}

/// Everything known about a wallet's calls may come from the index without calls.
#[tokio::test(start_paused = true)]
async fn calls_are_not_known_where_one_of_two_indexes_follows_none() {
    let ways = Ways { lists_no_calls_on: Some("none"), ..Ways::default() };
    let model = model(&sales(), 20_000, ways);
    let reach = ExplorerReach::new(model.client(&["none", "lists"]));
    Box::pin(reach.head(Some(EndpointId(0)))).await.unwrap();
    assert_eq!((reach.lists_calls(), reach.shows_calls()), (false, true));
    Box::pin(reach.head(Some(EndpointId(1)))).await.unwrap();
    assert_eq!((reach.lists_calls(), reach.shows_calls()), (true, false));
    reach.forget();
    Box::pin(reach.head(Some(EndpointId(1)))).await.unwrap();
    assert_eq!((reach.lists_calls(), reach.shows_calls()), (true, true));
}

/// Its head comes in another request than its pages: far above a page it is accepted all the same.
#[tokio::test(start_paused = true)]
async fn a_node_of_one_call_a_request_is_read_in_as_few_requests_far_below_its_head() {
    let all = world(SaleKind::Sell, (1..=500).map(|at| at * 10));
    let model = model(&all, 100_000, Ways { cap: 100, ..Ways::default() });
    let limits = PoolLimits { batch_default: 1, ..PoolLimits::default() };
    let client = ListClient { pool: model.pool_with(&["one"], limits), ..model.client(&[]) };
    let lister = AlchemyLister::new(client, (0, 50_000));
    let windows = Lister::Alchemy(Box::new(lister)).all().await;
    check(&windows, &all, (0, 50_000), true);
    let sent = model.sent.load(Ordering::Relaxed);
    assert!(sent < 80, "{sent} requests");
}

/// The check after the pages shows what the earlier check did not.
#[tokio::test(start_paused = true)]
async fn calls_that_are_behind_by_a_later_look_count_no_more_than_the_pages_before_it() {
    let busy_fault = Some(("txlistinternal", BusyFault::Processing, 1));
    let ways = Ways { busy_fault, ..Ways::default() };
    let model = with_list_behind("txlistinternal", ways);
    let mut lister = explorer(&model, 20_000);
    assert_eq!(lister.head().await, Ok(Some(NEAR_HEAD)));
    lister.set_high(NEAR_HEAD);
    for _ in 0..2 {
        let read = lister.next().await;
        assert!(matches!(read, Err(UpstreamError::Unavailable { .. })), "{read:?}");
    }
    let (high, windows) = read_from_head(&model).await;
    assert_eq!(high, FAR_BEHIND);
    check_sales(high, &windows, true);
}

/// An account with few and old rows does not show how far its list has come.
#[tokio::test(start_paused = true)]
async fn the_old_rows_of_an_account_that_has_few_of_them_are_passed_over() {
    for action in ["txlist", "tokentx", "txlistinternal"] {
        let model = with_list_behind(action, Ways { busy_apart: 2_000, ..Ways::default() });
        let lister = explorer(&model, model.head);
        let by_head = model.head - subject().chain.index_lag;
        assert_eq!(lister.head().await, Ok(Some(by_head)), "{action}");
    }
}

/// It may come there again before its pages have all been read.
#[tokio::test(start_paused = true)]
async fn an_index_is_asked_how_far_it_has_come_before_each_read() {
    let model = model(&sales(), 20_000, Ways::default());
    let (high, windows) = read_from_head(&model).await;
    check_sales(high, &windows, true);
    let reach = ExplorerReach::new(model.client(&["one"]));
    let unknown = BTreeSet::new();
    assert_eq!(reach.of(EndpointId(0), 1_000, &unknown).await, Ok(Reach::Reached), "far below");
    let lists = ["txlist", "tokentx", "txlistinternal"];
    for list in lists {
        model.fall(list, FAR);
    }
    let reach = ExplorerReach::new(model.client(&["one"]));
    reach.look_before(high).await.unwrap();
    let known = reach.known();
    for list in lists {
        model.fall(list, 0);
    }
    assert_eq!(reach.of(EndpointId(0), high, &known).await, Ok(Reach::Behind));
    // An endpoint that was not checked before its pages is checked now; these pages do not count.
    let reach = ExplorerReach::new(model.client(&["one"]));
    assert_ne!(reach.of(EndpointId(0), high, &unknown).await, Ok(Reach::Reached));
}

#[tokio::test(start_paused = true)]
async fn how_far_a_list_has_come_goes_down_and_counts_for_a_while() {
    let source = nodes(|_, _, _| Err(NO_METHOD)).source(&["one"]);
    source.note_list_head(Discovery::Explorer, 10_000);
    source.note_list_head(Discovery::Explorer, 9_000);
    assert_eq!(source.list_head(Discovery::Explorer), 9_000);
    assert!(!source.is_far_down(5_000) && source.is_far_down(4_900));
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(source.list_head(Discovery::Explorer), 0);
    assert!(source.is_far_down(4_900), "the chain has not become shorter");
}

/// Lists that fall back after the look hide nothing: the read fails, and a later one is whole.
async fn check_fall(lists: &[ExplorerList], since_look: Duration, pages: usize) {
    let model = model(&sales(), 20_000, Ways::default());
    let mut lister = explorer(&model, model.head);
    let high = lister.head().await.unwrap().unwrap();
    lister.set_high(high);
    tokio::time::advance(since_look).await;
    let fall = |blocks| lists.iter().for_each(|list| model.fall(list.action(), blocks));
    fall(FAR);
    model.rise_after(pages);
    let read = lister.next().await;
    assert!(matches!(read, Err(UpstreamError::Unavailable { .. })), "{lists:?}: {read:?}");
    fall(0);
    tokio::time::sleep(Duration::from_secs(121)).await;
    let windows = Lister::Explorer(Box::new(lister)).all().await;
    check_sales(high, &windows, true);
}

/// Seed 691 of account lists: its pages were requested repeatedly, long after the check, and the
/// list had caught up when it was checked after them.
#[tokio::test(start_paused = true)]
async fn an_index_that_falls_back_between_the_looks_before_and_after_its_pages_hides_nothing() {
    // Two of each list.
    check_fall(&ExplorerList::ALL, Duration::from_secs(60), 6).await;
}

/// Its height was observed just before its pages, so only the check after them shows it.
#[tokio::test(start_paused = true)]
async fn one_list_that_falls_back_between_the_look_and_its_pages_hides_nothing() {
    for list in ExplorerList::ALL {
        check_fall(&[list], Duration::ZERO, usize::MAX).await;
    }
}
