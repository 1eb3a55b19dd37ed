//! What an endpoint refuses: methods that it lacks, and calls without a required key or plan. All
//! requests in flight count as one refusal, and pauses grow: one answer disables nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::limits::PoolLimits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalKind {
    Unsupported,
    /// For lack of a key, a plan or a quota.
    Denied,
}

/// Kinds of log lines about an endpoint, each limited by [`LOG_EVERY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Logged {
    Denied,
    Unknown,
}

/// Methods that the caller can replace without loss: the first answer that they are unsupported
/// counts as final.
const REPLACEABLE: &[&str] = &["getTransactionsForAddress"];

/// Shortest time between two log lines of one kind about one endpoint.
const LOG_EVERY: Duration = Duration::from_secs(1800);

#[derive(Debug, Clone, Copy)]
struct Streak {
    kind: RefusalKind,
    answers: u32,
    /// Requests that were sent up to this time count as one refusal.
    counted_at: Instant,
    until: Instant,
    is_firm: bool,
}

impl Streak {
    fn new(kind: RefusalKind, now: Instant) -> Self {
        Self { kind, answers: 0, counted_at: now, until: now, is_firm: false }
    }

    fn count(
        &mut self,
        (kind, method): (RefusalKind, &str),
        (began, now): (Instant, Instant),
        limits: &PoolLimits,
    ) {
        if self.answers > 0 && began <= self.counted_at {
            return;
        }
        self.kind = kind;
        self.answers = self.answers.saturating_add(1);
        self.counted_at = now;
        let wanted = match kind {
            RefusalKind::Unsupported if REPLACEABLE.contains(&method) => 1,
            RefusalKind::Unsupported => limits.unsupported_answers,
            RefusalKind::Denied => limits.denied_answers,
        };
        self.is_firm = self.answers >= wanted;
        self.until = now + pause(self.answers, wanted, limits);
    }
}

/// Returns a short pause until there are enough answers, then a long one.
fn pause(answers: u32, wanted: u32, limits: &PoolLimits) -> Duration {
    let (first, step) = match answers.checked_sub(wanted) {
        Some(more) => (limits.refusal_cooldown_min, more),
        None => (limits.refusal_pause_min, answers.saturating_sub(1) * 2),
    };
    let growth = 1_u32.checked_shl(step).unwrap_or(u32::MAX);
    first.saturating_mul(growth).min(limits.refusal_cooldown_max)
}

#[derive(Debug, Default)]
pub(super) struct Refusals {
    methods: BTreeMap<&'static str, Streak>,
    endpoint_streak: Option<Streak>,
    /// Methods denied since the last result.
    denied: BTreeSet<&'static str>,
    /// Methods that gave a result once.
    worked: BTreeSet<&'static str>,
    /// Methods for which the endpoint lacked old data, and until when other endpoints are
    /// preferred.
    lacking_until: BTreeMap<&'static str, Instant>,
    logged_at: BTreeMap<Logged, Instant>,
}

impl Refusals {
    pub(super) fn refused(
        &mut self,
        kind: RefusalKind,
        method: &'static str,
        (began, now): (Instant, Instant),
        limits: &PoolLimits,
    ) {
        let times = (began, now);
        let streak = self.methods.entry(method).or_insert_with(|| Streak::new(kind, now));
        streak.count((kind, method), times, limits);
        if kind == RefusalKind::Denied {
            self.denied.insert(method);
        }
        // Two denied methods without a result between them: the whole endpoint counts as denied.
        if kind == RefusalKind::Denied && self.denied.len() > 1 {
            let endpoint_streak =
                self.endpoint_streak.get_or_insert_with(|| Streak::new(kind, now));
            endpoint_streak.count((kind, method), times, limits);
        }
    }

    /// Records a result for a request that was sent at `began`. A null ends a pause, but does not
    /// prove that the method is supported: servers return it for methods that they lack.
    pub(super) fn worked(&mut self, method: &'static str, is_null: bool, began: Instant) {
        if !is_null {
            self.worked.insert(method);
        }
        if self.methods.get(method).is_some_and(|streak| began >= streak.counted_at) {
            self.methods.remove(method);
        }
        if self.endpoint_streak.is_none_or(|streak| began >= streak.counted_at) {
            self.endpoint_streak = None;
            self.denied.clear();
        }
    }

    pub(super) fn lacked(&mut self, method: &'static str, until: Instant) {
        self.lacking_until.insert(method, until);
    }

    /// Whether other endpoints are preferred for the method.
    pub(super) fn is_doubtful(&self, method: &str, now: Instant) -> bool {
        self.until(Some(method)).is_some_and(|until| until > now)
            || self.lacking_until.get(method).is_some_and(|until| *until > now)
    }

    /// When the pause for a method ends, or that of the endpoint as a whole.
    pub(super) fn until(&self, method: Option<&str>) -> Option<Instant> {
        let of_method = method.and_then(|method| self.methods.get(method));
        of_method.into_iter().chain(&self.endpoint_streak).map(|streak| streak.until).max()
    }

    pub(super) fn next_end(&self, now: Instant) -> Option<Instant> {
        let all = self.methods.values().chain(&self.endpoint_streak);
        all.map(|streak| streak.until).filter(|until| *until > now).min()
    }

    /// Whether the method counts as unsupported: enough such answers, and no result ever.
    pub(super) fn is_absent(&self, method: &str, now: Instant) -> bool {
        let streak = self.methods.get(method).filter(|streak| {
            streak.kind == RefusalKind::Unsupported && streak.is_firm && streak.until > now
        });
        streak.is_some() && !self.worked.contains(method)
    }

    /// Whether enough answers refused the method for lack of a key, a plan or a quota.
    pub(super) fn is_denied(&self, method: &str, now: Instant) -> bool {
        let is_out = |streak: &Streak| {
            streak.kind == RefusalKind::Denied && streak.is_firm && streak.until > now
        };
        self.methods.get(method).into_iter().chain(&self.endpoint_streak).any(is_out)
    }

    pub(super) fn methods(&self, now: Instant) -> Vec<String> {
        let is_out = |streak: &Streak| streak.is_firm && streak.until > now;
        let all = self.methods.iter().filter(|(_, streak)| is_out(streak));
        all.map(|(method, _)| (*method).to_owned()).collect()
    }

    pub(super) fn methods_worked(&self) -> Vec<String> {
        self.worked.iter().map(|method| (*method).to_owned()).collect()
    }

    /// Whether a refusal is due to be logged, by [`LOG_EVERY`]; if so, records that it is.
    pub(super) fn is_log_due(&mut self, what: Logged, now: Instant) -> bool {
        let last = self.logged_at.get(&what);
        let is_due = last.is_none_or(|at| now.saturating_duration_since(*at) >= LOG_EVERY);
        if is_due {
            self.logged_at.insert(what, now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_of_one_request_that_took_no_time_are_refused_once() {
        let (limits, now) = (PoolLimits::default(), Instant::now());
        for kind in [RefusalKind::Denied, RefusalKind::Unsupported] {
            let mut refusals = Refusals::default();
            for _ in 0..20 {
                refusals.refused(kind, "debug_traceTransaction", (now, now), &limits);
            }
            let until = refusals.until(Some("debug_traceTransaction"));
            assert_eq!(until, Some(now + limits.refusal_pause_min), "{kind:?}");
        }
    }
}
