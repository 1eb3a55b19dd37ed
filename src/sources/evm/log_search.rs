//! Pure: when the logs of some ranges count as known.
//!
//! A node that lags, has pruned or fails may return fewer logs without an error. So a query counts
//! as answered once several answers hold every log that any answer holds. A query whose range ends
//! at the lowest known log above must return that log, which shows that the answer was not cut.
//! A node that cuts long answers alike each time is found by querying the range in two parts.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::wire::{self, FoundLog};
use crate::decode::evm::{Account, TRANSFER, USER_OPERATION, Word};
use crate::domain::Height;
use crate::rpc::{Call, EndpointId};
use crate::sources::pager::RangeVotes;

/// Answers that must agree.
const AGREEING: usize = 2;
/// The same if an endpoint was seen to leave logs out.
const AGREEING_DOUBTED: usize = 4;
/// The same if heads came in other requests: each answer may be from a server that lags, and each
/// head from one that does not.
const AGREEING_APART: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TransferSide {
    Gave,
    Got,
}

impl TransferSide {
    pub(super) const BOTH: [Self; 2] = [Self::Gave, Self::Got];

    /// The topics of a filter, for one wallet's topic or a list of them.
    pub(super) fn topics_of(self, wallets: &Value) -> Value {
        let transfer = wire::hex(&TRANSFER);
        match self {
            Self::Gave => json!([transfer, wallets]),
            Self::Got => json!([[transfer, wire::hex(&USER_OPERATION)], null, wallets]),
        }
    }
}

/// A known log that a query must return.
pub(super) type Witness = (Height, Word);

type Key = (Height, Word, Account, Vec<Word>);

fn key(log: &FoundLog) -> Key {
    (log.block, log.hash, log.address, log.topics.clone())
}

#[derive(Debug)]
pub(super) struct Query {
    pub(super) side: TransferSide,
    pub(super) low: Height,
    pub(super) high: Height,
    /// The log that every answer must contain.
    pub(super) witness: Option<Witness>,
    logs: Vec<FoundLog>,
    /// Logs of the longest answer.
    most: usize,
    votes: RangeVotes<Key, EndpointId>,
    /// Endpoints whose answers lacked the witness.
    refuted: Vec<EndpointId>,
    /// Some answer came without the head of its server.
    is_apart: bool,
}

impl Query {
    pub(super) fn new(
        side: TransferSide,
        (low, high): (Height, Height),
        witness: Option<Witness>,
    ) -> Self {
        let high = witness.map_or(high, |(block, _)| high.max(block));
        let (logs, votes, refuted) = (Vec::new(), RangeVotes::new(), Vec::new());
        Self { side, low, high, witness, logs, most: 0, votes, refuted, is_apart: false }
    }

    pub(super) fn call(&self, wallet: &Account) -> Call {
        wire::logs_call(
            (self.low, self.high),
            [("topics", self.side.topics_of(&wire::topic(wallet).into()))],
        )
    }

    fn add(&mut self, logs: Vec<FoundLog>, by: EndpointId) {
        let is_witness = |(block, hash): &Witness| {
            logs.iter().any(|log| log.block == *block && log.hash == *hash)
        };
        if self.witness.as_ref().is_some_and(|witness| !is_witness(witness)) {
            self.refuted.push(by);
            return;
        }
        self.most = self.most.max(logs.len());
        let mut distinct = HashSet::new();
        for log in logs {
            let key = key(&log);
            let is_new = !self.votes.holds(&key);
            if distinct.insert(key) && is_new {
                self.logs.push(log);
            }
        }
        self.votes.add(distinct, by);
    }

    /// The query in two parts, if an answer held at least `many` logs of more than one block. They
    /// are split at the median log, so that the logs which a cut answer lacks fit into a part.
    fn parts(&self, many: usize) -> Option<[Self; 2]> {
        let mut heights: Vec<Height> = self.logs.iter().map(|log| log.block).collect();
        heights.sort_unstable();
        let middle = *heights.get(heights.len() / 2)?;
        let upper = middle.max(self.low + 1);
        let part = |range| Self::new(self.side, range, None);
        (self.most >= many && self.low < self.high)
            .then(|| [part((self.low, upper - 1)), part((upper, self.high))])
    }

    /// Endpoints whose answers lack known logs.
    fn lacking(&self) -> impl Iterator<Item = EndpointId> {
        self.refuted.iter().chain(self.votes.lacking()).copied()
    }

    fn wants(&self, is_doubted: bool, is_wide: bool) -> usize {
        let nothing = self.votes.is_empty() && self.witness.is_none();
        let least = match (self.is_apart, is_doubted) {
            (true, _) => AGREEING_APART,
            (false, true) => AGREEING_DOUBTED,
            (false, false) => AGREEING + usize::from(is_wide && nothing),
        };
        least.saturating_sub(self.votes.agreeing().count())
    }
}

#[derive(Debug)]
pub(super) struct LogSearch {
    queries: Vec<Query>,
    /// An endpoint was seen to leave logs out.
    is_doubted: bool,
}

