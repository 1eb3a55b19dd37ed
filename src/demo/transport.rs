//! The demo endpoints without a network: converts a request to an answer, or to the failure of a
//! real connection. All waiting uses `tokio::time`, so paused time makes it free.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Method;

use super::node::{DemoNode, NodeAnswer};
use super::service::DemoRequest;
use crate::rpc::{HttpMethod, Request, Response, Transport, TransportError};

/// Endpoints by host name, or by host name and path: `https://HOST/…` reaches the node whose name
/// is the longest prefix.
#[derive(Debug, Clone, Default)]
pub struct DemoTransport {
    nodes: HashMap<String, DemoNode>,
}

impl DemoTransport {
    pub fn new(nodes: impl IntoIterator<Item = (String, DemoNode)>) -> Self {
        Self { nodes: nodes.into_iter().collect() }
    }
}

/// The node whose name is the longest prefix, and the rest of the path.
pub(super) fn route<'a, 'b>(
    nodes: &'a HashMap<String, DemoNode>,
    place: &'b str,
) -> Option<(&'a DemoNode, &'b str)> {
    let ends = place.match_indices('/').map(|(at, _)| at).chain([place.len()]);
    ends.rev().find_map(|end| {
        let (name, rest) = place.split_at(end);
        Some((nodes.get(name)?, rest))
    })
}

impl Transport for DemoTransport {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let Request { url, body, timeout, body_bytes_max: bytes_max, .. } = request;
            let method = match request.method {
                HttpMethod::Get => Method::GET,
                HttpMethod::Post => Method::POST,
            };
            let target = url.expose().split_once("://").map_or(url.expose(), |(_, rest)| rest);
            let target = target.split('#').next().unwrap_or_default();
            let (place, query) = target.split_once('?').unwrap_or((target, ""));
            let unknown = || TransportError::Connect("no demo endpoint has this host name".into());
            let (node, path) = route(&self.nodes, place).ok_or_else(unknown)?;
            let _open = node.open();
            let answer = node.handle(&DemoRequest { method, path, query, body: &body });
            let answer = tokio::time::timeout(timeout, deliver(answer)).await;
            let NodeAnswer { http, retry_after, cut, .. } =
                answer.map_err(|_| TransportError::Timeout)?;
            if cut {
                let text = "the connection ended in the middle of the body";
                return Err(TransportError::Broken(text.to_owned()));
            }
            if http.body.len() > bytes_max {
                return Err(TransportError::TooLarge { bytes_max });
            }
            let retry_after = retry_after.map(|wait| wait.as_secs().to_string());
            Ok(Response { status: http.status, retry_after, body: Bytes::from(http.body) })
        })
    }
}

async fn deliver(answer: Option<NodeAnswer>) -> NodeAnswer {
    let Some(answer) = answer else { return std::future::pending().await };
    tokio::time::sleep(answer.delay + answer.slow).await;
    answer
}
