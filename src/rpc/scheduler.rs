//! The scheduler: which waiting request goes to which endpoint next, with per-wallet fairness.
//!
//! Every wallet has a lane; lanes take turns, interactive ones before background ones, of which one
//! in a few still gets a turn. Waiting for a rate happens here, so a lane with hundreds of requests
//! delays another's single one by at most one turn. Inside a lane requests go in the order of
//! delivery.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use super::endpoint::{Endpoint, EndpointId};
use super::endpoint_set::EndpointSet;
use super::error::{Result, UpstreamError};
use super::limits::PoolLimits;
use super::priority::Priority;
use super::selection;
use crate::domain::{lock, opaque};

/// The wallet for which a request is made, and its priority.
#[derive(Debug, Clone)]
pub struct Lane {
    id: u64,
    priority: Arc<Priority>,
    rank: u64,
}

impl Lane {
    pub fn new(id: u64, priority: Arc<Priority>) -> Self {
        Self { id, priority, rank: 0 }
    }

    /// The lane of requests for no single wallet.
    pub fn unowned(priority: Priority) -> Self {
        Self::new(0, Arc::new(priority))
    }

    /// Number of calls for which this lane was granted a permit so far.
    pub fn calls_sent(&self) -> u32 {
        self.priority.calls()
    }

