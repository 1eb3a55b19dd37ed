//! Reads one gap by whole pages where the nodes offer them, else by lists.

use std::convert::Infallible;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::SolanaSource;
use super::list_reader::ListReader;
use super::whole;
use super::whole_reader::{WholeReader, WholeStep};
use crate::domain::SourceAccount;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;
use crate::sources::prefetch::{PrefetchReader as _, drive, next_chunk};
use crate::sources::source::{GapRequest, RawChunk, Tip};

/// Reads one gap of a Solana wallet.
pub(crate) struct SolanaReader {
    source: SolanaSource,
    request: GapRequest,
    /// Asks whether whole pages are offered, while the lists have begun already.
    probe: Option<BoxFuture<'static, bool>>,
    whole: Option<Box<WholeReader>>,
    lists: Option<Box<ListReader>>,
    eager: bool,
    /// Reported by full pages before the lists took over.
    tip: Option<Tip>,
    /// Accounts that full pages had found and no chunk has reported: reads below must know them.
    news: Vec<SourceAccount>,
}

impl std::fmt::Debug for SolanaReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SolanaReader").field("request", &self.request).finish_non_exhaustive()
    }
}

impl SolanaReader {
    pub(super) fn new(source: SolanaSource, request: GapRequest) -> Self {
        let (mut probe, mut whole) = (None, None);
        if request.high.is_none_or(|high| high >= whole::FIRST_SLOT) {
            match source.whole_offered() {
                Some(true) => {
                    whole = Some(Box::new(WholeReader::new(source.clone(), request.clone())));
                }
                Some(false) => {}
                None => {
                    let (asker, wallet) = (source.clone(), request.wallet);
                    let options = CallOptions::new(request.lane.clone());
                    let asked = async move { asker.offers_whole(wallet, &options).await };
                    probe = Some(asked.boxed());
                }
            }
        }
        Self {
            source,
            request,
            probe,
            whole,
            lists: None,
            eager: false,
            tip: None,
            news: Vec::new(),
        }
    }

    pub(crate) fn set_eager(&mut self, eager: bool) {
        self.eager = eager;
        if let Some(lists) = &mut self.lists {
            lists.prefetcher().set_eager(eager);
        }
    }

    /// The next chunk, newest first; `None` after the last one. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<RawChunk>, UpstreamError> {
        loop {
            if let Some(whole) = &mut self.whole {
                match whole.next().await? {
                    WholeStep::Chunk(chunk) => return Ok(Some(*chunk)),
                    WholeStep::End => return Ok(None),
                    WholeStep::Lists(rest) => {
                        (self.tip, self.news) = whole.take_unreported();
                        self.whole = None;
                        self.request = *rest;
                    }
                }
            }
            let Self { source, request, probe, lists, eager, tip, news, .. } = self;
            let lists = lists.get_or_insert_with(|| {
                let mut lists = Box::new(ListReader::new(source.clone(), request.clone()));
                lists.prefetcher().set_eager(*eager);
                lists
            });
            let Some(asked) = probe else {
                let mut chunk = next_chunk(&mut **lists).await?;
                if let Some(chunk) = &mut chunk {
                    chunk.tip = chunk.tip.or_else(|| tip.take());
                    tell(chunk, news);
                }
                return Ok(chunk);
            };
            let offered = tokio::select! {
                biased;
                offered = asked => offered,
                chunk = next_chunk(&mut **lists) => {
                    // The lists were quicker: they go on.
                    *probe = None;
                    return chunk;
                }
            };
            *probe = None;
            if offered {
                self.whole = Some(Box::new(WholeReader::new(source.clone(), request.clone())));
                self.lists = None;
            }
        }
    }

    /// Works on what is under way without delivering; never ready.
    pub(crate) async fn drive(&mut self) -> Infallible {
        match (&mut self.whole, &mut self.lists) {
            (Some(whole), _) => whole.drive().await,
            (None, Some(lists)) => drive(&mut **lists).await,
            (None, None) => std::future::pending().await,
        }
    }
}

/// Reports them with a chunk, unless it has newer data.
fn tell(chunk: &mut RawChunk, news: &mut Vec<SourceAccount>) {
    for account in news.drain(..) {
        if !chunk.accounts.iter().any(|known| known.account == account.account) {
            chunk.accounts.push(account);
        }
    }
}
