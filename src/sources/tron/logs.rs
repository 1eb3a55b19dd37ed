//! Finds transactions by a plain node's events: `eth_getLogs` of token transfers from and to the
//! wallet, in windows of blocks, downwards.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::TronSource;
use super::depth::{EventEndpoints, VOTES_OF_UNSTEADY};
use super::depth_search::Witness;
use super::seen::SeenTx;
use super::wire::{self, FoundRow, HeightRange, is_too_wide, search_reading};
use crate::decode::evm::{Account, TRANSFER, Word};
use crate::domain::{Height, lock};
use crate::rpc::{Call, CallOptions, CallOutcome, EndpointId, Result, UpstreamError};
use crate::sources::evm::wire::{self as evm_wire, FoundLog, head_call};
use crate::sources::pager::RangeVotes;

/// Batch size from which one call is left for sentinel events.
const SENTINEL_BATCH_MIN: usize = 4;
/// More than three hours: blocks by which a search must lie below a recently reported head to need
/// no new one.
const HEAD_MARGIN: u64 = 4_096;

#[derive(Debug)]
pub(super) enum Found {
    Rows(Vec<FoundRow>),
    /// The endpoint requires a smaller window, of this many blocks if it names a number.
    TooMuch(Option<u64>),
    /// The request also had far longer windows and was refused as a whole: repeat the search
    /// without them.
    Unread,
}

/// A transaction in a search's answer, with one thing that the answer shows: the transaction
/// itself, that tokens left the wallet, or that tokens came to it.
type FoundPart = (Height, Word, LogShown);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum LogShown {
    Itself,
    Gave,
    Got,
}

#[derive(Debug, Default)]
struct Answer {
    rows: Vec<FoundRow>,
    /// The endpoint requires a smaller window, of this many blocks if it names a number; 0: it does
    /// not.
    too_much: Option<u64>,
    /// The request also had far longer windows and was refused as a whole.
    is_unread: bool,
    /// The server had not reached the window's top, or did not show that it keeps events so deep.
    is_behind: bool,
    /// Nothing shows the server's height, or its depth.
    is_apart: bool,
}

impl Answer {
    /// Joins the answer to the window's other search.
    fn join(&mut self, mut other: Self) {
        self.rows.append(&mut other.rows);
        self.too_much = other.too_much.or(self.too_much);
        self.is_unread |= other.is_unread;
        self.is_behind |= other.is_behind;
        self.is_apart |= other.is_apart;
    }
}

#[derive(Debug)]
enum SearchEnd {
    Answers(Vec<Answer>),
    /// Timeout: the windows are too much for the endpoint, or it hangs.
    TimedOut(UpstreamError),
}

#[derive(Debug)]
struct Search {
    /// Index of the window.
    at: usize,
    window: HeightRange,
    call: Call,
}

/// The answers about one window. Those of endpoints that have not reached it do not count.
#[derive(Debug)]
struct Tally {
    window: HeightRange,
    votes: RangeVotes<FoundPart, Option<EndpointId>>,
    too_much: Option<u64>,
    is_unread: bool,
    /// More answers must agree.
    is_apart: bool,
}

impl Tally {
    fn new(window: HeightRange) -> Self {
        let votes = RangeVotes::new();
        Self { window, votes, too_much: None, is_unread: false, is_apart: false }
    }

    /// Two endpoints agree, or the only one that keeps the events gave the same answer twice.
    fn is_confirmed(&self, deep: &EventEndpoints) -> bool {
        let voters: Vec<EndpointId> = self.votes.agreeing().copied().flatten().collect();
        let first = voters.first();
        let others = voters.iter().any(|voter| Some(voter) != first);
        let votes = if self.is_apart { VOTES_OF_UNSTEADY } else { deep.votes };
        voters.len() >= votes && (others || deep.is_alone)
    }

    fn is_open(&self, deep: &EventEndpoints) -> bool {
        !self.is_refused() && !self.is_confirmed(deep)
    }

    fn is_refused(&self) -> bool {
        self.too_much.is_some() || self.is_unread
    }

