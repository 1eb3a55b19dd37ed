//! The errors of requests as clients see them, each with a status and a stable code.
//!
//! A body combines two formats: `error {code, message, timestamp, requestId}`, which clients of the
//! hosted service read, and the members of RFC 9457, whose `type` holds the finer code.

use std::borrow::Cow;
use std::time::Duration;

use warp::http::StatusCode;

use super::rate_limit::RateState;
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
    TooManyStreams { max: u32, rate: Option<RateState> },
    #[error("the server has too many streams open; try again shortly")]
    StreamsFull,
    #[error("gains are worked out for {max} requests of this key, which is its maximum")]
    TooManyPnl { max: usize, rate: Option<RateState> },
    #[error("gains are worked out for as many requests as the server takes; try again shortly")]
    PnlFull,
    #[error("{max} transactions are being explained for this key, which is its maximum")]
    TooManyExplained { max: usize, rate: Option<RateState> },
    #[error("as many transactions are being explained as the server takes; try again shortly")]
    ExplainedFull,
    #[error(
        "the wallet has more than the {max} trades for which gains are worked out here; read its \
         history, as `blotter pnl` does"
    )]
    TooManyTrades { max: u64 },
    #[error(
        "parameter signature: no node of {slug} knows this transaction; it is not final yet, or of \
         another chain: see `chain`"
    )]
    UnknownTransaction { slug: String },
    #[error(
        "the server has too many connections open, at all or from this address; try again shortly"
    )]
    ConnectionsFull,
    #[error("{0}")]
    History(HistoryError),
    #[error("addresses[{at}]: {error}")]
    HistoryAt { at: usize, error: HistoryError },
}

impl From<HistoryError> for ApiError {
    fn from(error: HistoryError) -> Self {
        Self::History(error)
    }
}

impl From<(RateState, Duration)> for ApiError {
    fn from((state, wait): (RateState, Duration)) -> Self {
        Self::RateLimited { state, wait }
    }
}

/// A kind of failure that clients can distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FailureKind {
    pub(super) status: StatusCode,
    /// The fine code, the last part of `type`.
    pub(super) code: &'static str,
    pub(super) title: &'static str,
}

const fn kind(status: StatusCode, code: &'static str, title: &'static str) -> FailureKind {
    FailureKind { status, code, title }
}

const fn invalid(code: &'static str, title: &'static str) -> FailureKind {
    kind(StatusCode::BAD_REQUEST, code, title)
}

const fn unavailable(code: &'static str, title: &'static str) -> FailureKind {
    kind(StatusCode::SERVICE_UNAVAILABLE, code, title)
}

/// Without the reason, which is for the operator and logged.
const STORAGE_FULL: &str = "the server's storage is full or read-only, so that nothing more is loaded until its \
    operator changes that; what is stored is served, and no cursor expires: ask again later";

/// The same for a database that does not answer or takes no writes.
const STORAGE_UNAVAILABLE: &str = "the server's database does not answer at the moment, or takes \
    no writes; no cursor expires: ask again shortly";

const UNAUTHORIZED: FailureKind = kind(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized");
const OVERLOADED: FailureKind = unavailable("overloaded", "Overloaded");

impl FailureKind {
    /// The coarse `error.code`: that of the hosted service, else the code in capitals.
    pub(super) fn group(&self) -> Cow<'static, str> {
        match self.status {
            StatusCode::BAD_REQUEST => "VALIDATION_ERROR".into(),
            StatusCode::UNAUTHORIZED => "INVALID_SESSION".into(),
            StatusCode::FORBIDDEN => "FORBIDDEN".into(),
            StatusCode::MISDIRECTED_REQUEST => "MISDIRECTED_REQUEST".into(),
            StatusCode::INTERNAL_SERVER_ERROR => "INTERNAL_ERROR".into(),
            _ => self.code.to_ascii_uppercase().into(),
        }
    }

    pub(super) fn uri(&self) -> String {
        format!("/errors/{}", self.code)
    }
}

