//! A sell and its parts.

use super::share::share;
use super::signed::Signed;
use crate::domain::Units;

/// Where sold units came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A lot, by the row of its buy.
    Lot(usize),
    /// The pool of a method without lots.
    Pool,
    /// Units beyond what the rows bought.
    Unmatched,
}

/// Units of a sell that share an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub quantity: Units,
    /// `None`: the price of the buy is unknown.
    pub cost: Option<Units>,
    /// `None`: the price of the sell is unknown, or [`Sale::new`] has not set it yet.
    pub proceeds: Option<Units>,
    pub origin: Origin,
}

impl Part {
    pub fn gain(&self) -> Option<Gain> {
        let (proceeds, cost) = self.proceeds.zip(self.cost)?;
        Some(Gain { proceeds, cost })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sale {
    pub quantity: Units,
    pub value: Option<Units>,
    pub parts: Vec<Part>,
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

impl Sale {
    /// Splits the value: each part's proceeds are rounded down, and the rest goes to the last
    /// matched part. Units beyond the lots are the last part.
    pub(super) fn new(quantity: Units, value: Option<Units>, mut parts: Vec<Part>) -> Self {
        let matched = parts.iter().fold(Units::ZERO, |sum, part| sum.saturating_add(part.quantity));
        let of_matched = value.map(|value| share(value, matched, quantity));
        let (mut left, count) = (of_matched, parts.len());
        for (at, part) in parts.iter_mut().enumerate() {
            let is_last = at + 1 == count;
            part.proceeds = value.zip(left).map(|(value, left)| {
                if is_last { left } else { share(value, part.quantity, quantity).min(left) }
            });
            left = left.zip(part.proceeds).map(|(left, proceeds)| left.saturating_sub(proceeds));
        }
        let unmatched = quantity.saturating_sub(matched);
        if !unmatched.is_zero() {
            let proceeds = value.zip(of_matched).map(|(all, matched)| all.saturating_sub(matched));
            let origin = Origin::Unmatched;
            parts.push(Part { quantity: unmatched, cost: None, proceeds, origin });
        }
        Self { quantity, value, parts }
    }

    /// The sum over parts with a cost and proceeds; `None` where there is no such part.
    pub fn gain(&self) -> Option<Gain> {
        self.parts.iter().filter_map(Part::gain).reduce(|sum, part| Gain {
            proceeds: sum.proceeds.saturating_add(part.proceeds),
            cost: sum.cost.saturating_add(part.cost),
        })
    }
}
