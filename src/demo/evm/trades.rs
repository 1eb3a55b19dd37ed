//! Builds the transaction of a trade.

use super::TradeKind;
use super::deal::Deal;
use super::orders;
use super::script::{Against, Script, TradeSpec};
use super::tron_trades;
use super::tx::Tx;

pub(super) fn build(script: Script<'_>, trade: u64, spec: TradeSpec) -> Tx {
    let (wallet, coin) = (script.wallet.address, spec.coin.address(script.places));
    let deal = Deal { script, trade, spec, wallet, coin };
    let on_tron = script.places.is_tron().then(|| tron_trades::build(&deal)).flatten();
    on_tron.unwrap_or_else(|| on_ethereum(&deal))
}

/// The trade on chains with Ethereum's contracts.
fn on_ethereum(deal: &Deal<'_>) -> Tx {
    match (deal.spec.kind, deal.spec.against) {
        (TradeKind::Cow, _) => orders::cow(deal),
        (TradeKind::UserOp, Against::Native(native)) => orders::user_op(deal, native),
        (TradeKind::V2Hop, Against::Dollar { units, hop: Some(hop) }) => deal.v2_hop(units, hop),
        (_, Against::Dollar { units, .. }) => deal.v3_dollar(units),
        (TradeKind::V4, Against::Native(native)) => deal.v4(native),
        (TradeKind::Aggregator, Against::Native(native)) => deal.aggregator(native),
        (TradeKind::Taxed, Against::Native(native)) => deal.v2(native, true),
        (TradeKind::Launchpad, Against::Native(native)) => deal.launchpad(native),
        (TradeKind::V2 | TradeKind::V2Hop, Against::Native(native)) => deal.v2(native, false),
        (_, Against::Native(native)) => deal.v3(native),
    }
}
