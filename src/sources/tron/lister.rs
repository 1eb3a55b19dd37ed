//! Finds a wallet's transactions: by the index's two lists, or by events.

use std::time::Duration;

use futures_util::future::join;
use tokio::time::{Instant, sleep_until, timeout};

use super::list::{IndexedList, ListCursor, ListKind, PAGE_MAX};
use super::offer::ListRefusal;
use super::windows::Windows;
use super::wire::{self, Page};
use super::{TronDiscovery, TronSource};
use crate::domain::{Address, lock};
use crate::rpc::{Ask, CallOptions, EndpointId, Reply, ReplyClass, UpstreamError};

/// Entries at which a page may have been cut by a limit of the index's own: no index gives fewer.
const LIMIT_MIN: usize = 10;
/// Milliseconds by which the second query of a page differs, so that no cache answers it.
const NUDGE: u64 = 500;

/// Answers between the two for the newest page that show that the first one's endpoint has not
/// fallen behind.
const BETWEEN_ANSWERS: u64 = 2;
/// How long a page further down waits for lists of which nothing is known.
const UNKNOWN_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct ListState {
    pub(super) kind: ListKind,
    pub(super) list: IndexedList,
    pub(super) is_asked: bool,
    pub(super) last_by: Option<EndpointId>,
}

#[derive(Debug)]
pub(super) enum Lister {
    Index {
        listings: Box<[ListState; 2]>,
        /// Milliseconds: nothing below is wanted.
        low_at: u64,
    },
    Events {
        windows: Windows,
        asked: usize,
    },
}

impl Lister {
    pub(super) fn index(top: u64, low_at: u64) -> Self {
        let listing =
            |kind| ListState { kind, list: IndexedList::new(top), is_asked: false, last_by: None };
        Self::Index { listings: Box::new(ListKind::BOTH.map(listing)), low_at }
    }

    /// The position at and below which entries may be unknown; `None`: everything wanted is known.
    /// Nothing below `floor` is wanted.
    pub(super) fn frontier(&self, floor: u64) -> Option<u64> {
        match self {
            Self::Index { listings, low_at } => {
                let floor = floor.max(low_at.saturating_sub(1));
                listings.iter().filter_map(|listing| listing.list.frontier(floor)).max()
            }
            Self::Events { windows, .. } => windows.frontier(),
        }
    }

    /// The position above which all lists have returned their newest entries once, while these are
    /// queried a second time; `None` if no list is.
    pub(super) fn likely(&self) -> Option<u64> {
        let Self::Index { listings, .. } = self else { return None };
        let is_begun = listings.iter().all(|listing| listing.list.is_begun());
        let shown = listings.iter().map(|listing| listing.list.shown_above());
        shown.max().filter(|at| !is_begun && *at < u64::MAX)
    }
}

#[derive(Debug)]
pub(super) enum ListError {
    /// Every endpoint that may be queried now refuses lists.
    Refused(String),
    Failed(UpstreamError),
}

impl TronSource {
    /// Queries a page of a list. The query is not limited to the wanted heights: an entry below
    /// them proves that the list was returned down to there.
    pub(super) async fn page(
        &self,
        wallet: Address,
        kind: ListKind,
        cursor: &ListCursor,
        limit: usize,
        options: &CallOptions,
    ) -> Result<(Page, EndpointId), ListError> {
        let ask = question(wallet, kind, cursor, limit);
        let reply = self.ask_list(&ask, (kind, cursor.max), options).await?;
        let malformed = || self.malformed(reply.endpoint, "a list gave no entries");
        let page = entries(wallet, kind, &reply.body).ok_or_else(malformed);
        let mut page = page.map_err(ListError::Failed)?;
        let of = (reply.endpoint, kind);
        lock(&self.inner.offers).worked(of);
        page.is_full = self.inner.page_sizes.may_be_cut(of, page.items, LIMIT_MIN);
        Ok((page, reply.endpoint))
    }

