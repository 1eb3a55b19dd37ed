//! Price of the native coin, as the chain's reference pools told it.

use super::EvmSource;
use crate::domain::{Moment, Price};
use crate::upstream::error::UpstreamError;
use crate::upstream::queue::Lane;

impl EvmSource {
    /// No reference is read yet: nobody can tell.
    #[expect(clippy::unused_async, reason = "reading a reference will wait for nodes")]
    pub(in crate::upstream) async fn native_prices(
        &self,
        at: &[Moment],
        _lane: &Lane,
    ) -> Result<Vec<Option<Price>>, UpstreamError> {
        Ok(vec![None; at.len()])
    }
}
