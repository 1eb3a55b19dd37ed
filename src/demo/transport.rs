//! The demo endpoints without a network: converts a request to an answer, or to the failure of a
//! real connection. All waiting uses `tokio::time`, so paused time makes it free.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::node::{DemoNode, NodeAnswer};
use super::service::DemoRequest;
use crate::rpc::{Request, Response, Transport, TransportError};

/// Endpoints by host name, or by host name and path: `https://HOST/…` reaches the node whose name
/// is the longest prefix.
#[derive(Debug, Clone, Default)]
pub struct DemoTransport {
    nodes: HashMap<String, DemoNode>,
}

/// The response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no response.
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

    /// Posts a body to the node of a host, within a time and a size of the answer.
    pub async fn exchange(
        &self,
        host: &str,
        body: &[u8],
        timeout: Duration,
        body_limit: usize,
    ) -> Result<Exchange, ExchangeError> {
        self.send_to(host, Method::POST, body, timeout, body_limit).await
    }

    /// `target`: host, path and query.
    async fn send_to(
        &self,
        target: &str,
        method: Method,
        body: &[u8],
        timeout: Duration,
        body_limit: usize,
    ) -> Result<Exchange, ExchangeError> {
        let (place, query) = target.split_once('?').unwrap_or((target, ""));
        let (node, path) = route(&self.nodes, place).ok_or(ExchangeError::UnknownHost)?;
        let _open = node.open();
        let outcome = node.handle(&DemoRequest { method, path, query, body });
        let answer = tokio::time::timeout(timeout, deliver(outcome));
        let answer = answer.await.map_err(|_| ExchangeError::Timeout)??;
        if answer.http.body.len() > body_limit {
            return Err(ExchangeError::TooLarge);
        }
        let (status, headers) = head(&answer);
        Ok(Exchange { status, headers, body: Bytes::from(answer.http.body) })
    }
}

/// The head of the response.
pub(super) fn head(answer: &NodeAnswer) -> (StatusCode, HeaderMap) {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.http.content_type));
    if let Some(wait) = answer.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    }
    (StatusCode::from_u16(answer.http.status).unwrap_or(StatusCode::OK), headers)
}

/// The node whose name is the longest prefix, and the rest of the path.
pub(super) fn route<'a, 'b>(
    nodes: &'a HashMap<String, DemoNode>,
    place: &'b str,
) -> Option<(&'a DemoNode, &'b str)> {
    let ends = place.match_indices('/').map(|(at, _)| at).chain([place.len()]);
    let mut found = None;
    for end in ends {
        let (name, rest) = place.split_at(end);
        if let Some(node) = nodes.get(name) {
            found = Some((node, rest));
        }
    }
    found
}

impl Transport for DemoTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let Request { url, body, timeout, body_bytes_max, .. } = request;
            let method = match request.method {
                crate::rpc::HttpMethod::Get => Method::GET,
                crate::rpc::HttpMethod::Post => Method::POST,
            };
            let target = url.expose().split_once("://").map_or(url.expose(), |(_, rest)| rest);
            let target = target.split('#').next().unwrap_or_default();
            match self.send_to(target, method, &body, timeout, body_bytes_max).await {
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

async fn deliver(outcome: Option<NodeAnswer>) -> Result<NodeAnswer, ExchangeError> {
    let Some(answer) = outcome else { return std::future::pending().await };
    tokio::time::sleep(answer.delay + answer.slow).await;
    if answer.cut { Err(ExchangeError::Cut) } else { Ok(answer) }
}
