//! Pure: answers that show something only if they are repeated over some time, as those to
//! concurrent requests are one answer.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SpacedAnswers {
    pub(super) count: u32,
    first_at: Option<Instant>,
    last_at: Option<Instant>,
}

impl SpacedAnswers {
    /// Counts an answer, unless the last one counted came less than `spacing` before.
    pub(super) fn note(&mut self, now: Instant, spacing: Duration) {
        if self.last_at.is_none_or(|last| now.duration_since(last) >= spacing) {
            self.count = self.count.saturating_add(1);
            self.first_at.get_or_insert(now);
            self.last_at = Some(now);
        }
    }

    /// Whether so many were counted, the last one so long after the first.
    pub(super) fn are_enough(&self, count: u32, time: Duration) -> bool {
        let span = self.first_at.zip(self.last_at).map(|(first, last)| last.duration_since(first));
        self.count >= count && span.unwrap_or_default() >= time
    }
}
