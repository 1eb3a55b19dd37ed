//! The demo endpoints without a network: a request becomes an answer, or the failure that a real
//! connection would have had. All waiting is `tokio::time`'s, so paused time makes it free.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::node::{Answer, DemoNode, Outcome};
use crate::upstream::{Request, Response, Transport, TransportError};

/// Endpoints by host name: `https://HOST/…` reaches the node of that name.
#[derive(Debug, Clone, Default)]
pub struct DemoTransport {
    nodes: HashMap<String, DemoNode>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why nothing came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    #[error("no demo endpoint has this host name")]
    UnknownHost,
    #[error("no answer in time")]
    Timeout,
    #[error("the connection ended in the middle of the body")]
    Cut,
    #[error("the body is larger than allowed")]
    TooLarge,
}

impl DemoTransport {
    pub fn new(nodes: impl IntoIterator<Item = (String, DemoNode)>) -> Self {
        Self { nodes: nodes.into_iter().collect() }
    }

    /// Sends a body to the node of a host, within a time and a size of the answer.
    pub async fn exchange(
        &self,
        host: &str,
        body: &[u8],
        timeout: Duration,
        body_limit: usize,
    ) -> Result<Exchange, ExchangeError> {
        let node = self.nodes.get(host).ok_or(ExchangeError::UnknownHost)?;
        let _open = node.open();
        let outcome = node.handle(body);
        let answer = tokio::time::timeout(timeout, deliver(outcome));
        let answer = answer.await.map_err(|_| ExchangeError::Timeout)??;
        if answer.body.len() > body_limit {
            return Err(ExchangeError::TooLarge);
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
        if let Some(wait) = answer.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
        Ok(Exchange { status, headers, body: Bytes::from(answer.body) })
    }
}

impl Transport for DemoTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let Request { url, body, timeout, body_bytes_max, .. } = request;
            let label = url.label();
            let host = label.split_once("://").map_or(label.as_str(), |(_, host)| host);
            match self.exchange(host, &body, timeout, body_bytes_max).await {
                Ok(exchange) => Ok(Response {
                    status: exchange.status.as_u16(),
                    retry_after: exchange
                        .headers
                        .get(header::RETRY_AFTER)
                        .and_then(|wait| wait.to_str().ok())
                        .map(str::to_owned),
                    body: exchange.body,
                }),
                Err(error) => Err(failure(error, body_bytes_max)),
            }
        })
    }
}

fn failure(error: ExchangeError, bytes_max: usize) -> TransportError {
    match error {
        ExchangeError::UnknownHost => TransportError::Connect(error.to_string()),
        ExchangeError::Timeout => TransportError::Timeout,
        ExchangeError::Cut => TransportError::Broken(error.to_string()),
        ExchangeError::TooLarge => TransportError::TooLarge { bytes_max },
    }
}

async fn deliver(outcome: Outcome) -> Result<Answer, ExchangeError> {
    match outcome {
        Outcome::Silence => std::future::pending().await,
        Outcome::Answer(answer) => {
            tokio::time::sleep(answer.delay + answer.slow).await;
            if answer.cut { Err(ExchangeError::Cut) } else { Ok(answer) }
        }
    }
}
