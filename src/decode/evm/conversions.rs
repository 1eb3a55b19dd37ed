//! Which tokens a conversion at a fixed price exchanged: a peg module's event states an amount of
//! one token and a fee in the other, and names neither.

use super::fixed_rate::are_alike;
use super::ledger::Move;
use super::transaction::{Account, Log};
use super::words::{ZERO, units, words};
use crate::domain::Units;
use crate::registry::{Event, Peg};

/// What one event states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conversion {
    module: Account,
    amount: Units,
    fee: Units,
    /// Whether the module gave the pegged token, and did not take it.
    mints: bool,
}

impl Conversion {
    pub(super) fn read(event: &Event, log: &Log) -> Option<Self> {
        let (Peg { amount, fee }, mints) = match (event.mints, event.burns) {
            (Some(peg), _) => (peg, true),
            (None, peg) => (peg?, false),
        };
        let word = |at| words(log).nth(at).map(units);
        let (amount, fee) = (word(amount)?, word(fee)?);
        let one = Self { module: log.address, amount, fee, mints };
        (!amount.is_zero()).then_some(one)
    }

    /// Whether a token moved as one of the two does: by the amount itself from account to account, or by as
    /// much in its own decimals out of the module's hands, or into them, without the fee.
    pub(super) fn is_of(&self, m: &Move) -> bool {
        let is_made = |account: &Account| *account == ZERO || *account == self.module;
        let between = m.from != ZERO && m.to != ZERO;
        let pegged = is_made(if self.mints { &m.from } else { &m.to });
        (between && m.amount == self.amount) || (pegged && self.fits(m.amount))
    }

    fn fits(&self, moved: Units) -> bool {
        let whole =
            if self.mints { moved.checked_add(self.fee) } else { moved.checked_sub(self.fee) };
        whole.is_some_and(|whole| are_alike(whole, self.amount))
    }
}
