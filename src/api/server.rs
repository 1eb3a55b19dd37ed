//! Accepts connections itself, because warp's server has none of these limits: a time for headers,
//! a cap on connections, a guard against slow readers, and a shutdown within a bounded time.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::OptionFuture;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use warp::filters::BoxedFilter;
use warp::reply::Response as Answer;

use super::App;
use super::arrival::{Arrivals, Refused};
use super::clients::{CountedConnection, OpenConnections, Peer};
use super::current::Current;
use super::framing::{ByteCounter, Framing};
use super::overload_reply;
use super::slow_reader::SlowReaderGuard;
use crate::domain::lock;

const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were closed because they did not end in time.
    pub cut: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Open responses end, idle connections close.
    Draining,
    Closed,
}

/// Serves until `stop` completes, then drains: the readiness probe fails, no more connections are
/// accepted, streams end with a cursor to resume from, and connections that are still open after
/// `drain_wait_max` are closed.
pub(super) async fn serve(
    current: Current,
    routes: BoxedFilter<(Answer,)>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send,
) -> Drained {
    let connections_max = current.get().limits.connections_max;
    let permits = Arc::new(Semaphore::new(permits(connections_max)));
    let phase = watch::Sender::new(Phase::Open);
    let (open, half_open) = (OpenConnections::default(), OpenConnections::default());
    let address = listener.local_addr().ok();
    let server =
        Server { current, routes, connections_max, permits, open, half_open, address, phase };
    let pause_max = || server.current.get().limits.accept_pause_max;
    let on_connection =
        |stream, address: SocketAddr| server.on_connection(stream, Peer(address.ip()));
    accept_until(stop, || listener.accept(), pause_max, on_connection).await;
    drop(listener);
    server.drain().await
}

/// Passes accepted connections on until `stop` completes, with backoff after failures.
async fn accept_until<T, A: Future<Output = io::Result<(T, SocketAddr)>>>(
    stop: impl Future<Output = ()>,
    accept: impl Fn() -> A,
    pause_max: impl Fn() -> Duration,
    on_connection: impl Fn(T, SocketAddr),
) {
    let mut stop = pin!(stop);
    let mut pause = ACCEPT_PAUSE_MIN;
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => return,
            accepted = accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                pause = ACCEPT_PAUSE_MIN;
                on_connection(stream, address);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection; retrying after a pause");
                if timeout(pause, &mut stop).await.is_ok() {
                    return;
                }
                pause = (pause * 2).min(pause_max());
            }
        }
    }
}

fn permits(connections: u32) -> usize {
    usize::try_from(connections).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// Whether the client disconnected before its connection was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    let kind = error.kind();
    [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted].contains(&kind)
}

struct Server {
    current: Current,
    routes: BoxedFilter<(Answer,)>,
    /// The limit at the start, which a reload does not change.
    connections_max: u32,
    permits: Arc<Semaphore>,
    open: OpenConnections,
    /// Of those, connections without a first request.
    half_open: OpenConnections,
    address: Option<SocketAddr>,
    phase: watch::Sender<Phase>,
}

impl Server {
    fn on_connection(&self, stream: TcpStream, peer: Peer) {
        let app = self.current.get();
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok();
        let Some((permit, counted)) = permit.zip(self.count(&app, peer)) else {
            app.metrics.connections_refused.inc();
            let _ = stream.try_write(&overload_reply::answer(&app));
            return;
        };
        app.metrics.connections.inc();
        let arrivals = Arrivals::at(self.address, &app.limits.allowed_hosts);
        let (routes, tasks) = (self.routes.clone(), app.history.tasks().clone());
        let half_open = HalfOpen { open: self.half_open.clone(), state: Mutex::default() };
        let connection = Connection {
            app,
            routes,
            arrivals,
            peer,
            half_open,
            _permit: permit,
            _counted: counted,
        };
        tasks.spawn(connection.serve(stream, self.phase.subscribe()));
    }

    /// `None` if the address has too many connections.
    fn count(&self, app: &App, peer: Peer) -> Option<CountedConnection> {
        let max = app.limits.connections_per_address_max;
        self.open.count(peer, if app.limits.is_counted(peer) { max } else { u32::MAX })
    }

    async fn drain(self) -> Drained {
        let app = self.current.get();
        app.draining.store(true, Ordering::Relaxed);
        self.phase.send_replace(Phase::Draining);
        app.history.stop();
        let all = self.connections_max;
        let drained = timeout(app.limits.drain_wait_max, self.permits.acquire_many(all)).await;
        if drained.is_ok() {
            return Drained { cut: 0 };
        }
        let cut = permits(all).saturating_sub(self.permits.available_permits());
        tracing::warn!(cut, "connections did not end within the drain time; closed");
        self.phase.send_replace(Phase::Closed);
        // Connections close when they are next polled, which depends on no other task.
        let _ = self.permits.acquire_many(all).await;
        Drained { cut }
    }
}

struct Connection {
    app: Arc<App>,
    routes: BoxedFilter<(Answer,)>,
    arrivals: Arrivals,
    peer: Peer,
    half_open: HalfOpen,
    _permit: OwnedSemaphorePermit,
    _counted: CountedConnection,
}

/// Whether a connection has sent a request; until then it counts as half-open.
struct HalfOpen {
    open: OpenConnections,
    state: Mutex<Waiting>,
}

