//! The beginning of a read: which chain the nodes are of, how far it can be read, by which list.

use futures_util::FutureExt as _;
use futures_util::future::join;
use serde_json::json;

use super::discovery::{Discovery, ListRequest};
use super::lister::Lister;
use super::{EvmSource, wire};
use crate::decode::evm::Account;
use crate::domain::Height;
use crate::rpc::chain_check::{ChainCheck, CheckOutcome, checked};
use crate::rpc::{CallOptions, EndpointId, UpstreamError};
use crate::sources::chunk::Tip;

/// Names the chain by its number.
const CHAIN_METHOD: &str = "eth_chainId";

/// Blocks by which the servers of a chain differ at most times.
const SERVERS_APART: u64 = 8;

/// Times the chain's lag by which an index may be behind before another way reads the newest blocks: one
/// that is a little late has them soon, with their inner calls.
const INDEX_LATE: u64 = 16;

/// What is read, before it is known how far up.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) wallet: Account,
    pub(super) low: Height,
    /// `None`: up to the final head.
    pub(super) high: Option<Height>,
    /// Ways to find transactions that failed in this read.
    pub(super) failed: Vec<Discovery>,
    /// The last error of those that may work later.
    pub(super) error: Option<UpstreamError>,
    pub(super) options: CallOptions,
}

/// A list to read by.
pub(super) struct Opened {
    pub(super) kind: Discovery,
    pub(super) lister: Lister,
    /// What it is read for: other ways read what lies below.
    pub(super) low: Height,
    pub(super) high: Height,
    /// Newer blocks are final already than this way has.
    is_behind: bool,
    /// Where it is read from the head.
    pub(super) tip: Option<Tip>,
}

/// How far up a list holds everything that is final, and the final head.
struct Reach {
    high: Height,
    head: Height,
    tip: Option<Tip>,
}

impl EvmSource {
    /// The first list that works; the last error where none does.
    pub(super) async fn open(self, wanted: Wanted) -> Result<Opened, UpstreamError> {
        let open = || self.open_any(wanted.clone());
        Box::pin(checked(self.check_chain(&wanted.options), open)).await
    }

    async fn open_any(&self, mut wanted: Wanted) -> Result<Opened, UpstreamError> {
        let (mut last, lowest) = (UpstreamError::NoEndpoint, wanted.low);
        let mut behind: Option<Opened> = None;
        // Those that failed of late come last, not never.
        let fresh = |kind: &&Discovery| !self.comes_later(**kind);
        let (first, later): (Vec<&Discovery>, Vec<&Discovery>) =
            self.inner.discovery.iter().partition(fresh);
        for kind in first.into_iter().chain(later) {
            if wanted.failed.contains(kind) {
                continue;
            }
            match self.open_list(*kind, &wanted).await {
                // A gateway or an index without the newest blocks: another way reads these, and it what
                // lies below. Of two such, the one that is further up reads what the other one lacks.
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
            // Of a gap above its head nothing is known.
            (Some(high), _) if high != opened.high => {
                let Opened { kind, high, .. } = opened;
                Err(UpstreamError::unavailable(format!("{kind} knows blocks up to {high} only")))
            }
            // It has nothing new, and the way that would show what is failed for now.
            (None, Some(error)) if opened.high < lowest => Err(error),
            // Without another way its own head is as far as is known.
            (Some(_) | None, _) => Ok(opened),
        }
    }

    /// Blocks by which a list may be behind the final head, where it shows how far it has come.
    fn late_max(&self, kind: Discovery) -> Option<u64> {
        let lag = self.inner.chain.index_lag;
        match kind {
            Discovery::Portal => Some(lag),
            Discovery::Explorer => Some(lag.saturating_mul(INDEX_LATE)),
            Discovery::Alchemy | Discovery::Logs => None,
        }
    }

    pub(super) fn list_failed(&self, kind: Discovery, error: &UpstreamError) {
        let chain = &self.inner.chain.slug;
        tracing::warn!(chain, list = %kind, %error, "transactions are found another way, if there is one");
        self.note_list_failure(kind);
    }

    async fn open_list(&self, kind: Discovery, wanted: &Wanted) -> Result<Opened, UpstreamError> {
        let Wanted { wallet, low, high, ref options, .. } = *wanted;
        let listing =
            ListRequest { wallet, low, high: high.unwrap_or(0), options: options.clone() };
        let mut lister = Lister::new(kind, self, listing)?;
        let Some(mut high) = high else {
            let Reach { high, head, tip } = self.reach(kind, &mut lister, options).await?;
            lister.set_high(high);
            let late_max = self.late_max(kind);
            let is_behind = late_max.is_some_and(|most| head > high.saturating_add(most));
            return Ok(Opened { kind, lister, low, high, is_behind, tip });
        };
        let mut is_behind = false;
        // `LogLister` looks itself how far each node has come.
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
        Ok(Opened { kind, lister, low, high, is_behind, tip: None })
    }

    /// How far up a list holds everything that is final. A head of nodes is a number next to their
    /// logs, which may come from another backend.
    async fn reach(
        &self,
        kind: Discovery,
        lister: &mut Lister,
        options: &CallOptions,
    ) -> Result<Reach, UpstreamError> {
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
            // Learned from the lists; the gateway says with each answer how far that came.
            (Some(indexed), _) => head.min(indexed),
            (None, _) => head.saturating_sub(lag),
        };
        self.note_list_head(kind, reached);
        Ok(Reach { high: reached, head, tip })
    }

    /// Near the newest block logs are asked for where those of busy contracts come; each answer is held
    /// against them again.
    async fn logs_reach(&self, head: Height, newest: Height, options: &CallOptions) -> Height {
        let sure = newest.saturating_sub(self.inner.chain.index_lag);
        if sure >= head || self.has_busy_log(head, newest, options).await {
            return head;
        }
        // Other servers may be a few blocks behind the one that named the newest.
        head.min(sure.saturating_sub(SERVERS_APART))
    }

    /// Asks each endpoint once whether it is a node of this chain; others are left alone.
    async fn check_chain(&self, options: &CallOptions) -> Result<CheckOutcome, UpstreamError> {
        let Some(expected) = self.inner.chain.chain_id else { return Ok(CheckOutcome::Unchanged) };
        let ask = |id: EndpointId| {
            let pool = self.inner.pool.clone();
            let options = CallOptions { on: Some(id), ..options.clone() };
            async move {
                let reported = pool.call(CHAIN_METHOD, json!([]), &options).await;
                ChainCheck::of(reported.map(|answer| wire::number(&answer.result)), &expected)
            }
            .boxed()
        };
        self.inner.chain_checks.check(&self.inner.pool, CHAIN_METHOD, ask).await
    }
}
