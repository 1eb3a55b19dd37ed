//! `getTransactionsForAddress`: whole transactions by slot range, token accounts included, where a
//! node offers it (helius.dev, "getTransactionsForAddress").
//!
//! A page's lowest slot is held back until the next page shows what lies below it. A page that
//! names no further one may have ended early: the next is asked from its lowest slot, must hold what
//! is known of that one, and the end is believed when two answers in a row agree on it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::SolanaSource;
use super::listing::FIRST_HEIGHTS;
use crate::decode::solana::{self as decoder, Transaction};
use crate::domain::{Address, Height, TxId, UnixSeconds};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::sources::pager::{Overlap, PageView, Pager, PagerRules, Quorum, Step};

pub(super) const METHOD: &str = "getTransactionsForAddress";
/// Below this slot the method knows nothing of token accounts: lists are read there.
pub(super) const FIRST_SLOT: Height = 111_491_819;
/// Whole transactions in a page: the most that every version of the method gives.
const PAGE_MAX: usize = 100;
/// Pages in a row that bring nothing on, after which lists are read.
const MISSES_MAX: u32 = 4;
const END: Quorum = Quorum { of_several: 2, of_one: 2 };
const RULES: PagerRules = PagerRules {
    quorum: END,
    quorum_of_nothing: END,
    short_page_votes: true,
    misses_max: MISSES_MAX,
    pages_inside_max: u32::MAX,
};

/// A page of whole transactions.
#[derive(Debug)]
pub(super) struct WholePage {
    pub(super) txs: Vec<(Box<Transaction>, UnixSeconds)>,
    token: Option<String>,
    by: EndpointId,
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    data: Vec<&'a RawValue>,
    #[serde(default, rename = "paginationToken")]
    token: Option<String>,
}

/// Where the reading of pages stands.
#[derive(Debug)]
pub(super) struct Whole {
    low: Height,
    next_high: Height,
    /// What a node must know to give a page: one that lags would leave out the newest without a sign.
    known_to: Height,
    /// Pages are asked for at or below this slot.
    top: Height,
    token: Option<String>,
    /// Known and not delivered, newest first.
    held: Vec<(Box<Transaction>, UnixSeconds)>,
    pager: Pager<Height, TxId>,
    /// Who gave the last page, and the last two that held what they must.
    last_by: Option<EndpointId>,
    answered_by: [Option<EndpointId>; 2],
    /// Pages in a row that name a further one and hold nothing new.
    idle_pages: u32,
    is_lost: bool,
    /// The endpoints that reported the end keep what lies below it.
    proved: bool,
}

/// What can be delivered.
#[derive(Debug)]
pub(super) struct WholeChunk {
    pub(super) low: Height,
    pub(super) high: Height,
    pub(super) txs: Vec<(Box<Transaction>, UnixSeconds)>,
}

impl Whole {
    pub(super) fn new(low: Height, high: Height) -> Self {
        Self {
            low: low.max(FIRST_SLOT),
            next_high: high,
            known_to: high,
            top: high,
            token: None,
            held: Vec::new(),
            pager: Pager::new(RULES, high),
            last_by: None,
            answered_by: [None; 2],
            idle_pages: 0,
            is_lost: false,
            proved: false,
        }
    }

    pub(super) fn next_high(&self) -> Height {
        self.next_high
    }

    pub(super) fn has_ended(&self) -> bool {
        self.pager.has_ended()
    }

    /// Whether pages bring nothing on any more.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The endpoint to avoid for the next page: the one that reported the end does not confirm it.
    pub(super) fn avoid(&self) -> Option<EndpointId> {
        let is_doubted = self.pager.votes() > 0 || self.pager.misses() > 0;
        self.last_by.filter(|_| is_doubted && self.token.is_none())
    }

    /// The endpoint that reported the end, where that is its only basis.
    pub(super) fn wants_proof(&self) -> Option<[Option<EndpointId>; 2]> {
        let is_open = self.has_ended() && !self.proved;
        (is_open && self.next_high >= self.low).then_some(self.answered_by)
    }

    /// The endpoints that reported the end keep blocks from there on. False where that is not low
    /// enough.
    pub(super) fn prove(&mut self, first: Height) -> bool {
        let low = if self.low > FIRST_SLOT { self.low } else { FIRST_HEIGHTS };
        self.proved = first <= low;
        self.proved
    }

    /// The parameters of the next page.
    pub(super) fn params(&self, wallet: Address) -> Value {
        let mut how = Map::new();
        how.insert("transactionDetails".to_owned(), "full".into());
        how.insert("sortOrder".to_owned(), "desc".into());
        how.insert("limit".to_owned(), PAGE_MAX.into());
        how.insert("commitment".to_owned(), "finalized".into());
        how.insert("minContextSlot".to_owned(), self.known_to.into());
        how.insert("encoding".to_owned(), "json".into());
        how.insert("maxSupportedTransactionVersion".to_owned(), 1.into());
        if let Some(token) = &self.token {
            how.insert("paginationToken".to_owned(), token.clone().into());
        }
        let filters = json!({
            "slot": {"gte": self.low, "lte": self.top},
            "status": "succeeded",
            "tokenAccounts": "balanceChanged",
        });
        how.insert("filters".to_owned(), filters);
        json!([wallet.to_string(), how])
    }

