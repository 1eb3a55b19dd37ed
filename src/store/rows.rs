//! Replaces the rows of a range of heights in a table that is ordered by time.
//!
//! Block times do not fall with height on the known chains, so the rows of a height range are
//! contiguous and are found by a search for their times. Where times and heights disagree (a node
//! reported a wrong time, or an old block has none), the insert that shows it marks the wallet as
//! disordered, and from then on a scan of all its rows finds its heights: slow, but correct.

use std::collections::HashSet;
use std::ops::Bound;

use redb::{AccessGuard, ReadableTable as _, Table, WriteTransaction};

use crate::domain::{Height, TxId, UnixSeconds, ValueSource};

use super::key::{RowBounds, RowKey, height_of, id_of, read_row_key, time_of, transaction_of};
use super::schema::ROW_KEY_TO_TRADE;
use super::schema::names::TRADES;
use super::trade_codec::{StoredTrade, decode_trade, encode_trade, is_derived_or_pending};
use super::values::{DeletedRow, SecondRead};
use super::{NewValue, Result, WalletId};

/// About two pages: a cursor packs longer runs of new rows on top of a wallet better. Wallets that
/// grow by tens of rows take 242 bytes a trade row by row, and 275 through a cursor.
const RUN_ROWS_MIN: usize = 64;

/// Rows at an end of a wallet that are rewritten together, about thirty pages: only pages at the
/// seams stay half empty.
const PACKED_ROWS: u64 = 1_024;

/// The place of new rows of a wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// After all rows of the table.
    RightEdge,
    /// After the wallet's rows, before another wallet's.
    OldEnd,
    /// Before all rows of the wallet.
    NewEnd,
    Between,
}

type Entry<'a> = (AccessGuard<'a, &'static [u8]>, AccessGuard<'a, &'static [u8]>);

pub(super) struct RowTables<'txn> {
    table: Table<'txn, &'static [u8], &'static [u8]>,
    buffer: Vec<u8>,
}

impl<'txn> RowTables<'txn> {
    pub(super) fn open(txn: &'txn WriteTransaction) -> Result<Self> {
        Ok(Self { table: txn.open_table(ROW_KEY_TO_TRADE)?, buffer: Vec::new() })
    }

    /// Deletes a wallet's rows between two inclusive heights and returns their number. Adds to
    /// `gone` those that have a derived value, are pending, or have an exact value that the second
    /// read may lack.
    pub(super) fn delete(
        &mut self,
        id: WalletId,
        (low, high, disordered): (Height, Height, bool),
        second: Option<&SecondRead<'_>>,
        gone: &mut Vec<DeletedRow>,
    ) -> Result<u64> {
        let (start, end) = self.bounds(id, low, high, disordered)?;
        let mut deleted = 0;
        self.table.retain_in(start.bytes()..end.bytes(), |key, value| {
            let inside = height_of(key).is_some_and(|height| low <= height && height <= high);
            let is_lacking = || second.is_some_and(|read| read.may_lack(key, value));
            if inside && (is_derived_or_pending(value) || is_lacking()) {
                gone.push((key.to_vec(), value.to_vec()));
            }
            deleted += u64::from(inside);
            !inside
        })?;
        Ok(deleted)
    }

    /// Bounds around a wallet's rows of some heights; around all its rows where it is disordered.
    fn bounds(
        &self,
        id: WalletId,
        low: Height,
        high: Height,
        disordered: bool,
    ) -> Result<RowBounds> {
        if disordered {
            return Ok((RowKey::start(id), RowKey::end(id)));
        }
        let end = match low.checked_sub(1) {
            Some(below) => self.first_at_or_below(id, below)?,
            None => RowKey::end(id),
        };
        Ok((self.first_at_or_below(id, high)?, end))
    }

    /// A wallet's rows between two inclusive heights that a second read with the transactions
    /// `seen` leaves as they are.
    pub(super) fn unseen(
        &self,
        id: WalletId,
        (low, high, disordered): (Height, Height, bool),
        second: &SecondRead<'_>,
        seen: &HashSet<TxId>,
    ) -> Result<Vec<(RowKey, StoredTrade)>> {
        let (start, end) = self.bounds(id, low, high, disordered)?;
        let (mut unseen, mut stays) = (Vec::new(), HashSet::new());
        if second.may_keep_rows() {
            for entry in self.table.range(start.bytes()..end.bytes())? {
                let (key, value) = entry?;
                stays.extend(second.kept_transaction(key.value(), value.value()));
            }
        }
        for entry in self.table.range(start.bytes()..end.bytes())? {
            let (key, value) = entry?;
            let Some(key) = read_row_key(key.value(), second.family) else { continue };
            let is_replaced = seen.contains(&key.tx) && !stays.contains(&key.tx);
            if (low..=high).contains(&key.height) && !is_replaced {
                unseen.push((RowKey::new(id, &key), decode_trade(TRADES, value.value())?));
            }
        }
        Ok(unseen)
    }

