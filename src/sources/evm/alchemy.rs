//! A wallet's transactions by `alchemy_getAssetTransfers`: one list of what it gave, one of what
//! it got (alchemy.com/docs, "Transfers API").

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::abilities::Abilities;
use super::descent::{DescentOutcome, PageAsk};
use super::discovery::Window;
use super::list_row::{ListRow, What, without_repeats};
use super::log_requests;
use super::merge::{self, Merge};
use super::sent::SentNonce;
use super::subject::Subject;
use super::texts::{self, hex_text};
use super::wire;
use crate::decode::evm::{Account, NativeMove};
use crate::domain::{Height, Units, UnixSeconds};
use crate::rpc::batch::{Call, CallResponse};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::{CallOptions, Pool};
use crate::rpc::scheduler::Lane;
use crate::sources::server_reach::LateHead;

const METHOD: &str = "alchemy_getAssetTransfers";
/// Transfers in a page: the most that is given.
const PAGE_MAX: usize = 1_000;
/// Chains of which it lists inner calls: Ethereum and Polygon.
const CHAINS_WITH_CALLS: [u64; 2] = [1, 137];
const SIDES: [Side; 2] = [Side::Gave, Side::Got];
/// Answers that have to agree.
const AGREEING: usize = 2;
/// More of them near the chain's head: even the calls of one request may be answered by several servers
/// of which some are behind. Those that show an end alike confirm it.
const AGREEING_NEAR: usize = 3;
/// And more where the head of a server came in another request than its page: each page may be of a
/// server that is behind, and each head of one that is not.
const AGREEING_APART: usize = 6;
/// Blocks above a page from which on a known head needs no new one: another server behind the address
/// may not have come so far.
const HEAD_MARGIN: u64 = 4_096;
/// Pages in a row that lack what is known.
const LAGS_MAX: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Gave,
    Got,
}

#[derive(Debug)]
pub(super) struct AlchemyLister {
    pool: Pool,
    subject: Subject,
    lane: Lane,
    merge: Merge,
    high: Height,
    with_calls: bool,
    /// How to turn the page inside a block.
    keys: HashMap<Side, String>,
    lags: u32,
    /// A block that each node had of late.
    heads: HashMap<EndpointId, LateHead>,
    abilities: Arc<Abilities>,
}

/// A page, with what shows how far its server has come.
struct PageAnswer {
    page: CallResponse,
    reach: Reach,
    asked_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The page is far below a head.
    Certain,
    /// The head of the server that gave the page.
    Head(Height),
    /// Its head came from another request, and so perhaps from another server.
    Apart,
    /// So did this one, which is far above the page.
    Far(Height),
}

impl AlchemyLister {
    pub(super) fn new(
        pool: Pool,
        subject: Subject,
        lane: Lane,
        (low, high): (Height, Height),
        abilities: Arc<Abilities>,
    ) -> Self {
        let with_calls = subject.chain.chain_id.is_some_and(|id| CHAINS_WITH_CALLS.contains(&id));
        Self {
            pool,
            subject,
            lane,
            merge: Merge::new(SIDES.len(), low, high),
            high,
            with_calls,
            keys: HashMap::new(),
            lags: 0,
            heads: HashMap::new(),
            abilities,
        }
    }

    /// Begins further down, before anything is listed.
    pub(super) fn set_high(&mut self, high: Height) {
        self.merge.set_high(high);
        self.high = high;
    }

