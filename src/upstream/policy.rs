//! Pure: what follows from a failed try. Texts decide before codes, because providers put the
//! same thing under many codes (facts: provider documentation of 429 answers, JSON-RPC 2.0 codes,
//! Solana's custom RPC error codes -32001 to -32019).

use std::time::Duration;

use super::transport::TransportError;

/// A try that gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    Transport(TransportError),
    /// An HTTP status that is no success, with the beginning of the text.
    Http {
        status: u16,
        text: String,
    },
    Rpc {
        code: i64,
        message: String,
    },
    /// The body is no JSON-RPC answer.
    Garbage,
    /// The answer has no entry for this call.
    Missing,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The endpoint asks for less: it rests, then again, here or elsewhere.
    SlowDown,
    /// Again, elsewhere where there is another endpoint; counts against this one.
    Again,
    /// Smaller batches on this endpoint.
    SmallerBatch,
    /// This endpoint does not offer the method.
    NotOffered,
    /// The same everywhere.
    Final,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Transport(error) => error.fmt(f),
            Self::Http { status, .. } => write!(f, "HTTP status {status}"),
            Self::Rpc { code, message } => write!(f, "{message} (code {code})"),
            Self::Garbage => f.write_str("an answer that is no JSON-RPC"),
            Self::Missing => f.write_str("no answer to this call in the batch"),
        }
    }
}

const SLOW_DOWN: &[&str] = &[
    "rate limit",
    "ratelimit",
    "too many requests",
    "too many request",
    "requests per second",
    "request limit",
    "compute units per second",
    "throttle",
    "slow down",
    "capacity",
    "quota",
    "credits",
    "limit exceeded for",
    "busy",
];
const SMALLER_BATCH: &[&str] = &[
    "batch too large",
    "batch size",
    "batch limit",
    "batch request",
    "batching",
    "batch not",
    "too many batch",
    "max batch",
];
const NOT_OFFERED: &[&str] = &[
    "method not found",
    "not available on",
    "not supported",
    "unsupported method",
    "is disabled",
    "does not exist/is not available",
    "not whitelisted",
    "upgrade your plan",
    "not allowed",
    "unknown method",
    "method is not available",
];
const AGAIN: &[&str] = &[
    "timeout",
    "timed out",
    "temporarily",
    "unavailable",
    "internal error",
    "try again",
    "overloaded",
    "node is behind",
    "minimum context slot",
    "header not found",
    "no backend is currently healthy",
];

/// Decides about a failure of one call; `in_batch` where it went out with others.
pub(super) fn judge(failure: &Failure, in_batch: bool) -> Verdict {
    match failure {
        Failure::Transport(TransportError::TooLarge { .. }) | Failure::Http { status: 413, .. }
            if in_batch =>
        {
            Verdict::SmallerBatch
        }
        Failure::Transport(_) | Failure::Garbage | Failure::Missing => Verdict::Again,
        Failure::Http { status, text } => {
            by_text(text, in_batch).unwrap_or_else(|| by_status(*status))
        }
        Failure::Rpc { code, message } => {
            by_text(message, in_batch).unwrap_or_else(|| by_code(*code))
        }
    }
}

fn by_text(text: &str, in_batch: bool) -> Option<Verdict> {
    let text = text.to_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if in_batch && holds(SMALLER_BATCH) {
        return Some(Verdict::SmallerBatch);
    }
    if holds(SLOW_DOWN) {
        return Some(Verdict::SlowDown);
    }
    // A version of a transaction, not a method, is what is "not supported" here.
    if holds(NOT_OFFERED) && !text.contains("transaction version") {
        return Some(Verdict::NotOffered);
    }
    holds(AGAIN).then_some(Verdict::Again)
}

fn by_status(status: u16) -> Verdict {
    match status {
        429 => Verdict::SlowDown,
        404 | 405 | 501 => Verdict::NotOffered,
        _ => Verdict::Again,
    }
}

fn by_code(code: i64) -> Verdict {
    match code {
        429 | -32005 => Verdict::SlowDown,
        -32601 => Verdict::NotOffered,
        // Node unhealthy, no snapshot, block status, min context slot; internal; plain 5xx.
        -32016 | -32014 | -32004 | -32603 | 500..=599 => Verdict::Again,
        _ => Verdict::Final,
    }
}

/// Pause before try number `attempt` (from 1): doubling, with jitter from `random`.
pub(super) fn backoff(attempt: u32, min: Duration, max: Duration, random: u32) -> Duration {
    let full = min.saturating_mul(1_u32.checked_shl(attempt.min(16)).unwrap_or(u32::MAX)).min(max);
    // Between a half and the whole of it.
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

    #[track_caller]
    fn rpc(code: i64, message: &str, in_batch: bool, expected: Verdict) {
        let failure = Failure::Rpc { code, message: message.to_owned() };
        assert_eq!(judge(&failure, in_batch), expected, "{code} {message}");
    }

    #[test]
    fn texts_decide_before_codes() {
        rpc(-32602, "Too many requests for a specific RPC call", false, Verdict::SlowDown);
        rpc(
            429,
            "The requests per second (RPS) of your requests are higher",
            false,
            Verdict::SlowDown,
        );
        rpc(-32600, "batch too large, max 100", true, Verdict::SmallerBatch);
        rpc(
            -32600,
            "Batch requests are only available for paid plans",
            true,
            Verdict::SmallerBatch,
        );
        rpc(-32000, "method is not available on the free plan", false, Verdict::NotOffered);
        rpc(-32601, "Method not found", false, Verdict::NotOffered);
        rpc(-32016, "Minimum context slot has not been reached", false, Verdict::Again);
        rpc(-32007, "Slot 5 was skipped, or missing due to ledger jump", false, Verdict::Final);
        rpc(-32602, "Invalid limit; max 1000", false, Verdict::Final);
        let version = "Transaction version (1) is not supported by the requesting client.";
        rpc(-32015, version, false, Verdict::Final);
    }

    #[test]
    fn statuses_decide_where_there_is_no_telling_text() {
        let http = |status| Failure::Http { status, text: String::new() };
        assert_eq!(judge(&http(429), false), Verdict::SlowDown);
        assert_eq!(judge(&http(503), false), Verdict::Again);
        assert_eq!(judge(&http(413), true), Verdict::SmallerBatch);
        assert_eq!(judge(&http(413), false), Verdict::Again);
    }

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
