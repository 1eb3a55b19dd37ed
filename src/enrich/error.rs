//! Why a chunk could not be completed.

use crate::rpc::UpstreamError;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum EnrichError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
