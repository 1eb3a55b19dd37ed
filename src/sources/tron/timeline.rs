//! Pure: the merged entries of all lists that are known but not delivered.
//!
//! The index's lists are ordered by time and do not always contain heights, so entries are ordered
//! by their position in the list, and a chunk ends at an entry whose height is known.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::seen::{SeenTx, Sides};
use super::wire::FoundRow;
use crate::decode::evm::Word;
use crate::decode::tron::Transaction;
use crate::domain::Height;
use crate::sources::prefetch::{ChunkSizes, Fetch, Ready, ReorderBuffer};

pub(super) type ReadyCalls = Ready<Transaction, Word>;

/// Order of entries: newest first, then by id.
pub(super) type Key = (Reverse<u64>, Word);

/// What the lists show of an entry.
#[derive(Debug, Default)]
struct Listed {
    height: Option<Height>,
    seen: SeenTx,
    /// What was known of it when it was last requested.
    requested_for: Option<Sides>,
    /// Fetched only to learn its height.
    is_probe: bool,
    /// No endpoint returns it.
    is_lost: bool,
}

impl Listed {
    /// Whether more was shown of it since it was requested: its answer was checked against less,
    /// and may lack that.
    fn is_outdated(&self) -> bool {
        self.requested_for.is_some_and(|sides| sides != self.seen.sides())
    }
}

#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) key: Key,
    pub(super) height: Option<Height>,
    pub(super) seen: SeenTx,
    pub(super) tries: u32,
    pub(super) is_probe: bool,
}

/// Whether a transaction is in the block in which it is listed, or has its time if the list names
/// no block.
pub(super) fn is_of((Reverse(at), _): &Key, height: Option<Height>, tx: &Transaction) -> bool {
    match height {
        Some(height) => height == tx.call.block,
        None => tx.call.block > 0 && u64::from(tx.time.0) == at / 1_000,
    }
}

#[derive(Debug, Default)]
pub(super) struct Timeline {
    low: Height,
    /// Everything above is delivered.
    pub(super) next_high: Height,
    planned: ReorderBuffer<Key, Listed, Box<Transaction>>,
    places: HashMap<Word, u64>,
    /// Entries at and above this position are delivered.
    delivered_at: Option<u64>,
    /// Entries skipped since the last one with a known height.
    passed: usize,
    /// The entry at which the last chunk ended: height and position.
    pub(super) edge: Option<(Height, u64)>,
    pub(super) done: bool,
    has_new: bool,
    /// The frontier of the last decision.
    decided_to: u64,
}

impl Timeline {
    pub(super) fn new(low: Height, high: Height) -> Self {
        Self { low, next_high: high, decided_to: u64::MAX, ..Self::default() }
    }

    pub(super) fn under_way(&self) -> usize {
        self.planned.under_way()
    }

    /// Adds a list's rows, without those that are delivered already.
    pub(super) fn add(&mut self, rows: Vec<FoundRow>) {
        self.has_new = true;
        for FoundRow { id, at, height, seen } in rows {
            if self.delivered_at.is_some_and(|delivered| at >= delivered) {
                continue;
            }
            let key = (Reverse(*self.places.entry(id).or_insert(at)), id);
            let new = || (Listed::default(), Fetch::Undecided);
            let slot = self.planned.insert_with(key, new);
            let listed = &mut slot.known;
            listed.height = listed.height.or(height);
            listed.seen.join(seen);
            let has_come = matches!(slot.fetch, Fetch::Ready(_) | Fetch::Passed);
            if has_come && listed.is_outdated() && !listed.is_lost {
                self.planned.restart_request(&key);
            }
        }
    }

