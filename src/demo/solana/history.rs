//! The content of each transaction of a wallet, by seed, wallet, number in its history and fork.
//!
//! Trades run in four lanes. A lane works through one coin after another in cycles of eight trades
//! (buy, buy, sell for USDC, buy, sell, buy with USDC, sell, sell all), so that the balance before
//! any of them is at most eight sums away. The lanes share one USDC account, whose balance rises
//! and falls by turns. SOL balances are not carried on: each transaction starts from a figure of
//! its own, and only the first one starts from nothing.

use super::keys::KnownAccount;
use super::pools::{self, Hop};
use super::tokens::{DemoToken, SPL_TOKENS};
use super::{SOL, TradeKind, references, slots};
use crate::demo::mix::{self, Dice};
use crate::demo::state::{KnownWallet, Making};
use crate::demo::timeline::{Class, Heights, Plan};
use crate::domain::{Height, Side};

pub(super) const LANES: u64 = 4;
pub(super) const STEPS: u64 = 8;
/// Coins of one lane.
const LANE_COINS: u64 = 64;
/// One in this many cycles of a lane begins with a coin that the wallet creates.
const CREATION_PERIOD: u64 = 16;
/// Steps at which the lanes trade against USDC: up, down, and so on.
const USDC_STEPS: &[u64] = &[2, 5];
const USDC_STEPS_ONLY: &[u64] = &[2, 3, 4, 5];
/// Micro-USDC of one such trade, plus or minus a half.
const USDC_MOVE: u64 = 60_000_000;
/// Fee of a pool of SOL and USDC, as a part.
const HOP_FEE: u64 = 2_500;

const HEIGHTS: Heights = Heights {
    of: slots::slot,
    ordinal: slots::ordinal,
    ordinal_below: slots::ordinal_below,
    spread: 400,
};
const BOUNDS: (Height, Height) = (slots::DEFAULT_FIRST, slots::DEFAULT_HEAD - 200);

pub type WalletPlan = Plan<TradeKind>;
pub(super) type WalletHistory = KnownWallet<32, TradeKind>;

pub(super) const MAKING: Making<TradeKind> =
    Making { plan: WalletPlan::trades, heights: HEIGHTS, bounds: BOUNDS };

impl WalletPlan {
    pub fn trades(trades: u64) -> Self {
        let (first, last) = BOUNDS;
        Self { trades, first: Some(first), last: Some(last), ..Self::new(8, 12) }
    }

    /// Every trade of one kind, and nothing else in between.
    pub fn only(kind: TradeKind, trades: u64) -> Self {
        Self { failed_percent: 0, noise_percent: 0, only: Some(kind), ..Self::trades(trades) }
    }
}

#[derive(Debug, Clone)]
pub(super) struct TradeSpec {
    pub(super) kind: TradeKind,
    pub(super) token: DemoToken,
    /// What the wallet does with the token.
    pub(super) side: Side,
    pub(super) units: u64,
    /// The wallet's account of the token before; `None` where this trade opens it.
    pub(super) before: Option<u64>,
    /// The account is closed in the same transaction.
    pub(super) close: bool,
    /// Lamports of the counter side, before fees.
    pub(super) gross: u64,
    pub(super) usdc: Option<UsdcMove>,
    /// Pools from input to output, of an aggregated trade.
    pub(super) route: Vec<Hop>,
    /// Lamports of separate transfers to a bot's maker and to a relay.
    pub(super) bot_fee: u64,
    pub(super) tip: u64,
}

/// The wallet's USDC account in a trade; the direction is opposite to the token's side.
#[derive(Debug, Clone, Copy)]
pub(super) struct UsdcMove {
    pub(super) before: Option<u64>,
    pub(super) after: u64,
}

impl UsdcMove {
    pub(super) fn units(self) -> u64 {
        self.after.abs_diff(self.before.unwrap_or(0))
    }
}

listed! {
    /// In the order in which they come.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum NoiseKind {
        SolIn,
        Spam,
        TokenAccount,
        Liquidity,
        SolOut,
        LimitOpen,
        Stake,
        Dust,
    }
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// The first transaction: a deposit of SOL.
    Funding,
    Trade(TradeSpec),
    /// A failed swap, with its number within the kind.
    Failed(u64),
    /// A transaction that is no trade, with its number within the kind.
    Noise(NoiseKind, u64),
}

