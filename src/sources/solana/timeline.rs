//! Pure: the merged entries of all lists between the delivered heights and the frontier of the
//! lists.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use super::backlog::Backlog;
use super::hint::Mark;
use super::list::Entry;
use crate::decode::solana::Transaction;
use crate::domain::{Height, TxId, UnixSeconds};
use crate::sources::prefetch::{ChunkSizes, Fetch, Ready, ReorderBuffer, Slot};

/// Newest first, then by id.
type Key = (Reverse<Height>, TxId);
pub(super) type Timed = (Box<Transaction>, UnixSeconds);
pub(super) type ReadyTxs = Ready<Timed, TxId>;

/// Whether it is known if a transaction failed that its list marks so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailedEntry {
    Unconfirmed,
    Asked,
    Known,
}

#[derive(Debug, Default)]
pub(super) struct Timeline {
    low: Height,
    /// Everything above this slot is delivered.
    pub(super) next_high: Height,
    /// The entries down to `planned_low`, with the times that the lists report, and whether they
    /// failed.
    planned: ReorderBuffer<Key, (Option<i64>, Option<bool>), Timed>,
    planned_low: Height,
    /// The entries below it.
    backlog: Backlog,
    failed: BTreeMap<Key, FailedEntry>,
    /// The wallet list's entries, for the resume hint.
    marks: VecDeque<Mark>,
    last_marks: Vec<Mark>,
    skipped: usize,
    pub(super) done: bool,
    /// Entries whose transactions no endpoint returns.
    lost: BTreeSet<Mark>,
}

impl Timeline {
    pub(super) fn new(low: Height, high: Height) -> Self {
        Self { low, next_high: high, planned_low: Height::MAX, ..Self::default() }
    }