#[derive(Default)]
enum Waiting {
    #[default]
    New,
    Counted(#[expect(dead_code, reason = "counts until it is dropped")] CountedConnection),
    HasRequested,
}

impl HalfOpen {
    /// Counts a connection that has sent no request yet. False if its address has too many.
    fn count(&self, peer: Peer, max: u32) -> bool {
        let mut state = lock(&self.state);
        if let Waiting::New = *state {
            let Some(taken) = self.open.count(peer, max) else { return false };
            *state = Waiting::Counted(taken);
        }
        true
    }
}

impl Connection {
    /// Not an async function, whose future has room for each of its arguments twice.
    fn serve(
        self,
        stream: TcpStream,
        mut phase: watch::Receiver<Phase>,
    ) -> impl Future<Output = ()> + Send {
        // Lines are small and have to be sent immediately.
        let _ = stream.set_nodelay(true);
        async move {
            let limits = &self.app.limits;
            let counter = ByteCounter::default();
            let framing = Arc::clone(&counter.framing);
            let io = TokioIo::new(SlowReaderGuard::new(stream, counter, limits.write_wait_max));
            let routes = TowerToHyperService::new(warp::service(self.routes.clone()));
            let (refused, most) = (Arc::<AtomicU32>::default(), limits.refusals_per_connection_max);
            let service = service_fn(|request| {
                let answer = routes.call(self.prepared(request, &framing));
                let refused = Arc::clone(&refused);
                // Boxed, so that it is freed once the response has begun: hyper keeps its own
                // storage.
                Box::pin(async move {
                    answer.await.map(|answer| close_after_refusals(answer, &refused, most))
                })
            });
            let mut connection = pin!(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(limits.header_wait_max)
                    .max_header_size(limits.header_bytes_max)
                    .max_headers(limits.headers_max)
                    .max_buf_size(limits.write_buffer_bytes.max(limits.header_bytes_max).max(8192))
                    .serve_connection(io, service)
            );
            // Boxed, so that it is freed once it has passed.
            let has_grace = limits.is_counted(self.peer);
            let mut grace = has_grace.then(|| Box::pin(sleep(limits.half_open_grace)));
            let half_open_max = limits.half_open_per_address_max;
            let ended = loop {
                tokio::select! {
                    Some(()) = OptionFuture::from(grace.as_mut()) => {
                        grace = None;
                        if !self.half_open.count(self.peer, half_open_max) {
                            self.app.metrics.connections_refused.inc();
                            break Ok(());
                        }
                    }
                    ended = connection.as_mut() => break ended,
                    changed = phase.changed() => {
                        match changed.map(|()| *phase.borrow_and_update()) {
                            Ok(Phase::Open) => {}
                            Ok(Phase::Draining) => connection.as_mut().graceful_shutdown(),
                            Ok(Phase::Closed) | Err(_) => break Ok(()),
                        }
                    }
                }
            };
            if let Err(error) = ended {
                self.note(&error);
            }
        }
    }

    /// Attaches the peer's address and the result of the checks to a request. A target without a
    /// path (`CONNECT host:port`), at which warp's path filter would panic, becomes the root, which
    /// allows only GET.
    fn prepared(&self, mut request: Request<Incoming>, framing: &Framing) -> Request<Incoming> {
        *lock(&self.half_open.state) = Waiting::HasRequested;
        let (version, uri, headers) = (request.version(), request.uri(), request.headers());
        let checked = self.arrivals.check(version, uri, headers, framing);
        if let Err(error) = checked {
            request.extensions_mut().insert(Refused(error));
        }
        request.extensions_mut().insert(self.peer);
        if request.uri().path_and_query().is_none() {
            *request.uri_mut() = Uri::from_static("/");
        }
        request
    }

    fn note(&self, error: &hyper::Error) {
        let cause = std::error::Error::source(error).and_then(|e| e.downcast_ref::<io::Error>());
        if cause.is_some_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            self.app.metrics.slow_readers.inc();
        }
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Closes a connection after too many authentication failures.
fn close_after_refusals<T>(mut answer: Response<T>, refused: &AtomicU32, most: u32) -> Response<T> {
    if answer.status() == StatusCode::UNAUTHORIZED
        && refused.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= most
    {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.app.metrics.connections.dec();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::Ipv4Addr;

    use super::*;

    /// A process without free file descriptors is stopped while it waits for one.
    #[tokio::test(start_paused = true)]
    async fn a_stop_while_nothing_can_be_accepted_ends_the_accepting() {
        let (tries, taken) = (Cell::new(0), Cell::new(0));
        let accept = || {
            tries.set(tries.get() + 1);
            let is_first = tries.get() == 1;
            async move {
                if is_first {
                    Ok(((), SocketAddr::from((Ipv4Addr::LOCALHOST, 1))))
                } else {
                    Err(io::Error::from_raw_os_error(24))
                }
            }
        };
        let on_connection = |(), _| taken.set(taken.get() + 1);
        let second = Duration::from_secs(1);
        // It is stopped in the first pause, and after several.
        for stopped_after in [5, 500] {
            tries.set(0);
            let stop = async { sleep(Duration::from_millis(stopped_after)).await };
            let ended = timeout(second, accept_until(stop, accept, || second, on_connection)).await;
            assert!(ended.is_ok(), "{stopped_after} ms");
        }
        assert_eq!((taken.get(), tries.get()), (2, 7), "pauses of 10 ms, then twice as long");
    }
}
