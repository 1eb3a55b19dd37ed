//! The beginning of a read: checks the nodes' chain, finds the highest readable height and chooses
//! a list.

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join};
use serde_json::json;
use tokio::time::Instant;

use super::discovery::{Discovery, ListRequest};
use super::lister::Lister;
use super::{EvmSource, wire};
use crate::decode::evm::Account;
use crate::domain::Height;
use crate::rpc::{CallOptions, ChainCheck, CheckOutcome, Result, UpstreamError, checked};
use crate::sources::chunk::Tip;

const CHAIN_METHOD: &str = "eth_chainId";

/// Blocks by which the servers of a chain usually differ.
const SERVERS_APART: u64 = 8;

/// Factor of the chain's lag by which an index may be behind before another way reads the newest
/// blocks; a slightly later index has them soon, with their inner calls.
const INDEX_LATE: u64 = 16;

/// What to read; its top is not known yet.
#[derive(Debug, Clone)]
pub(super) struct ReadTarget {
    pub(super) wallet: Account,
    pub(super) low: Height,
    /// `None`: up to the final head.
    pub(super) high: Option<Height>,
    /// Ways that failed in this read.
    pub(super) failed: Vec<Discovery>,
    /// The last error of a way that may work later.
    pub(super) error: Option<UpstreamError>,
    pub(super) options: CallOptions,
}

pub(super) struct OpenedList {
    pub(super) kind: Discovery,
    pub(super) lister: Lister,
    /// The lowest height to read by it: another way reads what lies below.
    pub(super) low: Height,
    pub(super) high: Height,
    /// Newer blocks are final than this way has reached.
    is_behind: bool,
    /// The newest final block, if it is read from the head.
    pub(super) tip: Option<Tip>,
}

/// The height up to which a list contains everything final, and the final head.
struct Reach {
    high: Height,
    head: Height,
    tip: Option<Tip>,
}

impl EvmSource {
    /// Opens the first list that works; the last error if none does.
    pub(super) async fn open(self, wanted: ReadTarget) -> Result<OpenedList> {
        let open = || self.open_any(wanted.clone());
        Box::pin(checked(self.check_chain(&wanted.options), open)).await
    }

    async fn open_any(&self, mut wanted: ReadTarget) -> Result<OpenedList> {
        let (mut last, lowest) = (UpstreamError::NoEndpoint, wanted.low);
        let mut behind: Option<OpenedList> = None;
        // Recently failed ways come last.
        let range = (wanted.low, wanted.high);
        let fresh = |kind: &&Discovery| !self.comes_later(**kind, range);
        let (first, later): (Vec<&Discovery>, Vec<&Discovery>) =
            self.inner.discovery.iter().partition(fresh);
        for kind in first.into_iter().chain(later) {
            if wanted.failed.contains(kind) {
                continue;
            }
            match self.open_list(*kind, &wanted).await {
                // A gateway or an index that lags: another way reads the newest blocks, and this
                // one what lies below. Of two such ways, the one that is further up fills in for
                // the other.
                Ok(opened) if opened.is_behind => {
                    wanted.low = wanted.low.max(opened.high.saturating_add(1));
                    if behind.as_ref().is_none_or(|known| known.high < opened.high) {
                        behind = Some(opened);
                    }
                }
                Ok(opened) if opened.high < wanted.low && behind.is_some() => {}
                Ok(opened) => return Ok(opened),
                Err(error) => {
                    self.list_failed(*kind, &error);
                    wanted.failed.push(*kind);
                    if !error.is_final() {
                        wanted.error = Some(error.clone());
                    }
                    last = error;
                }
            }
        }
        let Some(opened) = behind else { return Err(last) };
        match (wanted.high, wanted.error) {
            // Nothing is known of heights above the list's head.
            (Some(high), _) if high != opened.high => {
                let OpenedList { kind, high, .. } = opened;
                Err(UpstreamError::unavailable(format!("{kind} knows blocks up to {high} only")))
            }
            // This way has nothing new, and the way that would find something has failed.
            (None, Some(error)) if opened.high < lowest => Err(error),
            // Without another way its own head is the highest one known.
            (Some(_) | None, _) => Ok(opened),
        }
    }

    /// Blocks by which a list may lag behind the final head, if it reports its height.
    fn lag_max(&self, kind: Discovery) -> Option<u64> {
        let lag = self.inner.chain.index_lag;
        match kind {
            Discovery::Portal => Some(lag),
            Discovery::Explorer => Some(lag.saturating_mul(INDEX_LATE)),
            Discovery::Alchemy | Discovery::Logs => None,
        }
    }