    /// Adds a list's entries, without those that are delivered, not wanted, failed or known.
    pub(super) fn add(&mut self, entries: &[Entry], is_wallets: bool) {
        let mut later = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.slot > self.next_high || entry.slot < self.low {
                continue;
            }
            if is_wallets {
                self.marks.push_back((entry.slot, entry.id));
            }
            let key = (Reverse(entry.slot), entry.id);
            if entry.has_failed() {
                self.skipped += 1;
                self.failed.entry(key).or_insert(FailedEntry::Unconfirmed);
                continue;
            }
            if entry.slot >= self.planned_low {
                self.plan(entry);
            } else {
                later.push(*entry);
            }
        }
        self.backlog.add(&later);
    }

    fn plan(&mut self, entry: &Entry) {
        let (key, known) = ((Reverse(entry.slot), entry.id), (entry.time, entry.failed));
        self.planned.insert_with(key, || (known, Fetch::Waiting { retries: 0 }));
    }

    fn plan_to(&mut self, low: Height) {
        while self.backlog.newest().is_some_and(|slot| slot >= low) {
            self.plan_slot();
        }
    }

    fn plan_slot(&mut self) {
        let Some(slot) = self.backlog.newest() else { return };
        while let Some(entry) = self.backlog.pop() {
            self.plan(&entry);
            if self.backlog.newest() != Some(slot) {
                break;
            }
        }
        self.planned_low = slot;
    }

    /// Plans entries until `count` of them wait in slots from `low` on; false where fewer do.
    fn plan_waiting(&mut self, count: usize, low: Height) -> bool {
        let from = low.max(self.planned_low);
        let planned = self.planned.iter().take_while(|((Reverse(slot), _), _)| *slot >= from);
        let waiting = planned.filter(|(_, slot)| slot.is_waiting()).take(count).count();
        let wanted = self.planned.len() + count - waiting;
        while self.planned.len() < wanted && self.backlog.newest().is_some_and(|slot| slot >= low) {
            self.plan_slot();
        }
        self.planned.len() >= wanted
    }

    /// Takes up to `count` entries of which it is not known yet whether they failed, newest first;
    /// fewer only while none are asked for.
    pub(super) fn take_failed(&mut self, count: usize) -> Vec<Entry> {
        let is_asked = self.failed.values().any(|state| *state == FailedEntry::Asked);
        let open = self.failed.values().filter(|state| **state == FailedEntry::Unconfirmed);
        if is_asked && open.take(count).count() < count {
            return Vec::new();
        }
        let take = |(key, state): (&Key, &mut FailedEntry)| {
            *state = FailedEntry::Asked;
            Entry { slot: key.0.0, id: key.1, time: None, failed: Some(true) }
        };
        let open = self.failed.iter_mut().filter(|(_, it)| **it == FailedEntry::Unconfirmed);
        open.take(count).map(take).collect()
    }

    pub(super) fn confirm_failed(&mut self, asked: &[Entry], not_failed: &HashSet<TxId>) {
        let mut planned = Vec::new();
        for entry in asked {
            let Some(state) = self.failed.get_mut(&(Reverse(entry.slot), entry.id)) else {
                continue;
            };
            // Kept, as the next page of the list may hold it again.
            *state = FailedEntry::Known;
            if not_failed.contains(&entry.id) {
                planned.push(Entry { failed: None, ..*entry });
            }
        }
        self.add(&planned, false);
    }

    /// Whether a list had the entry and it is not delivered yet.
    pub(super) fn has(&mut self, entry: &Entry) -> bool {
        self.plan_to(entry.slot);
        self.planned.get_mut(&(Reverse(entry.slot), entry.id)).is_some()
    }

    /// Adds an entry that is in no list and whose transaction is being fetched.
    pub(super) fn add_in_flight(&mut self, entry: &Entry) {
        if (self.low..=self.next_high).contains(&entry.slot) {
            let key = (Reverse(entry.slot), entry.id);
            self.planned
                .insert_with(key, || ((entry.time, entry.failed), Fetch::InFlight { retries: 0 }));
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        self.planned.len() > self.planned.under_way() || self.backlog.newest().is_some()
    }

    /// Whether fewer than `ahead` entries wait in the slots that all lists have passed, and few are
    /// asked for whether they failed.
    pub(super) fn wants_entries(&mut self, frontier: Option<Height>, ahead: usize) -> bool {
        let passed = frontier.map_or(0, |frontier| frontier.saturating_add(1));
        let is_full = self.plan_waiting(ahead, passed);
        let doubted = self.failed.values().filter(|state| **state != FailedEntry::Known);
        !is_full && doubted.take(DOUBTED_MAX).count() < DOUBTED_MAX
    }

    pub(super) fn under_way(&self) -> usize {
        self.planned.under_way()
    }

    /// Takes up to `count` waiting entries, newest first, that were tried equally often.
    pub(super) fn take(&mut self, count: usize) -> (Vec<Entry>, u32) {
        self.plan_waiting(count, 0);
        let (keys, tries) = self.planned.take_waiting(count);
        let entry = |key: Key| {
            let known = self.planned.get_mut(&key).map(|slot| slot.known);
            let (time, failed) = known.unwrap_or_default();
            let (Reverse(slot), id) = key;
            Entry { slot, id, time, failed }
        };
        (keys.into_iter().map(entry).collect(), tries)
    }

    pub(super) fn put(&mut self, slot: Height, id: TxId, tx: Timed) {
        self.planned.put(&(Reverse(slot), id), tx);
    }

    /// No node returned the transaction: it waits again. Returns how often it was tried.
    pub(super) fn mark_for_retry(&mut self, slot: Height, id: TxId) -> u32 {
        self.planned.mark_for_retry(&(Reverse(slot), id))
    }

    /// Gives up a transaction: the chunk reports it as missing.
    pub(super) fn lose(&mut self, slot: Height, id: TxId) {
        let entry = self.planned.get_mut(&(Reverse(slot), id));
        if let Some(entry) = entry.filter(|entry| entry.is_waiting()) {
            entry.fetch = Fetch::Passed;
            self.lost.insert((slot, id));
        }
    }

    /// The lowest slot down to which every transaction is known and fetched.
    fn settled_from(&self, frontier: Option<Height>) -> Height {
        let known = frontier.map_or(self.low, |slot| slot.saturating_add(1).max(self.low));
        let first_missing = self
            .planned
            .iter()
            .find(|(_, slot)| !matches!(slot.fetch, Fetch::Ready(_) | Fetch::Passed))
            .map(|((Reverse(slot), _), _)| *slot);
        let first_missing = first_missing
            .max(self.backlog.newest())
            .map_or(self.low, |slot| slot.saturating_add(1));
        let mut doubted = self.failed.iter().filter(|(_, it)| **it != FailedEntry::Known);
        let first_doubted =
            doubted.next().map_or(self.low, |((Reverse(slot), _), _)| slot.saturating_add(1));
        known.max(first_missing).max(first_doubted)
    }

    /// The transactions of the slots that are settled; `None` for one that no endpoint returns.
    pub(super) fn settled(
        &self,
        frontier: Option<Height>,
    ) -> impl Iterator<Item = (Height, Option<&Transaction>)> {
        let low = self.settled_from(frontier);
        let settled = self.planned.iter().take_while(move |((Reverse(slot), _), _)| *slot >= low);
        settled.map(|((Reverse(slot), _), of)| match &of.fetch {
            Fetch::Ready((tx, _)) => (*slot, Some(&**tx)),
            Fetch::Undecided | Fetch::Waiting { .. } | Fetch::InFlight { .. } | Fetch::Passed => {
                (*slot, None)
            }
        })
    }

    /// The next chunk; all lists are known above `frontier` (`None`: everywhere).
    pub(super) fn deliver(
        &mut self,
        frontier: Option<Height>,
        sizes: &ChunkSizes,
    ) -> Option<ReadyTxs> {
        if self.done {
            return None;
        }
        let mut low = self.settled_from(frontier);
        if low > self.next_high {
            return None;
        }
        if let Some(cut) = self.cut(low, sizes.chunk_max) {
            low = cut;
        }
        let ready = self.slots_down_to(low);
        let enough = match ready.take(sizes.chunk_min.max(1)).count() {
            0 => self.skipped >= sizes.skipped_max,
            // Small chunks are delivered only while nothing more is in flight.
            count => count >= sizes.chunk_min || !self.planned.has_in_flight(),
        };
        (enough || low <= self.low).then(|| self.take_chunk(low))
    }

    fn slots_down_to(&self, low: Height) -> impl Iterator<Item = Height> {
        let slots = self.planned.iter().map(|((Reverse(slot), _), _)| *slot);
        slots.take_while(move |slot| *slot >= low)
    }

    /// The slot at which a full chunk ends, where more than one chunk is ready above `low`.
    fn cut(&self, low: Height, chunk_max: usize) -> Option<Height> {
        let mut ready = self.slots_down_to(low);
        let cut = ready.nth(chunk_max.saturating_sub(1))?;
        ready.any(|slot| slot < cut).then_some(cut)
    }

    fn take_chunk(&mut self, low: Height) -> ReadyTxs {
        let high = self.next_high;
        let below = low.checked_sub(1).map(|below| (Reverse(below), TxId::solana(&[0; 64])));
        let taken = self.planned.take_before(below.as_ref());
        self.failed = below.map(|below| self.failed.split_off(&below)).unwrap_or_default();
        let ready =
            |slot: Slot<_, _>| if let Fetch::Ready(tx) = slot.fetch { Some(tx) } else { None };
        let txs = taken.into_values().filter_map(ready).collect();
        let missing = self.lost.split_off(&(low, TxId::solana(&[0; 64]))).into_iter().collect();
        self.pass_marks(low);
        self.skipped = 0;
        self.done = low <= self.low;
        self.next_high = low.saturating_sub(1);
        Ready { low, high, txs, missing }
    }

    fn pass_marks(&mut self, low: Height) {
        while self.marks.front().is_some_and(|(slot, _)| *slot >= low) {
            let mark = self.marks.pop_front();
            if mark.is_some_and(|mark| self.last_marks.last() != Some(&mark)) {
                self.last_marks.extend(mark);
            }
            let surplus = self.last_marks.len().saturating_sub(MARKS_KEPT);
            self.last_marks.drain(..surplus);
        }
    }

    /// The last entry of the wallet's list above the next chunk, and one of two slots above it (of
    /// one, where there are no more): the place from which a list is resumed.
    pub(super) fn last_two(&self) -> Option<(Mark, Mark)> {
        let tail = *self.last_marks.last()?;
        let mut above = self.last_marks.iter().rev().skip_while(|(slot, _)| *slot <= tail.0);
        let first = *above.next()?;
        let second = above.find(|(slot, _)| *slot > first.0);
        Some((second.copied().unwrap_or(first), tail))
    }

    /// Sets the entries from which the read was resumed, so that it can give a hint before it has
    /// two of its own.
    pub(super) fn remember(&mut self, above: Mark, tail: Mark) {
        self.last_marks = vec![above, tail];
    }
}

