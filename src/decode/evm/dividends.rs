//! What trackers of a token pay to its holders while the token moves: an income next to the exchange,
//! no part of it.

use std::collections::BTreeMap;

use super::ledger::{Asset, Move};
use super::scene::Scene;
use super::transaction::{Account, Word};
use super::words::{address, topic, units, word};
use crate::decode::flow::Flow;
use crate::domain::Units;

/// `DividendWithdrawn(address,uint256)`: who is paid, and how much. It names no asset.
const WITHDRAWN: Word = topic("ee503bee2bb6a87e57bc57db795f98137327401a0e7b7ce42e37926cc1a9ca4d");
/// Events of one transaction that are read: any contract may log thousands.
const EVENT_COUNT_MAX: usize = 64;

/// Removes what trackers paid to the wallet. Whether it may have got more, which no movement shows.
pub(super) fn leave_out(scene: &Scene<'_>, flows: &mut BTreeMap<Asset, Flow>) -> bool {
    let mut unseen = false;
    for (tracker, amount) in stated(scene) {
        let pays = |m: &&Move| m.from == tracker && m.to == *scene.wallet && m.amount == amount;
        let paid = scene.ledger.moves.iter().find(pays);
        if let Some(flow) = paid.and_then(|paid| flows.get_mut(&paid.asset)) {
            flow.got = flow.got.saturating_sub(amount);
        } else {
            unseen = true;
        }
    }
    unseen
}

/// The contracts that say that they pay the wallet, with the amounts.
fn stated(scene: &Scene<'_>) -> impl Iterator<Item = (Account, Units)> {
    let logs = scene.tx.logs.iter().filter_map(|log| match log.topics.as_slice() {
        [WITHDRAWN, holder] if address(holder) == Some(*scene.wallet) => {
            Some((log.address, units(word(log, 0)?)))
        }
        _ => None,
    });
    logs.take(EVENT_COUNT_MAX)
}