    /// Decides which of the entries that all lists have shown are requested.
    pub(super) fn decide(
        &mut self,
        frontier: Option<u64>,
        passed_max: usize,
        want: impl Fn(&SeenTx) -> bool,
    ) {
        let known_to = frontier.unwrap_or(0);
        if !self.has_new && self.decided_to == known_to {
            return;
        }
        (self.has_new, self.decided_to) = (false, known_to);
        for ((Reverse(at), _), slot) in self.planned.iter_mut() {
            if frontier.is_some_and(|frontier| *at <= frontier) {
                return;
            }
            let Fetch::Undecided = slot.fetch else { continue };
            let listed = &mut slot.known;
            let too_low = listed.height.is_some_and(|height| height < self.low);
            let is_wanted = !too_low && want(&listed.seen);
            self.passed = if is_wanted || listed.height.is_some() { 0 } else { self.passed + 1 };
            listed.is_probe = self.passed >= passed_max;
            if listed.is_probe {
                self.passed = 0;
            }
            slot.fetch = if is_wanted || listed.is_probe {
                Fetch::Waiting { retries: 0 }
            } else {
                Fetch::Passed
            };
        }
    }

    /// Requests entries above a position that the lists read so far show to be needed; the others
    /// are decided once all lists are known.
    pub(super) fn expect(&mut self, likely: u64, want: impl Fn(&SeenTx) -> bool) {
        let above = self.planned.iter_mut().take_while(|((Reverse(at), _), _)| *at > likely);
        for (_, slot) in above {
            let is_too_low = slot.known.height.is_some_and(|height| height < self.low);
            let is_open = matches!(slot.fetch, Fetch::Undecided) && !is_too_low;
            if is_open && want(&slot.known.seen) {
                slot.fetch = Fetch::Waiting { retries: 0 };
            }
        }
    }

    /// Number of entries that wait to be requested, counted up to `most`.
    pub(super) fn waiting(&self, most: usize) -> usize {
        self.planned.values().filter(|slot| slot.is_waiting()).take(most).count()
    }

    pub(super) fn take(&mut self) -> Option<Taken> {
        let (keys, tries) = self.planned.take_waiting(1);
        let key = keys.into_iter().next()?;
        let listed = &mut self.planned.get_mut(&key)?.known;
        listed.requested_for = Some(listed.seen.sides());
        let (height, seen, is_probe) = (listed.height, listed.seen.clone(), listed.is_probe);
        Some(Taken { key, height, seen, tries, is_probe })
    }

    pub(super) fn is_of(&mut self, key: &Key, tx: &Transaction) -> bool {
        self.planned.get_mut(key).is_some_and(|slot| is_of(key, slot.known.height, tx))
    }

    pub(super) fn put(&mut self, key: &Key, tx: Box<Transaction>) {
        if let Some(slot) = self.planned.get_mut(key) {
            slot.known.height = Some(tx.call.block);
            if slot.known.is_outdated() {
                return self.planned.restart_request(key);
            }
            self.planned.put(key, tx);
        }
    }

    pub(super) fn pass(&mut self, key: &Key, height: Option<Height>) {
        if let Some(slot) = self.planned.get_mut(key) {
            slot.known.height = slot.known.height.or(height);
            if slot.known.is_outdated() {
                return self.planned.restart_request(key);
            }
            self.planned.pass(key);
        }
    }

    /// Marks an entry of this height that no endpoint returns.
    pub(super) fn mark_missing(&mut self, key: &Key, height: Height) {
        if let Some(slot) = self.planned.get_mut(key) {
            (slot.known.height, slot.known.is_lost) = (Some(height), true);
            self.planned.pass(key);
        }
    }

    /// Marks an entry that no node returned as waiting again; returns its number of attempts.
    pub(super) fn mark_for_retry(&mut self, key: &Key) -> u32 {
        self.planned.mark_for_retry(key)
    }

    /// The highest position known to lie below the wanted heights; 0 if there is none.
    pub(super) fn floor(&self) -> u64 {
        let below = |listed: &Listed| listed.height.is_some_and(|height| height < self.low);
        let found = self.planned.iter().find(|(_, slot)| below(&slot.known));
        found.map_or(0, |((Reverse(at), _), _)| *at)
    }

