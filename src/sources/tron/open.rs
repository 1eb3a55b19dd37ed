//! The beginning of a read: the head, the wanted times, and the chain check.

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join};
use serde_json::json;
use tokio::time::Instant;

use super::TronSource;
use super::blocks::BLOCK_MILLIS;
use super::wire::{Block, first_number, rpc_reading};
use crate::domain::Height;
use crate::rpc::{Call, CallOptions, ChainCheck, CheckOutcome, Result, checked};
use crate::sources::chunk::{GapRequest, Tip};

#[derive(Debug, Clone, Copy)]
pub(super) struct ReadRange {
    pub(super) high: Height,
    /// Milliseconds: blocks up to `high` are not later; blocks above it may be earlier too.
    pub(super) top_at: u64,
    /// Milliseconds: blocks from the lowest wanted one on are not earlier.
    pub(super) low_at: u64,
    pub(super) tip: Option<Tip>,
}

/// About fifty minutes: a server that lags more is not waited for.
const EVENTS_BEHIND_MAX: u64 = 1_000;
const CHAIN_METHOD: &str = "eth_chainId";

impl TronSource {
    pub(super) async fn open(
        &self,
        request: &GapRequest,
        resume_at: Option<u64>,
        options: &CallOptions,
    ) -> Result<ReadRange> {
        let low_at = || async {
            match request.low {
                0 => Ok(None),
                low => self.time_of(low, options).await,
            }
        };
        let open = || async {
            let (top, low_at) = join(self.top(request.high, resume_at, options), low_at()).await;
            let (high, top_at, tip) = top?;
            Ok(ReadRange { high, top_at, low_at: low_at?.unwrap_or(0), tip })
        };
        checked(self.check_chain(options), open).await
    }

    async fn top(
        &self,
        high: Option<Height>,
        resume_at: Option<u64>,
        options: &CallOptions,
    ) -> Result<(Height, u64, Option<Tip>)> {
        let at = match (high, resume_at) {
            (Some(high), None) => self.time_of(high, options).await?,
            (_, at) => at,
        };
        if let (Some(high), Some(at)) = (high, at) {
            self.look_before(at, options).await;
            return Ok((high, at, None));
        }
        let (head, newest) =
            join(self.solid_head(options), Box::pin(self.newest_listed(options))).await;
        let head = head?;
        let settled = self.indexed_to(&head, newest)?;
        let Block { height, millis, hash, .. } = head;
        let tip = high.is_none().then_some(Tip { height, hash });
        let settled = settled.saturating_sub(self.events_behind());
        let high = high.map_or(settled, |high| high.min(settled));
        // Blocks are at least this far apart.
        let below = height.saturating_sub(high).saturating_mul(BLOCK_MILLIS);
        Ok((high, millis.saturating_sub(below), tip))
    }

    /// Lag in blocks of the endpoint whose servers lag least; at most `EVENTS_BEHIND_MAX`, so that
    /// one false head does not prevent new blocks from being read.
    fn events_behind(&self) -> u64 {
        let (reach, ids) = (&self.inner.node_reach, self.inner.pool.ids());
        let known = ids.into_iter().filter(|id| reach.is_known(*id));
        known.map(|id| reach.lag(id)).min().unwrap_or(0).min(EVENTS_BEHIND_MAX)
    }

    /// Checks the chain of each endpoint; those that do not report it are accepted.
    async fn check_chain(&self, options: &CallOptions) -> Result<CheckOutcome> {
        let Some(expected) = self.inner.chain_id else { return Ok(CheckOutcome::Unchanged) };
        let ask = |id| self.ask_chain(expected, CallOptions { on: Some(id), ..options.clone() });
        self.inner.chain_checks.check(&self.inner.pool, CHAIN_METHOD, ask).await
    }

    /// Confirms that the endpoints that answered a read, from its beginning up to `since`, are
    /// still on this chain.
    pub(in crate::sources) async fn confirm_chain(
        &self,
        (begun, since): (Instant, Instant),
        options: &CallOptions,
    ) -> Result<()> {
        let Some(expected) = self.inner.chain_id else { return Ok(()) };
        let ask = |id| self.ask_chain(expected, options.first_on(id));
        let read = (CHAIN_METHOD, begun, since);
        self.inner.chain_checks.confirm(&self.inner.pool, read, ask).await
    }

    fn ask_chain(&self, expected: u64, options: CallOptions) -> BoxFuture<'static, ChainCheck> {
        // This does not clone the source itself, which owns the checks.
        let asker = self.rpc_asker(rpc_reading);
        async move {
            let call = [Call { method: CHAIN_METHOD, params: json!([]) }];
            let reported = asker.ask(CHAIN_METHOD, &call, &options).await;
            ChainCheck::of(reported.map(|(answers, _)| first_number(&answers)), &expected)
        }
        .boxed()
    }
}
