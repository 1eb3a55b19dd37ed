//! Pure: what a token account held after one transaction is what it held before the next one. Where
//! that is not so, a transaction is missing between the two.

use std::collections::{BTreeMap, HashMap};

use super::full_pages::FIRST_SLOT;
use super::wire::Balance;
use crate::decode::solana::Transaction;
use crate::domain::Height;

/// Balances of one account before and after some transaction.
type Change = [Option<u64>; 2];

/// Slots between which a transaction of an account is missing, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BalanceGap {
    pub(super) account: [u8; 32],
    pub(super) low: Height,
    pub(super) high: Height,
}

#[derive(Debug, Default)]
pub(super) struct BalanceChain {
    /// What each account held before its lowest transaction so far, and the slot of that one.
    before: HashMap<[u8; 32], (Height, Option<u64>)>,
    /// What was reported of accounts, and at which slot.
    reported: HashMap<[u8; 32], (Height, u64)>,
    /// The lowest slot so far.
    low: Option<Height>,
}

impl BalanceChain {
    /// Takes what nodes report of accounts, for a read up to `head`: what moved an account above
    /// that slot is not read.
    pub(super) fn report(&mut self, balances: &[Balance], head: Height) {
        let known = balances.iter().filter(|balance| balance.at <= head);
        self.reported.extend(known.map(|of| (of.account, (of.at, of.amount))));
    }

    /// Takes all transactions of the slots below those before, newest first; `None` for one that is
    /// not known. `is_listed`: all transactions of the account at this slot are among them.
    /// `is_oldest`: nothing of the account is below this slot.
    pub(super) fn add(
        &mut self,
        txs: &[(Height, Option<&Transaction>)],
        is_listed: impl Fn(&[u8; 32], Height) -> bool,
        is_oldest: impl Fn(&[u8; 32], Height) -> bool,
    ) -> Vec<BalanceGap> {
        let mut slots: BTreeMap<Height, Vec<Option<&Transaction>>> = BTreeMap::new();
        for (slot, tx) in txs.iter().filter(|(slot, _)| self.low.is_none_or(|low| *slot < low)) {
            slots.entry(*slot).or_default().push(*tx);
        }
        let mut gaps = Vec::new();
        for (slot, txs) in slots.into_iter().rev() {
            self.low = Some(slot);
            let txs: Option<Vec<&Transaction>> = txs.into_iter().collect();
            let Some(txs) = txs.filter(|_| slot >= FIRST_SLOT) else {
                self.before.clear();
                self.reported.clear();
                continue;
            };
            let mut changes: HashMap<[u8; 32], Vec<Change>> = HashMap::new();
            for (account, change) in txs.into_iter().flat_map(Transaction::token_balances) {
                changes.entry(account).or_default().push(change);
            }
            for (account, changes) in changes {
                let above = self.above(&account, slot);
                if !is_listed(&account, slot) {
                    continue;
                }
                let (before, fits) = before(&changes, above.map(|(_, held)| held));
                self.before.insert(account, (slot, before));
                if let Some((high, _)) = above.filter(|_| !fits) {
                    gaps.push(BalanceGap { account, low: slot, high });
                }
                if before.is_some() && is_oldest(&account, slot) {
                    gaps.push(BalanceGap { account, low: 0, high: slot });
                }
            }
        }
        gaps
    }

    /// What the account held after this slot, and the slot which shows it.
    fn above(&mut self, account: &[u8; 32], slot: Height) -> Option<(Height, u64)> {
        let reported = self.reported.remove(account).filter(|(at, _)| *at >= slot);
        match self.before.remove(account) {
            Some((at, held)) => Some((at, held?)),
            None => reported,
        }
    }
}

