//! A trade under construction: what a wallet sends to a router or a launchpad, what a solver
//! settles for it, and what a bundler sends.

use super::places::{Amm, COW_SETTLEMENT, ENTRY_POINT, Made};
use super::pools::{FEE, Swap, SwapV4, TokenAmount, Traded};
use super::script::{Against, Script, TradeSpec};
use super::tx::{Arg, Op, Stage, Tx};
use super::{keccak256, tail};
use crate::demo::mix;
use crate::domain::{Account, Side};

/// The placeholder of several routers for the native coin (ERC-7528).
const NATIVE_PLACEHOLDER: Account = [0xee; 20];
/// Fee of the dollar pools.
const DOLLAR_FEE: u32 = 500;
const SINGLE: &str = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))";
const TAXED_SALE: &str =
    "swapExactTokensForETHSupportingFeeOnTransferTokens(uint256,uint256,address[],address,uint256)";
const KYBER_SWAP: &str = "swap((address,address,bytes,(address,address,address[],uint256[],address[],uint256[],address,uint256,uint256,uint256,bytes),bytes))";
/// Percentage that a taxed token keeps.
const TAX_PERCENT: u128 = 5;

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

    /// In a pair. A taxed token keeps a part of each transfer, and sometimes sells the collected fees
    /// in another user's transaction.
    pub(super) fn v2(&self, native: u128, taxed: bool) -> Tx {
        let amm = self.v2_amm();
        let (coin, units) = self.sum();
        if self.buys() {
            let tax = if taxed { units * TAX_PERCENT / (100 - TAX_PERCENT) } else { 0 };
            let signature = if taxed {
                "swapExactETHForTokensSupportingFeeOnTransferTokens(uint256,address[],address,uint256)"
            } else {
                "swapExactETHForTokens(uint256,address[],address,uint256)"
            };
            let mut stage = self.stage(amm.router, native);
            stage.input(signature, &[Arg::Int(units), Arg::Int(128), Arg::Of(self.wallet)]);
            let sums = (self.wrapped(native), (coin, units));
            let swap = Swap::at(&stage, &amm, None, sums, self.wallet);
            stage.wrap(native);
            stage.transfer(swap.sold.0, swap.pool, native);
            swap.v2_with(&mut stage, |stage, swap| {
                let args = [Arg::Of(swap.to), Arg::Int(units + tax)];
                stage.enter(coin, 0, "transfer(address,uint256)", &args);
                if taxed {
                    stage.log_transfer(swap.pool, coin, tax);
                }
                stage.log_transfer(swap.pool, swap.to, units);
                stage.leave();
            });
            return self.end(stage);
        }
        let tax = if taxed { units * TAX_PERCENT / 100 } else { 0 };
        let signature = if taxed {
            TAXED_SALE
        } else {
            "swapExactTokensForETH(uint256,uint256,address[],address,uint256)"
        };
        let mut stage = self.stage(amm.router, 0);
        let args = [Arg::Int(units), Arg::Int(native), Arg::Int(160), Arg::Of(self.wallet)];
        stage.input(signature, &args);
        let sums = ((coin, units - tax), self.wrapped(native));
        let swap = Swap::at(&stage, &amm, None, sums, amm.router);
        if taxed {
            stage.enter(coin, 0, "transferFrom(address,address,uint256)", &[]);
            if self.chance(1).is_multiple_of(3) {
                self.sell_tax(&mut stage, &swap, native / 20);
            }
            stage.log_transfer(self.wallet, coin, tax);
            stage.log_transfer(self.wallet, swap.pool, units - tax);
            stage.leave();
        } else {
            stage.pull(coin, self.wallet, swap.pool, units);
        }
        swap.v2(&mut stage);
        stage.unwrap(native);
        stage.pay(self.wallet, native);
        self.end(stage)
    }

    /// The token's contract, the current caller, sells the collected fees.
    fn sell_tax(&self, stage: &mut Stage<'_>, swap: &Swap, native: u128) {
        let amm = self.v2_amm();
        let kept = (self.coin, self.spec.units / 50 + 1);
        stage.enter(amm.router, 0, TAXED_SALE, &[]);
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
            stage.refund(self.wallet, refund);
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
            let take = "take(address,address,uint256)";
            if swap.buys {
                stage.call(manager, native, "settle()", &[]);
                stage.enter(manager, 0, take, &[Arg::Of(coin), Arg::Of(wallet), Arg::Int(units)]);
                stage.transfer(coin, wallet, units);
            } else {
                stage.pull(coin, wallet, manager, units);
                stage.call(manager, 0, "settle()", &[]);
                stage.enter(manager, 0, take, &[]);
                stage.pay(router, native);
            }
            stage.leave();
        });
        if swap.buys {
            stage.refund(wallet, refund);
        } else {
            stage.pay(wallet, native);
        }
        self.end(stage)
    }

    /// `KyberSwap`: a route over two pools, a failed attempt, and a fee of the interface.
    pub(super) fn aggregator(&self, native: u128) -> Tx {
        let places = self.script.places;
        let executor = places.made(Made::Executor, 0);
        let (coin, units) = self.sum();
        let fee = native / 400;
        let mut stage = self.stage(places.aggregator, if self.buys() { native } else { 0 });
        stage.input(KYBER_SWAP, &[Arg::Int(32)]);
        if self.buys() {
            stage.pay(places.made(Made::FeeReceiver, 0), fee);
            let input = native - fee;
            stage.enter(executor, input, "executor(bytes)", &[]);
            stage.aside(Op::Delegate, places.made(Made::Executor, 1), "run(bytes)");
            self.failed_try(&mut stage, input);
            stage.wrap(input);
            self.split(&mut stage, (self.wrapped(input), (coin, units)), executor);
            stage.transfer(coin, self.wallet, units);
            stage.leave();
            self.swapped(&mut stage, (NATIVE_PLACEHOLDER, native), (coin, units));
            return self.end(stage);
        }
        stage.pull(coin, self.wallet, executor, units);
        stage.enter(executor, 0, "executor(bytes)", &[]);
        stage.aside(Op::Delegate, places.made(Made::Executor, 1), "run(bytes)");
        self.split(&mut stage, ((coin, units), self.wrapped(native + fee)), executor);
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
    pub(super) fn split(&self, stage: &mut Stage<'_>, (sold, bought): Traded, to: Account) {
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
        let signature = "Swapped(address,address,address,address,uint256,uint256)";
        let ends = [self.wallet, sold.0, bought.0, self.wallet].map(Arg::Of);
        let amounts = [sold.1, bought.1].map(Arg::Int);
        stage.log(signature, &[], &[&ends[..], &amounts].concat());
    }

    /// Through the wrapped coin to the dollar, or back.
    pub(super) fn v2_hop(&self, dollars: u128, hop: u128) -> Tx {
        let amm = self.v2_amm();
        let mut stage = self.stage(amm.router, 0);
        let (sold, bought) = self.against_dollars(dollars);
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
        let [from, to, wallet] = [sold.0, bought.0, self.wallet].map(Arg::Of);
        let fee = Arg::Int(DOLLAR_FEE.into());
        stage.input(SINGLE, &[from, to, fee, wallet, Arg::Int(sold.1)]);
        let swap = Swap::at(&stage, &amm, Some(DOLLAR_FEE), (sold, bought), self.wallet);
        swap.v3(&mut stage, |stage, swap| stage.pull(sold.0, self.wallet, swap.pool, sold.1));
        self.end(stage)
    }

    /// The exchange that another account makes for the wallet, and whether the wallet receives
    /// unwrapped coin; the wallet buys with dollars only.
    pub(super) fn by_order(&self) -> (Traded, bool) {
        match self.spec.against {
            Against::Dollar { units, .. } => (self.against_dollars(units), false),
            Against::Native(native) => ((self.sum(), self.wrapped(native)), true),
        }
    }

    pub(super) fn against_dollars(&self, dollars: u128) -> Traded {
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
        let receiver = places.made(Made::FeeReceiver, 1);
        let (signature, value) = if self.buys() {
            stage.input("buy(address,address,uint256)", &more);
            stage.pay(receiver, fee);
            stage.transfer(coin, self.wallet, units);
            let signature = "TokenBought(uint256,address,address,uint256,uint256,uint256,uint256)";
            (signature, native - fee)
        } else {
            stage.input("sell(address,uint256,uint256)", &more);
            stage.pull(coin, self.wallet, portal, units);
            stage.pay(receiver, fee);
            stage.pay(self.wallet, native);
            let signature = "TokenSold(uint256,address,address,uint256,uint256,uint256,uint256)";
            (signature, native)
        };
        let amounts = [value, fee, 1 << 60].map(Arg::Int);
        stage.log(signature, &[], &[&[time], &more[..], &amounts].concat());
        self.end(stage)
    }
}

