//! The proof of a read by account lists: the endpoints of the newest pages had indexed up to its
//! top, the one that ended the list of transactions keeps what is older, and an account without
//! transactions does not exist.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::TronSource;
use super::indexed::from_one;
use super::list::{GivenList, IndexedList, ListCursor, ListKind};
use crate::domain::{Address, Doubts, Proof, Way};
use crate::rpc::{CallOptions, EndpointId, Result};

/// Answers after the newest pages that show that none of an endpoint's servers has fallen behind.
const CHECK_ANSWERS: u64 = 4;
/// Milliseconds after an account's creation within which its list begins with it.
const BEGUN_WITHIN: u64 = 60_000;
/// Answers without an older entry of a busy account that show a list to keep none.
const DEPTH_ANSWERS: u64 = 2;
/// Newest pages that arrive later than this after the read began may be from lists that have fallen
/// back.
const SHOWN_AGE_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueryState<T> {
    Open,
    Requested,
    Done(T),
}

#[derive(Debug, Clone)]
pub(super) enum ProofQuery {
    /// Whether these endpoints' lists have reached the read's top.
    Reach {
        given_by: Vec<GivenList>,
        /// Endpoints and lists that had not shown it before their pages.
        unseen: Vec<GivenList>,
    },
    /// Whether the endpoint that ended the list of transactions, with an oldest entry at this time in
    /// milliseconds, keeps what is older.
    Depth { by: EndpointId, oldest: u64 },
    /// Whether the chain has an account whose lists are empty.
    Existence,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ProofAnswer {
    Reach,
    Depth(Doubts),
    /// `None`: no endpoint shows accounts.
    Existence(Option<Doubts>),
}

#[derive(Debug)]
pub(super) struct ListProof {
    /// Milliseconds: the top of the lists.
    pub(super) top_at: u64,
    /// The list of transactions had an entry, at any height. The list of token movements may be
    /// empty.
    shows_account: bool,
    /// The list of token movements had an entry.
    pub(super) shows_transfers: bool,
    /// Lists that had reached the top when the read began.
    shown: Vec<GivenList>,
    began_at: Instant,
    /// The endpoints that gave the newest pages.
    given_by: Vec<GivenList>,
    reach: QueryState<()>,
    depth: QueryState<Doubts>,
    existence: QueryState<Option<Doubts>>,
}

impl ListProof {
    pub(super) fn new(top_at: u64, shown: Vec<GivenList>) -> Self {
        Self {
            top_at,
            shows_account: false,
            shows_transfers: false,
            shown,
            began_at: Instant::now(),
            given_by: Vec::new(),
            reach: QueryState::Open,
            depth: QueryState::Open,
            existence: QueryState::Open,
        }
    }

    /// Records a page; `is_top`: it starts at the read's top.
    pub(super) fn note(&mut self, kind: ListKind, by: EndpointId, items: usize, is_top: bool) {
        self.shows_account |= kind == ListKind::Transactions && items > 0;
        self.shows_transfers |= kind == ListKind::Transfers && items > 0;
        if is_top && self.began_at.elapsed() > SHOWN_AGE_MAX {
            self.shown.clear();
            self.reach = QueryState::Open;
        }
        if is_top && !self.given_by.contains(&(by, kind)) {
            self.given_by.push((by, kind));
            // Newest pages of another endpoint count as well.
            self.reach = QueryState::Open;
        }
    }

    /// The query to send now. `is_begun`: the newest pages of all lists are known; `has_ended`: so
    /// are all other pages of the list of transactions.
    pub(super) fn question(&mut self, is_begun: bool, has_ended: bool) -> Option<ProofQuery> {
        if is_begun && self.reach == QueryState::Open {
            self.reach = QueryState::Requested;
            let given_by = self.given_by.clone();
            let is_unseen = |of: &&GivenList| !self.shown.contains(of);
            let unseen = given_by.iter().filter(is_unseen).copied().collect();
            return Some(ProofQuery::Reach { given_by, unseen });
        }
        if has_ended && !self.shows_account && self.existence == QueryState::Open {
            self.existence = QueryState::Requested;
            return Some(ProofQuery::Existence);
        }
        None
    }

    /// As [`Self::question`], about the list of transactions, which has ended.
    pub(super) fn depth_question(&mut self, by: EndpointId, oldest: u64) -> Option<ProofQuery> {
        let is_due = self.shows_account && self.depth == QueryState::Open;
        is_due.then(|| {
            self.depth = QueryState::Requested;
            ProofQuery::Depth { by, oldest }
        })
    }

    pub(super) fn confirm(&mut self, confirmed: ProofAnswer) {
        match confirmed {
            ProofAnswer::Reach => self.reach = QueryState::Done(()),
            ProofAnswer::Depth(doubts) => self.depth = QueryState::Done(doubts),
            ProofAnswer::Existence(doubts) => self.existence = QueryState::Done(doubts),
        }
    }

