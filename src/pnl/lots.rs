//! Holdings, lot by lot or at their average cost, in the order in which a method sells them.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use super::method::Method;
use super::sale::{Origin, Part};
use super::share::{compare_ratios, share};
use crate::domain::Units;

/// The unsold part of one buy, or of a pool.
#[derive(Debug, Clone, Copy)]
struct Lot {
    quantity: Units,
    /// `None`: the price is unknown.
    cost: Option<Units>,
    origin: Origin,
}

impl Lot {
    fn empty_pool(cost: Option<Units>) -> Self {
        Self { quantity: Units::ZERO, cost, origin: Origin::Pool }
    }

    /// Adds a buy. Never saturates: the book keeps sums below the width of the integer.
    fn grow(&mut self, bought: Self) {
        self.quantity = self.quantity.saturating_add(bought.quantity);
        self.cost = self.cost.zip(bought.cost).map(|(all, cost)| all.saturating_add(cost));
    }

    /// Takes up to `most` units. Their cost is rounded down; the rest of it stays in the lot.
    fn give(&mut self, most: Units) -> Part {
        let quantity = most.min(self.quantity);
        let cost = self.cost.map(|cost| share(cost, quantity, self.quantity));
        self.quantity = self.quantity.saturating_sub(quantity);
        self.cost = self.cost.zip(cost).map(|(all, taken)| all.saturating_sub(taken));
        Part { quantity, cost, proceeds: None, origin: self.origin }
    }

    fn is_used_up(&self) -> bool {
        self.quantity.is_zero()
    }
}

/// A lot ordered by its cost per unit when it was bought: rounding does not move it.
#[derive(Debug, Clone, Copy)]
struct Priced {
    lot: Lot,
    price: Option<(Units, Units)>,
    /// How many lots were bought before.
    number: u64,
}

impl Ord for Priced {
    /// The greatest is sold first.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_price = match (self.price, other.price) {
            (Some(one), Some(other)) => compare_ratios(one, other),
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        by_price.then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Priced {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Priced {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Priced {}

#[derive(Debug)]
pub(super) struct Lots(Order);

#[derive(Debug)]
enum Order {
    Fifo(VecDeque<Lot>),
    Lifo(Vec<Lot>),
    Hifo {
        lots: BinaryHeap<Priced>,
        bought: u64,
    },
    /// Buys at a known price are one pool, the others a second one, which is sold last.
    Average {
        valued: Lot,
        unvalued: Lot,
    },
}

impl Lots {
    pub(super) fn new(method: Method) -> Self {
        Self(match method {
            Method::Fifo => Order::Fifo(VecDeque::new()),
            Method::Lifo => Order::Lifo(Vec::new()),
            Method::Hifo => Order::Hifo { lots: BinaryHeap::new(), bought: 0 },
            Method::Average => Order::Average {
                valued: Lot::empty_pool(Some(Units::ZERO)),
                unvalued: Lot::empty_pool(None),
            },
        })
    }

    pub(super) fn add(&mut self, quantity: Units, cost: Option<Units>, row: usize) {
        let lot = Lot { quantity, cost, origin: Origin::Lot(row) };
        match &mut self.0 {
            Order::Fifo(lots) => lots.push_back(lot),
            Order::Lifo(lots) => lots.push(lot),
            Order::Hifo { lots, bought } => {
                let price = cost.map(|cost| (cost, quantity));
                lots.push(Priced { lot, price, number: *bought });
                *bought += 1;
            }
            Order::Average { valued, .. } if cost.is_some() => valued.grow(lot),
            Order::Average { unvalued, .. } => unvalued.grow(lot),
        }
    }

    /// Takes up to `quantity` units in the method's order.
    pub(super) fn take(&mut self, quantity: Units) -> Vec<Part> {
        let (mut left, mut taken) = (quantity, Vec::new());
        while !left.is_zero()
            && let Some(part) = self.take_from_next(left)
        {
            left = left.saturating_sub(part.quantity);
            taken.push(part);
        }
        taken
    }

    fn take_from_next(&mut self, most: Units) -> Option<Part> {
        match &mut self.0 {
            Order::Fifo(lots) => {
                let part = lots.front_mut()?.give(most);
                if lots.front().is_some_and(Lot::is_used_up) {
                    lots.pop_front();
                }
                Some(part)
            }
            Order::Lifo(lots) => {
                let part = lots.last_mut()?.give(most);
                lots.pop_if(|lot| lot.is_used_up());
                Some(part)
            }
            Order::Hifo { lots, .. } => {
                let mut first = lots.peek_mut()?;
                let part = first.lot.give(most);
                if first.lot.is_used_up() {
                    PeekMut::pop(first);
                }
                Some(part)
            }
            Order::Average { valued, unvalued } => {
                let pool = if valued.is_used_up() { unvalued } else { valued };
                (!pool.is_used_up()).then(|| pool.give(most))
            }
        }
    }
}