    /// A bound right before the wallet's first row at or below a height, by bisecting its times.
    /// Only for a wallet whose heights fall along the keys.
    fn first_at_or_below(&self, id: WalletId, height: Height) -> Result<RowKey> {
        let (Some(newest), Some(oldest)) = (self.edge_time(id, true)?, self.edge_time(id, false)?)
        else {
            return Ok(RowKey::end(id));
        };
        // Invariant: rows at or before `fits` are at or below the height, and the first row at or
        // before `beyond` is above it. Both start outside of the stored times.
        let (mut fits, mut beyond) = (i64::from(oldest.0) - 1, i64::from(newest.0) + 1);
        while beyond - fits > 1 {
            let middle = seconds(fits + (beyond - fits) / 2);
            if self.height_at(id, middle)?.is_none_or(|found| found <= height) {
                fits = i64::from(middle.0);
            } else {
                beyond = i64::from(middle.0);
            }
        }
        // The second of `beyond` may hold rows on both sides.
        Ok(if beyond > i64::from(newest.0) {
            RowKey::start(id)
        } else {
            RowKey::at(id, seconds(beyond), height)
        })
    }

    /// Height of the wallet's first row at or before a time.
    fn height_at(&self, id: WalletId, time: UnixSeconds) -> Result<Option<Height>> {
        let (start, end) = (RowKey::at(id, time, Height::MAX), RowKey::end(id));
        let first = self.table.range(start.bytes()..end.bytes())?.next();
        first.map_or(Ok(None), |entry| Ok(height_of(entry?.0.value())))
    }

    fn edge_time(&self, id: WalletId, newest: bool) -> Result<Option<UnixSeconds>> {
        let mut range = self.table.range(RowKey::start(id).bytes()..RowKey::end(id).bytes())?;
        let edge = if newest { range.next() } else { range.next_back() };
        edge.map_or(Ok(None), |entry| Ok(time_of(entry?.0.value())))
    }

    /// Whether heights descend along the keys with these rows among the stored ones. `rows` are
    /// sorted, and no stored row has a height between theirs.
    pub(super) fn keep_order(&self, id: WalletId, rows: &[(RowKey, StoredTrade)]) -> Result<bool> {
        let (Some((first_key, _)), Some((last_key, _))) = (rows.first(), rows.last()) else {
            return Ok(true);
        };
        if !heights_descend(rows) {
            return Ok(false);
        }
        let (first, last) = (height(first_key), height(last_key));
        let mut newer = self.table.range(RowKey::start(id).bytes()..first_key.bytes())?;
        if let Some(entry) = newer.next_back()
            && height_of(entry?.0.value()).is_none_or(|height| height <= first)
        {
            return Ok(false);
        }
        let mut older = self.table.range(first_key.bytes()..RowKey::end(id).bytes())?;
        let Some(entry) = older.next() else { return Ok(true) };
        let key = entry?.0;
        Ok(key.value() > last_key.bytes()
            && height_of(key.value()).is_some_and(|height| height < last))
    }

    /// Adds sorted rows of a wallet that has `count` rows, and returns how many keys were new.
    /// Where heights are `ordered`, none of the keys is stored and no stored row is between them.
    /// `last`: the history has nothing below them.
    ///
    /// Single inserts fill only pages at the right edge of the whole tree; others stay half empty.
    /// A cursor packs the pages of its run, but leaves two half empty at its end. So rows at both
    /// ends of a wallet are rewritten when there are many of them, or the last. Bytes a trade
    /// (`benches/compare-store.sh --scale`): 8 wallets loaded at once by 20 rows 131 instead of
    /// 214, by 200 rows 124 instead of 137; wallets that grow by tens 163 instead of 252.
    pub(super) fn add(
        &mut self,
        rows: &[(RowKey, StoredTrade)],
        ordered: bool,
        count: u64,
        last: bool,
    ) -> Result<u64> {
        if !ordered {
            return self.insert(rows);
        }
        let place = self.place(rows)?;
        let is_run = rows.len() >= RUN_ROWS_MIN || place == Place::OldEnd;
        let added = if is_run { self.append(rows)? } else { self.insert(rows)? };
        let loose = count % PACKED_ROWS + added;
        let is_due = match place {
            Place::OldEnd => loose >= PACKED_ROWS || (last && loose > added),
            Place::NewEnd => loose >= PACKED_ROWS,
            Place::RightEdge | Place::Between => false,
        };
        // Longer runs have few seams as they are.
        if is_due && added < PACKED_ROWS / 2 {
            self.pack(rows, place, usize::try_from(loose).unwrap_or(usize::MAX))?;
        }
        Ok(added)
    }

