//! Finds transactions by an open data gateway, which filters the logs of a whole chain: windows of
//! blocks, going down, several of them concurrently.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, OptionFuture, join3};
use futures_util::stream::FuturesOrdered;

use super::discovery::{Discovery, Window};
use super::list_client::ListClient;
use super::portal_answers::read_agreed;
use super::portal_sent::{Checked, SentCheck};
use super::portal_window::{GatewayMode, PortalWindow, SPAN_FIRST, WindowError};
use super::portal_wire::NativeBy;
use super::receipts::transfer_ends;
use crate::domain::{Doubts, Height};
use crate::rpc::{Result, UpstreamError};
use crate::sources::gateway;

const SPAN_MAX: u64 = 1 << 40;
/// Transactions per window below which the next one is longer, and above which it is shorter.
const FOUND_FEW: usize = 200;
const FOUND_MANY: usize = 1_000;
const GROWTH: u64 = 4;
/// Refusals of a query, without a window in between, after which less is requested.
const REFUSALS: usize = 2;

type Read = (Height, Result<PortalWindow, WindowError>);

pub(super) struct PortalLister {
    gateway: Arc<ListClient>,
    low: Height,
    /// Top of the next window; `None` below the lowest height.
    top: Option<Height>,
    span: u64,
    mode: GatewayMode,
    /// Windows in flight, from the newest down, and their maximum number.
    in_flight: FuturesOrdered<BoxFuture<'static, Read>>,
    windows_max: usize,
    given: usize,
    /// A window that is next in order.
    arrived: Option<Read>,
    /// The first block of the gateway, once it was queried.
    first: Option<Height>,
    /// Whether that was known when the windows in flight were requested.
    begun_above_first: bool,
    /// Consecutive refusals of the present query, each with whether it names traces.
    refusals: Vec<bool>,
    /// Compares with the sent count, if the chain has one.
    sent: Option<SentCheck>,
}

/// The first block that the gateway reports; 0 if it has no metadata.
async fn first_block(gateway: &ListClient) -> Result<Height> {
    match gateway.ask("/metadata", None, gateway::classify_metadata).await {
        Ok(reply) => gateway::first_block(&reply.body)
            .ok_or_else(|| gateway.pool.malformed(reply.endpoint, "no metadata of a dataset")),
        Err(UpstreamError::NotSupported { .. }) => Ok(0),
        Err(error) => Err(error),
    }
}

impl PortalLister {
    pub(super) fn new(
        client: ListClient,
        (low, high): (Height, Height),
        windows_max: usize,
    ) -> Self {
        let witness = client.witness((low, high.max(low)));
        Self {
            gateway: Arc::new(client),
            low,
            top: (low <= high).then_some(high),
            span: SPAN_FIRST,
            mode: GatewayMode { native: NativeBy::Traces, finalized_only: true },
            in_flight: FuturesOrdered::new(),
            windows_max: windows_max.max(1),
            given: 0,
            arrived: None,
            first: None,
            begun_above_first: false,
            refusals: Vec::new(),
            sent: witness.map(|witness| SentCheck::new(witness, low)),
        }
    }

    pub(super) fn set_high(&mut self, high: Height) {
        self.top = (self.low <= high).then_some(high);
        if let Some(sent) = &mut self.sent {
            sent.set_high(high);
        }
    }

