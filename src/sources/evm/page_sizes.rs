//! The longest page of each list at an endpoint of an index: indexes cut pages at limits that they
//! do not report.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use super::explorer_wire::ExplorerList;
use super::list_row::ListRow;
use crate::domain::lock;
use crate::rpc::EndpointId;

/// Number of distinct rows of a page, as repeated rows do not make a longer page.
fn distinct(page: &[ListRow]) -> usize {
    page.iter().map(|row| row.hash).collect::<HashSet<_>>().len()
}

type ListOf = (EndpointId, ExplorerList);

/// Rows of the longest page.
#[derive(Debug, Default)]
pub(super) struct PageSizes(Mutex<HashMap<ListOf, usize>>);

impl PageSizes {
    pub(super) fn note(&self, of: ListOf, page: &[ListRow]) {
        let mut all = lock(&self.0);
        let longest = all.entry(of).or_default();
        *longest = distinct(page).max(*longest);
    }

    /// Whether a list has returned a longer page than this, which was then not cut.
    pub(super) fn gives_more(&self, of: ListOf, rows: usize) -> bool {
        lock(&self.0).get(&of).is_some_and(|longest| *longest > rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::list_row::bare_page as page;
    use super::*;

    #[test]
    fn a_row_that_is_repeated_makes_no_page_longer() {
        let of = (EndpointId(0), ExplorerList::Tokens);
        let sizes = PageSizes::default();
        assert!(!sizes.gives_more(of, 0));
        sizes.note(of, &page(&[1, 2, 3]));
        sizes.note(of, &page(&[1, 1, 2, 3]));
        assert_eq!([2, 3].map(|rows| sizes.gives_more(of, rows)), [true, false]);
        let others = [(EndpointId(1), ExplorerList::Tokens), (of.0, ExplorerList::Calls)];
        assert!(others.into_iter().all(|other| !sizes.gives_more(other, 2)));
    }
}
