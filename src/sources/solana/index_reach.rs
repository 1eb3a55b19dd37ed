//! How far the lists of each endpoint reach, learned from the lists themselves: by the newest
//! entries of an account that transactions name in every block. A slot that is reported next to a
//! list does not prove what the list holds, and neither does it prove that `minContextSlot` is
//! obeyed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::{SolanaSource, is_refusal, wire};
use crate::domain::{Height, lock};
use crate::registry::Chain;
use crate::rpc::{
    Call, CallOptions, CallResponse, EndpointId, EndpointSet, EndpointStatus, Result, UpstreamError,
};

pub(super) const FULL_PAGES: &str = "getTransactionsForAddress";
/// Entries of that account to request, and the least number that shows how busy it is.
const ENTRIES: usize = 25;
const ENTRIES_MIN: usize = 10;
/// The most slots that those entries may span for a busy account.
const BUSY_SLOTS: u64 = 64;
/// Answers in a row without entries, after which an endpoint's list counts as one without the
/// account.
const SILENT_ANSWERS: u32 = 3;
/// Attempts to get an answer from a list that reaches far enough, and the pause after each, times
/// its number: most lists have caught up a second later.
const REACH_TRIES: u32 = 6;
const REACH_PAUSE: Duration = Duration::from_millis(300);
/// Attempts in which the proof must come with the same request, where an endpoint takes several
/// calls.
const JOINT_TRIES: u32 = 3;
/// How long after it showed the account an endpoint is still expected to show it.
const SHOWN_FOR: Duration = Duration::from_secs(3_600);
/// A list that lags by at most this many slots is waited for; one of the only or last endpoint, by
/// up to a minute's slots.
const LAG_MAX: u64 = 8;
const LAG_ALONE_MAX: u64 = 150;
/// Longest wait for such a list, and the pause before each attempt, times its number.
const LAG_WAIT_MAX: Duration = Duration::from_secs(45);
const LAG_PAUSE: Duration = Duration::from_millis(400);
const LAG_PAUSE_MAX: Duration = Duration::from_secs(4);
/// Slots by which a list may fall back: a list that has reached further than this above a slot is
/// not checked again.
const FALL_MAX: u64 = 9_000;

/// The kinds of lists of an endpoint; each comes from an index of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum IndexedList {
    Signatures,
    FullPages,
}

/// A list of an endpoint.
type IndexOf = (EndpointId, IndexedList);

/// The busy account, and the chain's index lag, which is presumed where a list does not show the
/// account.
#[derive(Debug, Clone)]
pub(super) struct BusyAccount {
    address: Arc<str>,
    lag: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// The account is busy, and the list has reached this slot.
    Newest(Height),
    /// The list has reached this slot, which suffices; whether the account is busy is unknown.
    Reached(Height),
    Nothing,
    Failed,
}

impl Shown {
    fn has_reached(self, slot: Height) -> bool {
        matches!(self, Self::Newest(newest) | Self::Reached(newest) if newest >= slot)
    }
}

/// One attempt for the answers that are not proved yet.
#[derive(Debug)]
struct Round {
    list: IndexedList,
    slot: Height,
    /// Endpoints that had reached the slot before the request was sent.
    before: BTreeSet<EndpointId>,
    tries: u32,
    /// What the busy account showed, and the number of the request that showed it.
    shown: Option<(u64, Shown)>,
}

#[derive(Debug, Default)]
struct Known {
    newest: Height,
    shown_at: Option<Instant>,
    /// Answers in a row without entries.
    silent: u32,
    /// The reach that was presumed while the list showed nothing: the chain's lag below the
    /// endpoint's own head.
    presumed: Height,
}

#[derive(Debug, Default)]
pub(super) struct IndexReach(Mutex<HashMap<IndexOf, Known>>);

impl IndexReach {
    fn note(&self, of: IndexOf, shown: Shown) {
        let mut all = lock(&self.0);
        let known = all.entry(of).or_default();
        match shown {
            Shown::Newest(slot) => {
                known.newest = known.newest.max(slot);
                (known.shown_at, known.silent) = (Some(Instant::now()), 0);
            }
            Shown::Reached(slot) => known.newest = known.newest.max(slot),
            Shown::Nothing => known.silent = known.silent.saturating_add(1),
            Shown::Failed => {}
        }
    }