    pub(super) async fn head(&mut self) -> Result<Option<Height>> {
        match self.gateway.ask("/finalized-head", None, gateway::classify_value).await {
            Ok(reply) => Ok(gateway::head(&reply.body)),
            Err(error) if error.is_final() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next window down. Cancel safe: windows in flight are kept.
    pub(super) async fn next(&mut self) -> Result<Option<Window>> {
        loop {
            if self.arrived.is_none() {
                // The first window is delivered without waiting for it.
                if let Some(top) = self.top.filter(|_| self.given > 0 && self.in_flight.is_empty())
                {
                    self.check_first(top).await?;
                }
                self.begin_windows();
                self.receive_window().await;
            }
            let Some((top, _)) = &self.arrived else { return Ok(None) };
            // Below its first block a gateway returns nothing, without an error.
            let top = *top;
            if matches!(self.arrived, Some((_, Ok(_)))) {
                self.check_first(top).await?;
            }
            let lowest = self.lowest();
            if let (Some(sent), Some((_, Ok(window)))) = (&mut self.sent, &self.arrived) {
                sent.check_counts(window, window.low <= lowest).await;
            }
            match self.arrived.take() {
                Some((_, Ok(window))) => {
                    if let Some(window) = self.check(window) {
                        return Ok(Some(window));
                    }
                }
                Some((_, Err(trouble))) => self.adapt_to_error(trouble, top).await?,
                None => return Ok(None),
            }
        }
    }

    /// Receives the oldest window in flight; concurrently with the first one, queries the sent
    /// count and the gateway's first block.
    async fn receive_window(&mut self) {
        let Self { gateway, in_flight, arrived, sent, first, .. } = self;
        if in_flight.is_empty() {
            *arrived = None;
            return;
        }
        let counted = OptionFuture::from(sent.as_mut().map(SentCheck::count));
        let known = async {
            if first.is_none() {
                // Queried again when it is needed.
                *first = first_block(gateway).await.ok();
            }
        };
        join3(async { *arrived = in_flight.next().await }, counted, known).await;
    }

    /// Compares a window with the sent transactions; `None` if it is delivered later.
    fn check(&mut self, window: PortalWindow) -> Option<Window> {
        self.given += 1;
        self.adapt_span(&window);
        let is_last = window.low <= self.lowest();
        let checked = match &mut self.sent {
            Some(sent) => sent.take(window, is_last),
            None => Checked::Deliver(window, Doubts::NONE),
        };
        match checked {
            Checked::Deliver(window, doubts) => Some(self.deliver_window(window, doubts)),
            Checked::Held => None,
            Checked::Again(top) => {
                self.begin_again(top);
                None
            }
        }
    }

    fn lowest(&self) -> Height {
        self.low.max(self.first_used())
    }

    /// Requests further windows. Their length follows from the first one; until it arrives each is
    /// longer than the one above, as it will be if the first one has few transactions.
    fn begin_windows(&mut self) {
        while self.in_flight.len() < self.windows_max {
            let Some(top) = self.top else { return };
            let longer = if self.given == 0 { self.in_flight.len() } else { 0 };
            let times = GROWTH.saturating_pow(u32::try_from(longer).unwrap_or(u32::MAX));
            let span = self.span.saturating_mul(times).min(SPAN_MAX);
            let low = top.saturating_sub(span - 1).max(self.low).max(self.first_used());
            let low = low.min(top);
            self.begun_above_first = self.first.is_some();
            let read = read_agreed(Arc::clone(&self.gateway), self.mode, (low, top));
            self.in_flight.push_back(Box::pin(async move { (top, read.await) }));
            self.top = low.checked_sub(1).filter(|below| *below >= self.low);
        }
    }

    fn begin_again(&mut self, top: Height) {
        self.in_flight = FuturesOrdered::new();
        self.top = Some(top);
    }

    async fn adapt_to_error(&mut self, trouble: WindowError, top: Height) -> Result<()> {
        let error = match trouble {
            WindowError::Dense(span) => {
                self.span = span.max(1);
                self.begin_again(top);
                return Ok(());
            }
            WindowError::Error(error) => error,
        };
        if self.mode.finalized_only && matches!(error, UpstreamError::NotSupported { .. }) {
            self.mode.finalized_only = false;
            self.begin_again(top);
            return Ok(());
        }
        let UpstreamError::Rpc { code, .. } = error else { return Err(error) };
        self.begin_again(top);
        // The response exceeds the size limit.
        let length = self.span.min(top - self.low + 1);
        if code == 413 && length > 1 {
            self.span = (length / GROWTH).max(1);
            return Ok(());
        }
        if code != 400 {
            return Err(error);
        }
        // The refusal may concern blocks before the first one, or missing traces.
        let was_known = self.begun_above_first;
        self.check_first(top).await?;
        if !was_known && self.first.is_some_and(|first| first > self.low) {
            return Ok(());
        }
        self.request_less(error)
    }

    /// Requests less after enough refusals. That the gateway has no traces is recorded only if each
    /// refusal names them.
    fn request_less(&mut self, error: UpstreamError) -> Result<()> {
        let Some(weaker) = self.mode.native.weaker() else { return Err(error) };
        let is_clear = |message: &str| message.to_lowercase().contains("trace");
        self.refusals
            .push(matches!(&error, UpstreamError::Rpc { message, .. } if is_clear(message)));
        if self.refusals.len() < REFUSALS {
            return Ok(());
        }
        let are_clear = std::mem::take(&mut self.refusals).into_iter().all(|is_clear| is_clear);
        if self.mode.native == NativeBy::Traces && are_clear {
            self.gateway.abilities.note_no_calls(Discovery::Portal);
        }
        self.mode.native = weaker;
        Ok(())
    }

    /// Queries the first block of the gateway; an error if `top` lies below it.
    async fn check_first(&mut self, top: Height) -> Result<()> {
        let first = match self.first {
            Some(first) => first,
            None => first_block(&self.gateway).await?,
        };
        self.first = Some(first);
        let first = self.first_used();
        if first > top { Err(UpstreamError::HistoryCut { first }) } else { Ok(()) }
    }

    /// The first block of the gateway, once known; 0 if it is block 1 or lower, because the genesis
    /// block has no transactions.
    fn first_used(&self) -> Height {
        self.first.filter(|first| *first > 1).unwrap_or(0)
    }

    fn adapt_span(&mut self, window: &PortalWindow) {
        let length = window.high - window.low.max(self.first_used()) + 1;
        match window.found.len() + window.skipped {
            few if few < FOUND_FEW => self.span = length.max(self.span).saturating_mul(GROWTH),
            many if many > FOUND_MANY => self.span = length / 2,
            _ => {}
        }
        self.span = self.span.clamp(1, SPAN_MAX);
    }

    /// Records that the gateway has traces, and of which blocks whole transactions came with theirs
    /// or without. Of what others sent and the wallet only called in, all traces are not requested.
    fn note_traces(&self, window: &PortalWindow) {
        let ListClient { abilities, subject, .. } = &*self.gateway;
        let gave = |log| transfer_ends(log).is_some_and(|(from, _)| from == subject.wallet);
        if window.traces.lacking.is_none() {
            abilities.note_calls(Discovery::Portal);
        }
        for one in &window.found {
            match (&one.whole, &one.calls) {
                (Some(_), Some(_)) => abilities.note_traced(one.block),
                (Some(tx), None) if tx.from == subject.wallet || tx.logs.iter().any(gave) => {
                    abilities.note_untraced(one.block);
                }
                (Some(_), None) | (None, _) => {}
            }
        }
    }

    fn deliver_window(&mut self, window: PortalWindow, doubts: Doubts) -> Window {
        self.refusals.clear();
        if self.mode.native == NativeBy::Traces {
            self.note_traces(&window);
        }
        let low = window.low.max(self.first_used());
        let doubts = doubts.union(window.doubts);
        let mut found = window.found;
        found.reverse();
        Window {
            low,
            high: window.high,
            found,
            skipped: window.skipped,
            // State diffs do not prove that the balance changed nowhere else.
            doubts: match self.mode.native {
                NativeBy::Traces => doubts,
                NativeBy::StateDiffs | NativeBy::Nothing => doubts.union(Doubts::INNER_CALLS),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::discovery::Candidate;
    use super::super::lists_model::{Model, WALLET, Ways, client};
    use super::super::portal_answers::tests::whole;
    use super::super::portal_candidates::TraceSights;
    use super::*;
    use crate::decode::evm::Transaction;

    fn lister(first: Height, metadata: (u16, &'static str, usize)) -> PortalLister {
        let ways = Ways { first, metadata: Some(metadata), ..Ways::default() };
        let pool = Model::new(Vec::new(), 1_000, ways).pool(&["one"]);
        PortalLister::new(client(pool), (0, 1_000), 3)
    }

    async fn next(lister: &mut PortalLister) -> Result<Option<(Height, Height)>> {
        Ok(lister.next().await?.map(|window| (window.low, window.high)))
    }

    /// An answer that is no metadata of a dataset does not show that the gateway has all blocks.
    #[tokio::test(start_paused = true)]
    async fn the_first_block_is_asked_for_until_metadata_come() {
        for (status, body) in [
            (200, r#"{"message":"too many requests"}"#),
            (200, r#"{"dataset":"eth","start_block":"soon"}"#),
            (200, "null"),
            (400, "bad request"),
        ] {
            let mut late = lister(405, (status, body, 1));
            assert_eq!(next(&mut late).await, Ok(Some((405, 1_000))), "{body}");
            let below = next(&mut late).await;
            assert_eq!(below, Err(UpstreamError::HistoryCut { first: 405 }), "{body}");
            let never = next(&mut lister(405, (status, body, usize::MAX))).await;
            assert!(matches!(never, Err(UpstreamError::Unavailable { .. })), "{never:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_without_metadata_is_taken_to_have_all_blocks() {
        for status in [404, 405, 501] {
            let mut lister = lister(0, (status, "?", usize::MAX));
            assert_eq!(next(&mut lister).await, Ok(Some((0, 1_000))), "{status}");
            assert_eq!(next(&mut lister).await, Ok(None));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_gives_a_few_blocks_an_answer_takes_no_endless_requests() {
        for (gateway_covers, is_read) in [(40, true), (1, false)] {
            let model = Model::new(Vec::new(), 1_000, Ways { gateway_covers, ..Ways::default() });
            let read = PortalLister::new(model.client(&["one"]), (0, 1_000), 3).next().await;
            assert_eq!(read.is_ok(), is_read, "{read:?}");
            assert!(model.sent.load(Ordering::Relaxed) < 600);
        }
    }

    /// Of a transaction that another account sent, and in which the wallet was only called, only
    /// the wallet's own calls are requested.
    #[tokio::test(start_paused = true)]
    async fn a_block_lacks_traces_where_these_were_requested() {
        for (from, lacks) in [(WALLET, true), ([9; 20], false)] {
            let tx = Transaction { from, ..*whole(5) };
            let found = Candidate { whole: Some(Box::new(tx)), ..Candidate::bare([1; 32], 5) };
            let lister = lister(0, (404, "?", 0));
            lister.note_traces(&PortalWindow {
                low: 0,
                high: 9,
                found: vec![found],
                skipped: 0,
                blocks: 1,
                sent: None,
                doubts: Doubts::NONE,
                traces: TraceSights::default(),
                halved: true,
            });
            assert_eq!(lister.gateway.abilities.has_untraced(0..=9), lacks);
        }
    }

    /// A gateway whose datasets all have traces may refuse a query for any other reason.
    #[tokio::test(start_paused = true)]
    async fn that_a_gateway_has_no_traces_is_believed_where_two_answers_say_so() {
        let (clear, other) = ("column 'trace_address' is not found", "the query is not valid");
        let none = Doubts::INNER_CALLS;
        for (texts, doubts, is_noted) in [
            (&[clear][..], Doubts::NONE, false),
            (&[clear, clear], none, true),
            (&[clear, other], none, false),
            (&[other, other], none, false),
        ] {
            // Each window is asked for twice.
            let refuses_traces = texts.iter().flat_map(|text| [*text; 2]).collect();
            let ways = Ways { refuses_traces, ..Ways::default() };
            let model = Model::new(Vec::new(), 1_000, ways);
            let mut lister = PortalLister::new(model.client(&["one"]), (0, 1_000), 3);
            let window = lister.next().await.unwrap().unwrap();
            assert_eq!(window.doubts, doubts, "{texts:?}");
            assert_eq!(model.abilities.may_have_no_calls(Discovery::Portal), is_noted, "{texts:?}");
        }
    }
}
