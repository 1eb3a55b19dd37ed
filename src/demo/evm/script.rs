//! The content of each transaction of a wallet, derived from its number, and the wallet's balances.
//!
//! Trades rotate over `LANES` lanes. A lane trades one coin for `STEPS` trades: it buys at the
//! first and sells all at the last. A lane's gain per coin is a closed formula, so that a balance
//! is a sum of a few numbers however long the history is.

use super::TradeKind;
use super::TradeKind as K;
use super::coins::Coin;
use super::cycle::{self, CycleScale, CycleStep, STEPS};
use super::places::{TABLE, TxPlaces};
use super::tx::Gas;
use crate::demo::mix::{self, Dice};
use crate::demo::state::{KnownWallet, Making};
use crate::demo::timeline::{Heights, Plan};
use crate::domain::Side;

pub(super) const LANES: u64 = 4;
/// Coins of one lane before they repeat.
const LANE_COINS: u64 = 128;
/// Fee of the dollar pool on the intermediate coin, as a part.
const HOP_FEE: u128 = 2_000;
const GWEI: u128 = 1_000_000_000;
/// Sun for one unit of energy.
const TRON_ENERGY_PRICE: u128 = 100;
/// Initial funds, and funds for each planned trade.
const FUNDS_MILLIS: u128 = 100_000;
const FUNDS_MILLIS_PER_TRADE: u128 = 2;
/// Kinds, fees and senders of trades repeat after so many: two coins of each lane.
const PERIOD: u64 = LANES * STEPS * 2;
/// Fees of failures repeat after so many.
const FAILED_PERIOD: u64 = 16;

/// Every block is a height.
const HEIGHTS: Heights =
    Heights { of: |height| height, ordinal: |height| height, ordinal_below: Some, spread: 90 };

pub type WalletPlan = Plan<TradeKind>;
pub(super) type WalletHistory = KnownWallet<20, TradeKind>;

impl WalletPlan {
    pub fn trades(trades: u64) -> Self {
        Self { trades, ..Self::new(6, 24) }
    }

    /// Every trade of one kind, and nothing else in between.
    pub fn only(kind: TradeKind, trades: u64) -> Self {
        Self { trades, only: Some(kind), ..Self::new(0, 0) }
    }
}

pub(super) fn making(places: &TxPlaces) -> Making<TradeKind> {
    // Histories begin at three quarters of the chain's height.
    let anchor = places.anchor;
    let bounds = (anchor - anchor / 4, anchor.saturating_sub(200));
    Making { plan: WalletPlan::trades, heights: HEIGHTS, bounds }
}

