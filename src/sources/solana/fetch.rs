//! Fetching: pages of lists, and transactions in batches.

use std::cmp::Reverse;
use std::collections::HashSet;

use futures_util::future::{join, try_join_all};
use serde_json::json;

use super::SolanaSource;
use super::index_reach::IndexedList;
use super::list::{Entry, PAGE_MAX};
use super::wire;
use crate::decode::solana::{self as decoder, Transaction};
use crate::domain::{Address, Height, TxId, UnixSeconds};
use crate::rpc::batch::{Call, CallResponse};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;

/// Nodes recorded token balances with each transaction long before this slot (October 2021); without
/// them nothing shows what was traded.
const TOKEN_BALANCES_FROM: Height = 100_000_000;

/// A page that is asked for.
#[derive(Debug, Clone)]
pub(super) struct PageRequest {
    /// Number of the list.
    pub(super) list: usize,
    pub(super) address: [u8; 32],
    pub(super) before: Option<TxId>,
    /// The node must know at least this slot.
    pub(super) min_slot: Option<Height>,
    /// It shows the newest entries: its list must be known to have come to that slot.
    pub(super) is_newest: bool,
}

/// A page with who gave it.
pub(super) type PageReply = Result<(Vec<Entry>, EndpointId), UpstreamError>;

/// All that two answers to one page hold, as far down as both reach. Where one of them goes no further
/// down, or has no order, the other one is judged alone: an end takes two that show none.
fn joined(one: Vec<Entry>, two: Vec<Entry>, is_top: bool) -> Vec<Entry> {
    let newest_first = |one: &Entry, next: &Entry| one.slot >= next.slot;
    let end = |page: &[Entry]| {
        let end = page.last()?.slot;
        let goes_on = is_top || page.first()?.slot > end;
        (goes_on && page.is_sorted_by(newest_first)).then_some(end)
    };
    let low = match (end(&one), end(&two)) {
        (Some(end), Some(other)) => end.max(other),
        (None, Some(_)) => return two,
        (_, None) => return one,
    };
    let known: HashSet<TxId> = one.iter().map(|entry| entry.id).collect();
    let more = two.into_iter().filter(|entry| !known.contains(&entry.id));
    let mut all: Vec<Entry> = one.into_iter().chain(more).collect();
    all.retain(|entry| entry.slot >= low);
    all.sort_by_key(|entry| Reverse(entry.slot));
    all
}

/// A requested transaction: received, or returned by no endpoint.
pub(super) type FetchedEntry = (Entry, Option<(Box<Transaction>, UnixSeconds)>);

/// The same as one answer has it.
type Read = Result<Option<(Box<Transaction>, UnixSeconds)>, UpstreamError>;

impl SolanaSource {
    /// Pages with the newest entries count where their list is known to have come as far as is wanted.
    pub(super) async fn pages(
        &self,
        asked: Vec<PageRequest>,
        options: CallOptions,
    ) -> Vec<(usize, PageReply)> {
        let calls: Vec<Call> = asked.iter().map(page_call).collect();
        let newest = asked.iter().filter(|request| request.is_newest);
        let answers = match newest.filter_map(|request| request.min_slot).max() {
            Some(slot) => {
                self.answers_up_to((IndexedList::Signatures, slot), &calls, &options).await
            }
            None => self.inner.pool.batch(&calls, &options).await,
        };
        let page = |answer: CallResponse| {
            let entries = wire::signatures(&answer.result).ok_or_else(|| {
                self.malformed(answer.endpoint, "getSignaturesForAddress gave no list")
            })?;
            Ok((entries, answer.endpoint))
        };
        let pages = answers.into_iter().map(|answer| answer.and_then(page));
        asked.into_iter().map(|request| request.list).zip(pages).collect()
    }

    /// One page by two answers: a node may leave an entry out in the middle of a page, with those around
    /// it there.
    pub(super) async fn page_twice(
        &self,
        asked: PageRequest,
        options: CallOptions,
    ) -> Vec<(usize, PageReply)> {
        let (list, is_top) = (asked.list, asked.before.is_none());
        let ask = || self.pages(vec![asked.clone()], options.clone());
        let (one, two) = join(ask(), ask()).await;
        let mut answers = one.into_iter().chain(two).map(|(_, page)| page);
        let (one, two) = (answers.next(), answers.next());
        let page = match (one, two) {
            (Some(Ok((one, by))), Some(Ok((two, _)))) => Ok((joined(one, two, is_top), by)),
            (Some(Err(_)), Some(two)) => two,
            (Some(one), _) => one,
            (None, _) => Err(UpstreamError::NoEndpoint),
        };
        vec![(list, page)]
    }

