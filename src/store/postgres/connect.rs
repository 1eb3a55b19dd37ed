//! The pool of connections, with TLS where the address asks for it.

use std::fmt;
use std::str::FromStr as _;
use std::sync::Arc;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::LIMITS;
use crate::store::StoreError;

/// Set on each new connection: one plan for all arguments doubles small pages, and a server that has
/// lost its client gives up by itself.
const SESSION: &str = "SET plan_cache_mode = force_generic_plan; SET statement_timeout = '30s'; \
                       SET idle_in_transaction_session_timeout = '30s'; SET lock_timeout = '4s'";

/// How the database is reached.
#[derive(Clone)]
pub struct SharedOptions {
    /// `postgres://user:password@host:port/database`, several hosts separated by commas. Shown nowhere.
    pub url: String,
    /// Connections at a time.
    pub connections: usize,
}

impl fmt::Debug for SharedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedOptions")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// Parses the address without connecting. The reason never holds a part of it.
fn parse(url: &str) -> Result<Config, StoreError> {
    let mut config = Config::from_str(url).map_err(|_| {
        StoreError::Unusable("expected postgres://user:password@host:port/database".to_owned())
    })?;
    config.connect_timeout(LIMITS.connect_wait);
    if config.get_application_name().is_none() {
        config.application_name("blotter");
    }
    // Of several hosts, the one that takes writes.
    config.target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
    Ok(config)
}

pub(super) fn pool(options: &SharedOptions) -> Result<Pool, StoreError> {
    let config = parse(&options.url)?;
    let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(config, tls()?, manager_config);
    let started = Hook::async_fn(|client, _| {
        Box::pin(async move { client.batch_execute(SESSION).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(options.connections.max(2))
        .wait_timeout(Some(LIMITS.call_wait))
        .create_timeout(Some(LIMITS.connect_wait))
        .runtime(Runtime::Tokio1)
        .post_create(started)
        .build()
        .map_err(|error| StoreError::Unusable(error.to_string()))
}

/// Trusts the system's root certificates and the built-in ones. Used where the server offers TLS;
/// `sslmode=require` in the address refuses one that does not.
fn tls() -> Result<MakeRustlsConnect, StoreError> {
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Unusable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_shown() {
        let url = "postgres://me:sesame@db.example:99999999/x";
        let options = SharedOptions { url: url.to_owned(), connections: 2 };
        let shown = format!("{options:?} {:?} {}", parse(url), parse(url).unwrap_err());
        assert!(!shown.contains("sesame") && !shown.contains("db.example"), "{shown}");
        assert!(parse("postgres://me:sesame@db.example,other.example:5433/x").is_ok());
    }
}
