//! What `blotter verify` reads from nodes: the wallet's transactions and its balances.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cli::errors::CliError;
use crate::cli::progress::ProgressLine;
use crate::cli::reading::{Context, WalletReading};
use crate::cli::signals;
use crate::cli::sources::{Nodes, sources};
use crate::domain::{Address, Units};
use crate::history::{Moved, Moves};
use crate::rpc::{Lane, Priority, UpstreamError};
use crate::sources::{Source, TokenMeta};

const TOKENS_AT_ONCE: usize = 500;

pub(super) struct WalletNodes<'a> {
    reading: &'a WalletReading<'a>,
    context: &'a Context<'a>,
    source: Source,
    lane: Lane,
}

pub(super) struct CurrentBalance {
    pub(super) meta: Option<TokenMeta>,
    /// `None` if the nodes do not report it.
    pub(super) balance: Option<Units>,
}

impl<'a> WalletNodes<'a> {
    pub(super) fn new(
        reading: &'a WalletReading<'a>,
        context: &'a Context<'a>,
    ) -> Result<Self, CliError> {
        let nodes = Nodes::alone(context.transport);
        let mut all = sources(context.config, context.registry, &nodes)?;
        let source = all.remove(&reading.wallet.chain).ok_or_else(|| {
            CliError::Usage(format!("{} is switched off in the configuration", reading.chain.slug))
        })?;
        let lane = Lane::unowned(Priority::interactive());
        Ok(Self { reading, context, source, lane })
    }

    /// Reads all transactions, chunk by chunk. Returns their number and the movements by token.
    pub(super) async fn transactions(&self) -> Result<(u64, BTreeMap<Address, Moved>), CliError> {
        let registry = Arc::clone(self.context.registry);
        let (source, lane) = (self.source.clone(), self.lane.clone());
        let mut moves = Moves::new(source, registry, self.reading.wallet, lane);
        let progress = ProgressLine::start(self.context.quiet);
        let stop = signals::stop()?;
        tokio::pin!(stop);
        loop {
            let more = tokio::select! {
                more = moves.next() => more.map_err(|error| {
                    CliError::failed("the wallet's transactions cannot be read anew", error)
                })?,
                () = &mut stop => return Err(CliError::plain("stopped before all was read")),
            };
            if !more {
                break;
            }
            let oldest = moves.oldest().map(|time| time.to_string());
            progress.reread(moves.transactions(), oldest.as_deref().unwrap_or("…"));
        }
        Ok((moves.transactions(), moves.into_tokens()))
    }

    pub(super) async fn held(
        &self,
        mints: &[Address],
    ) -> Result<BTreeMap<Address, CurrentBalance>, CliError> {
        let missing = |error: UpstreamError| {
            CliError::failed("the node does not report what the wallet holds", error)
        };
        let mut all = BTreeMap::new();
        for group in mints.chunks(TOKENS_AT_ONCE) {
            let wallet = self.reading.wallet.address;
            let balances =
                self.source.balances(wallet, group, &self.lane).await.map_err(missing)?;
            let metas = self.source.tokens(group, &self.lane).await.map_err(missing)?;
            let mut metas: BTreeMap<Address, TokenMeta> =
                metas.into_iter().map(|meta| (meta.mint, meta)).collect();
            for (mint, balance) in group.iter().zip(balances) {
                all.insert(*mint, CurrentBalance { meta: metas.remove(mint), balance });
            }
        }
        Ok(all)
    }
}