/// What an account held before the transactions of a slot, whose order is not known, and whether
/// they lead to what it held after them.
fn before(changes: &[Change], after: Option<u64>) -> (Option<u64>, bool) {
    if let [[before, own_after]] = changes {
        let fits = after.zip(*own_after).is_none_or(|(after, own)| after == own);
        return (*before, fits);
    }
    let whole =
        |at: usize| changes.iter().map(|change| change.get(at).copied().flatten()).collect();
    let (Some(mut open), Some(reached)): (Option<Vec<u64>>, Option<Vec<u64>>) =
        (whole(0), whole(1))
    else {
        return (None, true);
    };
    open.extend(after);
    let mut ends = 0;
    for amount in reached {
        match open.iter().position(|other| *other == amount) {
            Some(at) => _ = open.swap_remove(at),
            None => ends += 1,
        }
    }
    let fits = ends <= usize::from(after.is_none());
    let only = open.first().copied().filter(|_| open.len() == 1 && fits);
    (only, fits)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::decode::solana::parse;
    use crate::domain::{Address, TxId};

    const ACCOUNT: [u8; 32] = [7; 32];
    /// A slot above the first one that is looked at, and what was held before and after.
    type Moved = (Height, Option<u64>, Option<u64>);

    fn transaction((slot, before, after): Moved) -> Transaction {
        let owner = Address::Solana([9; 32]).to_string();
        let balance = |amount: Option<u64>| -> Value {
            let row = |amount: u64| {
                json!({"accountIndex": 1, "mint": owner, "owner": owner,
                       "uiTokenAmount": {"amount": amount.to_string(), "decimals": 6}})
            };
            amount.map(row).into_iter().collect()
        };
        let keys = [owner.clone(), Address::Solana(ACCOUNT).to_string()];
        let tx = json!({
            "slot": FIRST_SLOT + slot, "blockTime": 1,
            "transaction": {"signatures": [TxId::solana(&[1; 64]).to_string()], "message": {
                "header": {"numRequiredSignatures": 1}, "accountKeys": keys, "instructions": []}},
            "meta": {"err": null, "fee": 0, "preBalances": [0, 0], "postBalances": [0, 0],
                     "preTokenBalances": balance(before), "postTokenBalances": balance(after),
                     "innerInstructions": []},
        });
        parse(tx.to_string().as_bytes()).unwrap()
    }

    /// The slots of the gaps; nothing is below the slot `oldest`.
    fn gaps(chain: &mut BalanceChain, moved: &[Moved], oldest: Height) -> Vec<(Height, Height)> {
        let txs: Vec<Transaction> = moved.iter().copied().map(transaction).collect();
        let txs: Vec<_> = txs.iter().map(|tx| (tx.slot(), Some(tx))).collect();
        let found = chain.add(&txs, |_, _| true, |_, slot| slot == FIRST_SLOT + oldest);
        let slots = |gap: BalanceGap| {
            let above = |slot: Height| slot.saturating_sub(FIRST_SLOT);
            (above(gap.low), above(gap.high))
        };
        found.into_iter().map(slots).collect()
    }

    #[test]
    fn what_was_held_between_two_transactions_is_the_same_by_both() {
        let some = Some;
        for (moved, expected) in [
            (&[(9, some(5), some(2)), (8, some(4), some(5)), (1, None, some(4))][..], &[][..]),
            (&[(9, some(5), some(2)), (1, None, some(4))], &[(1, 9)]),
            // It was closed and opened in between, or its record shows nothing.
            (&[(9, some(5), some(2)), (5, some(7), None), (4, None, some(7))], &[]),
            (&[(9, None, some(2)), (5, some(7), some(8))], &[]),
            // Of one slot, in any order; 3 to 4 is missing.
            (&[(9, some(5), some(2)), (8, some(4), some(5)), (8, some(3), some(4))], &[]),
            (&[(9, some(5), some(2)), (8, some(3), some(4)), (8, some(4), some(5))], &[]),
            (&[(9, some(5), some(2)), (8, some(2), some(3)), (8, some(4), some(5))], &[(8, 9)]),
        ] {
            let mut chain = BalanceChain::default();
            assert_eq!(gaps(&mut chain, moved, 0), expected, "{moved:?}");
        }
    }

    #[test]
    fn what_was_held_goes_on_from_one_part_to_the_next() {
        let mut chain = BalanceChain::default();
        assert_eq!(gaps(&mut chain, &[(9, Some(5), Some(2))], 0), []);
        // Looked at already.
        assert_eq!(gaps(&mut chain, &[(9, Some(5), Some(2))], 0), []);
        assert_eq!(gaps(&mut chain, &[(4, None, Some(3))], 0), [(4, 9)]);
    }

    #[test]
    fn what_is_held_now_and_at_first_is_shown_by_the_ends() {
        let account = ACCOUNT;
        for (reported, at, oldest, expected) in [
            (2, 9, 0, &[][..]),
            (3, 9, 0, &[(9, 9)]),
            // It moved since, or above the head.
            (3, 8, 0, &[]),
            (3, 10, 0, &[]),
            // It held something before its first transaction.
            (2, 9, 9, &[(0, 9)]),
        ] {
            let mut chain = BalanceChain::default();
            let balance = Balance { account, amount: reported, at: FIRST_SLOT + at };
            chain.report(&[balance], FIRST_SLOT + 9);
            let found = gaps(&mut chain, &[(9, Some(5), Some(2))], oldest);
            assert_eq!(found, expected, "{reported} {at}");
        }
    }

    #[test]
    fn nothing_is_known_across_a_transaction_that_is_missing() {
        let mut chain = BalanceChain::default();
        let above = transaction((9, Some(5), Some(2)));
        let below = transaction((1, None, Some(4)));
        let txs =
            [(above.slot(), Some(&above)), (FIRST_SLOT + 5, None), (below.slot(), Some(&below))];
        assert_eq!(chain.add(&txs, |_, _| true, |_, _| false), []);
    }
}
