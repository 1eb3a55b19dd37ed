//! Fetches pages of lists, and transactions in batches.

use std::collections::HashMap;

use futures_util::future::{join, try_join_all};
use serde_json::{Value, json};

use super::SolanaSource;
use super::index_reach::IndexedList;
use super::list::{Entry, FEW, PAGE_MAX};
use super::list_page::ListPage;
use super::timeline::Timed;
use crate::decode::solana::{self as decoder, Transaction};
use crate::domain::{Address, Height, TxId, UnixSeconds};
use crate::rpc::classify::UNKNOWN_SIGNATURE;
use crate::rpc::{Call, CallOptions, CallResponse, EndpointId, EndpointSet, Result, UpstreamError};
use crate::sources::chunk::{FoundTx, RawTx};

#[derive(Debug, Clone)]
pub(super) struct PageRequest {
    /// Number of the list.
    pub(super) list: usize,
    pub(super) address: [u8; 32],
    pub(super) before: Option<TxId>,
    /// The node must know at least this slot.
    pub(super) min_slot: Option<Height>,
    /// The lowest slot that the list has returned so far.
    pub(super) lowest: Option<Height>,
    /// The entry with which the page must begin; one that begins otherwise counts as empty.
    pub(super) first: Option<TxId>,
    /// The page shows the newest entries: the node's list must be known to have reached `min_slot`.
    pub(super) is_newest: bool,
}

pub(super) type PageReply = Result<ListPage>;

pub(super) enum Fetched {
    Transaction(Timed),
    Missing,
    /// Every endpoint fails on it.
    Failing,
}

pub(super) type FetchedEntry = (Entry, Fetched);

type Read = Result<Option<Timed>>;

/// A requested transaction, the endpoint that answered (`None`: every endpoint failed on it), and
/// its answer.
type AskedTx = (Entry, Option<EndpointId>, Read);

impl SolanaSource {
    /// Pages with the newest entries are accepted only once their node's list is known to have
    /// reached the wanted slot.
    pub(super) async fn pages(
        &self,
        asked: Vec<PageRequest>,
        options: CallOptions,
    ) -> Vec<(usize, PageReply)> {
        let call = |one: &PageRequest| {
            page_call(Address::Solana(one.address), PAGE_MAX, one.before, one.min_slot)
        };
        let calls: Vec<Call> = asked.iter().map(call).collect();
        let newest = asked.iter().filter(|request| request.is_newest);
        let answers = match newest.filter_map(|request| request.min_slot).max() {
            Some(slot) => {
                self.answers_up_to((IndexedList::Signatures, slot), &calls, &options).await
            }
            None => self.inner.pool.batch(&calls, &options).await,
        };
        let page = |first: Option<TxId>, answer: CallResponse| {
            let (entries, by) = (self.entries(&answer)?, answer.endpoint);
            let count = entries.len();
            let goes_on = self.inner.page_sizes.may_be_cut(by, count, FEW) || count >= PAGE_MAX;
            Ok(ListPage::new(entries, goes_on, by).beginning_with(first))
        };
        let pages = asked.into_iter().zip(answers);
        pages.map(|(of, it)| (of.list, it.and_then(|answer| page(of.first, answer)))).collect()
    }

    /// Joins one page from two answers, of two nodes where possible: one may leave out an entry in
    /// the middle of a page, with its neighbours there. An answer that fails, or does not reach
    /// below the list's lowest slot where the other one does, is requested once more.
    pub(super) async fn page_twice(
        &self,
        asked: PageRequest,
        options: CallOptions,
    ) -> Vec<(usize, PageReply)> {
        let (list, lowest) = (asked.list, asked.lowest);
        let ask = |options: CallOptions| self.one_page(asked.clone(), options);
        let goes_on =
            |page: &PageReply| page.as_ref().is_ok_and(|page| page.end_below(lowest).is_some());
        let [one, two] = self.inner.pool.apart(&options).map(ask);
        let (one, two) = join(one, two).await;
        let (one, mut two) = if one.is_err() || goes_on(&two) { (two, one) } else { (one, two) };
        if one.is_ok() && (two.is_err() || goes_on(&one) && !goes_on(&two)) {
            let avoid = two.as_ref().map_or(options.avoid, |page| Some(page.by));
            two = ask(CallOptions { avoid, ..options }).await;
        }
        let joined = one.and_then(|one| Ok(one.joined(two?, lowest)));
        vec![(list, joined)]
    }