impl LogSearch {
    pub(super) fn new(queries: Vec<Query>, is_doubted: bool) -> Self {
        Self { queries, is_doubted }
    }

    /// Queries that need more answers, grouped by further request: one server answers everything in
    /// one request.
    pub(super) fn wanted_again(&self) -> Vec<Vec<usize>> {
        let more = |query: &Query| query.wants(self.is_doubted, self.is_wide()).saturating_sub(1);
        let requests = self.queries.iter().map(more).max().unwrap_or(0);
        let of = |request: usize| {
            let wanted = (0..).zip(&self.queries).filter(|(_, query)| more(query) > request);
            wanted.map(|(at, _)| at).collect()
        };
        (0..requests).map(of).collect()
    }

    pub(super) fn open(&self) -> Vec<usize> {
        let wanted = |query: &Query| query.wants(self.is_doubted, self.is_wide()) > 0;
        (0..).zip(&self.queries).filter(|(_, query)| wanted(query)).map(|(at, _)| at).collect()
    }

    /// Whether the window is a single range, so that a further answer is cheap.
    fn is_wide(&self) -> bool {
        self.queries.len() <= TransferSide::BOTH.len()
    }

    /// The queries for which an answer had at least `many` logs, each in two parts.
    pub(super) fn parts(&self, many: usize) -> Self {
        let parts = self.queries.iter().filter_map(|query| query.parts(many));
        Self::new(parts.flatten().collect(), false)
    }

    pub(super) fn longest(&self) -> usize {
        self.queries.iter().map(|query| query.most).max().unwrap_or(0)
    }

    /// Whether `parts`, in the order of the queries, contain the same logs as these.
    pub(super) fn is_as(&self, parts: &Self, many: usize) -> bool {
        let whole = self.queries.iter().filter(|query| query.parts(many).is_some());
        whole.zip(parts.queries.chunks(2)).all(|(query, parts)| {
            let held = parts.iter().flat_map(|part| &part.logs);
            held.clone().count() == query.logs.len()
                && held.map(key).all(|key| query.votes.holds(&key))
        })
    }

    pub(super) fn get(&self, at: usize) -> Option<&Query> {
        self.queries.get(at)
    }

    /// Records that an answer to these queries lacked the head of its server, which may therefore
    /// lag.
    pub(super) fn note_apart(&mut self, queries: &[usize]) {
        for at in queries {
            if let Some(query) = self.queries.get_mut(*at) {
                query.is_apart = true;
            }
        }
    }

    pub(super) fn add(&mut self, answers: Vec<(usize, Vec<FoundLog>)>, by: EndpointId) {
        for (at, logs) in answers {
            if let Some(query) = self.queries.get_mut(at) {
                query.add(logs, by);
                self.is_doubted |= query.lacking().next().is_some();
            }
        }
    }

    /// Endpoints that lack a log of another answer.
    pub(super) fn lacking(&self) -> BTreeSet<EndpointId> {
        self.queries.iter().flat_map(Query::lacking).collect()
    }

