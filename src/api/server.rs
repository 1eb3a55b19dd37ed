//! Accepts connections itself, because warp's own server offers none of these limits: the time for
//! headers, a cap on connections, slow readers, and a stop that ends within a bounded time.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
use super::current::Current;
use super::framing::{ByteCounter, Framing};
use super::no_room;
use super::stall::StallGuard;
use super::visitors::{OpenConnections, Peer, Seat};
use crate::domain::lock;

/// First pause after the system refused to accept.
const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(10);

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut because they did not end in time.
    pub cut: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Answers end, idle connections close.
    Draining,
    /// Everything closes.
    Closed,
}

/// Serves until `stop` is ready, then drains: the readiness probe fails, nothing more is accepted,
/// streams end with a line to resume from, and what is left after `drain_wait_max` is cut.
pub(super) async fn serve(
    current: Current,
    routes: BoxedFilter<(Answer,)>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send,
) -> Drained {
    let connections_max = current.get().limits.connections_max;
    let places = Arc::new(Semaphore::new(places(connections_max)));
    let phase = watch::Sender::new(Phase::Open);
    let (crowd, half_open) = (OpenConnections::default(), OpenConnections::default());
    let address = listener.local_addr().ok();
    let server =
        Server { current, routes, connections_max, places, crowd, half_open, address, phase };
    let pause_max = || server.current.get().limits.accept_pause_max;
    let take_in = |stream, address: SocketAddr| server.take_in(stream, Peer(address.ip()));
    accept_until(stop, || listener.accept(), pause_max, take_in).await;
    drop(listener);
    server.drain().await
}

/// Gives on what is accepted until `stop` is ready; where the system refuses, with growing pauses.
async fn accept_until<T, A: Future<Output = io::Result<(T, SocketAddr)>>>(
    stop: impl Future<Output = ()>,
    accept: impl Fn() -> A,
    pause_max: impl Fn() -> Duration,
    take_in: impl Fn(T, SocketAddr),
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
                take_in(stream, address);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                if timeout(pause, &mut stop).await.is_ok() {
                    return;
                }
                pause = (pause * 2).min(pause_max());
            }
        }
    }
}

fn places(connections: u32) -> usize {
    usize::try_from(connections).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// The client went away between connecting and being accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    let kind = error.kind();
    [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted].contains(&kind)
}

struct Server {
    current: Current,
    routes: BoxedFilter<(Answer,)>,
    /// As it was at the start.
    connections_max: u32,
    places: Arc<Semaphore>,
    crowd: OpenConnections,
    /// Of those, connections whose first request is still to come.
    half_open: OpenConnections,
    /// Where it listens.
    address: Option<SocketAddr>,
    phase: watch::Sender<Phase>,
}

impl Server {
    fn take_in(&self, stream: TcpStream, peer: Peer) {
        let app = self.current.get();
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        let Some((place, seat)) = place.zip(self.seat(&app, peer)) else {
            app.metrics.connections_refused.inc();
            let _ = stream.try_write(&no_room::answer(&app));
            return;
        };
        app.metrics.connections.inc();
        let arrivals = Arrivals::at(self.address, &app.limits.allowed_hosts);
        let (routes, tasks) = (self.routes.clone(), app.history.tasks().clone());
        let half_open = HalfOpen { crowd: self.half_open.clone(), seat: Mutex::default() };
        let connection =
            Connection { app, routes, arrivals, peer, half_open, _place: place, _seat: seat };
        tasks.spawn(connection.serve(stream, self.phase.subscribe()));
    }

    /// `None` where the address has too many connections.
    fn seat(&self, app: &App, peer: Peer) -> Option<Seat> {
        let max = app.limits.connections_per_address_max;
        self.crowd.seat(peer, if app.limits.is_counted(peer) { max } else { u32::MAX })
    }

    async fn drain(self) -> Drained {
        let app = self.current.get();
        app.draining.store(true, Ordering::Relaxed);
        self.phase.send_replace(Phase::Draining);
        app.history.stop();
        let all = self.connections_max;
        let drained = timeout(app.limits.drain_wait_max, self.places.acquire_many(all)).await;
        if drained.is_ok() {
            return Drained { cut: 0 };
        }
        let cut = places(all).saturating_sub(self.places.available_permits());
        tracing::warn!(cut, "connections did not end in time and were cut");
        self.phase.send_replace(Phase::Closed);
        // They close at their next turn, which needs no other task.
        let _ = self.places.acquire_many(all).await;
        Drained { cut }
    }
}

