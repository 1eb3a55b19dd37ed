//! Pure: failures of an attempt, the decision about each, and the backoff before the next attempt.

use std::time::Duration;

use super::error::UpstreamError;
use super::secret::mask;
use super::transport::TransportError;

/// HTTP statuses of a server that waited too long, which some return as codes of JSON-RPC.
pub(crate) const TIME_OUTS: [i64; 5] = [408, 504, 524, 598, 599];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    Transport(TransportError),
    /// A body that is not JSON-RPC.
    Http {
        status: u16,
        text: String,
    },
    /// A JSON-RPC error, with the HTTP status that it came with.
    Rpc {
        status: u16,
        code: i64,
        message: String,
    },
    /// The reader of a plain HTTP answer rejected it.
    Rejected {
        status: u16,
        text: String,
    },
    /// The answer has no entry for this call.
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// The endpoint asks for fewer requests: a cooldown, then a retry, here or elsewhere.
    SlowDown,
    /// A temporary failure: a retry, elsewhere where there is another endpoint.
    Retry,
    /// The endpoint does not have the data (pruned, or too large an answer for it), another may;
    /// final once all have answered so.
    RetryElsewhere,
    /// An error that no table lists: retry on another endpoint, and count a failure of this one;
    /// final only once every endpoint answers with one, more than once.
    Unknown,
    ReduceBatch,
    ReduceRange,
    /// The endpoint does not support the method; counts after repeated answers.
    Unsupported,
    /// Refused for lack of a key, a plan or a quota: the endpoint, or the method there, is disabled
    /// with growing pauses.
    Refused,
    /// Every endpoint would answer the same.
    Fatal,
}

impl RetryDecision {
    pub(super) fn is_failure(self) -> bool {
        // Refusals are not failures: they already disable the endpoint for a while.
        matches!(self, Self::Retry | Self::Unknown)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Transport(error) => error.fmt(f),
            Self::Http { status, text } if text.trim_start().starts_with('<') => {
                write!(f, "HTTP status {status} with a page")
            }
            Self::Http { status, text } if text.trim().is_empty() => {
                write!(f, "HTTP status {status} with an empty body")
            }
            Self::Http { status, text } => write!(f, "HTTP status {status}: {}", text.trim()),
            Self::Rpc { code, message, .. } => write!(f, "{message} (code {code})"),
            Self::Rejected { text, .. } => f.write_str(text),
            Self::Missing => f.write_str("no answer to this call in the batch"),
        }
    }
}

impl Failure {
    pub(super) fn masked(&self, secrets: &[String]) -> Self {
        match self {
            Self::Http { status, text } => {
                Self::Http { status: *status, text: mask(text, secrets) }
            }
            Self::Rpc { status, code, message } => {
                Self::Rpc { status: *status, code: *code, message: mask(message, secrets) }
            }
            Self::Rejected { status, text } => {
                Self::Rejected { status: *status, text: mask(text, secrets) }
            }
            Self::Transport(_) | Self::Missing => self.clone(),
        }
    }

    /// The beginning of the failure's text, for a log.
    pub(super) fn log_text(&self) -> String {
        /// Characters of a provider's text that are shown.
        const WORDS_MAX: usize = 200;
        self.to_string().chars().take(WORDS_MAX).collect()
    }

    /// Whether the failure can be an error of the request itself: such errors come with a 2xx
    /// status or 400; any other status concerns the service.
    pub(super) fn may_be_final(&self) -> bool {
        matches!(self, Self::Rpc { status: 200..=299 | 400, .. })
    }

    /// The error for the caller, when no further attempt would change it.
    pub(super) fn refusal(&self, endpoint: String) -> UpstreamError {
        let (code, message) = match self {
            Self::Rpc { code, message, .. } => (*code, message.clone()),
            Self::Http { status, .. } if TIME_OUTS.contains(&i64::from(*status)) => {
                (i64::from(*status), format!("timeout: {self}"))
            }
            Self::Http { status, .. } => (i64::from(*status), self.to_string()),
            // The HTTP statuses that servers return for these cases.
            Self::Transport(TransportError::TooLarge { .. }) => {
                (413, format!("response too large: {self}"))
            }
            Self::Transport(TransportError::Timeout) => (408, format!("timeout: {self}")),
            Self::Transport(_) | Self::Rejected { .. } | Self::Missing => (0, self.to_string()),
        };
        UpstreamError::Rpc { endpoint, code, message }
    }
}

/// Pause before attempt number `attempt` (from 1): doubling, with jitter from `random`.
pub(super) fn backoff(attempt: u32, min: Duration, max: Duration, random: u32) -> Duration {
    let full = min.saturating_mul(1_u32.checked_shl(attempt.min(16)).unwrap_or(u32::MAX)).min(max);
    // Jitter: between half and all of the full pause.
    full / 2 + full / 2 * (random % 1024) / 1024
}

/// Seconds, or the time from `now` to an HTTP date.
pub(super) fn retry_after(header: &str, now_unix_seconds: u32) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(header).ok()?.timestamp().as_second();
    let wait = date.saturating_sub(i64::from(now_unix_seconds));
    Some(Duration::from_secs(u64::try_from(wait).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7", 0), Some(Duration::from_secs(7)));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(retry_after(date, 784_111_770), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(date, 784_111_790), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", 0), None);
    }

    #[test]
    fn pauses_double_up_to_a_ceiling() {
        let (min, max) = (Duration::from_millis(100), Duration::from_secs(10));
        for attempt in 1..40 {
            let full = (min * 2_u32.pow(attempt.min(20))).min(max);
            for random in [0, 500, 1023, u32::MAX] {
                let pause = backoff(attempt, min, max, random);
                assert!(full / 2 <= pause && pause <= full, "{attempt} {pause:?}");
            }
        }
    }
}