    /// Requests the newest page. At the same time, the endpoint of the last answer shows its
    /// indexed height: an endpoint that lagged in both answers, but has caught up when all lists
    /// have begun, would otherwise have omitted entries without a sign.
    pub(super) async fn newest_page(
        &self,
        wallet: Address,
        (kind, cursor, limit): (ListKind, &ListCursor, usize),
        last_by: Option<EndpointId>,
        options: &CallOptions,
    ) -> Result<(Page, EndpointId), ListError> {
        let page = self.page(wallet, kind, cursor, limit, options);
        let Some(last_by) = last_by else { return page.await };
        let last = [(last_by, kind)];
        let reach = self.check_reach(&last, (cursor.max, BETWEEN_ANSWERS), options);
        let (page, reach) = join(page, reach).await;
        let page = page?;
        reach.map_err(ListError::Failed)?;
        Ok(page)
    }

    /// Requests a page twice, from two endpoints where possible, as a server may omit entries in the
    /// middle of a page; the newest pages are queried twice in any case. If one answer fails, or is
    /// empty while the other is not, it is queried again.
    pub(super) async fn page_twice(
        &self,
        wallet: Address,
        kind: ListKind,
        cursor: &ListCursor,
        options: &CallOptions,
    ) -> Result<(Page, EndpointId), ListError> {
        // A cursor of the index is valid only with the same query.
        let nudge = if cursor.fingerprint.is_some() { cursor.nudge } else { cursor.nudge + NUDGE };
        let other = ListCursor { nudge, ..cursor.clone() };
        let [of_one, of_two] = if cursor.fingerprint.is_some() {
            // Of the endpoint that gave it.
            [options.clone(), options.clone()]
        } else {
            self.look_at_unknown(kind, cursor.max, options).await;
            self.inner.pool.apart(options)
        };
        let one = self.page(wallet, kind, cursor, PAGE_MAX, &of_one);
        let two = self.page(wallet, kind, &other, PAGE_MAX, &of_two);
        let (one, two) = join(one, two).await;
        let (one, mut two) = if is_nothing(&one) { (two, one) } else { (one, two) };
        if one.is_ok() && (two.is_err() || is_nothing(&two) && !is_nothing(&one)) {
            let avoid = two.as_ref().map_or(options.avoid, |(_, by)| Some(*by));
            let options = CallOptions { avoid, ..options.clone() };
            two = self.page(wallet, kind, &other, PAGE_MAX, &options).await;
        }
        let ((one, by), (two, _)) = (one?, two?);
        Ok((one.joined(two), by))
    }

    /// Looks at lists of which nothing is known yet, as no page is requested of them: where one
    /// endpoint alone is known, as just after a start, both answers to each page would be its own.
    async fn look_at_unknown(&self, kind: ListKind, at: u64, options: &CallOptions) {
        let now = Instant::now();
        let mut ids = lock(&self.inner.offers).open(&self.awake(), kind, now);
        let are_unknown = |id: &EndpointId| self.is_new((*id, kind));
        if ids.iter().all(are_unknown) {
            return;
        }
        ids.retain(are_unknown);
        ids.retain(|id| {
            let looked_at = &mut lock(&self.inner.indexed).looked_at;
            let last = looked_at.get(&(*id, kind)).copied();
            let is_due = last.is_none_or(|at| now - at >= self.inner.limits.indexed_age_max);
            if is_due {
                looked_at.insert((*id, kind), now);
            }
            is_due
        });
        drop(timeout(UNKNOWN_WAIT, self.look_again(&ids, kind, at, options)).await);
    }

