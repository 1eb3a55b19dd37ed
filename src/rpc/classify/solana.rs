//! The table of Solana's nodes and of the services in front of them (custom codes -32001 to -32020:
//! agave `rpc-client-api`). Another node may have what one lacks.

use super::words::{ABSENT, BUSY, KEY, LONG, METHOD, PLAN, QUOTA, RATE, TEMPORARY};
use super::{Methods, Rule};
use crate::rpc::policy::RetryDecision::{
    Fatal, ReduceBatch, Refused, Retry, RetryElsewhere, SlowDown, Unsupported,
};

/// Agave's code for a signature that the node does not know; older ones answer `[]` or `null`.
pub(crate) const UNKNOWN_SIGNATURE: i64 = -32020;

/// The first matching row decides.
pub(super) const TABLE: &[Rule] = &[
    Rule::text(&["batch", "response too large", "response is too"], ReduceBatch).in_batch(),
    // Helius: this request needs more accounts than the node allows, at any rate.
    Rule::text(&["deprioritized", "narrow down"], RetryElsewhere),
    Rule::text(RATE, SlowDown).not(LONG),
    Rule::text(LONG, Refused),
    Rule::text(QUOTA, Refused),
    Rule::text(PLAN, Refused),
    Rule::text(KEY, Refused),
    // History that this node never keeps.
    Rule::code(&[-32011], Unsupported),
    // Blocks cleaned up; slots skipped, or missing in a snapshot or in long-term storage; excluded
    // from an index; an unknown transaction version; an unknown signature.
    Rule::code(&[-32001, -32007, -32009, -32010, -32015, UNKNOWN_SIGNATURE], RetryElsewhere),
    Rule::code(&[-32004], RetryElsewhere).on(Methods::Blocks),
    // Not available yet, unhealthy, behind, or without its long-term storage.
    Rule::code(&[-32004, -32005, -32014, -32016, -32019], Retry),
    Rule::code(&[-32429], Refused),
    Rule::text(
        &["cleaned up", "does not exist on node", "pruned", "archive", "history is not available"],
        RetryElsewhere,
    ),
    // A page size or a filter that this provider does not take: it is asked another way.
    Rule::code(&[-32602], Fatal).on(Methods::Pages),
    Rule::text(METHOD, Unsupported).and(ABSENT).not(PARAMETER),
    Rule::code(&[-32601], Unsupported),
    Rule::text(BUSY, SlowDown),
    Rule::text(TEMPORARY, Retry),
    Rule::code(&[-32603], Retry),
];

/// A part of the request is unsupported, not the method.
const PARAMETER: &[&str] =
    &["invalid param", "parameter is", "argument", "encoding", "transaction version", "filter"];
