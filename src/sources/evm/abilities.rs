//! What was learned about each endpoint: whether its index lists inner calls, and its abilities.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::discovery::Discovery;
use super::explorer_wire::ExplorerList;
use super::list_row::{ListRow, What};
use super::{EvmSource, Past};
use crate::decode::evm::Word;
use crate::domain::{Doubts, Height, lock};
use crate::rpc::{EndpointId, EndpointStatus, Pool};
use crate::sources::ability::{Ability, AbilityKind, Offered};
use crate::sources::page_sizes::PageSizes;
use crate::sources::server_reach::ServerReach;
use crate::sources::spaced::SpacedAnswers;

/// Answers without calls, each `SPACING` after the one before, that show an index to list none.
const ABSENCES_MIN: u32 = 3;
const SPACING: Duration = Duration::from_secs(10);
/// The same for this long if the index listed calls before: its tables may be under reconstruction.
const LOST_AFTER: Duration = Duration::from_secs(600);
/// The most blocks without traces that are remembered, and transactions that a list lacked.
const UNTRACED_MAX: usize = 10_000;
/// Windows are not prefetched before they are proved for this long after one proved to be
/// different.
const UNPROVED_PAUSE: Duration = Duration::from_secs(300);

/// What was learned about each way: whether it lists inner calls, and how far its lists are
/// synchronized.
#[derive(Debug, Default)]
pub(super) struct Abilities {
    calls: Mutex<HashMap<Discovery, CallsSeen>>,
    /// Blocks of which a gateway with traces gave none.
    untraced: Mutex<BTreeMap<Height, SpacedAnswers>>,
    /// The lowest block of which the gateway has shown traces.
    traces_from: Mutex<Option<Height>>,
    /// Whether a window of any gateway came with a trace, and whether one came without any although
    /// a contract had run in it.
    has_shown_traces: AtomicBool,
    has_lacked_traces: AtomicBool,
    /// Whether the logs of a receipt were those of its bloom filter.
    has_filled_filter: AtomicBool,
    /// Whether the hash of a header was the one that a transaction of its block names.
    has_named_block: AtomicBool,
    pub(super) reach: ServerReach<ExplorerList>,
    pub(super) page_sizes: ListSizes,
    /// Indexes that have shown a transaction which did not fail.
    show_success: Mutex<BTreeSet<EndpointId>>,
    /// Of each kind of rows: whether asset transfers have shown one, or are not asked for it. False
    /// where nodes have, of a transaction that was found by other kinds.
    transfers: Mutex<HashMap<ExplorerList, bool>>,
    /// Kinds of rows that a way has shown. Asset transfers of most chains have no calls, which an
    /// index of the same chain lists.
    listed: Mutex<HashSet<(Discovery, ExplorerList)>>,
    /// Transactions that a list lacked.
    unlisted: Mutex<HashMap<(ExplorerList, Word), SpacedAnswers>>,
    /// Heads that nodes reported.
    pub(super) node_reach: ServerReach<()>,
    /// How far down the lists of each index go, and until when that counts.
    pub(super) starts: Mutex<HashMap<EndpointId, (IndexStart, Instant)>>,
    /// Held by the one look at that which is under way: others wait for what it finds.
    pub(super) look: tokio::sync::Mutex<()>,
    /// When a window last proved to be different from the one that was expected.
    unproved_at: Mutex<Option<Instant>>,
}

pub(super) type ListSizes = PageSizes<(EndpointId, ExplorerList)>;

impl ListSizes {
    /// Counts distinct rows, as repeated ones do not make a longer page.
    pub(super) fn note(&self, list: (EndpointId, ExplorerList), page: &[ListRow]) {
        let distinct: HashSet<_> = page.iter().map(|row| row.hash).collect();
        self.may_be_cut(list, distinct.len(), 0);
    }
}

/// The heights below which an index is not known to have rows; 0 where nothing shows that some are
/// missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct IndexStart {
    /// Of transactions and tokens.
    pub(super) rows: Height,
    pub(super) calls: Height,
}

