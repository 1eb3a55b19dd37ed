//! Pure: listed entries that are not needed yet, page by page as the lists had them. Of a wallet
//! with hundreds of token accounts the first pages alone hold hundreds of thousands of entries; in
//! a search tree, which leaves room for more between them, they would take twice the memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::vec::IntoIter;

use super::list::Entry;
use crate::domain::Height;

#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// By the slot of the newest entry of a page, and by its number; none is empty.
    pages: BTreeMap<(Reverse<Height>, usize), IntoIter<Entry>>,
    added: usize,
}

impl Backlog {
    pub(super) fn add(&mut self, mut page: Vec<Entry>) {
        page.sort_by_key(|entry| Reverse(entry.slot));
        page.shrink_to_fit();
        self.added += 1;
        self.put(self.added, page.into_iter());
    }

    fn put(&mut self, number: usize, page: IntoIter<Entry>) {
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
        entry
    }
}
