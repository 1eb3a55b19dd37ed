//! Pools: the current caller swaps.

use super::keccak256;
use super::places::{Amm, Singleton};
use super::tx::{Arg, Op, Stage};
use crate::domain::{Account, Word};

pub(super) type TokenAmount = (Account, u128);

/// What is sold, and what is bought for it.
pub(super) type Traded = (TokenAmount, TokenAmount);

/// One exchange in a pool, and its receiver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Swap {
    pub(super) pool: Account,
    pub(super) sold: TokenAmount,
    pub(super) bought: TokenAmount,
    pub(super) to: Account,
}

/// Fee of the ordinary pools, in millionths.
pub(super) const FEE: u32 = 3_000;

impl Swap {
    /// In the protocol's pool of the two tokens; `fee` where it has several.
    pub(super) fn at(
        stage: &Stage<'_>,
        amm: &Amm,
        fee: Option<u32>,
        (sold, bought): Traded,
        to: Account,
    ) -> Self {
        let pool = amm.pool(stage.places.seed, [sold.0, bought.0], fee);
        Self { pool, sold, bought, to }
    }

    fn sold_first(&self) -> bool {
        self.sold.0 < self.bought.0
    }

    /// Uniswap's second version: the input was transferred before.
    pub(super) fn v2(&self, stage: &mut Stage<'_>) {
        self.v2_with(stage, |stage, swap| stage.transfer(swap.bought.0, swap.to, swap.bought.1));
    }

    /// The same with another way to pay the output.
    pub(super) fn v2_with(&self, stage: &mut Stage<'_>, give: impl FnOnce(&mut Stage<'_>, &Self)) {
        let sender = stage.here();
        stage.aside(Op::Static, self.pool, "getReserves()");
        let args = [Arg::Int(0), Arg::Int(self.bought.1), Arg::Of(self.to)];
        stage.enter(self.pool, 0, "swap(uint256,uint256,address,bytes)", &args);
        give(stage, self);
        stage.aside(Op::Static, self.sold.0, "balanceOf(address)");
        stage.aside(Op::Static, self.bought.0, "balanceOf(address)");
        let reserves = [Arg::Int(self.sold.1 * 1_000), Arg::Int(self.bought.1 * 1_000)];
        stage.log("Sync(uint112,uint112)", &[], &reserves);
        let (sold, bought) = (self.sold.1, self.bought.1);
        let amounts = if self.sold_first() { [sold, 0, 0, bought] } else { [0, sold, bought, 0] };
        stage.log(SWAP_V2, &[sender, self.to].map(Arg::Of), &amounts.map(Arg::Int));
        stage.leave();
    }

    /// Uniswap's third version: the pool calls its caller for the input.
    pub(super) fn v3(&self, stage: &mut Stage<'_>, pay: impl FnOnce(&mut Stage<'_>, &Self)) {
        let sender = stage.here();
        let args = [Arg::Of(self.to), Arg::Int(self.sold.1)];
        stage.enter(self.pool, 0, "swap(address,bool,int256,uint160,bytes)", &args);
        stage.transfer(self.bought.0, self.to, self.bought.1);
        stage.enter(sender, 0, "uniswapV3SwapCallback(int256,int256,bytes)", &[]);
        pay(stage, self);
        stage.leave();
        let (sold, bought) = (Arg::Int(self.sold.1), Arg::Minus(self.bought.1));
        let [first, second] = if self.sold_first() { [sold, bought] } else { [bought, sold] };
        let data = [first, second, Arg::Int(1 << 96), Arg::Int(1 << 70), Arg::Minus(887)];
        stage.log(SWAP_V3, &[sender, self.to].map(Arg::Of), &data);
        stage.leave();
    }
}

pub(super) const SWAP_V2: &str = "Swap(address,uint256,uint256,uint256,uint256,address)";
pub(super) const SWAP_V3: &str = "Swap(address,address,int256,int256,uint160,uint128,int24)";
const UNISWAP_V4: &str = "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)";
const SUN_V4: &str = "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24,uint16)";

/// Uniswap's fourth version, with unwrapped native coin on one side.
#[derive(Debug, Clone, Copy)]
pub(super) struct SwapV4 {
    pub(super) v4: Singleton,
    pub(super) coin: TokenAmount,
    pub(super) native: u128,
    pub(super) buys: bool,
}

impl SwapV4 {
    fn pool(&self) -> Word {
        keccak256(&[&self.coin.0, &FEE.to_be_bytes()])
    }

    /// The router is the caller; the manager calls it back.
    pub(super) fn run(&self, stage: &mut Stage<'_>, settle: impl FnOnce(&mut Stage<'_>, Account)) {
        let (router, manager) = (self.v4.router, self.v4.manager);
        stage.enter(manager, 0, "unlock(bytes)", &[]);
        stage.enter(router, 0, "unlockCallback(bytes)", &[]);
        let swap = "swap((address,address,uint24,int24,address),(bool,int256,uint160),bytes)";
        stage.enter(manager, 0, swap, &[]);
        // Amounts from the swapper's side; native coin is the lower address.
        let (native, coin) = if self.buys {
            (Arg::Minus(self.native), Arg::Int(self.coin.1))
        } else {
            (Arg::Int(self.native), Arg::Minus(self.coin.1))
        };
        let [root, liquidity, fee] = [1 << 96, 1 << 70, FEE.into()].map(Arg::Int);
        let mut data = vec![native, coin, root, liquidity, Arg::Minus(1), fee];
        let is_sun = stage.places.is_tron();
        // `SunSwap` also logs the protocol's own fee.
        data.extend(is_sun.then_some(Arg::Int(0)));
        let signature = if is_sun { SUN_V4 } else { UNISWAP_V4 };
        stage.log(signature, &[Arg::Raw(self.pool()), Arg::Of(router)], &data);
        stage.leave();
        settle(stage, manager);
        stage.leave();
        stage.leave();
    }
}
