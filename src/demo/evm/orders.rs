//! Trades that another account sends for a wallet: orders that solvers settle, operations that
//! bundlers send.

use crate::demo::mix;

use super::deal::{Deal, NATIVE_PLACEHOLDER, SINGLE};
use super::hash::{keccak, tail};
use super::places::{COW_SETTLEMENT, ENTRY_POINT, Made};
use super::pools::{FEE, Swap, TokenAmount};
use super::tx::{Arg, Op, Stage, Tx};

/// Fee of a pool other than the one that fills the wallet's order.
const OTHER_FEE: u32 = 500;

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
        route(&mut stage, OTHER_FEE, (sold, bought));
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
    let digest = keccak(&[&chance.to_be_bytes()]);
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
    let hash = keccak(&[b"operation", &chance.to_be_bytes()]);
    stage.log(
        "UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)",
        &[Arg::Raw(hash), account, Arg::Of(paymaster)],
        &[Arg::Int(u128::from(chance % 999)), Arg::Int(1), Arg::Int(1 << 46), Arg::Int(180_000)],
    );
}
