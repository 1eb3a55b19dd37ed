//! The demo endpoints behind a real port on 127.0.0.1, one path an endpoint.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, FuturesUnordered, StreamExt as _, TryStreamExt as _};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::node::{DemoNode, NodeAnswer};
use super::service::DemoRequest;
use super::transport::route;
use crate::domain::defaults;

const CUT_AFTER: Duration = Duration::from_millis(5);

defaults! {
    #[derive(Debug, Clone, Copy)]
    pub struct LoopbackLimits {
        /// Bytes of a request's body.
        pub request_max: usize = 4 << 20,
        /// Connections at once; further ones wait to be accepted.
        pub connections_max: usize = 1_024,
        /// How long a stop waits for open connections.
        pub drain: Duration = Duration::from_secs(2),
    }
}

/// A bound server that does not run yet.
#[derive(Debug)]
pub struct Loopback {
    listener: TcpListener,
    address: SocketAddr,
    nodes: Arc<HashMap<String, DemoNode>>,
    limits: LoopbackLimits,
    stop: watch::Sender<bool>,
}

/// Stops its server on request, or when dropped.
#[derive(Debug)]
pub struct LoopbackHandle {
    stop: watch::Sender<bool>,
}

impl LoopbackHandle {
    /// Stops accepting connections; open requests are answered first.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Drop for LoopbackHandle {
    fn drop(&mut self) {
        self.stop();
    }
}

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

impl Loopback {
    /// Binds a port (0 is any) and serves each node under `/name` and all below it.
    pub async fn bind(
        port: u16,
        nodes: impl IntoIterator<Item = (String, DemoNode)>,
        limits: LoopbackLimits,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let nodes = Arc::new(nodes.into_iter().collect());
        Ok(Self { listener, address, nodes, limits, stop: watch::Sender::new(false) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    pub fn handle(&self) -> LoopbackHandle {
        LoopbackHandle { stop: self.stop.clone() }
    }

    /// Serves until the handle stops it. All connections run inside this future: the caller spawns
    /// it, or selects on it.
    pub async fn run(self) {
        let mut stop = self.stop.subscribe();
        let mut open: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        loop {
            let room = open.len() < self.limits.connections_max;
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => break,
                Some(()) = open.next(), if !open.is_empty() => {}
                accepted = self.listener.accept(), if room => {
                    if let Ok((stream, _)) = accepted {
                        open.push(Box::pin(self.connection(stream)));
                    }
                }
            }
        }
        drop(self.listener);
        let rest = async { while open.next().await.is_some() {} };
        // A client that keeps its connection open does not delay the stop.
        let _ = tokio::time::timeout(self.limits.drain, rest).await;
    }

    fn connection(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + use<> {
        let (nodes, limits) = (Arc::clone(&self.nodes), self.limits);
        let mut stop = self.stop.subscribe();
        async move {
            let _ = stream.set_nodelay(true);
            let service = service_fn(move |request| respond(Arc::clone(&nodes), request, limits));
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new());
            let mut connection =
                std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
            // A broken connection is the client's, or an intended fault.
            let stopped = async { drop(stop.wait_for(|stop| *stop).await) };
            tokio::select! {
                _ = connection.as_mut() => {}
                () = stopped => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
        }
    }
}

async fn respond(
    nodes: Arc<HashMap<String, DemoNode>>,
    request: Request<Incoming>,
    limits: LoopbackLimits,
) -> Result<Response<Body>, Infallible> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let Some((node, path)) = route(&nodes, uri.path().trim_start_matches('/')) else {
        return Ok(plain(StatusCode::NOT_FOUND));
    };
    if method != Method::POST && method != Method::GET {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Ok(body) = Limited::new(request.into_body(), limits.request_max).collect().await else {
        return Ok(plain(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let _open = node.open();
    let body = body.to_bytes();
    let query = uri.query().unwrap_or_default();
    let answer = node.handle(&DemoRequest { method, path, query, body: &body });
    let Some(answer) = answer else { return std::future::pending().await };
    tokio::time::sleep(answer.delay).await;
    let status = StatusCode::from_u16(answer.http.status).unwrap_or_default();
    let kind = HeaderValue::from_static(answer.http.content_type);
    let wait = answer.retry_after.map(|wait| HeaderValue::from(wait.as_secs()));
    let mut response = answered(status, stream_body(answer));
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().extend(wait.map(|wait| (header::RETRY_AFTER, wait)));
    Ok(response)
}

fn plain(status: StatusCode) -> Response<Body> {
    answered(status, whole(Bytes::new()))
}

fn answered(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn whole(body: Bytes) -> Body {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

/// The whole body, or its first half and then the rest late, or never.
fn stream_body(answer: NodeAnswer) -> Body {
    let NodeAnswer { http, slow, cut, .. } = answer;
    let mut rest = Bytes::from(http.body);
    if !cut && slow.is_zero() {
        return whole(rest);
    }
    let first = rest.split_to(rest.len() / 2);
    let late = async move {
        // The first half must be sent before the connection ends.
        tokio::time::sleep(if cut { CUT_AFTER } else { slow }).await;
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        if cut { Err(reset) } else { Ok(rest) }
    };
    let parts = stream::iter([Ok(first)]).chain(stream::once(late)).map_ok(Frame::data);
    StreamBody::new(parts).boxed_unsync()
}
