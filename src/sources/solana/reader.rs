//! Reads one gap of a wallet: by pages of full transactions where nodes offer them, else by lists.

use std::convert::Infallible;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::SolanaSource;
use super::full_pages::FIRST_SLOT;
use super::list_reader::ListReader;
use super::page_reader::{PageReader, PageStep};
use crate::domain::{SourceAccount, Way};
use crate::rpc::{CallOptions, Result};
use crate::sources::chunk::{GapRequest, RawChunk, Tip};
use crate::sources::prefetch::{ChunkReader, PrefetchReader as _, RunAhead, drive, next_chunk};

pub(super) struct SolanaReader {
    source: SolanaSource,
    request: GapRequest,
    /// Probes whether pages are offered, while the lists have already begun.
    probe: Option<BoxFuture<'static, bool>>,
    pages: Option<Box<PageReader>>,
    lists: Option<Box<ListReader>>,
    run_ahead: RunAhead,
    /// The tip that full pages reported before the lists took over.
    tip: Option<Tip>,
    /// Accounts that full pages found and no chunk has reported yet: later reads, of lower heights,
    /// need them.
    news: Vec<SourceAccount>,
}

impl SolanaSource {
    pub(in crate::sources) fn read(&self, request: GapRequest) -> Box<dyn ChunkReader> {
        Box::new(SolanaReader::new(self.clone(), request))
    }
}

impl SolanaReader {
    pub(super) fn new(source: SolanaSource, request: GapRequest) -> Self {
        let (mut probe, mut pages) = (None, None);
        let is_wanted = request.high.is_none_or(|high| high >= FIRST_SLOT)
            && request.another != Some(Way::FullPages)
            && !source.is_unproved_by_pages(request.wallet);
        let unprobed = source.unprobed();
        if is_wanted && source.page_plan().is_some() {
            pages = Some(Box::new(PageReader::new(source.clone(), request.clone())));
        } else if is_wanted && !unprobed.is_empty() {
            let (asker, wallet) = (source.clone(), request.wallet);
            let options = CallOptions::new(request.lane.clone());
            let asked = async move { asker.probe_pages(unprobed, wallet, &options).await };
            probe = Some(asked.boxed());
        }
        Self {
            source,
            request,
            probe,
            pages,
            lists: None,
            run_ahead: RunAhead::default(),
            tip: None,
            news: Vec::new(),
        }
    }

    pub(super) async fn next_chunk(&mut self) -> Result<Option<RawChunk>> {
        loop {
            if let Some(pages) = &mut self.pages {
                match next_chunk(&mut **pages).await? {
                    Some(PageStep::Chunk(chunk)) => return Ok(Some(*chunk)),
                    None => return Ok(None),
                    Some(PageStep::Lists(rest)) => {
                        (self.tip, self.news) = pages.take_unreported();
                        self.pages = None;
                        self.request = *rest;
                    }
                }
            }
            let Self { source, request, probe, lists, run_ahead, tip, news, .. } = self;
            let lists = lists.get_or_insert_with(|| {
                let mut lists = Box::new(ListReader::new(source.clone(), request.clone()));
                lists.prefetcher().set_run_ahead(*run_ahead);
                lists
            });
            let Some(asked) = probe else {
                let mut chunk = next_chunk(&mut **lists).await?;
                if let Some(chunk) = &mut chunk {
                    chunk.tip = chunk.tip.or_else(|| tip.take());
                    report(chunk, news);
                }
                return Ok(chunk);
            };
            let offered = tokio::select! {
                biased;
                offered = asked => offered,
                chunk = next_chunk(&mut **lists) => {
                    // The lists were quicker: they continue.
                    *probe = None;
                    return chunk;
                }
            };
            *probe = None;
            if offered {
                let mut pages = Box::new(PageReader::new(source.clone(), request.clone()));
                pages.prefetcher().set_run_ahead(*run_ahead);
                self.pages = Some(pages);
                self.lists = None;
            }
        }
    }
}

impl ChunkReader for SolanaReader {
    fn set_run_ahead(&mut self, run_ahead: RunAhead) {
        self.run_ahead = run_ahead;
        if let Some(pages) = &mut self.pages {
            pages.prefetcher().set_run_ahead(run_ahead);
        }
        if let Some(lists) = &mut self.lists {
            lists.prefetcher().set_run_ahead(run_ahead);
        }
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Option<RawChunk>>> {
        Box::pin(self.next_chunk())
    }

    fn drive(&mut self) -> BoxFuture<'_, Infallible> {
        match (&mut self.pages, &mut self.lists) {
            (Some(pages), _) => Box::pin(drive(&mut **pages)),
            (None, Some(lists)) => Box::pin(drive(&mut **lists)),
            (None, None) => Box::pin(std::future::pending()),
        }
    }
}

/// Reports the accounts with a chunk, but for those of which the chunk has newer data.
fn report(chunk: &mut RawChunk, news: &mut Vec<SourceAccount>) {
    for account in news.drain(..) {
        if !chunk.accounts.iter().any(|known| known.account == account.account) {
            chunk.accounts.push(account);
        }
    }
}
