//! Audits of finished spans: heights that were read and accepted are read again, in another way
//! where there is one, and compared with the stored rows.
//!
//! One answer decides nothing: a difference counts if a second read confirms it. Missing rows are
//! then stored, and their heights are in doubt until they are read once more. No row is deleted.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::error::HistoryError;
use super::ingest::{Ingest, IngestError};
use super::limits::HistoryLimits;
use super::proven::knows_accounts;
use super::{History, Inner, Result, walk};
use crate::decode;
use crate::domain::{Doubts, Height, KeyId, Position, Span, TxId, UnixMillis, Wallet, Way, lock};
use crate::rpc::{Lane, Priority};
use crate::sources::{GapRequest, RawChunk, RawTx, Source};
use crate::store::{Pending, WalletRecord, Written};

const HOUR: Duration = Duration::from_secs(3600);
/// Stored rows read per query.
const ROWS_AT_ONCE: usize = 1000;
/// Consecutive failures after which [`History::repair`] ends.
const FAILURES_MAX: u32 = 3;

/// The result of auditing a wallet's finished spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repaired {
    /// Number of audited heights.
    pub heights: u64,
    /// Transactions that were missing and are stored now.
    pub missing: usize,
    /// Stored transactions that two reads did not return. Their rows stay.
    pub unseen: usize,
}

/// A transaction with rows; differences within its rows do not count, as a weaker way may decode
/// them differently.
type TradedTx = (Height, TxId);

/// The difference between stored transactions and those of a second read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Difference {
    missing: BTreeSet<TradedTx>,
    unseen: BTreeSet<TradedTx>,
}

impl Difference {
    /// `is_whole`: the second read has no doubt, so that what it lacks is not on the chain.
    fn between(stored: &BTreeSet<TradedTx>, found: &BTreeSet<TradedTx>, is_whole: bool) -> Self {
        let unseen = stored.difference(found).filter(|_| is_whole).copied().collect();
        Self { missing: found.difference(stored).copied().collect(), unseen }
    }

    fn confirmed_by(&self, other: &Self) -> Self {
        Self {
            missing: self.missing.intersection(&other.missing).copied().collect(),
            unseen: self.unseen.intersection(&other.unseen).copied().collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.unseen.is_empty()
    }
}

/// State of a wallet's audit.
#[derive(Debug, Clone, Copy)]
struct Progress {
    /// The next heights to audit end here or lower; `None`: the round has ended.
    next_high: Option<Height>,
    /// Position behind the rows of the heights above.
    position: Position,
    /// No step is due before this time.
    due: Instant,
}

impl Progress {
    fn new() -> Self {
        Self { next_high: Some(Height::MAX), position: Position::Start, due: Instant::now() }
    }
}

/// Wallets that clients requested recently, with the state of their audits.
#[derive(Debug, Default)]
pub(super) struct Audits(Mutex<HashMap<Wallet, Progress>>);

impl Audits {
    /// Adds a wallet that a client requested.
    pub(super) fn note(&self, wallet: Wallet, limits: &HistoryLimits) {
        let mut all = lock(&self.0);
        if limits.audit.calls_per_hour == 0 || all.contains_key(&wallet) {
            return;
        }
        if all.len() >= limits.audit.wallets_max {
            let latest = all.iter().max_by_key(|(_, progress)| progress.due);
            let Some(latest) = latest.map(|(wallet, _)| *wallet) else { return };
            all.remove(&latest);
        }
        all.insert(wallet, Progress::new());
    }

    /// The wallet whose audit is most overdue.
    fn next(&self) -> Option<(Wallet, Progress)> {
        let all = lock(&self.0);
        let due = all.iter().filter(|(_, progress)| progress.due <= Instant::now());
        due.min_by_key(|(_, progress)| progress.due).map(|(wallet, at)| (*wallet, *at))
    }

