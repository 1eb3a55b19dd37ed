//! Decides which missing abilities of an endpoint matter, and which chains are checked.

use std::collections::BTreeSet;

use super::probe::CheckedEndpoint;
use crate::cli::config::Config;
use crate::cli::config::chains::ChainLayer;
use crate::cli::sources::{ChainLists, is_on};
use crate::registry::{Chain, Registry};
use crate::sources::AbilityKind;

/// Removes the advice on an ability for which the chain has an alternative: another method of this
/// endpoint, another endpoint, or a list that is queried first.
pub(super) fn advise(
    mut endpoints: Vec<CheckedEndpoint>,
    lists: &ChainLists,
) -> Vec<CheckedEndpoint> {
    let results = endpoints.iter().flat_map(|checked| &checked.results);
    let offered: BTreeSet<AbilityKind> =
        results.filter(|finding| finding.ok).filter_map(|finding| finding.kind).collect();
    for finding in endpoints.iter_mut().flat_map(|checked| &mut checked.results) {
        if finding.kind.is_some_and(|kind| has_alternative(kind, &offered, lists)) {
            (finding.loses, finding.configure) = (None, None);
        }
    }
    endpoints
}

fn has_alternative(kind: AbilityKind, offered: &BTreeSet<AbilityKind>, lists: &ChainLists) -> bool {
    let (explorer, portal) = (lists.explorer.is_some(), lists.portal.is_some());
    match kind {
        AbilityKind::Traces | AbilityKind::States => {
            let either = [AbilityKind::Traces, AbilityKind::States];
            explorer || either.iter().any(|kind| offered.contains(kind))
        }
        AbilityKind::Logs | AbilityKind::AssetTransfers => {
            explorer || portal || offered.contains(&kind)
        }
        AbilityKind::SignatureLists
        | AbilityKind::TokenAccounts
        | AbilityKind::FullPages
        | AbilityKind::AccountLists
        | AbilityKind::InnerCalls
        | AbilityKind::Events => offered.contains(&kind),
    }
}

/// The enabled chains with a configured endpoint or list; if there are none, all enabled chains.
/// The public nodes of other chains do not matter to an operator with own endpoints.
pub(super) fn chains_to_check<'a>(config: &Config, registry: &'a Registry) -> Vec<&'a Chain> {
    let is_own = |chain: &&Chain| {
        let has = |layer: &ChainLayer| layer.rpc.is_some() || layer.has_lists();
        config.chains.get(&chain.slug).is_some_and(has)
    };
    let on: Vec<&Chain> = registry.chains().iter().filter(|chain| is_on(config, chain)).collect();
    let own: Vec<&Chain> = on.iter().copied().filter(is_own).collect();
    if own.is_empty() { on } else { own }
}