    /// The next heights down that both lists have passed. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<Window>, UpstreamError> {
        loop {
            if self.merge.is_done() {
                return Ok(None);
            }
            // Where it has no calls, it refuses to be asked for them.
            let until = self.with_calls.then_some(self.high);
            if let Some(mut window) = self.merge.take(&self.subject, until) {
                // Without its only inner call, a sale looks like tokens that were sent away: that
                // there is none is read from the transaction.
                for found in &mut window.found {
                    found.calls.take_if(|calls| calls.is_empty());
                }
                return Ok(Some(window));
            }
            self.round().await?;
        }
    }

    async fn round(&mut self) -> Result<(), UpstreamError> {
        let wanted: Vec<(usize, Side, PageAsk)> = self
            .merge
            .wanted()
            .into_iter()
            .filter_map(|(at, ask)| Some((at, *SIDES.get(at)?, ask)))
            .collect();
        let answers = join_all(wanted.iter().map(|(_, side, ask)| self.answers(*side, ask))).await;
        let with_calls = self.with_calls;
        let mut first_error = Ok(());
        for ((at, side, ask), answers) in wanted.into_iter().zip(answers) {
            let done = match answers.as_deref() {
                Ok([one]) => self.absorb_end(at, ask.end, one).await,
                Ok(several) => self.absorb(at, side, ask.end, several).await,
                Err(error) => self.amend(at, ask, with_calls, error.clone()),
            };
            first_error = first_error.and(done);
        }
        first_error
    }

    /// As many answers as have to agree: a page that stops early, or comes from a server that is
    /// behind, looks like any other. One where it is to confirm an end.
    async fn answers(&self, side: Side, ask: &PageAsk) -> Result<Vec<PageAnswer>, UpstreamError> {
        if ask.confirms_end {
            return Ok(vec![self.answer(side, ask).await?]);
        }
        let several = |count| try_join_all((0..count).map(|_| self.answer(side, ask)));
        let mut answers = several(if self.is_near(ask) { AGREEING_NEAR } else { AGREEING }).await?;
        if answers.iter().any(|answer| answer.reach == Reach::Apart) {
            answers.extend(several(AGREEING_APART - AGREEING_NEAR).await?);
        }
        Ok(answers)
    }

    /// Whether a server behind the address may not have come so far.
    fn is_near(&self, ask: &PageAsk) -> bool {
        let (certain, now) = (ask.end.saturating_add(HEAD_MARGIN), Instant::now());
        self.heads.values().all(|head| head.get(now) < Some(certain))
    }

    /// One answer, near the chain's head with its server's head in the same request.
    async fn answer(&self, side: Side, ask: &PageAsk) -> Result<PageAnswer, UpstreamError> {
        let key = self.keys.get(&side).filter(|_| ask.page > 1);
        let options = CallOptions::new(self.lane.clone());
        let page = Call { method: METHOD, params: self.params(side, ask, key) };
        let is_near = self.is_near(ask);
        let head = is_near.then(|| log_requests::head().1);
        let calls: Vec<Call> = [page].into_iter().chain(head).collect();
        let asked_at = Instant::now();
        let mut answers = self.pool.batch(&calls, &options).await.into_iter();
        let page = answers.next().unwrap_or(Err(UpstreamError::NoEndpoint))?;
        let heads: Vec<CallResponse> = answers.flatten().collect();
        let own = heads.iter().find(|head| head.request == page.request);
        let reach = match own.and_then(|head| wire::number(&head.result)) {
            Some(head) => Reach::Head(head),
            None if is_near => {
                let far = far_head(&heads, page.endpoint, ask.end);
                if far.is_none() {
                    self.note_apart(&heads);
                }
                far.map_or(Reach::Apart, Reach::Far)
            }
            None => Reach::Certain,
        };
        Ok(PageAnswer { page, reach, asked_at })
    }

    /// Heads of other requests show how far apart the servers of their addresses are.
    fn note_apart(&self, heads: &[CallResponse]) {
        for answer in heads {
            if let Some(head) = wire::number(&answer.result) {
                self.abilities.node_reach.note(answer.endpoint, (), &[head]);
            }
        }
    }

    fn params(&self, side: Side, ask: &PageAsk, key: Option<&String>) -> Value {
        let mut categories = vec!["external", "erc20"];
        if self.with_calls {
            categories.push("internal");
        }
        let side = match side {
            Side::Gave => "fromAddress",
            Side::Got => "toAddress",
        };
        let mut filter = serde_json::Map::new();
        for (name, value) in [
            (side, Value::from(hex_text(&self.subject.wallet))),
            ("fromBlock", format!("{:#x}", ask.low).into()),
            ("toBlock", format!("{:#x}", ask.end).into()),
            ("category", categories.into()),
            ("order", "desc".into()),
            ("withMetadata", true.into()),
            ("excludeZeroValue", true.into()),
            ("maxCount", format!("{PAGE_MAX:#x}").into()),
        ] {
            filter.insert(name.to_owned(), value);
        }
        if let Some(key) = key {
            filter.insert("pageKey".to_owned(), key.as_str().into());
        }
        json!([filter])
    }

    async fn absorb(
        &mut self,
        at: usize,
        side: Side,
        end: Height,
        answers: &[PageAnswer],
    ) -> Result<(), UpstreamError> {
        let mut pages = Vec::new();
        for answer in answers {
            if !self.reaches(answer, end).await? {
                return self.miss(answer.page.endpoint);
            }
            pages.push(self.page(answer)?);
        }
        let mut all = pages.iter().map(|(_, page)| page).zip(pages.iter().skip(1));
        let is_last = all.all(|(one, (_, two))| one.rows == two.rows)
            && pages.iter().all(|(_, page)| page.key.is_none());
        let mut keys = Vec::new();
        let mut fullest: Option<(usize, Vec<ListRow>)> = None;
        for (at, (endpoint, page)) in pages.into_iter().enumerate() {
            keys.push((endpoint, page.key));
            fullest = Some(match fullest {
                None => (at, page.rows),
                Some(best) => match merge::fuller(best, (at, page.rows)) {
                    Ok(fuller) => fuller,
                    Err(_) => return self.miss(endpoint),
                },
            });
        }
        let Some((best, rows)) = fullest else { return Ok(()) };
        let Some((endpoint, key)) = keys.into_iter().nth(best) else { return Ok(()) };
        let is_whole = key.is_none();
        match key {
            Some(key) => drop(self.keys.insert(side, key)),
            None => drop(self.keys.remove(&side)),
        }
        self.take(at, endpoint, rows, is_whole)?;
        if is_last && answers.len() > AGREEING {
            self.merge.end(at);
        } else if is_last {
            self.merge.expect_end(at);
        }
        Ok(())
    }

    /// A third answer to where a list ends; one that shows more is no page by itself.
    async fn absorb_end(
        &mut self,
        at: usize,
        end: Height,
        answer: &PageAnswer,
    ) -> Result<(), UpstreamError> {
        if !self.reaches(answer, end).await? {
            return self.miss(answer.page.endpoint);
        }
        let (endpoint, page) = self.page(answer)?;
        if page.key.is_some() || !self.merge.shows_end(at, &page.rows) {
            return self.miss(endpoint);
        }
        self.take(at, endpoint, page.rows, true)
    }

    fn take(
        &mut self,
        at: usize,
        endpoint: EndpointId,
        rows: Vec<ListRow>,
        is_whole: bool,
    ) -> Result<(), UpstreamError> {
        match self.merge.absorb(&self.subject, at, rows, is_whole) {
            Ok(DescentOutcome::Taken) => {
                self.lags = 0;
                Ok(())
            }
            Ok(DescentOutcome::Missed) => self.miss(endpoint),
            Err(fault) => {
                let message = format!("{METHOD}: {fault}");
                let endpoint = self.pool.label(endpoint);
                Err(UpstreamError::Rpc { endpoint, code: 0, message })
            }
        }
    }

    fn page(&self, answer: &PageAnswer) -> Result<(EndpointId, Page), UpstreamError> {
        let answer = &answer.page;
        let malformed = || UpstreamError::Malformed {
            endpoint: self.pool.label(answer.endpoint),
            what: format!("{METHOD} gave no transfers"),
        };
        Ok((answer.endpoint, page(&answer.result).ok_or_else(malformed)?))
    }

    /// Asked again, some times.
    fn miss(&mut self, endpoint: EndpointId) -> Result<(), UpstreamError> {
        if self.lags < LAGS_MAX {
            self.lags += 1;
            return Ok(());
        }
        self.lags = 0;
        // Heads grow.
        self.heads.clear();
        let last = format!("{} lacks what it gave, or is behind", self.pool.label(endpoint));
        Err(UpstreamError::Unavailable { attempts: LAGS_MAX, last })
    }

    /// Whether the server has come so far: what one of its address was behind another of late, each may
    /// be. Where its own head is not known, one that its address named since the page was asked for: it
    /// may have fallen back from earlier ones.
    async fn reaches(
        &mut self,
        answer: &PageAnswer,
        height: Height,
    ) -> Result<bool, UpstreamError> {
        let on = answer.page.endpoint;
        if let Reach::Head(head) | Reach::Far(head) = answer.reach {
            return Ok(self.note_head(on, head) >= height);
        }
        let known = &self.abilities.node_reach;
        if known.is_known_since(on, answer.asked_at) {
            return Ok(known.reached(on, ()) >= Some(height));
        }
        let options = CallOptions { on: Some(on), ..CallOptions::new(self.lane.clone()) };
        let answer = self.pool.call("eth_blockNumber", json!([]), &options).await?;
        let head = wire::number(&answer.result).unwrap_or(0);
        Ok(self.note_head(on, head) >= height)
    }

    /// The height that every server of the address has, as far as its heads show.
    fn note_head(&mut self, on: EndpointId, head: Height) -> Height {
        self.heads.entry(on).or_default().note(head, Instant::now());
        self.abilities.node_reach.note(on, (), &[head]);
        self.abilities.node_reach.reached(on, ()).unwrap_or(0)
    }

    /// What follows from an answer that is an error.
    fn amend(
        &mut self,
        at: usize,
        ask: PageAsk,
        with_calls: bool,
        error: UpstreamError,
    ) -> Result<(), UpstreamError> {
        let message = match &error {
            UpstreamError::Rpc { message, .. } => message.to_lowercase(),
            UpstreamError::NoEndpoint
            | UpstreamError::NotSupported { .. }
            | UpstreamError::Unavailable { .. }
            | UpstreamError::Refused { .. }
            | UpstreamError::Malformed { .. }
            | UpstreamError::HistoryCut { .. }
            | UpstreamError::WrongChain { .. }
            | UpstreamError::NotAWallet { .. } => return Err(error),
        };
        if with_calls && (message.contains("categor") || message.contains("internal transfer")) {
            self.with_calls = false;
            return Ok(());
        }
        // A key is good for some minutes, and only where it was given.
        if ask.page > 1 && self.lags < LAGS_MAX {
            self.lags += 1;
            self.merge.restart(at);
            return Ok(());
        }
        Err(error)
    }
}

