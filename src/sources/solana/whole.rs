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
use crate::domain::{Address, Height, UnixSeconds};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;

pub(super) const METHOD: &str = "getTransactionsForAddress";
/// Below this slot the method knows nothing of token accounts: lists are read there.
pub(super) const FIRST_SLOT: Height = 111_491_819;
/// Whole transactions in a page: the most that every version of the method gives.
const PAGE_MAX: usize = 100;
/// Answers in a row that nothing follows after which that is believed.
const END_ANSWERS: u8 = 2;
/// Pages in a row that bring nothing on, after which lists are read.
const MISSES_MAX: u8 = 4;

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
    /// Answers in a row that nothing follows.
    end_answers: u8,
    /// Who gave the last page, and the last two that held what they must.
    last_by: Option<EndpointId>,
    answered_by: [Option<EndpointId>; 2],
    /// Pages in a row that lack what is known, or name a further one and hold nothing new.
    misses: u8,
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
            end_answers: 0,
            last_by: None,
            answered_by: [None; 2],
            misses: 0,
            proved: false,
        }
    }

    pub(super) fn next_high(&self) -> Height {
        self.next_high
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end_answers >= END_ANSWERS
    }

    /// Whether pages bring nothing on any more.
    pub(super) fn is_lost(&self) -> bool {
        self.misses > MISSES_MAX
    }

    /// The endpoint to avoid for the next page: the one that reported the end does not confirm it.
    pub(super) fn avoid(&self) -> Option<EndpointId> {
        let is_doubted = self.end_answers > 0 || self.misses > 0;
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
        self.last_by = Some(page.by);
        if self.token.is_none() && !self.holds_what_is_known(&page) {
            self.misses += 1;
            return;
        }
        let [_, previous] = self.answered_by;
        self.answered_by = [previous, Some(page.by)];
        let before = self.held.len();
        for (tx, time) in page.txs {
            let slot = tx.slot();
            let is_new = slot <= self.next_high
                && slot >= self.low
                && !self.held.iter().any(|(held, _)| held.id() == tx.id());
            if is_new {
                self.held.push((tx, time));
            }
        }
        self.held.sort_by_key(|(tx, _)| std::cmp::Reverse(tx.slot()));
        self.token = page.token;
        let is_new = self.held.len() > before;
        self.misses = if is_new || self.token.is_none() { 0 } else { self.misses + 1 };
        self.end_answers = match (&self.token, is_new) {
            (Some(_), _) => 0,
            (None, true) => 1,
            (None, false) => self.end_answers + 1,
        };
        if self.token.is_none()
            && let Some((oldest, _)) = self.held.last()
        {
            // Not from below it: a page may have ended in the middle of a slot.
            self.top = self.top.min(oldest.slot());
        }
    }

    /// Something of the lowest slot that is known, from which the page was asked.
    fn holds_what_is_known(&self, page: &WholePage) -> bool {
        let Some((lowest, _)) = self.held.last() else { return true };
        let mut known = self.held.iter().rev().take_while(|(tx, _)| tx.slot() == lowest.slot());
        known.any(|(known, _)| page.txs.iter().any(|(tx, _)| tx.id() == known.id()))
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
