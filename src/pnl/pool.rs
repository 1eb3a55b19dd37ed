//! Average cost: what was bought at a known price is one pool, the rest another.

use super::sale::{Origin, Taken};
use super::share::share;
use crate::domain::Units;

#[derive(Debug, Default)]
pub(super) struct Pool {
    valued: Units,
    cost: Units,
    unvalued: Units,
}

impl Pool {
    pub(super) fn add(&mut self, quantity: Units, cost: Option<Units>) {
        // The book holds sums below the width of the integer.
        match cost {
            Some(cost) => {
                self.valued = self.valued.saturating_add(quantity);
                self.cost = self.cost.saturating_add(cost);
            }
            None => self.unvalued = self.unvalued.saturating_add(quantity),
        }
    }

    /// Takes so many, or all there are, those of known cost first.
    pub(super) fn take(&mut self, quantity: Units) -> Vec<Taken> {
        let mut taken = Vec::new();
        let valued = quantity.min(self.valued);
        if !valued.is_zero() {
            let cost = share(self.cost, valued, self.valued);
            self.valued = self.valued.saturating_sub(valued);
            self.cost = self.cost.saturating_sub(cost);
            taken.push(Taken { quantity: valued, cost: Some(cost), origin: Origin::Pool });
        }
        let unvalued = quantity.saturating_sub(valued).min(self.unvalued);
        if !unvalued.is_zero() {
            self.unvalued = self.unvalued.saturating_sub(unvalued);
            taken.push(Taken { quantity: unvalued, cost: None, origin: Origin::Pool });
        }
        taken
    }
}
