//! Classifies failed calls, counts them by kind, and closes idle connections after some kinds.

use std::error::Error as _;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::CertificateError;
use tokio::time::Instant;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::LIMITS;
use super::call::CallError;
use super::connect::{ConnectionPool, PoolError};
use crate::domain::lock;
use crate::store::{StoreError, StoreFailure};

#[derive(Debug)]
pub(super) struct Failures {
    pool: ConnectionPool,
    counts: [AtomicU64; StoreFailure::ALL.len()],
    /// When the lease was last renewed, which takes a database that answers and takes writes.
    last_renewal: Mutex<Option<Instant>>,
}

impl Failures {
    pub(super) fn new(pool: ConnectionPool) -> Self {
        Self { pool, counts: Default::default(), last_renewal: Mutex::default() }
    }

    pub(super) fn renewed(&self) {
        *lock(&self.last_renewal) = Some(Instant::now());
    }

    /// Until when a call that begins now is retried.
    pub(super) fn retry_until(&self) -> Instant {
        let now = Instant::now();
        let usual = now + LIMITS.retry_for;
        let Some(last) = *lock(&self.last_renewal) else { return usual };
        let of_outage = last + LIMITS.heartbeat + LIMITS.retry_for;
        of_outage.max(now + LIMITS.retry_in_outage).min(usual)
    }

    /// Records a failure. Idle connections lead to the same server: if it does not answer, or takes
    /// no writes, they are closed, so that the next call finds the current primary.
    pub(super) fn failed(&self, error: &CallError) {
        let Some(kind) = error.kind() else { return };
        let counts = self.counts.iter().zip(StoreFailure::ALL);
        for (count, _) in counts.filter(|(_, of)| *of == kind) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(kind, StoreFailure::Timeout | StoreFailure::ReadOnly) {
            self.pool.retain(|_, _| false);
        }
    }

    pub(super) fn counts(&self) -> Vec<(StoreFailure, u64)> {
        let read =
            |(count, kind): (&AtomicU64, StoreFailure)| (kind, count.load(Ordering::Relaxed));
        self.counts.iter().zip(StoreFailure::ALL).map(read).collect()
    }
}

impl CallError {
    /// `None` for an error of the store itself.
    pub(super) fn kind(&self) -> Option<StoreFailure> {
        match self {
            Self::Store(_) => None,
            Self::Late | Self::Pool(PoolError::Timeout(_)) => Some(StoreFailure::Timeout),
            Self::Pool(PoolError::Backend(error)) | Self::Database(error) => Some(kind(error)),
            Self::Pool(_) => Some(StoreFailure::Other),
        }
    }

    /// Whether a retry may find another primary, a free lock or an open connection.
    pub(super) fn is_transient(&self) -> bool {
        let is_untrusted = match self {
            Self::Pool(PoolError::Backend(error)) | Self::Database(error) => {
                distrust(error).is_some()
            }
            Self::Store(_) | Self::Late | Self::Pool(_) => false,
        };
        !is_untrusted && self.kind().is_some_and(|kind| kind != StoreFailure::Other)
    }

    pub(super) fn into_store(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Late => StoreError::Unreachable("no answer in time".to_owned()),
            Self::Pool(PoolError::Backend(error)) | Self::Database(error) => of_database(&error),
            Self::Pool(PoolError::Timeout(_)) => {
                StoreError::Unreachable("no connection in time".to_owned())
            }
            Self::Pool(PoolError::Closed) => StoreError::Closed,
            Self::Pool(error) => StoreError::Unreachable(error.to_string()),
        }
    }
}

fn kind(error: &Error) -> StoreFailure {
    let Some(state) = error.code() else {
        // The server reported no error: the connection was refused, cut or never made.
        let is_read_only =
            io_error(error).is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
        return if is_read_only { StoreFailure::ReadOnly } else { StoreFailure::Connection };
    };
    kind_of_state(state)
}

fn kind_of_state(state: &SqlState) -> StoreFailure {
    match *state {
        SqlState::READ_ONLY_SQL_TRANSACTION => StoreFailure::ReadOnly,
        SqlState::DISK_FULL => StoreFailure::Full,
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE => StoreFailure::Conflict,
        // Classes: connection failures, lack of resources, intervention by an operator.
        _ => match state.code().get(..2).unwrap_or_default() {
            "08" | "53" | "57" => StoreFailure::Connection,
            _ => StoreFailure::Other,
        },
    }
}

