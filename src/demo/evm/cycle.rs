//! The amounts of a lane's trades in one coin, each a few percent off the coin's one price.

use crate::demo::mix::Dice;
use crate::domain::Units;

pub(super) const STEPS: u64 = 8;

/// One trade of the cycle.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CycleStep {
    /// Whether it trades against the dollar.
    pub(super) dollar: bool,
    /// Base units of the coin that it moves.
    pub(super) units: u128,
    /// Wei for them; against the dollar, what the dollars are worth.
    pub(super) native: u128,
}

/// How a cycle's amounts are measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct CycleScale {
    /// Base units of the coin for a thousandth of the native coin, and that thousandth in wei.
    pub(super) per_milli: u128,
    pub(super) milli: u128,
    /// Wei by which the native trades change the wallet, in sum.
    pub(super) gain: i128,
}

pub(super) fn is_buy(step: u64) -> bool {
    matches!(step, 0 | 1 | 3 | 5)
}

/// The wallet between two steps.
struct CycleProgress {
    dice: Dice,
    scale: CycleScale,
    /// Base units of the coin.
    balance: u128,
    /// Base units that the last sale moved.
    sold: u128,
    /// Wei of the native trades so far.
    change: i128,
}

/// All steps: the first buys, the last sells all. A purchase for dollars buys back what the sale
/// before it sold, for fewer. A last sale for native coin brings the native trades to the gain.
pub(super) fn steps(
    dice: Dice,
    scale: CycleScale,
    is_dollar: impl Fn(u64) -> bool,
) -> [CycleStep; 8] {
    let mut progress = CycleProgress { dice, scale, balance: 0, sold: 0, change: 0 };
    let mut steps = [CycleStep::default(); 8];
    for (at, step) in (0..STEPS).zip(&mut steps) {
        *step = progress.step(at, is_dollar(at));
    }
    steps
}

impl CycleProgress {
    fn step(&mut self, at: u64, dollar: bool) -> CycleStep {
        let units = self.units(at, dollar);
        let percent = u128::from(self.dice.range(0, 6));
        let fair = self.fair(units);
        let native = match (dollar, is_buy(at)) {
            (false, false) if at == STEPS - 1 => {
                u128::try_from(self.scale.gain - self.change).unwrap_or(fair)
            }
            (false, _) => fair / 100 * (97 + percent),
            (true, true) => fair / 100 * (93 + percent / 2),
            (true, false) => fair / 100 * (100 + percent / 2),
        };
        self.balance = if is_buy(at) { self.balance + units } else { self.balance - units };
        self.sold = units;
        if !dollar {
            let moved = native.cast_signed();
            self.change += if is_buy(at) { -moved } else { moved };
        }
        CycleStep { dollar, units, native }
    }

    fn units(&mut self, at: u64, dollar: bool) -> u128 {
        let millis = if at == 0 { self.dice.range(300, 600) } else { self.dice.range(100, 300) };
        let part = self.dice.range(20, 50);
        let odd = u128::from(self.dice.next()) % self.scale.per_milli.max(2);
        match (is_buy(at), dollar) {
            (true, true) if at > 1 => self.sold,
            (true, _) => u128::from(millis) * self.scale.per_milli + odd,
            (false, _) if at == STEPS - 1 => self.balance,
            (false, _) => (self.balance / 100 * u128::from(part)).max(1).min(self.balance),
        }
    }

    /// Wei for base units at the coin's price.
    fn fair(&self, units: u128) -> u128 {
        let wei = Units::from(units) * Units::from(self.scale.milli)
            / Units::from(self.scale.per_milli.max(1));
        wei.try_into().unwrap_or(u128::MAX / 200)
    }
}
