//! What can go wrong with a request, as a client sees it: one status and one stable code each.
//!
//! A body is two forms in one object: `error {code, message, timestamp, requestId}`, which clients
//! of the hosted service read, and the members of RFC 9457, whose `type` holds the finer code.

use std::time::Duration;

use warp::http::StatusCode;

use super::gate::RateState;
use crate::domain::{AddressError, Doubts};
use crate::history::HistoryError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ApiError {
    #[error("parameter address: {rule}")]
    InvalidAddress { rule: AddressError },
    #[error("path segment address: its percent-encoding is not valid UTF-8")]
    UnreadableAddress,
    #[error("parameter chain: there is no chain {name:?}; the chains are {slugs}")]
    UnknownChain { name: String, slugs: String },
    #[error("parameter limit: expected an integer; values below 1 count as 1, there is no maximum")]
    InvalidLimit,
    #[error(
        "parameter cursor: it is damaged, or was given for another wallet, chain or filter, or by a \
         stream with follow=1; send it exactly as received, with the same parameters"
    )]
    InvalidCursor,
    #[error("parameter {name}: {rule}")]
    InvalidParameter { name: &'static str, rule: &'static str },
    #[error("parameter token: {rule}")]
    InvalidToken { rule: AddressError },
    #[error("send a valid API key as `Authorization: Bearer <API_KEY>` or as `x-api-key`")]
    Unauthorized,
    #[error("this key may not read chain {slug}")]
    ChainNotAllowed { slug: String },
    #[error("parameter {name:?} is not known: {known} was meant, or leave it out")]
    MisspeltParameter { name: String, known: &'static str },
    #[error("{0}")]
    Ambiguous(&'static str),
    #[error(
        "this server does not answer to the name in the host header; ask it by an address of \
         loopback, or add the name to `server.allowed_hosts`"
    )]
    Misdirected,
    #[error("the body is read as JSON alone: send content-type: application/json")]
    NotJson,
    #[error("there is nothing at this path; see GET /v1/wallets/{{address}}/history")]
    NotFound,
    #[error("this path answers {allowed} only")]
    MethodNotAllowed { allowed: &'static str },
    #[error("addresses[{at}]: {rule}")]
    InvalidAddressAt { at: usize, rule: AddressError },
    #[error("body: {rule}")]
    InvalidBody { rule: String },
    #[error("estimates are switched off here; see `estimates` in the configuration")]
    EstimatesDisabled,
    #[error("the rate of requests is used up")]
    RateLimited { state: RateState, wait: Duration },
    #[error("the key has {max} streams open, which is its maximum; close one first")]
    TooManyStreams { max: u32 },
    #[error("the server has too many streams open; try again shortly")]
    StreamsFull,
    #[error("gains are worked out for {max} requests of this key, which is its maximum")]
    TooManyPnl { max: usize },
    #[error("gains are worked out for as many requests as the server takes; try again shortly")]
    PnlFull,
    #[error(
        "the wallet has more than the {max} trades for which gains are worked out here; read its \
         history, as `blotter pnl` does"
    )]
    TooManyTrades { max: u64 },
    #[error("{0}")]
    History(HistoryError),
}

impl From<HistoryError> for ApiError {
    fn from(error: HistoryError) -> Self {
        Self::History(error)
    }
}

/// A kind of failure that clients can distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FailureKind {
    pub(super) status: StatusCode,
    /// The `error.code`, coarse.
    pub(super) group: &'static str,
    /// The last part of `type`, fine.
    pub(super) code: &'static str,
    pub(super) title: &'static str,
}

const fn kind(
    status: StatusCode,
    group: &'static str,
    code: &'static str,
    title: &'static str,
) -> FailureKind {
    FailureKind { status, group, code, title }
}

const fn invalid(code: &'static str, title: &'static str) -> FailureKind {
    kind(StatusCode::BAD_REQUEST, "VALIDATION_ERROR", code, title)
}