    /// Adds an answer; false if it, or one before it, lacked something.
    fn absorb(&mut self, answer: &Answer, by: EndpointId) -> bool {
        // If one of the servers at this address lags, others may too without a sign.
        self.is_apart |= answer.is_apart || answer.is_behind;
        if answer.too_much.is_some() {
            self.too_much = answer.too_much;
            return true;
        }
        if answer.is_unread {
            self.is_unread = true;
            return true;
        }
        let parts = answer.rows.iter().flat_map(|row| {
            let shown = [
                Some(LogShown::Itself),
                row.seen.gave.then_some(LogShown::Gave),
                row.seen.got.then_some(LogShown::Got),
            ];
            shown.into_iter().flatten().map(move |shown| (row.at, row.id, shown))
        });
        self.votes.add(parts.collect(), Some(by).filter(|_| !answer.is_behind))
    }

    fn found(self, deep: &EventEndpoints) -> (Found, bool) {
        if let Some(range) = self.too_much {
            return (Found::TooMuch(Some(range).filter(|range| *range > 0)), true);
        }
        if self.is_unread {
            return (Found::Unread, true);
        }
        let is_confirmed = self.is_confirmed(deep);
        let mut found: BTreeMap<(Height, Word), SeenTx> = BTreeMap::new();
        for (height, id, shown) in self.votes.into_known() {
            let seen = found.entry((height, id)).or_default();
            seen.gave |= shown == LogShown::Gave;
            seen.got |= shown == LogShown::Got;
        }
        let row = |((at, id), seen)| FoundRow { id, at, height: Some(at), seen };
        (Found::Rows(found.into_iter().map(row).collect()), is_confirmed)
    }
}

impl TronSource {
    /// Searches windows until two answers agree about each, from different endpoints if possible;
    /// returns with each whether they did.
    pub(super) async fn search(
        &self,
        wallet: &Account,
        windows: &[HeightRange],
        options: &CallOptions,
    ) -> Result<Vec<(Found, bool)>> {
        let low = windows.iter().map(|window| window.low).min().unwrap_or(0);
        let mut deep = self.event_endpoints(low);
        let mut tallies: Vec<Tally> = windows.iter().copied().map(Tally::new).collect();
        let mut failure = UpstreamError::Unavailable { attempts: 0, last: NONE_KEEPS.to_owned() };
        // Different first endpoints for different windows, to share the load.
        let turn = windows
            .first()
            .map_or(0, |window| window.high / self.inner.limits.logs_range_max.max(1));
        for round in 0..u64::from(self.inner.limits.logs_votes_max) {
            let mut open: Vec<&mut Tally> =
                tallies.iter_mut().filter(|tally| tally.is_open(&deep)).collect();
            let Some(on) = chosen(&deep.ids, turn + round).filter(|_| !open.is_empty()) else {
                break;
            };
            // A further answer of an endpoint that is not the only one confirms nothing.
            if deep.ids.len() == 1
                && !deep.is_alone
                && open.iter().all(|tally| tally.votes.is_answered())
            {
                break;
            }
            let asked: Vec<HeightRange> = open.iter().map(|tally| tally.window).collect();
            // If another endpoint can answer, the window need not be split.
            let is_last = deep.ids.len() < 2 && !open.iter().any(|one| one.votes.is_answered());
            match self.search_once(wallet, &asked, (on, options)).await {
                Ok(SearchEnd::TimedOut(_)) if is_last && can_split(&asked) => {
                    for (tally, answer) in open.iter_mut().zip(refused_by_length(&asked, 0)) {
                        tally.absorb(&answer, on);
                    }
                }
                Ok(SearchEnd::Answers(answers)) => {
                    for (tally, answer) in open.iter_mut().zip(&answers) {
                        if !tally.absorb(answer, on) {
                            self.record_unsteady(on);
                            deep.votes = self.event_endpoints(low).votes;
                        }
                    }
                }
                Ok(SearchEnd::TimedOut(error)) | Err(error) => {
                    deep.ids.retain(|id| *id != on);
                    self.record_search_failure(on);
                    failure = error;
                }
            }
        }
        let is_silent = |tally: &Tally| !tally.votes.is_answered() && !tally.is_refused();
        if tallies.iter().any(is_silent) {
            return Err(failure);
        }
        Ok(tallies.into_iter().map(|tally| tally.found(&deep)).collect())
    }

