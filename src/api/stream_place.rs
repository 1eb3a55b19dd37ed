//! Limits the number of concurrent streams.

use std::sync::Arc;

use super::App;
use super::auth::Caller;
use super::error::ApiError;
use super::gate::{Place, RateState};

/// A stream's permits, of its key and of the server.
#[derive(Debug)]
pub(super) struct StreamPlace {
    app: Arc<App>,
    _of_key: Place,
    _of_all: Place,
}

impl StreamPlace {
    /// `rate` is the key's remaining rate, for the error.
    pub(super) fn take(
        app: &Arc<App>,
        caller: &Caller,
        rate: Option<RateState>,
    ) -> Result<Self, ApiError> {
        let max = caller.key.streams.unwrap_or(app.limits.streams_per_key_max);
        let places = usize::try_from(max).unwrap_or(usize::MAX);
        let too_many = ApiError::TooManyStreams { max, rate };
        let of_key = caller.state.streams.take(places).ok_or(too_many)?;
        let of_all = app.streams.take(app.limits.streams_max).ok_or(ApiError::StreamsFull)?;
        app.metrics.streams.inc();
        Ok(Self { app: Arc::clone(app), _of_key: of_key, _of_all: of_all })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.app.metrics.streams.dec();
    }
}
