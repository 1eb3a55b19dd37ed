//! What an endpoint was found to offer while it was used, what its lack costs, and what to configure
//! instead. Nothing is asked for it: each entry is what reading has shown.

use crate::domain::Height;
use crate::rpc::endpoint::EndpointStatus;

/// Whether something is offered, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    Yes,
    No,
    /// It was not needed yet.
    Unknown,
}

impl Offered {
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that an endpoint may offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    pub kind: AbilityKind,
    pub offered: Offered,
    /// The lowest height of which it is known to keep what this is about.
    pub from: Option<Height>,
    /// A height at which it was seen to keep nothing, and so below.
    pub lacks: Option<Height>,
    /// Most blocks or rows of one request.
    pub most: Option<u64>,
}

/// A closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbilityKind {
    SignatureLists,
    TokenAccounts,
    FullPages,
    Logs,
    Traces,
    States,
    AssetTransfers,
    AccountLists,
    InnerCalls,
    Events,
}

impl AbilityKind {
    pub const ALL: [Self; 10] = [
        Self::SignatureLists,
        Self::TokenAccounts,
        Self::FullPages,
        Self::Logs,
        Self::Traces,
        Self::States,
        Self::AssetTransfers,
        Self::AccountLists,
        Self::InnerCalls,
        Self::Events,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::SignatureLists => "signature_lists",
            Self::TokenAccounts => "token_accounts",
            Self::FullPages => "full_pages",
            Self::Logs => "logs",
            Self::Traces => "traces",
            Self::States => "states",
            Self::AssetTransfers => "asset_transfers",
            Self::AccountLists => "account_lists",
            Self::InnerCalls => "inner_calls",
            Self::Events => "events",
        }
    }

    /// What is lost where no endpoint of the chain has it, or has it deep enough.
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

    /// What to configure where that matters.
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

    /// By calls of methods any of which serves: offered where one gave a result and is not refused
    /// now, not offered where all are refused.
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

    /// Something is lost by it.
    pub fn is_short(&self) -> bool {
        self.offered == Offered::No || self.lacks.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use super::*;
    use crate::rpc::endpoint::EndpointId;

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
