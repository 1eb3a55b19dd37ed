//! Looks up the prices of the reference pools while other look-ups of a chunk are under way.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::prices::PriceAnswer;
use super::{DecodedTx, Enricher, Lookups, valuation};
use crate::domain::{Moment, Price};
use crate::rpc::UpstreamError;

#[derive(Debug)]
pub(super) struct ReferencePrices {
    /// `None`: they were not requested, or not returned in time.
    prices: Option<Result<HashMap<Moment, Option<Price>>, UpstreamError>>,
    /// How long the chunk may still wait for prices.
    pub(super) wait: Duration,
}

impl ReferencePrices {
    /// The prices at these moments; `None` where they are still to be requested.
    pub(super) fn of(&self, moments: &[Moment]) -> Option<PriceAnswer> {
        match self.prices.as_ref()? {
            Err(error) => Some(Err(error.clone())),
            Ok(prices) => {
                let all: Option<_> = moments.iter().map(|at| prices.get(at).copied()).collect();
                all.map(Ok)
            }
        }
    }
}

/// Requests the prices that rows may need, as far as the transactions alone show that. After a
/// timeout neither this chunk nor, for a while, the chain's next ones wait for prices.
pub(super) async fn look_up(lookups: &Lookups<'_>, txs: &[DecodedTx]) -> ReferencePrices {
    let (chain, Enricher { limits, kept, .. }) = (lookups.chain, lookups.enricher);
    let wait = limits.value_wait_max;
    let wanting = txs.iter().filter(|tx| valuation::may_want_price(chain, &tx.decoded.trades));
    let moments: BTreeSet<Moment> =
        wanting.map(|tx| Moment { height: tx.height, time: tx.time }).collect();
    if moments.is_empty() || kept.price_pauses.holds(chain.id) {
        return ReferencePrices { prices: None, wait };
    }
    let (moments, began): (Vec<Moment>, _) = (moments.into_iter().collect(), Instant::now());
    let asked = Box::pin(lookups.source.native_prices(&moments, lookups.lane));
    let prices = timeout(wait, asked).await.ok();
    if prices.is_none() {
        kept.price_pauses.begin(chain.id, limits.values_pause);
    }
    let by_moment = |prices: Vec<Option<Price>>| moments.into_iter().zip(prices).collect();
    let prices = prices.map(|prices| prices.map(by_moment));
    ReferencePrices { prices, wait: wait.saturating_sub(began.elapsed()) }
}
