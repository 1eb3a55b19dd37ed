//! How a worker detects reorgs: block hashes are kept as anchors and compared with the chain before
//! new heights are read.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::Worker;
use crate::domain::{Height, lock};
use crate::history::anchors::{self, AnchorComparison, ReorgOutcome};
use crate::history::ingest::IngestError;
use crate::history::{HistoryError, Inner, Result};
use crate::rpc::UpstreamError;
use crate::store::{Anchor, WalletId, WalletPatch, WalletRecord};

/// How far below the top of the coverage the newest anchor of the last read may lie: its block may
/// be the one of the newest row, or of a node that was behind. Nodes keep more blocks than these.
const ANCHOR_SLACK: u64 = 1_000;

impl Worker {
    /// Stores the hash of the first of these blocks that nodes return, for sources that report no
    /// hash before the read: a reorg between the read and this query is not detected. Runs
    /// concurrently, so that the next chunk does not wait.
    pub(super) fn anchor(&self, record: &WalletRecord, heights: Vec<Height>) {
        let (inner, source, lane) =
            (Arc::clone(&self.inner), self.source.clone(), self.lane.clone());
        let (id, epoch, lock) = (record.id, record.epoch, Arc::clone(&self.anchor_lock));
        let dropped = self.dropped;
        self.inner.tasks.spawn(async move {
            for height in heights {
                let asked = inner.tasks.run(source.block_hash(height, &lane)).await;
                let Some(Ok(hash)) = asked else { return };
                let Some(hash) = hash else { continue };
                let _alone = lock.lock().await;
                let written = async {
                    let anchors = inner.anchors_with(id, Anchor { height, hash }, dropped).await?;
                    let patch = WalletPatch { anchors: Some(anchors), ..WalletPatch::default() };
                    inner.store.update_wallet(id, epoch, patch).await.map_err(HistoryError::from)
                };
                if let Err(error) = written.await {
                    tracing::warn!(%error, "cannot store a block hash");
                }
                return;
            }
        });
    }

    /// Compares the anchors with the chain; if one differs, rolls back to the highest matching one.
    pub(super) async fn roll_back_reorg(
        &mut self,
        record: &WalletRecord,
    ) -> Result<bool, IngestError> {
        let kept = anchors::newest_first(&self.inner.view()?.anchors(record.id).await?);
        let (source, lane) = (&self.source, &self.lane);
        let check = |anchor: Anchor| async move {
            let checked = source.check_hash(anchor.height, anchor.hash, lane).await;
            checked.map(|check| (anchor.height, check))
        };
        let now = self.inner.clock.now();
        // Reads without blocks kept no anchor, so the time of the last read does not bound the age
        // of these.
        let is_of_last = |newest: &Anchor| {
            let reach = newest.height.saturating_add(ANCHOR_SLACK);
            record.coverage.top().is_none_or(|top| reach >= top)
        };
        let checked_at = record.checked_at.filter(|_| kept.first().is_none_or(is_of_last));
        let mut comparison = AnchorComparison::new(checked_at.map(|at| now.since(at)));
        let (loose, rest) = kept.split_at(kept.len().min(anchors::ALWAYS_CHECKED));
        let first = try_join_all(loose.iter().map(|anchor| check(*anchor))).await?;
        let mut settled = rest.is_empty();
        for (height, check_result) in first {
            settled |= comparison.add(height, check_result);
        }
        for anchor in rest {
            if settled {
                break;
            }
            let (height, check_result) = check(*anchor).await?;
            settled = comparison.add(height, check_result);
        }
        let outcome = comparison.outcome();
        (self.is_unchecked, self.dropped) = (outcome == ReorgOutcome::Unasked, None);
        let above = match outcome {
            ReorgOutcome::NoReorg(dropped) => {
                self.dropped = dropped;
                return Ok(false);
            }
            ReorgOutcome::Unasked => {
                let chain = self.load.wallet.chain;
                if lock(&self.inner.blockless).insert(chain) {
                    tracing::warn!(?chain, "no endpoint offers blocks, so reorgs go unnoticed");
                }
                return Ok(false);
            }
            ReorgOutcome::RollBackTo(above) => above,
            ReorgOutcome::Undecided(height) => {
                let last = format!("the nodes do not agree on block {height}");
                return Err(UpstreamError::Unavailable { attempts: 1, last }.into());
            }
        };
        tracing::warn!(above, "the chain was reorganised: reading again from there");
        self.inner.metrics.reorganisations.add(1);
        self.inner.store.cut_back(record.id, above).await?;
        self.load.notify_update();
        Ok(true)
    }
}

impl Inner {
    /// The kept anchors and a new one, without those whose blocks no endpoint keeps: a later check
    /// soon after this one would leave them undecided.
    pub(super) async fn anchors_with(
        &self,
        id: WalletId,
        anchor: Anchor,
        dropped: Option<(Height, Height)>,
    ) -> Result<Vec<Anchor>> {
        let mut kept = self.view()?.anchors(id).await?;
        kept.retain(|one| dropped.is_none_or(|(low, high)| !(low..=high).contains(&one.height)));
        Ok(anchors::add(&kept, anchor, self.limits.anchors_max))
    }
}
