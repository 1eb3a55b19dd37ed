//! Counts the rows that match a filter, in slices, so that no wallet is too large; counts are
//! cached for later pages.

use std::collections::HashMap;
use std::sync::Mutex;

use super::ending::count_below;
use super::{End, Walk};
use crate::domain::{Filter, Height, Position, TradeKey, lock};
use crate::history::Result;
use crate::history::error::HistoryError;
use crate::store::{View, WalletId, WalletRecord};

/// How often a finished count is continued because doubts about its heights were removed meanwhile.
const ROUNDS_MAX: u32 = 3;

/// The count of matching rows from a walk's head down to a position.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MatchCount {
    below: Position,
    /// Number of stored rows when the count began; 0 if unknown.
    stored: u64,
    /// Number of rows down to the position, and how many of them match.
    counted_rows: u64,
    matched: u64,
    /// The oldest matching row.
    last: Option<TradeKey>,
    /// All rows that can match were counted.
    is_finished: bool,
    /// Number of the wallet's rows when the count was finished, and whether its heights were proved
    /// then: a later proof may include rows that were added since.
    rows_when_finished: u64,
    was_proved: bool,
    /// The count was restarted because rows were added above its position.
    is_restarted: bool,
}

impl MatchCount {
    /// Counts rows down to `last`, of which `matched` match: all or none.
    pub(super) fn pass(&mut self, last: TradeKey, (rows, matched): (u64, u64)) {
        self.below = Position::After(last);
        self.counted_rows = self.counted_rows.saturating_add(rows);
        self.matched += matched;
        if matched > 0 {
            self.last = Some(last);
        }
    }
}

/// A count is valid only for one state of a wallet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct MatchCountKey {
    wallet: WalletId,
    epoch: u64,
    head: Height,
    filter: Filter,
}

/// Recent counts, each with the wallet's number of rows at that time.
#[derive(Debug, Default)]
pub(in crate::history) struct MatchCounts(Mutex<HashMap<MatchCountKey, (MatchCount, u64)>>);

impl MatchCounts {
    fn find(&self, key: &MatchCountKey, rows: u64) -> Option<MatchCount> {
        let kept = lock(&self.0);
        // An unfinished count is used even if rows were added: those below it are still counted,
        // and those above it are noticed when it is finished.
        kept.get(key)
            .filter(|(match_count, at)| !match_count.is_finished || *at == rows)
            .map(|(match_count, _)| *match_count)
    }

    fn keep(&self, key: MatchCountKey, match_count: MatchCount, rows: u64, max: usize) {
        let mut kept = lock(&self.0);
        if kept.len() >= max && !kept.contains_key(&key) {
            kept.clear();
        }
        kept.insert(key, (match_count, rows));
    }
}

impl Walk {
    /// Counts down to the end of the covered run. Cancel safe.
    pub(super) async fn finish_match_count(&mut self) {
        let mut rounds = 0;
        while !self.inner.tasks.is_cancelled() {
            match self.count_slice().await {
                Ok(false) => tokio::task::yield_now().await,
                // Heights that were in doubt may be proved by now, with more rows.
                Ok(true) if rounds < ROUNDS_MAX && self.is_proved_since().await => rounds += 1,
                Ok(true) => return,
                Err(error) => {
                    tracing::error!(%error, "the rows of a filter could not be counted");
                    return;
                }
            }
        }
    }

