//! The access log: one entry for each request, written when its response ends or its client
//! disconnects.

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http_body_util::BodyDataStream;
use hyper::body::Body;
use tokio::time::Instant;
use warp::Reply as _;
use warp::reply::Response;

use crate::domain::UnixMillis;

/// The receiver of entries. It must not block, since responses wait for it.
pub trait AccessLog: fmt::Debug + Send + Sync {
    fn record(&self, entry: &Access);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub time: UnixMillis,
    pub request_id: String,
    /// The address by which limits count: behind a trusted proxy its client, of IPv6 the network.
    pub client: IpAddr,
    /// The key's public id; `None` for a request without a valid key.
    pub key: Option<String>,
    pub method: &'static str,
    pub route: &'static str,
    /// The path, which may name a wallet, if the configuration enables that.
    pub path: Option<String>,
    pub status: u16,
    pub bytes: u64,
    /// Time until the response began, and until it ended.
    pub began: Duration,
    pub ended: Duration,
}

/// Records the entry now, or for a streamed response at its end.
pub(super) fn follow(
    log: Arc<dyn AccessLog>,
    entry: Access,
    started: Instant,
    response: Response,
) -> Response {
    let mut entry = Open { log, entry, started };
    if let Some(bytes) = response.body().size_hint().exact() {
        entry.entry.bytes = bytes;
        return response;
    }
    let (parts, body) = response.into_parts();
    let counted = Counted { body: BodyDataStream::new(body), open: entry };
    let mut response = warp::reply::stream(counted).into_response();
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    *response.extensions_mut() = parts.extensions;
    response
}

/// The entry of an open response, recorded on drop.
struct Open {
    log: Arc<dyn AccessLog>,
    entry: Access,
    started: Instant,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.entry.ended = self.started.elapsed();
        self.log.record(&self.entry);
    }
}

struct Counted<B> {
    body: BodyDataStream<B>,
    open: Open,
}

impl<B: Body<Data = Bytes> + Unpin> Stream for Counted<B> {
    type Item = Result<Bytes, B::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(Pin::new(&mut self.body).poll_next(cx));
        if let Some(Ok(bytes)) = &piece {
            self.open.entry.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        }
        Poll::Ready(piece)
    }
}