    /// Searches windows in as few requests as the endpoint takes. Its depth is shown in the same
    /// requests or after them, as it may have pruned events since; its height is shown in the same
    /// requests or around them, as it may have fallen behind.
    async fn search_once(
        &self,
        wallet: &Account,
        windows: &[HeightRange],
        (on, options): (EndpointId, &CallOptions),
    ) -> Result<SearchEnd> {
        let topic = evm_wire::topic(wallet).into();
        let of = |(at, window): (usize, &HeightRange)| {
            let window = *window;
            transfer_calls(&topic, window).map(|call| Search { at, window, call })
        };
        let searches: Vec<Search> = windows.iter().enumerate().flat_map(of).collect();
        let low = windows.iter().map(|window| window.low).min().unwrap_or(0);
        let high = windows.iter().map(|window| window.high).max().unwrap_or(0);
        let options = CallOptions { on: Some(on), ..options.clone() };
        let at_once = self.inner.pool.calls_at_once();
        let sentinel = self.sentinel(on, low);
        let (asks_head, has_room) = (at_once > 1, at_once >= SENTINEL_BATCH_MIN);
        let extras = Extras { asks_head, sentinel: sentinel.filter(|_| has_room) };
        let looks = !asks_head && self.may_lack_head(on, high);
        let before = if looks { self.head_apart(low, &options).await? } else { None };
        let mut answers: Vec<Answer> = windows.iter().map(|_| Answer::default()).collect();
        for part in searches.chunks(at_once.saturating_sub(extras.count()).max(1)) {
            let found = match self.search_part(wallet, part, (extras, &options)).await? {
                SearchEnd::Answers(found) => found,
                late @ SearchEnd::TimedOut(_) => return Ok(late),
            };
            for (search, answer) in part.iter().zip(found) {
                if let Some(all) = answers.get_mut(search.at) {
                    all.join(answer);
                }
            }
        }
        if looks {
            let after = if before.is_some() { self.head_apart(low, &options).await? } else { None };
            // An endpoint without a head counts as below every window.
            let reached = before.min(after);
            self.note_log_head(on, reached);
            for (window, answer) in windows.iter().zip(&mut answers) {
                answer.is_behind |= reached < Some(window.high);
            }
        }
        if let Some(sentinel) = sentinel.filter(|_| !has_room) {
            let is_shown = self.shows(sentinel, &options).await?;
            for answer in &mut answers {
                answer.is_behind |= !is_shown;
            }
        }
        Ok(SearchEnd::Answers(answers))
    }