    pub(super) async fn one_page(&self, asked: PageRequest, options: CallOptions) -> PageReply {
        let page = self.pages(vec![asked], options).await.pop();
        page.map_or(Err(UpstreamError::NoEndpoint), |(_, page)| page)
    }

    /// A transaction that one node does not return, or returns wrongly, is requested from a second
    /// one, and then from those that are left, before it counts as missing. One that contradicts its
    /// list in one answer alone is asked for once more where that answer came from.
    pub(super) async fn transactions(
        &self,
        entries: Vec<Entry>,
        mut options: CallOptions,
    ) -> Result<Vec<FetchedEntry>> {
        let mut fetched = Vec::with_capacity(entries.len());
        let mut odd = HashMap::new();
        let answers = self.ask_transactions(entries, &options).await?;
        let mut missing = received(answers, true, (&mut odd, &mut fetched))?;
        for round in 1..self.inner.pool.endpoints().len().max(2) {
            let asked: Vec<EndpointId> = missing.iter().map(|(_, by)| *by).collect();
            let Some(last) = asked.last() else { break };
            options.avoid = Some(*last);
            let entries = missing.iter().map(|(entry, _)| *entry).collect();
            match self.ask_transactions(entries, &options).await {
                Ok(answers) => missing = received(answers, false, (&mut odd, &mut fetched))?,
                // Two endpoints have answered: a failure now is no reason to wait.
                Err(_) if round > 1 => break,
                Err(error) => return Err(error),
            }
            for by in asked {
                options.without.insert(by);
            }
        }
        let (again, mut missing): (Vec<_>, Vec<_>) =
            missing.into_iter().partition(|(entry, _)| odd.contains_key(&entry.id));
        if let Some(by) = again.last().and_then(|(entry, _)| odd.get(&entry.id)) {
            let entries = again.iter().map(|(entry, _)| *entry).collect();
            let without = EndpointSet::default();
            let options = CallOptions { without, ..options.first_on(*by) };
            match self.ask_transactions(entries, &options).await {
                Ok(answers) => {
                    missing.extend(received(answers, false, (&mut odd, &mut fetched))?);
                }
                Err(_) => missing.extend(again),
            }
        }
        fetched.extend(missing.into_iter().map(|(entry, _)| (entry, Fetched::Missing)));
        Ok(fetched)
    }

    async fn ask_transactions(
        &self,
        entries: Vec<Entry>,
        options: &CallOptions,
    ) -> Result<Vec<AskedTx>> {
        let calls: Vec<Call> = entries.iter().map(|entry| transaction_call(entry.id)).collect();
        let probe = transaction_call(TxId::solana(&[0; 64])).params;
        let answers = self.inner.pool.batch_of_own(&calls, &probe, options).await?;
        // In parallel, because a block time may have to be requested.
        let read = entries.into_iter().zip(answers).map(|(entry, answer)| async move {
            let answer = match answer {
                Ok(answer) => answer,
                Err(UpstreamError::Rpc { code: UNKNOWN_SIGNATURE, .. }) => {
                    return Ok((entry, None, Ok(None)));
                }
                Err(error) => return Ok((entry, None, Err(error))),
            };
            let by = answer.endpoint;
            Ok((entry, Some(by), self.transaction(entry, answer, options).await))
        });
        try_join_all(read).await
    }

