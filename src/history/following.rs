//! Followed wallets by chain, with what shared scans and the wallets' own reads have found.
//!
//! A scan only decides when a wallet is read itself. It changes neither coverage nor proofs, and
//! wallets in which scans find nothing are read in turn as well.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use tokio::time::Instant;

use super::limits::HistoryLimits;
use crate::domain::{Address, ChainId, Height, Wallet, lock};
use crate::sources::{ScanTarget, Scanned};

/// Whether a followed wallet needs its own read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// No scan covers it: it is read as often as a wallet that clients request.
    Unscanned,
    /// The last scan found nothing new.
    Quiet,
    /// A scan found something above its coverage, or its last own read is too long ago.
    Due,
}

#[derive(Debug, Clone, Copy)]
struct Followed {
    /// The highest covered height, and when the last own read began.
    top: Height,
    read_at: Instant,
    /// Scans found nothing between `top` and this height; `None`: no scan yet, or the last one
    /// failed.
    seen: Option<Height>,
    /// Height at which a scan found something.
    moved: Option<Height>,
    /// When the wallet became due.
    due_at: Option<Instant>,
    /// When its worker last called.
    attended_at: Instant,
}

impl Followed {
    fn new(top: Height, now: Instant) -> Self {
        Self { top, read_at: now, seen: None, moved: None, due_at: None, attended_at: now }
    }

    fn standing(&self) -> Standing {
        match (self.due_at, self.seen) {
            (Some(_), _) => Standing::Due,
            (None, Some(_)) => Standing::Quiet,
            (None, None) => Standing::Unscanned,
        }
    }

    /// Records the wallet's own reads. A read that began before a scan may have missed what the
    /// scan found.
    fn record_read(&mut self, top: Height, read_at: Option<Instant>, now: Instant) {
        self.top = top;
        self.attended_at = now;
        self.read_at = read_at.map_or(self.read_at, |at| at.max(self.read_at));
        if self.moved.is_some_and(|height| height <= top) {
            (self.moved, self.due_at) = (None, None);
        }
        if self.due_at.is_some_and(|at| self.read_at >= at) {
            self.due_at = None;
        }
    }
}

#[derive(Debug, Default)]
struct Table {
    chains: HashMap<ChainId, HashMap<Address, Followed>>,
    /// Chains that have a scan task.
    scanned: HashSet<ChainId>,
}

#[derive(Debug, Default)]
pub(super) struct Following(Mutex<Table>);

impl Following {
    /// Records a worker's coverage and when its last read began. Returns the wallet's standing, and
    /// whether the caller must start the chain's scan task.
    pub(super) fn record_read(
        &self,
        wallet: Wallet,
        top: Height,
        read_at: Option<Instant>,
    ) -> (Standing, bool) {
        let (mut table, now) = (lock(&self.0), Instant::now());
        let wallets = table.chains.entry(wallet.chain).or_default();
        let followed = wallets.entry(wallet.address).or_insert_with(|| Followed::new(top, now));
        followed.record_read(top, read_at, now);
        let standing = followed.standing();
        (standing, table.scanned.insert(wallet.chain))
    }

    /// The targets of the next scan; drops wallets that no worker has called for recently. Without
    /// targets the chain's scan task ends.
    pub(super) fn targets(&self, chain: ChainId, limits: &HistoryLimits) -> Vec<ScanTarget> {
        let mut table = lock(&self.0);
        let wallets = table.chains.entry(chain).or_default();
        wallets.retain(|_, followed| followed.attended_at.elapsed() <= limits.follow_lapse);
        let target = |(wallet, followed): (&Address, &Followed)| ScanTarget {
            wallet: *wallet,
            top: followed.top,
            seen: followed.seen.unwrap_or(followed.top).max(followed.top),
        };
        let targets: Vec<ScanTarget> = wallets.iter().map(target).collect();
        if targets.is_empty() {
            table.chains.remove(&chain);
            table.scanned.remove(&chain);
        }
        targets
    }

    /// Records a scan; returns the wallets that are due: those in which it found something, and
    /// those whose last own read is longest ago.
    pub(super) fn scanned(
        &self,
        chain: ChainId,
        targets: &[ScanTarget],
        scan: &Scanned,
        limits: &HistoryLimits,
    ) -> Vec<Address> {
        let (mut table, now) = (lock(&self.0), Instant::now());
        let Some(wallets) = table.chains.get_mut(&chain) else { return Vec::new() };
        for target in targets {
            if let Some(followed) = wallets.get_mut(&target.wallet) {
                let is_covered = target.seen.saturating_add(1) >= scan.low;
                followed.seen = is_covered.then(|| target.seen.max(scan.high));
            }
        }
        for (wallet, height) in &scan.moved {
            if let Some(followed) = wallets.get_mut(wallet) {
                followed.moved = Some(followed.moved.unwrap_or(0).max(*height));
            }
        }
        let mut due = Vec::new();
        for (wallet, followed) in wallets.iter_mut() {
            if followed.moved.is_some_and(|height| height > followed.top) {
                followed.due_at = Some(now);
                due.push(*wallet);
            }
        }
        due.extend(overdue(wallets, limits, now));
        due
    }

    /// Records a failed scan: until the next one each wallet is read itself. False if the last scan
    /// failed too.
    pub(super) fn failed(&self, chain: ChainId) -> bool {
        let mut table = lock(&self.0);
        let wallets = table.chains.get_mut(&chain).into_iter().flat_map(HashMap::values_mut);
        let mut was_scanned = false;
        for followed in wallets {
            was_scanned |= followed.seen.take().is_some();
        }
        was_scanned
    }

