//! Pure: how far behind the servers of an index may be that answer under one address, as far as its
//! own answers show.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::explorer_wire::ExplorerList;
use crate::domain::Height;
use crate::rpc::endpoint::EndpointId;

/// What was seen counts so long, and so much of it.
const AGE_MAX: Duration = Duration::from_secs(120);
const ROUNDS_MAX: usize = 48;

/// The newest and the oldest of the newest rows that answers about one list showed at one time.
#[derive(Debug, Clone, Copy)]
struct Round {
    at: Instant,
    list: ExplorerList,
    newest: Height,
    oldest: Height,
}

/// By endpoint.
#[derive(Debug, Default)]
pub(super) struct ListReach(Mutex<HashMap<EndpointId, Shown>>);

/// What the answers of one endpoint showed.
#[derive(Debug, Default)]
struct Shown {
    rounds: VecDeque<Round>,
    /// The newest row of each list, however long ago.
    newest: [Option<Height>; ExplorerList::ALL.len()],
}

impl ListReach {
    /// Takes the newest rows of some answers about one list.
    pub(super) fn note(&self, endpoint: EndpointId, list: ExplorerList, rows: &[Height]) {
        let (Some(newest), Some(oldest)) = (rows.iter().max(), rows.iter().min()) else { return };
        let (newest, oldest, at) = (*newest, *oldest, Instant::now());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Shown { rounds, newest: newest_of } = all.entry(endpoint).or_default();
        for (known, _) in newest_of.iter_mut().zip(ExplorerList::ALL).filter(|(_, of)| *of == list)
        {
            *known = (*known).max(Some(newest));
        }
        rounds.push_back(Round { at, list, newest, oldest });
        while rounds.len() > ROUNDS_MAX {
            rounds.pop_front();
        }
    }

    /// The newest row of a list that any of its answers has shown.
    pub(super) fn newest(&self, endpoint: EndpointId, list: ExplorerList) -> Option<Height> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = all.get(&endpoint)?.newest;
        newest.into_iter().zip(ExplorerList::ALL).find(|(_, of)| *of == list)?.0
    }

    /// The most blocks by which an answer of late was behind what another one had shown of the same
    /// list.
    pub(super) fn behind(&self, endpoint: EndpointId) -> u64 {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Shown { rounds, .. }) = all.get_mut(&endpoint) else { return 0 };
        rounds.retain(|round| round.at.elapsed() < AGE_MAX);
        let of_list = |list: ExplorerList| {
            let rounds = rounds.iter().filter(move |round| round.list == list);
            let seen = rounds.scan(0, |newest: &mut Height, round| {
                *newest = round.newest.max(*newest);
                Some(newest.saturating_sub(round.oldest))
            });
            seen.max().unwrap_or(0)
        };
        ExplorerList::ALL.into_iter().map(of_list).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: EndpointId = EndpointId(0);

    #[tokio::test(start_paused = true)]
    async fn an_answer_behind_another_one_counts_against_its_endpoint_for_a_while() {
        let reach = ListReach::default();
        assert_eq!(reach.behind(ONE), 0);
        reach.note(ONE, ExplorerList::Tokens, &[1_000, 1_000]);
        reach.note(ONE, ExplorerList::Calls, &[10]);
        reach.note(ONE, ExplorerList::Calls, &[]);
        assert_eq!(reach.behind(ONE), 0, "lists are not compared with each other");
        reach.note(ONE, ExplorerList::Tokens, &[1_100, 1_030]);
        reach.note(ONE, ExplorerList::Tokens, &[1_200, 1_200]);
        assert_eq!(reach.behind(ONE), 70, "and not what one was with what came later");
        reach.note(ONE, ExplorerList::Tokens, &[1_110]);
        assert_eq!((reach.behind(ONE), reach.behind(EndpointId(1))), (90, 0));
        tokio::time::advance(AGE_MAX).await;
        assert_eq!(reach.behind(ONE), 0);
        let newest = ExplorerList::ALL.map(|list| reach.newest(ONE, list));
        assert_eq!(newest, [None, Some(1_200), Some(10)]);
    }
}
