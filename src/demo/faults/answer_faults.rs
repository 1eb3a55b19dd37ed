//! False content of single answers.

use serde_json::Value;

use super::lie::{Lie, SPARED};
use crate::demo::mix::{self, Dice};

/// Minimum of entries of a page that ends early.
const SHORT_MIN: usize = 5;

impl AnswerFaults {
    /// Whether the answer is false without any sign of it.
    fn is_silent(self) -> bool {
        let left_out = self.lose || self.cut || self.empty || self.empty_logs;
        left_out
            || self.lie.of_list()
            || self.short.or(self.short_logs).or(self.short_list).is_some()
    }

    /// Omits events: all of them, or those after the first ones.
    pub(in crate::demo) fn omit_logs<T>(self, logs: &mut Vec<T>) {
        if self.empty_logs {
            logs.clear();
        }
        shorten(self.short_logs, logs);
    }

    /// The answer to a query of events: reduced, and reordered.
    pub(in crate::demo) fn events(self, mut logs: Vec<Value>) -> Value {
        self.omit_logs(&mut logs);
        if let Some(salt) = self.flip_logs {
            logs.sort_by_cached_key(|log| mix::digest(salt, log.to_string().as_bytes()));
        }
        logs.into()
    }

    /// Empties a page of account lists, or ends it early.
    pub(in crate::demo) fn omit_rows<T>(self, rows: &mut Vec<T>) {
        if self.empty {
            rows.clear();
        }
        shorten(self.short_list, rows);
    }

    /// Ends a page early; returns whether it did.
    pub(in crate::demo) fn end_early<T>(self, page: &mut Vec<T>) -> bool {
        let Some(salt) = self.short.filter(|_| page.len() > SHORT_MIN) else { return false };
        let dice = &mut Dice::new(salt, &[]);
        let least = u64::try_from(SHORT_MIN).unwrap_or(u64::MAX);
        let most = u64::try_from(page.len() - 1).unwrap_or(u64::MAX);
        page.truncate(usize::try_from(dice.range(least, most)).unwrap_or(SHORT_MIN));
        true
    }

    /// Reorders the rows of each height by a salt.
    pub(in crate::demo) fn flip_blocks<T>(
        self,
        rows: &mut [T],
        height: impl Fn(&T) -> u64,
        digest: impl Fn(&T) -> u64,
    ) {
        let Some(salt) = self.flip else { return };
        for block in rows.chunk_by_mut(|one, next| height(one) == height(next)) {
            block.sort_by_key(|row| mix::hash(salt, &[digest(row)]));
        }
    }

    pub(in crate::demo) fn repeat_first<T: Clone>(self, rows: &mut Vec<T>) {
        if let Some(first) = rows.first().filter(|_| self.duplicate).cloned() {
            rows.insert(0, first);
        }
    }

    /// Loses the first row of a page, where the page before could have had it.
    pub(in crate::demo) fn lose_first<T>(self, rows: &mut Vec<T>, is_edge: impl Fn(&T) -> bool) {
        if self.lose && rows.first().is_some_and(is_edge) {
            rows.remove(0);
        }
    }
}

fn shorten<T>(salt: Option<u64>, list: &mut Vec<T>) {
    if let Some(salt) = salt {
        list.truncate(usize::try_from(salt % 1_000).unwrap_or(0) * list.len() / 1_000);
    }
}

/// Entries of one height in another order than their own. Of a height that holds the cursor, those
/// up to it are left out.
pub(in crate::demo) fn reordered<T: Copy>(
    entries: impl Iterator<Item = T>,
    height: impl Fn(&T) -> u64,
    rank: impl Fn(&T) -> u64,
    is_cursor: impl Fn(&T, &T) -> bool,
) -> impl Iterator<Item = T> {
    let mut entries = entries.peekable();
    let mut group: Vec<T> = Vec::new();
    let mut is_first = true;
    std::iter::from_fn(move || {
        while group.is_empty() {
            let first = entries.next()?;
            group.push(first);
            while let Some(next) = entries.next_if(|next| height(next) == height(&first)) {
                group.push(next);
            }
            group.sort_by_key(&rank);
            if std::mem::take(&mut is_first)
                && let Some(at) = group.iter().position(|entry| is_cursor(&first, entry))
            {
                group.drain(..=at);
            }
            group.reverse();
        }
        group.pop()
    })
}

/// A receipt whose events are left out.
pub(in crate::demo) fn without_logs(receipt: Vec<u8>) -> Vec<u8> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(&receipt) else { return receipt };
    fields.insert("logs".to_owned(), Value::Array(Vec::new()));
    Value::Object(fields).to_string().into_bytes()
}

/// The slot from which on all nodes of Solana have recorded inner calls and owners: a transaction
/// below it without them is as it was recorded.
const RECORDED_FROM: u64 = 111_491_819;