struct Connection {
    app: Arc<App>,
    routes: BoxedFilter<(Answer,)>,
    arrivals: Arrivals,
    peer: Peer,
    half_open: HalfOpen,
    _place: OwnedSemaphorePermit,
    _seat: Seat,
}

/// Whether a connection has asked for something, and its seat among those that have not.
struct HalfOpen {
    crowd: OpenConnections,
    seat: Mutex<Waiting>,
}

#[derive(Default)]
enum Waiting {
    #[default]
    New,
    Counted(#[expect(dead_code, reason = "counts until it is dropped")] Seat),
    HasRequested,
}

impl HalfOpen {
    fn has_asked(&self) {
        *lock(&self.seat) = Waiting::HasRequested;
    }

    /// Counts a connection that has asked for nothing yet. False where its address has too many.
    fn count(&self, peer: Peer, max: u32) -> bool {
        let mut seat = lock(&self.seat);
        if let Waiting::New = *seat {
            let Some(taken) = self.crowd.seat(peer, max) else { return false };
            *seat = Waiting::Counted(taken);
        }
        true
    }
}

impl Connection {
    async fn serve(self, stream: TcpStream, mut phase: watch::Receiver<Phase>) {
        let limits = &self.app.limits;
        // Lines are small and go out at once.
        let _ = stream.set_nodelay(true);
        let counter = ByteCounter::default();
        let framing = Arc::clone(&counter.framing);
        let io = TokioIo::new(StallGuard::new(stream, counter, limits.write_wait_max));
        let routes = TowerToHyperService::new(warp::service(self.routes.clone()));
        let (refused, most) = (Arc::<AtomicU32>::default(), limits.refusals_per_connection_max);
        let service = service_fn(|request| {
            let answer = routes.call(self.prepared(request, &framing));
            let refused = Arc::clone(&refused);
            // Boxed, so that it goes as soon as the answer has begun: hyper keeps its room for good.
            Box::pin(async move {
                answer.await.map(|answer| hang_up_on_guessers(answer, &refused, most))
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
        let mut grace = pin!(sleep(limits.half_open_grace));
        let mut is_counted = !limits.is_counted(self.peer);
        let half_open_max = limits.half_open_per_address_max;
        let ended = loop {
            tokio::select! {
                () = grace.as_mut(), if !is_counted => {
                    is_counted = true;
                    if !self.half_open.count(self.peer, half_open_max) {
                        self.app.metrics.connections_refused.inc();
                        break Ok(());
                    }
                }
                ended = connection.as_mut() => break ended,
                changed = phase.changed() => match changed.map(|()| *phase.borrow_and_update()) {
                    Ok(Phase::Open) => {}
                    Ok(Phase::Draining) => connection.as_mut().graceful_shutdown(),
                    Ok(Phase::Closed) | Err(_) => break Ok(()),
                },
            }
        };
        if let Err(error) = ended {
            self.note(&error);
        }
    }

    /// Notes the address and what is wrong with the request. A target without a path
    /// (`CONNECT host:port`) becomes the root, which only knows GET: warp's path filter would panic
    /// at it.
    fn prepared(&self, mut request: Request<Incoming>, framing: &Framing) -> Request<Incoming> {
        self.half_open.has_asked();
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

/// Counts the keys that were refused on a connection, and closes it after the last one that it may
/// try.
fn hang_up_on_guessers<T>(mut answer: Response<T>, refused: &AtomicU32, most: u32) -> Response<T> {
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

    /// A process that has no descriptor left is stopped while it waits for one.
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
        let take_in = |(), _| taken.set(taken.get() + 1);
        let second = Duration::from_secs(1);
        // In the first pause, and after several.
        for stopped_after in [5, 500] {
            tries.set(0);
            let stop = async { sleep(Duration::from_millis(stopped_after)).await };
            let ended = timeout(second, accept_until(stop, accept, || second, take_in)).await;
            assert!(ended.is_ok(), "{stopped_after} ms");
        }
        assert_eq!((taken.get(), tries.get()), (2, 7), "pauses of 10 ms, then twice as long");
    }
}