/// `CoW` Protocol: the order's event, its deposit, the route, its payout.
pub(super) fn cow(deal: &Deal<'_>) -> Tx {
    let places = deal.script.places;
    let solver = deal.made(Made::Solver);
    let mut stage = Stage::new(places, solver, COW_SETTLEMENT, 0);
    stage.input("settle(address[],uint256[],(uint256,uint256,address,uint256,uint32,bytes32,uint256,uint256,uint256,bytes)[],(address,uint256,bytes)[][3])", &[Arg::Int(128)]);
    let ((sold, bought), pays_native) = deal.by_order();
    let named = if pays_native { (NATIVE_PLACEHOLDER, bought.1) } else { bought };
    trade(&mut stage, Arg::Of(deal.wallet), sold, named, deal.spec.chance);
    let stranger = stranger(deal);
    if let Some((owner, sold, bought)) = stranger {
        trade(&mut stage, Arg::Of(owner), sold, bought, deal.chance(11));
    }
    let relayer = places.made(Made::Relayer, 0);
    stage.enter(relayer, 0, "transferFromAccounts((address,address,uint256,bytes32)[])", &[]);
    stage.pull(sold.0, deal.wallet, COW_SETTLEMENT, sold.1);
    if let Some((owner, sold, _)) = stranger {
        stage.pull(sold.0, owner, COW_SETTLEMENT, sold.1);
    }
    stage.leave();
    route(&mut stage, FEE, (sold, bought));
    if let Some((_, sold, bought)) = stranger {
        route(&mut stage, DOLLAR_FEE, (sold, bought));
    }
    if pays_native {
        stage.unwrap(bought.1);
        stage.pay(deal.wallet, bought.1);
    } else {
        stage.transfer(bought.0, deal.wallet, bought.1);
    }
    if let Some((owner, _, bought)) = stranger {
        stage.transfer(bought.0, owner, bought.1);
    }
    stage.log("Settlement(address)", &[Arg::Of(solver)], &[]);
    deal.end(stage)
}

