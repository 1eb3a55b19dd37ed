//! What a token's rows come to, and all tokens together.

use super::share::multiply_divide;
use super::signed::Signed;
use crate::domain::{Decimal, Units};

/// Digits of an average cost behind a base unit of native coin.
const AVERAGE_DIGITS: u8 = 12;

/// One token. Quantities are in the unit of the entries, values in base units of native coin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenPosition {
    pub buys: u64,
    pub sells: u64,
    /// Rows without an amount: no other field holds anything of them.
    pub untold: u64,
    /// Rows with an amount and without a native value.
    pub unvalued: u64,
    pub bought: Units,
    pub sold: Units,
    /// Paid in buys, got in sells, where that is known.
    pub spent: Units,
    pub received: Units,
    /// Of what was sold with a value and had been bought with one: proceeds less cost.
    pub realised: Signed,
    /// The cost in it.
    pub cost: Units,
    /// Got for what had been bought without a value.
    pub unvalued_proceeds: Units,
    /// Cost of what was sold without a value.
    pub unvalued_cost: Units,
    /// Sold without having been bought before, and what was got for it.
    pub unmatched: Units,
    pub unmatched_proceeds: Units,
    /// Held when the period began, and the known cost of it.
    pub opening: Units,
    pub opening_cost: Units,
    /// Still held by the rows; of it, bought without a value.
    pub open: Units,
    pub open_unvalued: Units,
    pub open_cost: Units,
    /// Sells with a part that counts in `realised`, and those of them with a gain.
    pub judged: u64,
    pub wins: u64,
}

impl TokenPosition {
    /// No row of the period, and nothing carried over into it.
    pub(super) fn is_untouched(&self) -> bool {
        self.buys == 0 && self.sells == 0 && self.opening.is_zero()
    }

    /// What one whole token still held at a known cost was bought for, in native coin: cut, with
    /// digits beyond a base unit of it, of which many tokens cost less. `decimals` are those of the
    /// quantities, `native` those of the coin.
    pub fn average_cost(&self, decimals: u8, native: u8) -> Option<Decimal> {
        let held = self.open.saturating_sub(self.open_unvalued);
        let cut = |further: u8| {
            let power = Units::from(decimals).checked_add(Units::from(further))?;
            let whole = Units::from(10).checked_pow(power)?;
            let units = multiply_divide(self.open_cost, whole, held)?;
            Some(Decimal { units, decimals: native.checked_add(further)? })
        };
        // Without them where so long a number does not fit.
        cut(AVERAGE_DIGITS).or_else(|| cut(0))
    }

    /// Adds counts and values of another token. Quantities stay as they are: those of two tokens
    /// have no sum. Native coin in existence is far below the width of the integer.
    pub fn add(&mut self, position: &Self) {
        let sum = |total: &mut Units, part: Units| *total = total.saturating_add(part);
        self.buys += position.buys;
        self.sells += position.sells;
        self.untold += position.untold;
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
