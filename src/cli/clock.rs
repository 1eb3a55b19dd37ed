//! The wall clock, which no other module reads.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::domain::{Clock, UnixMillis};

#[derive(Debug, Clone, Copy)]
pub(super) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that is passed in elsewhere")]
    fn now(&self) -> UnixMillis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
