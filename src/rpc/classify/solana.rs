//! The table of Solana's nodes and of the services in front of them (custom codes -32001 to -32020:
//! agave `rpc-client-api`). What one node lacks another one may keep.

use super::Rule;
use super::words::{ABSENT, BUSY, KEY, LONG, METHOD, PLAN, QUOTA, RATE, TEMPORARY};
use crate::rpc::policy::RetryDecision::{
    ReduceBatch, Refused, Retry, RetryElsewhere, SlowDown, Unsupported,
};

/// The first line that fits decides.
pub(super) const TABLE: &[Rule] = &[
    Rule::text(&["batch", "response too large", "response is too"], ReduceBatch).in_batch(),
    // Helius: this request asks for more accounts than the node gives, whatever the rate.
    Rule::text(&["deprioritized", "narrow down"], RetryElsewhere),
    Rule::text(RATE, SlowDown).not(LONG),
    Rule::text(LONG, Refused),
    Rule::text(QUOTA, Refused),
    Rule::text(PLAN, Refused),
    Rule::text(KEY, Refused),
    // History that this node never keeps.
    Rule::code(&[-32011], Unsupported),
    // Blocks cleaned up; slots skipped, or missing in a snapshot or in long-term storage; excluded
    // from an index; a version of transactions that it does not know; a signature that it does not.
    Rule::code(&[-32001, -32007, -32009, -32010, -32015, -32020], RetryElsewhere),
    // Not there yet, unhealthy, behind, or its long-term storage is not to be reached.
    Rule::code(&[-32004, -32005, -32014, -32016, -32019], Retry),
    Rule::code(&[-32429], Refused),
    Rule::text(
        &["cleaned up", "does not exist on node", "pruned", "archive", "history is not available"],
        RetryElsewhere,
    ),
    Rule::text(METHOD, Unsupported).and(ABSENT).not(PARAMETER),
    Rule::code(&[-32601], Unsupported),
    Rule::text(BUSY, SlowDown),
    Rule::text(TEMPORARY, Retry),
    Rule::code(&[-32603], Retry),
];

/// What is not supported is a part of the request, not the method.
const PARAMETER: &[&str] =
    &["invalid param", "parameter is", "argument", "encoding", "transaction version", "filter"];