    /// The next chunk. `frontier`: the position at and below which entries may be unknown (`None`:
    /// everything wanted is known).
    pub(super) fn deliver(
        &mut self,
        frontier: Option<u64>,
        sizes: &ChunkSizes,
    ) -> Option<ReadyCalls> {
        if self.done {
            return None;
        }
        // Entries without a gap, down to one with a known height.
        let (mut here, mut passed, mut cut) = (0, 0, None);
        let (mut pending, mut previous) = (None, None);
        let mut complete = frontier.is_none();
        for ((Reverse(at), _), slot) in self.planned.iter() {
            if previous != Some(*at) {
                // All entries of one moment are ready: the chunk may end here.
                if let Some(edge) = pending.take() {
                    cut = Some(edge);
                }
                if here >= sizes.chunk_max {
                    complete = false;
                    break;
                }
            }
            previous = Some(*at);
            let unknown = frontier.is_some_and(|frontier| *at <= frontier);
            match &slot.fetch {
                _ if unknown => {
                    complete = false;
                    break;
                }
                Fetch::Ready(_) => here += 1,
                Fetch::Passed if slot.known.is_lost => here += 1,
                Fetch::Passed => passed += 1,
                Fetch::Undecided | Fetch::Waiting { .. } | Fetch::InFlight { .. } => {
                    (complete, pending) = (false, None);
                    break;
                }
            }
            // An entry above the wanted heights does not end a chunk.
            let wanted = slot.known.height.filter(|height| *height <= self.next_high);
            pending = wanted.map(|height| (height, *at, here, passed)).or(pending);
        }
        let cut = pending.or(cut);
        if complete {
            let lowest = self.planned.iter().next_back().map(|((Reverse(at), _), _)| *at);
            return Some(self.take_chunk(self.low, lowest));
        }
        let (height, at, here, passed) = cut?;
        if height < self.low {
            return Some(self.take_chunk(self.low, Some(at)));
        }
        let enough = match here {
            0 => passed >= sizes.skipped_max,
            count => count >= sizes.chunk_min || !self.planned.has_in_flight(),
        };
        enough.then(|| {
            self.edge = Some((height, at));
            self.take_chunk(height, Some(at))
        })
    }

    /// If positions are heights: everything known above the frontier, once it spans enough blocks,
    /// even with few rows or none, so that it is not read again after a failure.
    pub(super) fn deliver_known(&mut self, frontier: Height, least: u64) -> Option<ReadyCalls> {
        let low = frontier.saturating_add(1);
        let blocks = self.next_high.saturating_add(1).saturating_sub(low);
        if self.done || low <= self.low || blocks < least {
            return None;
        }
        let above = self.planned.iter().take_while(|((Reverse(at), _), _)| *at >= low);
        let is_settled = |fetch: &Fetch<_>| matches!(fetch, Fetch::Ready(_) | Fetch::Passed);
        let mut above = above.map(|(_, slot)| &slot.fetch);
        let is_known = above.all(is_settled);
        is_known.then(|| self.take_chunk(low, Some(low)))
    }

