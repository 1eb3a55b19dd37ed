//! First in, first out.

use std::collections::VecDeque;

use super::share::share;
use crate::domain::Units;

/// What was bought at once, as far as it is not sold.
#[derive(Debug, Clone, Copy)]
struct Lot {
    quantity: Units,
    /// `None`: the cost is unknown.
    cost: Option<Units>,
}

/// A part of a sell that one lot, or one pool, gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) quantity: Units,
    pub(super) cost: Option<Units>,
}

#[derive(Debug, Default)]
pub(super) struct Lots(VecDeque<Lot>);

impl Lots {
    pub(super) fn add(&mut self, quantity: Units, cost: Option<Units>) {
        self.0.push_back(Lot { quantity, cost });
    }

    /// Takes so many, or all there are, oldest first.
    pub(super) fn take(&mut self, quantity: Units) -> Vec<Taken> {
        let mut left = quantity;
        let mut taken = Vec::new();
        while !left.is_zero()
            && let Some(lot) = self.0.front_mut()
        {
            let part = left.min(lot.quantity);
            let cost = lot.cost.map(|cost| share(cost, part, lot.quantity));
            taken.push(Taken { quantity: part, cost });
            left = left.saturating_sub(part);
            lot.quantity = lot.quantity.saturating_sub(part);
            lot.cost = lot.cost.zip(cost).map(|(all, taken)| all.saturating_sub(taken));
            if lot.quantity.is_zero() {
                self.0.pop_front();
            }
        }
        taken
    }
}