    /// Sends one request. A server that lacks a block returns nothing for it, and one address may
    /// belong to several servers: only a head and sentinel events in the same request prove its
    /// answers.
    async fn search_part(
        &self,
        wallet: &Account,
        searches: &[Search],
        (extras, options): (Extras, &CallOptions),
    ) -> Result<SearchEnd> {
        let logs = searches.iter().map(|search| search.call.clone());
        let head = extras.asks_head.then(head_call);
        let sentinel = extras.sentinel.map(|one| self.search_for(one));
        let calls: Vec<Call> = logs.chain(head).chain(sentinel).collect();
        let asker = self.rpc_asker(search_reading);
        let (outcomes, endpoint) = match asker.ask_at_once("eth_getLogs", &calls, options).await {
            Ok(answered) => answered,
            Err(error) if is_timeout(&error) => return Ok(SearchEnd::TimedOut(error)),
            Err(error) => {
                let windows: Vec<HeightRange> = searches.iter().map(|one| one.window).collect();
                let range = whole_refused(&windows, error)?.unwrap_or(0);
                return Ok(SearchEnd::Answers(refused_by_length(&windows, range)));
            }
        };
        let mut more = outcomes.iter().skip(searches.len());
        let newest = more.next().filter(|_| extras.asks_head).and_then(|head| head.as_ref().ok());
        let newest = newest.and_then(|newest| evm_wire::number(newest));
        let shown = more.next().filter(|_| extras.sentinel.is_some());
        let is_shallow = shown.is_some_and(|shown| shown.as_ref().is_ok_and(|all| is_empty(all)));
        let lowest = searches.iter().map(|search| search.window.low).min().unwrap_or(0);
        let reached = self.reached(endpoint, newest, lowest);
        let is_apart = newest.is_none() || shown.is_some_and(Result::is_err);
        let answer = |(search, outcome): (&Search, &CallOutcome)| {
            let is_late = reached.is_some_and(|reached| reached < search.window.high);
            let is_behind = is_late || is_shallow;
            let answer = self.answer_of(wallet, search, (outcome, endpoint))?;
            Ok(Answer { is_behind, is_apart, ..answer })
        };
        let answers: Result<_> = searches.iter().zip(&outcomes).map(answer).collect();
        Ok(SearchEnd::Answers(answers?))
    }

    /// The height of the server that answered, which may lag by as much as one server of the
    /// address recently did.
    fn reached(&self, by: EndpointId, newest: Option<Height>, lowest: Height) -> Option<Height> {
        if let Some(newest) = newest.filter(|newest| *newest >= lowest) {
            self.inner.node_reach.note(by, (), &[newest]);
        }
        let late = self.inner.node_reach.reached(by, ());
        newest.map(|newest| late.unwrap_or(newest).min(newest))
    }

    /// The height of the endpoint's servers, by the head that it reports in a separate request;
    /// `None` if it reports none.
    async fn head_apart(&self, lowest: Height, options: &CallOptions) -> Result<Option<Height>> {
        let asked = self.rpc("eth_blockNumber", &[head_call()], options).await;
        let (answers, endpoint) = match asked {
            Err(UpstreamError::NotSupported { .. } | UpstreamError::Rpc { .. }) => return Ok(None),
            asked => asked?,
        };
        Ok(self.reached(endpoint, wire::first_number(&answers), lowest))
    }

    /// Whether no recent head shows that an endpoint is far above a height.
    fn may_lack_head(&self, id: EndpointId, high: Height) -> bool {
        let heads = lock(&self.inner.log_heads);
        let head = heads.get(&id).and_then(|head| head.get(Instant::now()));
        head < Some(high.saturating_add(HEAD_MARGIN))
    }

    /// Records the lower of two heads: one false answer must not make searches go without them.
    fn note_log_head(&self, id: EndpointId, head: Option<Height>) {
        let Some(head) = head else { return };
        let mut heads = lock(&self.inner.log_heads);
        heads.entry(id).or_default().note(head, Instant::now());
    }

    /// The events of an answer; an error if one is outside the range.
    pub(super) fn events(
        &self,
        raw: &RawValue,
        (low, high): (Height, Height),
        by: EndpointId,
    ) -> Result<Vec<FoundLog>> {
        evm_wire::logs(raw)
            .filter(|events| events.iter().all(|event| (low..=high).contains(&event.block)))
            .ok_or_else(|| self.malformed(by, "eth_getLogs gave no events"))
    }

    fn answer_of(
        &self,
        wallet: &Account,
        search: &Search,
        (outcome, endpoint): (&CallOutcome, EndpointId),
    ) -> Result<Answer> {
        match outcome {
            Ok(result) => {
                let HeightRange { low, high } = search.window;
                let events = self.events(result, (low, high), endpoint)?;
                let rows = events.iter().map(|event| row(event, wallet)).collect();
                Ok(Answer { rows, ..Answer::default() })
            }
            Err(error) if is_too_wide(error.code, &error.message) => {
                let range = wire::range_named(&error.message).unwrap_or(0);
                Ok(Answer { too_much: Some(range), ..Answer::default() })
            }
            Err(error) => Err(self.refused(endpoint, error.clone())),
        }
    }
}

