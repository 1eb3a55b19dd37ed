//! Removes dividends from a wallet's movements: what a token's tracker pays to holders while the
//! token moves, and what a hook pays to a coin's creator. They are income next to the exchange, not
//! part of it.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Asset, Move};
use super::scene::Scene;
use super::transaction::{Account, Log, Word};
use super::words::{ZERO, address, topic, units, word};
use crate::decode::flow::Flow;
use crate::domain::Units;

/// `DividendWithdrawn(address,uint256)`: the holder and the amount. The event names no asset.
const WITHDRAWN: Word = topic("ee503bee2bb6a87e57bc57db795f98137327401a0e7b7ce42e37926cc1a9ca4d");
/// Zora's `CoinMarketRewardsV4`: coin, currency, creator, four other accounts; then ten amounts,
/// the creator's first.
const MARKET: Word = topic("35b5031218696db1dfd903223a47f38e66a1998e14a942a5d60fddaa49a685fc");
/// Zora's `CreatorCoinRewards`, coin indexed: currency, creator, protocol; then two amounts.
const CREATOR: Word = topic("ea92473287be4e55f8279d0b8395a45960a217ae2f1a76ac9cae84af58a751ed");
/// Limit of dividend events per transaction, because any contract may log thousands.
const EVENT_COUNT_MAX: usize = 64;

/// A payment to the wallet that the paying contract's own event states.
struct Payment {
    by: Account,
    asset: Option<Asset>,
    amount: Units,
}

/// Removes dividends from `flows`. Returns whether an event states a dividend that no movement
/// shows and that may have been native coin.
pub(super) fn remove(scene: &Scene<'_>, flows: &mut BTreeMap<Asset, Flow>) -> bool {
    let (mut unseen, mut taken) = (false, BTreeSet::new());
    for Payment { by, asset, amount } in stated(scene) {
        let pays = |m: &&Move| {
            let is_it = m.from == by && m.to == *scene.wallet && m.amount == amount;
            is_it && asset.is_none_or(|asset| asset == m.asset)
        };
        let mut moves = scene.ledger.moves.iter().enumerate();
        let paid = moves.find(|(at, one)| !taken.contains(at) && pays(one));
        let flow = paid.and_then(|(at, one)| Some((at, flows.get_mut(&one.asset)?)));
        if let Some((at, flow)) = flow {
            taken.insert(at);
            flow.got = flow.got.saturating_sub(amount);
        } else {
            unseen |= asset.is_none_or(|asset| asset == Asset::Native);
        }
    }
    unseen
}

fn stated<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = Payment> + 'a {
    let logs = scene.tx.logs.iter().filter_map(|log| payment(log, scene.wallet));
    logs.take(EVENT_COUNT_MAX)
}

fn payment(log: &Log, wallet: &Account) -> Option<Payment> {
    let (holder, currency, amount) = match log.topics.as_slice() {
        [WITHDRAWN, holder] => (holder, None, word(log, 0)?),
        [MARKET] => (word(log, 2)?, Some(word(log, 1)?), word(log, 7)?),
        [CREATOR, _] => (word(log, 1)?, Some(word(log, 0)?), word(log, 3)?),
        _ => return None,
    };
    let asset = match currency.map(address) {
        None => None,
        Some(currency) if currency? == ZERO => Some(Asset::Native),
        Some(currency) => Some(Asset::Token(currency?)),
    };
    let amount = units(amount);
    let is_wallets = address(holder).as_ref() == Some(wallet) && !amount.is_zero();
    is_wallets.then_some(Payment { by: log.address, asset, amount })
}