const fn unavailable(group: &'static str, code: &'static str, title: &'static str) -> FailureKind {
    kind(StatusCode::SERVICE_UNAVAILABLE, group, code, title)
}

const INVALID_ADDRESS: FailureKind = invalid("invalid_address", "Invalid wallet address");
const UNKNOWN_CHAIN: FailureKind = invalid("unknown_chain", "Unknown chain");
const CHAIN_DISABLED: FailureKind = invalid("chain_disabled", "Chain not enabled");
const INVALID_LIMIT: FailureKind = invalid("invalid_limit", "Invalid limit");
const INVALID_CURSOR: FailureKind = invalid("invalid_cursor", "Invalid cursor");
const INVALID_PARAMETER: FailureKind = invalid("invalid_parameter", "Invalid parameter");
const NOT_A_WALLET: FailureKind = invalid("not_a_wallet", "Not a wallet");
const UNAUTHORIZED: FailureKind =
    kind(StatusCode::UNAUTHORIZED, "INVALID_SESSION", "unauthorized", "Unauthorized");
const CHAIN_NOT_ALLOWED: FailureKind =
    kind(StatusCode::FORBIDDEN, "FORBIDDEN", "chain_not_allowed", "Chain not allowed");
const BAD_REQUEST: FailureKind = invalid("bad_request", "Ambiguous request");
const MISDIRECTED: FailureKind = kind(
    StatusCode::MISDIRECTED_REQUEST,
    "MISDIRECTED_REQUEST",
    "misdirected",
    "Not the name of this server",
);
const UNSUPPORTED_MEDIA_TYPE: FailureKind = kind(
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    "UNSUPPORTED_MEDIA_TYPE",
    "unsupported_media_type",
    "Unsupported media type",
);
const INVALID_BODY: FailureKind = invalid("invalid_body", "Invalid request body");
const ESTIMATES_DISABLED: FailureKind =
    kind(StatusCode::FORBIDDEN, "FORBIDDEN", "estimates_disabled", "Estimates switched off");
const NOT_FOUND: FailureKind = kind(StatusCode::NOT_FOUND, "NOT_FOUND", "not_found", "Not found");
const METHOD_NOT_ALLOWED: FailureKind = kind(
    StatusCode::METHOD_NOT_ALLOWED,
    "METHOD_NOT_ALLOWED",
    "method_not_allowed",
    "Method not allowed",
);
const QUOTA_EXCEEDED: FailureKind =
    kind(StatusCode::PAYMENT_REQUIRED, "QUOTA_EXCEEDED", "quota_exceeded", "Quota exceeded");
