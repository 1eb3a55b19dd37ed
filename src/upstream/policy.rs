//! Pure: what follows from a failed try. Texts decide before codes, because providers put the
//! same thing under many codes (facts: provider documentation of 429 answers, JSON-RPC 2.0 codes,
//! Solana's custom RPC error codes -32001 to -32019).

use std::time::Duration;

use super::error::UpstreamError;
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
    /// What the reader of a plain HTTP answer said of it.
    Told(String),
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
    /// This endpoint does not have it (history that it pruned, an answer that is too large for
    /// it), another may; final once all have said so.
    Elsewhere,
    /// The same everywhere.
    Final,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Transport(error) => error.fmt(f),
            Self::Http { status, .. } => write!(f, "HTTP status {status}"),
            Self::Rpc { code, message } => write!(f, "{message} (code {code})"),
            Self::Told(text) => f.write_str(text),
            Self::Garbage => f.write_str("an answer that is no JSON-RPC"),
            Self::Missing => f.write_str("no answer to this call in the batch"),
        }
    }
}

impl Failure {
    /// The same with another text.
    pub(super) fn map_text(self, change: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Http { status, text } => Self::Http { status, text: change(&text) },
            Self::Rpc { code, message } => Self::Rpc { code, message: change(&message) },
            Self::Told(text) => Self::Told(change(&text)),
            Self::Transport(_) | Self::Garbage | Self::Missing => self,
        }
    }

    /// The error for who asked, when no other try would change it.
    pub(super) fn refusal(&self, endpoint: String) -> UpstreamError {
        let (code, message) = match self {
            Self::Rpc { code, message } => (*code, message.clone()),
            Self::Http { status, text } if text.is_empty() => {
                (i64::from(*status), self.to_string())
            }
            Self::Http { status, text } => (i64::from(*status), text.clone()),
            // The status that a server has for it.
            Self::Transport(TransportError::TooLarge { .. }) => (413, self.to_string()),
            Self::Transport(_) | Self::Told(_) | Self::Garbage | Self::Missing => {
                (0, self.to_string())
            }
        };
        UpstreamError::Rpc { endpoint, code, message }
    }
}

const SLOW_DOWN: &[&str] = &[
    "rate limit",
    "rate exceeded",
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
    "method disabled",
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
    "no backend is currently healthy",
];

/// The call itself fails, wherever it is made.
const REVERTED: &[&str] = &["execution reverted", "transaction reverted", "vm execution error"];
/// More blocks or more logs than a node gives at once: who asked has to ask for less. Providers'
/// texts for `eth_getLogs`, which share their codes with rate limits.
const RANGE: &[&str] = &[
    "block range",
    "range is too",
    "range too large",
    "range limit",
    "max range",
    "maximum range",
    "range allowed",
    "range threshold",
    "exceeds limit of",
    "exceeded max allowed",
    "query returned more than",
    "exceeds max results",
    "max results",
    "too many results",
    "too many logs",
    "too many blocks",
    "number of requested blocks",
    "limit the query to",
    "blocks are not supported",
];
/// As `RANGE`, but a batch that is too large says it too.
const TOO_LARGE: &[&str] =
    &["response size", "response too large", "response is too large", "response is too big"];
/// How nodes end a search for logs that takes too long: a smaller range is quicker.
const LOGS_TIME: &[&str] = &[
    "deadline exceeded",
    "query timeout",
    "query timed out",
    "execution timeout",
    "took too long",
];
/// What a node without the history, or behind the others, says.
const ELSEWHERE: &[&str] = &[
    "missing trie node",
    "pruned",
    "header not found",
    "historical state",
    "state not available",
    "state is not available",
    "state already discarded",
    "state histories",
    "maximum proof window",
    "archive",
    "invalid block range",
    // Solana, -32001: a node that has thrown old blocks away; another one may keep them.
    "does not exist on node",
];

