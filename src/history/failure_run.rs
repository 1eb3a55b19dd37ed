//! Consecutive load failures of a wallet: readers are not notified of a brief failure of one
//! endpoint while another one works.

use std::time::Duration;

use tokio::time::Instant;

use super::ingest::IngestError;
use crate::rpc::UpstreamError;

/// Failures further apart than this, from the end of one attempt to the start of the next, are
/// unrelated.
const UNRELATED_AFTER: Duration = Duration::from_secs(60);

/// A series of related failures.
#[derive(Debug, Default)]
pub(super) struct FailureRun {
    /// When the first and the last failure of the series happened.
    first_and_last: Option<(Instant, Instant)>,
}

impl FailureRun {
    /// Records the failure of an attempt that began at `began`; returns for how long loads have
    /// failed.
    pub(super) fn note(&mut self, began: Instant, now: Instant) -> Duration {
        let is_next = |(_, last): &(Instant, Instant)| {
            began.saturating_duration_since(*last) < UNRELATED_AFTER
        };
        let since = self.first_and_last.filter(is_next).map_or(now, |(since, _)| since);
        self.first_and_last = Some((since, now));
        now - since
    }
}

/// Whether another attempt, at other endpoints, can succeed.
pub(super) fn is_endpoint_failure(error: &IngestError) -> bool {
    matches!(
        error,
        IngestError::Upstream(
            UpstreamError::Unavailable { .. }
                | UpstreamError::Rpc { .. }
                | UpstreamError::Malformed { .. }
                | UpstreamError::Refused { .. }
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn failures_count_from_the_end_of_the_first_one_of_their_row() {
        let (mut failures, start) = (FailureRun::default(), Instant::now());
        // This load took two minutes to fail; loads have not been failing for two minutes.
        let first = start + 120 * SECOND;
        assert_eq!(failures.note(start, first), Duration::ZERO);
        let second = first + 150 * SECOND;
        assert_eq!(failures.note(first + SECOND, second), 150 * SECOND);
        assert_eq!(failures.note(second + 59 * SECOND, second + 61 * SECOND), 211 * SECOND);
        // It had worked for a minute.
        let later = second + 121 * SECOND;
        assert_eq!(failures.note(later, later + SECOND), Duration::ZERO);
        assert_eq!(failures.note(later + 2 * SECOND, later + 3 * SECOND), 2 * SECOND);
    }
}
