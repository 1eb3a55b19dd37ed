//! Whether the end of a list can be believed: by the first block that those keep who reported it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ListEvent, ListReader};
use crate::domain::{Doubts, Height};
use crate::rpc::{EndpointId, Result, UpstreamError};
use crate::sources::solana::listing::{EndProof, FIRST_HEIGHTS};

/// Lists whose end no other endpoint confirmed, after which no further ones are asked.
const ENDS_IN_VAIN_MAX: usize = 3;
/// For so long an endpoint that has not shown yet which chain it is of may keep more than the others.
const CUT_PATIENCE: Duration = Duration::from_secs(10);

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

    /// Takes the first blocks kept by those who reported the end of some lists.
    pub(super) fn ended(
        &mut self,
        numbers: Vec<usize>,
        kept: Result<Vec<(EndpointId, Height)>>,
    ) -> Result<()> {
        let is_unknown = kept.as_ref().map_or(true, Vec::is_empty);
        let open = if is_unknown { self.ask_end_elsewhere(numbers) } else { numbers };
        if !open.is_empty() {
            self.proved(&open, &kept?);
        }
        Ok(())
    }

    fn proved(&mut self, numbers: &[usize], kept: &[(EndpointId, Height)]) {
        let is_whole =
            |(id, first): &(EndpointId, Height)| (*first <= FIRST_HEIGHTS).then_some(*id);
        self.whole.extend(kept.iter().filter_map(is_whole));
        if kept.is_empty() {
            self.doubts = self.doubts.union(Doubts::DEPTH);
        }
        let endpoints = self.source.inner.pool.endpoints().len();
        for number in numbers {
            if let Some(listing) = self.listings.get_mut(*number) {
                listing.prove(kept, self.request.low, endpoints);
            }
        }
    }

    pub(super) fn cut_error(&self, first: Height) -> UpstreamError {
        if !self.source.inner.pool.awaits_any(CUT_PATIENCE) {
            return UpstreamError::HistoryCut { first };
        }
        let last = "an endpoint that may keep more has not shown yet which chain it is of";
        UpstreamError::Unavailable { attempts: 0, last: last.to_owned() }
    }

    /// The endpoints that reported the end do not report what they keep: others are asked for it.
    /// Returns the lists for which no other endpoint is left.
    fn ask_end_elsewhere(&mut self, numbers: Vec<usize>) -> Vec<usize> {
        let endpoints = self.source.inner.pool.endpoints().len();
        if self.ends_in_vain >= ENDS_IN_VAIN_MAX {
            return numbers;
        }
        let mut is_vain = |number: &usize| {
            self.listings
                .get_mut(*number)
                .is_none_or(|listing| !listing.reopen_elsewhere(endpoints))
        };
        let vain: Vec<usize> = numbers.into_iter().filter(|number| is_vain(number)).collect();
        self.ends_in_vain += vain.len();
        vain
    }
}
