//! Native coin where nobody tells what inner calls moved: only what a protocol guarantees.

use super::ledger::{Flow, Ledger};
use super::scene::Scene;
use super::trade::{Measure, Own};
use super::transaction::Account;

/// Whether the wallet gave, and whether it got, native coin, as far as that can be told.
pub(super) fn sides(
    scene: &Scene<'_>,
    ledger: &Ledger,
    wallet: &Account,
    own: &Own,
) -> (bool, bool) {
    let told = Measure::from(own.told);
    match told {
        Measure::Gave(_) => (true, false),
        Measure::Got(_) => (false, true),
        Measure::None | Measure::Unknown => {
            let unwrapped = !ledger.unwraps.is_empty() && scene.tx.from == *wallet;
            (false, own.gave() && !own.got() && unwrapped)
        }
    }
}

/// The native value of a trade against native coin alone.
pub(super) fn value(_scene: &Scene<'_>, _ledger: &Ledger, _wallet: &Account, own: &Own) -> Measure {
    let Flow { .. } = own.told;
    Measure::Unknown
}
