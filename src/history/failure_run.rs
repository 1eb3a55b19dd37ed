//! A wallet's loads that fail one after another: readers need not know of an endpoint that failed a
//! moment ago next to one that works.

use std::time::Duration;

use tokio::time::Instant;

use super::ingest::IngestError;
use crate::rpc::UpstreamError;

/// Failures that are further apart, from the end of one to the beginning of the next attempt, have
/// nothing to do with one another.
const APART: Duration = Duration::from_secs(60);

/// Failures that belong together.
#[derive(Debug, Default)]
pub(super) struct FailureRun {
    /// The ends of the first and of the last one.
    row: Option<(Instant, Instant)>,
}

impl FailureRun {
    /// Notes the failure of an attempt that began then; returns how long loads have failed.
    pub(super) fn note(&mut self, began: Instant, now: Instant) -> Duration {
        let is_next =
            |(_, last): &(Instant, Instant)| began.saturating_duration_since(*last) < APART;
        let since = self.row.filter(is_next).map_or(now, |(since, _)| since);
        self.row = Some((since, now));
        now - since
    }
}

/// Whether another attempt, at other endpoints, can mend it.
pub(super) fn is_of_endpoint(error: &IngestError) -> bool {
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
        // It took two minutes to fail: that is not how long loads have failed.
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
