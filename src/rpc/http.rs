//! The transport over the network.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;

use super::transport::{HttpMethod, Request, Response, Transport, TransportError};

const CONNECT_WAIT_MAX: Duration = Duration::from_secs(5);
const IDLE_CONNECTION_MAX: Duration = Duration::from_secs(60);

/// HTTP and HTTPS; the client follows no redirect.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    client: reqwest::Client,
}

/// The TLS client could not be created.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot start: {0}")]
pub struct HttpSetupError(String);

impl HttpTransport {
    /// Trusts the built-in root certificates.
    pub fn new() -> Result<Self, HttpSetupError> {
        Self::trusting(built_in_roots())
    }

    /// Also trusts the system's root certificates, for servers of the operator's own.
    pub fn with_system_roots() -> Result<Self, HttpSetupError> {
        let mut roots = built_in_roots();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self::trusting(roots)
    }

    fn trusting(roots: rustls::RootCertStore) -> Result<Self, HttpSetupError> {
        let fail = |e: &dyn std::fmt::Display| HttpSetupError(e.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| fail(&e))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_WAIT_MAX)
            .pool_idle_timeout(IDLE_CONNECTION_MAX)
            .tcp_nodelay(true)
            .no_proxy()
            .user_agent(concat!("blotter/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| fail(&e.without_url()))?;
        Ok(Self { client })
    }

    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let url = request.url.expose();
        let mut ask = match request.method {
            HttpMethod::Get => self.client.get(url),
            HttpMethod::Post => self
                .client
                .post(url)
                .header(reqwest::header::CONTENT_TYPE, "application/json")
                .body(request.body),
        };
        ask = ask.timeout(request.timeout);
        for (name, value) in &request.headers {
            ask = ask.header(name, value.expose());
        }
        let mut response = ask.send().await.map_err(failure)?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(reqwest::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|v| v.to_str().ok()).map(str::to_owned);
        let mut body = BytesMut::new();
        while let Some(part) = response.chunk().await.map_err(failure)? {
            if body.len() + part.len() > request.body_bytes_max {
                return Err(TransportError::TooLarge { bytes_max: request.body_bytes_max });
            }
            body.extend_from_slice(&part);
        }
        Ok(Response { status, retry_after, body: Bytes::from(body) })
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

fn built_in_roots() -> rustls::RootCertStore {
    rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// Keeps only the innermost cause: the library's texts may contain the URL.
fn failure(error: reqwest::Error) -> TransportError {
    if error.is_timeout() {
        return TransportError::Timeout;
    }
    let error = error.without_url();
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let text = causes.last().map(ToString::to_string).filter(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| "request failed".to_owned());
    if error.is_connect() { TransportError::Connect(text) } else { TransportError::Broken(text) }
}
