//! When the answers to one window of a gateway count: a block may be missing from an answer without
//! an error, so two must agree, whose answers do not all begin at the same blocks, and none may
//! contain more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join;

use super::discovery::Candidate;
use super::list_client::ListClient;
use super::portal_window::{GatewayMode, PortalWindow, WindowError, read_window};
use crate::decode::evm::Word;
use crate::domain::{Doubts, Height};

/// The most answers to one window.
const ANSWERS_MAX: usize = 6;

/// Failed requests per window, counted apart from answers: an endpoint that refuses everything does
/// not use up the answers of another one.
const FAILURES_MAX: usize = 4;

/// Reads a window until two answers agree; without agreement it has a doubt.
pub(super) async fn read_agreed(
    gateway: Arc<ListClient>,
    mode: GatewayMode,
    range: (Height, Height),
) -> Result<PortalWindow, WindowError> {
    let read = |halved| read_window(Arc::clone(&gateway), mode, range, halved);
    let (mut seen, mut failures) = (Vec::new(), 0);
    let (one, two) = join(read(false), read(true)).await;
    let mut open = vec![two, one];
    loop {
        match open.pop() {
            Some(Ok(window)) => seen.push(window),
            Some(Err(trouble @ WindowError::Dense(_))) => return Err(trouble),
            Some(Err(trouble)) => {
                failures += 1;
                // Both first requests failed, or too many later ones.
                let is_last = open.is_empty() && seen.is_empty();
                if is_last || failures > FAILURES_MAX {
                    return Err(trouble);
                }
            }
            // Two whose answers are cut at the same middle begin alike too.
            None => open.push(read(seen.iter().any(|window| !window.halved)).await),
        }
        if let Some((one, two)) = agreeing_pair(&seen) {
            let two = seen.swap_remove(two);
            let window = complemented(seen.swap_remove(one), two);
            return Ok(gateway.check_traces(mode, window).await);
        }
        if seen.len() >= ANSWERS_MAX
            && let Some(last) = seen.pop()
        {
            return Ok(merged_in_doubt(last, seen));
        }
    }
}

/// Two equal answers that contain everything that any answer contains, the earlier one first.
fn agreeing_pair(seen: &[PortalWindow]) -> Option<(usize, usize)> {
    let all: BTreeSet<Word> = seen.iter().flat_map(hashes).collect();
    let most = seen.iter().map(|window| window.blocks).max();
    let full = |window: &&PortalWindow| {
        Some(window.blocks) == most && hashes(window).collect::<BTreeSet<_>>() == all
    };
    let mut rest = seen.iter().enumerate().filter(|(_, window)| full(window));
    let pair = |one: (usize, &PortalWindow)| {
        let later = (0..).zip(seen).skip(one.0 + 1);
        later.filter(|(_, two)| is_alike(one.1, two)).map(|(two, _)| (one.0, two)).next()
    };
    rest.find_map(pair)
}

fn hashes(window: &PortalWindow) -> impl Iterator<Item = Word> {
    window.found.iter().map(|candidate| candidate.hash)
}

fn is_alike(one: &PortalWindow, two: &PortalWindow) -> bool {
    let same = |(one, two): (&Candidate, &Candidate)| {
        let details = one.whole.as_ref().zip(two.whole.as_ref());
        let calls = one.calls.as_ref().zip(two.calls.as_ref());
        one.hash == two.hash
            && details.is_none_or(|(one, two)| one == two)
            && calls.is_none_or(|(one, two)| one == two)
    };
    (one.halved || two.halved)
        && one.found.len() == two.found.len()
        && one.skipped == two.skipped
        && one.blocks == two.blocks
        && one.sent == two.sent
        && one.found.iter().zip(&two.found).all(same)
}

/// Adds inner calls that only the other answer has, and removes details that only one answer has:
/// they may lack the first or last logs, which only a second answer would show. Nodes are queried
/// for those.
fn complemented(mut one: PortalWindow, two: PortalWindow) -> PortalWindow {
    one.traces = one.traces.joined(two.traces);
    for (known, other) in one.found.iter_mut().zip(two.found) {
        known.whole = known.whole.take().zip(other.whole).map(|(one, _)| one);
        known.calls = known.calls.take().or(other.calls);
        known.time = known.time.or(other.time);
    }
    one
}