#[derive(Debug, Clone)]
pub(super) struct Spec {
    pub(super) number: u64,
    pub(super) fork: u32,
    pub(super) version: Option<u8>,
    pub(super) content: Content,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Script<'a> {
    pub(super) seed: u64,
    pub(super) wallet: &'a WalletHistory,
}

impl Script<'_> {
    pub(super) fn spec(&self, number: u64, fork: u32) -> Spec {
        let content = match self.wallet.class(number) {
            Class::Funding => Content::Funding,
            Class::Trade(trade) => Content::Trade(self.trade(trade, number, fork)),
            Class::Failed(n) => Content::Failed(n),
            Class::Noise(n) => {
                let (kind, n) = noise(n);
                Content::Noise(kind, n)
            }
        };
        let mut dice = self.dice(number, fork, 1);
        let version = if dice.percent(u64::from(self.wallet.plan.version_1_percent)) {
            Some(1)
        } else if dice.percent(35) {
            None
        } else {
            Some(0)
        };
        // Keepers, and failures, whose error names an instruction, have no version 1.
        let plain = match &content {
            Content::Trade(trade) => trade.kind.is_keepers(),
            Content::Failed(_) => true,
            Content::Funding | Content::Noise(..) => false,
        };
        Spec { number, fork, version: if plain { Some(0) } else { version }, content }
    }

    /// Random numbers of one transaction; `purpose` separates the uses.
    pub(super) fn dice(&self, number: u64, fork: u32, purpose: u64) -> Dice {
        Dice::new(self.seed, &[self.wallet.tag, number, u64::from(fork), purpose])
    }

    fn trade(&self, trade: u64, number: u64, fork: u32) -> TradeSpec {
        let (lane, turn) = (trade % LANES, trade / LANES);
        let (cycle, step) = (turn / STEPS, turn % STEPS);
        let token = self.token(lane, cycle);
        let before = match step.checked_sub(1) {
            None => self.carried(lane, cycle),
            Some(last) => Some(self.balance(lane, cycle, last)),
        };
        let after = self.balance(lane, cycle, step);
        let units = after.abs_diff(before.unwrap_or(0));
        let side = if after > before.unwrap_or(0) { Side::Buy } else { Side::Sell };
        let mut dice = self.dice(number, fork, 2);
        let kind = self.kind(lane, cycle, step, &mut dice);
        let usdc = self.usdc(lane, cycle, step);
        let fair = u128::from(units) * 1000 / u128::from(token.rate(self.seed).max(1));
        let fair = u64::try_from(fair).unwrap_or(SOL);
        let fair = (fair / 100).max(200) * dice.range(90, 110);
        let slot = self.wallet.spot(number).map_or(0, |spot| spot.height);
        let price = references::price(self.seed, slot);
        // The intermediate amount is worth the dollars, less a fee of the pool.
        let gross = usdc.map_or(fair, |usdc| {
            let worth = references::lamports(usdc.units(), price).max(2_000);
            if side == Side::Buy { worth - worth / HOP_FEE } else { worth + worth / HOP_FEE }
        });
        let sums = pools::Sums { base: (token, units), gross, usdc: usdc.map(UsdcMove::units) };
        let route = pools::route(kind, side, sums, &mut dice, (self.seed, price));
        let signed = !kind.is_keepers();
        TradeSpec {
            kind,
            token,
            side,
            units,
            before,
            close: step == STEPS - 1 && !self.keeps(lane, cycle),
            gross,
            usdc,
            route,
            bot_fee: if signed && dice.percent(25) { gross / 100 } else { 0 },
            tip: if signed && dice.percent(30) { dice.range(10_000, 2_000_000) } else { 0 },
        }
    }

    fn kind(&self, lane: u64, cycle: u64, step: u64, dice: &mut Dice) -> TradeKind {
        use TradeKind as K;
        let token = self.token(lane, cycle);
        let keeper = dice.percent(u64::from(self.wallet.plan.keeper_percent));
        let buys = matches!(step, 0 | 1 | 3 | 5);
        match self.wallet.plan.only {
            Some(K::JupiterUsdc | K::Settlement) if !USDC_STEPS_ONLY.contains(&step) => {
                K::JupiterSol
            }
            Some(K::PumpCreate) if step > 0 => K::PumpFun,
            Some(K::LimitFill) if !buys || step == 0 => K::RaydiumV4,
            Some(kind) => kind,
            None if USDC_STEPS.contains(&step) && keeper => K::Settlement,
            None if USDC_STEPS.contains(&step) => K::JupiterUsdc,
            None if matches!(token, DemoToken::Created(..)) && step == 0 => K::PumpCreate,
            None if matches!(token, DemoToken::Created(..)) => K::PumpFun,
            None if token.is_2022() => dice.pick(K::PumpFun, &[K::PumpSwap, K::JupiterSol]),
            None if step == 3 && keeper => K::LimitFill,
            None => dice.pick(K::RaydiumV4, &[K::Whirlpool, K::JupiterSol, K::PumpFun]),
        }
    }

    pub(super) fn token(&self, lane: u64, cycle: u64) -> DemoToken {
        use TradeKind as K;
        let creates = match self.wallet.plan.only {
            None => lane % 2 == 1 && cycle % CREATION_PERIOD == 5,
            Some(only) => only == K::PumpCreate,
        };
        let number = cycle * LANES + lane;
        if creates {
            let number = u32::try_from(number).unwrap_or(u32::MAX) & 0x7fff_ffff;
            return DemoToken::Created(self.wallet.tag, number);
        }
        let only = self.wallet.plan.only;
        let newer = matches!(only, Some(K::PumpSwap | K::PumpCreate))
            || matches!(only, None | Some(K::JupiterSol | K::PumpFun)) && lane % 2 == 1;
        let (factor, offset) = self.shuffle(lane);
        let place = cycle.wrapping_mul(factor).wrapping_add(offset) % LANE_COINS;
        let coin = u32::try_from(lane * LANE_COINS + place).unwrap_or(0);
        DemoToken::Coin(if newer { SPL_TOKENS + coin } else { coin })
    }

    fn shuffle(&self, lane: u64) -> (u64, u64) {
        let chance = mix::hash(self.seed, &[self.wallet.tag, lane, 3]);
        (chance >> 8 | 1, chance & 0xff)
    }

    /// Cycles of the lane that trade a coin: the first of them, and how far apart they are.
    pub(super) fn cycles_of(&self, token: DemoToken) -> Option<(u64, u64, u64)> {
        let (lane, cycle, period) = if let DemoToken::Created(_, number) = token {
            let number = u64::from(number);
            (number % LANES, number / LANES, u64::MAX)
        } else {
            let DemoToken::Coin(number) = token else { return None };
            let coin = u64::from(number % SPL_TOKENS);
            let (lane, place) = (coin / LANE_COINS, coin % LANE_COINS);
            let (factor, offset) = self.shuffle(lane);
            // The inverse of an odd number modulo a power of two, by Newton's iteration.
            let inverse = (0..6).fold(factor, |inverse, _| {
                inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse)))
            });
            (lane, place.wrapping_sub(offset).wrapping_mul(inverse) % LANE_COINS, LANE_COINS)
        };
        (self.token(lane, cycle) == token).then_some((lane, cycle, period))
    }

    pub(super) fn keeps(&self, lane: u64, cycle: u64) -> bool {
        let open = u64::from(self.wallet.plan.open_accounts);
        cycle < ((open + LANES - 1 - lane) / LANES).min(LANE_COINS)
    }

    /// The account's balance before a cycle begins; `None` where it does not exist.
    fn carried(&self, lane: u64, cycle: u64) -> Option<u64> {
        let earlier = cycle.checked_sub(LANE_COINS)?;
        let same = self.token(lane, earlier) == self.token(lane, cycle);
        (same && self.keeps(lane, earlier)).then(|| self.sum(lane, earlier, STEPS - 1, 0))
    }

    pub(super) fn balance(&self, lane: u64, cycle: u64, step: u64) -> u64 {
        let start = self.carried(lane, cycle).unwrap_or(0);
        self.sum(lane, cycle, step, start)
    }

    fn sum(&self, lane: u64, cycle: u64, step: u64, start: u64) -> u64 {
        let token = self.token(lane, cycle);
        let mut dice = Dice::new(self.seed, &[self.wallet.tag, lane, cycle, 4]);
        let size = self.units(token, dice.range(3 * SOL / 2, 6 * SOL));
        let mut balance = start;
        for at in 0..=step {
            let (part, price) = (dice.range(20, 60), dice.range(90, 110));
            let usdc = self.usdc(lane, cycle, at).map(|usdc| {
                let lamports = usdc.units() / 150 * 10 * price;
                self.units(token, lamports)
            });
            balance = match at {
                0 => balance + size,
                1 | 3 | 5 => balance + usdc.unwrap_or(size / 100 * part).max(1),
                2 | 4 | 6 => balance.saturating_sub(usdc.unwrap_or(balance / 100 * part).max(1)),
                _ if self.keeps(lane, cycle) => balance / 2,
                _ => 0,
            };
        }
        balance
    }

    fn units(&self, token: DemoToken, lamports: u64) -> u64 {
        let units = u128::from(lamports) * u128::from(token.rate(self.seed)) / 1000;
        u64::try_from(units).unwrap_or(u64::MAX).max(1_000)
    }

    fn usdc_steps(&self) -> &'static [u64] {
        match self.wallet.plan.only {
            None => USDC_STEPS,
            Some(TradeKind::JupiterUsdc | TradeKind::Settlement) => USDC_STEPS_ONLY,
            Some(_) => &[],
        }
    }

    /// The USDC account around a step, where the step trades against USDC.
    fn usdc(&self, lane: u64, cycle: u64, step: u64) -> Option<UsdcMove> {
        let steps = self.usdc_steps();
        let phase = steps.iter().position(|at| *at == step)?;
        let after = self.usdc_level(lane, cycle, step, phase % 2 == 0);
        let before = if let Some(lane) = lane.checked_sub(1) {
            Some(self.usdc_level(lane, cycle, step, phase % 2 == 0))
        } else {
            let earlier = phase.checked_sub(1).and_then(|at| steps.get(at)).map(|at| (cycle, *at));
            let wrapped = || Some((cycle.checked_sub(1)?, *steps.last()?));
            let last = earlier.or_else(wrapped);
            last.map(|(cycle, step)| self.usdc_level(LANES - 1, cycle, step, phase % 2 == 1))
        };
        Some(UsdcMove { before, after })
    }

    fn usdc_level(&self, lane: u64, cycle: u64, step: u64, rising: bool) -> u64 {
        let level = if rising { lane + 1 } else { LANES - 1 - lane };
        let jitter = mix::hash(self.seed, &[self.wallet.tag, lane, cycle, step, 5]);
        level * USDC_MOVE + jitter % (USDC_MOVE / 2)
    }

    /// Micro-USDC of the wallet after `trades` trades; `None` before the account is opened.
    pub(super) fn usdc_balance(&self, trades: u64) -> Option<u64> {
        let span = LANES * STEPS * 2;
        (trades.saturating_sub(span)..trades).rev().find_map(|trade| {
            let (lane, turn) = (trade % LANES, trade / LANES);
            self.usdc(lane, turn / STEPS, turn % STEPS).map(|usdc| usdc.after)
        })
    }

    pub(super) fn is_usdc(&self, trade: u64) -> bool {
        self.usdc_steps().contains(&(trade / LANES % STEPS))
    }
}

