//! Pure: decides what a wallet's worker does next.

use crate::domain::{Coverage, Gap, Height};
use crate::sources::RunAhead;

/// What one reader, or the background, requires of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Demand {
    /// Heights above the last check.
    pub(super) fresh: bool,
    /// The reader has delivered the history and waits for new rows.
    pub(super) follows: bool,
    /// All heights below this one.
    pub(super) all_below: Option<Height>,
    /// The reader waits at a gap and needs the heights right below this one.
    pub(super) edge: Option<Height>,
    /// Number of rows that it still needs there; `None`: unknown or all.
    pub(super) rows: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckAge {
    Fresh,
    /// The last step was a check that took longer than it stays fresh: checks alternate with gaps.
    Slow,
    Old,
}

/// The state of a wallet that decides what comes next.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanInput<'a> {
    pub(super) coverage: &'a Coverage,
    pub(super) check: CheckAge,
    /// A follower needs no check: a scan found nothing new, or the last check is fresh.
    pub(super) is_current: bool,
    /// No endpoint keeps heights below this one at present.
    pub(super) cut: Option<Height>,
    pub(super) decoder: u16,
    pub(super) spans_max: usize,
    /// Covered heights whose proof is not accepted and that are due to be read again.
    pub(super) doubtful: Option<(Height, Height)>,
    /// Rereads are not paused; a failed one pauses those by another decoder version as well.
    pub(super) may_reread: bool,
    /// Lower end of a check for newer heights that is not finished.
    pub(super) unfinished: Option<Height>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Read from the source's head down to this height.
    Refresh {
        low: Height,
    },
    /// Close this gap; `eager` if a reader or the background needs everything below it.
    Fill {
        gap: Gap,
        eager: bool,
    },
    /// Read these heights again with the present decoder.
    Reread {
        low: Height,
        high: Height,
    },
    Idle,
}

/// Decides the next step. `turn` is a counter by which the gaps of several readers alternate.
pub(super) fn plan(demands: &[Demand], known: PlanInput<'_>, turn: usize) -> Next {
    match (next_for_demands(demands, known, turn), known.unfinished) {
        (Next::Idle, Some(low)) => Next::Refresh { low },
        (next, _) => next,
    }
}

/// The step that readers and the background need next.
fn next_for_demands(demands: &[Demand], known: PlanInput<'_>, turn: usize) -> Next {
    if demands.is_empty() {
        return Next::Idle;
    }
    // A gap that no endpoint can close must not keep new heights out.
    let crowding =
        reachable_gap(Height::MAX, known).filter(|_| known.coverage.runs() >= known.spans_max);
    let Some(top) = known.coverage.top() else { return Next::Refresh { low: 0 } };
    let is_old = |demand: &Demand| {
        (demand.fresh && known.check != CheckAge::Fresh) || (demand.follows && !known.is_current)
    };
    let mut gaps = wanted_gaps(demands, known);
    let is_turn = gaps.is_empty() || known.check != CheckAge::Slow;
    if demands.iter().any(is_old) && crowding.is_none() && is_turn {
        return Next::Refresh { low: top + 1 };
    }
    if gaps.is_empty() {
        gaps.extend(crowding.map(|gap| (gap, false)));
    }
    // Every second turn is a check's.
    let turn = if known.check == CheckAge::Slow { turn / 2 } else { turn };
    if let Some(at) = turn.checked_rem(gaps.len()) {
        let (gap, eager) = gaps.swap_remove(at);
        return Next::Fill { gap, eager };
    }
    let ends_at_bottom = demands.iter().any(|one| one.all_below.is_some() || one.edge.is_some());
    if let Some((low, high)) = known.doubtful.filter(|_| ends_at_bottom) {
        return Next::Reread { low, high };
    }
    let stale = known.may_reread && demands.iter().any(|demand| demand.all_below.is_some());
    match known.coverage.stale(known.decoder) {
        Some(span) if stale => Next::Reread { low: span.low, high: span.high },
        Some(_) | None => Next::Idle,
    }
}

/// How far to prefetch: the largest number of rows that a reader needs.
pub(super) fn run_ahead(demands: &[Demand]) -> RunAhead {
    let most = demands.iter().filter_map(|demand| demand.rows).max();
    most.map_or(RunAhead::Unknown, RunAhead::rows)
}

