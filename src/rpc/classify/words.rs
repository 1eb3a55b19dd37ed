//! Phrases by which services describe errors, in lower case: from providers' documentation,
//! clients' sources and recorded answers (../shared/corpus/refusals names them).

pub(crate) fn holds(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Too many requests for now; waiting helps.
pub(crate) const RATE: &[&str] = &[
    "rate limit",
    "rate-limit",
    "ratelimit",
    "rate exceeded",
    "request rate",
    "call rate",
    "too many request",
    "too many connections",
    "too many concurrent",
    "concurrent request",
    "per sec",
    "/sec",
    "per minute",
    "(rps)",
    "throttl",
    "slow down",
    "frequency limit",
    "max rate",
    "retry in ",
    "error code: 1015",
];

/// Limits over a period so long that a retry does not help.
pub(crate) const QUOTA: &[&str] = &["quota", "usage limit", "allowance of"];

/// The same, named by period or price; these win over a rate limit in the same text.
pub(crate) const LONG: &[&str] = &[
    "daily",
    "per day",
    "requests a day",
    "/day",
    "24 hours",
    "24h",
    "monthly",
    "per month",
    "/month",
    "credits",
    "max usage",
    "usage exceeded",
    "exceeded your plan",
    "out of cu",
    "payment required",
    "insufficient balance",
];

/// A missing or wrong key, or a client address that is not served.
pub(crate) const KEY: &[&str] = &[
    "unauthorized",
    "unauthorised",
    "not authorized",
    "authenticat",
    "authorization",
    "api key",
    "api-key",
    "apikey",
    "api_key",
    "access key",
    "access token",
    "personal token",
    "auth token",
    "invalid token",
    "missing token",
    "invalid key",
    "project id",
    "project-id",
    "jwt",
    "credential",
    "forbidden",
    "permission denied",
    "access denied",
    "access restricted",
    "blocked",
    "blacklist",
    "denylist",
    "banned",
    "allowlist",
    "not whitelisted for",
    "origin not allowed",
    "origin is not allowed",
    "suspended account",
    "account suspended",
    "account is disabled",
    "is inactive",
    "not active",
    "deactivated",
    "subscription",
];

/// The plan does not include the method.
pub(crate) const PLAN: &[&str] = &[
    "upgrade",
    "paid plan",
    "free plan",
    "free tier",
    "freetier",
    "free api access",
    "current plan",
    "your plan",
    "this plan",
    "paid tier",
    "paid customers",
    "premium",
    "enterprise",
    "pricing",
    "billing",
];

pub(crate) const TEMPORARY: &[&str] = &[
    "timeout",
    "time-out",
    "timed out",
    "deadline exceeded",
    "took too long",
    "temporar",
    "unavailable",
    "internal error",
    "internal server error",
    "internal json-rpc error",
    "try again",
    "please retry",
    "retry later",
    "overload",
    "high network activity",
    "maintenance",
    "bad gateway",
    "backend",
    "upstream",
    "no healthy",
    "not healthy",
    "unhealthy",
    "is behind",
    "syncing",
    "minimum context slot",
    "connection refused",
    "connection reset",
    "shutting down",
    "starting up",
    "can't route",
    "cannot route",
    "no provider",
    "no available",
    "no response",
    "not responding",
];

/// Overload: fewer requests help.
pub(crate) const BUSY: &[&str] =
    &["busy", "over capacity", "at capacity", "lack of computing resources"];

/// Words for a method as a whole.
pub(crate) const METHOD: &[&str] = &["method", "rpc call", "module", "namespace"];

/// Phrases for something that is missing or disabled.
pub(crate) const ABSENT: &[&str] = &[
    "not found",
    "not exist",
    "not available",
    "not support",
    "unsupported",
    "not implemented",
    "not enabled",
    "not allowed",
    "not permitted",
    "not whitelisted",
    "not offered",
    "disabled",
    "is closed",
    "not open",
    "unknown",
    "no such",
    "deprecated",
];

pub(crate) const BEHIND: &[&str] = &[
    "beyond current head",
    "beyond the current head",
    "beyond head",
    "after last accepted block",
    "unfinalized data",
    "invalid block range params",
    "block range extends",
    "greater than latest",
    "higher than the latest",
    "future block",
    "is in the future",
];

/// Blocks, receipts or states are pruned, in words other than "prun".
pub(crate) const PRUNED: &[&str] = &[
    "missing trie node",
    "header not found",
    "header for hash not found",
    "historical",
    "history unavailable",
    "history is not available",
    "history is unavailable",
    "old data not available",
    "ancient block",
    "ancient data",
    "state not available",
    "state is not available",
    "state unavailable",
    "no state available",
    "state already discarded",
    "state histories",
    "state has been",
    "unknown state",
    "data before",
    "archive",
    "archival",
    "unknown block",
    "block not found",
    "could not find block",
    "block is out of range",
    "block out of range",
    "before the earliest",
    "earliest available",
    "first available",
    "cleaned up",
    "does not exist on node",
    "not be served by this node",
    "missing block",
    "receipts not available",
    "receipts are not available",
    "resource not found",
    "resource unavailable",
];

/// Blocks or transactions that a node does not have: not yet, or no longer.
pub(crate) const MISSING: &[&str] =
    &["not found", "not find", "unknown block", "missing block", "out of range"];

/// Words for data that a node has pruned or never keeps.
pub(crate) const OLD: &[&str] = &[
    "state",
    "trie",
    "prun",
    "histor",
    "archiv",
    "ancient",
    "old data",
    "earliest",
    "first available",
    "cleaned up",
];
