//! Finds transactions by `alchemy_getAssetTransfers`, with one list of outgoing and one of incoming
//! transfers (alchemy.com/docs, "Transfers API").

use std::collections::HashMap;

use futures_util::future::{join_all, try_join_all};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::alchemy_wire::{TransferPage, page};
use super::descent::{Descent, DescentOutcome, PageAsk};
use super::discovery::Window;
use super::explorer_wire::ExplorerList;
use super::list_client::ListClient;
use super::list_row::{ListRow, What};
use super::log_search::TransferSide;
use super::merge::{self, Merge};
use super::texts::hex_text;
use super::wire::{self, head_call};
use crate::domain::Height;
use crate::rpc::{Call, CallResponse, EndpointId, Result, UpstreamError};
use crate::sources::server_reach::RecentHead;

pub(super) const METHOD: &str = "alchemy_getAssetTransfers";
/// Transfers per page: the API's maximum.
const PAGE_MAX: usize = 1_000;
/// Chains for which the API lists inner calls: Ethereum and Polygon.
const CHAINS_WITH_CALLS: [u64; 2] = [1, 137];
/// Answers that must agree.
const AGREEING: usize = 2;
/// Answers that must agree near the chain's head: even the calls of one request may be answered by
/// several servers, some of which lag. Answers that show the same end confirm it.
const AGREEING_NEAR: usize = 3;
/// Answers that must agree if the server's head came in another request than the page: each page
/// may be from a server that lags, and each head from one that does not.
const AGREEING_APART: usize = 6;
/// Blocks between a page and a known head above which no new head is needed; below, another server
/// behind the address may lag.
const HEAD_MARGIN: u64 = 4_096;
/// Consecutive pages that lack known rows.
const LAGS_MAX: u32 = 8;
/// Page length from which a provider may cut pages without a key of the next one.
const CUT_MIN: usize = 100;

#[derive(Debug)]
pub(super) struct AlchemyLister {
    client: ListClient,
    merge: Merge<TransferSide>,
    high: Height,
    with_calls: bool,
    /// The key of the next page within a block.
    keys: HashMap<TransferSide, String>,
    lags: u32,
    /// A block that each node had recently.
    heads: HashMap<EndpointId, RecentHead>,
    /// The last head that each node reported after a page, and when it was queried.
    named: HashMap<EndpointId, (Height, Instant)>,
}

struct PageAnswer {
    page: CallResponse,
    reach: Reach,
    asked_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The page is far below a known head.
    Certain,
    /// A head of the same server, or of another request but far above the page.
    Head(Height),
    /// A head from another request, and so perhaps from another server and later than the page.
    Apart,
    /// Heads of the endpoint, reported before the page was queried and after it arrived.
    Around([Height; 2]),
}

impl AlchemyLister {
    pub(super) fn new(client: ListClient, (low, high): (Height, Height)) -> Self {
        let chain_id = client.subject.chain.chain_id;
        let with_calls = chain_id.is_some_and(|id| CHAINS_WITH_CALLS.contains(&id));
        Self {
            client,
            merge: Merge::new(&TransferSide::BOTH, low, high),
            high,
            with_calls,
            keys: HashMap::new(),
            lags: 0,
            heads: HashMap::new(),
            named: HashMap::new(),
        }
    }

    pub(super) fn set_high(&mut self, high: Height) {
        self.merge.set_high(high);
        self.high = high;
    }

