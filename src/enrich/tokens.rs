//! Decimals and symbols of tokens.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::rows::DecodedTx;
use super::{EnrichError, Lookups};
use crate::domain::{Address, ChainId, Doubts};
use crate::rpc::UpstreamError;
use crate::store::{StoreError, TokenRecord};

type Tokens = BTreeMap<Address, TokenRecord>;

/// Decimals that the transactions hold, and symbols of tokens that are not known yet; with a doubt
/// where no endpoint answered for the decimals of a token.
pub(super) async fn look_up(
    lookups: &Lookups<'_>,
    txs: &[DecodedTx],
) -> Result<(Vec<TokenRecord>, Doubts), EnrichError> {
    let mut tokens = contained(lookups.chain.id, txs);
    let unknown = unknown(lookups, &tokens).await?;
    if !unknown.is_empty() {
        ask(lookups, &unknown, &mut tokens).await?;
    }
    let is_answered = unanswered(&unknown, &tokens).is_empty();
    let doubts = if is_answered { Doubts::NONE } else { Doubts::UNCONFIRMED };
    Ok((tokens.into_values().collect(), doubts))
}

/// Every token that was traded, with the decimals that the transactions hold.
fn contained(chain: ChainId, txs: &[DecodedTx]) -> Tokens {
    let mints = txs.iter().flat_map(|one| &one.decoded.trades).map(|trade| trade.mint);
    let mut tokens: Tokens = mints.map(|mint| (mint, TokenRecord::bare(chain, mint))).collect();
    for (mint, decimals) in txs.iter().flat_map(|one| &one.decoded.decimals) {
        if let Some(token) = tokens.get_mut(mint) {
            token.decimals.get_or_insert(*decimals);
        }
    }
    tokens
}

/// Tokens without a symbol that were not asked for lately.
async fn unknown(lookups: &Lookups<'_>, tokens: &Tokens) -> Result<Vec<Address>, StoreError> {
    let enricher = lookups.enricher;
    let (view, now) = (enricher.store.view()?, enricher.clock.now());
    let mut unknown = Vec::new();
    for &mint in tokens.keys() {
        let known = view.token(lookups.chain.id, &mint).await?;
        let settled = known.is_some_and(|token| {
            let asked = token.asked_at.filter(|at| *at <= now).map(|at| now.since(at));
            token.symbol.is_some()
                || asked.is_some_and(|ago| ago < enricher.limits.token_retry_after)
        });
        if !settled {
            unknown.push(mint);
        }
    }
    Ok(unknown)
}

/// A symbol that is not returned in time is fetched again later. Without decimals there is no
/// amount: then the chunk waits for nodes that fail only for a while, and requests tokens again
/// that a limited endpoint left out.
async fn ask(
    lookups: &Lookups<'_>,
    mints: &[Address],
    tokens: &mut Tokens,
) -> Result<(), UpstreamError> {
    let limits = &lookups.enricher.limits;
    let until = Instant::now() + limits.decimals_wait_max;
    ask_once(lookups, mints, tokens, limits.decimals_wait_max).await?;
    loop {
        let open = unanswered(mints, tokens);
        let left = until.saturating_duration_since(Instant::now());
        if open.is_empty() || left <= limits.decimals_pause {
            return Ok(());
        }
        sleep(limits.decimals_pause).await;
        // What is still open then is a doubt, no error.
        if ask_once(lookups, &open, tokens, left).await.is_err() {
            return Ok(());
        }
    }
}

async fn ask_once(
    lookups: &Lookups<'_>,
    mints: &[Address],
    tokens: &mut Tokens,
    decimals_wait: Duration,
) -> Result<(), UpstreamError> {
    let enricher = lookups.enricher;
    let lacks_decimals =
        mints.iter().any(|mint| tokens.get(mint).is_some_and(|token| token.decimals.is_none()));
    let wait = if lacks_decimals { decimals_wait } else { enricher.limits.token_wait_max };
    let metas = match timeout(wait, lookups.source.tokens(mints, lookups.lane)).await {
        Ok(Ok(metas)) => metas,
        Ok(Err(error)) if lacks_decimals && !error.is_final() => return Err(error),
        Err(_) if lacks_decimals => {
            let last = "the decimals of tokens were not returned in time";
            return Err(UpstreamError::unavailable(last));
        }
        Ok(Err(_)) | Err(_) => return Ok(()),
    };
    let asked_at = Some(enricher.clock.now());
    for meta in metas {
        if let Some(token) = tokens.get_mut(&meta.mint) {
            token.symbol = meta.symbol;
            token.decimals = token.decimals.or(meta.decimals);
            token.asked_at = asked_at;
        }
    }
    Ok(())
}

/// Tokens whose decimals are not known, and for which no endpoint answered.
fn unanswered(mints: &[Address], tokens: &Tokens) -> Vec<Address> {
    let is_open = |mint: &&Address| {
        let token = tokens.get(mint);
        token.is_some_and(|token| token.decimals.is_none() && token.asked_at.is_none())
    };
    mints.iter().filter(is_open).copied().collect()
}
