//! One HTTP GET of another blotter, on a connection of its own.
//!
//! It is apart from `upstream`, which only posts to nodes, and speaks no TLS: servers listen on
//! loopback or behind a proxy on the same network.

use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, HOST, RETRY_AFTER};
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

const PORT_DEFAULT: u16 = 80;

pub(super) struct GetAnswer {
    pub(super) status: StatusCode,
    /// Seconds of the header of that name.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Bytes,
}

/// Why there is no answer. No text holds the address or the key.
#[derive(Debug, thiserror::Error)]
pub(super) enum GetError {
    #[error("the address or the key cannot be sent")]
    Request(#[from] http::Error),
    #[error("the server cannot be reached: {0}")]
    Connect(std::io::Error),
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the answer was cut or is too large: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("no answer in time")]
    Timeout,
}

/// Asks with a key; all of it within `wait_max`.
pub(super) async fn get(
    url: &str,
    key: &str,
    wait_max: Duration,
    body_bytes_max: usize,
) -> Result<GetAnswer, GetError> {
    let asked = tokio::time::timeout(wait_max, ask(url, key, body_bytes_max));
    asked.await.map_err(|_| GetError::Timeout)?
}

async fn ask(url: &str, key: &str, body_bytes_max: usize) -> Result<GetAnswer, GetError> {
    let uri: Uri = url.parse().map_err(http::Error::from)?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(PORT_DEFAULT);
    let request = request(&uri, key)?;
    let stream = TcpStream::connect((host, port)).await.map_err(GetError::Connect)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = wait.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let body = Limited::new(response.into_body(), body_bytes_max).collect().await;
        let body = body.map_err(GetError::Body)?.to_bytes();
        Ok(GetAnswer { status, retry_after, body })
    };
    // The connection works only while it is polled, and ends with the exchange.
    let (answer, connection) = tokio::join!(exchange, connection);
    if let Err(error) = connection {
        tracing::debug!(%error, "the connection did not end in order");
    }
    answer
}

fn request(uri: &Uri, key: &str) -> Result<Request<Empty<Bytes>>, GetError> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let mut bearer = HeaderValue::try_from(format!("Bearer {key}")).map_err(http::Error::from)?;
    bearer.set_sensitive(true);
    let request = Request::get(path)
        .header(HOST, authority.rsplit('@').next().unwrap_or_default())
        .header(CONNECTION, "close")
        .header(AUTHORIZATION, bearer);
    Ok(request.body(Empty::new())?)
}