const RATE_LIMITED: FailureKind =
    kind(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", "rate_limited", "Too many requests");
const TOO_MANY_STREAMS: FailureKind = kind(
    StatusCode::TOO_MANY_REQUESTS,
    "TOO_MANY_STREAMS",
    "too_many_streams",
    "Too many open streams",
);
const TOO_MANY_TRADES: FailureKind =
    kind(StatusCode::UNPROCESSABLE_ENTITY, "TOO_MANY_TRADES", "too_many_trades", "Too many trades");
const UPSTREAM_UNAVAILABLE: FailureKind =
    unavailable("UPSTREAM_UNAVAILABLE", "upstream_unavailable", "No node answers");
const OVERLOADED: FailureKind = unavailable("OVERLOADED", "overloaded", "Overloaded");
const SHUTTING_DOWN: FailureKind = unavailable("SHUTTING_DOWN", "shutting_down", "Shutting down");
const HISTORY_CUT: FailureKind = kind(
    StatusCode::BAD_GATEWAY,
    "HISTORY_CUT",
    "history_cut",
    "The nodes do not keep the whole history",
);
const HISTORY_UNPROVED: FailureKind =
    unavailable("HISTORY_UNPROVED", "history_unproved", "The history is not proved complete yet");
const HISTORY_CHANGED: FailureKind = kind(
    StatusCode::CONFLICT,
    "HISTORY_CHANGED",
    "history_changed",
    "The history changed above the cursor",
);
const INTERNAL: FailureKind =
    kind(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", "internal", "Internal error");

impl FailureKind {
    /// The member `type` of an error.
    pub(super) fn uri(&self) -> String {
        format!("/errors/{}", self.code)
    }
}

impl ApiError {
    pub(super) fn kind(&self) -> FailureKind {
        match self {
            Self::InvalidAddress { .. }
            | Self::InvalidAddressAt { .. }
            | Self::UnreadableAddress => INVALID_ADDRESS,
            Self::InvalidBody { .. } => INVALID_BODY,
            Self::EstimatesDisabled => ESTIMATES_DISABLED,
            Self::UnknownChain { .. } => UNKNOWN_CHAIN,
            Self::InvalidLimit => INVALID_LIMIT,
            Self::InvalidCursor => INVALID_CURSOR,
            Self::InvalidParameter { .. }
            | Self::InvalidToken { .. }
            | Self::MisspeltParameter { .. } => INVALID_PARAMETER,
            Self::Ambiguous(_) => BAD_REQUEST,
            Self::Misdirected => MISDIRECTED,
            Self::NotJson => UNSUPPORTED_MEDIA_TYPE,
            Self::Unauthorized => UNAUTHORIZED,
            Self::ChainNotAllowed { .. } => CHAIN_NOT_ALLOWED,
            Self::NotFound => NOT_FOUND,
            Self::MethodNotAllowed { .. } => METHOD_NOT_ALLOWED,
            Self::RateLimited { .. } => RATE_LIMITED,
            Self::TooManyStreams { .. } | Self::TooManyPnl { .. } => TOO_MANY_STREAMS,
            Self::StreamsFull | Self::PnlFull => OVERLOADED,
            Self::TooManyTrades { .. } => TOO_MANY_TRADES,
            Self::History(error) => history_kind(error),
        }
    }

    /// The text for the client. What the store says about itself stays in the log.
    pub(super) fn message(&self) -> String {
        if self.kind() == INTERNAL {
            return "something failed inside the server; it was logged with this request's id"
                .to_owned();
        }
        self.to_string()
    }

    /// Whether the same request can succeed later, as it stands.
    pub(super) fn is_retryable(&self) -> bool {
        let kind = self.kind();
        // What no endpoint gives may never come: a client that loops until complete stops here.
        if let Self::History(HistoryError::Unproved { doubts, .. }) = self
            && doubts.contains(Doubts::MISSING)
        {
            return false;
        }
        let passes = kind.status.is_server_error() && kind != HISTORY_CUT;
        passes || kind.status == StatusCode::TOO_MANY_REQUESTS
    }

    /// What the client should wait before the same request can succeed; `None` where waiting does
    /// not help.
    pub(super) fn retry_after(&self, usual: Duration) -> Option<Duration> {
        if let Self::RateLimited { wait, .. } = self {
            return Some(*wait);
        }
        let passing = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
        passing.contains(&self.kind().status).then_some(usual)
    }
}

fn history_kind(error: &HistoryError) -> FailureKind {
    match error {
        HistoryError::UpstreamUnavailable { .. } => UPSTREAM_UNAVAILABLE,
        HistoryError::NotAWallet { .. } => NOT_A_WALLET,
        HistoryError::ChainDisabled => CHAIN_DISABLED,
        HistoryError::HistoryCut { .. } => HISTORY_CUT,
        HistoryError::Unproved { .. } => HISTORY_UNPROVED,
        HistoryError::Changed => HISTORY_CHANGED,
        HistoryError::QuotaExceeded => QUOTA_EXCEEDED,
        HistoryError::KeyEnded => UNAUTHORIZED,
        HistoryError::Overloaded => OVERLOADED,
        HistoryError::ShuttingDown => SHUTTING_DOWN,
        HistoryError::Store { .. } | HistoryError::Internal => INTERNAL,
    }
}
