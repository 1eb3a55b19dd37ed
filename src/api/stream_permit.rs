//! Limits the number of concurrent streams.

use std::sync::Arc;

use super::App;
use super::auth::Caller;
use super::error::ApiError;
use super::rate_limit::{Permit, RateState};

/// A stream's permits, of its key and of the server.
#[derive(Debug)]
pub(super) struct StreamPermit {
    app: Arc<App>,
    _of_key: Permit,
    _of_all: Permit,
}

impl StreamPermit {
    /// `rate` is the key's remaining rate, for the error.
    pub(super) fn take(
        app: &Arc<App>,
        caller: &Caller,
        rate: Option<RateState>,
    ) -> Result<Self, ApiError> {
        let max = caller.key.streams.unwrap_or(app.limits.streams_per_key_max);
        let permits = usize::try_from(max).unwrap_or(usize::MAX);
        let too_many = ApiError::TooManyStreams { max, rate };
        let of_key = caller.state.streams.take(permits).ok_or(too_many)?;
        let of_all = app.streams.take(app.limits.streams_max).ok_or(ApiError::StreamsFull)?;
        app.metrics.streams.inc();
        Ok(Self { app: Arc::clone(app), _of_key: of_key, _of_all: of_all })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.app.metrics.streams.dec();
    }
}