    pub(super) fn absorb(&mut self, page: WholePage) {
        let WholePage { txs, token, by } = page;
        self.last_by = Some(by);
        let wanted = self.low..=self.next_high;
        let is_held = |id| self.held.iter().any(|(held, _)| held.id() == id);
        let has_new = txs.iter().any(|(tx, _)| wanted.contains(&tx.slot()) && !is_held(tx.id()));
        if has_new {
            self.pager.clear_votes();
        }
        let entry = |(tx, _): &(Box<Transaction>, UnixSeconds)| Some((tx.slot(), tx.id()?));
        let step = self.pager.absorb(&PageView {
            entries: txs.iter().filter_map(entry).filter(|(at, _)| wanted.contains(at)).collect(),
            // From its lowest slot, the page holds something of that one.
            overlap: if self.token.is_none() { Overlap::Any } else { Overlap::Nothing },
            has_more: token.is_some(),
            by: Some(by),
        });
        match step {
            Step::Miss => return,
            Step::Lost => {
                self.is_lost = true;
                return;
            }
            Step::Inside { .. } if !has_new => self.idle_pages += 1,
            Step::Inside { .. } | Step::Lower(_) | Step::Nothing => self.idle_pages = 0,
        }
        self.is_lost |= self.idle_pages > MISSES_MAX;
        let [_, previous] = self.answered_by;
        self.answered_by = [previous, Some(by)];
        self.hold(txs);
        self.token = token;
        if self.token.is_none()
            && let Some((oldest, _)) = self.held.last()
        {
            // Not from below it: a page may have ended in the middle of a slot.
            self.top = self.top.min(oldest.slot());
        }
    }

    fn hold(&mut self, txs: Vec<(Box<Transaction>, UnixSeconds)>) {
        for (tx, time) in txs {
            let is_wanted = (self.low..=self.next_high).contains(&tx.slot());
            if is_wanted && !self.held.iter().any(|(held, _)| held.id() == tx.id()) {
                self.held.push((tx, time));
            }
        }
        self.held.sort_by_key(|(tx, _)| std::cmp::Reverse(tx.slot()));
    }

    /// All but the lowest slot, or all at the end; `None` where nothing new is known.
    pub(super) fn deliver(&mut self) -> Option<WholeChunk> {
        if self.next_high < self.low {
            return None;
        }
        let low = if self.has_ended() && self.wants_proof().is_none() {
            self.low
        } else {
            let lowest = self.held.last()?.0.slot();
            self.held.first().filter(|(tx, _)| tx.slot() > lowest)?;
            lowest + 1
        };
        let kept = self.held.iter().position(|(tx, _)| tx.slot() < low);
        let rest = self.held.split_off(kept.unwrap_or(self.held.len()));
        let txs = std::mem::replace(&mut self.held, rest);
        let high = std::mem::replace(&mut self.next_high, low.saturating_sub(1));
        Some(WholeChunk { low, high, txs })
    }
}

impl SolanaSource {
    /// One page; a transaction without a time gets its block's.
    pub(super) async fn whole_page(
        &self,
        params: Value,
        options: &CallOptions,
    ) -> Result<WholePage, UpstreamError> {
        let answer = self.inner.pool.call(METHOD, params, options).await?;
        let bad = |what| self.malformed(answer.endpoint, what);
        let reply: Reply<'_> = serde_json::from_str(answer.result.get())
            .map_err(|_| bad("getTransactionsForAddress gave no page"))?;
        let mut txs = Vec::with_capacity(reply.data.len());
        for raw in reply.data {
            let tx = decoder::parse(raw.get().as_bytes())
                .map_err(|_| bad("getTransactionsForAddress gave no transaction"))?;
            let reported = tx.block_time().and_then(|time| u64::try_from(time).ok());
            let time = match reported {
                Some(time) => Some(time),
                None => self.time_near(tx.slot(), options).await?,
            };
            let time = time.and_then(|time| u32::try_from(time).ok());
            let time = time.ok_or_else(|| bad("a block without a time"))?;
            txs.push((Box::new(tx), UnixSeconds(time)));
        }
        Ok(WholePage { txs, token: reply.token, by: answer.endpoint })
    }

    /// Whether some endpoint offers the method: asked once, then remembered.
    pub(super) async fn offers_whole(&self, wallet: Address, options: &CallOptions) -> bool {
        let how = json!({"transactionDetails": "signatures", "limit": 1});
        let asked = self.inner.pool.call(METHOD, json!([wallet.to_string(), how]), options).await;
        let offered = match asked {
            // No page is no answer.
            Ok(answer) if answer.result.get().trim() == "null" => return false,
            Ok(_) => true,
            Err(error) if error.is_final() => false,
            // Not available now: lists are read this time.
            Err(_) => return false,
        };
        *self.whole_known() = Some(offered);
        offered
    }

    /// `None`: not asked yet.
    pub(super) fn whole_offered(&self) -> Option<bool> {
        *self.whole_known()
    }

    pub(super) fn give_up_whole(&self) {
        *self.whole_known() = Some(false);
    }

    fn whole_known(&self) -> std::sync::MutexGuard<'_, Option<bool>> {
        self.inner.whole.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
