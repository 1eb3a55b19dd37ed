//! State shared by a wallet's requests: whether a caller waits for them, how many calls they made,
//! and at which endpoints.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::domain::lock;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub struct Priority {
    interactive: AtomicBool,
    calls: AtomicU32,
    /// Labels with the time of the last request, in the order of first use; at most one per
    /// endpoint.
    endpoints: Mutex<Vec<(String, Instant)>>,
}

impl Priority {
    pub fn background() -> Self {
        Self::default()
    }

    pub fn interactive() -> Self {
        Self { interactive: AtomicBool::new(true), ..Self::default() }
    }

    pub fn set_interactive(&self, interactive: bool) {
        self.interactive.store(interactive, Ordering::Relaxed);
    }

    /// Labels of the endpoints that got requests within `age`.
    pub(crate) fn endpoints(&self, age: Duration) -> Vec<String> {
        let used = lock(&self.endpoints);
        let young = used.iter().filter(|(_, at)| at.elapsed() <= age);
        young.map(|(label, _)| label.clone()).collect()
    }

    pub(super) fn is_interactive(&self) -> bool {
        self.interactive.load(Ordering::Relaxed)
    }

    pub(super) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn record(&self, calls: usize, endpoint: &str, now: Instant) {
        self.calls.fetch_add(u32::try_from(calls).unwrap_or(u32::MAX), Ordering::Relaxed);
        let mut used = lock(&self.endpoints);
        match used.iter_mut().find(|(label, _)| label == endpoint) {
            Some((_, at)) => *at = now,
            None => used.push((endpoint.to_owned(), now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn endpoints_are_those_used_lately() {
        let priority = Priority::background();
        priority.record(3, "http://a.example", Instant::now());
        priority.record(1, "http://b.example", Instant::now());
        assert_eq!(priority.endpoints(MINUTE), ["http://a.example", "http://b.example"]);
        tokio::time::advance(MINUTE + Duration::from_secs(1)).await;
        priority.record(2, "http://b.example", Instant::now());
        assert_eq!(priority.endpoints(MINUTE), ["http://b.example"]);
        assert_eq!(priority.calls(), 6);
    }
}