    fn put(&self, wallet: Wallet, progress: Progress) {
        if let Some(known) = lock(&self.0).get_mut(&wallet) {
            *known = progress;
        }
    }
}

impl History {
    /// Audits all finished spans of a wallet at once.
    pub async fn repair(&self, wallet: Wallet) -> Result<Repaired> {
        let audit = self.inner.audit(wallet, Priority::interactive())?;
        let (mut all, mut progress) = (Repaired::default(), Progress::new());
        let mut failures = 0;
        loop {
            let (error, may_pass) = match audit.step(&mut progress).await {
                Ok(Some(step)) => {
                    all.heights = all.heights.saturating_add(step.heights);
                    all.missing += step.missing;
                    all.unseen += step.unseen;
                    failures = 0;
                    continue;
                }
                Ok(None) => return Ok(all),
                Err(IngestError::History(error)) => {
                    let is_refused = error == write_refused();
                    (error, is_refused)
                }
                Err(IngestError::Upstream(error)) => {
                    let detail = error.to_string();
                    (HistoryError::UpstreamUnavailable { detail }, !error.is_final())
                }
            };
            failures += 1;
            if !may_pass || failures >= FAILURES_MAX {
                return Err(error);
            }
            sleep(self.inner.limits.retry_pause_min * failures).await;
        }
    }
}

/// The error of an audit whose writes were refused: another process owns the wallet, or it was
/// rolled back meanwhile.
fn write_refused() -> HistoryError {
    let detail = "another process writes this wallet; try again".to_owned();
    HistoryError::Store { detail, may_pass: false }
}

impl Inner {
    /// Makes a wallet's worker read the heights in doubt again, in the background.
    fn reread_in_background(self: &Arc<Self>, wallet: Wallet) -> Result<()> {
        let lapse = walk::millis(self.limits.background_lapse);
        let until = UnixMillis(self.clock.now().0.saturating_add(lapse));
        self.rereads.begin_again(&wallet);
        self.attend(wallet, false, |load| {
            load.notify_update();
            if load.background().is_none() {
                load.set_background(Some(Pending { key: KeyId::LOCAL, until }));
            }
        })
    }

    /// Audits recently requested wallets, one step at a time, within the budget of calls.
    pub(super) async fn audit_regularly(self: Arc<Self>) {
        if self.limits.audit.calls_per_hour == 0 {
            return;
        }
        let mut pause = self.limits.audit.pause_min;
        while self.tasks.run(sleep(pause)).await.is_some() {
            pause = self.limits.audit.pause_min;
            if self.is_paused() {
                continue;
            }
            let Some((wallet, progress)) = self.audits.next() else { continue };
            let spent = tokio::select! {
                biased;
                () = self.tasks.cancelled() => return,
                spent = self.audit_next(wallet, progress) => spent,
            };
            let earned = HOUR.saturating_mul(spent) / self.limits.audit.calls_per_hour;
            pause = pause.max(earned);
        }
    }

    /// Runs one step; returns the number of calls that it made.
    async fn audit_next(self: &Arc<Self>, wallet: Wallet, mut progress: Progress) -> u32 {
        let Ok(audit) = self.audit(wallet, Priority::background()) else { return 0 };
        let pause = match audit.step(&mut progress).await {
            Ok(Some(_)) => Duration::ZERO,
            Ok(None) => {
                progress = Progress::new();
                self.limits.audit.again_after
            }
            // The other process audits too, or this one tries again in the next round, not every
            // half minute.
            Err(IngestError::History(error)) if error == write_refused() => {
                self.limits.audit.again_after
            }
            Err(error) => {
                tracing::debug!(%error, "a finished span could not be read again");
                self.limits.retry_pause_max
            }
        };
        progress.due = Instant::now() + pause;
        self.audits.put(wallet, progress);
        audit.lane.calls_sent()
    }

    fn audit(self: &Arc<Self>, wallet: Wallet, by: Priority) -> Result<Audit> {
        let source = self.sources.get(&wallet.chain).ok_or(HistoryError::ChainDisabled)?;
        let lane = self.lanes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Audit { inner: Arc::clone(self), wallet, source, lane: Lane::new(lane, Arc::new(by)) })
    }
}

struct Audit {
    inner: Arc<Inner>,
    wallet: Wallet,
    source: Source,
    lane: Lane,
}

impl Audit {
    /// Audits the next heights; `None` at the end of a round.
    async fn step(&self, progress: &mut Progress) -> Result<Option<Repaired>, IngestError> {
        let Some(record) = self.inner.view()?.wallet(&self.wallet).await? else { return Ok(None) };
        let Some((span, high)) = progress.next_high.and_then(|from| self.span(&record, from))
        else {
            return Ok(None);
        };
        let another = Some(span.proof.way);
        let first = match self.read(&record, (span.low, high), another).await {
            Ok(chunk) => chunk,
            // The other ways fail: any way is allowed.
            Err(_) => self.read(&record, (span.low, high), None).await?,
        };
        let low = first.as_ref().map_or(span.low, |chunk| chunk.low);
        let (stored, behind) = self.stored(&record, progress.position, (low, high)).await?;
        let difference = self.difference(&record, &stored, first.as_ref()).await?;
        let mut found = Repaired { heights: high - low + 1, ..Repaired::default() };
        if !difference.is_empty()
            && !self
                .confirm(&record, (low, high), another, &stored, &difference, &mut found)
                .await?
        {
            return Err(write_refused().into());
        }
        self.inner.metrics.audited_heights.add_count(found.heights);
        (progress.next_high, progress.position) = (low.checked_sub(1), behind);
        Ok(Some(found))
    }

