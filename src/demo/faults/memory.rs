//! What an endpoint remembers for its faults.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{CallFaults, Faults, LieMemory};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(in crate::demo) struct FaultMemory {
    /// Start of the current second and the requests in it.
    window: Option<(Instant, u32)>,
    suspended_until: Option<Instant>,
    /// Questions that were answered falsely of late, with the number of correct answers to follow.
    spared: HashMap<u64, u32>,
    /// The same of each [`super::Lie`].
    lies: HashMap<u64, LieMemory>,
}

impl FaultMemory {
    /// The time without service of a refused request, with the name of what refused it: it exceeds
    /// the limit of its second, or comes during a suspension.
    pub(in crate::demo) fn refusal(&mut self, faults: &Faults) -> Option<(Duration, &'static str)> {
        let now = Instant::now();
        if let Some(until) = self.suspended_until.filter(|until| now < *until) {
            return Some((until.duration_since(now), "refused_while_suspended"));
        }
        let most = faults.requests_per_second?;
        let (begin, seen) = match self.window {
            Some((begin, seen)) if now.duration_since(begin) < SECOND => (begin, seen + 1),
            _ => (now, 1),
        };
        self.window = Some((begin, seen));
        (seen > most).then_some((SECOND, "requests_per_second"))
    }

    pub(in crate::demo) fn suspend(&mut self, wait: Duration) {
        self.suspended_until = Instant::now().checked_add(wait);
    }

    /// Prevents false answers to one question from repeating, if faults are transient.
    pub(in crate::demo) fn spare(
        &mut self,
        fault: &mut CallFaults,
        faults: &Faults,
        (question, question_of_lie, twice): (u64, u64, bool),
    ) {
        if faults.transient {
            fault.spare(self.spared.entry(question).or_default());
        }
        if faults.lie() {
            fault.answer_faults.lie.spare(self.lies.entry(question_of_lie).or_default(), twice);
        }
    }
}
