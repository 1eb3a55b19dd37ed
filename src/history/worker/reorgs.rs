//! How a worker notices that the chain lost what it has read: hashes of blocks are kept, and held
//! against the chain before new heights are read.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::Worker;
use crate::domain::Height;
use crate::history::Inner;
use crate::history::anchors::{self, Verdict};
use crate::history::error::HistoryError;
use crate::history::ingest::IngestError;
use crate::store::{Anchor, WalletId, WalletPatch, WalletRecord};

impl Worker {
    /// Stores the hash of a block where none was known before the rows were read: a reorg between
    /// the two goes unnoticed. Concurrently: the next chunk does not wait for it.
    pub(super) fn anchor(&self, record: &WalletRecord, height: Height) {
        let (inner, source, lane) =
            (Arc::clone(&self.inner), self.source.clone(), self.lane.clone());
        let (id, epoch) = (record.id, record.epoch);
        self.inner.tasks.spawn(async move {
            let asked = inner.tasks.run(source.block_hash(height, &lane)).await;
            let Some(Ok(Some(hash))) = asked else { return };
            let written = inner.keep_anchor(id, epoch, Anchor { height, hash }).await;
            if let Err(error) = written {
                tracing::warn!(%error, "a block hash could not be kept");
            }
        });
    }

    /// Holds the kept hashes against the chain; where one differs, cuts back to the last good one.
    pub(super) async fn has_reorganised(&self, record: &WalletRecord) -> Result<bool, IngestError> {
        let kept = anchors::newest_first(&self.inner.view()?.anchors(record.id).await?);
        let check = |anchor: Anchor| async move {
            let checked = self.source.check_hash(anchor.height, anchor.hash, &self.lane).await;
            checked.map(|check| (anchor.height, check))
        };
        let mut verdict = Verdict::default();
        let (loose, rest) = kept.split_at(kept.len().min(anchors::LOOSE));
        let first = try_join_all(loose.iter().map(|anchor| check(*anchor))).await?;
        let mut settled = rest.is_empty();
        for (height, check_result) in first {
            settled |= verdict.add(height, check_result);
        }
        for anchor in rest {
            if settled {
                break;
            }
            let (height, check_result) = check(*anchor).await?;
            settled = verdict.add(height, check_result);
        }
        let Some(above) = verdict.cut_above() else { return Ok(false) };
        tracing::warn!(above, "the chain was reorganised: reading again from there");
        self.inner.metrics.reorganisations.add(1);
        self.inner.store.cut_back(record.id, above).await?;
        self.board.tell_news();
        Ok(true)
    }
}

impl Inner {
    async fn keep_anchor(
        &self,
        id: WalletId,
        epoch: u64,
        anchor: Anchor,
    ) -> Result<(), HistoryError> {
        let kept = self.view()?.anchors(id).await?;
        let anchors = Some(anchors::add(&kept, anchor, self.limits.anchors_max));
        let patch = WalletPatch { anchors, ..WalletPatch::default() };
        Ok(self.store.update_wallet(id, epoch, patch).await.map(drop)?)
    }
}
