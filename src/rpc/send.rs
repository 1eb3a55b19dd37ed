//! Sends one request to one endpoint, hedged with another endpoint when it takes too long.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet, yield_now};
use tokio::time::{Instant, timeout};

use super::endpoint::{EndpointConfig, EndpointId};
use super::policy::{self, Failure};
use super::pool::{Inner, Pool};
use super::retry::Sent;
use super::scheduler::{Needs, Permit};
use super::transport::{Ask, HttpMethod, Received, Request, TransportError};
use crate::domain::lock;

impl Pool {
    /// Sends a request, and a second one to another endpoint when the first takes far longer than
    /// usual.
    pub(super) async fn send_hedged(
        &self,
        permit: Permit,
        needs: &Needs,
        ask: &Ask,
        calls: usize,
    ) -> (Sent, Received) {
        let admission = &self.inner.admission;
        let (slow, began) = (permit.endpoint, Instant::now());
        let mut elsewhere = Needs { calls, is_hedge: true, ..needs.clone() };
        elsewhere.without.insert(slow);
        let first = self.send(permit, ask, calls);
        tokio::pin!(first);
        loop {
            // The usual latency may change while this waits.
            let patience = admission.hedge_delay(slow, needs).saturating_sub(began.elapsed());
            if patience.is_zero() {
                break;
            }
            let look_again = patience.min(self.inner.limits.hedge_after_min);
            if let Ok(received) = timeout(look_again, &mut first).await {
                return received;
            }
        }
        let second = tokio::select! {
            biased;
            received = &mut first => return received,
            second = admission.admit(elsewhere) => second,
        };
        let Ok(second) = second else { return first.await };
        let second = self.send(second, ask, calls);
        tokio::pin!(second);
        tokio::select! {
            received = &mut first => {
                if is_good(&received.1) {
                    return received;
                }
                self.record_discarded(received);
                second.await
            }
            received = &mut second => {
                if is_good(&received.1) {
                    admission.with(slow, |endpoint| endpoint.record_overtaken(began.elapsed()));
                    return received;
                }
                self.record_discarded(received);
                first.await
            }
        }
    }

    /// Records the failure of the answer that the caller does not see: without it an endpoint that
    /// never answers would be measured again and again.
    fn record_discarded(&self, (sent, received): (Sent, Received)) {
        let Err(error) = received else { return };
        let now = Instant::now();
        let is_late = error == TransportError::Timeout;
        let words = Failure::Transport(error).log_text();
        self.inner.admission.with(sent.endpoint, |endpoint| {
            endpoint.failed(words, now);
            if is_late {
                endpoint.timed_out(sent.calls, now);
            }
        });
    }

    async fn send(&self, permit: Permit, ask: &Ask, calls: usize) -> (Sent, Received) {
        let Inner { admission, limits, .. } = &*self.inner;
        let (began, endpoint) = (Instant::now(), permit.endpoint);
        let number = self.inner.requests.fetch_add(1, Ordering::Relaxed);
        let config = admission.with(endpoint, |endpoint| endpoint.config.clone());
        let request = config.map(|EndpointConfig { url, headers, .. }| Request {
            method: if ask.body.is_some() { HttpMethod::Post } else { HttpMethod::Get },
            url: url.join(&ask.path, &ask.query),
            headers,
            body: ask.body.clone().unwrap_or_default(),
            timeout: limits.request_wait_max,
            body_bytes_max: if calls > 1 {
                limits.batch_body_bytes_max
            } else {
                limits.body_bytes_max
            },
        });
        let pool = self.clone();
        let sent = async move {
            let received = match request {
                Some(request) => pool.inner.transport.send(request).await,
                None => Err(TransportError::Connect("no such endpoint".to_owned())),
            };
            let cooldown = pool.requested_wait(&received);
            if let Some(cooldown) = cooldown {
                pool.cool_down(endpoint, cooldown);
            }
            let took = began.elapsed();
            (Sent { endpoint, request: number, calls, began, took, cooldown }, received)
        };
        run_to_end(SharedPermit::new(permit), sent).await
    }

    fn requested_wait(&self, received: &Received) -> Option<Duration> {
        let refused = received.as_ref().ok().filter(|response| response.status >= 400)?;
        let now = self.inner.clock.now().seconds().0;
        let pause = policy::retry_after(refused.retry_after.as_deref()?, now)?;
        Some(pause.min(self.inner.limits.retry_after_max))
    }

    pub(super) fn count(&self, endpoint: EndpointId, method: &str, failed: bool) {
        self.inner.admission.with(endpoint, |known| known.count(method, failed));
    }

    pub(super) fn secrets(&self, endpoint: EndpointId) -> Arc<[String]> {
        self.inner.admission.with(endpoint, |known| Arc::clone(&known.secrets)).unwrap_or_default()
    }
}

/// Runs a request in its own task, so that it ends, releases its permit and is timed even while the
/// caller is not polled. Dropping the future cancels the request and releases its permit.
async fn run_to_end<T: Send + 'static>(
    place: SharedPermit,
    request: impl Future<Output = T> + Send + 'static,
) -> T {
    let held = place.clone();
    let (ended, answer) = oneshot::channel();
    // Cancelled before `place` is released. If another thread runs the task, its connection may
    // close a moment later.
    let mut task = JoinSet::new();
    task.spawn(async move {
        // If the caller has gone, the task is being cancelled.
        let _ = ended.send(request.await);
        // Lets the caller process the answer before the permit is released for another request.
        yield_now().await;
        drop(held);
    });
    if let Ok(answer) = answer.await {
        return answer;
    }
    match task.join_next().await.and_then(Result::err).map(JoinError::try_into_panic) {
        Some(Ok(panic)) => std::panic::resume_unwind(panic),
        // Only a runtime that shuts down cancels the task, and it no longer polls the caller.
        Some(Err(_)) | None => std::future::pending().await,
    }
}

/// The permit of a request in flight; released when the request ends or its caller is dropped.
#[derive(Clone)]
struct SharedPermit(Arc<Mutex<Option<Permit>>>);

impl SharedPermit {
    fn new(permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(Some(permit))))
    }
}

impl Drop for SharedPermit {
    fn drop(&mut self) {
        let permit = lock(&self.0).take();
        drop(permit);
    }
}

fn is_good(received: &Received) -> bool {
    received.as_ref().is_ok_and(|response| response.status < 400)
}