/// NFTs have their id as a topic, and no amount.
fn row(event: &FoundLog, wallet: &Account) -> FoundRow {
    let moved = event.topics.len() == 3 && event.data.iter().any(|byte| *byte != 0);
    let end = |at: usize| event.topics.get(at).and_then(evm_wire::account_of);
    let names = |at: usize| moved && end(at).as_ref() == Some(wallet);
    let seen = SeenTx { gave: names(1), got: names(2), ..SeenTx::default() };
    FoundRow { id: event.hash, at: event.block, height: Some(event.block), seen }
}

/// Calls that a request contains next to its searches.
#[derive(Debug, Clone, Copy)]
struct Extras {
    asks_head: bool,
    /// Sentinel events at least as deep.
    sentinel: Option<Witness>,
}

impl Extras {
    fn count(self) -> usize {
        usize::from(self.asks_head) + usize::from(self.sentinel.is_some())
    }
}

fn is_empty(events: &RawValue) -> bool {
    wire::heights(events).is_none_or(|heights| heights.is_empty())
}

const NONE_KEEPS: &str = "no endpoint is known to keep events of these blocks";

fn chosen(ids: &[EndpointId], turn: u64) -> Option<EndpointId> {
    let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
    let at = usize::try_from(turn.checked_rem(count)?).unwrap_or(0);
    ids.get(at).copied()
}

/// The range named by an error that concerns the whole request, being too large or too slow for
/// each of its windows.
fn whole_refused(windows: &[HeightRange], error: UpstreamError) -> Result<Option<u64>> {
    if let UpstreamError::Rpc { code, message, .. } = &error
        && is_too_wide(*code, message)
        && can_split(windows)
    {
        return Ok(wire::range_named(message));
    }
    Err(error)
}

fn can_split(windows: &[HeightRange]) -> bool {
    windows.iter().any(|window| window.low < window.high)
}

/// Assigns a refusal of the whole request to its windows: the longest ones are too large; those of
/// at most half that length are searched again without them.
fn refused_by_length(windows: &[HeightRange], range: u64) -> Vec<Answer> {
    let longest = windows.iter().map(|window| window.length()).max().unwrap_or(0);
    let answer = |window: &HeightRange| {
        let is_unread = window.length() <= longest / 2;
        Answer { too_much: (!is_unread).then_some(range), is_unread, ..Answer::default() }
    };
    windows.iter().map(answer).collect()
}

fn is_timeout(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Unavailable { last, .. } if last.contains(TIMEOUT))
}

/// The transport's text for a timeout.
const TIMEOUT: &str = "no answer in time";