    /// Tries the endpoints that do not refuse lists now and have indexed up to a time, until one
    /// answers.
    async fn ask_list(
        &self,
        ask: &Ask,
        (kind, until): (ListKind, u64),
        options: &CallOptions,
    ) -> Result<Reply, ListError> {
        let all = self.inner.pool.ids();
        let mut last = "they were refused of late".to_owned();
        let open = self.open_lists(&all, kind).await;
        let mut left = self.indexed_at(&open, kind, until);
        if left.is_empty() {
            Box::pin(self.look_again(&open, kind, until, options)).await;
            left = self.indexed_at(&open, kind, until);
        }
        if left.is_empty() && !open.is_empty() {
            let last = "no endpoint's lists are known to have come so far";
            return Err(ListError::Failed(UpstreamError::unavailable(last)));
        }
        loop {
            let preferred = |id: &EndpointId| Some(*id) != options.avoid;
            // Where every endpoint is left, the pool chooses one.
            let on = match left.len() {
                0 => return Err(ListError::Refused(last)),
                count if options.on.is_some() || count == all.len() => options.on,
                _ => left.iter().copied().find(preferred).or(left.first().copied()),
            };
            let is_bound = options.on.is_some();
            let options = match on {
                Some(id) if !is_bound && left.len() > 1 => options.first_on(id),
                _ => CallOptions { on, ..options.clone() },
            };
            match self.inner.pool.ask(ask, list_reading, &options).await {
                // These concern the request, not the list.
                Err(UpstreamError::Rpc { code: 400 | 422, message, .. }) => {
                    return Err(ListError::Failed(UpstreamError::unavailable(message)));
                }
                Err(UpstreamError::Rpc { endpoint, code, message }) => {
                    let refused = self.note_refusal((on, kind), &endpoint, code);
                    if is_bound {
                        return Err(ListError::Refused(message));
                    }
                    left.retain(|id| !refused.contains(id));
                    last = message;
                }
                Err(UpstreamError::Unavailable { .. })
                    if !is_bound && on.is_some() && left.len() > 1 =>
                {
                    left.retain(|id| Some(*id) != on);
                }
                // The other endpoints refuse lists, and this one may not have any: another way is
                // used meanwhile.
                Err(error @ UpstreamError::Unavailable { .. })
                    if left.len() < all.len() && !self.has_lists() =>
                {
                    return Err(ListError::Refused(error.to_string()));
                }
                answered => return answered.map_err(ListError::Failed),
            }
        }
    }

    /// Endpoints that may be queried for a list. If lists have worked before and all endpoints are
    /// paused after refusals, waits for the first pause to end, which is short.
    async fn open_lists(&self, all: &[EndpointId], kind: ListKind) -> Vec<EndpointId> {
        let open = lock(&self.inner.offers).open(all, kind, Instant::now());
        if !open.is_empty() || !self.has_lists() {
            return open;
        }
        let next = lock(&self.inner.offers).next_open(all, kind);
        let Some(next) = next else { return open };
        sleep_until(next).await;
        lock(&self.inner.offers).open(all, kind, Instant::now())
    }

    /// Records a refusal by the endpoint that was queried, or by those with the label in the error.
    fn note_refusal(
        &self,
        (on, kind): (Option<EndpointId>, ListKind),
        label: &str,
        code: i64,
    ) -> Vec<EndpointId> {
        let all = self.inner.pool.endpoints();
        let named = all.iter().filter(|one| on.map_or(one.label == *label, |on| one.id == on));
        let mut ids: Vec<EndpointId> = named.map(|one| one.id).collect();
        if ids.is_empty() {
            ids = all.iter().map(|one| one.id).collect();
        }
        let how = if matches!(code, ABSENT | 405 | 501) {
            ListRefusal::Absent
        } else {
            ListRefusal::Other
        };
        let mut offers = lock(&self.inner.offers);
        for id in &ids {
            offers.refused((*id, kind), how, Instant::now(), &self.inner.limits);
        }
        ids
    }

    /// Tests whether endpoints have lists; true if each list is returned by one.
    pub(super) async fn probe_lists(&self, wallet: Address, options: &CallOptions) -> bool {
        for kind in ListKind::BOTH {
            if !self.probe_list(wallet, kind, options).await {
                return false;
            }
        }
        true
    }

    async fn probe_list(&self, wallet: Address, kind: ListKind, options: &CallOptions) -> bool {
        let ask = question(wallet, kind, &IndexedList::new(LATEST).cursor, 1);
        for id in self.inner.pool.ids() {
            let options = CallOptions { on: Some(id), ..options.clone() };
            match self.inner.pool.ask(&ask, list_reading, &options).await {
                Ok(reply) if entries(wallet, kind, &reply.body).is_some() => {
                    lock(&self.inner.offers).worked((id, kind));
                    return true;
                }
                Err(UpstreamError::Rpc { endpoint, code, .. }) => {
                    drop(self.note_refusal((Some(id), kind), &endpoint, code));
                }
                Ok(_) | Err(_) => {}
            }
        }
        false
    }