    /// The highest finished span that begins at or below a height and was read by the present
    /// decoder, with its upper end or that height, whichever is lower.
    fn span<'a>(&self, record: &'a WalletRecord, from: Height) -> Option<(&'a Span, Height)> {
        let decoder = decode::version(self.wallet.address.family());
        let fits = |span: &&Span| {
            span.low <= from && span.decoder == decoder && self.source.accepts(span.proof)
        };
        let span = record.coverage.spans().iter().rev().find(fits)?;
        Some((span, span.high.min(from)))
    }

    /// Reads the highest chunk of a range of heights.
    async fn read(
        &self,
        record: &WalletRecord,
        (low, high): (Height, Height),
        another: Option<Way>,
    ) -> Result<Option<RawChunk>, IngestError> {
        let accounts = self.inner.view()?.accounts(record.id).await?;
        let request = GapRequest {
            wallet: self.wallet.address,
            low,
            high: Some(high),
            resume: None,
            knows_accounts: knows_accounts(record, &accounts),
            accounts,
            lane: self.lane.clone(),
            first: false,
            another,
        };
        Ok(self.source.read(request).next().await?)
    }

    /// Stored transactions of a range of heights, and the position behind them.
    async fn stored(
        &self,
        record: &WalletRecord,
        mut behind: Position,
        (low, high): (Height, Height),
    ) -> Result<(BTreeSet<TradedTx>, Position), IngestError> {
        let (view, mut traded) = (self.inner.view()?, BTreeSet::new());
        loop {
            let rows = view.rows(record.id, behind, low, ROWS_AT_ONCE).await?;
            let Some(last) = rows.last_key() else { return Ok((traded, behind)) };
            behind = Position::After(last);
            let within = rows.bare().iter().map(|row| row.key).filter(|key| key.height <= high);
            traded.extend(within.map(|key| (key.height, key.tx)));
        }
    }

    async fn difference(
        &self,
        record: &WalletRecord,
        stored: &BTreeSet<TradedTx>,
        chunk: Option<&RawChunk>,
    ) -> Result<Difference, IngestError> {
        let found = chunk.map(|chunk| self.traded(&chunk.txs)).unwrap_or_default();
        let is_whole =
            chunk.is_none_or(|chunk| chunk.missing.is_empty() && self.source.accepts(chunk.proof));
        let mut difference = Difference::between(stored, &found, is_whole);
        let Some(chunk) = chunk else { return Ok(difference) };
        // Late transactions with rows that are not stored although their heights are covered.
        // Stored ones are no difference, else their heights would be read again in each round.
        let view = self.inner.view()?;
        for tx in chunk.late.iter().filter(|tx| record.coverage.covers(tx.height())) {
            let traded = self.traded(std::slice::from_ref(tx));
            if traded.is_empty() {
                continue;
            }
            let time = tx.time();
            let rows = view.rows_between(record.id, time, time, ROWS_AT_ONCE).await?;
            let is_stored = |id: TxId| rows.bare().iter().any(|row| row.key.tx == id);
            difference.missing.extend(traded.into_iter().filter(|(_, id)| !is_stored(*id)));
        }
        Ok(difference)
    }

    fn traded(&self, txs: &[RawTx]) -> BTreeSet<TradedTx> {
        let (registry, wallet) = (&self.inner.registry, &self.wallet);
        let traded = |tx: &&RawTx| !tx.decode(registry, wallet).trades.is_empty();
        let place = |tx: &RawTx| Some((tx.height(), tx.id()?));
        txs.iter().filter(traded).filter_map(place).collect()
    }

    /// Reads the differing heights once more; only a difference that both reads show counts. False
    /// if a missing transaction could not be stored.
    async fn confirm(
        &self,
        record: &WalletRecord,
        (low, high): (Height, Height),
        another: Option<Way>,
        stored: &BTreeSet<TradedTx>,
        difference: &Difference,
        found: &mut Repaired,
    ) -> Result<bool, IngestError> {
        let again = match self.read(record, (low, high), another).await {
            Ok(chunk) => chunk,
            Err(_) => self.read(record, (low, high), None).await?,
        };
        // A shorter chunk proves nothing about the heights below it.
        let reached = again.as_ref().map_or(low, |chunk| chunk.low);
        let stored = stored.iter().filter(|(height, ..)| *height >= reached).copied().collect();
        let second = self.difference(record, &stored, again.as_ref()).await?;
        let confirmed = difference.confirmed_by(&second);
        if let Some(chunk) = again.filter(|_| !confirmed.missing.is_empty())
            && !self.reopen(record, chunk, &confirmed.missing).await?
        {
            return Ok(false);
        }
        (found.missing, found.unseen) = (confirmed.missing.len(), confirmed.unseen.len());
        self.inner.metrics.audit_missing.add(found.missing);
        self.inner.metrics.audit_unseen.add(found.unseen);
        if found.unseen > 0 {
            let (wallet, count) = (self.wallet.address, found.unseen);
            tracing::warn!(%wallet, count, low, high, "two reads do not show stored transactions; their rows stay");
        }
        Ok(true)
    }

    /// Stores the missing and the late transactions of a chunk, and nothing else; the chunk's
    /// heights are in doubt until they are read once more. False if the store refused a write.
    async fn reopen(
        &self,
        record: &WalletRecord,
        mut raw: RawChunk,
        missing: &BTreeSet<TradedTx>,
    ) -> Result<bool, IngestError> {
        let (wallet, low, high) = (self.wallet, raw.low, raw.high);
        tracing::warn!(
            wallet = %wallet.address, count = missing.len(), low, high,
            "two reads show transactions that are not stored; these heights are read again"
        );
        let Self { inner, source, lane, .. } = self;
        let ingest = Ingest::new(inner, source, lane, record)?;
        let missing_ids: HashSet<TxId> = missing.iter().map(|(_, tx)| *tx).collect();
        inner.make_room().await?;
        // Late transactions come before the accounts that revealed them: once an account is stored,
        // reads do not search for its late transactions again.
        for late in ingest.late_chunks(&mut raw).await? {
            if matches!(inner.store.write_chunk(late).await?, Written::Stale) {
                return Ok(false);
            }
        }
        let read = ingest.decode(raw).await;
        let mut chunk = ingest.enrich(read, Some(missing_ids.clone()), None).await?;
        chunk.trades.retain(|trade| missing_ids.contains(&trade.key.tx));
        chunk.proof = chunk.proof.with(Doubts::UNCONFIRMED);
        if matches!(inner.store.write_chunk(chunk).await?, Written::Stale) {
            return Ok(false);
        }
        inner.reread_in_background(wallet)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::AuditLimits;
    use super::*;
    use crate::domain::{Address, ChainId};

    fn facts(heights: &[Height]) -> BTreeSet<TradedTx> {
        heights.iter().map(|height| (*height, TxId::Evm([1; 32]))).collect()
    }

    #[test]
    fn a_difference_counts_where_two_reads_show_it() {
        let stored = facts(&[1, 2, 3]);
        let first = Difference::between(&stored, &facts(&[2, 3, 4, 5]), true);
        assert_eq!(first, Difference { missing: facts(&[4, 5]), unseen: facts(&[1]) });
        let second = Difference::between(&stored, &facts(&[1, 2, 3, 5]), true);
        let both = first.confirmed_by(&second);
        assert_eq!(both, Difference { missing: facts(&[5]), unseen: facts(&[]) });
        assert!(Difference::between(&stored, &stored, true).is_empty());
    }

    #[test]
    fn a_weaker_read_misses_nothing() {
        let seen = Difference::between(&facts(&[1, 2]), &facts(&[3]), false);
        assert_eq!(seen, Difference { missing: facts(&[3]), unseen: facts(&[]) });
    }

    #[tokio::test(start_paused = true)]
    async fn wallets_take_turns_and_the_latest_gives_way() {
        let wallet = |number| Wallet { chain: ChainId(1), address: Address::Evm([number; 20]) };
        let limits = HistoryLimits {
            audit: AuditLimits { wallets_max: 2, calls_per_hour: 1, ..AuditLimits::default() },
            ..HistoryLimits::default()
        };
        let audits = Audits::default();
        audits.note(wallet(1), &HistoryLimits::default());
        assert!(audits.next().is_none(), "switched off");
        audits.note(wallet(1), &limits);
        let (first, mut progress) = audits.next().unwrap();
        assert_eq!(first, wallet(1));
        progress.due += HOUR;
        audits.put(first, progress);
        assert!(audits.next().is_none());
        audits.note(wallet(2), &limits);
        tokio::time::advance(Duration::from_secs(1)).await;
        audits.note(wallet(3), &limits);
        assert_eq!(lock(&audits.0).len(), 2);
        assert_eq!(audits.next().map(|(wallet, _)| wallet), Some(wallet(2)));
    }
}
