//! Keeps the hash of a block that no read reported.

use std::sync::Arc;

use super::error::HistoryError;
use super::{Inner, anchors};
use crate::domain::Height;
use crate::rpc::Lane;
use crate::sources::Source;
use crate::store::{Anchor, WalletId, WalletPatch};

/// Stores the hash of a block where none was known before the rows were read: a reorg between the
/// two goes unnoticed. Concurrently: the next chunk does not wait for it.
pub(super) async fn keep(
    inner: Arc<Inner>,
    (source, lane): (Source, Lane),
    wallet: (WalletId, u64),
    height: Height,
) {
    let hash = tokio::select! {
        biased;
        () = inner.tasks.cancelled() => return,
        hash = source.block_hash(height, &lane) => hash,
    };
    let Ok(Some(hash)) = hash else { return };
    if let Err(error) = inner.keep_anchor(wallet, Anchor { height, hash }).await {
        tracing::warn!(%error, "a block hash could not be kept");
    }
}

impl Inner {
    async fn keep_anchor(
        &self,
        (id, epoch): (WalletId, u64),
        anchor: Anchor,
    ) -> Result<(), HistoryError> {
        let kept = self.view()?.anchors(id).await?;
        let anchors = Some(anchors::add(&kept, anchor, self.limits.anchors_max));
        let patch = WalletPatch { anchors, ..WalletPatch::default() };
        Ok(self.store.update_wallet(id, epoch, patch).await.map(drop)?)
    }
}