    /// Whether nothing may be delivered yet.
    pub(super) fn is_open(&self, has_ended: bool) -> bool {
        let is_known = if self.shows_account {
            matches!(self.depth, QueryState::Done(_))
        } else {
            matches!(self.existence, QueryState::Done(_))
        };
        !matches!(self.reach, QueryState::Done(())) || (has_ended && !is_known)
    }

    pub(super) fn proof(&self) -> Proof {
        // Where no endpoint returns accounts, an index that lists token movements suffices.
        let unshown = if self.shows_transfers { Doubts::NONE } else { Doubts::UNCONFIRMED };
        let doubts = match self.existence {
            QueryState::Done(known) if !self.shows_account => known.unwrap_or(unshown),
            QueryState::Done(_) | QueryState::Open | QueryState::Requested => Doubts::NONE,
        };
        let depth = match self.depth {
            QueryState::Done(known) => known,
            QueryState::Open | QueryState::Requested => Doubts::NONE,
        };
        Proof::of(Way::Lists).with(doubts.union(depth))
    }
}

impl TronSource {
    /// Answers a query about a read that begins at a time in milliseconds.
    pub(super) async fn confirm(
        &self,
        question: ProofQuery,
        (wallet, top_at): (Address, u64),
        options: &CallOptions,
    ) -> Result<ProofAnswer> {
        match question {
            ProofQuery::Reach { given_by, unseen } => {
                self.check_reach(&given_by, (top_at, CHECK_ANSWERS), options).await?;
                self.check_seen(&unseen, top_at)?;
                Ok(ProofAnswer::Reach)
            }
            ProofQuery::Depth { by, oldest } => {
                let doubts = self.doubts_of_depth(wallet, (by, oldest), options);
                let doubts = Box::pin(doubts).await;
                Ok(ProofAnswer::Depth(doubts))
            }
            ProofQuery::Existence => {
                let doubts = self.doubts_of_empty_lists(wallet, top_at, options).await?;
                Ok(ProofAnswer::Existence(doubts))
            }
        }
    }

    /// Doubts below the oldest entry of a list that begins later than its account, as one does that
    /// an inner call created: an index that shows the newest entries of an account which is used all
    /// the time, and none of it from before the wallet, keeps none so old.
    async fn doubts_of_depth(
        &self,
        wallet: Address,
        (by, oldest): (EndpointId, u64),
        options: &CallOptions,
    ) -> Doubts {
        let of = (by, ListKind::Transactions);
        let busy = self.busy_account(of.1).filter(|_| !self.is_new(of));
        let Some(busy) = busy else { return Doubts::NONE };
        let Some(made) = self.made_at(wallet, options).await else { return Doubts::NONE };
        if made.saturating_add(BEGUN_WITHIN) >= oldest {
            return Doubts::NONE;
        }
        let (on_it, wait) = (from_one(by, options), self.longest_wait(of));
        let before = IndexedList::new(made).cursor;
        for nudge in 0..DEPTH_ANSWERS {
            let cursor = ListCursor { nudge, ..before.clone() };
            let page = timeout(wait, self.page(busy, of.1, &cursor, 1, &on_it)).await;
            if !matches!(page, Ok(Ok((page, _))) if page.rows.is_empty()) {
                return Doubts::NONE;
            }
        }
        let is_older = self.made_at(busy, options).await.is_some_and(|busy| busy < made);
        if is_older { Doubts::DEPTH } else { Doubts::NONE }
    }

