//! The book of one token: entries oldest first.

use super::Method;
use super::lots::{Lots, Taken};
use super::pool::Pool;
use super::position::Position;
use super::share::share;
use super::signed::Signed;
use crate::domain::{Side, Units};

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub side: Side,
    /// `None`, like zero: the row is only counted.
    pub quantity: Option<Units>,
    /// Base units of native coin.
    pub native: Option<Units>,
}

/// What a sell realised on the part that was bought at a known price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gain {
    pub proceeds: Units,
    pub cost: Units,
}

impl Gain {
    pub fn realised(&self) -> Signed {
        Signed::difference(self.proceeds, self.cost)
    }
}

#[derive(Debug)]
pub struct Book {
    held: Held,
    position: Position,
}

#[derive(Debug)]
enum Held {
    Lots(Lots),
    Pool(Pool),
}

impl Held {
    fn add(&mut self, quantity: Units, cost: Option<Units>) {
        match self {
            Self::Lots(lots) => lots.add(quantity, cost),
            Self::Pool(pool) => pool.add(quantity, cost),
        }
    }

    fn take(&mut self, quantity: Units) -> Vec<Taken> {
        match self {
            Self::Lots(lots) => lots.take(quantity),
            Self::Pool(pool) => pool.take(quantity),
        }
    }
}

impl Book {
    pub fn new(method: Method) -> Self {
        let held = match method {
            Method::Fifo => Held::Lots(Lots::default()),
            Method::Average => Held::Pool(Pool::default()),
        };
        Self { held, position: Position::default() }
    }

    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Enters the next row; returns the realised gain of a sell, where it is known.
    pub fn enter(&mut self, entry: Entry) -> Option<Gain> {
        let position = &mut self.position;
        let total = match entry.side {
            Side::Buy => {
                position.buys += 1;
                &mut position.bought
            }
            Side::Sell => {
                position.sells += 1;
                &mut position.sold
            }
        };
        // More than the integer holds exceeds any token: such an amount counts as unknown.
        let told = entry.quantity.filter(|quantity| !quantity.is_zero());
        let Some((quantity, sum)) = told.and_then(|q| Some((q, total.checked_add(q)?))) else {
            position.untold += 1;
            return None;
        };
        *total = sum;
        position.unvalued += u64::from(entry.native.is_none());
        match entry.side {
            Side::Buy => {
                self.buy(quantity, entry.native);
                None
            }
            Side::Sell => self.sell(quantity, entry.native),
        }
    }

    fn buy(&mut self, quantity: Units, cost: Option<Units>) {
        let position = &mut self.position;
        // Not above what was bought in all.
        position.open = position.open.saturating_add(quantity);
        match cost {
            Some(cost) => {
                position.spent = position.spent.saturating_add(cost);
                position.open_cost = position.open_cost.saturating_add(cost);
            }
            None => position.open_unvalued = position.open_unvalued.saturating_add(quantity),
        }
        self.held.add(quantity, cost);
    }

    fn sell(&mut self, quantity: Units, value: Option<Units>) -> Option<Gain> {
        let matched = quantity.min(self.position.open);
        let taken = self.held.take(matched);
        self.let_go(matched, &taken);
        let position = &mut self.position;
        position.unmatched = position.unmatched.saturating_add(quantity.saturating_sub(matched));
        let Some(value) = value else {
            let cost = taken.iter().filter_map(|part| part.cost).fold(Units::ZERO, plus);
            position.unvalued_cost = position.unvalued_cost.saturating_add(cost);
            return None;
        };
        position.received = position.received.saturating_add(value);
        let proceeds = share(value, matched, quantity);
        position.unmatched_proceeds =
            position.unmatched_proceeds.saturating_add(value.saturating_sub(proceeds));
        let gain = self.realise(quantity, value, proceeds, &taken)?;
        let position = &mut self.position;
        position.cost = position.cost.saturating_add(gain.cost);
        position.realised += gain.realised();
        position.judged += 1;
        position.wins += u64::from(gain.realised().is_positive());
        Some(gain)
    }

    fn let_go(&mut self, matched: Units, taken: &[Taken]) {
        let position = &mut self.position;
        position.open = position.open.saturating_sub(matched);
        for part in taken {
            match part.cost {
                Some(cost) => position.open_cost = position.open_cost.saturating_sub(cost),
                None => {
                    position.open_unvalued = position.open_unvalued.saturating_sub(part.quantity);
                }
            }
        }
    }

    /// Gives each part its proceeds: rounded down, and the rest to the last one.
    fn realise(
        &mut self,
        quantity: Units,
        value: Units,
        proceeds: Units,
        taken: &[Taken],
    ) -> Option<Gain> {
        let mut left = proceeds;
        let mut gain: Option<Gain> = None;
        for (at, part) in taken.iter().enumerate() {
            let is_last = at + 1 == taken.len();
            let got = if is_last { left } else { share(value, part.quantity, quantity).min(left) };
            left = left.saturating_sub(got);
            let Some(cost) = part.cost else {
                let sum = &mut self.position.unvalued_proceeds;
                *sum = sum.saturating_add(got);
                continue;
            };
            let before = gain.unwrap_or(Gain { proceeds: Units::ZERO, cost: Units::ZERO });
            gain =
                Some(Gain { proceeds: plus(before.proceeds, got), cost: plus(before.cost, cost) });
        }
        gain
    }
}

fn plus(one: Units, other: Units) -> Units {
    one.saturating_add(other)
}
