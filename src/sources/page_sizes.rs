//! How many entries endpoints give in a page of a list, learned from the pages: a provider may give
//! fewer than are requested without a sign.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;

use crate::domain::lock;

/// Entries of the longest page, by list.
#[derive(Debug)]
pub(super) struct PageSizes<L>(Mutex<HashMap<L, usize>>);

impl<L> Default for PageSizes<L> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<L: Copy + Eq + Hash> PageSizes<L> {
    /// Takes a page of so many entries. Whether more may follow it: no list gives fewer than `least`
    /// at most, and one that has given a longer page did not cut this one.
    pub(super) fn may_be_cut(&self, list: L, entries: usize, least: usize) -> bool {
        let mut all = lock(&self.0);
        let longest = all.entry(list).or_default();
        *longest = entries.max(*longest);
        entries >= least && entries >= *longest
    }

    /// Whether a list has returned a longer page than this, which was then not cut.
    pub(super) fn gives_more(&self, list: L, entries: usize) -> bool {
        lock(&self.0).get(&list).is_some_and(|longest| *longest > entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_be_cut_unless_its_list_has_given_a_longer_one() {
        let sizes = PageSizes::default();
        let cut = |list, entries| sizes.may_be_cut(list, entries, 5);
        assert!(!cut("one", 4) && cut("one", 5) && cut("one", 20) && cut("one", 20));
        assert!(!cut("one", 19) && cut("other", 19));
        assert_eq!([19, 20].map(|entries| sizes.gives_more("one", entries)), [true, false]);
        assert!(!sizes.gives_more("third", 0));
    }
}