/// A head that an endpoint named just now, so far above a page that none has to come with it.
fn far_head(heads: &[CallResponse], on: EndpointId, end: Height) -> Option<Height> {
    let own = heads.iter().filter(|head| head.endpoint == on);
    let heights = own.filter_map(|head| wire::number(&head.result));
    heights.min().filter(|head| *head >= end.saturating_add(HEAD_MARGIN))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPage<'a> {
    #[serde(borrow)]
    transfers: Vec<RawTransfer<'a>>,
    #[serde(default)]
    page_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTransfer<'a> {
    #[serde(borrow)]
    block_num: &'a RawValue,
    hash: &'a str,
    #[serde(default)]
    unique_id: Option<&'a str>,
    from: &'a str,
    #[serde(default)]
    to: Option<&'a str>,
    category: &'a str,
    #[serde(default, borrow)]
    raw_contract: Option<RawContract<'a>>,
    #[serde(default, borrow)]
    metadata: Option<Metadata<'a>>,
}

/// The field `value` is a float and not read.
#[derive(Deserialize)]
struct RawContract<'a> {
    #[serde(default, borrow)]
    value: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(default)]
    block_timestamp: Option<&'a str>,
}

struct Page {
    rows: Vec<ListRow>,
    key: Option<String>,
}

fn page<'a>(raw: &'a RawValue) -> Option<Page> {
    let raw: RawPage<'_> = serde_json::from_str(raw.get()).ok()?;
    let marked = |raw: &RawTransfer<'a>| Some((raw.unique_id, row(raw)?));
    let rows = raw.transfers.iter().map(marked).collect::<Option<Vec<_>>>()?;
    let rows = without_repeats(rows);
    Some(Page { rows, key: raw.page_key.filter(|key| !key.is_empty()) })
}

