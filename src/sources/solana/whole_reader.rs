//! One gap by pages of whole transactions, as far down as the method reaches.

use std::convert::Infallible;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::SolanaSource;
use super::open::Opening;
use super::whole::{self, Whole, WholePage};
use super::wire::Balance;
use crate::domain::{Height, Proof, SourceAccount, Way};
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::sources::source::{GapRequest, RawChunk, RawTx, Tip};

enum Event {
    Opened(Result<Opening, UpstreamError>),
    Page(Result<WholePage, UpstreamError>),
    /// The first blocks kept by the endpoints that reported the end.
    FirstKept(Result<Vec<(EndpointId, Height)>, UpstreamError>),
}

pub(super) enum WholeStep {
    Chunk(Box<RawChunk>),
    /// What is left is for the lists.
    Lists(Box<GapRequest>),
    End,
}

pub(super) struct WholeReader {
    source: SolanaSource,
    request: GapRequest,
    options: CallOptions,
    /// `None` until the head is known.
    whole: Option<Whole>,
    /// At most one request at a time; the next page begins when one has come.
    flight: Option<BoxFuture<'static, Event>>,
    arrived: Option<Event>,
    accounts: Vec<SourceAccount>,
    /// The same, until a chunk has reported them.
    news: Vec<SourceAccount>,
    tip: Option<Tip>,
}

impl WholeReader {
    pub(super) fn new(source: SolanaSource, request: GapRequest) -> Self {
        let options = CallOptions::new(request.lane.clone());
        let whole = request.high.map(|high| Whole::new(request.low, high));
        let flight = whole.is_none().then(|| {
            let (source, options) = (source.clone(), options.clone());
            let (wallet, first) = (request.wallet, request.first);
            async move { Event::Opened(source.open(wallet, first, &options).await) }.boxed()
        });
        let (accounts, news, tip) = (Vec::new(), Vec::new(), None);
        Self { source, request, options, whole, flight, arrived: None, accounts, news, tip }
    }

    pub(super) async fn next(&mut self) -> Result<WholeStep, UpstreamError> {
        loop {
            if let Some(whole) = &mut self.whole {
                if let Some(chunk) = whole.deliver() {
                    self.ask();
                    return Ok(WholeStep::Chunk(Box::new(RawChunk {
                        low: chunk.low,
                        high: chunk.high,
                        txs: chunk.txs.into_iter().map(|(tx, t)| RawTx::Solana(tx, t)).collect(),
                        resume: None,
                        proof: Proof::of(Way::FullPages),
                        missing: Vec::new(),
                        accounts: std::mem::take(&mut self.news),
                        tip: self.tip.take(),
                    })));
                }
                if whole.next_high() < self.request.low.max(whole::FIRST_SLOT) {
                    let high = whole.next_high();
                    return Ok(self.rest(high));
                }
            }
            self.ask();
            self.land().await;
            if let Some(step) = self.absorb()? {
                return Ok(step);
            }
        }
    }

    /// The tip and the accounts that no chunk has reported yet.
    pub(super) fn take_unreported(&mut self) -> (Option<Tip>, Vec<SourceAccount>) {
        (self.tip.take(), std::mem::take(&mut self.news))
    }

    /// Works on what is under way; never ready.
    pub(super) async fn drive(&mut self) -> Infallible {
        if self.arrived.is_none() && self.flight.is_some() {
            self.land().await;
        }
        std::future::pending().await
    }

    /// Waits for the request under way. Cancel safe: what came waits in `arrived`.
    async fn land(&mut self) {
        if self.arrived.is_none()
            && let Some(flight) = &mut self.flight
        {
            self.arrived = Some(flight.await);
            self.flight = None;
        }
    }

    fn ask(&mut self) {
        let Some(whole) = &self.whole else { return };
        if self.flight.is_some() || self.arrived.is_some() {
            return;
        }
        if let Some(by) = whole.wants_proof() {
            let (source, options) = (self.source.clone(), self.options.clone());
            let kept = async move { Event::FirstKept(source.first_kept(by, &options).await) };
            self.flight = Some(kept.boxed());
        }
        if whole.has_ended() {
            return;
        }
        let (source, params) = (self.source.clone(), whole.params(self.request.wallet));
        let options = CallOptions { avoid: whole.avoid(), ..self.options.clone() };
        let page = async move { Event::Page(source.whole_page(params, &options).await) };
        self.flight = Some(page.boxed());
    }

    fn absorb(&mut self) -> Result<Option<WholeStep>, UpstreamError> {
        match (self.arrived.take(), &mut self.whole) {
            (Some(Event::Opened(opening)), _) => {
                let Opening { head, accounts, tip, .. } = opening?;
                if head < self.request.low {
                    return Ok(Some(WholeStep::End));
                }
                self.tip = tip;
                let accounts = accounts.unwrap_or_default();
                // A balance from above the head would hide what changed it from the next read; that
                // the account exists must be known to every read below.
                let seen = |balance: &Balance| SourceAccount {
                    account: balance.account,
                    amount: (balance.at <= head).then_some(balance.amount),
                    oldest: None,
                };
                self.accounts = accounts.iter().map(seen).collect();
                self.news = self.accounts.clone();
                self.request.high = Some(head);
                if head < whole::FIRST_SLOT {
                    return Ok(Some(self.rest(head)));
                }
                self.whole = Some(Whole::new(self.request.low, head));
                Ok(None)
            }
            (Some(Event::Page(Ok(page))), Some(whole)) => {
                whole.absorb(page);
                let high = whole.next_high();
                Ok(whole.is_lost().then(|| self.rest(high)))
            }
            (Some(Event::FirstKept(kept)), Some(whole)) => {
                let first = kept?.into_iter().map(|(_, first)| first).min().unwrap_or(0);
                let high = whole.next_high();
                // The lists find out what can be had.
                Ok((!whole.prove(first)).then(|| self.rest(high)))
            }
            (Some(Event::Page(Err(error))), Some(whole))
                if !matches!(error, UpstreamError::Malformed { .. }) =>
            {
                tracing::warn!(%error, "full-transaction pages cannot be read: reading lists");
                let high = whole.next_high();
                if error.is_final() {
                    self.source.give_up_whole();
                }
                Ok(Some(self.rest(high)))
            }
            (Some(Event::Page(Err(error))), _) => Err(error),
            (Some(Event::Page(Ok(_)) | Event::FirstKept(_)) | None, _) => Ok(None),
        }
    }

    /// The heights that lists have to read, from `high` down.
    fn rest(&self, high: Height) -> WholeStep {
        if high < self.request.low || self.request.low > 0 && high == 0 {
            return WholeStep::End;
        }
        let accounts = if self.accounts.is_empty() {
            self.request.accounts.clone()
        } else {
            self.accounts.clone()
        };
        let request = GapRequest {
            high: Some(high),
            resume: None,
            first: false,
            accounts,
            ..self.request.clone()
        };
        WholeStep::Lists(Box::new(request))
    }
}
