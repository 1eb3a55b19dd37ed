//! One request to one endpoint, hedged with another one when it takes too long.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::endpoint::{EndpointConfig, EndpointId};
use super::exchange::Ask;
use super::exchange::Received;
use super::policy;
use super::pool::{Inner, Pool};
use super::retry::Sent;
use super::scheduler::{Needs, Permit};
use super::transport::{Method, Request, TransportError};

impl Pool {
    /// Sends, and hedges with another endpoint when this one takes far longer than usual.
    pub(super) async fn send_hedged(
        &self,
        permit: Permit,
        needs: &Needs,
        ask: &Ask,
        calls: usize,
    ) -> (Sent, Received) {
        let admission = &self.inner.admission;
        let (slow, began) = (permit.endpoint, Instant::now());
        let mut elsewhere = Needs { calls, is_second: true, ..needs.clone() };
        elsewhere.without.insert(slow);
        let first = self.send(permit, ask, calls);
        tokio::pin!(first);
        loop {
            // The usual latency may be learned meanwhile.
            let patience = admission.patience(slow, needs).saturating_sub(began.elapsed());
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
                if is_good(&received.1) { received } else { second.await }
            }
            received = &mut second => {
                if is_good(&received.1) {
                    admission.with(slow, |endpoint| endpoint.overtaken(began.elapsed()));
                    received
                } else {
                    first.await
                }
            }
        }
    }

    async fn send(&self, permit: Permit, ask: &Ask, calls: usize) -> (Sent, Received) {
        let Inner { admission, limits, transport, .. } = &*self.inner;
        let (began, request) =
            (Instant::now(), self.inner.requests.fetch_add(1, Ordering::Relaxed));
        let endpoint = permit.endpoint;
        let config = admission.with(endpoint, |endpoint| endpoint.config.clone());
        let received = match config {
            Some(EndpointConfig { url, headers, .. }) => {
                let request = Request {
                    method: if ask.body.is_some() { Method::Post } else { Method::Get },
                    url: url.join(&ask.path, &ask.query),
                    headers,
                    body: ask.body.clone().unwrap_or_default(),
                    timeout: limits.request_wait_max,
                    body_bytes_max: if calls > 1 {
                        limits.batch_body_bytes_max
                    } else {
                        limits.body_bytes_max
                    },
                };
                transport.send(request).await
            }
            None => Err(TransportError::Connect("no such endpoint".to_owned())),
        };
        let rest = self.requested_wait(&received);
        if let Some(rest) = rest {
            self.cool_down(endpoint, rest);
        }
        (Sent { endpoint, request, calls, began, took: began.elapsed(), rest }, received)
    }

    /// The wait that the header of a refusal requests.
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

fn is_good(received: &Received) -> bool {
    received.as_ref().is_ok_and(|response| response.status < 400)
}
