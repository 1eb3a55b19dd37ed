//! What was learned of whether an index follows inner calls.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::discovery::Discovery;

/// Answers, each so long after the one before, after which an ability counts as not offered.
const ABSENCES_MIN: u32 = 3;
const SPACING: Duration = Duration::from_secs(10);

/// Of the ways that may follow inner calls or not.
#[derive(Debug, Default)]
pub(super) struct Abilities(Mutex<HashMap<Discovery, Ability>>);

#[derive(Debug, Default, Clone, Copy)]
struct Ability {
    has_worked: bool,
    absences: u32,
    last: Option<Instant>,
}

impl Abilities {
    pub(super) fn note_calls(&self, kind: Discovery) {
        self.lock().entry(kind).or_default().has_worked = true;
    }

    /// A proper answer shows that it follows none: no error, no refusal.
    pub(super) fn note_no_calls(&self, kind: Discovery) {
        let now = Instant::now();
        let mut all = self.lock();
        let ability = all.entry(kind).or_default();
        if ability.last.is_none_or(|last| now.duration_since(last) >= SPACING) {
            ability.absences = ability.absences.saturating_add(1);
            ability.last = Some(now);
        }
    }

    /// Shown by repeated answers and never contradicted.
    pub(super) fn has_no_calls(&self, kind: Discovery) -> bool {
        self.get(kind).is_some_and(|one| !one.has_worked && one.absences >= ABSENCES_MIN)
    }

    /// One answer is enough to ask another way first.
    pub(super) fn may_have_no_calls(&self, kind: Discovery) -> bool {
        self.get(kind).is_some_and(|one| !one.has_worked && one.absences > 0)
    }

    fn get(&self, kind: Discovery) -> Option<Ability> {
        self.lock().get(&kind).copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Discovery, Ability>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_ability_is_absent_after_spaced_answers_and_never_once_it_worked() {
        let [shown, worked] = [Abilities::default(), Abilities::default()];
        worked.note_calls(Discovery::Portal);
        for at in 0..3 {
            assert_eq!(shown.may_have_no_calls(Discovery::Portal), at > 0);
            for abilities in [&shown, &worked] {
                for _ in 0..5 {
                    abilities.note_no_calls(Discovery::Portal);
                }
                assert!(!abilities.has_no_calls(Discovery::Portal) || at == 2);
            }
            tokio::time::sleep(SPACING).await;
        }
        assert!(shown.has_no_calls(Discovery::Portal));
        assert!(!shown.has_no_calls(Discovery::Explorer));
        assert!(!worked.has_no_calls(Discovery::Portal));
        assert!(!worked.may_have_no_calls(Discovery::Portal));
    }
}