    /// Counts one slice; true if nothing more can be counted for now.
    async fn count_slice(&mut self) -> Result<bool> {
        let view = self.inner.view()?;
        let found = self.record(&view).await?.zip(self.head);
        let Some((record, head)) = found else { return Ok(true) };
        let Some(floor) = record.coverage.run_low(head) else { return Ok(true) };
        let limits = &self.inner.limits;
        let (wallet, epoch, filter) = (record.id, record.epoch, self.request.filter.clone());
        let key = MatchCountKey { wallet, epoch, head, filter };
        let kept = self.inner.match_counts.find(&key, record.count);
        let begun = || MatchCount { stored: record.count, ..MatchCount::default() };
        let mut match_count = kept.or(self.match_count.as_deref().copied()).unwrap_or_else(begun);
        match_count.is_finished &= match_count.rows_when_finished == record.count;
        let mut is_done = true;
        if !match_count.is_finished {
            let from = match match_count.below {
                Position::Start => self.start_position((&view, &record, head)).await?,
                Position::After(_) => match_count.below,
            };
            let rejected = self.rejected(&view, record.id, (from, floor))?;
            if let Some((last, passed)) = rejected {
                match_count.pass(last, (u64::try_from(passed).unwrap_or(u64::MAX), 0));
            }
            let from = rejected.map_or(from, |(last, _)| Position::After(last));
            let mut rows = view.rows(record.id, from, floor, limits.rows_per_step_max).await?;
            let is_last = rows.len() < limits.rows_per_step_max;
            let ended = self.cut_at_from(&mut rows);
            for row in rows.iter() {
                let matched = u64::from(self.request.filter.matches(row));
                match_count.pass(row.bare.key, (1, matched));
            }
            let is_last = is_last || ended;
            match_count.is_finished = is_last
                && (floor == 0
                    || self.from_reached
                    || self.is_from_reached((&view, &record, head), floor).await?);
            match_count.rows_when_finished = record.count;
            if match_count.is_finished && self.has_missed_rows(&match_count, &view, &record).await?
            {
                // If rows are added during the second count as well, the next request counts again.
                let is_restarted = match_count.is_restarted;
                let anew = MatchCount { is_restarted: !is_restarted, ..begun() };
                self.inner.match_counts.keep(key, anew, record.count, limits.match_counts_kept_max);
                self.match_count = Some(Box::new(anew));
                return Ok(is_restarted);
            }
            self.inner.match_counts.keep(
                key,
                match_count,
                record.count,
                limits.match_counts_kept_max,
            );
            is_done = match_count.is_finished || is_last;
        }
        match_count.was_proved = self.inner.doubt(&record, head).is_none();
        self.match_count = Some(Box::new(match_count));
        Ok(is_done)
    }

    /// Whether a finished count's heights were in doubt and are proved now.
    async fn is_proved_since(&self) -> bool {
        let was_open = self
            .match_count
            .as_deref()
            .is_some_and(|match_count| match_count.is_finished && !match_count.was_proved);
        was_open && self.doubt().await.is_none()
    }

    /// Whether rows were added above the position of a finished count while it was counted in
    /// slices.
    async fn has_missed_rows(
        &self,
        match_count: &MatchCount,
        view: &View,
        record: &WalletRecord,
    ) -> Result<bool> {
        let Some(head) = self.head.filter(|_| match_count.stored != record.count) else {
            return Ok(false);
        };
        let counted_rows = if self.request.filter.is_timed() {
            self.count_before((view, record, head), match_count.below, match_count.counted_rows)
                .await?
        } else {
            count_below(view, record, head).await?
        };
        Ok(match_count.counted_rows != counted_rows)
    }

    pub(super) async fn filtered_summary(&self, match_count: &MatchCount, none: End) -> End {
        let more = match_count.last.is_some_and(|last| match self.position {
            Position::Start => true,
            Position::After(key) => key < last,
        });
        let is_cut = none.error.is_some() && more;
        let mut doubt = self.doubt().await;
        if doubt.is_none() && match_count.is_finished && !more {
            // Rows may have been added or removed above the position since they were delivered.
            doubt = match self.is_changed().await {
                Ok(is_changed) => is_changed.then_some(HistoryError::Changed),
                Err(error) => Some(error),
            };
        }
        let complete = match_count.is_finished
            && match_count.was_proved
            && !self.live
            && !is_cut
            && doubt.is_none();
        let error = none.error.or(doubt.filter(|_| match_count.is_finished && !more));
        End {
            complete,
            more: more || !complete,
            trade_count: match_count.matched,
            first_trade: match_count.last.filter(|_| complete).map(|key| key.time),
            error: error.filter(|_| !complete),
        }
    }

    /// The error if the stored rows are not proved to be all.
    async fn doubt(&self) -> Option<HistoryError> {
        let view = self.inner.view().ok()?;
        let (record, head) = self.record(&view).await.ok()?.zip(self.head)?;
        self.inner.doubt(&record, head)
    }
}
