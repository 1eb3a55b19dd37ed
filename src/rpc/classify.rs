//! Error classification: the consequence of a failed attempt, by one pure table a family. Status,
//! code and text count together: the text of a JSON-RPC error first, because providers use one code
//! for different errors; then its code; then the HTTP status, where body and code are unknown.

mod evm;
mod solana;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use super::error::UpstreamError;
pub(crate) use super::policy::TIME_OUTS;
use super::policy::{Failure, RetryDecision};
use super::secret::TEXT_MAX;
use super::transport::TransportError;
pub(crate) use solana::UNKNOWN_SIGNATURE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Methods {
    Any,
    /// Queries over a range of blocks, which can be reduced.
    Ranges,
    /// Queries that a node without old blocks, receipts or states cannot answer.
    Past,
    Traces,
    /// Executions of a contract, which fail by themselves.
    Runs,
    /// Solana's blocks; a block may be missing for good.
    Blocks,
    /// `alchemy_getAssetTransfers`, whose categories differ by network.
    Transfers,
    /// `getTransactionsForAddress`, whose filters and page sizes differ by provider.
    Pages,
}

impl Methods {
    fn include(self, method: &str) -> bool {
        let is_trace = method.starts_with("debug_") || method.starts_with("trace_");
        match self {
            Self::Any => true,
            Self::Ranges => method == "eth_getLogs",
            Self::Traces => is_trace,
            Self::Past => is_trace || PAST.contains(&method),
            Self::Blocks => method == "getBlock",
            Self::Transfers => method == "alchemy_getAssetTransfers",
            Self::Pages => method == "getTransactionsForAddress",
            Self::Runs => matches!(method, "eth_call" | "eth_estimateGas"),
        }
    }
}

const PAST: &[&str] = &[
    "eth_call",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getCode",
    "eth_getLogs",
    "eth_getStorageAt",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
];

/// EIP-1474's missing resource, dRPC's unknown block.
const MISSING_CODES: [i64; 2] = [-32001, 26];

/// One row of a table: it matches where each given part matches.
#[derive(Debug, Clone, Copy)]
struct Rule {
    codes: &'static [i64],
    /// One of these.
    words: &'static [&'static str],
    /// And one of these.
    and: &'static [&'static str],
    /// And none of these.
    not: &'static [&'static str],
    methods: Methods,
    batch: bool,
    then: RetryDecision,
}

impl Rule {
    const fn new(then: RetryDecision) -> Self {
        Self {
            codes: &[],
            words: &[],
            and: &[],
            not: &[],
            methods: Methods::Any,
            batch: false,
            then,
        }
    }

    const fn text(words: &'static [&'static str], then: RetryDecision) -> Self {
        Self { words, ..Self::new(then) }
    }

    const fn code(codes: &'static [i64], then: RetryDecision) -> Self {
        Self { codes, ..Self::new(then) }
    }

    const fn and(self, and: &'static [&'static str]) -> Self {
        Self { and, ..self }
    }

    const fn not(self, not: &'static [&'static str]) -> Self {
        Self { not, ..self }
    }

    const fn on(self, methods: Methods) -> Self {
        Self { methods, ..self }
    }

    const fn in_batch(self) -> Self {
        Self { batch: true, ..self }
    }

    fn fits(&self, error: &ErrorParts<'_>) -> bool {
        let holds = |words: &[&str]| words::holds(error.text, words);
        let is_code = |codes: &[i64]| error.code.is_some_and(|code| codes.contains(&code));
        (self.codes.is_empty() || is_code(self.codes))
            && (self.words.is_empty() || holds(self.words))
            && (self.and.is_empty() || holds(self.and))
            && !holds(self.not)
            && self.methods.include(error.method)
            && (!self.batch || error.in_batch)
    }
}

struct ErrorParts<'a> {
    /// In lower case.
    text: &'a str,
    code: Option<i64>,
    method: &'a str,
    in_batch: bool,
}

impl ErrorParts<'_> {
    fn by(&self, table: &[Rule]) -> Option<RetryDecision> {
        table.iter().find(|rule| rule.fits(self)).map(|rule| rule.then)
    }
}

/// Classifies a failure of one call; `in_batch` if it was sent with others.
pub(super) fn classify(failure: &Failure, method: &str, in_batch: bool) -> RetryDecision {
    match failure {
        Failure::Transport(TransportError::TooLarge { .. }) => too_large(method, in_batch),
        Failure::Transport(TransportError::Timeout) => timed_out(method),
        Failure::Transport(_) | Failure::Rejected { .. } | Failure::Missing => RetryDecision::Retry,
        Failure::Http { status, text } => of_text(*status, text, method, in_batch),
        Failure::Rpc { status, code, message } => {
            let text = beginning(message);
            let error = ErrorParts { text: &text, code: Some(*code), method, in_batch };
            error
                .by(table(method))
                .or_else(|| by_status(status_of(*status, *code), true, method, in_batch))
                .unwrap_or(RetryDecision::Unknown)
        }
    }
}

