//! Finds how far down an index's lists go. An index, or one of its lists, that was rebuilt from a
//! later block returns empty pages below it, as for an account without history. Events that nodes
//! return for a few low heights must therefore be listed: a sender of wrapped coin has a token row,
//! its transaction is in its sender's list, and an account that unwrapped coin was paid by an inner
//! call.

use std::time::Duration;

use futures_util::future::join;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::abilities::IndexStart;
use super::descent::PageAsk;
use super::discovery::Discovery;
use super::explorer_wire::{self, ExplorerList};
use super::list_client::ListClient;
use super::texts::hex_text;
use super::wire::{self, FoundLog};
use crate::decode::evm::{Account, TRANSFER, WITHDRAWAL};
use crate::domain::{Height, lock};
use crate::rpc::{Call, EndpointId, Pool};

/// The checked heights, lowest first, in parts of the newest listed height.
const PLACES: [u64; 5] = [1, 4, 16, 32, 60];
const PARTS: u64 = 64;
/// Blocks that are searched for events at each height; some nodes accept ten at most.
const BLOCKS: [u64; 3] = [1, 10, 100];
/// Events per height, of which the lists must contain at least one.
const EVENTS: usize = 3;
/// A check that takes longer decides nothing.
const LOOK_MAX: Duration = Duration::from_secs(3);
/// How long a check is valid: if all lists were complete; if it failed or took too long, in which
/// case the earlier result stays; and otherwise.
const WHOLE_FOR: Duration = Duration::from_secs(3_600);
const SLOW_FOR: Duration = Duration::from_secs(600);
const OPEN_FOR: Duration = Duration::from_secs(60);

/// An event that a node returned for a low height.
struct Shown {
    /// An account that must have rows in that block.
    account: Account,
    log: FoundLog,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The lists of transactions and of tokens, checked by transfers.
    Rows,
    Calls,
}

impl ListClient {
    /// How far down an endpoint's lists go, as far as nodes show it. `high`: a height that it has.
    pub(super) async fn index_start(&self, endpoint: EndpointId, high: Height) -> IndexStart {
        let Some(nodes) = &self.nodes else { return IndexStart::default() };
        let known = || lock(&self.abilities.starts).get(&endpoint).copied();
        let fresh = || known().filter(|(_, until)| *until > Instant::now());
        if let Some((start, _)) = fresh() {
            return start;
        }
        let _under_way = self.abilities.look.lock().await;
        if let Some((start, _)) = fresh() {
            return start;
        }
        let before = known().map(|(start, _)| start).unwrap_or_default();
        // The result for an index must not depend on the heights of one read.
        let newest = |list| self.abilities.reach.newest(endpoint, list);
        let high = ExplorerList::ALL.into_iter().filter_map(newest).fold(high, Height::max);
        let rows = self.first_height(nodes, (endpoint, Kind::Rows), high);
        let calls = async {
            // An index without any list of calls is known by other means.
            if self.abilities.may_have_no_calls(Discovery::Explorer) {
                return Some(0);
            }
            self.first_height(nodes, (endpoint, Kind::Calls), high).await
        };
        let found = timeout(LOOK_MAX, join(rows, calls)).await;
        let (rows, calls) = found.unwrap_or_default();
        let start =
            IndexStart { rows: rows.unwrap_or(before.rows), calls: calls.unwrap_or(before.calls) };
        let valid_for = match (rows, calls) {
            (Some(0), Some(0)) => WHOLE_FOR,
            (Some(_), Some(_)) => OPEN_FOR,
            (None, _) | (_, None) => SLOW_FOR,
        };
        lock(&self.abilities.starts).insert(endpoint, (start, Instant::now() + valid_for));
        start
    }

    /// The lowest checked height at which the lists contain the events; 0 if that is the first
    /// height with any events. `None` if a page of the list fails, or all nodes fail at every
    /// height.
    async fn first_height(
        &self,
        nodes: &Pool,
        (endpoint, kind): (EndpointId, Kind),
        high: Height,
    ) -> Option<Height> {
        let [mut is_lacking, mut is_answered] = [false; 2];
        for part in PLACES {
            let place = high / PARTS * part;
            let Some(shown) = self.shown_at(nodes, kind, place).await else { continue };
            is_answered = true;
            if shown.is_empty() {
                continue;
            }
            if self.is_listed(nodes, (endpoint, kind), shown).await? {
                return Some(if is_lacking { place } else { 0 });
            }
            is_lacking = true;
        }
        is_answered.then_some(if is_lacking { Height::MAX } else { 0 })
    }