    /// All logs down from `high`, and the lowest log of each direction.
    pub(super) fn finish(self, high: Height) -> (Vec<FoundLog>, Vec<(TransferSide, Witness)>) {
        let (mut logs, mut witnesses) = (Vec::new(), Vec::new());
        for query in self.queries {
            let lowest = query.logs.iter().min_by_key(|log| log.block);
            witnesses.extend(lowest.map(|log| (query.side, (log.block, log.hash))));
            logs.extend(query.logs.into_iter().filter(|log| log.block <= high));
        }
        (logs, witnesses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: EndpointId = EndpointId(0);
    const OTHER: EndpointId = EndpointId(1);

    fn log(block: Height, number: u8) -> FoundLog {
        let (topics, data) = (vec![[number; 32]], vec![1]);
        let hash = [number; 32];
        FoundLog { address: [1; 20], topics, data, block, hash, index: None, time: None }
    }

    fn search(witness: Option<Witness>) -> LogSearch {
        LogSearch::new(vec![Query::new(TransferSide::Gave, (10, 20), witness)], false)
    }

    #[test]
    fn nothing_is_known_by_one_answer() {
        let mut some = search(None);
        some.add(vec![(0, vec![log(12, 1)])], ONE);
        assert_eq!(some.open(), [0]);
        some.add(vec![(0, vec![log(12, 1)])], ONE);
        assert!(some.lacking().is_empty() && some.open().is_empty());
        let mut none = search(None);
        for left in [1, 1, 0] {
            none.add(vec![(0, vec![])], ONE);
            assert_eq!(none.open().len(), left);
        }
    }

    #[test]
    fn each_answer_to_a_query_is_asked_for_in_a_request_of_its_own() {
        let query = |witness| Query::new(TransferSide::Gave, (10, 20), witness);
        let again = |queries, is_doubted| LogSearch::new(queries, is_doubted).wanted_again();
        let known = Some((25, [9; 32]));
        assert_eq!(again(vec![query(None), query(known)], false), [vec![0, 1], vec![0]]);
        assert_eq!(again(vec![query(known)], false), [[0]]);
        assert_eq!(again(vec![query(None)], true), [[0], [0], [0]]);
    }

    #[test]
    fn answers_without_the_head_of_their_server_have_to_be_more() {
        let mut search = search(None);
        search.note_apart(&[0]);
        for left in [1, 1, 1, 1, 1, 0] {
            search.add(vec![(0, vec![log(12, 1)])], ONE);
            assert_eq!(search.open().len(), left);
        }
    }

    /// The logs that an answer of at most four leaves out are far below it, directly below it, or
    /// in its lowest block.
    #[test]
    fn a_cut_answer_is_shown_by_its_parts_wherever_its_logs_lie() {
        for heights in
            [[10, 11, 19, 20, 20, 20], [16, 17, 18, 18, 19, 20], [12, 12, 12, 12, 13, 20]]
        {
            let cut = |low: Height, high: Height| {
                let within = (1_u8..).zip(heights).filter(|(_, at)| (low..=high).contains(at));
                let found: Vec<FoundLog> = within.map(|(number, at)| log(at, number)).collect();
                found[found.len().saturating_sub(4)..].to_vec()
            };
            let mut whole = search(None);
            assert!(whole.parts(4).open().is_empty(), "nothing was found");
            whole.add(vec![(0, cut(10, 20))], ONE);
            let mut parts = whole.parts(4);
            assert_eq!(parts.open(), [0, 1]);
            let ranges: Vec<_> = parts.queries.iter().map(|part| (part.low, part.high)).collect();
            assert_eq!((ranges[0].0, ranges[0].1 + 1, ranges[1].1), (10, ranges[1].0, 20));
            let answers = (0..).zip(&ranges).map(|(at, (low, high))| (at, cut(*low, *high)));
            parts.add(answers.collect(), ONE);
            assert!(!whole.is_as(&parts, 4), "{heights:?}");
            let mut few = search(None);
            few.add(vec![(0, cut(18, 18))], ONE);
            assert!(few.parts(4).open().is_empty(), "fewer than four");
        }
    }

    #[test]
    fn parts_that_hold_the_same_show_that_nothing_was_cut() {
        let (mut whole, logs) = (search(None), [10, 10, 14, 20].map(|at| log(at, 1)));
        let numbered = |(number, mut log): (u8, FoundLog)| {
            log.topics = vec![[number; 32]];
            log
        };
        let logs: Vec<FoundLog> = (1..).zip(logs).map(numbered).collect();
        whole.add(vec![(0, logs.clone())], ONE);
        let mut parts = whole.parts(4);
        let (lower, upper) = (logs[..2].to_vec(), logs[2..].to_vec());
        parts.add(vec![(0, lower.clone()), (1, upper)], OTHER);
        assert!(whole.is_as(&parts, 4));
        let mut short = whole.parts(4);
        short.add(vec![(0, lower), (1, vec![])], OTHER);
        assert!(!whole.is_as(&short, 4));
        let one_block = Query::new(TransferSide::Gave, (10, 10), None);
        let mut one_block = LogSearch::new(vec![one_block], false);
        one_block.add(vec![(0, logs[..2].to_vec())], ONE);
        assert!(one_block.parts(2).open().is_empty());
    }

    #[test]
    fn answers_that_differ_are_joined_and_asked_for_again() {
        let mut search = search(None);
        search.add(vec![(0, vec![log(12, 1)])], ONE);
        assert!(search.lacking().is_empty());
        search.add(vec![(0, vec![log(14, 2), log(12, 1)])], OTHER);
        assert!(search.lacking().iter().eq(&[ONE]), "it came first");
        search.add(vec![(0, vec![log(14, 2)])], OTHER);
        assert!(search.lacking().iter().eq(&[ONE, OTHER]));
        for _ in 0..2 {
            search.add(vec![(0, vec![log(14, 2), log(12, 1)])], ONE);
            assert_eq!(search.open(), [0]);
        }
        search.add(vec![(0, vec![log(12, 1), log(14, 2)])], ONE);
        assert!(search.open().is_empty());
        assert_eq!(search.finish(20).0.len(), 2);
    }

    #[test]
    fn an_answer_without_the_known_log_counts_for_nothing() {
        let mut search = search(Some((25, [9; 32])));
        assert_eq!(search.get(0).map(|query| query.high), Some(25));
        search.add(vec![(0, vec![])], OTHER);
        assert!(search.lacking().iter().eq(&[OTHER]));
        for _ in 0..3 {
            search.add(vec![(0, vec![log(12, 1), log(25, 9)])], ONE);
            assert_eq!(search.open(), [0]);
        }
        search.add(vec![(0, vec![log(12, 1), log(25, 9)])], ONE);
        assert!(search.open().is_empty());
        let (logs, witnesses) = search.finish(20);
        assert_eq!((logs.len(), witnesses), (1, vec![(TransferSide::Gave, (12, [1; 32]))]));
    }
}
