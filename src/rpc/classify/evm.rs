//! The table of EVM nodes and of the services in front of them.

use super::words::{ABSENT, BEHIND, BUSY, KEY, LONG, METHOD, PLAN, PRUNED, QUOTA, RATE, TEMPORARY};
use super::{Methods, Rule};
use crate::rpc::policy::RetryDecision::{
    Fatal, ReduceBatch, ReduceRange, Refused, Retry, RetryElsewhere, SlowDown, Unsupported,
};

/// The first matching rule decides.
pub(super) const TABLE: &[Rule] = &[
    // A revert has its own code (go-ethereum's RPC errors with data).
    Rule::code(&[3], Fatal),
    Rule::text(REVERTED, Fatal),
    Rule::text(FAULTS, Fatal).on(Methods::Runs),
    // The caller retries without the category.
    Rule { codes: &[-32602, -32600, -32000], ..Rule::text(CATEGORY, Fatal) }.on(Methods::Transfers),
    Rule::text(BATCH, ReduceBatch).in_batch(),
    Rule::text(TOO_LARGE, ReduceBatch).in_batch(),
    Rule::text(RATE, SlowDown).not(LONG),
    Rule::text(BEHIND, RetryElsewhere).on(Methods::Past).not(RANGE),
    Rule::text(INVALID_RANGE, RetryElsewhere).on(Methods::Ranges).not(BOUNDED),
    // Before the rules on ranges: go-ethereum, erigon and reth on pruned blocks.
    Rule::text(&["prun", "proof window"], RetryElsewhere).on(Methods::Past),
    Rule::text(RANGE, ReduceRange).on(Methods::Ranges),
    Rule::text(&["limited to", "up to", "at most", "maximum is"], ReduceRange)
        .and(&["block", "range"])
        .on(Methods::Ranges),
    Rule::text(TOO_LARGE, ReduceRange).on(Methods::Ranges),
    Rule::text(LOGS_TIME, ReduceRange).on(Methods::Ranges),
    // BNB Chain's public nodes, and any other -32005 whose text names no rate.
    Rule::text(&["limit exceeded"], ReduceRange).on(Methods::Ranges).not(LONG),
    // A node that traces only some blocks may require a plan for the others.
    Rule::text(PLAN, Refused).on(Methods::Traces).not(TIME),
    Rule::text(PRUNED, RetryElsewhere).on(Methods::Past),
    Rule::text(LONG, Refused),
    Rule::text(QUOTA, Refused),
    Rule::text(PLAN, Refused).not(TIME),
    Rule::text(KEY, Refused),
    // The node has not indexed the transaction yet, or has pruned it.
    Rule::text(&["transaction", "tx "], RetryElsewhere).and(&["not found"]).on(Methods::Past),
    Rule::text(METHOD, Unsupported).and(ABSENT).not(PARAMETER),
    Rule::code(&[-32601, -32004, -32075], Unsupported).not(PARAMETER),
    Rule::text(BUSY, SlowDown),
    Rule::text(TEMPORARY, Retry),
    // Ranges: BlockPI, QuickNode, Arbitrum's and Moonbeam's gateways.
    Rule::code(&[-32062, -32614, -32012], ReduceRange).on(Methods::Ranges),
    // EIP-4444; PublicNode, Nethermind, EIP-1474's missing resource, dRPC's unknown block and
    // state.
    Rule::code(&[4444, -32701, -32801, -32001, -32002, 26, 27], RetryElsewhere).on(Methods::Past),
    // Infura, proxyd, Ankr, QuickNode.
    Rule::code(&[-32005, -32016, -32029, -32090, -32097, -32007], SlowDown),
    Rule::code(&[-32429, 35], Refused),
    // Internal; proxyd's backends; dRPC's route, temporary error and time-out.
    Rule::code(&[-32603, -32010, -32011, -32012, -32013, -32014, -32015, 12, 19, 30], Retry),
];

/// A network that lacks a category of asset transfers.
const CATEGORY: &[&str] = &["categor", "internal transfer"];
/// The EVM execution fails, on every node.
const REVERTED: &[&str] = &["execution reverted", "transaction reverted", "vm execution error"];
/// The same in the words of the clients (go-ethereum `core/vm/errors.go`, Nethermind, Besu).
pub(super) const FAULTS: &[&str] = &[
    "out of gas",
    "invalid opcode",
    "invalid jump",
    "invalid instruction",
    "bad instruction",
    "stack underflow",
    "stack limit",
    "stack overflow",
    "gas required exceeds",
    "intrinsic gas",
    "write protection",
    "return data out of bounds",
    "invalid code",
    "max call depth",
    "revert",
];
const BATCH: &[&str] = &["batch"];
const TOO_LARGE: &[&str] = &[
    "response size",
    "response too large",
    "response is too large",
    "response is too big",
    "response exceeds",
    "body too large",
    "payload too large",
    "entity too large",
];
/// More blocks or more logs than a node returns at once: the caller must reduce the range.
/// Providers' texts for `eth_getLogs`, which share their codes with rate limits.
const RANGE: &[&str] = &[
    "block range",
    "blocks range",
    "range of blocks",
    "range is too",
    "range too",
    "range limit",
    "range exceeds",
    "range exceeded",
    "max range",
    "maximum range",
    "range allowed",
    "range threshold",
    "exceeds limit of",
    "exceeded max allowed",
    "exceed max",
    "exceeds max",
    "returned more than",
    "max results",
    "too many results",
    "too many logs",
    "too many blocks",
    "requested blocks",
    "limit the query to",
    "blocks are not supported",
    "narrow your filter",
    "smaller range",
    "reduce the range",
    "query exceeds",
    "result set",
    "results limit",
    "log limit",
];
/// Texts of nodes that end a log query for its time: a smaller range takes less.
const LOGS_TIME: &[&str] = &[
    "deadline exceeded",
    "timeout",
    "time-out",
    "timed out",
    "took too long",
    "takes too long",
    "taking too long",
    "time limit",
    "query cancel",
];
const TIME: &[&str] = &["timeout", "timed out", "temporar"];
/// The node rejects the range because it is behind the head; no limit is named.
const INVALID_RANGE: &[&str] = &["invalid block range"];
const BOUNDED: &[&str] = &["exceed", "too", "max", "limit", "wide", "than"];
/// A parameter is unsupported, not the method.
const PARAMETER: &[&str] = &[
    "param",
    "argument",
    "encoding",
    "transaction version",
    "transaction type",
    "tracer",
    "block tag",
    "finalized",
    "safe block",
    "field",
];
