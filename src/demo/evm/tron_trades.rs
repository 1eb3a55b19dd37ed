//! Trades at Tron's own venues. Events: data/venues-tron.toml.

use super::deal::{Deal, larger_v2};
use super::places::Made;
use super::pools::Traded;
use super::script::{Against, TradeSpec};
use super::tx::{Arg, Exchanged, Stage, Tx};
use super::{TradeKind, keccak256, tail};
use crate::domain::{Account, Address};

const SMART: &str =
    "swapExactInput(address[],string[],uint256[],uint24[],(uint256,uint256,address,uint256))";
const SOLD: &str = "SwapExactTokensForTokens(address,uint256,uint256[])";

/// `None` where Tron trades as Ethereum does.
pub(super) fn build(deal: &Deal<'_>) -> Option<Tx> {
    Some(match (deal.spec.kind, deal.spec.against) {
        (TradeKind::Cow, _) => relayed(deal),
        (TradeKind::V1 | TradeKind::UserOp, Against::Native(native)) => v1(deal, native),
        (TradeKind::Exchange, Against::Native(native)) => exchange(deal, native),
        (TradeKind::Aggregator, Against::Native(native)) => smart(deal, native),
        (TradeKind::Launchpad, Against::Native(native)) => sun_pump(deal, native),
        (_, _) => return None,
    })
}

/// The protocol whose pool exchanged the coin, or most of it.
pub(super) fn venue(spec: &TradeSpec) -> &'static str {
    match spec.kind {
        TradeKind::V1 | TradeKind::UserOp => "SunSwap V1",
        TradeKind::V4 => "SunSwap V4",
        TradeKind::Launchpad => "SunPump",
        TradeKind::Exchange => "TRON Exchange",
        TradeKind::V2 | TradeKind::V2Hop | TradeKind::Taxed => "SunSwap V2",
        // Their router has no pools of its own.
        TradeKind::Aggregator | TradeKind::Cow if larger_v2(spec) => "SunSwap V2",
        TradeKind::Aggregator | TradeKind::Cow | TradeKind::V3 | TradeKind::V3Dollar => {
            "SunSwap V3"
        }
    }
}

/// The coin's own exchange, which holds TRX; no other event records its payout.
fn v1(deal: &Deal<'_>, native: u128) -> Tx {
    let (coin, units) = deal.sum();
    let exchange: Account = tail(&keccak256(&[b"exchange", &coin]));
    let event = |stage: &mut Stage<'_>, signature, amounts: [u128; 2]| {
        let [first, second] = amounts.map(Arg::Int);
        stage.log(signature, &[Arg::Of(deal.wallet), first, second], &[]);
    };
    // The unused value is refunded.
    let refund = native / 100 * u128::from(deal.chance(1) % 3);
    let mut stage = deal.stage(exchange, if deal.buys() { native + refund } else { 0 });
    if deal.buys() {
        stage.input("trxToTokenSwapOutput(uint256,uint256)", &[units, 1 << 40].map(Arg::Int));
        stage.refund(deal.wallet, refund);
        stage.transfer(coin, deal.wallet, units);
        event(&mut stage, "TokenPurchase(address,uint256,uint256)", [native, units]);
    } else {
        let args = [units, native, 1 << 40].map(Arg::Int);
        stage.input("tokenToTrxSwapInput(uint256,uint256,uint256)", &args);
        stage.pay(deal.wallet, native);
        stage.pull(coin, deal.wallet, exchange, units);
        event(&mut stage, "TrxPurchase(address,uint256,uint256)", [units, native]);
    }
    event(&mut stage, "Snapshot(address,uint256,uint256)", [native * 900, units * 900]);
    deal.end(stage)
}

