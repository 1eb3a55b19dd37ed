//! Fair admission: which waiting request goes to which endpoint next.
//!
//! Every wallet has a lane; lanes take turns, interactive ones before background ones, of which
//! one in a few still gets a turn. Waiting for a rate happens here, so a lane with hundreds of
//! requests delays another's single one by at most one turn.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use super::endpoint::{Endpoint, EndpointId, EndpointSet};
use super::error::UpstreamError;
use super::limits::PoolLimits;

/// Whether somebody waits for a wallet's answers; may change while requests wait.
#[derive(Debug, Default)]
pub struct Priority(AtomicBool);

impl Priority {
    pub fn background() -> Self {
        Self(AtomicBool::new(false))
    }

    pub fn interactive() -> Self {
        Self(AtomicBool::new(true))
    }

    pub fn set_interactive(&self, interactive: bool) {
        self.0.store(interactive, Ordering::Relaxed);
    }

    fn is_interactive(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// For whom a request is made.
#[derive(Debug, Clone)]
pub struct Lane {
    id: u64,
    priority: Arc<Priority>,
}

impl Lane {
    pub fn new(id: u64, priority: Arc<Priority>) -> Self {
        Self { id, priority }
    }
}

/// What a request needs of an endpoint.
#[derive(Debug, Clone)]
pub(super) struct Needs {
    pub(super) lane: Lane,
    pub(super) on: Option<EndpointId>,
    pub(super) avoid: Option<EndpointId>,
    pub(super) without: EndpointSet,
    pub(super) method: &'static str,
    pub(super) calls: usize,
}

impl Needs {
    /// Whether an endpoint may serve this at some time.
    fn may_use(&self, at: usize, endpoint: &Endpoint, now: Instant) -> bool {
        let id = EndpointId(at);
        self.on.is_none_or(|on| on == id)
            && !self.without.contains(id)
            && endpoint.offers(self.method, now)
    }

    fn not_supported(&self) -> UpstreamError {
        UpstreamError::NotSupported { method: self.method.to_owned() }
    }
}

struct Waiter {
    needs: Needs,
    grant: oneshot::Sender<Result<Permit, UpstreamError>>,
}

#[derive(Default)]
struct LaneQueue {
    waiters: VecDeque<Waiter>,
}

struct State {
    endpoints: Vec<Endpoint>,
    lanes: HashMap<u64, LaneQueue>,
    /// Lanes with waiters, in turn.
    turns: VecDeque<u64>,
    waiting: usize,
    interactive_in_a_row: u32,
}

/// The admission of one pool.
pub(super) struct Admission {
    state: Mutex<State>,
    limits: PoolLimits,
    /// Held by the one waiter that watches the time for all.
    timekeeper: tokio::sync::Mutex<()>,
    changed: Notify,
}

/// The right to send one request of up to `calls` calls to an endpoint; ends when dropped.
pub(super) struct Permit {
    admission: Arc<Admission>,
    pub(super) endpoint: EndpointId,
    pub(super) calls: usize,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.with(self.endpoint, Endpoint::end);
        self.admission.changed.notify_one();
    }
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

impl Admission {
    pub(super) fn new(endpoints: Vec<Endpoint>, limits: PoolLimits) -> Self {
        let state = State {
            endpoints,
            lanes: HashMap::new(),
            turns: VecDeque::new(),
            waiting: 0,
            interactive_in_a_row: 0,
        };
        Self {
            state: Mutex::new(state),
            limits,
            timekeeper: tokio::sync::Mutex::new(()),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes what is known of an endpoint.
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

    /// Waits for a turn. Dropping the future gives up the place.
    pub(super) async fn admit(self: &Arc<Self>, needs: Needs) -> Result<Permit, UpstreamError> {
        self.check(&needs)?;
        let (grant, mut granted) = oneshot::channel();
        self.enqueue(Waiter { needs, grant })?;
        self.dispatch();
        tokio::select! {
            biased;
            granted = &mut granted => granted.unwrap_or(Err(UpstreamError::NoEndpoint)),
            error = self.keep_time() => Err(error),
        }
    }

    /// A permit at once, or none.
    pub(super) fn try_admit(self: &Arc<Self>, needs: &Needs) -> Option<Permit> {
        let now = Instant::now();
        let mut state = self.state();
        let at = state.choose(needs, now)?;
        let calls = state.endpoints.get_mut(at)?.begin(needs.calls, now);
        drop(state);
        Some(Permit { admission: Arc::clone(self), endpoint: EndpointId(at), calls })
    }

    /// Refuses what no endpoint could ever serve.
    fn check(&self, needs: &Needs) -> Result<(), UpstreamError> {
        let (now, state) = (Instant::now(), self.state());
        if state.endpoints.is_empty() {
            return Err(UpstreamError::NoEndpoint);
        }
        if state.is_servable(needs, now) { Ok(()) } else { Err(needs.not_supported()) }
    }

    /// Whether an endpoint could serve this, now or later.
    pub(super) fn is_servable(&self, needs: &Needs) -> bool {
        self.state().is_servable(needs, Instant::now())
    }

    /// Refuses those who wait for a method that turned out to be offered nowhere.
    pub(super) fn refuse_unservable(&self) {
        let now = Instant::now();
        let mut state = self.state();
        let mut refused = Vec::new();
        let mut lanes = std::mem::take(&mut state.lanes);
        for queue in lanes.values_mut() {
            for waiter in std::mem::take(&mut queue.waiters) {
                if state.is_servable(&waiter.needs, now) {
                    queue.waiters.push_back(waiter);
                } else {
                    refused.push(waiter);
                }
            }
        }
        state.lanes = lanes;
        state.waiting = state.waiting.saturating_sub(refused.len());
        state.drop_gone();
        drop(state);
        for waiter in refused {
            // Who has gone needs no answer.
            let _ = waiter.grant.send(Err(waiter.needs.not_supported()));
        }
    }

    fn enqueue(&self, waiter: Waiter) -> Result<(), UpstreamError> {
        let mut state = self.state();
        if state.waiting >= self.limits.waiting_max {
            let last = "too many requests wait for this chain's nodes".to_owned();
            return Err(UpstreamError::Unavailable { attempts: 0, last });
        }
        let lane = waiter.needs.lane.id;
        let queue = state.lanes.entry(lane).or_default();
        let is_new = queue.waiters.is_empty();
        queue.waiters.push_back(waiter);
        if is_new {
            state.turns.push_back(lane);
        }
        state.waiting += 1;
        Ok(())
    }

    /// One waiter at a time does this for all of them: hands out what becomes free.
    async fn keep_time(self: &Arc<Self>) -> UpstreamError {
        let _keeper = self.timekeeper.lock().await;
        loop {
            match self.dispatch() {
                Some(next) => tokio::select! {
                    () = sleep_until(next) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// Grants all that can be granted now; returns when a rate or a rest ends next.
    fn dispatch(self: &Arc<Self>) -> Option<Instant> {
        let now = Instant::now();
        loop {
            let mut state = self.state();
            let Some((waiter, at)) = state.next_grant(now, self.limits.background_share) else {
                return state.next_change(now);
            };
            let endpoint = state.endpoints.get_mut(at)?;
            let calls = endpoint.begin(waiter.needs.calls, now);
            drop(state);
            let endpoint = EndpointId(at);
            // A waiter that has gone drops the permit, which gives the place back.
            drop(waiter.grant.send(Ok(Permit { admission: Arc::clone(self), endpoint, calls })));
        }
    }
}

impl State {
    /// The next waiter by turns that an endpoint can serve now.
    fn next_grant(&mut self, now: Instant, background_share: u32) -> Option<(Waiter, usize)> {
        self.drop_gone();
        self.endpoints.iter().find(|endpoint| endpoint.ready(now).is_ok())?;
        let background_due = self.interactive_in_a_row + 1 >= background_share;
        let first = self.take_turn(now, !background_due);
        first.or_else(|| self.take_turn(now, background_due))
    }

    fn take_turn(&mut self, now: Instant, interactive: bool) -> Option<(Waiter, usize)> {
        for turn in 0..self.turns.len() {
            let lane = *self.turns.get(turn)?;
            let Some(queue) = self.lanes.get(&lane) else { continue };
            // Not the front alone: one that waits for a certain endpoint must not hold up the rest.
            let served = queue.waiters.iter().enumerate().find_map(|(place, waiter)| {
                let of_kind = waiter.needs.lane.priority.is_interactive() == interactive;
                let endpoint = of_kind.then(|| self.choose(&waiter.needs, now))?;
                Some((place, endpoint?))
            });
            let Some((place, at)) = served else { continue };
            self.turns.remove(turn);
            let queue = self.lanes.get_mut(&lane)?;
            let waiter = queue.waiters.remove(place)?;
            self.waiting = self.waiting.saturating_sub(1);
            if queue.waiters.is_empty() {
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

    /// Forgets waiters at the front of their lanes that have gone.
    fn drop_gone(&mut self) {
        let Self { lanes, turns, waiting, .. } = self;
        turns.retain(|lane| {
            let Some(queue) = lanes.get_mut(lane) else { return false };
            while queue.waiters.front().is_some_and(|waiter| waiter.grant.is_closed()) {
                queue.waiters.pop_front();
                *waiting = waiting.saturating_sub(1);
            }
            let kept = !queue.waiters.is_empty();
            if !kept {
                lanes.remove(lane);
            }
            kept
        });
    }

    /// Whether an endpoint may serve this at some time.
    fn is_servable(&self, needs: &Needs, now: Instant) -> bool {
        let mut all = self.endpoints.iter().enumerate();
        all.any(|(at, endpoint)| needs.may_use(at, endpoint, now))
    }

    /// The least loaded endpoint that may serve this now.
    fn choose(&self, needs: &Needs, now: Instant) -> Option<usize> {
        let able = |at: usize, endpoint: &Endpoint| needs.may_use(at, endpoint, now);
        let other = |at: usize| needs.avoid.is_some_and(|avoid| avoid.0 != at);
        let mut all = self.endpoints.iter().enumerate();
        let other_lives = all.any(|(at, e)| other(at) && able(at, e) && !e.is_resting(now));
        self.endpoints
            .iter()
            .enumerate()
            .filter(|(at, endpoint)| able(*at, endpoint) && (!other_lives || other(*at)))
            .filter(|(_, endpoint)| endpoint.ready(now).is_ok())
            .min_by_key(|(_, endpoint)| endpoint.load())
            .map(|(at, _)| at)
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        if self.waiting == 0 {
            return None;
        }
        self.endpoints.iter().filter_map(|endpoint| endpoint.ready(now).err().flatten()).min()
    }
}
