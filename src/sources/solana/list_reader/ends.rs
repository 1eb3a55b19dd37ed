//! Whether the end of a list can be believed: by the first block that those keep who reported it.

use std::collections::BTreeMap;

use super::{ListEvent, ListReader};
use crate::domain::{Doubts, Height};
use crate::rpc::endpoint::EndpointId;
use crate::sources::solana::listing::{EndProof, FIRST_HEIGHTS, Listing};

impl ListReader {
    /// Requests the first block kept from the endpoint that reported the end of a list: a node that
    /// has pruned the older ones ends every list there.
    pub(super) fn ask_proofs(&mut self) {
        let mut asked: BTreeMap<[Option<EndpointId>; 2], Vec<usize>> = BTreeMap::new();
        for (number, listing) in self.listings.iter_mut().enumerate() {
            if !listing.wants_proof() {
                continue;
            }
            let by = listing.ended_by();
            if by.iter().flatten().any(|id| self.whole.contains(id)) {
                listing.proof = EndProof::Kept(0);
                continue;
            }
            listing.proof = EndProof::Asked;
            asked.entry(by).or_default().push(number);
        }
        for (by, numbers) in asked {
            let (source, options) = (self.source.clone(), self.options.clone());
            self.prefetcher.push(Box::pin(async move {
                ListEvent::FirstKept(numbers, source.first_kept(by, &options).await)
            }));
        }
    }

    pub(super) fn proved(&mut self, numbers: &[usize], kept: &[(EndpointId, Height)]) {
        let is_whole =
            |(id, first): &(EndpointId, Height)| (*first <= FIRST_HEIGHTS).then_some(*id);
        self.whole.extend(kept.iter().filter_map(is_whole));
        let first = kept.iter().map(|(_, first)| *first).min();
        if first.is_none() {
            self.doubts = self.doubts.union(Doubts::DEPTH);
        }
        let others = self.source.inner.pool.endpoints().len() > 1;
        for number in numbers {
            if let Some(listing) = self.listings.get_mut(*number) {
                match first {
                    Some(first) => listing.prove(first, self.request.low, others),
                    None => listing.proof = EndProof::Unknown,
                }
            }
        }
    }

    /// The endpoints that reported the end do not say what they keep: others are asked for it, where
    /// there are any left.
    pub(super) fn ask_end_elsewhere(&mut self, numbers: &[usize]) -> bool {
        let ended = numbers.iter().filter_map(|number| self.listings.get(*number));
        for id in ended.flat_map(Listing::ended_by).flatten() {
            self.without_proof.insert(id);
        }
        let mut others = self.source.inner.pool.endpoints().into_iter();
        if others.all(|one| self.without_proof.contains(one.id)) {
            return false;
        }
        for number in numbers {
            if let Some(listing) = self.listings.get_mut(*number) {
                listing.reopen();
            }
        }
        true
    }
}