    /// One transaction by its signature, also a failed one; `None` where no node has it among
    /// finalized ones.
    pub(crate) async fn single(&self, id: TxId, options: &CallOptions) -> Result<Option<FoundTx>> {
        let call = transaction_call(id);
        let answer = self.inner.pool.call(call.method, call.params, options).await?;
        let text = answer.result.get();
        if text.trim() == "null" {
            return Ok(None);
        }
        let parsed = decoder::parse(text.as_bytes()).ok();
        let parsed = parsed.filter(|tx| tx.id() == Some(id) && tx.is_whole());
        let Some(tx) = parsed else {
            return Err(self
                .malformed(answer.endpoint, "getTransaction gave another transaction, or a part"));
        };
        let time = self.time_of(tx.slot(), tx.block_time(), options).await?;
        let time = time.unwrap_or(UnixSeconds(0));
        Ok(Some(FoundTx { raw: RawTx::Solana(Box::new(tx), time), fee: None }))
    }

    async fn transaction(&self, entry: Entry, answer: CallResponse, options: &CallOptions) -> Read {
        let text = answer.result.get();
        if text.trim() == "null" {
            return Ok(None);
        }
        let parsed = decoder::parse(text.as_bytes());
        let is_asked = |tx: &Transaction| tx.id() == Some(entry.id) && tx.slot() == entry.slot;
        let right = parsed.ok().filter(|tx| is_asked(tx) && tx.is_whole());
        let Some(tx) = right else {
            return Err(self
                .malformed(answer.endpoint, "getTransaction gave another transaction, or a part"));
        };
        match self.time_of(entry.slot, tx.block_time().or(entry.time), options).await? {
            Some(time) => Ok(Some((Box::new(tx), time))),
            None => Err(self.malformed(answer.endpoint, "a block without a time")),
        }
    }
}

/// Takes the fetched transactions; returns the others, with the endpoints that have answered for
/// them. `is_first`: no endpoint has answered for them before. `odd`: those that contradicted their
/// list in one answer, with its endpoint: a second such answer is accepted, unless the list states
/// that the transaction did not fail.
fn received(
    answers: Vec<AskedTx>,
    is_first: bool,
    (odd, fetched): (&mut HashMap<TxId, EndpointId>, &mut Vec<FetchedEntry>),
) -> Result<Vec<(Entry, EndpointId)>> {
    let mut missing = Vec::new();
    for (entry, by, tx) in answers {
        match (tx, by) {
            (Ok(Some((tx, _))), Some(by))
                if is_odd(&entry, &tx)
                    && (odd.insert(entry.id, by).is_none() || is_denied(&entry, &tx)) =>
            {
                missing.push((entry, by));
            }
            (Ok(Some(tx)), _) => fetched.push((entry, Fetched::Transaction(tx))),
            (Ok(None) | Err(UpstreamError::Malformed { .. }), Some(by)) => {
                missing.push((entry, by));
            }
            (Err(error), Some(_)) => return Err(error),
            // All endpoints have answered.
            (Err(_), None) if is_first => fetched.push((entry, Fetched::Failing)),
            (Ok(None) | Err(_), None) => fetched.push((entry, Fetched::Missing)),
        }
    }
    Ok(missing)
}

/// Whether a transaction failed, or is older, where its list has it otherwise.
fn is_odd(entry: &Entry, tx: &Transaction) -> bool {
    tx.failed() || tx.block_time().zip(entry.time).is_some_and(|(of, at)| of != at)
}

/// Whether a transaction failed that its list states as one that did not.
fn is_denied(entry: &Entry, tx: &Transaction) -> bool {
    tx.failed() && entry.failed == Some(false)
}

/// Requests, from a node that has reached `min_slot`, the newest entries of a list, or those below
/// `before`.
pub(super) fn page_call(
    address: Address,
    limit: usize,
    before: Option<TxId>,
    min_slot: Option<Height>,
) -> Call {
    let how = [
        Some(("limit", json!(limit))),
        Some(("commitment", "finalized".into())),
        before.map(|id| ("before", id.to_string().into())),
        min_slot.map(|slot| ("minContextSlot", slot.into())),
    ];
    let how: Value = how.into_iter().flatten().collect();
    Call { method: "getSignaturesForAddress", params: json!([address.to_string(), how]) }
}

fn transaction_call(id: TxId) -> Call {
    let how = json!({
        "encoding": "json",
        "commitment": "finalized",
        "maxSupportedTransactionVersion": 1,
    });
    Call { method: "getTransaction", params: json!([id.to_string(), how]) }
}
