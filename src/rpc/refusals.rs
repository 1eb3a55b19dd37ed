//! What an endpoint refuses: methods that it lacks, keys and plans that it wants. A refusal is
//! counted once for all requests that were under way, and pauses grow: one answer takes nothing away.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::limits::PoolLimits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalKind {
    /// The method is not offered.
    Unsupported,
    /// For lack of a key, a plan or a quota.
    Denied,
}

/// A result of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodResult {
    Value,
    Null,
}

/// What is logged of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Logged {
    Denied,
    Unknown,
}

/// Methods in whose place the caller reads another way at no loss: the first answer that they are
/// not offered ends the wait for them.
const REPLACEABLE: &[&str] = &["getTransactionsForAddress"];

/// Between two log lines of an endpoint about the same.
const LOG_EVERY: Duration = Duration::from_secs(1800);

/// Refusals in a row.
#[derive(Debug, Clone, Copy)]
struct Streak {
    kind: RefusalKind,
    answers: u32,
    /// Requests sent before this time belong to the answer that was counted.
    counted_at: Instant,
    /// Not asked before.
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
        if self.answers > 0 && began < self.counted_at {
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

/// Short pauses until enough answers have come, then long ones.
fn pause(answers: u32, wanted: u32, limits: &PoolLimits) -> Duration {
    let (first, step) = match answers.checked_sub(wanted) {
        Some(more) => (limits.refusal_rest_min, more),
        None => (limits.refusal_pause_min, answers.saturating_sub(1) * 2),
    };
    first.saturating_mul(1_u32.checked_shl(step).unwrap_or(u32::MAX)).min(limits.refusal_rest_max)
}

/// What one endpoint refuses, by method and as a whole.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    methods: BTreeMap<&'static str, Streak>,
    whole: Option<Streak>,
    /// Methods denied since the last result.
    denied: BTreeSet<&'static str>,
    /// Methods that gave a result once.
    worked: BTreeSet<&'static str>,
    /// Methods that lacked something old, until when others are preferred for them.
    short: BTreeMap<&'static str, Instant>,
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
        // Two methods without a result between them: it is the endpoint.
        if kind == RefusalKind::Denied && self.denied.len() > 1 {
            let whole = self.whole.get_or_insert_with(|| Streak::new(kind, now));
            whole.count((kind, method), times, limits);
        }
    }

    /// It gave a result to a request that was sent at `began`. A null ends a pause and proves no
    /// ability: servers return it for methods that they lack.
    pub(super) fn worked(&mut self, method: &'static str, result: MethodResult, began: Instant) {
        if result == MethodResult::Value {
            self.worked.insert(method);
        }
        if self.methods.get(method).is_some_and(|streak| began >= streak.counted_at) {
            self.methods.remove(method);
        }
        if self.whole.is_none_or(|streak| began >= streak.counted_at) {
            self.whole = None;
            self.denied.clear();
        }
    }

    pub(super) fn lacked(&mut self, method: &'static str, until: Instant) {
        self.short.insert(method, until);
    }

    /// Other endpoints are preferred for it.
    pub(super) fn is_doubtful(&self, method: &str, now: Instant) -> bool {
        self.until(Some(method)).is_some_and(|until| until > now)
            || self.short.get(method).is_some_and(|until| *until > now)
    }

    /// When it may be asked for a method; for the endpoint as a whole without one.
    pub(super) fn until(&self, method: Option<&str>) -> Option<Instant> {
        let of_method = method.and_then(|method| self.methods.get(method));
        of_method.into_iter().chain(&self.whole).map(|streak| streak.until).max()
    }

    /// When the next pause ends.
    pub(super) fn next_end(&self, now: Instant) -> Option<Instant> {
        let all = self.methods.values().chain(&self.whole);
        all.map(|streak| streak.until).filter(|until| *until > now).min()
    }

    /// Not offered, by enough answers, and never was.
    pub(super) fn is_absent(&self, method: &str, now: Instant) -> bool {
        let streak = self.methods.get(method).filter(|streak| {
            streak.kind == RefusalKind::Unsupported && streak.is_firm && streak.until > now
        });
        streak.is_some() && !self.worked.contains(method)
    }

    /// Refused for lack of a key, a plan or a quota, by enough answers.
    pub(super) fn is_denied(&self, method: &str, now: Instant) -> bool {
        let is_out = |streak: &Streak| {
            streak.kind == RefusalKind::Denied && streak.is_firm && streak.until > now
        };
        self.methods.get(method).into_iter().chain(&self.whole).any(is_out)
    }

    /// Methods that are not asked for now.
    pub(super) fn methods(&self, now: Instant) -> Vec<String> {
        let is_out = |streak: &Streak| streak.is_firm && streak.until > now;
        let all = self.methods.iter().filter(|(_, streak)| is_out(streak));
        all.map(|(method, _)| (*method).to_owned()).collect()
    }

    /// Whether a refusal is to be logged: seldom, however often it comes.
    pub(super) fn wants_log(&mut self, what: Logged, now: Instant) -> bool {
        let last = self.logged_at.get(&what);
        let is_due = last.is_none_or(|at| now.saturating_duration_since(*at) >= LOG_EVERY);
        if is_due {
            self.logged_at.insert(what, now);
        }
        is_due
    }
}