    /// A few events at a height, searched in as few blocks as possible; `None` if no node answers.
    async fn shown_at(&self, nodes: &Pool, kind: Kind, place: Height) -> Option<Vec<Shown>> {
        let mut is_answered = false;
        for blocks in BLOCKS {
            let calls = self.queries(kind, (place, place.saturating_add(blocks - 1)));
            for answer in nodes.batch(&calls, &self.options().failing_soon()).await {
                let logs = answer.ok().and_then(|answer| wire::logs(&answer.result));
                is_answered |= logs.is_some();
                let shown = logs.into_iter().flatten().filter_map(|log| shown(kind, log));
                let mut shown: Vec<Shown> = shown.collect();
                if !shown.is_empty() {
                    // Other contracts may be fake tokens, which an index may hide.
                    let wrapped = self.subject.chain.wrapped_native.bytes();
                    shown.sort_by_key(|one| one.log.address != *wrapped);
                    let apart = shown.len().div_ceil(EVENTS);
                    return Some(shown.into_iter().step_by(apart).collect());
                }
            }
        }
        is_answered.then(Vec::new)
    }

    /// Queries for events of the wrapped coin, transfers from a reference pool first.
    fn queries(&self, kind: Kind, range: (Height, Height)) -> Vec<Call> {
        let chain = &self.subject.chain;
        let topic0 = hex_text(if kind == Kind::Rows { &TRANSFER } else { &WITHDRAWAL });
        let pools = chain.reference_pools.iter().filter_map(|pool| pool.bytes().try_into().ok());
        let pools: Vec<String> = pools.map(|pool: Account| wire::topic(&pool)).collect();
        let of_pools = (kind == Kind::Rows && !pools.is_empty())
            .then(|| wire::logs_call(range, [("topics", json!([topic0, pools]))]));
        let wrapped = json!(hex_text(chain.wrapped_native.bytes()));
        let of_coin = wire::logs_call(range, [("address", wrapped), ("topics", json!([topic0]))]);
        of_pools.into_iter().chain([of_coin]).collect()
    }

    /// Whether an endpoint lists at least one of these; `None` if a failure leaves that open.
    async fn is_listed(
        &self,
        nodes: &Pool,
        (endpoint, kind): (EndpointId, Kind),
        shown: Vec<Shown>,
    ) -> Option<bool> {
        let [mut moved, mut sent, mut is_open] = [false, kind == Kind::Calls, false];
        for Shown { account, log } in shown {
            let list = if kind == Kind::Rows { ExplorerList::Tokens } else { ExplorerList::Calls };
            if !moved {
                let has_row = self.has_row(endpoint, list, account, log.block).await;
                is_open |= has_row.is_none();
                moved = has_row.unwrap_or(false);
            }
            if !sent {
                let has_sender = self.has_sender(nodes, endpoint, &log).await;
                is_open |= has_sender.is_none();
                sent = has_sender.unwrap_or(false);
            }
            if moved && sent {
                return Some(true);
            }
        }
        (!is_open).then_some(false)
    }

    /// Whether an event's transaction is in its sender's list; true if no node has the transaction.
    async fn has_sender(&self, nodes: &Pool, endpoint: EndpointId, log: &FoundLog) -> Option<bool> {
        let params = json!([hex_text(&log.hash)]);
        let answer = nodes.call("eth_getTransactionByHash", params, &self.options()).await.ok()?;
        let Some(seen) = wire::seen(&answer.result) else { return Some(true) };
        self.has_row(endpoint, ExplorerList::Transactions, seen.from, log.block).await
    }

    async fn has_row(
        &self,
        endpoint: EndpointId,
        list: ExplorerList,
        account: Account,
        block: Height,
    ) -> Option<bool> {
        let ask = PageAsk { low: block, end: block, page: 1, rows: Some(1), confirms_end: false };
        let request = explorer_wire::page_ask(list, hex_text(&account), &ask, 1);
        let options = self.on(endpoint);
        let reply = self.pool.ask(&request, explorer_wire::read_list, &options).await.ok()?;
        let rows = explorer_wire::rows(list, &reply.body, &account)?;
        Some(!rows.is_empty())
    }
}