    /// Whether several answers had no entry of the account.
    fn is_silent(&self, of: IndexOf) -> bool {
        lock(&self.0).get(&of).is_some_and(|known| {
            let is_old = known.shown_at.is_none_or(|at| at.elapsed() >= SHOWN_FOR);
            known.silent >= SILENT_ANSWERS && is_old
        })
    }

    /// A list that does not show the account is presumed to reach the chain's lag below its
    /// endpoint's head, or below the farthest list that showed it lately; where no list shows it,
    /// any slot.
    fn is_presumed(&self, of: IndexOf, slot: Height, lag: u64) -> bool {
        let all = lock(&self.0);
        let is_new = |known: &&Known| known.shown_at.is_some_and(|at| at.elapsed() < SHOWN_FOR);
        let lists = all.iter().filter(|((_, list), _)| *list == of.1).map(|(_, known)| known);
        let Some(farthest) = lists.filter(is_new).map(|known| known.newest).max() else {
            return true;
        };
        let own = all.get(&of).map_or(0, |known| known.presumed);
        slot <= own.max(farthest.saturating_sub(lag))
    }

    fn presume(&self, of: IndexOf, slot: Height) {
        let mut all = lock(&self.0);
        let known = all.entry(of).or_default();
        known.presumed = known.presumed.max(slot);
    }

    fn reached(&self, list: IndexedList, slot: Height) -> BTreeSet<EndpointId> {
        let all = lock(&self.0);
        let reached = all.iter().filter(|((_, of), known)| *of == list && known.newest >= slot);
        reached.map(|((endpoint, _), _)| *endpoint).collect()
    }

    pub(super) fn farthest(&self, list: IndexedList, of: &[EndpointId]) -> Option<EndpointId> {
        let all = lock(&self.0);
        let newest = |id: &EndpointId| all.get(&(*id, list)).map_or(0, |known| known.newest);
        of.iter().copied().max_by_key(newest)
    }

    /// Whether the list has reached so far above a slot that it cannot have fallen below it.
    fn is_far_above(&self, of: IndexOf, slot: Height) -> bool {
        let newest = lock(&self.0).get(&of).map_or(0, |known| known.newest);
        newest >= slot.saturating_add(FALL_MAX)
    }
}

impl SolanaSource {
    /// Enables the checks of how far lists reach.
    #[must_use]
    pub fn with_busy_account(self, chain: &Chain) -> Self {
        let (address, lag) = (chain.wrapped_native.to_string().into(), chain.index_lag);
        Self { busy: Some(BusyAccount { address, lag }), ..self }
    }

    /// The call that shows the reach; `None` where there is no busy account, or the slot is far
    /// below the reach of every endpoint.
    fn reach_call(&self, list: IndexedList, slot: Height) -> Option<Call> {
        let of_list = |endpoint: EndpointId| (endpoint, list);
        let all = self.inner.pool.endpoints();
        let is_open = |id| !self.inner.reach.is_far_above(of_list(id), slot);
        let is_asked = all.iter().any(|status| is_open(status.id));
        self.busy.as_ref().filter(|_| is_asked).map(|busy| call(list, busy))
    }

    pub(super) fn have_pages_passed(&self, slot: Height, without: EndpointSet) -> bool {
        let all = self.inner.pool.endpoints();
        let mut open = all.iter().map(|status| status.id).filter(|id| !without.contains(*id));
        open.all(|id| self.inner.reach.is_far_above((id, IndexedList::FullPages), slot))
    }

    /// The call to send before a read begins. For pages, only to endpoints of one call a request:
    /// others show the reach in the request for the newest page.
    pub(super) fn opening_call(&self, list: IndexedList) -> Option<Call> {
        let is_shown_later = list == IndexedList::FullPages && self.inner.pool.batch_size() > 1;
        self.reach_call(list, Height::MAX).filter(|_| !is_shown_later)
    }