/// The distinct gaps that readers need, topmost first, each with whether all below it is needed.
fn wanted_gaps(demands: &[Demand], known: PlanInput<'_>) -> Vec<(Gap, bool)> {
    let mut gaps: Vec<(Gap, bool)> = Vec::new();
    for demand in demands {
        let edge = demand.edge.map(|height| (height, false));
        let all = demand.all_below.map(|height| (height, true));
        for (height, eager) in edge.into_iter().chain(all) {
            let Some(gap) = reachable_gap(height, known) else { continue };
            match gaps.iter_mut().find(|(known, _)| known.high == gap.high) {
                Some((_, known_eager)) => *known_eager |= eager,
                None => gaps.push((gap, eager)),
            }
        }
    }
    gaps.sort_by_key(|(gap, _)| std::cmp::Reverse(gap.high));
    gaps
}

/// The topmost gap at or below a height, unless no endpoint keeps it.
pub(super) fn reachable_gap(height: Height, known: PlanInput<'_>) -> Option<Gap> {
    let height = height.min(known.coverage.top()?);
    let gap = known.coverage.gap_below(height)?;
    let cut = known.cut.is_some_and(|first| gap.high < first);
    (!cut).then_some(gap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Proof, Span};

    fn span(low: u64, high: u64, decoder: u16) -> Span {
        Span { low, high, decoder, resume: None, proof: Proof::default(), missing: vec![] }
    }

    fn coverage(spans: &[(u64, u64)]) -> Coverage {
        let mut coverage = Coverage::default();
        for &(low, high) in spans {
            coverage.insert(span(low, high, 1));
        }
        coverage
    }

    fn known(coverage: &Coverage, is_fresh: bool) -> PlanInput<'_> {
        PlanInput {
            coverage,
            check: if is_fresh { CheckAge::Fresh } else { CheckAge::Old },
            is_current: is_fresh,
            cut: None,
            decoder: 1,
            spans_max: 64,
            doubtful: None,
            may_reread: true,
            unfinished: None,
        }
    }

    fn all(height: u64) -> Demand {
        Demand { all_below: Some(height), ..Demand::default() }
    }

    fn edge(height: u64) -> Demand {
        Demand { edge: Some(height), ..Demand::default() }
    }

    const FRESH: Demand =
        Demand { fresh: true, follows: false, all_below: None, edge: None, rows: None };
    const FOLLOWS: Demand = Demand { fresh: false, follows: true, ..FRESH };

    fn fill(low: u64, high: u64, eager: bool) -> Next {
        Next::Fill { gap: Gap { low, high, resume: None }, eager }
    }

    #[test]
    fn without_demand_nothing_is_planned() {
        assert_eq!(plan(&[], known(&coverage(&[]), false), 0), Next::Idle);
    }

    #[test]
    fn an_unknown_wallet_is_read_from_the_head() {
        let none = coverage(&[]);
        assert_eq!(plan(&[FRESH, all(u64::MAX)], known(&none, false), 0), Next::Refresh { low: 0 });
    }

    #[test]
    fn a_refresh_reads_only_what_is_new_and_only_when_the_check_is_old() {
        let some = coverage(&[(0, 99)]);
        assert_eq!(plan(&[FRESH], known(&some, false), 0), Next::Refresh { low: 100 });
        assert_eq!(plan(&[FRESH], known(&some, true), 0), Next::Idle);
    }

    #[test]
    fn a_check_that_is_old_when_it_ends_takes_turns_with_gaps() {
        let gap = coverage(&[(0, 9), (20, 99)]);
        let checked = PlanInput { check: CheckAge::Slow, ..known(&gap, false) };
        assert_eq!(plan(&[FRESH, edge(99)], checked, 0), fill(10, 19, false));
        assert_eq!(plan(&[FRESH, edge(99)], known(&gap, false), 1), Next::Refresh { low: 100 });
        assert_eq!(plan(&[FRESH], checked, 0), Next::Refresh { low: 100 }, "no gap is wanted");
        let gaps = coverage(&[(0, 9), (20, 29), (40, 99)]);
        let checked = PlanInput { check: CheckAge::Slow, ..known(&gaps, false) };
        let turns = [1, 3, 5].map(|turn| plan(&[FRESH, edge(99), edge(29)], checked, turn));
        assert_eq!(turns, [fill(30, 39, false), fill(10, 19, false), fill(30, 39, false)]);
    }

    #[test]
    fn a_started_read_of_newer_heights_is_finished_without_a_reader() {
        let some = coverage(&[(0, 99)]);
        let begun = PlanInput { unfinished: Some(100), ..known(&some, false) };
        assert_eq!(plan(&[], begun, 0), Next::Refresh { low: 100 });
        let gap = coverage(&[(0, 9), (20, 99)]);
        let behind = PlanInput { coverage: &gap, ..begun };
        assert_eq!(plan(&[edge(99)], behind, 0), fill(10, 19, false), "readers come first");
    }

    #[test]
    fn a_followed_wallet_is_read_when_a_scan_or_its_age_says_so() {
        let some = coverage(&[(0, 99)]);
        let quiet = PlanInput { is_current: true, ..known(&some, false) };
        assert_eq!(plan(&[FOLLOWS], quiet, 0), Next::Idle);
        assert_eq!(plan(&[FOLLOWS, FRESH], quiet, 0), Next::Refresh { low: 100 });
        let due = PlanInput { is_current: false, ..known(&some, true) };
        assert_eq!(plan(&[FOLLOWS], due, 0), Next::Refresh { low: 100 });
        assert_eq!(plan(&[FRESH], due, 0), Next::Idle);
    }

    #[test]
    fn gaps_that_readers_wait_at_take_turns() {
        let some = coverage(&[(10, 19), (30, 39), (50, 59)]);
        let demands = [edge(55), edge(15), all(59)];
        let turns: Vec<_> = (0..4).map(|turn| plan(&demands, known(&some, true), turn)).collect();
        let (upper, lower) = (fill(40, 49, true), fill(0, 9, false));
        assert_eq!(turns, [upper.clone(), lower.clone(), upper, lower]);
    }

    #[test]
    fn what_the_nodes_have_cut_is_left_alone() {
        let some = coverage(&[(70, 90)]);
        let cut = PlanInput { cut: Some(70), ..known(&some, true) };
        assert_eq!(plan(&[all(90)], cut, 0), Next::Idle);
        let inner = coverage(&[(70, 80), (85, 90)]);
        let cut = PlanInput { cut: Some(70), ..known(&inner, true) };
        assert_eq!(plan(&[all(90)], cut, 0), fill(81, 84, true));
    }

    #[test]
    fn too_many_spans_are_joined_before_a_new_one_begins() {
        let some = coverage(&[(0, 9), (20, 29), (40, 49)]);
        let crowded = PlanInput { spans_max: 3, ..known(&some, false) };
        assert_eq!(plan(&[FRESH], crowded, 0), fill(30, 39, false));
        let cut = PlanInput { cut: Some(40), ..crowded };
        assert_eq!(plan(&[FRESH], cut, 0), Next::Refresh { low: 50 }, "none of them can be closed");
    }

    #[test]
    fn doubtful_heights_are_read_again_behind_gaps_and_before_an_older_decoders() {
        let some = coverage(&[(0, 99)]);
        let doubt = PlanInput { doubtful: Some((20, 30)), decoder: 2, ..known(&some, true) };
        assert_eq!(plan(&[all(99)], doubt, 0), Next::Reread { low: 20, high: 30 });
        assert_eq!(plan(&[edge(99)], doubt, 0), Next::Reread { low: 20, high: 30 });
        assert_eq!(plan(&[FRESH], doubt, 0), Next::Idle);
        let gap = coverage(&[(0, 9), (20, 99)]);
        let open = PlanInput { doubtful: Some((20, 30)), ..known(&gap, true) };
        assert_eq!(plan(&[all(99)], open, 0), fill(10, 19, true));
    }

    #[test]
    fn spans_of_an_older_decoder_are_read_again_last() {
        let mut some = coverage(&[(0, 9)]);
        some.insert(span(10, 19, 2));
        let now = PlanInput { decoder: 2, ..known(&some, true) };
        assert_eq!(plan(&[all(19)], now, 0), Next::Reread { low: 0, high: 9 });
        assert_eq!(plan(&[edge(19)], now, 0), Next::Idle);
        let paused = PlanInput { may_reread: false, ..now };
        assert_eq!(
            plan(&[all(19)], paused, 0),
            Next::Idle,
            "a read in vain is not repeated at once"
        );
    }

    /// Else an older program on the same database would bring the older rows back.
    #[test]
    fn spans_of_a_newer_decoder_stay() {
        let mut some = coverage(&[(0, 9)]);
        some.insert(span(10, 19, 2));
        assert_eq!(plan(&[all(19)], known(&some, true), 0), Next::Idle);
    }
}