/// Entries of the wallet's list to keep for the resume hint.
const MARKS_KEPT: usize = 64;
/// Entries in doubt whether they failed, from which on no further page is requested: a list of
/// failures alone comes sooner than the answers about them.
const DOUBTED_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn failed(slot: Height) -> Entry {
        let id = TxId::solana(&[u8::try_from(slot % 200).unwrap(); 64]);
        Entry { slot, id, time: None, failed: Some(true) }
    }

    #[test]
    fn what_did_not_fail_is_looked_up_once() {
        let (mut timeline, page) = (Timeline::new(0, 100), [failed(9), failed(8)]);
        timeline.add(&page, true);
        let asked = timeline.take_failed(10);
        assert_eq!(asked, page);
        assert!(timeline.take_failed(10).is_empty());
        timeline.confirm_failed(&asked, &HashSet::from([failed(9).id]));
        // The next page holds them again.
        timeline.add(&page, true);
        assert!(timeline.take_failed(10).is_empty());
        assert_eq!(timeline.take(10).0, [Entry { failed: None, ..failed(9) }]);
    }

    #[test]
    fn pages_wait_for_the_answers_about_many_failures() {
        let mut timeline = Timeline::new(0, Height::MAX);
        let page: Vec<Entry> = (1..).map(failed).take(DOUBTED_MAX).collect();
        timeline.add(&page, false);
        let asked = timeline.take_failed(DOUBTED_MAX);
        assert!(!timeline.wants_entries(None, 1));
        timeline.confirm_failed(&asked, &HashSet::new());
        assert!(timeline.wants_entries(None, 1));
    }

    /// A wallet has hundreds of lists, of which the first pages are read at once.
    #[test]
    fn entries_far_below_the_rows_are_not_planned() {
        let mut timeline = Timeline::new(0, Height::MAX);
        for list in 0..50 {
            let slots = (0..1_000).rev().map(|at| at * 50 + list);
            let page: Vec<Entry> =
                slots.map(|slot| Entry { failed: None, ..failed(slot) }).collect();
            timeline.add(&page, false);
        }
        assert_eq!(timeline.take(20).0.len(), 20);
        assert_eq!(timeline.planned.len(), 20);
    }

    proptest! {
        /// However pages of several lists arrive, entries are taken as from one sorted list of all
        /// of them: newest first, each once.
        #[test]
        fn entries_are_taken_as_from_one_sorted_list(
            steps in vec((0_usize..6, vec(1_u64..60, 0..12), 0_u64..60), 1..30),
        ) {
            let mut timeline = Timeline::new(1, 100);
            let (mut waiting, mut known) = (BTreeSet::new(), BTreeSet::new());
            for (count, mut slots, frontier) in steps {
                slots.sort_by_key(|slot| Reverse(*slot));
                let page = slots.into_iter().map(|slot| Entry { failed: None, ..failed(slot) });
                let page: Vec<Entry> = page.collect();
                timeline.add(&page, false);
                let keys = page.iter().map(|entry| (Reverse(entry.slot), entry.id));
                waiting.extend(keys.filter(|key| known.insert(*key)));

                let above = waiting.iter().filter(|(Reverse(slot), _)| *slot > frontier).count();
                prop_assert_eq!(timeline.wants_entries(Some(frontier), 3), above < 3);
                let newest = known.first().map_or(0, |(Reverse(slot), _)| *slot);
                prop_assert_eq!(timeline.settled_from(None), newest + 1);
                let taken = timeline.take(count).0;
                let taken: Vec<Key> = taken.iter().map(|it| (Reverse(it.slot), it.id)).collect();
                let expected: Vec<Key> = waiting.iter().take(count).copied().collect();
                waiting.retain(|key| !expected.contains(key));
                prop_assert_eq!(taken, expected);
                prop_assert_eq!(timeline.has_waiting(), !waiting.is_empty());
            }
        }
    }
}