    /// The place of new rows among the wallet's, and among all.
    fn place(&self, rows: &[(RowKey, StoredTrade)]) -> Result<Place> {
        let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else {
            return Ok(Place::Between);
        };
        let wallet = id_of(last.bytes());
        let behind = (Bound::Excluded(last.bytes()), Bound::Unbounded);
        let Some(next) = self.table.range::<&[u8]>(behind)?.next() else {
            return Ok(Place::RightEdge);
        };
        if id_of(next?.0.value()) != wallet {
            return Ok(Place::OldEnd);
        }
        let before = match self.table.range(..first.bytes())?.next_back() {
            Some(before) => id_of(before?.0.value()),
            None => None,
        };
        Ok(if before == wallet { Place::Between } else { Place::NewEnd })
    }

    /// Rewrites `count` rows at an end of the wallet of `rows` into full pages.
    fn pack(&mut self, rows: &[(RowKey, StoredTrade)], end: Place, count: usize) -> Result<()> {
        let Some(id) = rows.first().and_then(|(key, _)| id_of(key.bytes())) else { return Ok(()) };
        let (start, behind) = (RowKey::start(id), RowKey::end(id));
        let range = self.table.range(start.bytes()..behind.bytes())?;
        let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut keep =
            |entry: Entry<'_>| rows.push((entry.0.value().to_vec(), entry.1.value().to_vec()));
        if end == Place::OldEnd {
            range.rev().take(count).try_for_each(|entry| entry.map(&mut keep))?;
            rows.reverse();
        } else {
            range.take(count).try_for_each(|entry| entry.map(&mut keep))?;
        }
        let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else {
            return Ok(());
        };
        self.table.retain_in(first.as_slice()..=last.as_slice(), |_, _| false)?;
        let mut cursor = self.table.upper_bound_mut(Bound::Excluded(first.as_slice()))?;
        for (key, value) in &rows {
            cursor.insert_before(key.as_slice(), value.as_slice())?;
        }
        cursor.close()?;
        Ok(())
    }

    fn append(&mut self, rows: &[(RowKey, StoredTrade)]) -> Result<u64> {
        let Some((first, _)) = rows.first() else { return Ok(0) };
        let mut cursor = self.table.upper_bound_mut(Bound::Excluded(first.bytes()))?;
        for (key, row) in rows {
            encode_trade(row, &mut self.buffer);
            cursor.insert_before(key.bytes(), self.buffer.as_slice())?;
        }
        cursor.close()?;
        Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
    }

    fn insert(&mut self, rows: &[(RowKey, StoredTrade)]) -> Result<u64> {
        let mut added = 0;
        for (key, row) in rows {
            encode_trade(row, &mut self.buffer);
            let replaced = self.table.insert(key.bytes(), self.buffer.as_slice())?.is_some();
            added += u64::from(!replaced);
        }
        Ok(added)
    }

    /// Sets the value of a row that is pending and has the same units.
    pub(super) fn fill(&mut self, key: &RowKey, new: &NewValue) -> Result<()> {
        let old = match self.table.get(key.bytes())? {
            Some(bytes) => decode_trade(TRADES, bytes.value())?,
            None => return Ok(()),
        };
        if old.valued != ValueSource::Pending || old.units != new.units {
            return Ok(());
        }
        let row = StoredTrade { native: new.native, valued: new.valued, ..old };
        self.insert(&[(*key, row)]).map(drop)
    }

    /// Whether the transaction of `key` has a pending row.
    pub(super) fn waits(&self, key: &RowKey) -> Result<bool> {
        let start = transaction_of(key.bytes());
        for entry in self.table.range(start..)? {
            let (row, value) = entry?;
            if transaction_of(row.value()) != start {
                break;
            }
            if decode_trade(TRADES, value.value())?.valued == ValueSource::Pending {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(super) fn heights_descend(rows: &[(RowKey, StoredTrade)]) -> bool {
    rows.is_sorted_by(|(newer, _), (older, _)| height(newer) >= height(older))
}

fn height(key: &RowKey) -> Height {
    height_of(key.bytes()).unwrap_or_default()
}

/// A time; the callers' values are in its range.
fn seconds(value: i64) -> UnixSeconds {
    UnixSeconds(u32::try_from(value.max(0)).unwrap_or(u32::MAX))
}
