//! A chain's scan task, which runs while there are followed wallets.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::Inner;
use super::following::Standing;
use super::limits::HistoryLimits;
use crate::domain::{ChainId, Height, Wallet, lock};
use crate::rpc::{Lane, Priority, UpstreamError};
use crate::sources::{ScanTarget, Scanned};

impl Inner {
    /// The standing of a followed wallet; the first one of a chain starts its scan task.
    pub(super) fn standing(
        self: &Arc<Self>,
        wallet: Wallet,
        top: Height,
        read_at: Option<Instant>,
    ) -> Standing {
        let (standing, is_first) = self.following.record_read(wallet, top, read_at);
        if is_first {
            let inner = Arc::clone(self);
            self.tasks.spawn(async move { inner.scan_regularly(wallet.chain).await });
        }
        standing
    }

    async fn scan_regularly(self: Arc<Self>, chain: ChainId) {
        let scanned = async || {
            sleep(self.limits.scan_every).await;
            self.scan_once(chain).await
        };
        while self.tasks.run(scanned()).await == Some(true) {}
    }

    /// Runs one scan; false if no wallet is followed any more.
    async fn scan_once(&self, chain: ChainId) -> bool {
        let targets = self.following.targets(chain, &self.limits);
        if targets.is_empty() {
            return false;
        }
        let began = Instant::now();
        match self.scan(chain, &targets).await {
            Ok(scan) => self.apply_scan(chain, &targets, &scan, began.elapsed()),
            Err(error) => {
                self.metrics.scans_failed.add(1);
                if self.following.failed(chain) {
                    tracing::warn!(
                        chain = chain.0,
                        wallets = targets.len(),
                        %error,
                        "the scan for followed wallets failed; until the next one each is read by itself"
                    );
                }
            }
        }
        true
    }

    fn apply_scan(&self, chain: ChainId, targets: &[ScanTarget], scan: &Scanned, took: Duration) {
        self.metrics.scans.add(1);
        self.metrics.scans_found.add(scan.moved.len());
        let due = self.following.scanned(chain, targets, scan, &self.limits);
        tracing::debug!(
            chain = chain.0,
            wallets = targets.len(),
            moved = scan.moved.len(),
            due = due.len(),
            millis = took.as_millis(),
            "scanned for followed wallets"
        );
        let loads = lock(&self.loads);
        for address in due {
            if let Some(load) = loads.get(&Wallet { chain, address }) {
                load.wake();
            }
        }
    }

    async fn scan(&self, chain: ChainId, targets: &[ScanTarget]) -> Result<Scanned, UpstreamError> {
        let source = self.sources.get(&chain).ok_or(UpstreamError::NoEndpoint)?;
        let lane = Lane::unowned(Priority::interactive());
        let wait = scan_timeout(&self.limits, targets.len());
        timeout(wait, source.scan(targets, &lane)).await.unwrap_or_else(|_| {
            let last = format!("the scan took longer than {} s", wait.as_secs());
            Err(UpstreamError::Unavailable { attempts: 1, last })
        })
    }
}

/// Timeout of a scan: each wallet's list takes its time at endpoints with a low rate.
fn scan_timeout(limits: &HistoryLimits, wallets: usize) -> Duration {
    let wallets = u32::try_from(wallets).unwrap_or(u32::MAX);
    let each = limits.scan_wait_each.saturating_mul(wallets);
    limits.scan_wait_min.saturating_add(each).min(limits.scan_wait_max)
}
