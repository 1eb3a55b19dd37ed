//! Pure: listed entries that are not needed yet, page by page as the lists had them. Of a wallet
//! with hundreds of token accounts the first pages alone hold hundreds of thousands of entries; in
//! a search tree, which leaves room for more between them, they would take twice the memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::vec::IntoIter;

use super::list::Entry;
use crate::domain::{Height, TxId};

/// An entry without padding and without a tag of its time: 90 bytes for 104.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed)]
struct Packed {
    slot: Height,
    id: TxId,
    /// `i64::MIN`: none.
    time: i64,
    failed: Option<bool>,
}

impl Packed {
    fn of(Entry { slot, id, time, failed }: &Entry) -> Self {
        Self { slot: *slot, id: *id, time: time.unwrap_or(i64::MIN), failed: *failed }
    }

    fn entry(self) -> Entry {
        let Self { slot, id, time, failed } = self;
        Entry { slot, id, time: Some(time).filter(|time| *time != i64::MIN), failed }
    }
}

#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// By the slot of the newest entry of a page, and by its number; none is empty.
    pages: BTreeMap<(Reverse<Height>, usize), IntoIter<Packed>>,
    added: usize,
}

impl Backlog {
    pub(super) fn add(&mut self, page: &[Entry]) {
        let mut page: Vec<Packed> = page.iter().map(Packed::of).collect();
        page.sort_by_key(|entry| Reverse(entry.slot));
        self.added += 1;
        self.put(self.added, page.into_iter());
    }

    fn put(&mut self, number: usize, page: IntoIter<Packed>) {
        if let Some(newest) = page.as_slice().first() {
            self.pages.insert((Reverse(newest.slot), number), page);
        }
    }

    pub(super) fn newest(&self) -> Option<Height> {
        self.pages.first_key_value().map(|((Reverse(slot), _), _)| *slot)
    }

    /// Removes an entry of the newest slot; of those in several lists, first that of the page that
    /// was added first.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let mut page = self.pages.first_entry()?;
        let (Reverse(slot), number) = *page.key();
        let entry = page.get_mut().next();
        if page.get().as_slice().first().is_none_or(|next| next.slot != slot) {
            let page = page.remove();
            self.put(number, page);
        }
        entry.map(Packed::entry)
    }
}