/// Through a pool, by its router; the settlement contract is the caller and has the input.
fn route(stage: &mut Stage<'_>, fee: u32, sums: (TokenAmount, TokenAmount)) {
    let (places, owner) = (stage.places, stage.here());
    stage.enter(places.v3.router, 0, SINGLE, &[]);
    let swap = Swap::at(stage, &places.v3, Some(fee), sums, owner);
    swap.v3(stage, |stage, swap| stage.pull(swap.sold.0, owner, swap.pool, swap.sold.1));
    stage.leave();
}

/// Sometimes another order of the same batch.
fn stranger(deal: &Deal<'_>) -> Option<([u8; 20], TokenAmount, TokenAmount)> {
    let chance = deal.chance(12);
    let dollars = 50 * deal.script.places.dollar_unit() + u128::from(chance % 900_000);
    let native = deal.script.places.wei(dollars, deal.spec.price);
    let sums = (deal.wrapped(native), deal.dollars(dollars));
    chance.is_multiple_of(3).then(|| (deal.made(Made::Stranger), sums.0, sums.1))
}

/// `Trade(owner, sellToken, buyToken, sellAmount, buyAmount, feeAmount, orderUid)`; an order's uid
/// is its digest, owner and expiry: 56 bytes.
fn trade(stage: &mut Stage<'_>, owner: Arg, sold: TokenAmount, bought: TokenAmount, chance: u64) {
    let digest = keccak256(&[&chance.to_be_bytes()]);
    let rest = mix::joined(&[&tail(&owner.word()), &[0xff; 4]]);
    let tokens = [sold.0, bought.0].map(Arg::Of);
    let numbers = [sold.1, bought.1, 0, 0xc0, 56].map(Arg::Int);
    let data = [&tokens[..], &numbers, &[digest, rest].map(Arg::Raw)].concat();
    stage.log("Trade(address,address,address,uint256,uint256,uint256,bytes)", &[owner], &data);
}