    /// Whether no endpoint has lists, as far as known.
    pub(super) fn has_no_lists(&self) -> bool {
        let limits = &self.inner.limits;
        match limits.discovery {
            TronDiscovery::Lists => false,
            TronDiscovery::Events => true,
            TronDiscovery::Auto => {
                lock(&self.inner.offers).is_absent(&self.inner.pool.ids(), limits)
            }
        }
    }

    /// Whether some endpoint may be queried for each list now, even if none has returned it before.
    pub(super) fn may_ask_lists(&self) -> bool {
        let is_off = self.inner.limits.discovery == TronDiscovery::Events;
        let (ids, now, offers) = (self.inner.pool.ids(), Instant::now(), lock(&self.inner.offers));
        !is_off && ListKind::BOTH.iter().all(|kind| !offers.open(&ids, *kind, now).is_empty())
    }

    /// Whether this chain is read by lists, by configuration or because they have worked, so that a
    /// refusal is waited out.
    pub(super) fn has_lists(&self) -> bool {
        let limits = &self.inner.limits;
        limits.discovery == TronDiscovery::Lists
            || lock(&self.inner.offers).has_worked(&self.inner.pool.ids(), limits)
    }

    pub(super) fn list_error(&self, error: ListError) -> UpstreamError {
        match error {
            ListError::Failed(error) => error,
            ListError::Refused(last) if self.has_lists() => {
                let last = format!("account lists are refused ({last}), and asked for again");
                UpstreamError::unavailable(last)
            }
            ListError::Refused(_) => {
                UpstreamError::NotSupported { method: "account lists".to_owned() }
            }
        }
    }
}

fn is_nothing(page: &Result<(Page, EndpointId), ListError>) -> bool {
    page.as_ref().map_or(true, |(page, _)| page.items == 0)
}

fn entries(wallet: Address, kind: ListKind, body: &[u8]) -> Option<Page> {
    match kind {
        ListKind::Transactions => wire::transactions(body, &account(wallet)),
        ListKind::Transfers => wire::transfers(body, &account(wallet)),
    }
}

/// Milliseconds: later than any block.
pub(super) const LATEST: u64 = 4_294_967_295_000;

fn question(wallet: Address, kind: ListKind, cursor: &ListCursor, limit: usize) -> Ask {
    let (name, tail) = match kind {
        ListKind::Transactions => ("v1/accounts/transactions", "transactions"),
        ListKind::Transfers => ("v1/accounts/transactions/trc20", "transactions/trc20"),
    };
    // One millisecond more, so that it does not matter whether the end is inclusive.
    let max = cursor.max.saturating_add(1).saturating_add(cursor.nudge);
    let mut query = vec![
        ("only_confirmed", "true".to_owned()),
        ("order_by", "block_timestamp,desc".to_owned()),
        ("limit", limit.min(PAGE_MAX).to_string()),
        ("max_timestamp", max.to_string()),
    ];
    query.extend(cursor.fingerprint.clone().map(|fingerprint| ("fingerprint", fingerprint)));
    Ask { name, path: format!("/v1/accounts/{wallet}/{tail}"), query, body: None }
}

/// As [`wire::reading`], but a missing list is a refusal: more than one answer decides whether an
/// endpoint has lists ([`Offers`](super::offer::Offers)).
fn list_reading(status: u16, body: &[u8]) -> ReplyClass {
    match wire::reading(status, body) {
        ReplyClass::Again(message)
        | ReplyClass::NotOffered(message)
        | ReplyClass::Denied(message)
        | ReplyClass::Unknown { message, .. }
        | ReplyClass::Refused { message, .. }
            if matches!(status, 401 | 402 | 404 | 405 | 410 | 501) =>
        {
            ReplyClass::Refused { code: i64::from(status), message }
        }
        ReplyClass::NotOffered(message) => ReplyClass::Refused { code: ABSENT, message },
        ReplyClass::Denied(message) => ReplyClass::Refused { code: DENIED, message },
        ReplyClass::Unknown { code, message } => ReplyClass::Refused { code, message },
        read @ (ReplyClass::Good
        | ReplyClass::SlowDown(_)
        | ReplyClass::Again(_)
        | ReplyClass::Refused { .. }) => read,
    }
}