    /// Takes everything at and above a position as the chunk that ends at a height.
    fn take_chunk(&mut self, low: Height, at: Option<u64>) -> ReadyCalls {
        let high = self.next_high;
        let below = at.and_then(|at| at.checked_sub(1)).map(|below| (Reverse(below), [0; 32]));
        let (mut txs, mut missing) = (Vec::new(), Vec::new());
        for ((_, id), slot) in self.planned.take_before(below.as_ref()) {
            self.places.remove(&id);
            // In a list ordered by time some entries may lie outside the heights.
            let is_inside = |height: &Height| (low..=high).contains(height);
            if let Fetch::Ready(tx) = slot.fetch {
                txs.extend(Some(*tx).filter(|tx| is_inside(&tx.call.block)));
            } else if matches!(slot.fetch, Fetch::Passed) && slot.known.is_lost {
                let height = slot.known.height.filter(is_inside);
                missing.extend(height.map(|height| (height, id)));
            }
        }
        txs.sort_by_key(|tx| Reverse(tx.call.block));
        self.delivered_at = at.or(self.delivered_at);
        self.done = low <= self.low;
        self.next_high = low.saturating_sub(1);
        Ready { low, high, txs, missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: Height) -> FoundRow {
        FoundRow {
            id: [1; 32],
            at,
            height: Some(at),
            seen: SeenTx { gave: true, ..SeenTx::default() },
        }
    }

    #[test]
    fn what_was_shown_once_is_asked_for_and_decides_nothing_else() {
        let mut timeline = Timeline::new(10, 1_000);
        let of = |id: u8, at, gave| {
            let seen = SeenTx { gave, ..SeenTx::default() };
            FoundRow { id: [id; 32], at, height: Some(at), seen }
        };
        let want = |seen: &SeenTx| seen.gave;
        timeline.add(vec![of(1, 900, true), of(2, 800, false), of(3, 700, true), of(4, 5, true)]);
        timeline.decide(Some(u64::MAX), 100, want);
        assert_eq!(timeline.waiting(10), 0);
        timeline.expect(750, want);
        assert_eq!(timeline.waiting(10), 1);
        assert_eq!(timeline.take().map(|taken| taken.key.0.0), Some(900));
        // The other list shows that the wallet gave something in this one.
        timeline.add(vec![of(2, 800, true)]);
        timeline.decide(Some(600), 100, want);
        assert_eq!(timeline.waiting(10), 2);
        timeline.expect(0, want);
        assert_eq!(timeline.waiting(10), 2, "one below the wanted heights");
    }

    /// The transaction was checked against the first answer only, and may lack the rest.
    #[test]
    fn what_was_asked_for_by_one_answer_is_asked_for_again_where_the_next_one_shows_more() {
        let want = |_: &SeenTx| true;
        let shown =
            |got| FoundRow { seen: SeenTx { gave: true, got, ..SeenTx::default() }, ..row(900) };
        for has_come in [false, true] {
            for grows in [false, true] {
                let mut timeline = Timeline::new(10, 1_000);
                timeline.add(vec![shown(false)]);
                timeline.expect(0, want);
                let key = timeline.take().unwrap().key;
                if has_come {
                    timeline.pass(&key, None);
                }
                timeline.add(vec![shown(grows)]);
                assert_eq!(timeline.waiting(9), usize::from(has_come && grows));
                if !has_come {
                    timeline.pass(&key, None);
                }
                timeline.decide(Some(600), 100, want);
                assert_eq!((timeline.waiting(9), timeline.under_way()), (usize::from(grows), 0));
                let again = timeline.take();
                assert_eq!(again.as_ref().map(|taken| taken.seen.got), grows.then_some(true));
                timeline.pass(&key, None);
                assert_eq!(timeline.waiting(9), 0, "as much was shown when it was asked for");
            }
        }
    }

    #[test]
    fn blocks_without_a_row_are_delivered_as_they_come_to_be_known() {
        let mut timeline = Timeline::new(10, 1_000);
        assert!(timeline.deliver_known(901, 100).is_none(), "too few");
        let chunk = timeline.deliver_known(900, 100).unwrap();
        assert_eq!((chunk.low, chunk.high, chunk.txs.len()), (901, 1_000, 0));
        assert_eq!((timeline.next_high, timeline.done), (900, false));
        assert!(timeline.deliver_known(9, 100).is_none(), "the last blocks end the read");
        timeline.add(vec![row(850)]);
        timeline.decide(Some(700), 100, |_| true);
        assert!(timeline.deliver_known(700, 100).is_none(), "a row above is not known");
        assert!(timeline.deliver_known(850, 10).is_some_and(|chunk| chunk.low == 851));
        let taken = timeline.take().unwrap();
        timeline.pass(&taken.key, None);
        assert!(timeline.deliver_known(700, 100).is_some_and(|chunk| chunk.low == 701));
    }
}
