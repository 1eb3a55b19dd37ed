//! Decimals and symbols of tokens.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{Instant, sleep, timeout};

use super::{DecodedTx, EnrichError, Lookups};
use crate::domain::{Address, ChainId, Doubts};
use crate::rpc::UpstreamError;
use crate::sources::TokenMeta;
use crate::store::{StoreError, TokenRecord};

/// Groups of tokens that are requested concurrently.
const GROUPS_AT_ONCE: usize = 8;

type Tokens = BTreeMap<Address, TokenRecord>;

/// Collects the decimals that the transactions hold, and looks up tokens without a stored symbol;
/// adds a doubt where no endpoint answered for the decimals of a token.
pub(super) async fn look_up(
    lookups: &Lookups<'_>,
    txs: &[DecodedTx],
) -> Result<(Vec<TokenRecord>, Doubts), EnrichError> {
    let mut tokens = contained(lookups.chain.id, txs);
    let unknown = unknown(lookups, &tokens).await?;
    if !unknown.is_empty() {
        request(lookups, &unknown, &mut tokens).await?;
    }
    let is_answered = unanswered(&unknown, &tokens).is_empty();
    let doubts = if is_answered { Doubts::NONE } else { Doubts::UNCONFIRMED };
    Ok((tokens.into_values().collect(), doubts))
}

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

/// Tokens without a stored symbol that were not looked up lately.
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

/// Requests tokens. A symbol that is not returned in time is looked up again later. Without
/// decimals there is no amount: the chunk waits a while for endpoints that fail, and tokens that a
/// limited endpoint left out are requested again. Decimals that are still open then are a doubt if
/// the endpoints answer other requests, else an error.
async fn request(
    lookups: &Lookups<'_>,
    mints: &[Address],
    tokens: &mut Tokens,
) -> Result<(), UpstreamError> {
    let limits = &lookups.enricher.limits;
    let until = Instant::now() + limits.decimals_wait_max;
    let is_open = !unanswered(mints, tokens).is_empty();
    // Half of the time: the rest is for tokens that are requested one by one.
    let mut wait = if is_open { limits.decimals_wait_max / 2 } else { limits.token_wait_max };
    let (mut open, mut size) = (mints.to_vec(), mints.len());
    loop {
        let groups = open.chunks(size.max(1)).map(|group| metas(lookups, group, wait));
        let groups: Vec<_> = groups.collect();
        let answers: Vec<_> = stream::iter(groups).buffered(GROUPS_AT_ONCE).collect().await;
        let is_given = answers.iter().all(Option::is_some);
        take(lookups, answers.into_iter().flatten().flatten(), tokens);
        open = unanswered(mints, tokens);
        if open.is_empty() {
            return Ok(());
        }
        let left = until.saturating_duration_since(Instant::now());
        if left <= limits.decimals_pause {
            break;
        }
        sleep(limits.decimals_pause).await;
        // A token on which every endpoint fails must not hold up the others.
        (wait, size) = (left, if is_given { open.len() } else { 1 });
    }
    let answers = timeout(limits.token_wait_max, lookups.source.head(lookups.lane)).await;
    let late = || UpstreamError::unavailable("the decimals of tokens were not returned in time");
    answers.unwrap_or_else(|_| Err(late())).map(drop)
}

/// The metadata of some tokens; `None` if the request failed or timed out.
async fn metas(lookups: &Lookups<'_>, mints: &[Address], wait: Duration) -> Option<Vec<TokenMeta>> {
    timeout(wait, lookups.source.tokens(mints, lookups.lane)).await.ok()?.ok()
}

fn take(lookups: &Lookups<'_>, metas: impl Iterator<Item = TokenMeta>, tokens: &mut Tokens) {
    let asked_at = Some(lookups.enricher.clock.now());
    for meta in metas {
        if let Some(token) = tokens.get_mut(&meta.mint) {
            token.symbol = meta.symbol;
            token.decimals = token.decimals.or(meta.decimals);
            token.asked_at = asked_at;
        }
    }
}

/// Tokens of unknown decimals for which no endpoint answered.
fn unanswered(mints: &[Address], tokens: &Tokens) -> Vec<Address> {
    let is_open = |mint: &&Address| {
        let token = tokens.get(mint);
        token.is_some_and(|token| token.decimals.is_none() && token.asked_at.is_none())
    };
    mints.iter().filter(is_open).copied().collect()
}