    /// Number of followed wallets.
    pub(super) fn count(&self) -> usize {
        lock(&self.0).chains.values().map(HashMap::len).sum()
    }
}

/// Marks and returns quiet wallets whose own read is overdue, oldest first, at most the limit per
/// scan.
fn overdue(
    wallets: &mut HashMap<Address, Followed>,
    limits: &HistoryLimits,
    now: Instant,
) -> Vec<Address> {
    let is_old = |followed: &Followed| {
        let age = now.saturating_duration_since(followed.read_at);
        followed.due_at.is_none() && age >= limits.follow_read_after
    };
    let old = wallets.iter().filter(|(_, followed)| is_old(followed));
    let mut old: Vec<(Instant, Address)> =
        old.map(|(wallet, followed)| (followed.read_at, *wallet)).collect();
    old.sort_unstable();
    old.truncate(limits.follow_reads_per_scan.max(1));
    for (_, wallet) in &old {
        if let Some(followed) = wallets.get_mut(wallet) {
            followed.due_at = Some(now);
        }
    }
    old.into_iter().map(|(_, wallet)| wallet).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const CHAIN: ChainId = ChainId(3);
    const ONE: Wallet = Wallet { chain: CHAIN, address: Address::Evm([1; 20]) };
    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> HistoryLimits {
        HistoryLimits::default()
    }

    fn scan(following: &Following, high: Height, moved: &[Height]) -> Vec<Address> {
        let targets = following.targets(CHAIN, &limits());
        let moved = moved.iter().map(|at| (ONE.address, *at)).collect();
        following.scanned(CHAIN, &targets, &Scanned { low: 1, high, moved }, &limits())
    }

    fn standing(following: &Following, top: Height, read_at: Option<Instant>) -> Standing {
        following.record_read(ONE, top, read_at).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_wallet_is_due_until_its_own_read_has_come_to_what_a_scan_found() {
        let following = Following::default();
        assert_eq!(following.record_read(ONE, 10, None), (Standing::Unscanned, true));
        tokio::time::advance(SECOND).await;
        assert_eq!(scan(&following, 20, &[]), []);
        assert_eq!(standing(&following, 10, None), Standing::Quiet);
        assert_eq!(scan(&following, 30, &[25]), [ONE.address]);
        assert_eq!(standing(&following, 10, None), Standing::Due);
        // A read that began before the scan does not count. One that began later counts for a
        // while, though its node lags.
        let before = Instant::now().checked_sub(SECOND);
        assert_eq!(standing(&following, 20, before), Standing::Due);
        tokio::time::advance(SECOND).await;
        assert_eq!(standing(&following, 20, Some(Instant::now())), Standing::Quiet);
        tokio::time::advance(SECOND * 9).await;
        assert_eq!(scan(&following, 40, &[]), [ONE.address], "it has not come to 25 yet");
        assert_eq!(standing(&following, 25, None), Standing::Quiet);
        assert_eq!(scan(&following, 50, &[25]), []);
    }

    #[tokio::test(start_paused = true)]
    async fn no_scan_vouches_for_long_or_after_a_failure() {
        let following = Following::default();
        standing(&following, 10, None);
        scan(&following, 20, &[]);
        assert!(following.failed(CHAIN));
        assert!(!following.failed(CHAIN));
        assert_eq!(standing(&following, 10, None), Standing::Unscanned);
        let targets = following.targets(CHAIN, &limits());
        let late = Scanned { low: 12, high: 20, moved: Vec::new() };
        assert_eq!(following.scanned(CHAIN, &targets, &late, &limits()), []);
        assert_eq!(standing(&following, 10, None), Standing::Unscanned, "11 was not looked at");
        scan(&following, 20, &[]);
        tokio::time::advance(limits().follow_read_after).await;
        assert_eq!(standing(&following, 10, None), Standing::Quiet);
        assert_eq!(scan(&following, 30, &[]), [ONE.address]);
        assert_eq!(standing(&following, 10, None), Standing::Due);
        assert_eq!(standing(&following, 10, Some(Instant::now())), Standing::Quiet);
    }

    #[tokio::test(start_paused = true)]
    async fn own_reads_of_quiet_wallets_take_turns() {
        let following = Following::default();
        let limits = HistoryLimits { follow_reads_per_scan: 2, ..limits() };
        let wallet = |n: u8| Wallet { chain: CHAIN, address: Address::Evm([n; 20]) };
        for n in 1..=5 {
            following.record_read(wallet(n), 10, None);
            tokio::time::advance(SECOND).await;
        }
        tokio::time::advance(limits.follow_read_after).await;
        let mut turns = Vec::new();
        for _ in 0..3 {
            for n in 1..=5 {
                let read_at = turns.contains(&wallet(n).address).then(Instant::now);
                following.record_read(wallet(n), 10, read_at);
            }
            let targets = following.targets(CHAIN, &limits);
            let quiet = Scanned { low: 1, high: 20, moved: Vec::new() };
            turns.extend(following.scanned(CHAIN, &targets, &quiet, &limits));
        }
        assert_eq!(turns, [1, 2, 3, 4, 5].map(|n| wallet(n).address));
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_worker_asks_about_is_forgotten_and_its_task_ends() {
        let following = Following::default();
        standing(&following, 10, None);
        tokio::time::advance(limits().follow_lapse).await;
        assert_eq!(following.targets(CHAIN, &limits()).len(), 1);
        tokio::time::advance(SECOND).await;
        assert!(following.targets(CHAIN, &limits()).is_empty());
        assert_eq!(following.count(), 0);
        assert_eq!(following.record_read(ONE, 10, None), (Standing::Unscanned, true));
    }
}