/// A curve with unwrapped TRX; its fee is in addition to what the curve takes.
fn sun_pump(deal: &Deal<'_>, native: u128) -> Tx {
    let places = deal.script.places;
    let (coin, units) = deal.sum();
    let fee = native / 100;
    let collector = places.made(Made::FeeReceiver, 1);
    let ends = [Arg::Of(coin), Arg::Of(deal.wallet)];
    if deal.buys() {
        let refund = native / 100 * u128::from(deal.chance(1) % 3);
        let mut stage = deal.stage(places.launchpad, native + refund);
        stage.input("purchaseToken(address,uint256)", &[Arg::Of(coin), Arg::Int(units)]);
        stage.transfer(coin, deal.wallet, units);
        stage.pay(collector, fee);
        stage.refund(deal.wallet, refund);
        let signature = "TokenPurchased(address,address,uint256,uint256,uint256,uint256)";
        let amounts = [native - fee, fee, units, units * 77].map(Arg::Int);
        stage.log(signature, &ends, &amounts);
        return deal.end(stage);
    }
    let mut stage = deal.stage(places.launchpad, 0);
    let args = [Arg::Of(coin), Arg::Int(units), Arg::Int(native)];
    stage.input("saleToken(address,uint256,uint256)", &args);
    stage.pull(coin, deal.wallet, places.launchpad, units);
    stage.pay(collector, fee);
    stage.pay(deal.wallet, native);
    let amounts = [native + fee, fee, units].map(Arg::Int);
    stage.log("TokenSold(address,address,uint256,uint256,uint256)", &ends, &amounts);
    deal.end(stage)
}

/// The Smart Exchange Router, over two pools.
fn smart(deal: &Deal<'_>, native: u128) -> Tx {
    let router = deal.script.places.aggregator;
    if deal.buys() {
        let sums = (deal.wrapped(native), deal.sum());
        let mut stage = deal.stage(router, native);
        smart_input(deal, &mut stage, sums);
        stage.wrap(native);
        deal.split(&mut stage, sums, deal.wallet);
        let signature = "SwapExactETHForTokens(address,uint256,uint256[])";
        smart_log(deal, &mut stage, signature, sums);
        return deal.end(stage);
    }
    smart_swap(deal, deal.stage(router, 0))
}

/// Another account sends what the wallet signed, and pays for it.
fn relayed(deal: &Deal<'_>) -> Tx {
    let router = deal.script.places.aggregator;
    smart_swap(deal, Stage::new(deal.script.places, deal.made(Made::Relayer), router, 0))
}

/// The router is the caller and sells what the wallet has, for TRX or a token.
fn smart_swap(deal: &Deal<'_>, mut stage: Stage<'_>) -> Tx {
    let (sums, pays_native) = deal.by_order();
    let (sold, bought) = sums;
    let router = stage.here();
    smart_input(deal, &mut stage, sums);
    stage.pull(sold.0, deal.wallet, router, sold.1);
    deal.split(&mut stage, sums, if pays_native { router } else { deal.wallet });
    if pays_native {
        stage.unwrap(bought.1);
        stage.pay(deal.wallet, bought.1);
    }
    smart_log(deal, &mut stage, SOLD, sums);
    deal.end(stage)
}

/// The four lists, empty because they do not matter here, then the amounts and the receiver.
fn smart_input(deal: &Deal<'_>, stage: &mut Stage<'_>, (sold, bought): Traded) {
    let lists = [256, 288, 320, 352].map(Arg::Int);
    let data = [Arg::Int(sold.1), Arg::Int(bought.1), Arg::Of(deal.wallet), Arg::Int(1 << 40)];
    let empty = [Arg::Int(0); 4];
    stage.input(SMART, &[lists, data, empty].concat());
}

fn smart_log(
    deal: &Deal<'_>,
    stage: &mut Stage<'_>,
    signature: &'static str,
    (sold, bought): Traded,
) {
    let indexed = [Arg::Of(deal.wallet), Arg::Int(sold.1)];
    let amounts = [Arg::Int(32), Arg::Int(2), Arg::Int(sold.1), Arg::Int(bought.1)];
    stage.log(signature, &indexed, &amounts);
}

/// `ExchangeTransactionContract`: no contract runs and no event is emitted.
fn exchange(deal: &Deal<'_>, native: u128) -> Tx {
    let (coin, units) = deal.sum();
    let token = Address::Tron(coin).as_tron_asset().unwrap_or_default();
    let (paid, got) = if deal.buys() { (native, units) } else { (units, native) };
    let mut tx = deal.end(deal.stage([0; 20], 0));
    tx.exchanged = Some(Exchanged { token, buys: deal.buys(), paid, got });
    tx
}
