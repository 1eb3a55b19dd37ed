//! Finds which of many wallets had token transfers, by `eth_getLogs` with lists of wallets as
//! topics.
//!
//! One endpoint is queried, once; one without events near its head does not count, because nodes
//! without an event index return none and no error.

use super::depth_search::{EventLook, SearchPlace};
use super::logs::transfer_calls;
use super::wire::{HeightRange, search_reading};
use super::{LOGS, TronSource};
use crate::domain::Address;
use crate::rpc::{
    Call, CallOptions, CallOutcome, EndpointId, EndpointStatus, Result, UpstreamError,
};
use crate::sources::evm::scan::{Tops, moved, topics, tops};
use crate::sources::evm::wire::{FoundLog, head_call, number};
use crate::sources::reference::split;
use crate::sources::scan::{ScanTarget, Scanned, lowest_unseen};

impl TronSource {
    pub(crate) async fn scan(
        &self,
        targets: &[ScanTarget],
        options: &CallOptions,
    ) -> Result<Scanned> {
        let limits = &self.inner.limits;
        let high = self.solid_head(options).await?.height;
        let low = lowest_unseen(targets, high, limits.scan_blocks_max);
        if low > high {
            return Ok(Scanned { low, high, moved: Vec::new() });
        }
        // Includes blocks that a lagging event index may have lacked in the last scan.
        let window = HeightRange { low: low.saturating_sub(self.inner.index_lag), high };
        let tops = tops(targets);
        let mut last = UpstreamError::NotSupported { method: LOGS.to_owned() };
        for on in self.with_events() {
            let options = CallOptions { on: Some(on), ..options.clone() };
            match self.scan_on(&tops, window, &options).await {
                Ok(moved) => {
                    let moved = moved.into_iter().map(|(one, at)| (Address::Tron(one), at));
                    return Ok(Scanned { low, high, moved: moved.collect() });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Endpoints that may have events, working and less busy ones first.
    fn with_events(&self) -> Vec<EndpointId> {
        let offers = |one: &EndpointStatus| !one.not_offered.iter().any(|method| method == LOGS);
        let mut all = self.inner.pool.endpoints();
        all.retain(offers);
        all.sort_by_key(|one| (one.resting, one.in_flight, one.id));
        all.truncate(self.inner.limits.scan_endpoints_max);
        all.into_iter().map(|one| one.id).collect()
    }

    async fn scan_on(
        &self,
        tops: &Tops,
        window: HeightRange,
        options: &CallOptions,
    ) -> Result<Tops> {
        let sight = SearchPlace { height: window.high, lowest: 0, high: window.high };
        if !matches!(self.look_for_events(sight, options).await?, EventLook::Shown(_)) {
            return Err(UpstreamError::unavailable("endpoint shows no events near the head"));
        }
        let mut logs = Vec::new();
        // Few enough to fit into one request with the head: one that is split may be answered by
        // several servers.
        let at_once = self.inner.pool.calls_at_once().saturating_sub(1);
        let batch = self.inner.limits.logs_batch_max.min(at_once).max(1);
        for searches in self.searches(tops, window).chunks(batch) {
            logs.extend(self.transfers(searches, window, options).await?);
        }
        Ok(moved(tops, &logs))
    }

    /// Searches in one request, at an endpoint that has reached the range's top.
    async fn transfers(
        &self,
        searches: &[Call],
        window: HeightRange,
        options: &CallOptions,
    ) -> Result<Vec<FoundLog>> {
        let calls: Vec<Call> = searches.iter().cloned().chain([head_call()]).collect();
        let (mut answers, by) = self.rpc_asker(search_reading).ask(LOGS, &calls, options).await?;
        let result = |answer: CallOutcome| answer.map_err(|error| self.refused(by, error));
        let newest = answers.pop().map(result).transpose()?;
        let newest = newest.and_then(|newest| number(&newest));
        if newest.is_none_or(|newest| newest < window.high) {
            let last = format!("endpoint has not come to block {}", window.high);
            return Err(UpstreamError::unavailable(last));
        }
        let mut all = Vec::new();
        for answer in answers {
            all.extend(self.events(&result(answer)?, (window.low, window.high), by)?);
        }
        Ok(all)
    }

    /// Two searches per group of wallets and range of blocks.
    fn searches(&self, tops: &Tops, HeightRange { low, high }: HeightRange) -> Vec<Call> {
        let limits = &self.inner.limits;
        let (topics, mut searches) = (topics(tops), Vec::new());
        for (low, high) in split((low, high), limits.logs_range_max) {
            for group in topics.chunks(limits.scan_topics_max.max(1)) {
                searches.extend(transfer_calls(&group.into(), HeightRange { low, high }));
            }
        }
        searches
    }
}