/// Codes of a missing path, and of a missing key, plan or quota.
const ABSENT: i64 = 404;
const DENIED: i64 = 401;

/// The account of a wallet; the registry gives Tron sources only to Tron chains.
pub(super) fn account(wallet: Address) -> [u8; 20] {
    wallet.bytes().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

    use serde_json::json;

    use super::super::TronLimits;
    use super::super::fake::{self, ScriptedNodes, options};
    use super::*;
    use crate::rpc::scripted::Answered;

    /// Three entries in successive milliseconds, the newest of them at `newest`; each second answer
    /// lacks the one in the middle. With a `status`, every request is refused with it.
    #[derive(Debug, Default)]
    struct Lists {
        status: AtomicU16,
        newest: AtomicU64,
        answers: AtomicU64,
    }

    impl Lists {
        fn answer(&self) -> Answered {
            let newest = self.newest.load(Ordering::Relaxed);
            let is_whole = self.answers.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
            let entry = |below: u64| {
                json!({"transaction_id": format!("{below:064x}"), "from": "", "to": "",
                    "block_timestamp": newest - below, "type": "Transfer", "value": "1"})
            };
            let entries: Vec<_> = (0..3).filter(|at| is_whole || *at != 1).map(entry).collect();
            let meta = json!({"at": newest, "page_size": entries.len()});
            match self.status.load(Ordering::Relaxed) {
                0 => (200, json!({"data": entries, "success": true, "meta": meta})),
                status => (status, "<html></html>".into()),
            }
        }
    }

    fn source(lists: &Arc<Lists>) -> TronSource {
        let lists = Arc::clone(lists);
        let nodes = ScriptedNodes::new(move |_| lists.answer());
        fake::source(&["one"], &nodes, TronLimits::default())
    }

    #[tokio::test(start_paused = true)]
    async fn an_entry_that_one_answer_lacks_inside_a_page_comes_from_the_other_one() {
        let lists = Arc::new(Lists { newest: AtomicU64::new(1_000), ..Lists::default() });
        let list = IndexedList::new(1_000);
        let (source, options, wallet) = (source(&lists), options(), Address::Tron([7; 20]));
        for _ in 0..2 {
            let asked = source.page_twice(wallet, ListKind::Transfers, &list.cursor, &options);
            let (page, _) = asked.await.unwrap();
            assert_eq!(page.rows.iter().map(|row| row.at).collect::<Vec<_>>(), [1_000, 999, 998]);
        }
    }

    /// Two answers of the endpoint that lacks it would both lack it.
    #[tokio::test(start_paused = true)]
    async fn an_entry_that_one_endpoint_lacks_in_all_answers_comes_from_another_one() {
        let nodes = ScriptedNodes::new(|(host, _, _)| {
            let entry = |at: u64| json!({"txID": format!("{at:064x}"), "block_timestamp": at});
            let lacks = |at: &u64| host == "holey" && *at == 999;
            let rows: Vec<_> = (998..=1_000).rev().filter(|at| !lacks(at)).map(entry).collect();
            (200, json!({"data": rows, "success": true, "meta": {}}))
        });
        let (cursor, wallet) = (IndexedList::new(1_000).cursor, Address::Tron([7; 20]));
        for hosts in [["holey", "whole"], ["whole", "holey"]] {
            let source = fake::source(&hosts, &nodes, TronLimits::default());
            for _ in 0..4 {
                let asked =
                    source.page_twice(wallet, ListKind::Transactions, &cursor, &options()).await;
                assert_eq!(asked.unwrap().0.rows.len(), 3, "{hosts:?}");
            }
        }
    }

    /// Only the endpoint that lacks it has shown how far its lists have come.
    #[tokio::test(start_paused = true)]
    async fn a_second_answer_comes_from_an_endpoint_of_whose_lists_nothing_was_known() {
        let nodes = ScriptedNodes::new(|(host, _, _)| {
            let entry = |at: u64| json!({"txID": format!("{at:064x}"), "block_timestamp": at});
            let lacks = |at: &u64| host == "holey" && *at == 999;
            let rows: Vec<_> = (998..=1_000).rev().filter(|at| !lacks(at)).map(entry).collect();
            (200, json!({"data": rows, "success": true, "meta": {}}))
        });
        let (cursor, wallet) = (IndexedList::new(1_000).cursor, Address::Tron([7; 20]));
        let source = fake::source(&["holey", "whole"], &nodes, TronLimits::default());
        let (kind, one) = (ListKind::Transactions, EndpointId(0));
        source.look_again(&[one], kind, 1_000, &options()).await;
        let (page, _) = source.page_twice(wallet, kind, &cursor, &options()).await.unwrap();
        assert_eq!(page.rows.len(), 3);
    }

    /// An endpoint that had come to the top falls behind and returns the newest entries. The lister
    /// notices it at once, not only when all lists have begun, as the endpoint may have caught up
    /// by then.
    #[tokio::test(start_paused = true)]
    async fn newest_entries_of_lists_that_fell_behind_are_not_taken_from_a_second_answer() {
        let top = 1_000_060_000;
        let lists = Arc::new(Lists { newest: AtomicU64::new(top), ..Lists::default() });
        let (source, options, wallet) = (source(&lists), options(), Address::Tron([7; 20]));
        let (kind, ids) = (ListKind::Transfers, source.inner.pool.ids());
        source.look_again(&ids, kind, top, &options).await;
        let list = IndexedList::new(top);
        let of = (kind, &list.cursor, 20);
        let last_by = ids.first().copied();
        source.newest_page(wallet, of, last_by, &options).await.unwrap();
        lists.newest.store(top - 60_000, Ordering::Relaxed);
        let (page, _) = source.newest_page(wallet, of, None, &options).await.unwrap();
        assert_eq!(page.rows.first().map(|row| row.at), Some(top - 60_000), "as if it were whole");
        let refused = source.newest_page(wallet, of, last_by, &options).await;
        assert!(matches!(refused, Err(ListError::Failed(_))), "{refused:?}");
    }

    /// A read began when the lists had come to its top; a later look met a server that was behind.
    /// The read does not wait until that look has expired.
    #[tokio::test(start_paused = true)]
    async fn lists_that_were_behind_are_looked_at_again_before_a_page_is_refused() {
        let lists = Arc::new(Lists { newest: AtomicU64::new(1_000_000_000), ..Lists::default() });
        let (source, options) = (source(&lists), options());
        let (kind, top) = (ListKind::Transfers, 1_000_060_000);
        source.look_again(&source.inner.pool.ids(), kind, top, &options).await;
        let wallet = Address::Tron([7; 20]);
        let list = IndexedList::new(top);
        let refused = source.page(wallet, kind, &list.cursor, 20, &options).await;
        assert!(matches!(refused, Err(ListError::Failed(_))), "{refused:?}");
        lists.newest.store(top, Ordering::Relaxed);
        let (page, _) = source.page(wallet, kind, &list.cursor, 20, &options).await.unwrap();
        assert_eq!(page.rows.first().map(|row| row.at), Some(top));
    }

    /// Refusals arrive at once and do not show how far a list is indexed.
    #[tokio::test(start_paused = true)]
    async fn refusals_are_no_sign_that_a_list_shows_nothing() {
        let lists = Arc::new(Lists { newest: AtomicU64::new(1_000), ..Lists::default() });
        let (source, options, id) = (source(&lists), options(), EndpointId(0));
        for status in [401, 404, 501] {
            for kind in ListKind::BOTH {
                lists.status.store(status, Ordering::Relaxed);
                let reach = source.check_reach(&[(id, kind)], (1_000, 1), &options).await;
                assert!(reach.is_err(), "{status}");
            }
        }
    }
}