    /// The next window that both lists have passed. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<Window>> {
        loop {
            if self.merge.is_done() {
                return Ok(None);
            }
            // Chains without calls reject the category.
            let until = self.with_calls.then_some(self.high);
            if let Some(mut window) = self.merge.take(&self.client.subject, until) {
                // Without inner calls, a sale looks like tokens that were sent away: the
                // transaction itself shows whether there were any.
                for found in &mut window.found {
                    found.calls.take_if(|calls| calls.is_empty());
                }
                return Ok(Some(window));
            }
            self.round().await?;
        }
    }

    async fn round(&mut self) -> Result<()> {
        let wanted = self.merge.wanted();
        let answers = join_all(wanted.iter().map(|(side, ask)| self.answers(*side, ask))).await;
        let with_calls = self.with_calls;
        let mut first_error = Ok(());
        for ((side, ask), answers) in wanted.into_iter().zip(answers) {
            let done = match answers.as_deref() {
                Ok([one]) => self.absorb_end(side, ask.end, one).await,
                Ok(several) => self.absorb(side, ask.end, several).await,
                Err(error) => self.adapt_to_error(side, ask, with_calls, error.clone()),
            };
            first_error = first_error.and(done);
        }
        first_error
    }

    /// Queries a page as often as answers must agree, since a cut page, or one of a server that
    /// lags, looks like any other; once if it confirms an end.
    async fn answers(&self, side: TransferSide, ask: &PageAsk) -> Result<Vec<PageAnswer>> {
        let (count, apart) = match (ask.confirms_end, self.is_near(ask)) {
            (true, _) => (1, 1),
            (false, true) => (AGREEING_NEAR, AGREEING_APART),
            (false, false) => (AGREEING, AGREEING_APART),
        };
        let mut answers = try_join_all((0..count).map(|_| self.answer(side, ask))).await?;
        let is_apart = |answer: &PageAnswer| answer.reach == Reach::Apart;
        let given = answers.iter().filter(|answer| is_apart(answer));
        let given: Vec<EndpointId> = given.map(|answer| answer.page.endpoint).collect();
        let again = given.iter().cycle().take(apart).map(|on| self.answer_around(side, ask, *on));
        let around = try_join_all(again).await?;
        answers.retain(|answer| !is_apart(answer));
        answers.extend(around);
        Ok(answers)
    }

    /// A page between two heads of the same endpoint: a head that was queried only after the page
    /// may be newer than the page.
    async fn answer_around(
        &self,
        side: TransferSide,
        ask: &PageAsk,
        on: EndpointId,
    ) -> Result<PageAnswer> {
        let asked_at = Instant::now();
        let before = self.head_of(on).await?;
        let page =
            self.client.pool.call(METHOD, self.params(side, ask), &self.client.on(on)).await?;
        let after = self.head_of(on).await?;
        Ok(PageAnswer { page, reach: Reach::Around([before, after]), asked_at })
    }

    async fn head_of(&self, on: EndpointId) -> Result<Height> {
        let answer =
            self.client.pool.call("eth_blockNumber", json!([]), &self.client.on(on)).await?;
        Ok(wire::number(&answer.result).unwrap_or(0))
    }

    /// Whether a server behind the address may lag so much that it lacks the page's blocks.
    fn is_near(&self, ask: &PageAsk) -> bool {
        !self.heads.keys().any(|on| self.is_far_above(*on, ask.end))
    }

    fn is_far_above(&self, on: EndpointId, height: Height) -> bool {
        let head = self.heads.get(&on).and_then(|head| head.get(Instant::now()));
        head >= Some(height.saturating_add(HEAD_MARGIN))
    }

    /// One answer, with the server's head in the same request if that needs no further request, or
    /// if the page is near the chain's head.
    async fn answer(&self, side: TransferSide, ask: &PageAsk) -> Result<PageAnswer> {
        let options = self.client.options();
        let page = Call { method: METHOD, params: self.params(side, ask) };
        let asks_head = self.is_near(ask) || self.client.pool.batch_size() > 1;
        let head = asks_head.then(head_call);
        let calls: Vec<Call> = [page].into_iter().chain(head).collect();
        let asked_at = Instant::now();
        let mut answers = self.client.pool.batch(&calls, &options).await.into_iter();
        let page = answers.next().unwrap_or(Err(UpstreamError::NoEndpoint))?;
        let heads: Vec<CallResponse> = answers.flatten().collect();
        let own = heads.iter().find(|head| head.request == page.request);
        let reach = match own.and_then(|head| wire::number(&head.result)) {
            Some(head) => Reach::Head(head),
            None if asks_head => {
                let far = far_head(&heads, page.endpoint, ask.end);
                if far.is_none() {
                    self.note_apart(&heads);
                }
                far.map_or(Reach::Apart, Reach::Head)
            }
            None if self.is_far_above(page.endpoint, ask.end) => Reach::Certain,
            None => Reach::Apart,
        };
        Ok(PageAnswer { page, reach, asked_at })
    }

    /// Records heads from several requests, which show how far the servers behind one address
    /// differ.
    fn note_apart(&self, heads: &[CallResponse]) {
        for answer in heads {
            if let Some(head) = wire::number(&answer.result) {
                self.client.abilities.node_reach.note(answer.endpoint, (), &[head]);
            }
        }
    }

    fn params(&self, side: TransferSide, ask: &PageAsk) -> Value {
        let key = self.keys.get(&side).filter(|_| ask.page > 1);
        let mut categories = vec!["external", "erc20"];
        if self.with_calls {
            categories.push("internal");
        }
        let side = match side {
            TransferSide::Gave => "fromAddress",
            TransferSide::Got => "toAddress",
        };
        let by = [
            (side, hex_text(&self.client.subject.wallet).into()),
            ("category", categories.into()),
            ("order", if ask.confirms_end { "asc" } else { "desc" }.into()),
            ("withMetadata", true.into()),
            ("excludeZeroValue", true.into()),
            ("maxCount", format!("{PAGE_MAX:#x}").into()),
        ];
        let key = key.map(|key| ("pageKey", key.as_str().into()));
        json!([wire::log_filter((ask.low, ask.end), by.into_iter().chain(key))])
    }

    async fn absorb(
        &mut self,
        side: TransferSide,
        end: Height,
        answers: &[PageAnswer],
    ) -> Result<()> {
        let mut pages = Vec::new();
        for answer in answers {
            if !self.reaches(answer, end).await? {
                return self.miss(answer.page.endpoint);
            }
            let (endpoint, page) = self.page(answer)?;
            // Without transfers, its lower end is not known.
            if page.rows.is_empty() && page.key.is_some() {
                return self.miss(endpoint);
            }
            pages.push((endpoint, page));
        }
        let mut all = pages.iter().map(|(_, page)| page).zip(pages.iter().skip(1));
        let is_last = all.all(|(one, (_, two))| one.rows == two.rows);
        let mut keys = Vec::new();
        let mut fullest: Option<(usize, Vec<ListRow>)> = None;
        for (at, (endpoint, page)) in pages.into_iter().enumerate() {
            keys.push((endpoint, page.rows.len(), page.key));
            fullest = Some(match fullest {
                None => (at, page.rows),
                Some(best) => match merge::more_complete(best, (at, page.rows)) {
                    Ok(more_complete) => more_complete,
                    Err(_) => return self.miss(endpoint),
                },
            });
        }
        let Some((best, rows)) = fullest else { return Ok(()) };
        let Some((endpoint, ..)) = keys.get(best) else { return Ok(()) };
        let (endpoint, is_whole) = (*endpoint, keys.iter().all(|(_, _, key)| key.is_none()));
        // If rows are equal, one page may lack the key of the next.
        let is_same = |of: &&(EndpointId, usize, Option<String>)| of.1 == rows.len();
        match keys.iter().filter(is_same).find_map(|(_, _, key)| key.clone()) {
            Some(key) => drop(self.keys.insert(side, key)),
            None if is_whole => drop(self.keys.remove(&side)),
            None => return self.miss(endpoint),
        }
        let is_last = is_last && is_whole;
        let is_uncut = rows.len() < CUT_MIN;
        self.take(side, endpoint, rows, is_whole)?;
        if is_last && is_uncut && answers.len() > AGREEING {
            self.merge.on_list(side, Descent::end);
        } else if is_last {
            self.merge.on_list(side, Descent::expect_end);
        }
        Ok(())
    }

    /// Processes a third answer about a list's end; if it shows more, it does not count as a page.
    async fn absorb_end(
        &mut self,
        side: TransferSide,
        end: Height,
        answer: &PageAnswer,
    ) -> Result<()> {
        if !self.reaches(answer, end).await? {
            return self.miss(answer.page.endpoint);
        }
        let (endpoint, page) = self.page(answer)?;
        let shown = self.merge.on_list(side, |list| list.shows_end(&page.rows)).unwrap_or(Ok(true));
        if page.key.is_some() || shown == Ok(false) {
            return self.miss(endpoint);
        }
        shown.map_err(|fault| self.client.unreadable(endpoint, METHOD, fault))?;
        self.take(side, endpoint, page.rows, true)
    }

    fn take(
        &mut self,
        side: TransferSide,
        endpoint: EndpointId,
        rows: Vec<ListRow>,
        is_whole: bool,
    ) -> Result<()> {
        match self.merge.absorb(&self.client.subject, side, rows, is_whole) {
            Ok(DescentOutcome::Taken) => {
                self.lags = 0;
                Ok(())
            }
            Ok(DescentOutcome::Missed) => self.miss(endpoint),
            Err(fault) => Err(self.client.unreadable(endpoint, METHOD, fault)),
        }
    }

    fn page(&self, answer: &PageAnswer) -> Result<(EndpointId, TransferPage)> {
        let answer = &answer.page;
        let malformed =
            || self.client.pool.malformed(answer.endpoint, format!("{METHOD} gave no transfers"));
        let page = page(&answer.result).ok_or_else(malformed)?;
        let kinds = page.rows.iter().filter_map(|row| kind(&row.what));
        self.client.abilities.note_transfers(kinds);
        // A category that was not requested does not count as empty.
        if !self.with_calls {
            self.client.abilities.note_unasked(ExplorerList::Calls);
        }
        Ok((answer.endpoint, page))
    }

    /// Queries the page again, up to a limit.
    fn miss(&mut self, endpoint: EndpointId) -> Result<()> {
        if self.lags < LAGS_MAX {
            self.lags += 1;
            return Ok(());
        }
        self.lags = 0;
        // Servers catch up meanwhile.
        self.heads.clear();
        let last = format!("{} lacks what it gave, or is behind", self.client.pool.label(endpoint));
        Err(UpstreamError::Unavailable { attempts: LAGS_MAX, last })
    }

    /// Whether the server had reached the page's top when it answered. Near a head, each server may
    /// lag by as much as one recently did; far below a recent head, a head reported now suffices,
    /// in case the server was reset.
    async fn reaches(&mut self, answer: &PageAnswer, height: Height) -> Result<bool> {
        let on = answer.page.endpoint;
        let [one, two] = match answer.reach {
            Reach::Head(head) => [head; 2],
            Reach::Around(heads) => heads,
            Reach::Certain => [self.head_since(on, answer.asked_at).await?; 2],
            Reach::Apart => return Ok(false),
        };
        let reached = [one, two].map(|head| self.note_head(on, head, answer.asked_at).min(head));
        Ok(reached.iter().all(|reached| *reached >= height))
    }

    /// A head that was queried at the endpoint after the page was.
    async fn head_since(&mut self, on: EndpointId, page: Instant) -> Result<Height> {
        if let Some((head, _)) = self.named.get(&on).filter(|(_, asked_at)| *asked_at >= page) {
            return Ok(*head);
        }
        let asked_at = Instant::now();
        let head = self.head_of(on).await?;
        self.named.insert(on, (head, asked_at));
        Ok(head)
    }

    /// Records a head; returns the height that every server behind the address has, as far as its
    /// heads show. A head counts from when it was queried.
    fn note_head(&mut self, on: EndpointId, head: Height, asked_at: Instant) -> Height {
        self.heads.entry(on).or_default().note(head, asked_at);
        self.client.abilities.node_reach.note(on, (), &[head]);
        self.client.abilities.node_reach.reached(on, ()).unwrap_or(0)
    }

    fn adapt_to_error(
        &mut self,
        side: TransferSide,
        ask: PageAsk,
        with_calls: bool,
        error: UpstreamError,
    ) -> Result<()> {
        let UpstreamError::Rpc { message, .. } = &error else { return Err(error) };
        let message = message.to_lowercase();
        if with_calls && (message.contains("categor") || message.contains("internal transfer")) {
            self.with_calls = false;
            return Ok(());
        }
        // A page key is valid for some minutes, and only at the endpoint that returned it.
        if ask.page > 1 && self.lags < LAGS_MAX {
            self.lags += 1;
            self.merge.on_list(side, Descent::restart);
            return Ok(());
        }
        Err(error)
    }
}