fn row(raw: &RawTransfer<'_>) -> Option<ListRow> {
    let from = texts::account(raw.from)?;
    let to = raw.to.and_then(texts::account);
    let value = raw.raw_contract.as_ref().and_then(|contract| texts::scalar(contract.value));
    let time = raw.metadata.as_ref().and_then(|metadata| metadata.block_timestamp).and_then(time);
    Some(ListRow {
        hash: texts::word(raw.hash)?,
        block: texts::height(texts::scalar(Some(raw.block_num))?)?,
        index: None,
        time,
        sent: SentNonce::No,
        what: what(raw.category, (from, to), value.and_then(texts::units)),
    })
}

fn what(category: &str, (from, to): (Account, Option<Account>), value: Option<Units>) -> What {
    match (category, to, value) {
        // The call's kind is not reported.
        ("external", to, value) => {
            What::Outer { from, to, value: value.unwrap_or_default(), selector: None }
        }
        (_, _, Some(Units::ZERO)) => What::Nothing,
        // Some tokens have no amount.
        ("erc20", Some(to), _) => What::Token { from, to },
        ("internal", Some(to), Some(value)) if from != to => {
            What::Call(NativeMove { from, to, value })
        }
        _ => What::Nothing,
    }
}

fn time(text: &str) -> Option<UnixSeconds> {
    let seconds = text.parse::<jiff::Timestamp>().ok()?.as_second();
    u32::try_from(seconds).ok().map(UnixSeconds)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::lists_model::{Model, Ways, lane, subject};
    use super::*;

    /// A head that was named before the page was asked for shows nothing of the server that gave it.
    #[tokio::test(start_paused = true)]
    async fn a_node_that_fell_back_is_asked_for_its_head_again() {
        let ways = Ways { lag: [("one".to_owned(), 664)].into(), ..Ways::default() };
        let pool = Model::new(Vec::new(), 10_000, ways).pool(&["one"]);
        let abilities: Arc<Abilities> = Arc::default();
        let options = CallOptions::new(lane());
        let page = pool.call("eth_blockNumber", json!([]), &options).await.unwrap();
        let mut lister =
            AlchemyLister::new(pool, subject(), lane(), (0, 10_000), Arc::clone(&abilities));
        abilities.node_reach.note(EndpointId(0), (), &[10_000]);
        tokio::time::advance(Duration::from_secs(60)).await;
        let answer = PageAnswer { page, reach: Reach::Apart, asked_at: Instant::now() };
        for (height, is_reached) in [(10_000, false), (9_337, false), (9_336, true)] {
            assert_eq!(lister.reaches(&answer, height).await, Ok(is_reached), "{height}");
        }
    }

    /// Another server of the address may not have come so far, or the node was set up anew.
    #[tokio::test(start_paused = true)]
    async fn a_head_that_a_node_named_is_believed_for_half_a_minute() {
        let pool = Model::new(Vec::new(), 10_000, Ways::default()).pool(&["one"]);
        let mut lister = AlchemyLister::new(pool, subject(), lane(), (0, 5_000), Arc::default());
        let ask = PageAsk { low: 0, end: 5_000, page: 1, rows: None, confirms_end: false };
        assert!(lister.is_near(&ask));
        assert_eq!(lister.note_head(EndpointId(0), 10_000), 10_000);
        assert!(!lister.is_near(&ask));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(lister.is_near(&ask));
    }
}