/// ERC-4337: a bundler sends the smart account's operation, a paymaster pays the fee.
pub(super) fn user_op(deal: &Deal<'_>, native: u128) -> Tx {
    let places = deal.script.places;
    let bundler = deal.made(Made::Bundler);
    let paymaster = places.made(Made::Paymaster, 0);
    let mut stage = Stage::new(places, bundler, ENTRY_POINT, 0);
    stage.input(
        "handleOps((address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)[],address)",
        &[Arg::Int(64), Arg::Of(bundler)],
    );
    stage.call(deal.wallet, 0, "validateUserOp((address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes),bytes32,uint256)", &[]);
    stage.call(paymaster, 0, "validatePaymasterUserOp((address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes),bytes32,uint256)", &[]);
    stage.log("BeforeExecution()", &[], &[]);
    if deal.chance(13).is_multiple_of(2) {
        other_op(deal, &mut stage);
    }
    stage.enter(deal.wallet, 0, "execute(address,uint256,bytes)", &[]);
    stage.aside(Op::Delegate, places.made(Made::Executor, 2), "execute(address,uint256,bytes)");
    let value = if deal.buys() { native } else { 0 };
    stage.enter(places.v3.router, value, "multicall(bytes[])", &[]);
    if deal.buys() {
        deal.v3_buy(&mut stage, native);
    } else {
        deal.v3_sell(&mut stage, native);
    }
    stage.leave();
    stage.leave();
    operation(&mut stage, deal.spec.chance, Arg::Of(deal.wallet), paymaster);
    let cost = deal.script.trade_gas(deal.trade).cost();
    stage.pay(bundler, cost + cost / 10);
    deal.end(stage)
}

/// Another account's operation in the same transaction: a transfer.
fn other_op(deal: &Deal<'_>, stage: &mut Stage<'_>) {
    let (other, friend) = (deal.made(Made::Stranger), deal.made(Made::Exchange));
    let dollar = deal.script.places.dollar.token;
    stage.enter(other, 0, "execute(address,uint256,bytes)", &[]);
    stage.transfer(dollar, friend, 5_000_000);
    stage.leave();
    let paymaster = deal.script.places.made(Made::Paymaster, 0);
    operation(stage, deal.chance(14), Arg::Of(other), paymaster);
}

fn operation(stage: &mut Stage<'_>, chance: u64, account: Arg, paymaster: [u8; 20]) {
    let hash = keccak256(&[b"operation", &chance.to_be_bytes()]);
    stage.log(
        "UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)",
        &[Arg::Raw(hash), account, Arg::Of(paymaster)],
        &[Arg::Int(u128::from(chance % 999)), Arg::Int(1), Arg::Int(1 << 46), Arg::Int(180_000)],
    );
}