impl ApiError {
    pub(super) fn kind(&self) -> FailureKind {
        use StatusCode as S;
        match self {
            Self::InvalidAddress { .. }
            | Self::InvalidAddressAt { .. }
            | Self::UnreadableAddress => invalid("invalid_address", "Invalid wallet address"),
            Self::InvalidBody { .. } => invalid("invalid_body", "Invalid request body"),
            Self::EstimatesDisabled => {
                kind(S::FORBIDDEN, "estimates_disabled", "Estimates switched off")
            }
            Self::UnknownChain { .. } => invalid("unknown_chain", "Unknown chain"),
            Self::InvalidLimit => invalid("invalid_limit", "Invalid limit"),
            Self::InvalidCursor => invalid("invalid_cursor", "Invalid cursor"),
            Self::InvalidParameter { .. }
            | Self::InvalidToken { .. }
            | Self::MisspeltParameter { .. } => invalid("invalid_parameter", "Invalid parameter"),
            Self::Ambiguous(_) => invalid("bad_request", "Ambiguous request"),
            Self::Misdirected => {
                kind(S::MISDIRECTED_REQUEST, "misdirected", "Not the name of this server")
            }
            Self::NotJson => {
                let title = "Unsupported media type";
                kind(S::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", title)
            }
            Self::Unauthorized => UNAUTHORIZED,
            Self::ChainNotAllowed { .. } => {
                kind(S::FORBIDDEN, "chain_not_allowed", "Chain not allowed")
            }
            Self::NotFound | Self::UnknownTransaction { .. } => {
                kind(S::NOT_FOUND, "not_found", "Not found")
            }
            Self::MethodNotAllowed { .. } => {
                kind(S::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed")
            }
            Self::RateLimited { .. } => {
                kind(S::TOO_MANY_REQUESTS, "rate_limited", "Too many requests")
            }
            Self::TooManyStreams { .. }
            | Self::TooManyPnl { .. }
            | Self::TooManyExplained { .. } => {
                kind(S::TOO_MANY_REQUESTS, "too_many_streams", "Too many open streams")
            }
            Self::StreamsFull | Self::PnlFull | Self::ExplainedFull | Self::ConnectionsFull => {
                OVERLOADED
            }
            Self::TooManyTrades { .. } => {
                kind(S::UNPROCESSABLE_ENTITY, "too_many_trades", "Too many trades")
            }
            Self::History(error) | Self::HistoryAt { error, .. } => history_kind(error),
        }
    }

    /// The text for the client, without details of the store, which are logged.
    pub(super) fn message(&self) -> String {
        if self.kind().status == StatusCode::INTERNAL_SERVER_ERROR {
            return "something failed inside the server; it was logged with this request's id"
                .to_owned();
        }
        if let Some(HistoryError::StoreFull { .. }) = self.of_history() {
            return STORAGE_FULL.to_owned();
        }
        if let Some(HistoryError::Store { .. }) = self.of_history() {
            return STORAGE_UNAVAILABLE.to_owned();
        }
        self.to_string()
    }

    pub(super) fn of_history(&self) -> Option<&HistoryError> {
        if let Self::History(error) | Self::HistoryAt { error, .. } = self {
            Some(error)
        } else {
            None
        }
    }

    /// Whether the same request can succeed later.
    pub(super) fn is_retryable(&self) -> bool {
        let kind = self.kind();
        // No endpoint may ever return what is missing, so a client must not retry until complete.
        if let Self::History(HistoryError::Unproved { doubts, .. }) = self
            && doubts.contains(Doubts::MISSING)
        {
            return false;
        }
        let passes = kind.status.is_server_error() && kind.status != StatusCode::BAD_GATEWAY;
        passes || kind.status == StatusCode::TOO_MANY_REQUESTS
    }

    /// How long the client should wait before a retry; `None` if waiting does not help.
    pub(super) fn retry_after(&self, usual: Duration) -> Option<Duration> {
        if let Self::RateLimited { wait, .. } = self {
            return Some(*wait);
        }
        let passing = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
        passing.contains(&self.kind().status).then_some(usual)
    }
}

fn history_kind(error: &HistoryError) -> FailureKind {
    use HistoryError as E;
    use StatusCode as S;
    match error {
        E::UpstreamUnavailable { .. } => unavailable("upstream_unavailable", "No node answers"),
        E::NotAWallet { .. } => invalid("not_a_wallet", "Not a wallet"),
        E::ChainDisabled => invalid("chain_disabled", "Chain not enabled"),
        E::HistoryCut { .. } => {
            kind(S::BAD_GATEWAY, "history_cut", "The nodes do not keep the whole history")
        }
        E::Unproved { .. } => {
            unavailable("history_unproved", "The history is not proved complete yet")
        }
        E::Changed => kind(S::CONFLICT, "history_changed", "The history changed above the cursor"),
        E::NotEstimable { .. } => {
            kind(S::FORBIDDEN, "estimates_disabled", "No estimates of this chain")
        }
        E::QuotaExceeded => kind(S::PAYMENT_REQUIRED, "quota_exceeded", "Quota exceeded"),
        E::KeyEnded => UNAUTHORIZED,
        E::Overloaded => OVERLOADED,
        E::ShuttingDown => unavailable("shutting_down", "Shutting down"),
        E::StoreFull { .. } => unavailable("storage_full", "The storage is full"),
        E::Store { may_pass: true, .. } => {
            unavailable("storage_unavailable", "The storage does not answer")
        }
        E::Store { .. } | E::Internal => {
            kind(S::INTERNAL_SERVER_ERROR, "internal", "Internal error")
        }
    }
}
