//! Finds which of many wallets have new signatures: requests the newest few of each, in batches.

use serde_json::json;

use super::fetch::page_call;
use super::list::Entry;
use super::{SolanaSource, wire};
use crate::domain::{Address, Height};
use crate::rpc::{Call, CallOptions, CallResponse, Result, UpstreamError};
use crate::sources::scan::{ScanTarget, Scanned, lowest_unseen};

impl SolanaSource {
    pub(crate) async fn scan(
        &self,
        targets: &[ScanTarget],
        options: &CallOptions,
    ) -> Result<Scanned> {
        let limit = self.inner.limits.scan_entries;
        let list = |target: &ScanTarget| page_call(target.wallet, limit, None, None);
        let slot = Call { method: "getSlot", params: json!([{"commitment": "finalized"}]) };
        let calls: Vec<Call> = [slot].into_iter().chain(targets.iter().map(list)).collect();
        let mut answers = self.inner.pool.batch(&calls, options).await.into_iter();
        let slot = answers.next().unwrap_or(Err(UpstreamError::NoEndpoint))?;
        let high = wire::number(&slot.result)
            .ok_or_else(|| self.malformed(slot.endpoint, "getSlot gave no number"))?;
        let mut moved = Vec::new();
        for (target, answer) in targets.iter().zip(answers) {
            let entries = self.entries(&answer?)?;
            moved.extend(newest(&entries, target.top, limit).map(|at| (target.wallet, at)));
        }
        moved.extend(self.moved_by_owner(targets, high, options).await);
        Ok(Scanned { low: 0, high, moved })
    }

    /// Wallets whose token balances changed in transactions that may not name them.
    async fn moved_by_owner(
        &self,
        targets: &[ScanTarget],
        high: Height,
        options: &CallOptions,
    ) -> Vec<(Address, Height)> {
        let limits = &self.inner.limits;
        let low = lowest_unseen(targets, high, limits.gateway_slots_max - 1);
        if !self.is_scanned((low, high)) {
            return Vec::new();
        }
        let mut moved = Vec::new();
        for group in targets.chunks(limits.gateway_wallets_max.max(1)) {
            let wallets: Vec<Address> = group.iter().map(|target| target.wallet).collect();
            let found = match self.owned(&wallets, (low, high), options).await {
                Ok(found) => found,
                Err(error) => {
                    tracing::debug!(%error, low, high, "the gateway shows no owners");
                    continue;
                }
            };
            for target in group {
                let own = found.iter().filter(|(owner, _)| target.wallet.bytes() == owner);
                let above = own.map(|(_, entry)| entry).filter(|entry| entry.slot > target.top);
                let newest =
                    above.filter(|entry| !entry.has_failed()).map(|entry| entry.slot).max();
                moved.extend(newest.map(|at| (target.wallet, at)));
            }
        }
        moved
    }

    pub(super) fn entries(&self, answer: &CallResponse) -> Result<Vec<Entry>> {
        wire::signatures(&answer.result)
            .ok_or_else(|| self.malformed(answer.endpoint, "getSignaturesForAddress gave no list"))
    }
}

/// The highest slot above `top` with a transaction that succeeded. Where failed ones fill the page,
/// one that succeeded may be below them.
fn newest(entries: &[Entry], top: Height, limit: usize) -> Option<Height> {
    let above = || entries.iter().filter(|entry| entry.slot > top);
    let done = above().filter(|entry| !entry.has_failed()).map(|entry| entry.slot).max();
    let is_filled = above().count() >= limit;
    done.or_else(|| above().map(|entry| entry.slot).max().filter(|_| is_filled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::TxId;

    fn entry(slot: Height, failed: bool) -> Entry {
        Entry { slot, id: TxId::solana(&[1; 64]), time: None, failed: Some(failed) }
    }

    #[test]
    fn failed_transactions_move_no_wallet_unless_they_fill_the_page() {
        assert_eq!(newest(&[entry(9, false), entry(3, false)], 5, 3), Some(9));
        assert_eq!(newest(&[entry(9, true), entry(7, false)], 5, 3), Some(7));
        assert_eq!(newest(&[entry(9, true), entry(5, false)], 5, 3), None);
        assert_eq!(newest(&[entry(9, true), entry(8, true), entry(7, true)], 5, 3), Some(9));
        assert_eq!(newest(&[], 5, 3), None);
    }
}
