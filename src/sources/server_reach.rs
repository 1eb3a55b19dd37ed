//! Pure: how far the servers behind one address are synchronized, and by how much they differ. For
//! an index this is derived from the newest rows of each list, for a node from the heads that it
//! reports.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::{Height, lock};
use crate::rpc::EndpointId;

/// Observations are kept for this long, and at most this many per endpoint.
const AGE_MAX: Duration = Duration::from_secs(120);
const OBSERVATIONS_MAX: usize = 48;

/// How long a block that an endpoint had counts as present: a node may be restarted from older
/// blocks, and another server may answer at the same address.
const HEAD_VALID_FOR: Duration = Duration::from_secs(30);

/// The lowest head that an endpoint reported recently: a block that it has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentHead(Option<(Height, Instant)>);

impl RecentHead {
    pub(super) fn note(&mut self, head: Height, now: Instant) {
        let lower = self.0.filter(|(known, until)| *until > now && *known <= head);
        self.0 = lower.or(Some((head, now + HEAD_VALID_FOR)));
    }

    pub(super) fn get(&self, now: Instant) -> Option<Height> {
        self.0.filter(|(_, until)| *until > now).map(|(head, _)| head)
    }
}

/// The newest and the oldest height among the answers about one list at one time.
#[derive(Debug, Clone, Copy)]
struct HeightSpread<L> {
    at: Instant,
    list: L,
    newest: Height,
    oldest: Height,
}

/// Observations by endpoint. `L` identifies a list: heights of different lists are not compared.
#[derive(Debug)]
pub(super) struct ServerReach<L>(Mutex<HashMap<EndpointId, Observations<L>>>);

#[derive(Debug)]
struct Observations<L> {
    recent: VecDeque<HeightSpread<L>>,
    /// The newest height of each list, of any age.
    newest: HashMap<L, Height>,
}

impl<L> Default for ServerReach<L> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<L: Copy + Eq + Hash> Observations<L> {
    fn lag(&mut self) -> u64 {
        self.recent.retain(|observation| observation.at.elapsed() < AGE_MAX);
        let mut newest: HashMap<L, Height> = HashMap::new();
        let lag = |observation: &HeightSpread<L>| {
            let known = newest.entry(observation.list).or_default();
            *known = observation.newest.max(*known);
            known.saturating_sub(observation.oldest)
        };
        self.recent.iter().map(lag).max().unwrap_or(0)
    }

    fn reached(&mut self, list: L) -> Option<Height> {
        let lag = self.lag();
        let recent = self.recent.iter().filter(|observation| observation.list == list);
        Some(recent.map(|observation| observation.newest).max()?.saturating_sub(lag))
    }
}

impl<L: Copy + Eq + Hash> ServerReach<L> {
    /// Records the newest heights of some answers about one list.
    pub(super) fn note(&self, endpoint: EndpointId, list: L, heights: &[Height]) {
        let mut all = lock(&self.0);
        let none = || Observations { recent: VecDeque::new(), newest: HashMap::new() };
        let observations = all.entry(endpoint).or_insert_with(none);
        let (Some(newest), Some(oldest)) = (heights.iter().max(), heights.iter().min()) else {
            return;
        };
        let observation =
            HeightSpread { at: Instant::now(), list, newest: *newest, oldest: *oldest };
        let known = observations.newest.entry(list).or_default();
        *known = observation.newest.max(*known);
        observations.recent.push_back(observation);
        while observations.recent.len() > OBSERVATIONS_MAX {
            observations.recent.pop_front();
        }
    }

    /// Whether the endpoint was ever observed, even without any height.
    pub(super) fn is_known(&self, endpoint: EndpointId) -> bool {
        lock(&self.0).contains_key(&endpoint)
    }

    pub(super) fn newest(&self, endpoint: EndpointId, list: L) -> Option<Height> {
        lock(&self.0).get(&endpoint)?.newest.get(&list).copied()
    }

    /// The lag in blocks: the most by which a recent answer was behind an earlier one about the
    /// same list.
    pub(super) fn lag(&self, endpoint: EndpointId) -> u64 {
        lock(&self.0).get_mut(&endpoint).map_or(0, Observations::lag)
    }

    /// The height that every server behind the address is assumed to have: the newest recent one
    /// less the lag. Both are computed under one lock, as an observation between them would raise
    /// one without the other.
    pub(super) fn reached(&self, endpoint: EndpointId, list: L) -> Option<Height> {
        lock(&self.0).get_mut(&endpoint)?.reached(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    enum List {
        Other,
        Tokens,
        Calls,
    }

    const LISTS: [List; 3] = [List::Other, List::Tokens, List::Calls];

    const ONE: EndpointId = EndpointId(0);

    #[tokio::test(start_paused = true)]
    async fn an_answer_behind_another_one_counts_against_its_endpoint_for_a_while() {
        let reach = ServerReach::default();
        assert_eq!((reach.lag(ONE), reach.is_known(ONE)), (0, false));
        reach.note(ONE, List::Calls, &[]);
        assert_eq!((reach.lag(ONE), reach.is_known(ONE)), (0, true));
        reach.note(ONE, List::Tokens, &[1_000, 1_000]);
        reach.note(ONE, List::Calls, &[10]);
        reach.note(ONE, List::Calls, &[]);
        assert_eq!(reach.lag(ONE), 0, "lists are not compared with each other");
        reach.note(ONE, List::Tokens, &[1_100, 1_030]);
        reach.note(ONE, List::Tokens, &[1_200, 1_200]);
        assert_eq!(reach.lag(ONE), 70, "and not what one was with what came later");
        reach.note(ONE, List::Tokens, &[1_110]);
        assert_eq!((reach.lag(ONE), reach.lag(EndpointId(1))), (90, 0));
        let reached = LISTS.map(|list| reach.reached(ONE, list));
        assert_eq!(reached, [None, Some(1_110), Some(0)], "less what any of them was behind");
        tokio::time::advance(AGE_MAX).await;
        assert_eq!(reach.lag(ONE), 0);
        let newest = LISTS.map(|list| reach.newest(ONE, list));
        assert_eq!(newest, [None, Some(1_200), Some(10)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_believed_for_half_a_minute_and_no_higher_one_with_it() {
        let (mut head, now) = (RecentHead::default(), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(head.get(now), None);
        head.note(100, now);
        head.note(120, after(20));
        assert_eq!((head.get(after(29)), head.get(after(30))), (Some(100), None));
        head.note(120, after(30));
        head.note(90, after(31));
        head.note(120, after(32));
        assert_eq!((head.get(after(60)), head.get(after(61))), (Some(90), None));
    }
}