/// The list of an explorer that has such rows.
fn kind(what: &What) -> Option<ExplorerList> {
    match what {
        What::Outer { .. } => Some(ExplorerList::Transactions),
        What::Token { .. } => Some(ExplorerList::Tokens),
        What::Call(_) => Some(ExplorerList::Calls),
        What::Failed | What::MarkedFailed | What::Nothing => None,
    }
}

/// A head just reported that is so far above the page that the page needs no head in its own
/// request.
fn far_head(heads: &[CallResponse], on: EndpointId, end: Height) -> Option<Height> {
    let own = heads.iter().filter(|head| head.endpoint == on);
    let heights = own.filter_map(|head| wire::number(&head.result));
    heights.min().filter(|head| *head >= end.saturating_add(HEAD_MARGIN))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::super::lists_model::{Model, Ways, client};
    use super::super::node_model::{ScriptedNodes, nodes};
    use super::*;
    use crate::rpc::Pool;

    fn lister(pool: Pool, high: Height) -> AlchemyLister {
        AlchemyLister::new(client(pool), (0, high))
    }

    fn page_to(end: Height) -> PageAsk {
        PageAsk { low: 0, end, page: 1, rows: None, confirms_end: false }
    }

    /// A head nearer to the page may be of another server behind the address.
    #[test]
    fn a_head_next_to_a_page_is_far_above_it_by_the_margin_at_its_own_endpoint() {
        let head = |on: usize, height: Height| CallResponse {
            result: serde_json::value::to_raw_value(&format!("{height:#x}")).unwrap(),
            endpoint: EndpointId(on),
            request: 1,
        };
        let (certain, own) = (1_000 + HEAD_MARGIN, EndpointId(0));
        assert_eq!(far_head(&[head(0, certain)], own, 1_000), Some(certain));
        assert_eq!(far_head(&[head(0, certain - 1)], own, 1_000), None);
        assert_eq!(far_head(&[head(1, certain)], own, 1_000), None);
        let both = [head(0, certain + 9), head(0, certain - 1)];
        assert_eq!(far_head(&both, own, 1_000), None, "the lower one counts");
    }

    /// A head that was reported before the page was requested may be that of another server than
    /// the one that gave the page.
    #[tokio::test(start_paused = true)]
    async fn a_node_that_fell_back_is_asked_for_its_head_again() {
        let ways = Ways { lag: [("one".to_owned(), 664)].into(), ..Ways::default() };
        let pool = Model::new(Vec::new(), 10_000, ways).pool(&["one"]);
        let mut lister = lister(pool.clone(), 10_000);
        let options = lister.client.options();
        let page = pool.call("eth_blockNumber", json!([]), &options).await.unwrap();
        lister.client.abilities.node_reach.note(EndpointId(0), (), &[10_000]);
        tokio::time::advance(Duration::from_secs(60)).await;
        let asked_at = Instant::now();
        let answer = PageAnswer { page, reach: Reach::Certain, asked_at };
        for (height, is_reached) in [(10_000, false), (9_337, false), (9_336, true)] {
            assert_eq!(lister.reaches(&answer, height).await, Ok(is_reached), "{height}");
        }
    }

    /// Another server behind the address may lag, or the node was restarted from older blocks.
    #[tokio::test(start_paused = true)]
    async fn a_head_that_a_node_named_is_believed_for_half_a_minute() {
        let pool = Model::new(Vec::new(), 10_000, Ways::default()).pool(&["one"]);
        let mut lister = lister(pool, 5_000);
        let ask = page_to(5_000);
        assert!(lister.is_near(&ask));
        assert_eq!(lister.note_head(EndpointId(0), 10_000, Instant::now()), 10_000);
        assert!(!lister.is_near(&ask));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(lister.is_near(&ask));
    }

    /// A server that reaches a height after its page and before its head lacked it for the page.
    #[tokio::test(start_paused = true)]
    async fn a_node_that_comes_to_a_height_after_its_page_did_not_have_it_then() {
        let was_page = AtomicBool::new(false);
        let nodes = nodes(move |_, method, _| {
            let is_page = method == METHOD;
            let was_page = was_page.swap(is_page, Ordering::Relaxed);
            let head = if was_page { "0x2710" } else { "0x2328" };
            Ok(if is_page { json!({"transfers": []}) } else { head.into() })
        });
        let pool = nodes.pool_of_single_calls(&["one"]);
        let mut lister = lister(pool, 10_000);
        let ask = PageAsk { confirms_end: true, ..page_to(10_000) };
        let answers = lister.answers(TransferSide::Got, &ask).await.unwrap();
        assert_eq!(answers.len(), 1);
        assert_eq!(lister.reaches(&answers[0], 10_000).await, Ok(false));
    }

    /// Nodes with head 3,000 and no transfers.
    fn low() -> Arc<ScriptedNodes> {
        nodes(|_, method, _| match method {
            METHOD => Ok(json!({"transfers": []})),
            _ => Ok("0xbb8".into()),
        })
    }

    /// Another server behind the address may lag behind the one that reported its head.
    #[tokio::test(start_paused = true)]
    async fn near_the_head_three_pages_come_each_with_the_head_of_its_server() {
        let pool = low().pool(&["one"]);
        let mut lister = lister(pool, 5_000);
        lister.note_head(EndpointId(0), 5_000 + HEAD_MARGIN - 1, Instant::now());
        let ask = page_to(5_000);
        let answers = lister.answers(TransferSide::Got, &ask).await.unwrap();
        let reach: Vec<Reach> = answers.iter().map(|answer| answer.reach).collect();
        assert_eq!(reach, [Reach::Head(3_000); AGREEING_NEAR]);
    }

    /// A page of an endpoint without a known head, while another endpoint is far above.
    #[tokio::test(start_paused = true)]
    async fn the_head_of_one_endpoint_says_nothing_of_another_ones_pages() {
        let pool = low().pool_of_single_calls(&["one"]);
        let mut lister = lister(pool, 5_000);
        lister.note_head(EndpointId(1), 10_000, Instant::now());
        let ask = page_to(5_000);
        assert!(!lister.is_near(&ask));
        let answers = lister.answers(TransferSide::Got, &ask).await.unwrap();
        assert_eq!(answers.len(), AGREEING_APART);
        assert_eq!(lister.reaches(&answers[0], 5_000).await, Ok(false));
    }
}
