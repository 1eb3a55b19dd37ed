//! `getTransactionsForAddress`: full transactions by slot range, token accounts included
//! (helius.dev, "getTransactionsForAddress"), and what each endpoint supports of it.
//!
//! Providers differ: some take 1,000 transactions a page and some 100, some keep the newest epochs
//! alone, some ignore `tokenAccounts`. So each endpoint is probed once with the very filters that
//! are used, and pages prove transactions that name only token accounts only where the endpoint has
//! returned one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::SolanaSource;
use super::index_reach::{FULL_PAGES as METHOD, IndexedList};
use super::list::Entry;
use super::timeline::Timed;
use crate::decode::solana as decoder;
use crate::domain::{Address, Height, TxId, lock};
use crate::rpc::{Call, CallOptions, CallResponse, EndpointId, EndpointSet, Result, UpstreamError};

/// Below this slot the method does not cover token accounts: lists are read there.
pub(super) const FIRST_SLOT: Height = decoder::OWNERS_FROM;
/// Transactions in a page, largest first: what providers document.
const PAGE_SIZES: [usize; 2] = [1000, 100];
/// Size of the first page: small, so that the first rows come early.
pub(super) const PAGE_FIRST: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct PageQuery {
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) limit: usize,
    /// Oldest first.
    pub(super) ascending: bool,
    pub(super) token: Option<String>,
    /// The slot that a node must have reached to return the page: one that lags would leave out the
    /// newest transactions without a sign.
    pub(super) known_to: Option<Height>,
}

impl PageQuery {
    fn is_newest(&self) -> bool {
        !self.ascending && self.token.is_none() && self.known_to == Some(self.high)
    }

    fn params(&self, wallet: Address) -> Value {
        let filters = json!({
            "slot": {"gte": self.low, "lte": self.high},
            "status": "succeeded",
            "tokenAccounts": "balanceChanged",
        });
        let how = [
            Some(("filters", filters)),
            Some(("transactionDetails", "full".into())),
            Some(("sortOrder", if self.ascending { "asc" } else { "desc" }.into())),
            Some(("limit", self.limit.into())),
            Some(("commitment", "finalized".into())),
            Some(("encoding", "json".into())),
            Some(("maxSupportedTransactionVersion", 1.into())),
            self.known_to.map(|slot| ("minContextSlot", slot.into())),
            self.token.clone().map(|token| ("paginationToken", token.into())),
        ];
        let how: Value = how.into_iter().flatten().collect();
        json!([wallet.to_string(), how])
    }
}

#[derive(Debug)]
pub(super) struct FullPage {
    pub(super) txs: Vec<Timed>,
    pub(super) token: Option<String>,
    pub(super) by: EndpointId,
    /// No index lags so far that it could lack transactions at or below the page's lowest slot.
    pub(super) is_deep: bool,
}

impl FullPage {
    pub(super) fn entries(&self) -> impl Iterator<Item = (Height, TxId)> {
        self.txs.iter().filter_map(|(tx, _)| Some((tx.slot(), tx.id()?)))
    }
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    #[serde(default, rename = "paginationToken")]
    token: Option<String>,
}

/// Number of reads by pages that left a doubt, after which a wallet is read by lists.
const DOUBTFUL_READS: u32 = 2;

#[derive(Debug, Clone, Copy)]
enum PageOffer {
    /// Pages of at most this many transactions; until the given time fewer than it took before.
    Takes(usize, Option<Instant>),
    /// No usable pages, until the given time.
    Lacks(Instant),
}

impl PageOffer {
    fn limit(&self) -> Option<usize> {
        match self {
            Self::Takes(limit, _) => Some(*limit),
            Self::Lacks(_) => None,
        }
    }
}

/// What probes and reads have shown about the endpoints' pages.
#[derive(Debug, Default)]
pub(super) struct PageOffers(Mutex<Learned>);

#[derive(Debug, Default)]
struct Learned {
    offers: BTreeMap<EndpointId, PageOffer>,
    /// Endpoints that have returned transactions which name only token accounts.
    by_owner: EndpointSet,
    /// Number of reads by pages that left a doubt, by wallet: after two, or one that ended, the
    /// wallet is read by lists.
    unproved: HashMap<[u8; 32], u32>,
}