/// The kind of the `n`-th noise, with its number within the kind.
pub(super) fn noise(n: u64) -> (NoiseKind, u64) {
    let at = usize::try_from(n % 8).unwrap_or(0);
    (NoiseKind::ALL.get(at).copied().unwrap_or(NoiseKind::SolIn), n / 8)
}

/// Number among all noise of the `n`-th one of a kind.
pub(super) fn noise_number(kind: NoiseKind, n: u64) -> u64 {
    let at = NoiseKind::ALL.iter().position(|other| *other == kind).unwrap_or(0);
    n * 8 + u64::try_from(at).unwrap_or(0)
}

impl TradeSpec {
    /// Lamports of value: exact against native coin, by a native hop of the route, else none.
    pub(super) fn native(&self) -> Option<u64> {
        if self.usdc.is_some() {
            let first = self.route.first()?;
            return (first.get.0 == DemoToken::WrappedSol).then_some(first.get.1);
        }
        let on_curve = matches!(self.kind, TradeKind::PumpFun | TradeKind::PumpCreate);
        let fees = match (on_curve, self.kind == TradeKind::PumpSwap) {
            (true, _) => pools::pump_fees(self.gross).total(),
            (false, true) => pools::swap_fees(self.gross).total(),
            (false, false) => 0,
        };
        Some(if self.side == Side::Buy { self.gross + fees } else { self.gross - fees })
    }

