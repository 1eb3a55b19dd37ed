//! A trade under construction, and those that a wallet sends itself to a router or a launchpad.

use crate::demo::mix;
use crate::domain::Side;

use super::hash::Account;
use super::places::{Amm, Made};
use super::pools::{FEE, Swap, SwapV4, TokenAmount};
use super::script::{Script, TradeSpec};
use super::tx::{Arg, Op, Stage, Tx};

/// The placeholder of several routers for the native coin (ERC-7528).
pub(super) const NATIVE_PLACEHOLDER: Account = [0xee; 20];
/// Fee of the dollar pools.
const DOLLAR_FEE: u32 = 500;
const SINGLE: &str = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))";
/// Percentage that a taxed token keeps.
const TAX_PERCENT: u128 = 5;

/// A trade under construction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deal<'a> {
    pub(super) script: Script<'a>,
    pub(super) trade: u64,
    pub(super) spec: TradeSpec,
    pub(super) wallet: Account,
    pub(super) coin: Account,
}

/// Which pool had the larger part of a split, and its percentage.
pub(super) fn larger_v2(spec: &TradeSpec) -> bool {
    spec.chance.is_multiple_of(2)
}

impl<'a> Deal<'a> {
    pub(super) fn buys(&self) -> bool {
        self.spec.side == Side::Buy
    }

    pub(super) fn sum(&self) -> TokenAmount {
        (self.coin, self.spec.units)
    }

    pub(super) fn wrapped(&self, amount: u128) -> TokenAmount {
        (self.script.places.wrapped, amount)
    }

    pub(super) fn dollars(&self, amount: u128) -> TokenAmount {
        (self.script.places.dollar.token, amount)
    }

    /// Another random number of the trade.
    pub(super) fn chance(&self, purpose: u64) -> u64 {
        mix::hash(self.spec.chance, &[purpose])
    }

    /// An account of another user.
    pub(super) fn made(&self, what: Made) -> Account {
        self.script.places.made(what, self.chance(7) % 40)
    }

