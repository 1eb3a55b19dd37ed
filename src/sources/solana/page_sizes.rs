//! How many entries endpoints return in a page of a list of signatures, learned from the pages. A
//! provider may return fewer than are requested without a sign.

use std::collections::HashMap;
use std::sync::Mutex;

use super::list::{FEW, PAGE_MAX};
use crate::domain::lock;
use crate::rpc::EndpointId;

/// The most entries of a page, by endpoint.
#[derive(Debug, Default)]
pub(super) struct PageSizes(Mutex<HashMap<EndpointId, usize>>);

impl PageSizes {
    /// Takes a page of so many entries. Whether more may follow it: an endpoint that has returned a
    /// longer page, of any list, did not cut this one.
    pub(super) fn may_be_cut(&self, by: EndpointId, entries: usize) -> bool {
        let mut all = lock(&self.0);
        let most = all.entry(by).or_default();
        *most = entries.max(*most);
        entries >= PAGE_MAX || entries >= FEW && entries >= *most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_be_cut_unless_its_endpoint_has_given_a_longer_one() {
        let sizes = PageSizes::default();
        let (one, other) = (EndpointId(0), EndpointId(1));
        assert!(!sizes.may_be_cut(one, FEW - 1), "no node returns so few at most");
        assert!(sizes.may_be_cut(one, 20) && sizes.may_be_cut(one, 20));
        assert!(!sizes.may_be_cut(one, 19) && sizes.may_be_cut(other, 19));
        assert!(sizes.may_be_cut(one, PAGE_MAX) && sizes.may_be_cut(one, PAGE_MAX));
        assert!(!sizes.may_be_cut(one, 20));
    }
}