impl IndexStart {
    /// What holds of two endpoints.
    pub(super) fn joined(self, other: Self) -> Self {
        Self { rows: self.rows.max(other.rows), calls: self.calls.max(other.calls) }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct CallsSeen {
    has_worked: bool,
    absences: SpacedAnswers,
}

impl CallsSeen {
    fn are_lost(&self) -> bool {
        let time = if self.has_worked { LOST_AFTER } else { Duration::ZERO };
        self.absences.are_enough(ABSENCES_MIN, time)
    }
}

impl Abilities {
    /// Records that a prefetched window was not the one that was then proved.
    pub(super) fn note_unproved(&self) {
        *lock(&self.unproved_at) = Some(Instant::now());
    }

    /// Whether expected windows were proved unchanged recently.
    pub(super) fn are_proved(&self) -> bool {
        lock(&self.unproved_at).is_none_or(|at| at.elapsed() >= UNPROVED_PAUSE)
    }

    /// Records that the logs of a receipt were those of its bloom filter.
    pub(super) fn note_filled_filter(&self) {
        self.has_filled_filter.store(true, Ordering::Relaxed);
    }

    /// Whether some receipt's were.
    pub(super) fn fill_filters(&self) -> bool {
        self.has_filled_filter.load(Ordering::Relaxed)
    }

    /// Records that a header's hash was the one that a transaction of its block names.
    pub(super) fn note_named_block(&self) {
        self.has_named_block.store(true, Ordering::Relaxed);
    }

    /// Whether some header's was.
    pub(super) fn name_blocks(&self) -> bool {
        self.has_named_block.load(Ordering::Relaxed)
    }

    /// Records a page of an index.
    pub(super) fn note_page(&self, of: (EndpointId, ExplorerList), page: &[ListRow]) {
        self.page_sizes.note(of, page);
        if !page.is_empty() {
            lock(&self.listed).insert((Discovery::Explorer, of.1));
        }
        if page.iter().any(|row| matches!(row.what, What::Outer { .. })) {
            lock(&self.show_success).insert(of.0);
        }
    }

    /// Whether an index distinguishes transactions that failed from others.
    pub(super) fn shows_success(&self, id: EndpointId) -> bool {
        lock(&self.show_success).contains(&id)
    }

    pub(super) fn note_transfers(&self, kinds: impl Iterator<Item = ExplorerList>) {
        let kinds: Vec<ExplorerList> = kinds.collect();
        lock(&self.transfers).extend(kinds.iter().map(|kind| (*kind, true)));
        lock(&self.listed).extend(kinds.into_iter().map(|kind| (Discovery::Alchemy, kind)));
    }

    /// Records that asset transfers are not asked for a kind.
    pub(super) fn note_unasked(&self, kind: ExplorerList) {
        lock(&self.transfers).insert(kind, true);
        lock(&self.listed).remove(&(Discovery::Alchemy, kind));
    }

    pub(super) fn has_listed(&self, way: Discovery, kind: ExplorerList) -> bool {
        lock(&self.listed).contains(&(way, kind))
    }

    /// Records transactions that a list lacks. False once several answers over some time lacked
    /// each of them.
    pub(super) fn note_unlisted(
        &self,
        kind: ExplorerList,
        hashes: impl Iterator<Item = Word>,
    ) -> bool {
        let mut unlisted = lock(&self.unlisted);
        if unlisted.len() >= UNTRACED_MAX {
            unlisted.clear();
        }
        hashes.fold(false, |is_open, hash| {
            let answers = unlisted.entry((kind, hash)).or_default();
            answers.note(Instant::now(), SPACING);
            is_open || !answers.are_enough(ABSENCES_MIN, Duration::ZERO)
        })
    }

    /// Whether asset transfers of this kind were never listed although nodes returned some.
    /// `is_due`: nodes return some now.
    pub(super) fn owes_transfers(&self, kind: ExplorerList, is_due: bool) -> bool {
        let mut shown = lock(&self.transfers);
        if is_due {
            shown.entry(kind).or_insert(false);
        }
        shown.get(&kind) == Some(&false)
    }

    pub(super) fn note_calls(&self, kind: Discovery) {
        let mut all = lock(&self.calls);
        all.insert(kind, CallsSeen { has_worked: true, ..CallsSeen::default() });
    }

    /// Records an answer, neither error nor refusal, in which the way lists no calls.
    pub(super) fn note_no_calls(&self, kind: Discovery) {
        lock(&self.calls).entry(kind).or_default().absences.note(Instant::now(), SPACING);
    }

    pub(super) fn note_untraced(&self, height: Height) {
        let mut untraced = lock(&self.untraced);
        if untraced.len() >= UNTRACED_MAX {
            untraced.clear();
        }
        untraced.entry(height).or_default().note(Instant::now(), SPACING);
    }

    pub(super) fn note_traced(&self, height: Height) {
        lock(&self.untraced).remove(&height);
    }

    pub(super) fn has_untraced(&self, heights: RangeInclusive<Height>) -> bool {
        !heights.is_empty() && lock(&self.untraced).range(heights).next().is_some()
    }

    /// Records whether a window came with a trace, and whether two answers to it lacked those of a
    /// contract that ran.
    pub(super) fn note_window_traces(&self, shows_some: bool, lacks_some: bool) {
        self.has_shown_traces.fetch_or(shows_some, Ordering::Relaxed);
        self.has_lacked_traces.fetch_or(lacks_some, Ordering::Relaxed);
    }

    /// Whether a gateway takes queries for traces and has never shown one where one had to be: as
    /// good as one that refuses them, until it shows some.
    fn is_traceless(&self, kind: Discovery) -> bool {
        kind == Discovery::Portal
            && self.has_lacked_traces.load(Ordering::Relaxed)
            && !self.has_shown_traces.load(Ordering::Relaxed)
    }

    pub(super) fn note_traces_from(&self, height: Height) {
        let mut from = lock(&self.traces_from);
        *from = Some(from.map_or(height, |from| from.min(height)));
    }

    /// Whether a gateway has shown traces at or below this block, and lacked none above.
    pub(super) fn has_traces_from(&self, height: Height) -> bool {
        let from = lock(&self.traces_from).filter(|from| *from <= height);
        from.is_some_and(|from| !self.has_untraced(from..=Height::MAX))
    }

    /// Whether repeated answers without contradiction show that the way lists no calls.
    pub(super) fn has_no_calls(&self, kind: Discovery) -> bool {
        self.is_traceless(kind)
            || self
                .get(kind)
                .is_some_and(|one| !one.has_worked && one.absences.count >= ABSENCES_MIN)
    }

    /// The same for recent answers; over a longer time if the way listed calls before.
    pub(super) fn shows_no_calls(&self, kind: Discovery) -> bool {
        self.is_traceless(kind) || self.get(kind).is_some_and(|one| one.are_lost())
    }

    /// Whether at least one answer showed no calls, so that another way is tried first.
    pub(super) fn may_have_no_calls(&self, kind: Discovery) -> bool {
        self.is_traceless(kind)
            || self.get(kind).is_some_and(|one| !one.has_worked && one.absences.count > 0)
    }

    fn get(&self, kind: Discovery) -> Option<CallsSeen> {
        lock(&self.calls).get(&kind).copied()
    }
}

impl EvmSource {
    /// Whether some configured list may have inner calls of a block, because repeated answers have
    /// not shown the opposite.
    pub(super) fn may_list_calls(&self, block: Height) -> bool {
        let abilities = &self.inner.abilities;
        let is_untraced = |seen: &SpacedAnswers| seen.count >= ABSENCES_MIN;
        let lacks_traces = || lock(&abilities.untraced).get(&block).is_some_and(is_untraced);
        self.inner.discovery.iter().any(|kind| {
            let is_bare = *kind == Discovery::Portal && lacks_traces();
            let is_blind = kind.blind_spots().contains(Doubts::INNER_CALLS) || is_bare;
            !is_blind && !abilities.shows_no_calls(*kind)
        })
    }

    /// Abilities in the order of the status: nodes, then the index, then the gateway.
    pub(in crate::sources) fn abilities(&self) -> Vec<Vec<Ability>> {
        let nodes = self.inner.pool.endpoints();
        let nodes = nodes.iter().map(|status| self.abilities_of_node(status));
        let follows_calls = |pool: &Option<Pool>, kind: Discovery| {
            let offered = match self.inner.abilities.get(kind) {
                _ if self.inner.abilities.has_no_calls(kind) => Offered::No,
                Some(ability) if ability.has_worked => Offered::Yes,
                _ => Offered::Unknown,
            };
            let of = move |_: EndpointStatus| vec![Ability::new(AbilityKind::InnerCalls, offered)];
            pool.iter().flat_map(Pool::endpoints).map(of).collect::<Vec<_>>()
        };
        let explorer = follows_calls(&self.inner.explorer, Discovery::Explorer);
        let portal = follows_calls(&self.inner.portal, Discovery::Portal);
        nodes.chain(explorer).chain(portal).collect()
    }

    fn abilities_of_node(&self, status: &EndpointStatus) -> Vec<Ability> {
        let by = |kind, methods: &[&str]| Ability::by_methods(kind, status, methods);
        let logs = by(AbilityKind::Logs, &["eth_getLogs"]);
        let (from, lacks, most) = self.known_logs(status.id);
        let tracers = ["debug_traceTransaction", "trace_transaction"];
        vec![
            Ability { from, lacks, most, ..logs },
            Ability { lacks: self.lacks(Past::Traces), ..by(AbilityKind::Traces, &tracers) },
            Ability {
                lacks: self.lacks(Past::States),
                ..by(AbilityKind::States, &["eth_getBalance"])
            },
            by(AbilityKind::AssetTransfers, &["alchemy_getAssetTransfers"]),
        ]
    }

    /// A height for which no node had this data recently.
    fn lacks(&self, what: Past) -> Option<Height> {
        let pruned = lock(&self.inner.pruned);
        pruned.get(&what).filter(|(_, until)| *until > Instant::now()).map(|(top, _)| *top)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::super::list_row::bare_page as page;
    use super::super::node_model::nodes;
    use super::*;

    #[test]
    fn a_row_that_is_repeated_makes_no_page_longer() {
        let (of, sizes) = ((EndpointId(0), ExplorerList::Tokens), ListSizes::default());
        sizes.note(of, &page(&[1, 2, 3]));
        sizes.note(of, &page(&[1, 1, 2, 3]));
        assert_eq!([2, 3].map(|rows| sizes.gives_more(of, rows)), [true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_ability_is_absent_after_spaced_answers_and_never_once_it_worked() {
        let [shown, worked] = [Abilities::default(), Abilities::default()];
        worked.note_calls(Discovery::Portal);
        for at in 0..3 {
            assert_eq!(shown.may_have_no_calls(Discovery::Portal), at > 0);
            for abilities in [&shown, &worked] {
                for _ in 0..5 {
                    abilities.note_no_calls(Discovery::Portal);
                }
                assert!(!abilities.has_no_calls(Discovery::Portal) || at == 2);
            }
            tokio::time::sleep(SPACING).await;
        }
        assert!(shown.has_no_calls(Discovery::Portal));
        assert!(!shown.has_no_calls(Discovery::Explorer));
        assert!(!worked.has_no_calls(Discovery::Portal));
        assert!(!worked.may_have_no_calls(Discovery::Portal));
        assert!(
            shown.shows_no_calls(Discovery::Portal) && !worked.shows_no_calls(Discovery::Portal)
        );
        tokio::time::sleep(LOST_AFTER).await;
        worked.note_no_calls(Discovery::Portal);
        assert!(worked.shows_no_calls(Discovery::Portal));
        worked.note_calls(Discovery::Portal);
        assert!(!worked.shows_no_calls(Discovery::Portal));
    }

    /// The gateway does not refuse queries for traces, which does not show that it has any.
    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_never_shows_a_trace_is_not_waited_for() {
        let nodes = nodes(|_, _, _| Ok(Value::Null));
        let mut source = nodes.source(&["one"]);
        let set_ways = |source: &mut EvmSource, ways: &[Discovery]| {
            Arc::get_mut(&mut source.inner).unwrap().discovery = ways.to_vec();
        };
        set_ways(&mut source, &[Discovery::Portal]);
        let abilities = Arc::clone(&source.inner.abilities);
        abilities.note_calls(Discovery::Portal);
        assert!(source.may_list_calls(9) && !source.blind_spots().contains(Doubts::INNER_CALLS));
        abilities.note_window_traces(false, true);
        assert!(!source.may_list_calls(9) && source.blind_spots().contains(Doubts::INNER_CALLS));
        set_ways(&mut source, &[Discovery::Portal, Discovery::Explorer]);
        assert!(source.may_list_calls(9) && !source.blind_spots().contains(Doubts::INNER_CALLS));
        assert!(source.comes_later(Discovery::Portal, (0, None)));
        // The gateway has traces after all: heights that are in doubt by then are read again.
        set_ways(&mut source, &[Discovery::Portal]);
        abilities.note_window_traces(true, true);
        assert!(source.may_list_calls(9) && !source.blind_spots().contains(Doubts::INNER_CALLS));
    }

    /// A gateway has traces, but none of this block.
    #[tokio::test(start_paused = true)]
    async fn traces_of_a_block_are_waited_for_until_three_answers_lack_them() {
        let nodes = nodes(|_, _, _| Ok(Value::Null));
        let mut source = nodes.source(&["one"]);
        let inner = Arc::get_mut(&mut source.inner).unwrap();
        inner.discovery = vec![Discovery::Portal, Discovery::Logs];
        let abilities = Arc::clone(&source.inner.abilities);
        abilities.note_calls(Discovery::Portal);
        for _ in 0..3 {
            assert!(source.may_list_calls(9), "three answers show it");
            for _ in 0..5 {
                abilities.note_untraced(9);
            }
            tokio::time::sleep(SPACING).await;
        }
        assert!(!source.may_list_calls(9) && source.may_list_calls(8));
        assert!(!source.comes_later(Discovery::Portal, (0, Some(8))));
        assert!(!source.comes_later(Discovery::Portal, (0, Some(9))), "no other way has any");
        let inner = Arc::get_mut(&mut source.inner).unwrap();
        inner.discovery = vec![Discovery::Portal, Discovery::Explorer];
        assert!(source.comes_later(Discovery::Portal, (0, Some(9))));
        assert!(!source.comes_later(Discovery::Portal, (0, None)), "what is newer has traces");
        assert!(source.may_list_calls(9), "by the account lists");
        abilities.note_traced(9);
        assert!(!source.comes_later(Discovery::Portal, (0, Some(9))));
    }
}