    pub(super) fn stage(&self, to: Account, value: u128) -> Stage<'a> {
        Stage::new(self.script.places, self.wallet, to, value)
    }

    pub(super) fn end(&self, stage: Stage<'_>) -> Tx {
        stage.end(self.script.trade_gas(self.trade))
    }

    fn v2_amm(&self) -> Amm {
        self.script.places.v2.unwrap_or(self.script.places.v3)
    }

    pub(super) fn v2(&self, native: u128) -> Tx {
        let amm = self.v2_amm();
        let coins = self.sum();
        if self.buys() {
            let mut stage = self.stage(amm.router, native);
            let args = [Arg::Int(coins.1), Arg::Int(128), Arg::Of(self.wallet)];
            stage.input("swapExactETHForTokens(uint256,address[],address,uint256)", &args);
            let swap = Swap::at(&stage, &amm, None, (self.wrapped(native), coins), self.wallet);
            stage.wrap(native);
            stage.transfer(swap.sold.0, swap.pool, native);
            swap.v2(&mut stage);
            return self.end(stage);
        }
        let mut stage = self.stage(amm.router, 0);
        let args = [Arg::Int(coins.1), Arg::Int(native), Arg::Int(160), Arg::Of(self.wallet)];
        stage.input("swapExactTokensForETH(uint256,uint256,address[],address,uint256)", &args);
        let swap = Swap::at(&stage, &amm, None, (coins, self.wrapped(native)), amm.router);
        stage.pull(self.coin, self.wallet, swap.pool, coins.1);
        swap.v2(&mut stage);
        stage.unwrap(native);
        stage.pay(self.wallet, native);
        self.end(stage)
    }

    /// A token that keeps a part of each transfer; it sometimes sells the collected fees in another
    /// user's transaction.
    pub(super) fn taxed(&self, native: u128) -> Tx {
        let amm = self.v2_amm();
        let (coin, units) = self.sum();
        if self.buys() {
            let mut stage = self.stage(amm.router, native);
            let signature = "swapExactETHForTokensSupportingFeeOnTransferTokens(uint256,address[],address,uint256)";
            stage.input(signature, &[Arg::Int(units), Arg::Int(128), Arg::Of(self.wallet)]);
            let tax = units * TAX_PERCENT / (100 - TAX_PERCENT);
            let sums = (self.wrapped(native), (coin, units + tax));
            let swap = Swap::at(&stage, &amm, None, sums, self.wallet);
            stage.wrap(native);
            stage.transfer(swap.sold.0, swap.pool, native);
            let given = Swap { bought: (coin, units), ..swap };
            given.v2_with(&mut stage, |stage, swap| {
                taxed_move(
                    stage,
                    swap.pool,
                    swap.to,
                    (coin, units, tax),
                    "transfer(address,uint256)",
                );
            });
            return self.end(stage);
        }
        let mut stage = self.stage(amm.router, 0);
        let signature = "swapExactTokensForETHSupportingFeeOnTransferTokens(uint256,uint256,address[],address,uint256)";
        let args = [Arg::Int(units), Arg::Int(native), Arg::Int(160), Arg::Of(self.wallet)];
        stage.input(signature, &args);
        let tax = units * TAX_PERCENT / 100;
        let sums = ((coin, units - tax), self.wrapped(native));
        let swap = Swap::at(&stage, &amm, None, sums, amm.router);
        let pull = "transferFrom(address,address,uint256)";
        stage.enter(coin, 0, pull, &[]);
        if self.chance(1).is_multiple_of(3) {
            self.sell_tax(&mut stage, &swap, native / 20);
        }
        stage.log_transfer(self.wallet, coin, tax);
        stage.log_transfer(self.wallet, swap.pool, units - tax);
        stage.leave();
        swap.v2(&mut stage);
        stage.unwrap(native);
        stage.pay(self.wallet, native);
        self.end(stage)
    }

    /// The token's contract, the current caller, sells the collected fees.
    fn sell_tax(&self, stage: &mut Stage<'_>, swap: &Swap, native: u128) {
        let amm = self.v2_amm();
        let kept = (self.coin, self.spec.units / 50 + 1);
        stage.enter(amm.router, 0, "swapExactTokensForETHSupportingFeeOnTransferTokens(uint256,uint256,address[],address,uint256)", &[]);
        stage.pull(self.coin, self.coin, swap.pool, kept.1);
        let own = Swap { sold: kept, bought: self.wrapped(native), to: amm.router, ..*swap };
        own.v2(stage);
        stage.unwrap(native);
        stage.pay(self.coin, native);
        stage.leave();
        stage.pay(self.made(Made::Marketing), native);
    }

    pub(super) fn v3(&self, native: u128) -> Tx {
        let amm = self.script.places.v3;
        let coins = self.sum();
        if self.buys() {
            // The unused value is refunded.
            let refund = native / 100 * u128::from(self.chance(1) % 4);
            let mut stage = self.stage(amm.router, native + refund);
            let swap = (SINGLE, self.single(self.wrapped(native), coins));
            let back = (refund > 0).then_some(("refundETH()", Vec::new()));
            let calls: Vec<_> = [swap].into_iter().chain(back).collect();
            stage.input_calls("multicall(bytes[])", &[], &calls);
            self.v3_buy(&mut stage, native);
            if refund > 0 {
                stage.pay(self.wallet, refund);
            }
            return self.end(stage);
        }
        let mut stage = self.stage(amm.router, 0);
        let unwrap = vec![Arg::Int(native), Arg::Of(self.wallet)];
        let calls = [
            (SINGLE, self.single(coins, self.wrapped(native))),
            ("unwrapWETH9(uint256,address)", unwrap),
        ];
        stage.input_calls("multicall(uint256,bytes[])", &[Arg::Int(1_900_000_000)], &calls);
        self.v3_sell(&mut stage, native);
        self.end(stage)
    }

    /// Arguments of `exactInputSingle`.
    fn single(&self, sold: TokenAmount, bought: TokenAmount) -> Vec<Arg> {
        let fee = Arg::Int(FEE.into());
        let amounts = [Arg::Int(sold.1), Arg::Int(bought.1), Arg::Int(0)];
        let head = [Arg::Of(sold.0), Arg::Of(bought.0), fee, Arg::Of(self.wallet)];
        [head.as_slice(), &amounts].concat()
    }

    /// The router is the caller and has the coin.
    pub(super) fn v3_buy(&self, stage: &mut Stage<'_>, native: u128) {
        let sums = (self.wrapped(native), self.sum());
        let swap = Swap::at(stage, &self.script.places.v3, Some(FEE), sums, self.wallet);
        swap.v3(stage, |stage, swap| {
            stage.wrap(native);
            stage.transfer(swap.sold.0, swap.pool, native);
        });
    }

    pub(super) fn v3_sell(&self, stage: &mut Stage<'_>, native: u128) {
        let sums = (self.sum(), self.wrapped(native));
        let swap = Swap::at(stage, &self.script.places.v3, Some(FEE), sums, stage.here());
        swap.v3(stage, |stage, swap| {
            stage.pull(swap.sold.0, self.wallet, swap.pool, swap.sold.1);
        });
        stage.unwrap(native);
        stage.pay(self.wallet, native);
    }

    pub(super) fn v4(&self, native: u128) -> Tx {
        let Some(v4) = self.script.places.v4 else { return self.aggregator(native) };
        let (coin, units) = self.sum();
        let swap = SwapV4 { v4, coin: (coin, units), native, buys: self.buys() };
        let refund = if self.buys() { native / 200 * u128::from(self.chance(1) % 3) } else { 0 };
        let value = if self.buys() { native + refund } else { 0 };
        let mut stage = self.stage(v4.router, value);
        stage.input("execute(bytes,bytes[],uint256)", &[Arg::Int(96), Arg::Int(160)]);
        let (wallet, router) = (self.wallet, v4.router);
        swap.run(&mut stage, |stage, manager| {
            if swap.buys {
                stage.enter(manager, native, "settle()", &[]);
                stage.leave();
                let args = [Arg::Of(coin), Arg::Of(wallet), Arg::Int(units)];
                stage.enter(manager, 0, "take(address,address,uint256)", &args);
                stage.transfer(coin, wallet, units);
                stage.leave();
                return;
            }
            stage.pull(coin, wallet, manager, units);
            stage.enter(manager, 0, "settle()", &[]);
            stage.leave();
            stage.enter(manager, 0, "take(address,address,uint256)", &[]);
            stage.pay(router, native);
            stage.leave();
        });
        if !swap.buys {
            stage.pay(wallet, native);
        } else if refund > 0 {
            stage.pay(wallet, refund);
        }
        self.end(stage)
    }

    /// `KyberSwap`: a route over two pools, a failed attempt, and a fee of the interface.
    pub(super) fn aggregator(&self, native: u128) -> Tx {
        let places = self.script.places;
        let executor = places.made(Made::Executor, 0);
        let (coin, units) = self.sum();
        let fee = native / 400;
        if self.buys() {
            let mut stage = self.stage(places.aggregator, native);
            stage.input("swap((address,address,bytes,(address,address,address[],uint256[],address[],uint256[],address,uint256,uint256,uint256,bytes),bytes))", &[Arg::Int(32)]);
            stage.pay(places.made(Made::FeeReceiver, 0), fee);
            let input = native - fee;
            stage.enter(executor, input, "executor(bytes)", &[]);
            stage.aside(Op::Delegate, places.made(Made::Executor, 1), "run(bytes)");
            self.failed_try(&mut stage, input);
            stage.wrap(input);
            self.split(&mut stage, self.wrapped(input), (coin, units), executor);
            stage.transfer(coin, self.wallet, units);
            stage.leave();
            self.swapped(&mut stage, (NATIVE_PLACEHOLDER, native), (coin, units));
            return self.end(stage);
        }
        let mut stage = self.stage(places.aggregator, 0);
        stage.input("swap((address,address,bytes,(address,address,address[],uint256[],address[],uint256[],address,uint256,uint256,uint256,bytes),bytes))", &[Arg::Int(32)]);
        stage.pull(coin, self.wallet, executor, units);
        stage.enter(executor, 0, "executor(bytes)", &[]);
        stage.aside(Op::Delegate, places.made(Made::Executor, 1), "run(bytes)");
        self.split(&mut stage, (coin, units), self.wrapped(native + fee), executor);
        stage.unwrap(native + fee);
        stage.pay(places.aggregator, native + fee);
        stage.leave();
        stage.pay(places.made(Made::FeeReceiver, 0), fee);
        stage.pay(self.wallet, native);
        self.swapped(&mut stage, (coin, units), (NATIVE_PLACEHOLDER, native));
        self.end(stage)
    }

    /// A quote whose execution fails.
    fn failed_try(&self, stage: &mut Stage<'_>, native: u128) {
        if self.chance(2).is_multiple_of(3) {
            stage.enter(self.made(Made::Maker), native / 3, "fill(bytes)", &[]);
            stage.pay(self.wallet, native / 9);
            stage.leave_failed();
        }
    }

    /// Through two pools; the caller has the input and receives the output.
    pub(super) fn split(
        &self,
        stage: &mut Stage<'_>,
        sold: TokenAmount,
        bought: TokenAmount,
        to: Account,
    ) {
        let places = self.script.places;
        let percent = if larger_v2(&self.spec) { 60 } else { 40 };
        let part = |(token, amount): TokenAmount| (token, amount / 100 * percent);
        let rest = |(token, amount): TokenAmount| (token, amount - amount / 100 * percent);
        let pay = |stage: &mut Stage<'_>, swap: &Swap| {
            stage.transfer(swap.sold.0, swap.pool, swap.sold.1);
        };
        let sums = (part(sold), part(bought));
        if let Some(v2) = places.v2 {
            let swap = Swap::at(stage, &v2, None, sums, to);
            pay(stage, &swap);
            swap.v2(stage);
        } else {
            Swap::at(stage, &places.v3, Some(DOLLAR_FEE), sums, to).v3(stage, pay);
        }
        let sums = (rest(sold), rest(bought));
        Swap::at(stage, &places.v3, Some(FEE), sums, to).v3(stage, pay);
    }

    fn swapped(&self, stage: &mut Stage<'_>, sold: TokenAmount, bought: TokenAmount) {
        let wallet = Arg::Of(self.wallet);
        stage.log(
            "Swapped(address,address,address,address,uint256,uint256)",
            &[],
            &[
                wallet,
                Arg::Of(sold.0),
                Arg::Of(bought.0),
                wallet,
                Arg::Int(sold.1),
                Arg::Int(bought.1),
            ],
        );
    }

    /// Through the wrapped coin to the dollar, or back.
    pub(super) fn v2_hop(&self, dollars: u128, hop: u128) -> Tx {
        let amm = self.v2_amm();
        let mut stage = self.stage(amm.router, 0);
        let (sold, bought) = if self.buys() {
            (self.dollars(dollars), self.sum())
        } else {
            (self.sum(), self.dollars(dollars))
        };
        let args = [Arg::Int(sold.1), Arg::Int(bought.1), Arg::Int(160), Arg::Of(self.wallet)];
        stage.input("swapExactTokensForTokens(uint256,uint256,address[],address,uint256)", &args);
        let hop = self.wrapped(hop);
        let second = Swap::at(&stage, &amm, None, (hop, bought), self.wallet);
        let first = Swap::at(&stage, &amm, None, (sold, hop), second.pool);
        stage.pull(sold.0, self.wallet, first.pool, sold.1);
        first.v2(&mut stage);
        second.v2(&mut stage);
        self.end(stage)
    }

    /// In a pool of the coin and the dollar.
    pub(super) fn v3_dollar(&self, dollars: u128) -> Tx {
        let amm = self.script.places.v3;
        let mut stage = self.stage(amm.router, 0);
        let (sold, bought) = self.against_dollars(dollars);
        let args = [
            Arg::Of(sold.0),
            Arg::Of(bought.0),
            Arg::Int(DOLLAR_FEE.into()),
            Arg::Of(self.wallet),
            Arg::Int(sold.1),
        ];
        stage.input(
            "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))",
            &args,
        );
        let swap = Swap::at(&stage, &amm, Some(DOLLAR_FEE), (sold, bought), self.wallet);
        swap.v3(&mut stage, |stage, swap| stage.pull(sold.0, self.wallet, swap.pool, sold.1));
        self.end(stage)
    }

    pub(super) fn against_dollars(&self, dollars: u128) -> (TokenAmount, TokenAmount) {
        if self.buys() {
            (self.dollars(dollars), self.sum())
        } else {
            (self.sum(), self.dollars(dollars))
        }
    }

    /// A curve that takes and pays unwrapped native coin. Events: docs.flap.sh, "Portal".
    pub(super) fn launchpad(&self, native: u128) -> Tx {
        let places = self.script.places;
        let portal = places.launchpad;
        let (coin, units) = self.sum();
        let fee = native / 100;
        let mut stage = self.stage(portal, if self.buys() { native } else { 0 });
        let time = Arg::Int(u128::from(self.chance(3) % 1_000_000));
        let more = [Arg::Of(coin), Arg::Of(self.wallet), Arg::Int(units)];
        if self.buys() {
            stage.input("buy(address,address,uint256)", &more);
            stage.pay(places.made(Made::FeeReceiver, 1), fee);
            stage.transfer(coin, self.wallet, units);
            let data =
                [&[time], &more[..], &[Arg::Int(native - fee), Arg::Int(fee), Arg::Int(1 << 60)]];
            let signature = "TokenBought(uint256,address,address,uint256,uint256,uint256,uint256)";
            stage.log(signature, &[], &data.concat());
        } else {
            stage.input("sell(address,uint256,uint256)", &more);
            stage.pull(coin, self.wallet, portal, units);
            stage.pay(places.made(Made::FeeReceiver, 1), fee);
            stage.pay(self.wallet, native);
            let data = [&[time], &more[..], &[Arg::Int(native), Arg::Int(fee), Arg::Int(1 << 60)]];
            let signature = "TokenSold(uint256,address,address,uint256,uint256,uint256,uint256)";
            stage.log(signature, &[], &data.concat());
        }
        self.end(stage)
    }
}

/// A transfer of which the token keeps a part: two events.
fn taxed_move(
    stage: &mut Stage<'_>,
    from: Account,
    to: Account,
    (coin, units, tax): (Account, u128, u128),
    signature: &'static str,
) {
    stage.enter(coin, 0, signature, &[Arg::Of(to), Arg::Int(units + tax)]);
    stage.log_transfer(from, coin, tax);
    stage.log_transfer(from, to, units);
    stage.leave();
}