/// The error with a text of its own: the client's may contain an address.
fn of_database(error: &Error) -> StoreError {
    if let Some(reason) = distrust(error) {
        return StoreError::Unusable(reason.to_owned());
    }
    let unreachable = |reason: &str| StoreError::Unreachable(reason.to_owned());
    match (kind(error), error.as_db_error()) {
        (_, Some(error)) => of_state(error.code(), error.message()),
        (StoreFailure::ReadOnly, None) => unreachable("it takes no writes"),
        (_, None) if error.is_closed() => unreachable("the connection was cut"),
        (_, None) => unreachable(io_error(error).map_or("no connection", why_lost)),
    }
}

/// What the server itself reported.
fn of_state(state: &SqlState, text: &str) -> StoreError {
    let text = format!("{text} ({})", state.code());
    match kind_of_state(state) {
        StoreFailure::Full => StoreError::Unreachable("its disk is full".to_owned()),
        StoreFailure::ReadOnly => StoreError::Unreachable("it takes no writes".to_owned()),
        // It starts or stops, or all its connections are taken.
        StoreFailure::Connection => StoreError::Unreachable(text),
        StoreFailure::Timeout | StoreFailure::Conflict | StoreFailure::Other => {
            let advice = if *state == SqlState::INSUFFICIENT_PRIVILEGE {
                "; its user has to own the schema `blotter`, or to have the right to create it"
            } else {
                ""
            };
            StoreError::Engine(text + advice)
        }
    }
}

/// Why there is no connection, without the text of the system, which may contain an address.
fn why_lost(error: &io::Error) -> &'static str {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, TimedOut};
    let kind = error.kind();
    if kind == ConnectionRefused {
        "nothing listens at its address"
    } else if [HostUnreachable, NetworkUnreachable, TimedOut].contains(&kind) {
        "there is no way to its host"
    } else if error.to_string().starts_with("failed to lookup address") {
        "the name of its host is not known"
    } else {
        "no connection"
    }
}

/// The I/O error among its causes.
fn io_error(error: &Error) -> Option<&io::Error> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<io::Error>() {
            return Some(found);
        }
        next = cause.source();
    }
    None
}

/// Why TLS refuses the server, if it does.
fn distrust(error: &Error) -> Option<&'static str> {
    let cause = io_error(error).and_then(io::Error::get_ref);
    let cause = cause.and_then(|cause| cause.downcast_ref::<rustls::Error>());
    let reason = match cause {
        Some(rustls::Error::InvalidCertificate(reason)) => reason,
        Some(_) => return Some("the database and TLS do not agree on a connection"),
        None if is_without_tls(error) => return Some("the database offers no TLS"),
        None => return None,
    };
    Some(if matches!(reason, CertificateError::UnknownIssuer) {
        "the certificate of the database is of an authority that is not trusted: name its file by \
         sslrootcert in the address"
    } else if matches!(
        reason,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
    ) {
        "the certificate of the database is of another host name"
    } else if matches!(reason, CertificateError::Expired | CertificateError::ExpiredContext { .. })
    {
        "the certificate of the database has expired"
    } else {
        "the certificate of the database cannot be used"
    })
}

/// The client has no type for this error.
fn is_without_tls(error: &Error) -> bool {
    error.source().is_some_and(|cause| cause.to_string() == "server does not support TLS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_starts_or_has_no_connection_left_may_answer_later() {
        for (state, passes) in [
            (SqlState::CANNOT_CONNECT_NOW, true),
            (SqlState::ADMIN_SHUTDOWN, true),
            (SqlState::TOO_MANY_CONNECTIONS, true),
            (SqlState::DISK_FULL, true),
            (SqlState::READ_ONLY_SQL_TRANSACTION, true),
            (SqlState::UNDEFINED_TABLE, false),
            (SqlState::INSUFFICIENT_PRIVILEGE, false),
        ] {
            let error = of_state(&state, "text");
            assert_eq!(matches!(error, StoreError::Unreachable(_)), passes, "{error}");
        }
    }

    #[test]
    fn why_there_is_no_connection_is_said_without_an_address() {
        let unknown = "failed to lookup address information: db-1.example";
        for (error, expected) in [
            (io::Error::from(io::ErrorKind::ConnectionRefused), "nothing listens at its address"),
            (io::Error::from(io::ErrorKind::HostUnreachable), "there is no way to its host"),
            (io::Error::other(unknown), "the name of its host is not known"),
            (io::Error::other("db-1.example"), "no connection"),
        ] {
            assert!(why_lost(&error).starts_with(expected), "{error}");
        }
    }
}