    /// Program whose pool exchanged the token with the route.
    pub(super) fn token_venue(&self) -> KnownAccount {
        match self.kind {
            TradeKind::PumpFun | TradeKind::PumpCreate => KnownAccount::PumpFun,
            TradeKind::PumpSwap => KnownAccount::PumpSwap,
            TradeKind::RaydiumV4 => KnownAccount::RaydiumV4,
            TradeKind::Whirlpool => KnownAccount::Whirlpool,
            TradeKind::LimitFill => KnownAccount::JupiterLimit,
            TradeKind::JupiterSol | TradeKind::JupiterUsdc | TradeKind::Settlement => {
                self.hop_venue(self.side == Side::Sell)
            }
        }
    }

    /// Program of the first or the last pool of the route.
    pub(super) fn hop_venue(&self, first: bool) -> KnownAccount {
        let hop = if first { self.route.first() } else { self.route.last() };
        hop.map_or(KnownAccount::Jupiter, |hop| hop.venue.program())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::timeline::{Crowd, HistoryShape, Spot};

    fn history(plan: &WalletPlan) -> HistoryShape {
        HistoryShape::new((5, 7), plan, HEIGHTS, BOUNDS)
    }

    fn check(plan: WalletPlan) {
        let last = plan.last.unwrap();
        let wallet = history(&plan);
        let count = wallet.count_at(last);
        let trades = (0..count).filter(|n| matches!(wallet.class(*n), Class::Trade(_))).count();
        assert_eq!(u64::try_from(trades).unwrap(), plan.trades);
        let mut before: Option<Spot> = None;
        for number in 0..count {
            let spot = wallet.spot(number).unwrap();
            assert!(slots::has_block(spot.height));
            if let Some(before) = before {
                assert!((before.height, before.index) < (spot.height, spot.index), "{number}");
            }
            before = Some(spot);
            let through = wallet.count_at(spot.height);
            assert!(through > number);
            assert!(wallet.spot(through - 1).unwrap().height == spot.height);
            match wallet.class(number) {
                Class::Trade(trade) => {
                    assert_eq!(wallet.number_of_trade(trade), number);
                    assert_eq!(wallet.trades_below(number), trade);
                }
                Class::Noise(n) => {
                    assert_eq!(wallet.number_of_noise(n), Some(number));
                    assert_eq!(wallet.noises_below(number), n);
                }
                Class::Funding | Class::Failed(_) => {}
            }
        }
        assert_eq!(wallet.spot(count).is_some(), plan.live_every.is_some());
    }

    #[test]
    fn slots_and_numbers_lead_to_each_other() {
        check(WalletPlan::trades(1));
        check(WalletPlan::trades(2_345));
        check(WalletPlan { burst: 40, ..WalletPlan::trades(900) });
        let crowd = Some(Crowd { start: 333, count: 1_200 });
        check(WalletPlan { crowd, burst: 7, ..WalletPlan::trades(3_000) });
        check(WalletPlan { live_every: Some(50), ..WalletPlan::trades(100) });
        let (first, last) = (Some(1_000), Some(1_400));
        check(WalletPlan { first, last, burst: 0, ..WalletPlan::trades(100) });
        assert_eq!(history(&WalletPlan::trades(0)).count_at(u64::MAX), 0);
    }

    #[test]
    fn transactions_that_arrive_are_above_the_head() {
        for live_every in [None, Some(30)] {
            let plan = WalletPlan { live_every, ..WalletPlan::trades(500) };
            let mut wallet = history(&plan);
            let mut head = slots::DEFAULT_HEAD;
            for _ in 0..5 {
                let before = wallet.count_at(head);
                let top = wallet.arrive(7, head);
                assert!(wallet.spot(before).unwrap().height > head);
                let count = wallet.count_at(top);
                let trades =
                    (before..count).filter(|n| matches!(wallet.class(*n), Class::Trade(_)));
                assert_eq!(trades.count(), 7);
                head = top + 1_000;
            }
        }
    }
}
