//! The pool of connections to the primary, with TLS where server and address allow it.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use deadpool::Runtime;
use deadpool::managed::{self, Manager, Metrics, RecycleError, RecycleResult};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio_postgres::{Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::LIMITS;
use super::address::DatabaseAddress;
use super::session::Session;
use crate::domain::opaque;
use crate::store::{Result, StoreError};

/// Set on each new connection: a generic plan doubles the rate of small pages, and timeouts end the
/// work of a lost client.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET statement_timeout = '30s'; \
                       SET idle_in_transaction_session_timeout = '30s'; SET lock_timeout = '4s'";

/// The address of the database, and limits of its use.
#[derive(Clone)]
pub struct SharedOptions {
    /// `postgres://user:password@host:port/database`, hosts separated by commas; never shown.
    pub url: String,
    pub connections: usize,
}

opaque!(SharedOptions, connections);

impl SharedOptions {
    /// Checks an address without connecting.
    pub fn check_url(url: &str) -> Result<()> {
        DatabaseAddress::parse(url).map(drop)
    }
}

pub(super) type ConnectionPool = managed::Pool<Race>;
pub(super) type PoolError = managed::PoolError<Error>;

pub(super) fn pool(options: &SharedOptions) -> Result<ConnectionPool> {
    let DatabaseAddress { hosts, roots } = DatabaseAddress::parse(&options.url)?;
    let tls = tls(roots.as_deref())?;
    ConnectionPool::builder(Race { hosts, tls })
        .max_size(options.connections.max(2))
        .wait_timeout(Some(LIMITS.call_wait))
        .create_timeout(Some(LIMITS.connect_wait))
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(|error| StoreError::Unusable(error.to_string()))
}

/// Connects to all hosts at once and takes the first that accepts writes: a suspended host accepts
/// connections and never answers.
pub(super) struct Race {
    hosts: Vec<Config>,
    tls: MakeRustlsConnect,
}

opaque!(Race);

type Connected = Result<Session, Error>;
/// Boxed, so that callers' futures do not contain it.
type Connecting<'a> = Pin<Box<dyn Future<Output = Connected> + Send + 'a>>;

impl Manager for Race {
    type Type = Session;
    type Error = Error;

    async fn create(&self) -> Connected {
        let first: Connecting<'_> = Box::pin(self.first());
        let session = first.await?;
        session.run(session.client.batch_execute(SETTINGS)).await?;
        Box::pin(session.ask_timeline()).await?;
        Ok(session)
    }

    async fn recycle(&self, session: &mut Session, _: &Metrics) -> RecycleResult<Error> {
        if session.is_open() { Ok(()) } else { Err(RecycleError::message("closed")) }
    }
}

impl Race {
    /// Retries a host that refuses while another one is silent: a failover may have made it the
    /// primary meanwhile. The pool's deadline ends the attempts.
    async fn first(&self) -> Connected {
        let mut attempts = FuturesUnordered::new();
        for host in self.hosts.as_slice() {
            attempts.push(self.attempt(host, false));
        }
        let mut silent = self.hosts.len();
        loop {
            let Some((host, is_repeat, outcome)) = attempts.next().await else {
                // Without a host the client returns its own error.
                return self.connect(&Config::new()).await;
            };
            silent -= usize::from(!is_repeat);
            match outcome {
                Ok(connected) => return Ok(connected),
                Err(error) if silent == 0 => return Err(error),
                Err(_) => attempts.push(self.attempt(host, true)),
            }
        }
    }

    async fn attempt<'a>(
        &'a self,
        host: &'a Config,
        is_repeat: bool,
    ) -> (&'a Config, bool, Connected) {
        if is_repeat {
            tokio::time::sleep(LIMITS.host_pause).await;
        }
        (host, is_repeat, self.connect(host).await)
    }

    async fn connect(&self, host: &Config) -> Connected {
        let (client, connection) = host.connect(self.tls.clone()).await?;
        Ok(Session::new(client, Box::pin(connection)))
    }
}

/// TLS with the certificates of a file, else with the system's and the built-in roots. Used where
/// the server offers it; `sslmode=require` refuses other servers. Names are always checked.
fn tls(file: Option<&Path>) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Unusable(error.to_string()))?
        .with_root_certificates(roots(file)?)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn roots(file: Option<&Path>) -> Result<rustls::RootCertStore> {
    let Some(file) = file else {
        let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_certs_from_paths(Some(file), None);
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reason = "the file of sslrootcert holds no certificate that can be read";
        return Err(StoreError::Unusable(reason.to_owned()));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_shown() {
        let url = "postgres://me:sesame@db.example:99999999/x";
        let options = SharedOptions { url: url.to_owned(), connections: 2 };
        let parsed = DatabaseAddress::parse(url);
        let shown = format!("{options:?} {parsed:?} {}", parsed.as_ref().unwrap_err());
        assert!(!shown.contains("sesame") && !shown.contains("db.example"), "{shown}");
        assert!(
            DatabaseAddress::parse("postgres://me:sesame@db.example,other.example:5433/x").is_ok()
        );
        let missing = "postgres://me:sesame@db.example/x?sslrootcert=/nowhere/ca.pem";
        let refused = pool(&SharedOptions { url: missing.to_owned(), connections: 2 });
        assert!(matches!(refused, Err(StoreError::Unusable(_))), "{refused:?}");
    }
}
