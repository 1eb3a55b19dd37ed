//! Sums over a token's rows, and over all tokens.

use super::share::multiply_divide;
use super::signed::Signed;
use crate::domain::{Decimal, Units};

/// Digits of an average cost below a base unit of native coin.
const AVERAGE_DIGITS: u8 = 12;

/// One token. Quantities are in the unit of the entries, values in base units of native coin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenPosition {
    pub buys: u64,
    pub sells: u64,
    /// Rows without an amount. Only `buys` or `sells` counts them as well.
    pub without_amount: u64,
    /// Rows with an amount and without a native value.
    pub unvalued: u64,
    pub bought: Units,
    pub sold: Units,
    /// Paid in buys and received in sells, where that is known.
    pub spent: Units,
    pub received: Units,
    /// Proceeds less cost of units that were bought and sold at known values.
    pub realised: Signed,
    /// The cost within `realised`.
    pub cost: Units,
    /// Proceeds of units that were bought without a value.
    pub unvalued_proceeds: Units,
    /// Cost of units that were sold without a value.
    pub unvalued_cost: Units,
    /// Units sold beyond what was bought, and their proceeds.
    pub unmatched: Units,
    pub unmatched_proceeds: Units,
    /// Units held when the period began, and their known cost.
    pub opening: Units,
    pub opening_cost: Units,
    /// Units still held, how many of them were bought without a value, and the cost of the others.
    pub open: Units,
    pub open_unvalued: Units,
    pub open_cost: Units,
    /// Sells with a part that counts in `realised`, and how many of them had a gain.
    pub judged: u64,
    pub wins: u64,
}

impl TokenPosition {
    /// Whether no row is of the period and nothing was carried over into it.
    pub(super) fn is_untouched(&self) -> bool {
        self.buys == 0 && self.sells == 0 && self.opening.is_zero()
    }

    /// Average cost in native coin of one whole token that is held at a known cost, rounded down.
    /// It has digits below a base unit of the coin, because many tokens cost less than one.
    /// `decimals` are those of the quantities, `native` those of the coin.
    pub fn average_cost(&self, decimals: u8, native: u8) -> Option<Decimal> {
        let held = self.open.saturating_sub(self.open_unvalued);
        let cut = |further: u8| {
            let power = Units::from(decimals).checked_add(Units::from(further))?;
            let whole = Units::from(10).checked_pow(power)?;
            let units = multiply_divide(self.open_cost, whole, held)?;
            Some(Decimal { units, decimals: native.checked_add(further)? })
        };
        // Without these digits where the number would not fit.
        cut(AVERAGE_DIGITS).or_else(|| cut(0))
    }

    /// Adds counts and values of another token. Quantities stay: those of two tokens have no sum.
    /// No sum saturates: native coin in existence is far below the width of the integer.
    pub fn add(&mut self, position: &Self) {
        let sum = |total: &mut Units, part: Units| *total = total.saturating_add(part);
        self.buys += position.buys;
        self.sells += position.sells;
        self.without_amount += position.without_amount;
        self.unvalued += position.unvalued;
        sum(&mut self.spent, position.spent);
        sum(&mut self.received, position.received);
        self.realised += position.realised;
        sum(&mut self.cost, position.cost);
        sum(&mut self.unvalued_proceeds, position.unvalued_proceeds);
        sum(&mut self.unvalued_cost, position.unvalued_cost);
        sum(&mut self.unmatched_proceeds, position.unmatched_proceeds);
        sum(&mut self.opening_cost, position.opening_cost);
        sum(&mut self.open_cost, position.open_cost);
        self.judged += position.judged;
        self.wins += position.wins;
    }
}