    /// When an account was created, in milliseconds, where nodes show it.
    async fn made_at(&self, account: Address, options: &CallOptions) -> Option<u64> {
        let (made, _) = self.account_state(account, &options.failing_soon()).await.ok()?;
        made.filter(|made| *made > 0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::*;

    const ONE: EndpointId = EndpointId(0);
    const OTHER: EndpointId = EndpointId(1);

    #[test]
    fn newest_pages_count_with_the_reach_of_their_endpoints() {
        let mut proof = ListProof::new(100, vec![(ONE, ListKind::Transactions)]);
        proof.note(ListKind::Transactions, ONE, 3, true);
        assert!(proof.question(false, false).is_none() && proof.is_open(false));
        let asked = proof.question(true, false);
        let from_one = [(ONE, ListKind::Transactions)];
        let Some(ProofQuery::Reach { given_by, unseen }) = asked else { panic!("{asked:?}") };
        assert_eq!((given_by.as_slice(), unseen.is_empty()), (&from_one[..], true));
        assert!(proof.question(true, true).is_none() && proof.is_open(false));
        proof.confirm(ProofAnswer::Reach);
        assert!(!proof.is_open(false) && proof.is_open(true));
        let asked = proof.depth_question(ONE, 7);
        assert!(matches!(asked, Some(ProofQuery::Depth { by: ONE, oldest: 7 })));
        assert!(proof.depth_question(ONE, 7).is_none() && proof.is_open(true));
        proof.confirm(ProofAnswer::Depth(Doubts::NONE));
        assert!(!proof.is_open(true));
        // Pages further down need no proof of how far the list reaches; another newest page does.
        proof.note(ListKind::Transfers, OTHER, 3, false);
        assert!(!proof.is_open(false));
        proof.note(ListKind::Transfers, OTHER, 3, true);
        let asked = proof.question(true, false);
        let of_other = [(OTHER, ListKind::Transfers)];
        assert!(matches!(asked, Some(ProofQuery::Reach { unseen, .. }) if unseen == of_other));
        assert!(proof.is_open(false));
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_pages_that_come_late_are_of_lists_that_have_shown_nothing() {
        let from_one = (ONE, ListKind::Transactions);
        for (late, unseen_count) in [(Duration::ZERO, 0), (Duration::from_secs(1), 1)] {
            let mut proof = ListProof::new(100, vec![from_one]);
            tokio::time::advance(SHOWN_AGE_MAX + late).await;
            proof.note(ListKind::Transactions, ONE, 3, true);
            let asked = proof.question(true, false);
            let Some(ProofQuery::Reach { unseen, .. }) = asked else { panic!("{asked:?}") };
            assert_eq!(unseen.len(), unseen_count, "{late:?}");
        }
    }

    #[test]
    fn a_list_without_transactions_waits_for_the_account() {
        let mut proof = ListProof::new(100, Vec::new());
        proof.note(ListKind::Transactions, ONE, 0, true);
        proof.note(ListKind::Transfers, ONE, 3, true);
        assert!(proof.question(true, false).is_some());
        proof.confirm(ProofAnswer::Reach);
        assert!(!proof.is_open(false) && proof.is_open(true));
        assert!(matches!(proof.question(true, true), Some(ProofQuery::Existence)));
        proof.confirm(ProofAnswer::Existence(Some(Doubts::UNCONFIRMED)));
        assert!(!proof.is_open(true));
        assert_eq!(proof.proof().doubts, Doubts::UNCONFIRMED);
    }

    #[test]
    fn empty_lists_are_in_doubt_where_no_endpoint_shows_accounts() {
        for (moved, doubts) in [(0, Doubts::UNCONFIRMED), (3, Doubts::NONE)] {
            let mut proof = ListProof::new(100, Vec::new());
            proof.note(ListKind::Transactions, ONE, 0, true);
            proof.note(ListKind::Transfers, ONE, moved, true);
            proof.confirm(ProofAnswer::Existence(None));
            assert_eq!(proof.proof().doubts, doubts, "{moved} token movements");
        }
    }

    /// An account that is used all the time has entries from before the wallet; one that is not known
    /// to be so old need not have any.
    #[tokio::test(start_paused = true)]
    async fn an_index_that_keeps_nothing_older_is_in_doubt() {
        const OLDEST: u64 = 900_000;
        const WALLET: Address = Address::Tron([7; 20]);
        for (kept_from, wallet_made, busy_made, doubts) in [
            (0, 400_000, 5_000, Doubts::NONE),
            (500_000, 400_000, 5_000, Doubts::DEPTH),
            // The list begins with its account.
            (500_000, 880_000, 5_000, Doubts::NONE),
            (500_000, 0, 5_000, Doubts::NONE),
            (500_000, 400_000, 400_000, Doubts::NONE),
        ] {
            let nodes = ScriptedNodes::new(move |(_, path, body)| {
                let Some((_, max)) = path.split_once("max_timestamp=") else {
                    let is_wallets = body["address"] == WALLET.to_string();
                    let made = if is_wallets { wallet_made } else { busy_made };
                    return (200, json!({"address": body["address"], "create_time": made}));
                };
                let newest = max.parse::<u64>().unwrap().min(9_000_000);
                let row = json!({"txID": "ab".repeat(32), "block_timestamp": newest});
                let rows = if newest < kept_from { vec![] } else { vec![row] };
                (200, json!({"data": rows, "success": true, "meta": {}}))
            });
            let source = fake::source(&["one"], &nodes, TronLimits::default());
            let look = async || source.doubts_of_depth(WALLET, (ONE, OLDEST), &options()).await;
            // An index that has not shown the account shows nothing.
            assert_eq!(look().await, Doubts::NONE);
            source.look_again(&[ONE], ListKind::Transactions, 9_000_000, &options()).await;
            assert_eq!(look().await, doubts, "{wallet_made} {busy_made}");
        }
    }

    #[test]
    fn what_an_index_does_not_keep_is_a_doubt_of_the_read() {
        let mut proof = ListProof::new(100, Vec::new());
        proof.note(ListKind::Transactions, ONE, 3, true);
        proof.confirm(ProofAnswer::Depth(Doubts::DEPTH));
        assert_eq!(proof.proof().doubts, Doubts::DEPTH);
    }
}