/// What is read of a text, which may be long: in lower case, without control characters.
fn beginning(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect();
    shown.to_lowercase()
}

fn table(method: &str) -> &'static [Rule] {
    let evm = ["eth_", "debug_", "trace_", "net_", "web3_", "alchemy_"];
    if evm.iter().any(|prefix| method.starts_with(prefix)) { evm::TABLE } else { solana::TABLE }
}

/// Some providers give the status as the code of the error.
fn status_of(status: u16, code: i64) -> u16 {
    match u16::try_from(code) {
        Ok(code @ 400..=599) if (200..300).contains(&status) => code,
        Ok(_) | Err(_) => status,
    }
}

/// A body that is not JSON-RPC. A page comes from a server before the node, so that only its status
/// counts; a plain text never marks a method as unsupported.
fn of_text(status: u16, text: &str, method: &str, in_batch: bool) -> RetryDecision {
    let text = beginning(text);
    let error = ErrorParts { text: &text, code: None, method, in_batch };
    let is_page = text.trim_start().starts_with('<');
    let by_words = if is_page { None } else { error.by(table(method)) };
    by_words
        .filter(|decision| *decision != RetryDecision::Unsupported)
        .or_else(|| by_status(status, false, method, in_batch))
        .unwrap_or(RetryDecision::Retry)
}

/// `is_rpc`: the body was a JSON-RPC error, so that the request reached the node.
fn by_status(status: u16, is_rpc: bool, method: &str, in_batch: bool) -> Option<RetryDecision> {
    match status {
        401..=403 => Some(RetryDecision::Refused),
        404 | 405 | 410 | 501 if is_rpc => Some(RetryDecision::Unsupported),
        status if TIME_OUTS.contains(&i64::from(status)) => Some(timed_out(method)),
        413 => Some(too_large(method, in_batch)),
        429 | 529 => Some(RetryDecision::SlowDown),
        404 | 405 | 410 | 500..=599 => Some(RetryDecision::Retry),
        _ => None,
    }
}

fn too_large(method: &str, in_batch: bool) -> RetryDecision {
    match (in_batch, Methods::Ranges.include(method)) {
        (true, _) => RetryDecision::ReduceBatch,
        (false, true) => RetryDecision::ReduceRange,
        (false, false) => RetryDecision::RetryElsewhere,
    }
}

/// Whether the endpoint, or a server before it, took too long: fewer calls at once may help.
pub(super) fn is_time_out(failure: &Failure) -> bool {
    match failure {
        Failure::Transport(error) => *error == TransportError::Timeout,
        Failure::Http { status, .. } => TIME_OUTS.contains(&i64::from(*status)),
        Failure::Rpc { status, code, .. } => {
            TIME_OUTS.contains(&i64::from(status_of(*status, *code)))
        }
        Failure::Rejected { .. } | Failure::Missing => false,
    }
}

/// Whether the failure may be one of the call alone: other statuses concern the endpoint, or a
/// server before it.
pub(super) fn may_be_of_call(failure: &Failure) -> bool {
    match failure {
        Failure::Rpc { status, code, .. } => {
            matches!(status_of(*status, *code), 200..=299 | 400 | 500)
        }
        Failure::Rejected { status, .. } => matches!(status, 200..=299 | 400 | 500),
        Failure::Http { status, .. } => *status == 500,
        Failure::Transport(_) | Failure::Missing => false,
    }
}

/// A smaller range takes less time.
fn timed_out(method: &str) -> RetryDecision {
    if Methods::Ranges.include(method) { RetryDecision::ReduceRange } else { RetryDecision::Retry }
}

/// Whether an error of `eth_getLogs` asks for a smaller range.
pub(crate) fn is_range(code: i64, message: &str) -> bool {
    of_call("eth_getLogs", code, message) == RetryDecision::ReduceRange
}

/// Whether an error of `eth_getLogs` means that the endpoint does not keep blocks so old.
pub(crate) fn is_pruned(code: i64, message: &str) -> bool {
    let text = message.to_lowercase();
    of_call("eth_getLogs", code, message) == RetryDecision::RetryElsewhere
        && !words::holds(&text, words::BEHIND)
        && !text.contains("invalid block range")
}

/// Whether a node that lags may return the same error: one that something is missing, without a
/// word of states or old data.
pub(crate) fn may_be_behind(code: i64, message: &str) -> bool {
    let text = message.to_lowercase();
    let is_missing = MISSING_CODES.contains(&code) || words::holds(&text, words::MISSING);
    is_missing && !words::holds(&text, words::OLD)
}

/// Whether an error says that there is no such thing: a node answers then.
pub(super) fn is_unknown(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Rpc { code: UNKNOWN_SIGNATURE, .. })
}

/// Whether an error of `eth_call` means that the contract itself fails, on every node.
pub(crate) fn is_revert(code: i64, message: &str) -> bool {
    of_call("eth_call", code, message) == RetryDecision::Fatal
}

fn of_call(method: &str, code: i64, message: &str) -> RetryDecision {
    let failure = Failure::Rpc { status: 200, code, message: message.to_owned() };
    classify(&failure, method, false)
}
