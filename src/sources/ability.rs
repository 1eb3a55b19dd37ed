//! What each endpoint was found to offer, what the chain loses where it is lacking, and what to
//! configure instead. No requests are sent for this: entries come from the outcomes of ordinary
//! reads.

use crate::domain::{Height, named};
use crate::rpc::EndpointStatus;

named! {
    /// Whether an endpoint offers an ability, as far as its answers have shown.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Offered {
        Yes = "yes",
        No = "no",
        /// No read has needed the ability yet.
        Unknown = "unknown",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    pub kind: AbilityKind,
    pub offered: Offered,
    /// The lowest height for which the endpoint is known to keep this data.
    pub from: Option<Height>,
    /// A height at which the endpoint had pruned this data; it has none below either.
    pub lacks: Option<Height>,
    /// The most blocks or rows that one request may cover.
    pub most: Option<u64>,
}

named! {
    /// The abilities that are reported; a closed list.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum AbilityKind {
        SignatureLists = "signature_lists",
        TokenAccounts = "token_accounts",
        FullPages = "full_pages",
        Logs = "logs",
        Traces = "traces",
        States = "states",
        AssetTransfers = "asset_transfers",
        AccountLists = "account_lists",
        InnerCalls = "inner_calls",
        Events = "events",
    }
}

impl AbilityKind {
    /// What the chain loses where no endpoint has this ability, or where all of them have pruned
    /// too much.
    pub fn loses(self) -> &'static str {
        match self {
            Self::SignatureLists => "no history of this chain can be read",
            Self::TokenAccounts => {
                "trades that name only token accounts of the wallet are not found"
            }
            Self::FullPages => "each transaction takes a call of its own: loading is slower",
            Self::Logs => "wallets cannot be found by logs; below what is kept, histories are cut",
            Self::Traces | Self::States => {
                "amountSol is null where only inner calls show the native coin of a trade"
            }
            Self::AssetTransfers => "wallets cannot be found by alchemy_getAssetTransfers",
            Self::AccountLists => {
                "wallets are searched by events, which is slower and does not show TRC-10"
            }
            Self::InnerCalls => {
                "native coin that others' transactions moved to the wallet by inner calls is not found"
            }
            Self::Events => {
                "wallets can be found by account lists only; below what is kept, histories are cut"
            }
        }
    }

    /// What the operator can configure to get this ability.
    pub fn configure(self) -> &'static str {
        match self {
            Self::SignatureLists => "a node with getSignaturesForAddress",
            Self::TokenAccounts => "a node with getTokenAccountsByOwner",
            Self::FullPages => "a provider with getTransactionsForAddress",
            Self::Logs => "an archive node, a portal or an explorer",
            Self::Traces | Self::States => {
                "a node with debug_traceTransaction or trace_transaction, or an explorer"
            }
            Self::AssetTransfers => {
                "a provider with alchemy_getAssetTransfers, a portal or an explorer"
            }
            Self::AccountLists => "TronGrid, or a node with its /v1 lists",
            Self::InnerCalls => "an explorer or a portal that follows inner calls",
            Self::Events => "a node that keeps all events, or one with account lists",
        }
    }
}

impl Ability {
    pub(super) fn new(kind: AbilityKind, offered: Offered) -> Self {
        Self { kind, offered, from: None, lacks: None, most: None }
    }

    /// Derives an ability from a list of methods any of which serves it: offered where one method
    /// gave a result and is not refused now, not offered where all are refused, else unknown.
    pub(super) fn by_methods(kind: AbilityKind, status: &EndpointStatus, methods: &[&str]) -> Self {
        let is_in = |list: &[String], method: &&&str| list.iter().any(|one| one == **method);
        let refused = methods.iter().filter(|method| is_in(&status.not_offered, method)).count();
        let works =
            |method: &&&str| is_in(&status.worked, method) && !is_in(&status.not_offered, method);
        Self::new(
            kind,
            match methods.iter().find(works) {
                Some(_) => Offered::Yes,
                None if refused == methods.len() => Offered::No,
                None => Offered::Unknown,
            },
        )
    }

    /// Whether the endpoint lacks this ability, wholly or below some height.
    pub fn is_short(&self) -> bool {
        self.offered == Offered::No || self.lacks.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use super::*;
    use crate::rpc::EndpointId;

    fn status(worked: &[&str], refused: &[&str]) -> EndpointStatus {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        EndpointStatus {
            id: EndpointId(0),
            label: "http://node".to_owned(),
            resting: false,
            in_flight: 0,
            batch: 1,
            latency: Duration::ZERO,
            last_error: None,
            answered_ago: None,
            worked: owned(worked),
            not_offered: owned(refused),
            calls: BTreeMap::new(),
        }
    }

    #[test]
    fn methods_show_what_is_offered() {
        let offered = |worked: &[&str], refused: &[&str]| {
            let status = status(worked, refused);
            Ability::by_methods(AbilityKind::Traces, &status, &["a", "b"]).offered
        };
        assert_eq!(offered(&[], &[]), Offered::Unknown);
        assert_eq!(offered(&["a"], &[]), Offered::Yes);
        assert_eq!(offered(&["a"], &["b"]), Offered::Yes);
        assert_eq!(offered(&[], &["b"]), Offered::Unknown, "the other was not needed yet");
        assert_eq!(offered(&[], &["a", "b"]), Offered::No);
        assert_eq!(offered(&["a"], &["a", "b"]), Offered::No, "refused now");
    }

    #[test]
    fn names_are_distinct() {
        let names: BTreeSet<&str> = AbilityKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), AbilityKind::ALL.len());
    }
}
