//! Builds the transaction that a [`Spec`] describes.

use super::TradeKind;
use super::history::{Content, Script, Spec, TradeSpec};
use super::maker::Maker;
use super::pools::PoolProgram;
use super::tx::Tx;
use super::{aggregated, noise, pump};

pub(super) fn build<'a>(script: Script<'a>, spec: &'a Spec, time: u64) -> Tx {
    let tx = Tx::new(script.seed, spec.version);
    let dice = script.dice(spec.number, spec.fork, 6);
    let mut maker = Maker { script, spec, time, tx, dice };
    match &spec.content {
        Content::Funding => noise::funding(&mut maker),
        Content::Failed(n) => noise::failed(&mut maker, *n),
        Content::Noise(kind, n) => noise::make(&mut maker, *kind, *n),
        Content::Trade(trade) if trade.kind == TradeKind::Settlement => {
            aggregated::settlement(&mut maker, trade);
        }
        Content::Trade(trade) if trade.kind == TradeKind::LimitFill => {
            aggregated::limit_fill(&mut maker, trade);
        }
        Content::Trade(trade) => signed_trade(&mut maker, trade),
    }
    maker.tx
}

/// A trade that the wallet signs itself: budget, swap, then transfers to wallet applications
/// and bots.
fn signed_trade(maker: &mut Maker<'_>, trade: &TradeSpec) {
    let wallet = maker.wallet();
    let price = maker.dice.range(1_000, 2_000_000);
    maker.tx.budget(price);
    let tip_first = maker.dice.percent(50);
    if tip_first {
        maker.tip(wallet, trade);
    }
    let coin = if trade.kind == TradeKind::PumpCreate {
        pump::create(maker, wallet, trade)
    } else {
        let coin = maker.token(trade.token, trade.before);
        if trade.before.is_none() {
            maker.tx.create_associated(wallet, coin, wallet);
        }
        coin
    };
    match trade.kind {
        TradeKind::PumpFun | TradeKind::PumpCreate => pump::curve(maker, wallet, coin, trade),
        TradeKind::PumpSwap => pump::swap(maker, wallet, coin, trade),
        TradeKind::RaydiumV4 => maker.direct(wallet, coin, trade, PoolProgram::RaydiumV4),
        TradeKind::Whirlpool => maker.direct(wallet, coin, trade, PoolProgram::Whirlpool),
        TradeKind::JupiterSol | TradeKind::JupiterUsdc => {
            aggregated::jupiter(maker, wallet, coin, trade);
        }
        TradeKind::Settlement | TradeKind::LimitFill => {}
    }
    if trade.close {
        maker.tx.close(coin, wallet, wallet);
    }
    maker.bot_fee(wallet, trade);
    if !tip_first {
        maker.tip(wallet, trade);
    }
    maker.pay_with_priority();
}
