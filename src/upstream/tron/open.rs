//! What must be known before anything is listed: the head, the wanted times, which chain it is.

use std::time::Duration;

use futures_util::future::join;
use serde_json::json;

use super::blocks::Head;
use super::{Inner, TronSource};
use crate::domain::Height;
use crate::upstream::error::UpstreamError;
use crate::upstream::evm::wire as evm_wire;
use crate::upstream::identity::Nodes;
use crate::upstream::pool::CallOptions;
use crate::upstream::source::{GapRequest, Tip};

/// Where a reading begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    pub(super) high: Height,
    /// Milliseconds: blocks up to `high` are not later; blocks above it may be earlier too.
    pub(super) top_at: u64,
    /// Milliseconds: blocks from the lowest wanted one on are not earlier.
    pub(super) low_at: u64,
    pub(super) tip: Option<Tip>,
}

impl TronSource {
    pub(super) async fn open(
        &self,
        request: &GapRequest,
        resume_at: Option<u64>,
        options: &CallOptions,
    ) -> Result<Opening, UpstreamError> {
        let low_at = async {
            match request.low {
                0 => Ok(None),
                low => self.time_of(low, options).await,
            }
        };
        self.check_chain(options).await?;
        let (top, low_at) = join(self.top(request.high, resume_at, options), low_at).await;
        let (high, top_at, tip) = top?;
        Ok(Opening { high, top_at, low_at: low_at?.unwrap_or(0), tip })
    }

    async fn top(
        &self,
        high: Option<Height>,
        resume_at: Option<u64>,
        options: &CallOptions,
    ) -> Result<(Height, u64, Option<Tip>), UpstreamError> {
        if let (Some(high), Some(at)) = (high, resume_at) {
            return Ok((high, at, None));
        }
        let told = match high {
            Some(high) => self.time_of(high, options).await?.map(|at| (high, at, None)),
            None => None,
        };
        if let Some(told) = told {
            return Ok(told);
        }
        // Lists do not tell how far they have come: they may lack the newest blocks.
        let Head { height, millis, hash } = self.solid_head(options).await?;
        let settled = height.saturating_sub(self.inner.index_lag);
        let tip = high.is_none().then_some(Tip { height, hash });
        Ok((high.map_or(settled, |high| high.min(settled)), millis, tip))
    }

    async fn check_chain(&self, options: &CallOptions) -> Result<Nodes, UpstreamError> {
        let Inner { identity, pool, .. } = &*self.inner;
        let ask = async |options: CallOptions| {
            let (answers, _) =
                self.rpc("eth_chainId", &[("eth_chainId", json!([]))], &options).await?;
            let told = answers.first().and_then(|answer| evm_wire::number(answer.as_ref().ok()?));
            Ok(told.map(|id| id.to_string()))
        };
        identity.check(pool, options, Duration::MAX, ask).await
    }
}
