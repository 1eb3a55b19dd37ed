//! The transport over the network.

use std::error::Error as _;
use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::transport::{HttpMethod, Request, Response, Transport, TransportError};

const CONNECT_WAIT_MAX: Duration = Duration::from_secs(5);
const IDLE_CONNECTION_MAX: Duration = Duration::from_secs(60);
/// A body of a named length that comes at less than this pace, and so not in time, is given up.
const STALLED_BYTES_PER_SECOND: u128 = 256;
/// Since its first byte: a connection begins slowly.
const STALLED_AFTER: Duration = Duration::from_secs(2);
/// Look-ups of names at once: one that gets no answer goes on after its connection was given up.
const LOOK_UPS_MAX: usize = 64;

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
            .dns_resolver(LookUps(Arc::new(Semaphore::new(LOOK_UPS_MAX))))
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
        let began = Instant::now();
        let mut response = ask.send().await.map_err(failure)?;
        let first_byte = Instant::now();
        let left = request.timeout.saturating_sub(began.elapsed());
        let length = response.content_length().and_then(|length| usize::try_from(length).ok());
        let status = response.status().as_u16();
        let retry_after = response.headers().get(reqwest::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|v| v.to_str().ok()).map(str::to_owned);
        // As large as it will be: one that grows is copied, and leaves holes of all its sizes.
        let mut body = BytesMut::with_capacity(length.unwrap_or(0).min(request.body_bytes_max));
        while let Some(part) = response.chunk().await.map_err(failure)? {
            if body.len() + part.len() > request.body_bytes_max {
                return Err(TransportError::TooLarge { bytes_max: request.body_bytes_max });
            }
            body.extend_from_slice(&part);
            let rest = length.map_or(0, |length| length.saturating_sub(body.len()));
            if is_stalled((body.len(), rest), first_byte.elapsed(), left) {
                return Err(TransportError::Broken("its body comes too slowly".to_owned()));
            }
        }
        Ok(Response { status, retry_after, body: Bytes::from(body) })
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

/// Looks names up on threads of their own: while name servers are silent, look-ups would take all of
/// the runtime's few threads (`cli/mod.rs`), and packing of streams would wait for them.
struct LookUps(Arc<Semaphore>);

impl Resolve for LookUps {
    fn resolve(&self, name: Name) -> Resolving {
        let permits = Arc::clone(&self.0);
        Box::pin(async move {
            let permit = permits.acquire_owned().await?;
            let (answer, answered) = oneshot::channel();
            let look_up = move || {
                // Without a receiver the connection was given up.
                let _ = answer.send((name.as_str(), 0).to_socket_addrs());
                drop(permit);
            };
            thread::Builder::new().name("name-look-up".to_owned()).spawn(look_up)?;
            let found: Addrs = Box::new(answered.await??);
            Ok(found)
        })
    }
}

/// Whether the `rest` of a body, at the rate received so far, takes longer than `left`; both times
/// are counted from the first byte.
fn is_stalled((came, rest): (usize, usize), since: Duration, left: Duration) -> bool {
    let (came, rest) = (came.try_into().unwrap_or(u128::MAX), rest.try_into().unwrap_or(0));
    let is_slow = came * 1_000 < STALLED_BYTES_PER_SECOND * since.as_millis();
    let needed = rest * since.as_millis();
    since >= STALLED_AFTER && is_slow && needed > came * left.saturating_sub(since).as_millis()
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_name_is_looked_up_while_the_runtimes_spare_threads_are_taken() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(1).build().unwrap();
        let (free, taken) = mpsc::channel::<()>();
        runtime.spawn_blocking(move || taken.recv());
        runtime.block_on(async {
            let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = server.local_addr().unwrap().port();
            let client = HttpTransport::new().unwrap().client;
            let ask = client.get(format!("http://localhost:{port}")).send();
            tokio::select! {
                connected = server.accept() => assert!(connected.is_ok()),
                answer = ask => panic!("no connection: {answer:?}"),
            }
        });
        drop(free);
    }

    #[test]
    fn a_body_that_cannot_come_in_time_is_given_up() {
        let (second, left) = (Duration::from_secs(1), Duration::from_secs(20));
        // A byte a second, of a long body, of one that ends in time, and of unknown length.
        assert!(!is_stalled((1, 5_000), second, left));
        assert!(is_stalled((2, 5_000), second * 2, left));
        assert!(!is_stalled((2, 18), second * 2, left));
        assert!(is_stalled((2, 19), second * 2, left));
        assert!(!is_stalled((2, 0), second * 2, left));
        // A slow link gives what it can: a smaller batch may fit.
        assert!(!is_stalled((512, 1 << 20), second * 2, left));
        assert!(is_stalled((511, 1 << 20), second * 2, left));
    }
}