impl SolanaSource {
    /// Transactions on a page of one endpoint, where known.
    pub(super) fn page_size(&self, id: EndpointId) -> Option<u64> {
        let limit = lock(&self.inner.page_offers.0).offers.get(&id)?.limit()?;
        u64::try_from(limit).ok()
    }

    /// The size of the largest pages and the endpoints without them; `None` where no endpoint is
    /// known to offer any.
    pub(super) fn page_plan(&self) -> Option<(usize, EndpointSet)> {
        let learned = lock(&self.inner.page_offers.0);
        let limit = learned.offers.values().filter_map(PageOffer::limit).max()?;
        let mut without = EndpointSet::default();
        for status in self.inner.pool.endpoints() {
            if learned.offers.get(&status.id).and_then(PageOffer::limit) != Some(limit) {
                without.insert(status.id);
            }
        }
        Some((limit, without))
    }

    /// The list that shows the newest transactions: pages, where every endpoint offers them.
    pub(super) fn newest_list(&self) -> IndexedList {
        let all = self.page_plan().is_some_and(|(_, without)| without == EndpointSet::default());
        if all { IndexedList::FullPages } else { IndexedList::Signatures }
    }

    /// The endpoints whose support is not known, or not any more.
    pub(super) fn unprobed(&self) -> Vec<EndpointId> {
        let (learned, now) = (lock(&self.inner.page_offers.0), Instant::now());
        let is_open = |id: &EndpointId| match learned.offers.get(id) {
            None => true,
            Some(PageOffer::Lacks(until) | PageOffer::Takes(_, Some(until))) => *until <= now,
            Some(PageOffer::Takes(_, None)) => false,
        };
        self.inner.pool.ids().into_iter().filter(is_open).collect()
    }

    /// Probes each of these endpoints with an empty range, and the filters and page size that reads
    /// use. Returns whether any offers pages.
    pub(super) async fn probe_pages(
        &self,
        endpoints: Vec<EndpointId>,
        wallet: Address,
        options: &CallOptions,
    ) -> bool {
        join_all(endpoints.into_iter().map(|id| self.probe_endpoint(id, wallet, options))).await;
        self.page_plan().is_some()
    }