    /// The same lane for a request that is delivered after all requests of lower rank. Rank 0 is
    /// for requests that hold up everything.
    #[must_use]
    pub(crate) fn ranked(&self, rank: u64) -> Self {
        Self { rank, ..self.clone() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Needs {
    pub(super) lane: Lane,
    pub(super) on: Option<EndpointId>,
    pub(super) avoid: Option<EndpointId>,
    /// The avoided endpoint has answered already, and another one is to confirm its answer.
    pub(super) is_confirmation: bool,
    pub(super) without: EndpointSet,
    pub(super) method: &'static str,
    pub(super) calls: usize,
    /// A hedge of a slow request; it must fit all its calls.
    pub(super) is_hedge: bool,
    /// The caller queries another endpoint if the named one fails.
    pub(super) is_replaceable: bool,
    /// When the call was first made.
    pub(super) since: Instant,
}

impl Needs {
    /// Whether an endpoint may serve this request now or later.
    fn may_use(&self, at: usize, endpoint: &Endpoint, now: Instant) -> bool {
        let id = EndpointId(at);
        self.on.map_or(!endpoint.is_excluded(now), |on| on == id)
            && !self.without.contains(id)
            && (!self.is_hedge || endpoint.batch >= self.calls)
            && endpoint.offers(self.method, now)
    }
}

struct Waiter {
    needs: Needs,
    grant: oneshot::Sender<Result<Permit>>,
}

#[derive(Default)]
struct State {
    endpoints: Vec<Endpoint>,
    lanes: HashMap<u64, VecDeque<Waiter>>,
    /// Lanes with waiters, in round-robin order.
    turns: VecDeque<u64>,
    waiting: usize,
    interactive_in_a_row: u32,
    next_watch: u64,
    watcher: Option<Watcher>,
    /// Credit for hedges: each first request adds one, a hedge costs `hedge_share`.
    hedge_credit: u32,
}

/// The waiter that watches the time for all waiters, and when it wakes.
#[derive(Clone, Copy)]
struct Watcher {
    id: u64,
    wakes: Instant,
}

/// The admission queue of one pool.
///
/// It does not rely on any single waiter being polled: a permit that is not taken expires, and any
/// waiter that finds the watcher late takes its place.
pub(super) struct Admission {
    state: Mutex<State>,
    limits: PoolLimits,
    watcher_needed: Notify,
}

/// The permission to send one request of up to `calls` calls to an endpoint; ends when dropped.
pub(super) struct Permit {
    admission: Arc<Admission>,
    pub(super) endpoint: EndpointId,
    pub(super) calls: usize,
    lease: u64,
    taken: bool,
}

impl Permit {
    /// Extends the permit for the time of a request; `false` if it has expired.
    fn take(&mut self) -> bool {
        let now = Instant::now();
        let until = now + self.admission.limits.request_wait_max + LEASE_MARGIN;
        let lease = self.lease;
        let taken = self.admission.with(self.endpoint, |e| e.extend(lease, now, until));
        self.taken = taken.unwrap_or(false);
        self.taken
    }
}

/// Added to the longest request time: a request whose caller is alive has ended by then.
const LEASE_MARGIN: Duration = Duration::from_secs(1);

impl Drop for Permit {
    fn drop(&mut self) {
        let Self { endpoint, calls, lease, taken, .. } = *self;
        self.admission.with(endpoint, |endpoint| {
            endpoint.end(lease);
            if !taken {
                endpoint.refund(calls);
            }
        });
        self.admission.dispatch();
    }
}

/// A waiter's turn as the watcher of the time; released when dropped.
struct Watch<'a> {
    admission: &'a Arc<Admission>,
    id: u64,
}

impl Watch<'_> {
    /// Dispatches unless another waiter watches; returns when to look again.
    fn keep(&self) -> Instant {
        let now = Instant::now();
        let latest = now + self.admission.limits.turn_wait_max;
        let mine = |watcher: &Watcher| watcher.id == self.id || watcher.wakes < now;
        if !self.admission.state().watcher.as_ref().is_none_or(mine) {
            return latest;
        }
        let next = self.admission.dispatch();
        let wakes = next.map_or(latest, |next| next.min(latest));
        self.admission.state().watcher = Some(Watcher { id: self.id, wakes });
        wakes
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        if state.watcher.is_some_and(|watcher| watcher.id == self.id) {
            state.watcher = None;
            self.admission.watcher_needed.notify_one();
        }
    }
}

opaque!(Admission);

impl Admission {
    pub(super) fn new(endpoints: Vec<Endpoint>, limits: PoolLimits) -> Self {
        let hedge_credit = limits.hedge_share * limits.hedge_share;
        let state = State { endpoints, hedge_credit, ..State::default() };
        Self { state: Mutex::new(state), limits, watcher_needed: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn with<T>(
        &self,
        id: EndpointId,
        change: impl FnOnce(&mut Endpoint) -> T,
    ) -> Option<T> {
        self.state().endpoints.get_mut(id.0).map(change)
    }

    pub(super) fn each<T>(&self, mut read: impl FnMut(EndpointId, &Endpoint) -> T) -> Vec<T> {
        let state = self.state();
        state.endpoints.iter().enumerate().map(|(at, e)| read(EndpointId(at), e)).collect()
    }

    /// Waits for a permit. Dropping the future removes the waiter from the queue.
    pub(super) async fn admit(self: &Arc<Self>, needs: Needs) -> Result<Permit> {
        let mut lapsed = false;
        loop {
            let (grant, granted) = oneshot::channel();
            self.enqueue(Waiter { needs: needs.clone(), grant }, lapsed)?;
            self.dispatch();
            let mut permit = self.wait_for_grant(granted).await?;
            if permit.take() {
                return Ok(permit);
            }
            lapsed = true;
        }
    }

    async fn wait_for_grant(
        self: &Arc<Self>,
        mut granted: oneshot::Receiver<Result<Permit>>,
    ) -> Result<Permit> {
        let watch = Watch { admission: self, id: self.state().new_watch() };
        loop {
            let wakes = watch.keep();
            tokio::select! {
                biased;
                granted = &mut granted => return granted.unwrap_or(Err(UpstreamError::NoEndpoint)),
                () = sleep_until(wakes) => {}
                () = self.watcher_needed.notified() => {}
            }
        }
    }

    /// How long to wait for an endpoint's answer before hedging.
    pub(super) fn hedge_delay(&self, on: EndpointId, needs: &Needs) -> Duration {
        let (now, state, limits) = (Instant::now(), self.state(), &self.limits);
        let own = state.endpoints.get(on.0).and_then(|endpoint| endpoint.typical_latency(now));
        if needs.is_confirmation {
            return own.map_or(Duration::ZERO, |own| own * 4).max(limits.hedge_other_after_min);
        }
        let able = state.able_endpoints(needs, now);
        let usual =
            own.or_else(|| able.filter_map(|(_, endpoint)| endpoint.typical_latency(now)).min());
        usual.map_or(limits.hedge_other_after_min, |usual| (usual * 4).max(limits.hedge_after_min))
    }

    /// Whether some endpoint could serve this request, now or later; `is_soon`: one that has not
    /// failed all the time.
    pub(super) fn is_servable(&self, needs: &Needs, is_soon: bool) -> bool {
        let (now, state) = (Instant::now(), self.state());
        let mut able = state.able_endpoints(needs, now);
        able.any(|(_, endpoint)| !is_soon || !endpoint.is_out(needs.method, now))
    }

    pub(super) fn is_replaced(&self, needs: &Needs) -> bool {
        self.state().is_replaced(needs, Instant::now())
    }

    pub(super) fn usable_count(&self, needs: &Needs) -> usize {
        let (now, state) = (Instant::now(), self.state());
        let able = state.able_endpoints(needs, now);
        able.filter(|(_, endpoint)| !endpoint.is_cooling_down(Some(needs.method), now)).count()
    }

    /// Rejects waiters whose method is now unsupported on all endpoints, or disabled for too long.
    pub(super) fn reject_hopeless(&self) {
        let now = Instant::now();
        let mut state = self.state();
        let mut refused = Vec::new();
        let mut lanes = std::mem::take(&mut state.lanes);
        for queue in lanes.values_mut() {
            for waiter in std::mem::take(queue) {
                match state.check(&waiter.needs, &self.limits, now) {
                    Ok(()) => queue.push_back(waiter),
                    Err(error) => refused.push((waiter, error)),
                }
            }
        }
        state.lanes = lanes;
        state.waiting = state.waiting.saturating_sub(refused.len());
        state.drop_closed_waiters();
        drop(state);
        for (waiter, error) in refused {
            // A waiter that has gone needs no answer.
            let _ = waiter.grant.send(Err(error));
        }
    }

    /// Queues a waiter after those of its rank, or before them if its permit expired.
    fn enqueue(&self, waiter: Waiter, lapsed: bool) -> Result<()> {
        let mut state = self.state();
        state.check(&waiter.needs, &self.limits, Instant::now())?;
        if state.waiting >= self.limits.waiting_max {
            let last = "too many requests wait for this chain's nodes".to_owned();
            return Err(UpstreamError::Unavailable { attempts: 0, last });
        }
        let lane = waiter.needs.lane.id;
        let queue = state.lanes.entry(lane).or_default();
        let is_new = queue.is_empty();
        let (rank, first) = (waiter.needs.lane.rank, lapsed || waiter.needs.is_hedge);
        let before = |other: &Waiter| {
            let other = other.needs.lane.rank;
            other < rank || (other == rank && !first)
        };
        let place = queue.partition_point(before);
        queue.insert(place, waiter);
        if is_new {
            state.turns.push_back(lane);
        }
        state.waiting += 1;
        Ok(())
    }

    /// Grants all permits that can be granted now; returns when the next rate limit, cooldown or
    /// lease ends.
    pub(super) fn dispatch(self: &Arc<Self>) -> Option<Instant> {
        let now = Instant::now();
        let until = now + self.limits.turn_wait_max;
        loop {
            let mut state = self.state();
            let Some((waiter, at)) = state.next_grant(now, &self.limits) else {
                let next = state.next_change(now);
                // A watcher that would wake too late is replaced.
                if next.is_some_and(|next| state.watcher.is_none_or(|w| next < w.wakes)) {
                    state.watcher = None;
                    self.watcher_needed.notify_one();
                }
                return next;
            };
            let endpoint = state.endpoints.get_mut(at)?;
            let (lease, calls) = endpoint.begin(waiter.needs.calls, now, until);
            waiter.needs.lane.priority.record(calls, &endpoint.label, now);
            let (share, credit) = (self.limits.hedge_share, state.hedge_credit);
            state.hedge_credit = if waiter.needs.is_hedge {
                credit.saturating_sub(share)
            } else {
                (credit + 1).min(share * share)
            };
            drop(state);
            let (admission, endpoint) = (Arc::clone(self), EndpointId(at));
            // If the waiter has gone, the permit is dropped, which frees its place.
            drop(waiter.grant.send(Ok(Permit { admission, endpoint, calls, lease, taken: false })));
        }
    }
}

fn disabled(able: &[&Endpoint], method: &'static str, now: Instant) -> UpstreamError {
    let first = able.iter().find_map(|one| Some((one.label.clone(), one.last_error.clone()?)));
    if able.iter().all(|one| one.refusals.is_denied(method, now))
        && let Some((endpoint, reason)) = first
    {
        return UpstreamError::Refused { endpoint, method: method.to_owned(), reason };
    }
    let why = first.map(|(label, error)| format!("; {label}: {error}")).unwrap_or_default();
    let last = format!("all endpoints are disabled for now{why}");
    UpstreamError::Unavailable { attempts: 0, last }
}

impl State {
    fn new_watch(&mut self) -> u64 {
        self.next_watch += 1;
        self.next_watch
    }

    /// Whether another endpoint can serve the call instead of the named one.
    fn is_replaced(&self, needs: &Needs, now: Instant) -> bool {
        let is_other = |at: usize| needs.on.is_some_and(|on| on != EndpointId(at));
        let others = self.endpoints.iter().enumerate().filter(|(at, _)| is_other(*at));
        let mut others = others.filter(|(at, _)| !needs.without.contains(EndpointId(*at)));
        needs.is_replaceable
            && others.any(|(_, one)| !one.is_unavailable(now) && one.serves(needs.method, now))
    }

    /// Returns an error if waiting for this request is useless.
    fn check(&self, needs: &Needs, limits: &PoolLimits, now: Instant) -> Result<()> {
        let is_replaced = self.is_replaced(needs, now);
        // An endpoint in its first pauses will answer soon, and its answer counts, so it gets the
        // longer wait.
        let wait_max = |one: &Endpoint| {
            let fails = one.failed_in_a_row() >= limits.replaceable_failures_max;
            match (is_replaced, fails) {
                (true, true) => limits.replaceable_wait,
                (true, false) => limits.replaceable_first_wait,
                (false, _) => limits.retry_time_max,
            }
        };
        if self.endpoints.is_empty() {
            return Err(UpstreamError::NoEndpoint);
        }
        let able: Vec<&Endpoint> =
            self.able_endpoints(needs, now).map(|(_, endpoint)| endpoint).collect();
        if able.is_empty() {
            return Err(UpstreamError::NotSupported { method: needs.method.to_owned() });
        }
        let is_out =
            |one: &&Endpoint| one.is_silent_too_long(needs.method, needs.since, wait_max(one), now);
        if !able.iter().all(is_out) {
            return Ok(());
        }
        Err(disabled(&able, needs.method, now))
    }

    /// The next waiter in round-robin order that an endpoint can serve now, and that endpoint.
    fn next_grant(&mut self, now: Instant, limits: &PoolLimits) -> Option<(Waiter, usize)> {
        self.drop_closed_waiters();
        self.endpoints.iter().find(|endpoint| endpoint.ready(now).is_ok())?;
        let background_due = self.interactive_in_a_row + 1 >= limits.background_share;
        let may_hedge = self.hedge_credit >= limits.hedge_share;
        let first = self.take_turn(now, !background_due, may_hedge);
        first.or_else(|| self.take_turn(now, background_due, may_hedge))
    }

    fn take_turn(
        &mut self,
        now: Instant,
        interactive: bool,
        may_hedge: bool,
    ) -> Option<(Waiter, usize)> {
        let lanes = self.turns.len();
        for turn in 0..lanes {
            let lane = *self.turns.get(turn)?;
            let Some(queue) = self.lanes.get(&lane) else { continue };
            // Not only the first waiter: one that needs a certain endpoint, or a fast one, must not
            // block the others.
            let waiting = queue.iter().enumerate();
            let waiting = waiting.filter(|(_, waiter)| !waiter.grant.is_closed());
            let served = waiting.into_iter().find_map(|(place, waiter)| {
                let of_kind = waiter.needs.lane.priority.is_interactive() == interactive;
                let may_go = of_kind && (may_hedge || !waiter.needs.is_hedge);
                // Lanes take turns: about this many requests are served before this waiter's.
                let ahead = place * lanes + turn;
                let endpoint = may_go.then(|| self.choose(&waiter.needs, ahead, now))?;
                Some((place, endpoint?))
            });
            let Some((place, at)) = served else { continue };
            self.turns.remove(turn);
            let queue = self.lanes.get_mut(&lane)?;
            let waiter = queue.remove(place)?;
            self.waiting = self.waiting.saturating_sub(1);
            if queue.is_empty() {
                self.lanes.remove(&lane);
            } else {
                self.turns.push_back(lane);
            }
            self.interactive_in_a_row =
                if interactive { self.interactive_in_a_row.saturating_add(1) } else { 0 };
            return Some((waiter, at));
        }
        None
    }

    fn drop_closed_waiters(&mut self) {
        let Self { lanes, turns, waiting, .. } = self;
        turns.retain(|lane| {
            let Some(queue) = lanes.get_mut(lane) else { return false };
            while queue.front().is_some_and(|waiter| waiter.grant.is_closed()) {
                queue.pop_front();
                *waiting = waiting.saturating_sub(1);
            }
            let kept = !queue.is_empty();
            if !kept {
                lanes.remove(lane);
            }
            kept
        });
    }

    /// Endpoints that may serve this request now or later. One on another chain is included only if
    /// there is no other: it may return to this chain, and then its data is not lost.
    fn able_endpoints(
        &self,
        needs: &Needs,
        now: Instant,
    ) -> impl Iterator<Item = (usize, &Endpoint)> {
        let all = self.endpoints.iter();
        let is_used = |one: &Endpoint| !one.is_excluded(now) && !one.is_of_another_chain();
        let has_others = needs.on.is_none() && all.clone().any(is_used);
        let is_none = move |endpoint: &Endpoint| has_others && endpoint.is_of_another_chain();
        all.enumerate()
            .filter(move |(at, endpoint)| !is_none(endpoint) && needs.may_use(*at, endpoint, now))
    }

    /// The endpoint to serve this request now; `None` if waiting for another one is faster.
    fn choose(&self, needs: &Needs, ahead: usize, now: Instant) -> Option<usize> {
        let able = self.able_endpoints(needs, now);
        let offers =
            able.map(|(at, endpoint)| endpoint.offer(at, needs.method, needs.calls, now)).collect();
        let offers = match needs.avoid {
            Some(avoid) => selection::without_avoided(offers, avoid.0, needs.is_confirmation),
            None => offers,
        };
        selection::choose(&offers, ahead)
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        if self.waiting == 0 {
            return None;
        }
        self.endpoints.iter().filter_map(|endpoint| endpoint.next_change(now)).min()
    }
}