    /// Waits until an endpoint's list reaches a slot. Returns the slot; for a list without the
    /// account, the slot less the chain's lag; for a list that stays behind, where no other
    /// endpoint is left (`is_last`), the slot that it reaches.
    pub(super) async fn listed_to(
        &self,
        of: IndexOf,
        (slot, is_last): (Height, bool),
        answer: Option<Result<CallResponse>>,
        options: &CallOptions,
    ) -> Result<Height> {
        let Some(busy) = &self.busy else { return Ok(slot) };
        // Pages that lag or are refused are not read: lists take their place, and their reach is
        // checked.
        if of.1 == IndexedList::FullPages {
            if let Some(Ok(answer)) = answer {
                self.note_reach((answer.endpoint, of.1), &Ok(answer), slot);
            }
            return Ok(slot);
        }
        let mut given = answer.filter(|answer| match answer {
            Ok(answer) => answer.endpoint == of.0,
            Err(_) => true,
        });
        let is_alone = self.inner.pool.endpoints().len() < 2;
        let most = if is_alone || is_last { LAG_ALONE_MAX } else { LAG_MAX };
        let began = Instant::now();
        let (mut listed, mut waits, mut silent) = (None, 0, 0);
        loop {
            let is_given = given.is_some();
            let answer = match given.take() {
                Some(answer) => answer,
                None => self.ask_reach(of.1, busy, of.0, options).await,
            };
            match self.note_reach(of, &answer, slot) {
                shown if shown.has_reached(slot) => return Ok(slot),
                Shown::Newest(newest) | Shown::Reached(newest) => listed = Some(newest),
                Shown::Nothing | Shown::Failed if self.inner.reach.is_silent(of) => {
                    let listed = slot.saturating_sub(busy.lag);
                    self.inner.reach.presume(of, listed);
                    return Ok(listed);
                }
                // The next answer may show the account, or complete the evidence that none does.
                Shown::Nothing if silent < SILENT_ANSWERS => {
                    silent += 1;
                    continue;
                }
                // Another endpoint's lists may show the account.
                Shown::Failed if !is_given && !is_alone => break,
                Shown::Nothing | Shown::Failed => {}
            }
            let is_far = |listed: Height| slot.saturating_sub(listed) > most;
            if began.elapsed() >= LAG_WAIT_MAX || listed.is_some_and(is_far) {
                break;
            }
            waits += 1;
            sleep(LAG_PAUSE.saturating_mul(waits).min(LAG_PAUSE_MAX)).await;
        }
        // No list reaches farther: what it holds is read, and nothing above it is claimed.
        listed.filter(|_| is_alone || is_last).ok_or_else(|| {
            let behind = listed.map(|listed| slot.saturating_sub(listed));
            UpstreamError::unavailable(lacking(&self.inner.pool.label(of.0), behind))
        })
    }

    /// Answers about the newest entries of lists, each from an index that had reached a slot: shown
    /// by the busy account in the same request, so that one server gave both answers; for an
    /// endpoint of one call a request, by requests before and after.
    pub(super) async fn answers_up_to(
        &self,
        (list, slot): (IndexedList, Height),
        calls: &[Call],
        options: &CallOptions,
    ) -> Vec<Result<CallResponse>> {
        let pool = &self.inner.pool;
        let Some(reach) = self.reach_call(list, slot) else {
            return pool.batch(calls, options).await;
        };
        // First in the batch, where a request takes fewer calls than there are.
        let reach = (pool.batch_size() > 1).then_some(reach);
        let mut results: BTreeMap<usize, Result<CallResponse>> = BTreeMap::new();
        let mut options = options.clone();
        for tries in 1..=REACH_TRIES {
            let open = calls.iter().enumerate().filter(|(at, _)| !results.contains_key(at));
            let (open, asked): (Vec<usize>, Vec<Call>) =
                open.map(|(at, call)| (at, call.clone())).unzip();
            let asked: Vec<Call> = reach.iter().cloned().chain(asked).collect();
            let before = self.inner.reach.reached(list, slot);
            let mut answers = pool.batch(&asked, &options).await.into_iter();
            let shown = reach
                .as_ref()
                .and_then(|_| answers.next()?.ok())
                .map(|it| (it.request, self.note_reach((it.endpoint, list), &Ok(it), slot)));
            let round = Round { list, slot, before, tries, shown };
            let (mut behind, mut after) = (None, BTreeMap::new());
            for (at, answer) in open.into_iter().zip(answers) {
                match answer {
                    Ok(answer) if !self.is_proved(&round, &answer, &mut after, &options).await => {
                        behind = Some(answer.endpoint);
                    }
                    answer => drop(results.insert(at, answer)),
                }
            }
            if behind.is_none() {
                break;
            }
            options = CallOptions { on: None, avoid: behind, ..options };
            sleep(REACH_PAUSE * tries).await;
        }
        let missing = || {
            let last = "no list is known to reach these slots".to_owned();
            Err(UpstreamError::Unavailable { attempts: REACH_TRIES, last })
        };
        (0..calls.len()).map(|at| results.remove(&at).unwrap_or_else(missing)).collect()
    }