    pub(super) fn list_failed(&self, kind: Discovery, error: &UpstreamError) {
        let chain = &self.inner.chain.slug;
        // Most nodes lack one way or another, which each load of each wallet would report.
        if matches!(error, UpstreamError::NotSupported { .. }) {
            tracing::debug!(chain, list = %kind, %error, "no endpoint offers a way to find transactions; the next configured way is tried");
        } else {
            tracing::warn!(chain, list = %kind, %error, "a way to find transactions failed; the next configured way is tried");
        }
        self.note_list_failure(kind);
    }

    async fn open_list(&self, kind: Discovery, wanted: &ReadTarget) -> Result<OpenedList> {
        let ReadTarget { wallet, low, high, ref options, .. } = *wanted;
        let listing =
            ListRequest { wallet, low, high: high.unwrap_or(0), options: options.clone() };
        let mut lister = Lister::new(kind, self, listing)?;
        let Some(mut high) = high else {
            let Reach { high, head, tip } = self.reach(kind, &mut lister, options).await?;
            lister.set_high(high);
            let late_max = self.lag_max(kind);
            let is_behind = late_max.is_some_and(|most| head > high.saturating_add(most));
            return Ok(OpenedList { kind, lister, low, high, is_behind, tip });
        };
        let mut is_behind = false;
        // `LogLister` checks the height of each node itself.
        if kind != Discovery::Logs && self.list_head(kind) < high {
            let reached = self.reach(kind, &mut lister, options).await?.high;
            if reached < high && kind == Discovery::Portal {
                lister.set_high(reached);
                (high, is_behind) = (reached, true);
            } else if reached < high {
                let last = format!("{kind} knows blocks up to {reached} only, of {high}");
                return Err(UpstreamError::unavailable(last));
            }
        }
        Ok(OpenedList { kind, lister, low, high, is_behind, tip: None })
    }

    /// The height up to which a list contains everything final. A node's head is a number that may
    /// come from another backend than its logs.
    async fn reach(
        &self,
        kind: Discovery,
        lister: &mut Lister,
        options: &CallOptions,
    ) -> Result<Reach> {
        let newest = async {
            match kind {
                Discovery::Logs => self.newest(options).await.map(Some),
                Discovery::Portal | Discovery::Explorer | Discovery::Alchemy => lister.head().await,
            }
        };
        let (newest, head) = join(newest, self.final_tip(options)).await;
        let ((head, tip), lag) = (head?, self.inner.chain.index_lag);
        let reached = match (newest?, kind) {
            (Some(newest), Discovery::Logs) => self.logs_reach(head, newest, options).await,
            // The height is learned from the lists; a gateway reports it in each answer.
            (Some(indexed), _) => head.min(indexed),
            (None, _) => head.saturating_sub(lag),
        };
        self.note_list_head(kind, reached);
        Ok(Reach { high: reached, head, tip })
    }

    /// The height near the head up to which logs are queried: one where busy contracts have logs,
    /// with which each answer is compared again.
    async fn logs_reach(&self, head: Height, newest: Height, options: &CallOptions) -> Height {
        let sure = newest.saturating_sub(self.inner.chain.index_lag);
        if sure >= head || self.has_busy_log(head, newest, options).await {
            return head;
        }
        // Other servers may lag a few blocks behind the one that reported the newest block.
        head.min(sure.saturating_sub(SERVERS_APART))
    }

    /// Checks the chain of each endpoint; endpoints on another chain are disabled.
    pub(super) async fn check_chain(&self, options: &CallOptions) -> Result<CheckOutcome> {
        let Some(expected) = self.inner.chain.chain_id else { return Ok(CheckOutcome::Unchanged) };
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
        let Some(expected) = self.inner.chain.chain_id else { return Ok(()) };
        let ask = |id| self.ask_chain(expected, options.first_on(id));
        let read = (CHAIN_METHOD, begun, since);
        self.inner.chain_checks.confirm(&self.inner.pool, read, ask).await
    }

    fn ask_chain(&self, expected: u64, options: CallOptions) -> BoxFuture<'static, ChainCheck> {
        let pool = self.inner.pool.clone();
        async move {
            let reported = pool.call(CHAIN_METHOD, json!([]), &options).await;
            ChainCheck::of(reported.map(|answer| wire::number(&answer.result)), &expected)
        }
        .boxed()
    }
}
