//! False content of single answers.

use serde_json::Value;

use super::Faults;
use crate::demo::mix::{self, Dice};

/// With transient faults, so many answers to a question are correct after a false one.
const SPARED: u32 = 3;
/// Minimum of entries of a page that ends early.
const SHORT_MIN: usize = 5;

impl CallFaults {
    /// Slots by which the head is behind once.
    pub(in crate::demo) fn behind(self) -> u64 {
        if self.head_back { self.slots } else { 0 }
    }

    /// By which the transactions of a slot are ordered instead of by their position.
    pub(in crate::demo) fn flip(self) -> Option<u64> {
        self.flipped_order.then_some(self.salt)
    }

    fn shorten<T>(self, is_short: bool, list: &mut Vec<T>) {
        if is_short {
            list.truncate(usize::try_from(self.salt % 1_000).unwrap_or(0) * list.len() / 1_000);
        }
    }

    /// Omits events: all of them, or those after the first ones.
    pub(in crate::demo) fn omit_logs<T>(self, logs: &mut Vec<T>) {
        if self.empty_logs {
            logs.clear();
        }
        self.shorten(self.short_logs, logs);
    }

    /// The answer to a query of events: reduced, and reordered.
    pub(in crate::demo) fn events(self, mut logs: Vec<Value>) -> Value {
        self.omit_logs(&mut logs);
        if self.flipped_logs {
            logs.sort_by_cached_key(|log| mix::digest(self.salt, log.to_string().as_bytes()));
        }
        logs.into()
    }

    /// Empties a page of account lists, or ends it early.
    pub(in crate::demo) fn omit_rows<T>(self, rows: &mut Vec<T>) {
        if self.empty_page {
            rows.clear();
        }
        self.shorten(self.short_list, rows);
    }

    /// Ends a page early; returns whether it did.
    pub(in crate::demo) fn end_early<T>(self, page: &mut Vec<T>) -> bool {
        if !self.short_page || page.len() <= SHORT_MIN {
            return false;
        }
        let dice = &mut Dice::new(self.salt, &[]);
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
        let Some(salt) = self.flip() else { return };
        for block in rows.chunk_by_mut(|one, next| height(one) == height(next)) {
            block.sort_by_key(|row| mix::hash(salt, &[digest(row)]));
        }
    }

    /// Repeats the first row of a page.
    pub(in crate::demo) fn repeat_first<T: Clone>(self, rows: &mut Vec<T>) {
        if let Some(first) = rows.first().filter(|_| self.duplicate).cloned() {
            rows.insert(0, first);
        }
    }

    /// Loses the first row of a page, where the page before could have had it.
    pub(in crate::demo) fn lose_first<T>(self, rows: &mut Vec<T>, is_edge: impl Fn(&T) -> bool) {
        if self.lost && rows.first().is_some_and(is_edge) {
            rows.remove(0);
        }
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

/// Declares the faults of single answers, each by the name of its rate.
macro_rules! call_faults {
    ($($name:ident,)*) => {
        /// The faults of one answer, as [`Faults`] explains them.
        #[derive(Debug, Clone, Copy)]
        #[expect(clippy::struct_excessive_bools, reason = "what goes wrong, each by itself")]
        pub(in crate::demo) struct CallFaults {
            /// Selects orders, and places at which lists end.
            salt: u64,
            slots: u64,
            $(pub(in crate::demo) $name: bool,)*
        }

        impl Faults {
            /// The faults of one call of a request.
            pub(in crate::demo) fn call(&self, dice: &mut Dice) -> CallFaults {
                let salt = dice.next();
                CallFaults { salt, slots: self.head_back_slots, $($name: self.$name.hits(dice),)* }
            }
        }

        impl CallFaults {
            /// The names of what goes wrong.
            pub(in crate::demo) fn hits(&self) -> impl Iterator<Item = &'static str> {
                let hits = [$((stringify!($name), self.$name),)*];
                hits.into_iter().filter(|(_, hit)| *hit).map(|(name, _)| name)
            }
        }
    };
}

// Their order is that of the draws.
call_faults! {
    wrong_id, null_result, busy, duplicate, lost, empty_page, flipped_order, head_back,
    lost_cursor, short_page, empty_logs, short_logs, flipped_logs, short_list, null_tokens,
    bare_receipts,
}

impl CallFaults {
    /// Suppresses a silently false answer for some answers after one to the same question.
    pub(in crate::demo) fn spare(&mut self, spared: &mut u32) {
        let pages = [&mut self.lost, &mut self.lost_cursor, &mut self.empty_page];
        let short = [&mut self.short_page, &mut self.short_logs, &mut self.short_list];
        let mut silent = pages.into_iter().chain(short).chain([&mut self.empty_logs]);
        if *spared > 0 {
            *spared -= 1;
            silent.for_each(|fault| *fault = false);
        } else if silent.any(|fault| *fault) {
            *spared = SPARED;
        }
    }
}

/// One call of a JSON-RPC interface, with the faults of its answer.
#[derive(Debug, Clone, Copy)]
pub(in crate::demo) struct RpcCall<'a> {
    pub(in crate::demo) method: &'a str,
    pub(in crate::demo) params: &'a [Value],
    pub(in crate::demo) twist: CallFaults,
}