    async fn is_proved(
        &self,
        round: &Round,
        answer: &CallResponse,
        after: &mut BTreeMap<EndpointId, bool>,
        options: &CallOptions,
    ) -> bool {
        let (endpoint, of) = (answer.endpoint, (answer.endpoint, round.list));
        let Some(busy) = &self.busy else { return true };
        if self.inner.reach.is_silent(of) {
            return self.inner.reach.is_presumed(of, round.slot, busy.lag);
        }
        if let Some((_, shown)) = round.shown.filter(|(request, _)| *request == answer.request) {
            return shown.has_reached(round.slot);
        }
        let is_joint = |status: &EndpointStatus| status.id == endpoint && status.batch > 1;
        let is_joint = self.inner.pool.endpoints().iter().any(is_joint);
        if is_joint && round.tries <= JOINT_TRIES {
            return false;
        }
        if let Some(known) = after.get(&endpoint) {
            return *known;
        }
        let shown = self.ask_reach(round.list, busy, endpoint, options).await;
        let shown = self.note_reach(of, &shown, round.slot);
        let is_proved = round.before.contains(&endpoint) && shown.has_reached(round.slot);
        after.insert(endpoint, is_proved);
        is_proved
    }

    async fn ask_reach(
        &self,
        list: IndexedList,
        busy: &BusyAccount,
        endpoint: EndpointId,
        options: &CallOptions,
    ) -> Result<CallResponse> {
        let options = options.first_on(endpoint);
        let Call { method, params } = call(list, busy);
        self.inner.pool.call(method, params, &options).await
    }

    fn note_reach(&self, of: IndexOf, answer: &Result<CallResponse>, slot: Height) -> Shown {
        let shown = match answer {
            Ok(answer) => {
                let slots = slots(of.1, &answer.result).unwrap_or_default();
                if of.1 == IndexedList::Signatures {
                    self.inner.page_sizes.may_be_cut(of.0, slots.len(), 0);
                }
                shown(&slots, slot)
            }
            Err(error) if is_refusal(error) => Shown::Nothing,
            Err(_) => Shown::Failed,
        };
        self.inner.reach.note(of, shown);
        shown
    }
}

/// The newest entries of the account, also failed ones.
fn call(list: IndexedList, busy: &BusyAccount) -> Call {
    match list {
        IndexedList::Signatures => {
            let how = json!({"limit": ENTRIES, "commitment": "finalized"});
            Call { method: "getSignaturesForAddress", params: json!([busy.address, how]) }
        }
        IndexedList::FullPages => {
            let how = json!({
                "transactionDetails": "signatures",
                "sortOrder": "desc",
                "limit": ENTRIES,
                "commitment": "finalized",
            });
            Call { method: FULL_PAGES, params: json!([busy.address, how]) }
        }
    }
}

#[derive(Deserialize)]
struct SlotPage {
    data: Vec<Slotted>,
}

#[derive(Deserialize)]
struct Slotted {
    slot: Height,
}

fn slots(list: IndexedList, raw: &RawValue) -> Option<Vec<Height>> {
    match list {
        IndexedList::Signatures => {
            Some(wire::signatures(raw)?.into_iter().map(|entry| entry.slot).collect())
        }
        IndexedList::FullPages => {
            let page: SlotPage = serde_json::from_str(raw.get()).ok()?;
            Some(page.data.into_iter().map(|row| row.slot).collect())
        }
    }
}

/// What the slots of the newest entries show. Few entries, or old ones far apart, may be those of
/// an account that is seldom used.
fn shown(slots: &[Height], slot: Height) -> Shown {
    let (Some(newest), Some(oldest)) = (slots.iter().max(), slots.iter().min()) else {
        return Shown::Nothing;
    };
    let is_busy = slots.len() >= ENTRIES_MIN && newest - oldest <= BUSY_SLOTS;
    match *newest {
        newest if is_busy => Shown::Newest(newest),
        newest if newest >= slot => Shown::Reached(newest),
        _ => Shown::Nothing,
    }
}

