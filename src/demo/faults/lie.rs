//! False answers that agree with what a client knows already.

use serde_json::{Value, json};

/// So many answers to a question are correct after a false one.
pub(super) const SPARED: u32 = 3;
/// Heights at most of an answer that is cut at the edge.
const HEIGHTS_MAX: u64 = 3;
/// Entries at most that are left out in the middle.
const HOLE_MAX: u64 = 5;

/// Answers after the first of two false ones: that second one, and two for each of a quorum that
/// takes two answers a page.
const SPARED_TWICE: u32 = 1 + 2 * SPARED;

/// What follows a false answer to a question: so many answers, of which the first may repeat it.
#[derive(Debug, Default)]
pub(in crate::demo) struct LieMemory {
    spared: u32,
    again: Option<Lie>,
}

/// What is false in one answer, each with a salt.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::demo) struct Lie {
    pub(in crate::demo) edge: Option<u64>,
    pub(in crate::demo) hole: Option<u64>,
    pub(in crate::demo) hollow: Option<u64>,
    pub(in crate::demo) shallow: Option<u64>,
    pub(in crate::demo) failed: Option<u64>,
}

impl Lie {
    /// Whether a list is false.
    pub(in crate::demo) fn of_list(self) -> bool {
        self.edge.or(self.hole).or(self.hollow).is_some()
    }

    /// After a false answer to a question, which may come `twice`, some are as they should be.
    pub(super) fn spare(&mut self, memory: &mut LieMemory, twice: bool) {
        if memory.spared > 0 {
            memory.spared -= 1;
            *self = memory.again.take().unwrap_or_default();
        } else if self.of_list() || self.shallow.or(self.failed).is_some() {
            let again = Self { shallow: None, ..*self };
            memory.again = (twice && (self.of_list() || self.failed.is_some())).then_some(again);
            memory.spared = if memory.again.is_some() { SPARED_TWICE } else { SPARED };
        }
    }

    /// Cuts a list at one of its first heights, or leaves some out of its middle.
    pub(in crate::demo) fn reduce<T>(self, list: &mut Vec<T>, height: impl Fn(&T) -> u64) {
        if let Some(salt) = self.edge {
            let most = usize::try_from(1 + salt % HEIGHTS_MAX).unwrap_or(1);
            let blocks = list.chunk_by(|one, next| height(one) == height(next));
            let kept = blocks.take(most).map(<[T]>::len).sum();
            list.truncate(kept);
        }
        if let Some(salt) = self.hole.filter(|_| list.len() > 2) {
            let inner = u64::try_from(list.len() - 2).unwrap_or(1);
            let from = 1 + salt % inner;
            let to = (from + 1 + (salt >> 32) % HOLE_MAX).min(inner + 1);
            let at = |place: u64| usize::try_from(place).unwrap_or(0);
            list.drain(at(from)..at(to));
        }
    }

    /// Which of a list's entries is marked as failed, by their number.
    pub(in crate::demo) fn marked(self, entries: usize) -> Option<usize> {
        let entries = u64::try_from(entries).ok().filter(|entries| *entries > 0)?;
        usize::try_from(self.failed? % entries).ok()
    }

    /// A call of a node whose own content is false.
    pub(in crate::demo) fn content(self, method: &str, reply: Vec<u8>) -> Vec<u8> {
        let change: fn(Self, &mut Value) = match method {
            "debug_traceTransaction" if self.shallow.is_some() => |_, trace| without_depth(trace),
            "getTransaction" if self.failed.is_some() => |_, transaction| as_failed(transaction),
            "getTransactionsForAddress" if self.failed.is_some() => |lie, page| {
                let data = page.get_mut("data").and_then(Value::as_array_mut);
                let Some(data) = data else { return };
                if let Some(transaction) = lie.marked(data.len()).and_then(|at| data.get_mut(at)) {
                    as_failed(transaction);
                }
            },
            _ => return reply,
        };
        let Ok(mut value) = serde_json::from_slice::<Value>(&reply) else { return reply };
        change(self, &mut value);
        value.to_string().into_bytes()
    }

    /// Tron's info of a transaction without its internal ones, or with the first of them alone.
    pub(in crate::demo) fn info(self, info: &mut Value) {
        let (Some(fields), Some(salt)) = (info.as_object_mut(), self.shallow) else { return };
        if salt.is_multiple_of(2) {
            fields.remove("internal_transactions");
        } else if let Some(all) = fields.get_mut("internal_transactions") {
            all.as_array_mut().into_iter().for_each(|all| all.truncate(1));
        }
    }
}

fn without_depth(trace: &mut Value) {
    let calls = trace.get_mut("calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        call.as_object_mut().and_then(|call| call.remove("calls"));
    }
}

fn as_failed(transaction: &mut Value) {
    let Some(meta) = transaction.get_mut("meta").and_then(Value::as_object_mut) else { return };
    let error = json!({"InstructionError": [0, {"Custom": 1}]});
    meta.insert("status".to_owned(), json!({"Err": error}));
    meta.insert("err".to_owned(), error);
    meta.insert("innerInstructions".to_owned(), json!([]));
    for (after, before) in
        [("postBalances", "preBalances"), ("postTokenBalances", "preTokenBalances")]
    {
        let before = meta.get(before).cloned().unwrap_or_default();
        meta.insert(after.to_owned(), before);
    }
}