/// An answer in which the members of these names are null, at any depth.
pub(in crate::demo) fn without_members(answer: Vec<u8>, names: &[&str]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(&answer) else { return answer };
    erase(&mut value, names);
    value.to_string().into_bytes()
}

fn erase(value: &mut Value, names: &[&str]) {
    if let Value::Array(all) = value {
        for inner in all {
            erase(inner, names);
        }
    } else if let Value::Object(fields) = value {
        let slot = fields.get("slot").and_then(Value::as_u64);
        if slot.is_some_and(|slot| slot < RECORDED_FROM) {
            return;
        }
        for (name, inner) in fields {
            let is_named = names.contains(&name.as_str());
            if is_named { *inner = Value::Null } else { erase(inner, names) }
        }
    }
}

impl CallFaults {
    /// The names of what goes wrong.
    pub(in crate::demo) fn hits(&self) -> impl Iterator<Item = &'static str> {
        let answer_faults = self.answer_faults;
        let hits = [
            ("wrong_id", self.wrong_id),
            ("null_result", self.null_result),
            ("busy", self.busy),
            ("duplicate", answer_faults.duplicate),
            ("lost", answer_faults.lose),
            ("empty_page", answer_faults.empty),
            ("flipped_order", answer_faults.flip.is_some()),
            ("head_back", answer_faults.head_back > 0),
            ("lost_cursor", answer_faults.cut),
            ("short_page", answer_faults.short.is_some()),
            ("empty_logs", answer_faults.empty_logs),
            ("short_logs", answer_faults.short_logs.is_some()),
            ("flipped_logs", answer_faults.flip_logs.is_some()),
            ("short_list", answer_faults.short_list.is_some()),
            ("null_tokens", self.null_tokens),
            ("bare_receipts", self.bare_receipts),
            ("cut_at_edge", answer_faults.lie.edge.is_some()),
            ("hole", answer_faults.lie.hole.is_some()),
            ("hollow", answer_faults.lie.hollow.is_some()),
            ("shallow", answer_faults.lie.shallow.is_some()),
            ("marked_failed", answer_faults.lie.failed.is_some()),
        ];
        hits.into_iter().filter(|(_, hit)| *hit).map(|(name, _)| name)
    }

    /// Suppresses a silently false answer for some answers after one to the same question.
    pub(in crate::demo) fn spare(&mut self, spared: &mut u32) {
        if *spared > 0 {
            *spared -= 1;
            let AnswerFaults { flip, head_back, duplicate, flip_logs, lie, .. } =
                self.answer_faults;
            let lie = Lie { shallow: lie.shallow, failed: lie.failed, ..Lie::default() };
            self.answer_faults = AnswerFaults {
                head_back,
                flip,
                duplicate,
                flip_logs,
                lie,
                ..AnswerFaults::default()
            };
        } else if self.answer_faults.is_silent() {
            *spared = SPARED;
        }
    }
}

/// Faults of the content of one answer.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "what goes wrong, each by itself")]
pub(in crate::demo) struct AnswerFaults {
    /// Slots by which the head is behind once.
    pub(in crate::demo) head_back: u64,
    /// Orders the transactions of a slot by this salt instead of by their position.
    pub(in crate::demo) flip: Option<u64>,
    /// Repeats the first entry of a page, or omits it where it shares the slot of the last entry of
    /// the page before.
    pub(in crate::demo) duplicate: bool,
    pub(in crate::demo) lose: bool,
    /// A page that ends early without a cursor.
    pub(in crate::demo) cut: bool,
    /// An empty page in place of a full one.
    pub(in crate::demo) empty: bool,
    /// A page that ends early, at a place derived from the salt.
    pub(in crate::demo) short: Option<u64>,
    /// Events omitted silently, and reordered by a salt.
    pub(in crate::demo) empty_logs: bool,
    pub(in crate::demo) short_logs: Option<u64>,
    pub(in crate::demo) flip_logs: Option<u64>,
    /// A page of account lists that ends early without a sign.
    pub(in crate::demo) short_list: Option<u64>,
    pub(in crate::demo) lie: Lie,
}

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "what goes wrong, each by itself")]
pub(in crate::demo) struct CallFaults {
    pub(in crate::demo) wrong_id: bool,
    pub(in crate::demo) null_result: bool,
    pub(in crate::demo) busy: bool,
    pub(in crate::demo) null_tokens: bool,
    pub(in crate::demo) bare_receipts: bool,
    pub(in crate::demo) answer_faults: AnswerFaults,
}

/// One call of a JSON-RPC interface, with the faults of its answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::demo) struct RpcCall<'a> {
    pub(in crate::demo) method: &'a str,
    pub(in crate::demo) params: &'a [Value],
    pub(in crate::demo) answer_faults: AnswerFaults,
}