fn lacking(label: &str, behind: Option<Height>) -> String {
    match behind {
        Some(behind) => format!("the lists of {label} are {behind} slots behind it"),
        None => format!("the lists of {label} no longer show which slot they reach"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: IndexOf = (EndpointId(0), IndexedList::Signatures);

    #[test]
    fn busy_accounts_show_how_far_a_list_has_come_and_quiet_ones_do_not() {
        let busy: Vec<Height> = (0..25).map(|at| 900 - at / 3).collect();
        assert_eq!(shown(&busy, 1_000), Shown::Newest(900));
        assert_eq!(shown(&busy[..9], 1_000), Shown::Nothing, "few entries");
        let quiet: Vec<Height> = (0..25).map(|at| 900 - at * 3).collect();
        assert_eq!(shown(&quiet, 1_000), Shown::Nothing);
        assert_eq!(shown(&quiet, 900), Shown::Reached(900), "it has come there");
        assert_eq!(shown(&[], 900), Shown::Nothing);
    }

    #[tokio::test(start_paused = true)]
    async fn one_empty_answer_shows_nothing_and_one_that_showed_some_is_waited_for() {
        let reach = IndexReach::default();
        reach.note(OF, Shown::Nothing);
        reach.note(OF, Shown::Failed);
        reach.note(OF, Shown::Nothing);
        assert!(!reach.is_silent(OF));
        reach.note(OF, Shown::Nothing);
        assert!(reach.is_silent(OF));
        assert!(!reach.is_silent((OF.0, IndexedList::FullPages)), "another index");
        reach.note(OF, Shown::Reached(500));
        assert!(reach.is_silent(OF), "an old entry of an account that is little used");
        reach.note(OF, Shown::Newest(500));
        for _ in 0..10 {
            reach.note(OF, Shown::Nothing);
        }
        assert!(!reach.is_silent(OF));
        tokio::time::advance(SHOWN_FOR).await;
        assert!(reach.is_silent(OF));
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_list_is_not_taken_for_what_another_one_has_shown() {
        let reach = IndexReach::default();
        let other = (EndpointId(1), OF.1);
        let is_taken = |slot| reach.is_presumed(OF, slot, 30);
        assert!(is_taken(1_000), "none shows any");
        reach.note((other.0, IndexedList::FullPages), Shown::Newest(1_000));
        reach.note(other, Shown::Reached(1_000));
        assert!(is_taken(1_000), "another index, and no busy account");
        reach.note(other, Shown::Newest(1_000));
        assert!(is_taken(970) && !is_taken(971));
        // Its own head is higher by now.
        reach.presume(OF, 1_005);
        assert!(is_taken(1_005) && !is_taken(1_006));
        assert!(!reach.is_presumed((EndpointId(2), OF.1), 971, 30));
        tokio::time::advance(SHOWN_FOR).await;
        assert!(is_taken(1_006), "the other one shows no more");
    }

    #[test]
    fn the_slots_of_a_page_are_read_and_nothing_else_of_it() {
        let read = |text: &str| {
            slots(IndexedList::FullPages, &RawValue::from_string(text.to_owned()).unwrap())
        };
        let page = r#"{"data": [{"slot": 7, "fee": 1e999, "err": null}, {"slot": 5}], "x": 1}"#;
        assert_eq!(read(page), Some(vec![7, 5]));
        assert_eq!(read(r#"{"data": []}"#), Some(Vec::new()));
        for broken in [r#"{"data": [{"slot": -1}]}"#, r#"{"data": [{}]}"#, "{}", "null"] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }

    #[test]
    fn what_lies_far_below_needs_no_proof() {
        let reach = IndexReach::default();
        assert!(!reach.is_far_above(OF, 0));
        reach.note(OF, Shown::Newest(20_000));
        assert!(reach.is_far_above(OF, 11_000) && !reach.is_far_above(OF, 11_001));
    }

    #[test]
    fn an_error_does_not_name_a_distance_that_is_not_known() {
        assert_eq!(lacking("one", Some(7)), "the lists of one are 7 slots behind it");
        assert_eq!(lacking("one", None), "the lists of one no longer show which slot they reach");
    }
}
