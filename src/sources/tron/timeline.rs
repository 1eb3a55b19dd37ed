//! Pure: the merged entries of all lists between what is delivered and what is known.
//!
//! Lists of the index are ordered by time and do not always contain heights, so entries stand by
//! the position in their list, and a chunk ends at an entry whose height is known.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::wire::{Row, Seen};
use crate::decode::evm::Word;
use crate::decode::tron::Transaction;
use crate::domain::Height;

/// Where an entry stands: newest first, then by id.
pub(super) type Key = (Reverse<u64>, Word);

#[derive(Debug)]
enum State {
    /// Undecided whether it is wanted: not all lists have shown it.
    New,
    Waiting {
        tries: u32,
    },
    Asked {
        tries: u32,
    },
    Here(Box<Transaction>),
    /// No endpoint gives it.
    Lost,
    /// Not wanted.
    Passed,
}

#[derive(Debug)]
struct Planned {
    height: Option<Height>,
    seen: Seen,
    state: State,
    /// Looked at only to learn how far down it stands.
    is_probe: bool,
}

/// An entry to be asked for.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) key: Key,
    pub(super) height: Option<Height>,
    pub(super) seen: Seen,
    pub(super) tries: u32,
    pub(super) is_probe: bool,
}

/// What is to be done about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relevance {
    Fetch,
    Pass,
}

#[derive(Debug)]
pub(super) struct Timeline {
    low: Height,
    /// Everything above is delivered.
    next_high: Height,
    planned: BTreeMap<Key, Planned>,
    places: HashMap<Word, u64>,
    /// Asked for or here: what occupies memory or a request.
    under_way: usize,
    /// Entries at and above this place are delivered.
    delivered_at: Option<u64>,
    /// Passed over since an entry's height was known last.
    passed: usize,
    edge: Option<(Height, u64)>,
    done: bool,
    has_new: bool,
    /// What was known when it was decided last.
    decided_to: u64,
}

/// What can be delivered now.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) txs: Vec<Transaction>,
    /// Listed, and given by no endpoint.
    pub(super) missing: Vec<(Height, Word)>,
}

/// How much makes a chunk.
#[derive(Debug)]
pub(super) struct Sizes {
    pub(super) chunk_min: usize,
    pub(super) chunk_max: usize,
    /// Entries passed over after which an empty chunk is worth it.
    pub(super) passed_max: usize,
}

