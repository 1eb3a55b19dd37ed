//! Looks up symbols and decimals that were unknown when their trades were stored.

use std::sync::Arc;

use tokio::time::sleep;

use super::walk::millis;
use super::{Inner, Result};
use crate::domain::{Address, ChainId, UnixMillis};
use crate::rpc::{Lane, Priority};
use crate::sources::Source;
use crate::store::TokenRecord;

impl Inner {
    /// Looks up missing symbols and decimals at intervals, until the tasks are cancelled.
    pub(super) async fn complete_tokens(self: Arc<Self>) {
        while self.tasks.run(sleep(self.limits.tokens_check_every)).await.is_some() {
            if self.is_paused() {
                continue;
            }
            for (chain, source) in &self.sources.all() {
                if !self.has_duty("tokens", *chain).await {
                    continue;
                }
                let Some(asked) = self.tasks.run(self.look_up_symbols(*chain, source)).await else {
                    return;
                };
                if let Err(error) = asked {
                    tracing::warn!(%error, "cannot look up missing symbols; retrying in the next round");
                }
            }
        }
    }

    /// Looks up tokens of a chain; those without an answer are retried in the next round.
    async fn look_up_symbols(&self, chain: ChainId, source: &Source) -> Result<()> {
        let now = self.clock.now();
        let before = UnixMillis(now.0.saturating_sub(millis(self.limits.enrich.token_retry_after)));
        let wanted = self
            .view()?
            .tokens_wanting_symbols(chain, before, self.limits.tokens_check_max)
            .await?;
        if wanted.is_empty() {
            return Ok(());
        }
        let mints: Vec<Address> = wanted.iter().map(|token| token.mint).collect();
        let lane = Lane::unowned(Priority::background());
        let Ok(metas) = source.tokens(&mints, &lane).await else { return Ok(()) };
        let asked_at = Some(self.clock.now());
        let records = metas.into_iter().map(|meta| TokenRecord {
            chain,
            mint: meta.mint,
            symbol: meta.symbol,
            decimals: meta.decimals,
            asked_at,
        });
        Ok(self.store.write_tokens(records.collect()).await?)
    }
}