/// Decides about a failure of one call; `in_batch` where it went out with others.
pub(super) fn judge(failure: &Failure, method: &str, in_batch: bool) -> Verdict {
    match failure {
        Failure::Transport(TransportError::TooLarge { .. }) | Failure::Http { status: 413, .. } => {
            if in_batch {
                Verdict::SmallerBatch
            } else {
                Verdict::Elsewhere
            }
        }
        Failure::Transport(_) | Failure::Told(_) | Failure::Garbage | Failure::Missing => {
            Verdict::Again
        }
        Failure::Http { status, text } => match by_text(text, method, in_batch) {
            Some(Verdict::SlowDown) => Verdict::SlowDown,
            // A page tells of the server before the node, which may be back any time.
            _ if text.trim_start().starts_with('<') => by_status(*status),
            Some(Verdict::NotOffered) | None => by_status(*status),
            Some(verdict) => verdict,
        },
        // A revert has a code of its own (go-ethereum's RPC errors with data).
        Failure::Rpc { code: 3, .. } => Verdict::Final,
        Failure::Rpc { code, message } => {
            by_text(message, method, in_batch).unwrap_or_else(|| by_code(*code))
        }
    }
}

fn by_text(text: &str, method: &str, in_batch: bool) -> Option<Verdict> {
    let text = text.to_lowercase();
    let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if holds(REVERTED) {
        return Some(Verdict::Final);
    }
    if in_batch && (holds(SMALLER_BATCH) || holds(TOO_LARGE)) {
        return Some(Verdict::SmallerBatch);
    }
    // A node that only sometimes traces takes tracing away as a whole.
    let is_trace = method.starts_with("debug_") || method.starts_with("trace_");
    if holds(ELSEWHERE) && !(is_trace && holds(NOT_OFFERED)) {
        return Some(Verdict::Elsewhere);
    }
    if let Some(verdict) = of_logs(&text, method) {
        return Some(verdict);
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

/// What concerns the range of a search for logs.
fn of_logs(text: &str, method: &str) -> Option<Verdict> {
    let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_logs = method == "eth_getLogs";
    // BNB Chain's public nodes: no range is small enough.
    if is_logs && text.trim() == "limit exceeded" {
        return Some(Verdict::NotOffered);
    }
    let some_blocks =
        text.contains("limited to") && (text.contains("block") || text.contains("range"));
    let too_much = holds(RANGE) || holds(TOO_LARGE) || some_blocks || is_logs && holds(LOGS_TIME);
    too_much.then_some(Verdict::Final)
}

fn by_status(status: u16) -> Verdict {
    match status {
        429 => Verdict::SlowDown,
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
        of("", code, message, in_batch, expected);
    }

    #[track_caller]
    fn of(method: &str, code: i64, message: &str, in_batch: bool, expected: Verdict) {
        let failure = Failure::Rpc { code, message: message.to_owned() };
        assert_eq!(judge(&failure, method, in_batch), expected, "{code} {message}");
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
        let gone = "Block 5 cleaned up, does not exist on node. First available block: 9";
        rpc(-32001, gone, false, Verdict::Elsewhere);
        rpc(-32602, "Invalid limit; max 1000", false, Verdict::Final);
        let version = "Transaction version (1) is not supported by the requesting client.";
        rpc(-32015, version, false, Verdict::Final);
    }

    /// Texts that providers of EVM nodes document, or that their clients' sources hold.
    #[test]
    fn a_range_that_is_too_large_is_for_the_caller() {
        let told = [
            (
                -32602,
                "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0xd043b8]",
            ),
            (
                -32600,
                "You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x1, 0x2]",
            ),
            (
                -32005,
                "query returned more than 10000 results. Try with this block range [0x1, 0x2].",
            ),
            (-32602, "range 1000000 exceeds limit of 10000"),
            (-32614, "eth_getLogs is limited to a 10,000 range"),
            (-32062, "Block range is too large"),
            (-32600, "block range is too wide"),
            (-32000, "exceed maximum block range: 50000"),
            (35, "ranges over 10000 blocks are not supported on freetier"),
            (-32000, "query exceeds max results 20000, retry with the range 1-2"),
            (-32000, "query exceeds max block range 100000"),
            (-32603, "eth_getLogs range is too large, max is 1k blocks"),
            (-32000, "Requested range is too wide. Max range: 800"),
            (-32000, "Invalid. Max range: 800"),
            (-32005, "Maximum allowed number of requested blocks is 1000"),
            (-32000, "eth_getLogs is limited to 1024 block range"),
            (-32005, "eth_getLogs is limited to 1024 block"),
            (-32005, "Block range limit exceeded."),
            (-32000, "please limit the query to at most 1000 blocks"),
            (-32000, "block range too large"),
            (-32020, "backend response too large"),
            (-32000, "logs matched by query exceeds limit of 10000"),
            (-32005, "range 5000 is bigger than range limit 2000"),
            (-32000, "requested too many blocks from 1 to 5000, maximum is set to 2048"),
            (-32005, "query returned more than 10000 results"),
            (-32000, "response size should not greater than 10000000 bytes"),
            (-32000, "block range is too wide (maximum 1024)"),
            (-32000, "block range is larger than max block range"),
            (-32000, "the range 5000 exceeds the range allowed for your plan (5000 > 1000)"),
            (-32012, "getLogs request exceeded max allowed range"),
            (-32012, "range threshold exceeded"),
            (-32602, "exceed max block range: 5000"),
            (-32000, "context deadline exceeded"),
            (-32002, "query timeout exceeded"),
        ];
        for (code, message) in told {
            of("eth_getLogs", code, message, false, Verdict::Final);
        }
        of(
            "eth_getTransactionReceipt",
            -32020,
            "backend response too large",
            true,
            Verdict::SmallerBatch,
        );
    }

    #[test]
    fn codes_of_ranges_that_tell_of_rates_are_rates() {
        let told = [
            (-32005, "project ID request rate exceeded"),
            (-32005, "daily request count exceeded, request rate limited"),
            (-32005, ""),
            (-32029, "Too Many Requests"),
            (-32016, "over rate limit"),
            (-32090, "Too many requests, reason: call rate limit exhausted, retry in 10s"),
            (429, "Your app has exceeded its compute units per second capacity."),
            (-32007, "50/second request limit reached"),
        ];
        for (code, message) in told {
            of("eth_getLogs", code, message, false, Verdict::SlowDown);
        }
    }

    #[test]
    fn history_that_one_node_lacks_another_may_have() {
        let told = [
            (-32000, "missing trie node 0123 (path ) state 0x0123 is not available"),
            (-32000, "state is pruned"),
            (-32000, "header not found"),
            (-32000, "historical state 0123 is not available"),
            (-32000, "required historical state unavailable (reexec=128)"),
            (-32061, "No archive nodes available"),
            (4444, "pruned history unavailable"),
            (-32000, "distance to target block exceeds maximum proof window"),
        ];
        for method in ["eth_getBalance", "debug_traceTransaction"] {
            for (code, message) in told {
                of(method, code, message, false, Verdict::Elsewhere);
            }
        }
        of("eth_getLogs", -32000, "invalid block range", false, Verdict::Elsewhere);
        let plan = "Archive, Debug and Trace requests are not available on your current plan.";
        of("debug_traceTransaction", -32002, plan, false, Verdict::NotOffered);
        of("eth_getBalance", -32002, plan, false, Verdict::Elsewhere);
    }

    #[test]
    fn what_an_endpoint_lacks_and_what_reverts_is_told_apart() {
        of("eth_getLogs", -32005, "limit exceeded", false, Verdict::NotOffered);
        of("eth_call", -32005, "limit exceeded", false, Verdict::SlowDown);
        of("eth_getLogs", -32075, "method disabled", false, Verdict::NotOffered);
        let absent = "the method trace_block does not exist/is not available";
        of("trace_block", -32601, absent, false, Verdict::NotOffered);
        of(
            "eth_getLogs",
            -32000,
            "no backend is currently healthy to serve traffic",
            false,
            Verdict::Again,
        );
        of("eth_call", 3, "execution reverted", false, Verdict::Final);
        of(
            "eth_call",
            -32000,
            "execution reverted: over capacity, try again",
            false,
            Verdict::Final,
        );
    }

    #[test]
    fn statuses_decide_where_there_is_no_telling_text() {
        let http = |status| Failure::Http { status, text: String::new() };
        assert_eq!(judge(&http(429), "", false), Verdict::SlowDown);
        assert_eq!(judge(&http(503), "", false), Verdict::Again);
        assert_eq!(judge(&http(404), "", false), Verdict::Again);
        let page = |text: &str| Failure::Http { status: 403, text: text.to_owned() };
        assert_eq!(judge(&page("<html>see our archive</html>"), "", false), Verdict::Again);
        assert_eq!(judge(&page("this address is not allowed"), "", false), Verdict::Again);
        assert_eq!(judge(&page("block range too large"), "", false), Verdict::Final);
        assert_eq!(judge(&http(413), "", true), Verdict::SmallerBatch);
        assert_eq!(judge(&http(413), "", false), Verdict::Elsewhere);
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