/// Searches for transfers from the wallets, and to them.
pub(super) fn transfer_calls(wallets: &Value, HeightRange { low, high }: HeightRange) -> [Call; 2] {
    let transfer = evm_wire::hex(&TRANSFER);
    [json!([transfer, wallets]), json!([transfer, null, wallets])]
        .map(|topics| evm_wire::logs_call((low, high), [("topics", topics)]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::*;

    fn window(low: Height, high: Height) -> HeightRange {
        HeightRange { low, high }
    }

    #[test]
    fn a_refused_request_says_nothing_of_windows_far_below_its_longest() {
        let windows = [window(0, 99), window(100, 160), window(161, 210), window(211, 211)];
        let answers = refused_by_length(&windows, 7);
        let shown: Vec<_> = answers.iter().map(|one| (one.too_much, one.is_unread)).collect();
        assert_eq!(shown, [(Some(7), false), (Some(7), false), (None, true), (None, true)]);
    }

    const WALLET: Account = [7; 20];

    /// A node that kept events of the reference pools when it was asked how deep it keeps them, and
    /// has none of the wallet; since then it has dropped the old ones.
    async fn confirmed(has_dropped: bool) -> bool {
        let dropped = Arc::new(AtomicBool::new(false));
        let is_dropped = Arc::clone(&dropped);
        let nodes = ScriptedNodes::new(move |(_, path, body)| match path {
            "wallet/getblock" => fake::header(body),
            "jsonrpc" => fake::rpc(body, |method, filter| match method {
                "eth_blockNumber" => json!("0x30d40"),
                _ if filter["address"].is_array() && !is_dropped.load(Ordering::Relaxed) => {
                    json!([{"blockNumber": filter["fromBlock"]}])
                }
                _ => json!([]),
            }),
            _ => (404, json!({"error": "not found"})),
        });
        let limits = TronLimits { events_from: 0, ..TronLimits::default() };
        let source = fake::source(&["one"], &nodes, limits);
        let kept = source.events_kept(0, 100_000, &options()).await.unwrap().unwrap();
        assert_eq!(kept.from, 0);
        dropped.store(has_dropped, Ordering::Relaxed);
        let found = source.search(&WALLET, &[window(10, 20)], &options()).await.unwrap();
        matches!(found.as_slice(), [(Found::Rows(rows), true)] if rows.is_empty())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_with_events_that_show_how_deep_it_goes() {
        assert!(confirmed(false).await);
        assert!(!confirmed(true).await);
    }

    /// Searches a window on a node that takes one call a second, has events of the reference pools
    /// and none of the wallet, and names these heads by turns. Whether that is confirmed, and how
    /// often it was asked for its head.
    async fn paced(searched: HeightRange, heads: [Option<Height>; 2]) -> (bool, usize) {
        let (refusals, asked) = (AtomicUsize::new(2), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        let named = move || heads[count.fetch_add(1, Ordering::Relaxed) % 2];
        let answer = move |method: &str, filter: &Value| match method {
            "eth_blockNumber" => named().map_or(Value::Null, |head| json!(format!("{head:#x}"))),
            _ if filter["address"].is_array() => json!([{"blockNumber": filter["fromBlock"]}]),
            _ => json!([]),
        };
        let nodes = ScriptedNodes::new(move |(_, path, body)| {
            let take = |left: usize| left.checked_sub(1);
            if refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                return (429, json!({"Error": "the maximum frequency is 1 time per second"}));
            }
            match path {
                "wallet/getblock" => fake::header(body),
                "jsonrpc" => fake::rpc(body, &answer),
                _ => (404, json!({"error": "not found"})),
            }
        });
        let limits = TronLimits { events_from: 0, ..TronLimits::default() };
        let source = fake::source(&["one"], &nodes, limits);
        source.events_kept(0, 200_000, &options()).await.unwrap().unwrap();
        assert_eq!(source.inner.pool.calls_at_once(), 1);
        let found = source.search(&WALLET, &[searched], &options()).await.unwrap();
        let [(Found::Rows(rows), is_confirmed)] = found.as_slice() else { panic!("{found:?}") };
        assert!(rows.is_empty());
        (*is_confirmed, asked.load(Ordering::Relaxed))
    }

    /// Four answers have to agree, with a head before and one after each. A window that is in doubt
    /// is searched twelve times.
    #[tokio::test(start_paused = true)]
    async fn a_node_of_one_call_a_request_shows_around_each_search_how_far_it_has_come() {
        let top = window(199_000, 200_000);
        assert_eq!(paced(top, [Some(200_000); 2]).await, (true, 8));
        assert_eq!(paced(top, [Some(199_960); 2]).await, (false, 24), "it lags");
        for heads in [[200_000, 199_960], [199_960, 200_000]] {
            assert_eq!(paced(top, heads.map(Some)).await, (false, 24), "it falls back");
        }
        assert_eq!(paced(top, [None; 2]).await, (false, 12), "it names no head");
        assert_eq!(paced(top, [Some(200_000), None]).await, (false, 24));
    }

    /// Two heads prove for half a minute that it is far above.
    #[tokio::test(start_paused = true)]
    async fn far_below_the_head_it_is_asked_for_once() {
        assert_eq!(paced(window(10, 20), [Some(4_116), Some(4_117)]).await, (true, 2));
        assert_eq!(paced(window(10, 20), [Some(4_115), Some(5_000)]).await, (true, 8));
    }
}
