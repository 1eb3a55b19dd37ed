//! Why a chain could not be read, with labels of endpoints, never their URLs.

use crate::domain::Height;

pub(crate) type Result<T, E = UpstreamError> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    #[error("no endpoint is configured")]
    NoEndpoint,
    /// Every attempt within the retry time failed, or none was possible.
    #[error("{}{last}", tried(*attempts))]
    Unavailable { attempts: u32, last: String },
    /// The node answered with an error that a retry does not change.
    #[error("{endpoint} refuses: {message} (code {code})")]
    Rpc { endpoint: String, code: i64, message: String },
    /// Every endpoint that could serve the method refuses it for lack of a key, a plan or a quota.
    #[error("{endpoint} refuses {method}: {reason}")]
    Refused { endpoint: String, method: String, reason: String },
    #[error("no endpoint offers {method}")]
    NotSupported { method: String },
    #[error("{endpoint} answers what cannot be understood: {what}")]
    Malformed { endpoint: String, what: String },
    #[error("the nodes keep blocks only from height {first}")]
    HistoryCut { first: Height },
    #[error("{endpoint} is a node of another chain")]
    WrongChain { endpoint: String },
    #[error("{reason}")]
    NotAWallet { reason: String },
}

impl UpstreamError {
    /// An error after one attempt that may succeed later.
    pub(crate) fn unavailable(last: impl Into<String>) -> Self {
        Self::Unavailable { attempts: 1, last: last.into() }
    }

    /// Whether the call may be at fault and not the endpoints: they were queried, and returned an
    /// error for it or no answer.
    pub(crate) fn may_be_of_call(&self) -> bool {
        matches!(self, Self::Rpc { .. } | Self::Unavailable { attempts: 1.., .. })
    }

    /// Whether a retry soon would give the same error.
    pub fn is_final(&self) -> bool {
        match self {
            Self::NoEndpoint
            | Self::Rpc { .. }
            | Self::NotSupported { .. }
            | Self::HistoryCut { .. }
            | Self::WrongChain { .. }
            | Self::NotAWallet { .. } => true,
            Self::Unavailable { .. } | Self::Refused { .. } | Self::Malformed { .. } => false,
        }
    }
}

fn tried(attempts: u32) -> String {
    match attempts {
        0 => String::new(),
        1 => "no answer: ".to_owned(),
        _ => format!("no answer after {attempts} tries, the last: "),
    }
}

/// The answer; `None` for an error that a node returns, such as a reverted call.
pub(crate) fn unless_refused<T>(answered: Result<T>) -> Result<Option<T>> {
    match answered {
        Err(UpstreamError::Rpc { .. }) => Ok(None),
        answered => answered.map(Some),
    }
}

/// The answer; `None` for an error that a retry soon would repeat.
pub(crate) fn unless_final<T>(answered: Result<T>) -> Result<Option<T>> {
    match answered {
        Err(error) if error.is_final() => Ok(None),
        answered => answered.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_speaks_of_tries_only_where_there_were_some() {
        for (attempts, expected) in [
            (0, "all endpoints are disabled for now"),
            (1, "no answer: all endpoints are disabled for now"),
            (2, "no answer after 2 tries, the last: all endpoints are disabled for now"),
        ] {
            let last = "all endpoints are disabled for now".to_owned();
            assert_eq!(UpstreamError::Unavailable { attempts, last }.to_string(), expected);
        }
    }
}
