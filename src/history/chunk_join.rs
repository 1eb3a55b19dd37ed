//! Joins a chunk with the chunks below while a trade there may give its lowest rows a value.
//!
//! A token-for-token row may take its value from another trade of the wallet within a minute.
//! Without joining, the value would depend on where the source cuts its chunks.

use tokio::time::{Instant, timeout_at};

use super::ingest::{DecodedChunk, Ingest};
use super::read_task::ReadTask;
use crate::decode::DecodedTrade;
use crate::enrich::TOKEN_AGE_MAX;
use crate::registry::Chain;

/// Waits a bounded time for the chunks below, and joins a bounded number of transactions.
pub(super) async fn join_below(
    ingest: &Ingest<'_>,
    read_task: &mut ReadTask,
    mut upper: DecodedChunk,
) -> DecodedChunk {
    let limits = &ingest.inner.limits;
    let until = Instant::now() + limits.neighbours_wait;
    let chain = ingest.lookups.chain;
    while upper.raw.low > read_task.low
        && upper.raw.txs.len() < limits.neighbours_max
        && may_gain_value_below(chain, &upper)
    {
        let next = read_task.next_if(|next| upper.raw.is_above(next));
        let Ok(Some(lower)) = timeout_at(until, next).await else { break };
        upper.join(ingest.decode(lower).await);
    }
    upper
}

/// Whether the chunk has a row whose value may depend on a trade below it.
fn may_gain_value_below(chain: &Chain, chunk: &DecodedChunk) -> bool {
    let Some((_, oldest)) = chunk.reached() else { return false };
    let last = oldest.0.saturating_add(TOKEN_AGE_MAX);
    chunk.trades_until(last).any(|trades| wants_neighbour(chain, trades))
}

/// Whether the trades are one token for another without a value, which reference pools cannot give.
fn wants_neighbour(chain: &Chain, trades: &[DecodedTrade]) -> bool {
    let [one, other] = trades else { return false };
    let is_priced = |trade: &DecodedTrade| {
        !chain.reference_pools.is_empty() && chain.stablecoins.contains(&trade.mint)
    };
    one.side != other.side
        && trades.iter().all(|trade| trade.native.is_none() && trade.units.is_some())
        && !trades.iter().any(is_priced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Address, Side, Units};
    use crate::registry::Registry;

    fn trade(side: Side, mint: Address, native: Option<u64>) -> DecodedTrade {
        let native = native.map(Units::from);
        DecodedTrade { side, mint, units: Some(Units::from(1)), native, venue: "V".into() }
    }

    #[test]
    fn only_a_token_for_a_token_without_a_value_waits_for_the_trades_below() {
        let registry = Registry::embedded().unwrap();
        let chain = registry.chain_named("eth").unwrap();
        let (one, other) = (Address::Evm([1; 20]), Address::Evm([2; 20]));
        let swap = |a: Option<u64>, b: Option<u64>, got: Address| {
            [trade(Side::Sell, one, a), trade(Side::Buy, got, b)]
        };
        assert!(wants_neighbour(chain, &swap(None, None, other)));
        assert!(!wants_neighbour(chain, &swap(Some(5), Some(5), other)));
        assert!(!wants_neighbour(chain, &swap(None, None, other)[..1]));
        // The reference pools price it.
        let dollar = *chain.stablecoins.first().unwrap();
        assert!(!chain.reference_pools.is_empty());
        assert!(!wants_neighbour(chain, &swap(None, None, dollar)));
    }
}