/// The account that gave or unwrapped the coin, except the zero address, which has no lists.
fn shown(kind: Kind, log: FoundLog) -> Option<Shown> {
    let is_empty = log.data.iter().all(|byte| *byte == 0);
    let account = match (kind, log.topics.as_slice()) {
        (Kind::Rows, [_, from, _]) | (Kind::Calls, [_, from]) => from,
        (Kind::Rows | Kind::Calls, _) => return None,
    };
    let account = *account.last_chunk::<20>()?;
    (!is_empty && account != [0; 20]).then_some(Shown { account, log })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::join_all;
    use serde_json::Value;

    use super::super::explorer::ExplorerLister;
    use super::super::lister::Lister;
    use super::super::lists_model::{Model, Ways, subject};
    use super::super::lists_tests::{NEAR_HEAD, model, sales};
    use super::super::node_model::{ScriptedNodes, nodes};
    use super::*;
    use crate::domain::Doubts;
    use crate::rpc::scripted::NodeFault;

    const ONE: EndpointId = EndpointId(0);

    /// The wrapped coin, for which the model lists rows in each block.
    fn coin() -> Account {
        subject().chain.wrapped_native.bytes().try_into().unwrap()
    }

    /// A node with logs from this block on: one log of each kind in the first block of a search.
    fn node(logs_from: Height) -> Arc<ScriptedNodes> {
        nodes(move |_, method, params| {
            let filter = &params[0];
            let low = filter["fromBlock"].as_str().and_then(wire::hex_number);
            Ok(match (method, low) {
                ("eth_getLogs", Some(low)) if low >= logs_from => {
                    let kind = filter["topics"][0].clone();
                    let mut topics = vec![kind.clone(), wire::topic(&coin()).into()];
                    topics.extend(
                        (kind == hex_text(&TRANSFER)).then(|| wire::topic(&[1; 20]).into()),
                    );
                    json!([{
                        "address": hex_text(&coin()), "topics": topics,
                        "data": format!("0x{:064x}", 1), "blockNumber": filter["fromBlock"],
                        "transactionHash": hex_text(&[1; 32]),
                    }])
                }
                ("eth_getLogs", _) => json!([]),
                ("eth_getTransactionByHash", _) => json!({
                    "hash": hex_text(&[1; 32]), "from": hex_text(&coin()), "to": null,
                }),
                _ => Value::Null,
            })
        })
    }

    fn client(model: &Arc<Model>, node: &Arc<ScriptedNodes>) -> ListClient {
        ListClient { nodes: Some(node.pool(&["node"])), ..model.client(&["one"]) }
    }

    #[tokio::test(start_paused = true)]
    async fn lists_begin_where_they_show_what_nodes_do() {
        let start = |rows, calls| IndexStart { rows, calls };
        for (logs_from, list, first, expected) in [
            (0, "tokentx", 0, start(0, 0)),
            (0, "tokentx", 1_000, start(1_600, 0)),
            (0, "txlist", 1_000, start(1_600, 0)),
            (0, "txlistinternal", 3_500, start(0, 6_000)),
            (0, "tokentx", Height::MAX, start(Height::MAX, 0)),
            (0, "txlist", Height::MAX, start(Height::MAX, 0)),
            // Rows of events that nodes do not return cannot be missing either.
            (2_000, "tokentx", 1_000, start(0, 0)),
            (Height::MAX, "tokentx", Height::MAX, start(0, 0)),
        ] {
            let ways = Ways { lists_from: Some((list, first)), ..Ways::default() };
            let (model, node) = (model(&[], 6_500, ways), node(logs_from));
            let client = client(&model, &node);
            let found = client.index_start(ONE, 6_400).await;
            assert_eq!(found, expected, "{list} from {first}, logs from {logs_from}");
            let asked = node.count("eth_getLogs");
            assert_eq!(client.index_start(ONE, 6_400).await, expected);
            assert_eq!(node.count("eth_getLogs"), asked, "it is known for a while");
        }
    }

    /// The result of the earlier check stays valid.
    #[tokio::test(start_paused = true)]
    async fn a_look_that_fails_decides_nothing() {
        let before = IndexStart { rows: 1_600, calls: 7 };
        let away = nodes(|_, _, _| Err(NodeFault::Rpc(-32005, "limit exceeded")));
        for (trouble, node) in [(1, node(0)), (0, away)] {
            let model = model(&[], 6_500, Ways { trouble, ..Ways::default() });
            let client = client(&model, &node);
            lock(&model.abilities.starts).insert(ONE, (before, Instant::now()));
            assert_eq!(client.index_start(ONE, 6_400).await, before);
            let until = lock(&model.abilities.starts)[&ONE].1;
            assert_eq!(until - Instant::now(), SLOW_FOR, "not as one that found lists whole");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_look_serves_all_who_wait_for_it() {
        let mut asked = Vec::new();
        for readers in [1, 50] {
            let (model, node) = (model(&[], 6_500, Ways::default()), node(0));
            let client = client(&model, &node);
            join_all((0..readers).map(|_| client.index_start(ONE, 6_400))).await;
            asked.push(node.count("eth_getLogs"));
        }
        assert_eq!(asked[0], asked[1]);
    }

    /// Heights below the first rows are in doubt, whether the wallet has code or not.
    #[tokio::test(start_paused = true)]
    async fn windows_below_the_first_rows_of_an_index_are_in_doubt() {
        for (list, doubts) in [
            ("txlist", Doubts::DEPTH),
            ("tokentx", Doubts::DEPTH),
            ("txlistinternal", Doubts::INNER_CALLS),
        ] {
            let ways = Ways { lists_from: Some((list, 5_000)), ..Ways::default() };
            let (model, node) = (model(&sales(), 20_000, ways), node(0));
            let lister = ExplorerLister::new(client(&model, &node), (0, 12_800));
            let windows = Lister::Explorer(Box::new(lister)).all().await;
            let first = NEAR_HEAD / PARTS * PLACES[3];
            assert!(windows.iter().any(|window| window.low < first));
            // The newest window does not wait for the check.
            let newest = windows.first().map(|window| window.low).filter(|low| *low > 0);
            for window in windows.iter().filter(|window| Some(window.low) != newest) {
                let expected = if window.low < first { doubts } else { Doubts::NONE };
                assert_eq!(window.doubts, expected, "{list} down to {}", window.low);
                let mut below = window.found.iter().filter(|one| one.block < first);
                let is_open = list == "txlistinternal";
                assert!(!is_open || below.all(|one| one.calls.is_none()), "nodes trace them");
            }
        }
    }
}