/// All transactions of all answers, with a doubt. Sent nonces are unknown if answers differ.
fn merged_in_doubt(mut all: PortalWindow, others: Vec<PortalWindow>) -> PortalWindow {
    let place = |one: Candidate| ((one.block, one.index, one.hash), one);
    let mut found: BTreeMap<_, Candidate> = all.found.drain(..).map(place).collect();
    for window in others {
        all.skipped = all.skipped.max(window.skipped);
        for (place, candidate) in window.found.into_iter().map(place) {
            found.entry(place).or_insert(candidate);
        }
    }
    all.found = found.into_values().collect();
    all.sent = None;
    all.doubts = all.doubts.union(Doubts::UNCONFIRMED);
    all
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::Ordering;

    use super::super::lists_model::Ways;
    use super::super::lists_tests::{SaleKind, model, world};
    use super::super::portal::PortalLister;
    use super::super::portal_candidates::TraceSights;
    use super::*;
    use crate::decode::evm::{NativeFlows, Terms, Transaction};
    use crate::domain::{Units, UnixSeconds};

    fn candidate(block: Height) -> Candidate {
        let number = u8::try_from(block).unwrap();
        Candidate {
            index: Some(0),
            calls: Some(Vec::new()),
            sent: Some(true),
            ..Candidate::bare([number; 32], block)
        }
    }

    fn window(blocks: &[Height]) -> PortalWindow {
        PortalWindow {
            low: 0,
            high: 100,
            found: blocks.iter().copied().map(candidate).collect(),
            skipped: 0,
            blocks: blocks.len(),
            sent: Some(blocks.iter().map(|block| (*block, *block)).collect()),
            doubts: Doubts::NONE,
            traces: TraceSights::default(),
            halved: true,
        }
    }

    #[test]
    fn two_answers_alike_count_where_none_holds_more() {
        let agree = |seen: &[&[Height]]| {
            agreeing_pair(&seen.iter().map(|blocks| window(blocks)).collect::<Vec<_>>())
        };
        assert_eq!(agree(&[&[1, 2]]), None, "one answer");
        assert_eq!(agree(&[&[1, 2], &[1, 2]]), Some((0, 1)));
        assert_eq!(agree(&[&[1], &[1, 2], &[1]]), None, "another one held more");
        assert_eq!(agree(&[&[1], &[1, 2], &[1], &[1, 2]]), Some((1, 3)));
        assert_eq!(agree(&[&[1], &[2], &[1]]), None, "none holds all");
        assert_eq!(agree(&[&[], &[]]), Some((0, 1)));
    }

    #[test]
    fn readings_that_ended_at_two_places_before_the_first_candidate_are_not_alike() {
        let ended = |blocks| PortalWindow { blocks, ..window(&[]) };
        assert_eq!(agreeing_pair(&[ended(40), ended(12)]), None);
        assert_eq!(
            agreeing_pair(&[ended(12), ended(40), ended(12)]),
            None,
            "another one held more"
        );
        assert_eq!(agreeing_pair(&[ended(40), ended(12), ended(40)]), Some((0, 2)));
    }

    #[test]
    fn answers_that_differ_in_calls_or_spam_are_not_alike() {
        let (one, mut two) = (window(&[1]), window(&[1]));
        two.found[0].calls = None;
        assert!(is_alike(&one, &two), "it is not said there");
        two.skipped = 1;
        assert!(!is_alike(&one, &two));
        let mut two = window(&[1]);
        two.sent = None;
        assert!(!is_alike(&one, &two));
    }

    #[test]
    fn one_of_two_answers_is_held_against_answers_that_begin_elsewhere() {
        let plain = || PortalWindow { halved: false, ..window(&[1]) };
        assert_eq!(agreeing_pair(&[plain(), plain()]), None);
        assert_eq!(agreeing_pair(&[plain(), plain(), window(&[1])]), Some((0, 2)));
    }

    /// What a gateway leaves out by its place in an answer, two that begin alike leave out both.
    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_cuts_its_answers_alike_is_not_believed() {
        let all = world(SaleKind::Sell, (1..=40).map(|at| at * 10));
        // One answer for all, or several that each end early: both readings, then the upper half
        // or one answer more, and the first block.
        for (blocks, requests) in [(1_000, 4), (15, 8)] {
            for (gateway_keeps, doubts) in
                [(0, Doubts::NONE), (10, Doubts::UNCONFIRMED), (12, Doubts::UNCONFIRMED)]
            {
                // The first reading fails, or none.
                for refuses_traces in [vec![], vec!["try later"]] {
                    let fails = !refuses_traces.is_empty();
                    let ways = Ways { blocks, gateway_keeps, refuses_traces, ..Ways::default() };
                    let model = model(&all, 1_000, ways);
                    let mut lister = PortalLister::new(model.client(&["one"]), (0, 1_000), 3);
                    let window = lister.next().await.unwrap().unwrap();
                    assert_eq!(window.doubts, doubts, "{blocks} {gateway_keeps} {fails}");
                    if gateway_keeps == 0 {
                        assert_eq!(window.found.len(), 40);
                        assert!(fails || model.sent.load(Ordering::Relaxed) == requests);
                    }
                }
            }
        }
    }

    #[test]
    fn what_one_of_two_answers_alike_leaves_out_is_the_other_ones() {
        let (mut one, mut two) = (window(&[1, 2]), window(&[1, 2]));
        one.found[0].calls = None;
        two.found[1].calls = None;
        two.found[1].time = Some(UnixSeconds(7));
        let both = complemented(one, two);
        assert!(both.found.iter().all(|known| known.calls.is_some()));
        assert_eq!(both.found[1].time, Some(UnixSeconds(7)));
    }

    pub(in crate::sources::evm) fn whole(block: Height) -> Box<Transaction> {
        let Candidate { hash, .. } = candidate(block);
        Box::new(Transaction {
            hash,
            block,
            index: 0,
            producer: None,
            from: [1; 20],
            to: None,
            value: Units::ZERO,
            selector: None,
            terms: Terms::default(),
            succeeded: true,
            logs: Vec::new(),
            native: NativeFlows::Unknown,
        })
    }

    #[test]
    fn details_that_one_of_two_answers_alike_has_alone_are_not_taken() {
        let detailed = |blocks: &[Height]| {
            let mut window = window(&[1, 2, 3]);
            for one in &mut window.found {
                one.whole = blocks.contains(&one.block).then(|| whole(one.block));
            }
            window
        };
        let (one, two) = (detailed(&[1, 2]), detailed(&[2, 3]));
        assert!(is_alike(&one, &two), "what is not there differs from nothing");
        let both = complemented(one, two);
        let has = both.found.iter().map(|known| known.whole.is_some());
        assert_eq!(has.collect::<Vec<_>>(), [false, true, false]);
    }

    #[test]
    fn what_no_two_answers_agree_on_is_joined_and_in_doubt() {
        let all = merged_in_doubt(window(&[3]), vec![window(&[1]), window(&[2, 3])]);
        assert_eq!(all.found.iter().map(|one| one.block).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!((all.sent, all.doubts), (None, Doubts::UNCONFIRMED));
    }
}
