//! What was learned of whether an index follows inner calls, and with that what each endpoint offers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::discovery::Discovery;
use super::explorer_wire::ExplorerList;
use super::page_sizes::PageSizes;
use super::{EvmSource, Past};
use crate::domain::{Height, lock};
use crate::rpc::{EndpointStatus, Pool};
use crate::sources::ability::{Ability, AbilityKind, Offered};
use crate::sources::server_reach::ServerReach;

/// Answers, each so long after the one before, after which an ability counts as not offered.
const ABSENCES_MIN: u32 = 3;
const SPACING: Duration = Duration::from_secs(10);
/// The same over so long, where it listed some before: its tables may only be built anew.
const LOST_AFTER: Duration = Duration::from_secs(600);
/// Windows are not expected for so long after one that proved to be another.
const UNPROVED_REST: Duration = Duration::from_secs(300);

/// Of the ways that may follow inner calls or not, and how far their lists have come.
#[derive(Debug, Default)]
pub(super) struct Abilities {
    calls: Mutex<HashMap<Discovery, CallsSeen>>,
    pub(super) reach: ServerReach<ExplorerList>,
    pub(super) page_sizes: PageSizes,
    /// Of nodes, by the heads that they name.
    pub(super) node_reach: ServerReach<()>,
    /// When a window that was expected last proved to be another one.
    unproved_at: Mutex<Option<Instant>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct CallsSeen {
    has_worked: bool,
    absences: u32,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl CallsSeen {
    fn is_lost(&self) -> bool {
        let span = self.first.zip(self.last).map(|(first, last)| last.duration_since(first));
        !self.has_worked || span.is_some_and(|span| span >= LOST_AFTER)
    }
}

impl Abilities {
    /// A window was not the one that was expected: what was requested of it was requested in vain.
    pub(super) fn note_unproved(&self) {
        *lock(&self.unproved_at) = Some(Instant::now());
    }

    /// Whether windows prove to be those that were expected.
    pub(super) fn are_proved(&self) -> bool {
        lock(&self.unproved_at).is_none_or(|at| at.elapsed() >= UNPROVED_REST)
    }

    pub(super) fn note_calls(&self, kind: Discovery) {
        let mut all = lock(&self.calls);
        all.insert(kind, CallsSeen { has_worked: true, ..CallsSeen::default() });
    }

    /// A proper answer shows that it follows none: no error, no refusal.
    pub(super) fn note_no_calls(&self, kind: Discovery) {
        let now = Instant::now();
        let mut all = lock(&self.calls);
        let ability = all.entry(kind).or_default();
        if ability.last.is_none_or(|last| now.duration_since(last) >= SPACING) {
            ability.absences = ability.absences.saturating_add(1);
            ability.first.get_or_insert(now);
            ability.last = Some(now);
        }
    }

    /// Shown by repeated answers and never contradicted.
    pub(super) fn has_no_calls(&self, kind: Discovery) -> bool {
        self.get(kind).is_some_and(|one| !one.has_worked && one.absences >= ABSENCES_MIN)
    }

    /// The same of late; for long, where it listed some before.
    pub(super) fn shows_no_calls(&self, kind: Discovery) -> bool {
        self.get(kind).is_some_and(|one| one.absences >= ABSENCES_MIN && one.is_lost())
    }

    /// One answer is enough to ask another way first.
    pub(super) fn may_have_no_calls(&self, kind: Discovery) -> bool {
        self.get(kind).is_some_and(|one| !one.has_worked && one.absences > 0)
    }

    fn get(&self, kind: Discovery) -> Option<CallsSeen> {
        lock(&self.calls).get(&kind).copied()
    }
}

impl EvmSource {
    /// In the order of the status: nodes, then the index, then the gateway.
    pub(in crate::sources) fn abilities(&self) -> Vec<Vec<Ability>> {
        let nodes = self.inner.pool.endpoints();
        let nodes = nodes.iter().map(|status| self.abilities_of_node(status));
        let follows_calls = |pool: &Option<Pool>, kind: Discovery| {
            let offered = match self.inner.abilities.get(kind) {
                Some(ability) if ability.has_worked => Offered::Yes,
                _ if self.inner.abilities.has_no_calls(kind) => Offered::No,
                _ => Offered::Unknown,
            };
            let of = move |_: EndpointStatus| vec![Ability::new(AbilityKind::InnerCalls, offered)];
            pool.iter().flat_map(Pool::endpoints).map(of).collect::<Vec<_>>()
        };
        let explorer = follows_calls(&self.inner.explorer, Discovery::Explorer);
        let portal = follows_calls(&self.inner.portal, Discovery::Portal);
        nodes.chain(explorer).chain(portal).collect()
    }

    fn abilities_of_node(&self, status: &EndpointStatus) -> Vec<Ability> {
        let by = |kind, methods: &[&str]| Ability::by_methods(kind, status, methods);
        let logs = by(AbilityKind::Logs, &["eth_getLogs"]);
        let (from, lacks, most) = self.known_logs(status.id);
        let tracers = ["debug_traceTransaction", "trace_transaction"];
        vec![
            Ability { from, lacks, most, ..logs },
            Ability { lacks: self.lacks(Past::Traces), ..by(AbilityKind::Traces, &tracers) },
            Ability {
                lacks: self.lacks(Past::States),
                ..by(AbilityKind::States, &["eth_getBalance"])
            },
            by(AbilityKind::AssetTransfers, &["alchemy_getAssetTransfers"]),
        ]
    }

    /// A height of which no node had it, not long ago.
    fn lacks(&self, what: Past) -> Option<Height> {
        let pruned = lock(&self.inner.pruned);
        pruned.get(&what).filter(|(_, until)| *until > Instant::now()).map(|(top, _)| *top)
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
        assert!(
            shown.shows_no_calls(Discovery::Portal) && !worked.shows_no_calls(Discovery::Portal)
        );
        tokio::time::sleep(LOST_AFTER).await;
        worked.note_no_calls(Discovery::Portal);
        assert!(worked.shows_no_calls(Discovery::Portal));
        worked.note_calls(Discovery::Portal);
        assert!(!worked.shows_no_calls(Discovery::Portal));
    }
}