    /// What one node does not give, or not as it should, is asked of another one before it counts
    /// as missing.
    pub(super) async fn transactions(
        &self,
        entries: Vec<Entry>,
        options: CallOptions,
    ) -> Result<Vec<FetchedEntry>, UpstreamError> {
        let (mut fetched, mut missing) = (Vec::with_capacity(entries.len()), Vec::new());
        for (entry, by, tx) in self.ask_transactions(entries, &options, true).await? {
            match tx {
                Ok(Some(tx)) => fetched.push((entry, Some(tx))),
                Ok(None) | Err(UpstreamError::Malformed { .. }) => missing.push((entry, by)),
                Err(error) => return Err(error),
            }
        }
        let Some(avoid) = missing.first().map(|(_, by)| *by) else { return Ok(fetched) };
        let options = CallOptions { avoid: Some(avoid), ..options };
        let entries = missing.into_iter().map(|(entry, _)| entry).collect();
        for (entry, _, tx) in self.ask_transactions(entries, &options, false).await? {
            let tx = match tx {
                Err(UpstreamError::Malformed { .. }) => None,
                tx => tx?,
            };
            fetched.push((entry, tx));
        }
        Ok(fetched)
    }

    async fn ask_transactions(
        &self,
        entries: Vec<Entry>,
        options: &CallOptions,
        is_first: bool,
    ) -> Result<Vec<(Entry, EndpointId, Read)>, UpstreamError> {
        let calls: Vec<Call> = entries.iter().map(|entry| transaction_call(entry.id)).collect();
        let answers = self.inner.pool.batch(&calls, options).await;
        // In parallel, because a block time may have to be asked for.
        let read = entries.into_iter().zip(answers).map(|(entry, answer)| async move {
            let answer = answer?;
            let by = answer.endpoint;
            let read = self.transaction(entry, answer, options).await;
            // One answer against the list makes no transaction a failed or an older one.
            let is_odd = |tx: &Transaction| {
                let is_other = tx.block_time().zip(entry.time).is_some_and(|(of, at)| of != at);
                tx.failed() || is_other
            };
            let is_odd = |read: &Read| matches!(read, Ok(Some((tx, _))) if is_odd(tx));
            let read = if is_first && is_odd(&read) { Ok(None) } else { read };
            Ok((entry, by, read))
        });
        try_join_all(read).await
    }

    async fn transaction(&self, entry: Entry, answer: CallResponse, options: &CallOptions) -> Read {
        let text = answer.result.get();
        if text.trim() == "null" {
            return Ok(None);
        }
        let parsed = decoder::parse(text.as_bytes());
        let is_asked = |tx: &Transaction| tx.id() == Some(entry.id) && tx.slot() == entry.slot;
        let has_all = || entry.slot < TOKEN_BALANCES_FROM || wire::has_token_balances(text);
        let right = parsed.ok().filter(|tx| is_asked(tx) && has_all());
        let Some(tx) = right else {
            return Err(self.malformed(answer.endpoint, "getTransaction gave another transaction"));
        };
        let reported = tx.block_time().or(entry.time).and_then(|time| u64::try_from(time).ok());
        let time = match reported {
            Some(time) => Some(time),
            None => self.time_near(entry.slot, options).await?,
        };
        match time.and_then(|time| u32::try_from(time).ok()) {
            Some(time) => Ok(Some((Box::new(tx), UnixSeconds(time)))),
            None => Err(self.malformed(answer.endpoint, "a block without a time")),
        }
    }
}

fn page_call(request: &PageRequest) -> Call {
    let mut how = serde_json::Map::new();
    how.insert("limit".to_owned(), PAGE_MAX.into());
    how.insert("commitment".to_owned(), "finalized".into());
    if let Some(before) = request.before {
        how.insert("before".to_owned(), before.to_string().into());
    }
    if let Some(slot) = request.min_slot {
        how.insert("minContextSlot".to_owned(), slot.into());
    }
    let address = Address::Solana(request.address).to_string();
    Call { method: "getSignaturesForAddress", params: json!([address, how]) }
}

pub(super) fn transaction_call(id: TxId) -> Call {
    let how = json!({
        "encoding": "json",
        "commitment": "finalized",
        "maxSupportedTransactionVersion": 1,
    });
    Call { method: "getTransaction", params: json!([id.to_string(), how]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(slots: &[Height]) -> Vec<Entry> {
        let entry = |slot: &Height| {
            let id = TxId::solana(&[u8::try_from(*slot).unwrap(); 64]);
            Entry { slot: *slot, id, time: None, failed: false }
        };
        slots.iter().map(entry).collect()
    }

    #[test]
    fn a_page_holds_all_that_either_of_two_answers_holds() {
        for (one, two, all) in [
            (&[9, 8, 7][..], &[9, 8, 7][..], &[9, 8, 7][..]),
            (&[9, 7, 5], &[9, 8, 7], &[9, 8, 7]),
            (&[9, 8], &[9, 8, 7, 3], &[9, 8]),
            // A server that is behind: what lies between the two is in neither.
            (&[9, 8, 7], &[5, 4], &[9, 8, 7]),
            // Nothing below the first entry, or no order.
            (&[9], &[9, 8, 7, 3], &[9, 8, 7, 3]),
            (&[9], &[9], &[9]),
            (&[], &[9, 8], &[9, 8]),
            (&[9, 8], &[], &[9, 8]),
            (&[7, 9, 2], &[9, 8, 7], &[9, 8, 7]),
        ] {
            let found = joined(page(one), page(two), false);
            assert_eq!(found, page(all), "{one:?} {two:?}");
        }
        // Of the newest page, what only a server that is behind shows is not gone on from.
        assert_eq!(joined(page(&[9]), page(&[6, 5, 4]), true), page(&[9]));
    }
}