    async fn probe_endpoint(&self, id: EndpointId, wallet: Address, options: &CallOptions) {
        let options = options.first_on(id);
        for limit in PAGE_SIZES {
            let query = PageQuery {
                low: FIRST_SLOT,
                high: FIRST_SLOT,
                limit,
                ascending: false,
                token: None,
                known_to: None,
            };
            match self.inner.pool.call(METHOD, query.params(wallet), &options).await {
                Ok(answer) if serde_json::from_str::<Reply<'_>>(answer.result.get()).is_ok() => {
                    let takes = PageOffer::Takes(limit, None);
                    lock(&self.inner.page_offers.0).offers.insert(id, takes);
                    return;
                }
                // Another page size may be accepted.
                Err(UpstreamError::Rpc { .. }) => {}
                Err(error) if error.is_final() => break,
                // An answer without a page is no answer; what is unavailable now may be available
                // next time.
                Ok(_) | Err(_) => return,
            }
        }
        self.give_up_pages(id);
    }

    pub(super) fn give_up_pages(&self, id: EndpointId) {
        let until = Instant::now() + self.inner.limits.full_pages_recheck;
        lock(&self.inner.page_offers.0).offers.insert(id, PageOffer::Lacks(until));
    }

    /// A page was larger than the limit, or failed: smaller ones are requested for a while, where
    /// there is a smaller size.
    pub(super) fn shrink_pages(&self, limit: usize) -> bool {
        let until = Instant::now() + self.inner.limits.full_pages_recheck;
        let mut learned = lock(&self.inner.page_offers.0);
        let Some(smaller) = PAGE_SIZES.into_iter().find(|size| *size < limit) else { return false };
        for offer in learned.offers.values_mut() {
            if matches!(offer, PageOffer::Takes(size, _) if *size == limit) {
                *offer = PageOffer::Takes(smaller, Some(until));
            }
        }
        true
    }

    /// Whether each of these has returned a transaction that names only token accounts.
    pub(super) fn finds_by_owner(&self, endpoints: &[EndpointId]) -> bool {
        let by_owner = lock(&self.inner.page_offers.0).by_owner;
        endpoints.iter().all(|id| by_owner.contains(*id))
    }

    /// Notes that pages of a wallet left a doubt that only lists remove. A read in progress
    /// continues; a re-read ends with its first doubt, and would otherwise begin with the same
    /// pages for ever.
    pub(super) fn note_unproved_by_pages(&self, wallet: [u8; 32], has_ended: bool) {
        let mut learned = lock(&self.inner.page_offers.0);
        if learned.unproved.len() >= self.inner.limits.unproved_wallets_max {
            learned.unproved.clear();
        }
        let reads = learned.unproved.entry(wallet).or_default();
        *reads = reads.saturating_add(if has_ended { DOUBTFUL_READS } else { 1 });
    }

    pub(super) fn is_unproved_by_pages(&self, wallet: Address) -> bool {
        let unproved = &lock(&self.inner.page_offers.0).unproved;
        unproved.get(wallet.bytes()).is_some_and(|reads| *reads >= DOUBTFUL_READS)
    }

    /// The page with the newest transactions is accepted only once the node's index is known to
    /// have reached them.
    async fn ask_full_page(
        &self,
        wallet: Address,
        query: &PageQuery,
        options: &CallOptions,
    ) -> Result<CallResponse> {
        let calls = [Call { method: METHOD, params: query.params(wallet) }];
        let mut answers = if query.is_newest() {
            self.answers_up_to((IndexedList::FullPages, query.high), &calls, options).await
        } else {
            self.inner.pool.batch(&calls, options).await
        };
        answers.pop().unwrap_or(Err(UpstreamError::NoEndpoint))
    }

    /// One page; a transaction without a time gets that of its block.
    pub(super) async fn full_page(
        &self,
        wallet: ([u8; 32], Address),
        query: &PageQuery,
        options: &CallOptions,
    ) -> Result<FullPage> {
        let answer = self.ask_full_page(wallet.1, query, options).await?;
        let by = answer.endpoint;
        let bad = |what| self.malformed(by, what);
        let reply: Reply<'_> = serde_json::from_str(answer.result.get())
            .map_err(|_| bad("getTransactionsForAddress gave no page"))?;
        let (mut txs, mut failed) = (Vec::with_capacity(reply.data.len()), Vec::new());
        for raw in reply.data {
            let tx = decoder::parse(raw.get().as_bytes())
                .map_err(|_| bad("getTransactionsForAddress gave no transaction"))?;
            if !(query.low..=query.high).contains(&tx.slot()) {
                self.give_up_pages(by);
                return Err(bad("getTransactionsForAddress ignores the range of slots"));
            }
            if tx.failed() {
                let entry = |id| Entry { slot: tx.slot(), id, time: None, failed: Some(true) };
                failed.extend(tx.id().map(entry));
                continue;
            }
            if !tx.is_whole() {
                return Err(bad("getTransactionsForAddress gave a part of a transaction"));
            }
            if !tx.names(&wallet.0) {
                lock(&self.inner.page_offers.0).by_owner.insert(by);
            }
            let time = self.time_of(tx.slot(), tx.block_time(), options).await?;
            let time = time.ok_or_else(|| bad("a block without a time"))?;
            txs.push((Box::new(tx), time));
        }
        if !self.not_failed(&failed, options).await.is_empty() {
            return Err(bad("getTransactionsForAddress gives transactions as failed that did not"));
        }
        let lowest = txs.iter().map(|(tx, _)| tx.slot()).min();
        let is_deep = lowest.is_some_and(|low| self.have_pages_passed(low, options.without));
        Ok(FullPage { txs, token: reply.token, by, is_deep })
    }
}