macro_rules! noise {
    ($($(#[$doc:meta])* $name:ident = ($sent:literal, $gas:literal, $native:literal),)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum NoiseKind { $($(#[$doc])* $name,)* }

        /// In the order in which they come.
        const NOISE: [NoiseKind; 16] = [$(NoiseKind::$name,)*];

        impl NoiseKind {
            /// Whether the wallet sends it, and so pays its fee; the gas that it uses; whether coin
            /// comes in or goes out.
            const fn facts(self) -> (bool, u64, i128) {
                match self { $(Self::$name => ($sent, $gas, $native),)* }
            }
        }
    };
}

noise! {
    NativeIn = (false, 21_000, 1),
    NativeOut = (true, 21_000, -1),
    Approve = (true, 46_109, 0),
    SpamToken = (false, 900_000, 0),
    /// A transfer of zero of a real token "from" the wallet, by another account, and one to it.
    ZeroOut = (false, 46_109, 0),
    ZeroIn = (false, 46_109, 0),
    TokenIn = (false, 46_109, 0),
    SpamSwap = (false, 46_109, 0),
    Wrap = (true, 46_109, -1),
    Unwrap = (true, 46_109, 1),
    AddLiquidity = (true, 180_000, -1),
    RemoveLiquidity = (true, 180_000, 1),
    Dust = (false, 21_000, 1),
    SpamNft = (false, 900_000, 0),
    SpamMulti = (false, 900_000, 0),
    TokenOut = (true, 46_109, 0),
}

const NOISE_PERIOD: u64 = 16;
pub(super) const DUST: u128 = 777;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TradeSpec {
    pub(super) kind: TradeKind,
    pub(super) coin: Coin,
    pub(super) side: Side,
    /// Base units of the coin that left or reached the wallet.
    pub(super) units: u128,
    pub(super) against: Against,
    /// Randomness for details without effect on the rows.
    pub(super) chance: u64,
    /// Price of a whole coin at its time, in trillionths of a dollar.
    pub(super) price: u128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    /// Wei that left the wallet, less refunds, or that reached it.
    Native(u128),
    /// Base units of the dollar, and the wei of the intermediate hop, if any.
    Dollar { units: u128, hop: Option<u128> },
}

/// The wallet's balances and counts at a place of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holdings {
    /// Wei; never below zero by construction.
    pub(super) balance: u128,
    pub(super) sent: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Script<'a> {
    pub(super) places: &'a TxPlaces,
    pub(super) wallet: &'a WalletHistory,
}

impl Script<'_> {
    fn dice(&self, parts: [u64; 3], purpose: u64) -> Dice {
        let [a, b, c] = parts;
        Dice::new(self.places.seed, &[self.wallet.tag, a, b, c, purpose])
    }

    /// A trade at its height's price of a whole native coin, in trillionths of a dollar.
    pub(super) fn trade(&self, trade: u64, price: u128) -> TradeSpec {
        let (lane, turn) = (trade % LANES, trade / LANES);
        let (cycle, at) = (turn / STEPS, turn % STEPS);
        let kind = self.kind(lane, cycle, at);
        let side = if cycle::is_buy(at) { Side::Buy } else { Side::Sell };
        let index = usize::try_from(at).unwrap_or(0);
        let step = self.steps(lane, cycle).get(index).copied().unwrap_or_default();
        let against = if step.dollar {
            let units = self.places.dollars(step.native, price).max(1);
            let hop = (kind == K::V2Hop).then(|| self.hop(units, price, side));
            Against::Dollar { units, hop }
        } else {
            Against::Native(step.native)
        };
        TradeSpec {
            kind,
            coin: self.coin(lane, cycle),
            side,
            units: step.units,
            against,
            chance: self.dice([lane, cycle, at], 1).next(),
            price,
        }
    }

    /// Wei of the intermediate hop of a trade for dollars: their worth, less a fee of the pool.
    fn hop(&self, dollars: u128, price: u128, side: Side) -> u128 {
        let fair = self.places.wei(dollars, price);
        let fee = fair / HOP_FEE;
        if side == Side::Buy { fair - fee } else { fair + fee }
    }

    fn kind(&self, lane: u64, cycle: u64, step: u64) -> TradeKind {
        let at = |number: u64| usize::try_from(number).unwrap_or(0);
        let kinds = if self.places.is_tron() { &TABLE.tron_kinds } else { &TABLE.kinds };
        let of_lane = kinds.get(at(lane)).and_then(|lane| lane.get(at(cycle % 2)));
        let natural = of_lane.and_then(|kinds| kinds.get(at(step))).copied().unwrap_or(K::V3);
        let kind = match self.wallet.plan.only {
            // No dollars were received yet that could pay for an order.
            Some(K::Cow) if step < 2 => K::V3,
            Some(only) => only,
            None => natural,
        };
        let (is_tron, has_v2, has_v4) =
            (self.places.is_tron(), self.places.v2.is_some(), self.places.v4.is_some());
        match (kind, is_tron, has_v2, has_v4) {
            (K::UserOp, true, ..) => K::V1,
            (K::V1 | K::Exchange, false, ..) | (K::V2, _, false, _) => K::V3,
            (K::V2Hop, _, false, _) => K::V3Dollar,
            (K::Taxed, _, false, _) => K::Launchpad,
            (K::V4, .., false) => K::Aggregator,
            _ => kind,
        }
    }

    pub(super) fn coin(&self, lane: u64, cycle: u64) -> Coin {
        let number = u32::try_from(lane * LANE_COINS + self.place(lane, cycle)).unwrap_or(0);
        let kind = self.kind(lane, cycle, 0);
        if kind == K::Taxed {
            return Coin::Taxed(number);
        }
        if kind == K::Launchpad {
            return Coin::Curve(number);
        }
        if kind == K::Exchange { Coin::Asset(number) } else { Coin::Plain(number) }
    }

    fn place(&self, lane: u64, cycle: u64) -> u64 {
        let chance = mix::hash(self.places.seed, &[self.wallet.tag, lane, 3]);
        cycle.wrapping_mul(chance >> 8 | 1).wrapping_add(chance & 0xff) % LANE_COINS
    }

    fn steps(&self, lane: u64, cycle: u64) -> [CycleStep; 8] {
        let scale = CycleScale {
            per_milli: self.coin(lane, cycle).per_milli(self.places),
            milli: self.places.milli,
            gain: self.earned(lane, cycle) - self.earned_before(lane, cycle),
        };
        let dice = self.dice([lane, cycle, 0], 4);
        cycle::steps(dice, scale, |at| is_dollar(self.kind(lane, cycle, at), at))
    }

    /// The lane's gain from the start through a coin.
    fn earned(&self, lane: u64, cycle: u64) -> i128 {
        let millis = self.dice([lane, cycle, 0], 7).range(0, 20);
        i128::from(millis) * self.places.milli.cast_signed()
    }

    fn earned_before(&self, lane: u64, cycle: u64) -> i128 {
        cycle.checked_sub(1).map_or(0, |before| self.earned(lane, before))
    }

    /// The change of native coin over the steps of a coin before one.
    fn lane_change(&self, lane: u64, cycle: u64, step: u64) -> i128 {
        let steps = self.steps(lane, cycle);
        let before = (0..step).zip(&steps).filter(|(_, step)| !step.dollar);
        before
            .map(|(at, step)| {
                let native = step.native.cast_signed();
                if cycle::is_buy(at) { -native } else { native }
            })
            .sum()
    }

    fn gas(&self, number: u64, used: u64) -> Gas {
        if self.places.is_tron() {
            return Gas { used, price: TRON_ENERGY_PRICE, l1_fee: 0 };
        }
        let price = if self.places.has_l1_fee { GWEI / 50 } else { GWEI / 4 };
        let l1_fee = if self.places.has_l1_fee { GWEI * 40 } else { 0 };
        let steps = u128::from(number % 16);
        Gas { used, price: price + steps * 1_000_003, l1_fee: l1_fee * (steps + 1) }
    }

    pub(super) fn trade_gas(&self, trade: u64) -> Gas {
        let at = trade % PERIOD;
        self.gas(at, 120_000 + at * 3_011)
    }

    pub(super) fn failed_gas(&self, n: u64) -> Gas {
        let at = n % FAILED_PERIOD;
        self.gas(at, 40_000 + at * 2_017)
    }

    pub(super) fn noise_gas(&self, kind: NoiseKind) -> Gas {
        let (_, used, _) = kind.facts();
        self.gas(used / 1000, used)
    }

    fn is_sent(&self, trade: u64) -> bool {
        let turn = trade / LANES;
        let kind = self.kind(trade % LANES, turn / STEPS, turn % STEPS);
        !matches!(kind, K::Cow | K::UserOp)
    }

    pub(super) fn funds(&self) -> u128 {
        (FUNDS_MILLIS + FUNDS_MILLIS_PER_TRADE * u128::from(self.wallet.plan.trades))
            * self.places.milli
    }

    pub(super) fn state(&self, number: u64) -> Holdings {
        if number == 0 {
            return Holdings { balance: 0, sent: 0 };
        }
        let (trades, noises) = (self.wallet.trades_below(number), self.wallet.noises_below(number));
        let failed = number - 1 - trades - noises;
        let of_trade = |trade: u64| {
            if self.is_sent(trade) { (self.trade_gas(trade).cost(), 1) } else { (0, 0) }
        };
        let of_failed = |n: u64| (self.failed_gas(n).cost(), 1);
        let of_noise = |n: u64| {
            let (kind, _) = noise(n);
            let (is_sent, ..) = kind.facts();
            if is_sent { (self.noise_gas(kind).cost(), 1) } else { (0, 0) }
        };
        let (of_trades, sent) = sums(trades, PERIOD, of_trade);
        let (of_failures, failures) = sums(failed, FAILED_PERIOD, of_failed);
        let (of_noises, noises_sent) = sums(noises, NOISE_PERIOD, of_noise);
        let fees = of_trades + of_failures + of_noises;
        let sent = sent + failures + noises_sent;
        let lanes: i128 = (0..LANES)
            .map(|lane| {
                let turns = (trades + LANES - 1 - lane) / LANES;
                let (cycle, step) = (turns / STEPS, turns % STEPS);
                self.earned_before(lane, cycle) + self.lane_change(lane, cycle, step)
            })
            .sum();
        let change = lanes + self.noise_change(noises);
        let balance = self.funds().saturating_add_signed(change).saturating_sub(fees);
        Holdings { balance, sent }
    }

    /// Wei that noise adds or removes. Deposits of one kind are withdrawals of another.
    fn noise_change(&self, noises: u64) -> i128 {
        let (rounds, rest) = (noises / NOISE_PERIOD, noises % NOISE_PERIOD);
        let of_rest = (0..rest).map(|n| {
            let (kind, _) = noise(n);
            let (_, _, direction) = kind.facts();
            let is_dust = kind == NoiseKind::Dust;
            let amount = if is_dust { DUST } else { self.noise_amount(kind, rounds) };
            direction * amount.cast_signed()
        });
        i128::from(rounds) * DUST.cast_signed() + of_rest.sum::<i128>()
    }

    /// Wei, the same for both transactions of a pair.
    pub(super) fn noise_amount(&self, kind: NoiseKind, round: u64) -> u128 {
        let pair = if matches!(kind, NoiseKind::NativeIn | NoiseKind::NativeOut) {
            1
        } else if matches!(kind, NoiseKind::Wrap | NoiseKind::Unwrap) {
            2
        } else {
            3
        };
        let chance = self.dice([round, pair, 0], 8).next();
        u128::from(10 + chance % 400) * self.places.milli
            + u128::from(chance >> 16) % self.places.milli
    }
}

/// The kind of the `n`-th noise, with its number within the kind.
pub(super) fn noise(n: u64) -> (NoiseKind, u64) {
    let at = usize::try_from(n % NOISE_PERIOD).unwrap_or(0);
    (NOISE.get(at).copied().unwrap_or(NoiseKind::Dust), n / NOISE_PERIOD)
}

/// Whether a trade is against the dollar. Orders spend the dollars of earlier sales.
fn is_dollar(kind: TradeKind, step: u64) -> bool {
    matches!(kind, K::V2Hop | K::V3Dollar) || kind == K::Cow && (2..=5).contains(&step)
}

/// The sum over all numbers below `count` of a function that repeats after `period`.
fn sums(count: u64, period: u64, of: impl Fn(u64) -> (u128, u64)) -> (u128, u64) {
    let (rounds, rest) = (count / period, count % period);
    let (mut all, mut part) = ((0, 0), (0, 0));
    for n in 0..period {
        let (cost, sent) = of(n);
        all = (all.0 + cost, all.1 + sent);
        if n < rest {
            part = (part.0 + cost, part.1 + sent);
        }
    }
    (u128::from(rounds) * all.0 + part.0, rounds * all.1 + part.1)
}