impl Timeline {
    pub(super) fn new(low: Height, high: Height) -> Self {
        Self {
            low,
            next_high: high,
            planned: BTreeMap::new(),
            places: HashMap::new(),
            under_way: 0,
            delivered_at: None,
            passed: 0,
            edge: None,
            done: false,
            has_new: false,
            decided_to: u64::MAX,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn next_high(&self) -> Height {
        self.next_high
    }

    /// The entry that the last chunk ended at: height and place.
    pub(super) fn edge(&self) -> Option<(Height, u64)> {
        self.edge
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Adds a list's rows; what is delivered already is left out.
    pub(super) fn add(&mut self, rows: Vec<Row>) {
        self.has_new = true;
        for Row { id, at, height, seen } in rows {
            if self.delivered_at.is_some_and(|delivered| at >= delivered) {
                continue;
            }
            let at = *self.places.entry(id).or_insert(at);
            let new = || Planned {
                height: None,
                seen: Seen::default(),
                state: State::New,
                is_probe: false,
            };
            let planned = self.planned.entry((Reverse(at), id)).or_insert_with(new);
            planned.height = planned.height.or(height);
            planned.seen.join(seen);
        }
    }

    /// Decides about entries that all lists have shown.
    pub(super) fn decide(
        &mut self,
        frontier: Option<u64>,
        passed_max: usize,
        want: impl Fn(&Seen) -> Relevance,
    ) {
        let known_to = frontier.unwrap_or(0);
        if !self.has_new && self.decided_to == known_to {
            return;
        }
        (self.has_new, self.decided_to) = (false, known_to);
        for ((Reverse(at), _), planned) in &mut self.planned {
            if frontier.is_some_and(|frontier| *at <= frontier) {
                return;
            }
            let State::New = planned.state else { continue };
            let too_low = planned.height.is_some_and(|height| height < self.low);
            let is_wanted = !too_low && want(&planned.seen) == Relevance::Fetch;
            self.passed = if is_wanted || planned.height.is_some() { 0 } else { self.passed + 1 };
            planned.is_probe = self.passed >= passed_max;
            if planned.is_probe {
                self.passed = 0;
            }
            planned.state = if is_wanted || planned.is_probe {
                State::Waiting { tries: 0 }
            } else {
                State::Passed
            };
        }
    }

    /// Entries that wait to be asked for, counted up to `most`.
    pub(super) fn waiting(&self, most: usize) -> usize {
        let waits = |planned: &&Planned| matches!(planned.state, State::Waiting { .. });
        self.planned.values().filter(waits).take(most).count()
    }

    /// The next entry to ask for.
    pub(super) fn take(&mut self) -> Option<Taken> {
        let waits = |planned: &Planned| matches!(planned.state, State::Waiting { .. });
        let (key, planned) = self.planned.iter_mut().find(|(_, planned)| waits(planned))?;
        let State::Waiting { tries } = planned.state else { return None };
        planned.state = State::Asked { tries };
        self.under_way += 1;
        let (seen, is_probe) = (planned.seen.clone(), planned.is_probe);
        Some(Taken { key: *key, height: planned.height, seen, tries, is_probe })
    }

    /// A transaction has come.
    pub(super) fn put(&mut self, key: &Key, tx: Box<Transaction>) {
        if let Some(planned) = self.planned.get_mut(key) {
            planned.height = Some(tx.call.block);
            planned.state = State::Here(tx);
        }
    }

    /// It proved not to be wanted.
    pub(super) fn pass(&mut self, key: &Key, height: Option<Height>) {
        if let Some(planned) = self.planned.get_mut(key) {
            planned.height = planned.height.or(height);
            planned.state = State::Passed;
            self.under_way -= 1;
        }
    }

    /// No endpoint gives it, which is listed in the block of this height.
    pub(super) fn lose(&mut self, key: &Key, height: Height) {
        if let Some(planned) = self.planned.get_mut(key) {
            (planned.height, planned.state) = (Some(height), State::Lost);
            self.under_way -= 1;
        }
    }

    /// No node gave it: it waits again. Returns how often it was tried.
    pub(super) fn put_back(&mut self, key: &Key) -> u32 {
        let Some(planned) = self.planned.get_mut(key) else { return 0 };
        let State::Asked { tries } = planned.state else { return 0 };
        planned.state = State::Waiting { tries: tries + 1 };
        self.under_way -= 1;
        tries + 1
    }

    /// The highest place that is known to lie below the wanted heights; 0 where none is.
    pub(super) fn floor(&self) -> u64 {
        let below = |planned: &Planned| planned.height.is_some_and(|height| height < self.low);
        let found = self.planned.iter().find(|(_, planned)| below(planned));
        found.map_or(0, |((Reverse(at), _), _)| *at)
    }

    /// The next chunk, given at and below which place something may be unknown (`None`: all that
    /// is wanted is known).
    pub(super) fn deliver(&mut self, frontier: Option<u64>, sizes: &Sizes) -> Option<Ready> {
        if self.done {
            return None;
        }
        // Entries without a gap, down to one with a known height.
        let (mut here, mut passed, mut cut) = (0, 0, None);
        let mut pending = None;
        let mut previous = None;
        let mut complete = frontier.is_none();
        for ((Reverse(at), _), planned) in &self.planned {
            if previous != Some(*at) {
                // All of one moment is settled: it may end the chunk.
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
            match &planned.state {
                _ if unknown => {
                    complete = false;
                    break;
                }
                State::Here(_) | State::Lost => here += 1,
                State::Passed => passed += 1,
                State::New | State::Waiting { .. } | State::Asked { .. } => {
                    (complete, pending) = (false, None);
                    break;
                }
            }
            // An entry above what is wanted ends nothing.
            let wanted = planned.height.filter(|height| *height <= self.next_high);
            pending = wanted.map(|height| (height, *at, here, passed)).or(pending);
        }
        let cut = pending.or(cut);
        if complete {
            let lowest = self.planned.keys().next_back().map(|(Reverse(at), _)| *at);
            return Some(self.take_chunk(self.low, lowest));
        }
        let (height, at, here, passed) = cut?;
        if height < self.low {
            return Some(self.take_chunk(self.low, Some(at)));
        }
        let enough = match here {
            0 => passed >= sizes.passed_max,
            count => count >= sizes.chunk_min || !self.is_asked_for(),
        };
        enough.then(|| {
            self.edge = Some((height, at));
            self.take_chunk(height, Some(at))
        })
    }

    fn is_asked_for(&self) -> bool {
        self.planned.values().any(|planned| matches!(planned.state, State::Asked { .. }))
    }

    /// Takes all at and above a place as the chunk that ends at a height.
    fn take_chunk(&mut self, low: Height, at: Option<u64>) -> Ready {
        let high = self.next_high;
        let rest = match at.and_then(|at| at.checked_sub(1)) {
            Some(below) => self.planned.split_off(&(Reverse(below), [0; 32])),
            None => BTreeMap::new(),
        };
        let taken = std::mem::replace(&mut self.planned, rest);
        let (mut txs, mut missing) = (Vec::new(), Vec::new());
        for ((_, id), planned) in taken {
            self.places.remove(&id);
            // Of a list ordered by time, some may stand outside.
            let is_inside = |height: &Height| (low..=high).contains(height);
            match planned.state {
                State::Here(tx) => {
                    self.under_way -= 1;
                    txs.extend(Some(*tx).filter(|tx| is_inside(&tx.call.block)));
                }
                State::Lost => {
                    missing.extend(planned.height.filter(is_inside).map(|height| (height, id)));
                }
                State::New | State::Waiting { .. } | State::Asked { .. } | State::Passed => {}
            }
        }
        txs.sort_by_key(|tx| Reverse(tx.call.block));
        self.delivered_at = at.or(self.delivered_at);
        self.done = low <= self.low;
        self.next_high = low.saturating_sub(1);
        Ready { low, high, txs, missing }
    }
}
