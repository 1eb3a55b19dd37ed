//! The book of one token: entries oldest first.

use super::Method;
use super::lots::Lots;
use super::position::TokenPosition;
use super::sale::{Origin, Part, Sale};
use crate::domain::{Side, Units};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookEntry {
    pub side: Side,
    /// Without one, or with zero, the row is only counted.
    pub quantity: Option<Units>,
    /// Base units of native coin.
    pub native: Option<Units>,
    /// The caller's number of the row; a sale names the rows of its lots.
    pub row: usize,
}

#[derive(Debug)]
pub struct Book {
    held: Lots,
    position: TokenPosition,
    /// Sums of all entries, including those before the period.
    bought: Units,
    sold: Units,
}

impl Book {
    pub fn new(method: Method) -> Self {
        let held = Lots::new(method);
        let position = TokenPosition::default();
        Self { held, position, bought: Units::ZERO, sold: Units::ZERO }
    }

    pub fn position(&self) -> &TokenPosition {
        &self.position
    }

    /// Begins the period of the position: holdings are carried over, and the sums of the entries so
    /// far are dropped.
    pub fn begin_period(&mut self) {
        let TokenPosition { open, open_unvalued, open_cost, .. } = self.position;
        self.position = TokenPosition {
            open,
            open_unvalued,
            open_cost,
            opening: open,
            opening_cost: open_cost,
            ..TokenPosition::default()
        };
    }

    /// Enters the next row; returns a sell that has an amount, with its parts.
    pub fn enter(&mut self, entry: BookEntry) -> Option<Sale> {
        let position = &mut self.position;
        let (total, ever) = match entry.side {
            Side::Buy => {
                position.buys += 1;
                (&mut position.bought, &mut self.bought)
            }
            Side::Sell => {
                position.sells += 1;
                (&mut position.sold, &mut self.sold)
            }
        };
        // No token has more than the integer holds: such an amount counts as unknown.
        let known = entry.quantity.filter(|quantity| !quantity.is_zero());
        let Some((quantity, sum)) = known.and_then(|q| Some((q, ever.checked_add(q)?))) else {
            position.without_amount += 1;
            return None;
        };
        *ever = sum;
        // Never saturates: it is at most the sum of all entries.
        *total = total.saturating_add(quantity);
        position.unvalued += u64::from(entry.native.is_none());
        match entry.side {
            Side::Buy => {
                self.buy(quantity, entry.native, entry.row);
                None
            }
            Side::Sell => Some(self.sell(quantity, entry.native)),
        }
    }

    fn buy(&mut self, quantity: Units, cost: Option<Units>, row: usize) {
        let position = &mut self.position;
        // Never saturates: it is at most what was bought in all.
        position.open = position.open.saturating_add(quantity);
        match cost {
            Some(cost) => {
                position.spent = position.spent.saturating_add(cost);
                position.open_cost = position.open_cost.saturating_add(cost);
            }
            None => position.open_unvalued = position.open_unvalued.saturating_add(quantity),
        }
        self.held.add(quantity, cost, row);
    }

    fn sell(&mut self, quantity: Units, value: Option<Units>) -> Sale {
        let matched = quantity.min(self.position.open);
        let taken = self.held.take(matched);
        self.reduce_open(matched, &taken);
        let sale = Sale::new(quantity, value, taken);
        self.add_sale(&sale);
        sale
    }

    fn reduce_open(&mut self, matched: Units, taken: &[Part]) {
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

    fn add_sale(&mut self, sale: &Sale) {
        let position = &mut self.position;
        let add = |sum: &mut Units, part: Units| *sum = sum.saturating_add(part);
        add(&mut position.received, sale.value.unwrap_or_default());
        for part in &sale.parts {
            match (part.proceeds, part.cost, part.origin) {
                (proceeds, _, Origin::Unmatched) => {
                    add(&mut position.unmatched, part.quantity);
                    add(&mut position.unmatched_proceeds, proceeds.unwrap_or_default());
                }
                (Some(proceeds), None, _) => add(&mut position.unvalued_proceeds, proceeds),
                (None, Some(cost), _) => add(&mut position.unvalued_cost, cost),
                (Some(_), Some(_), _) | (None, None, _) => {}
            }
        }
        let Some(gain) = sale.gain() else { return };
        add(&mut position.cost, gain.cost);
        position.realised += gain.realised();
        position.judged += 1;
        position.wins += u64::from(gain.realised().is_positive());
    }
}
