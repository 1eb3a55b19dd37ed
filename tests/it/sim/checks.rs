//! The invariants that must hold at every moment.

use std::collections::HashSet;

use blotter::domain::{Coverage, Cursor, Filter, Height, KeyId, Position, Row, TxId, ValueSource};
use blotter::history::End;

use super::client::{Client, is_expected};
use super::sieve;
use super::way::Way;
use super::world::World;
use crate::support::ready::now;
use crate::support::truth::Fact;

impl World {
    /// The rows are the next ones of the truth below the walk's head: in order, none left out,
    /// none twice.
    pub(super) fn check_rows(&self, client: &Client, cursor: Cursor, rows: &[Row]) {
        let head = cursor.head.unwrap_or_else(|| panic!("rows without a head"));
        assert!(head <= self.chain.head(), "a head above the chain's");
        let before = client.walk.cursor.filter(|_| client.walk.rows > 0);
        let mut handed = self.handed.borrow_mut();
        let handed = handed.entry(client.key).or_default();
        let wallet = self.wallets[client.wallet].address;
        let mark = |row: &Row| {
            let key = row.trade.key;
            (wallet, key.tx, key.leg)
        };
        handed.extend(rows.iter().map(mark));
        self.note_set_aside(client.wallet);
        let truth = &self.truths.borrow()[client.wallet];
        if self.forked || self.has_doubts() {
            assert!(rows.is_sorted_by_key(|row| row.trade.key), "not in order");
            if let Some(Position::After(last)) = before.map(|cursor| cursor.position) {
                assert!(rows.iter().all(|row| row.trade.key > last), "rows above the cursor");
            }
            let was = |row: &Row| if self.forked { truth.was(row) } else { truth.is(row) };
            if let Some(row) = rows.iter().find(|row| !was(row)) {
                panic!("a row that is not true: {row:?}, {:?}", truth.like(row));
            }
            let fits = |row: &Row| truth.like(row).is_none_or(|f| sieve::fits(&client.filter, f));
            assert!(rows.iter().all(fits), "a row that the filter rejects");
            return;
        }
        assert!(before.is_none_or(|cursor| cursor.head == Some(head)), "the head moved");
        let sifted = sieve::sifted(&client.filter, truth.below(head));
        let wanted = &sifted[client.walk.rows..];
        assert!(rows.len() <= wanted.len(), "{} rows, {} true ones", rows.len(), wanted.len());
        for (at, (row, fact)) in rows.iter().zip(wanted).enumerate() {
            let at = at + client.walk.rows;
            let what = || difference(row, fact, rows, truth.all());
            assert!(fact.states_value_of(row), "row {at} of a walk from {head}: {}", what());
        }
    }

    /// `complete` is reported only when it is true.
    pub(super) fn check_end(&self, client: &Client, cursor: Cursor, end: &End) {
        if let Some(error) = &end.error {
            assert!(is_expected(error), "{error:?}");
        }
        let truth = &self.truths.borrow()[client.wallet];
        let count = |rows: usize| u64::try_from(rows).unwrap();
        if self.forked {
            return;
        }
        let Some(head) = cursor.head.filter(|_| end.complete) else {
            assert!(!end.complete, "complete without a head");
            assert!(end.trade_count <= count(truth.all().len()), "more trades than there are");
            return;
        };
        let truth = &sieve::sifted(&client.filter, truth.below(head));
        if end.trade_count != count(truth.len()) {
            let lost = self.lost(client.wallet, truth);
            let (filter, rows) = (&client.filter, client.walk.rows);
            panic!(
                "complete at {head}: {} of {}, {rows} got, by {filter:?}; lost {lost}",
                end.trade_count,
                truth.len()
            );
        }
        assert!(!self.awaits_withheld(client.wallet), "complete, and an amount is not known");
        assert_eq!(end.first_trade, truth.last().map(|fact| fact.time));
        assert_eq!(end.more, client.walk.rows < truth.len(), "{} rows got", client.walk.rows);
    }

    /// A walk that began after all was read holds all of the truth.
    pub(super) fn check_whole(&self, client: &Client, head: Height) {
        if !self.forked {
            let wanted = self.wanted(client.wallet, &client.filter, head);
            assert!(client.walk.rows >= wanted, "{} of {wanted} rows", client.walk.rows);
        }
    }

    /// Whether a walk holds all rows that the nodes reveal.
    pub(super) fn is_whole(&self, client: &Client, head: Height) -> bool {
        client.walk.rows >= self.wanted(client.wallet, &client.filter, head)
    }

    /// The number of rows that the nodes reveal.
    fn wanted(&self, wallet: usize, filter: &Filter, head: Height) -> usize {
        let truths = self.truths.borrow();
        let truth = truths[wallet].below(head).iter();
        truth.filter(|f| Some(f.tx) != self.poison && sieve::fits(filter, f)).count()
    }

    /// Notes whether a transaction of a wallet is set aside: its rows come late then.
    fn note_set_aside(&self, wallet: usize) {
        let Ok(view) = self.store.view() else { return };
        let Ok(Some(record)) = now(view.wallet(&self.wallets[wallet])) else { return };
        if record.coverage.spans().iter().any(|span| !span.missing.is_empty()) {
            self.set_aside.set(true);
        }
    }

    /// Whether a wallet has a transaction that no node gives.
    pub(super) fn is_poisoned(&self, wallet: usize) -> bool {
        let truths = self.truths.borrow();
        truths[wallet].all().iter().any(|fact| Some(fact.tx) == self.poison)
    }

    /// What the wallet's stored rows lack of the truth.
    pub(super) fn lacks(&self, wallet: usize) -> String {
        self.lost(wallet, self.truths.borrow()[wallet].all())
    }

    /// The newest rows that are true and not stored, by what made them.
    fn lost(&self, wallet: usize, truth: &[Fact]) -> String {
        let view = self.store.view().unwrap();
        let Some(record) = now(view.wallet(&self.wallets[wallet])).unwrap() else {
            return "the whole wallet".to_owned();
        };
        let rows = now(view.rows(record.id, Position::Start, 0, usize::MAX)).unwrap().to_vec();
        let stored: HashSet<_> = rows.iter().map(|r| (r.trade.key.tx, r.trade.key.leg)).collect();
        let lost = truth.iter().filter(|fact| !stored.contains(&(fact.tx, fact.leg))).take(3);
        let kind = |fact: &Fact| self.chain.kind(self.wallets[wallet].address, fact.tx);
        let lost: Vec<_> = lost.map(|fact| (fact.slot, fact.side, kind(fact))).collect();
        format!("{lost:?} of {:?}", record.coverage.spans())
    }

    /// Whether no covered height is in doubt.
    pub(super) fn accepts_all(&self, wallet: usize) -> bool {
        let view = self.store.view().unwrap();
        let record = now(view.wallet(&self.wallets[wallet])).unwrap();
        record.is_none_or(|record| {
            record.coverage.spans().iter().all(|span| self.source.accepts(span.proof))
        })
    }

    /// Whether the service reports a height as covered without doubt.
    fn covered(&self, coverage: &Coverage, height: Height) -> bool {
        let mut spans = coverage.spans().iter();
        let span = spans.find(|span| (span.low..=span.high).contains(&height));
        span.is_some_and(|span| self.source.accepts(span.proof))
    }

    /// In the end, everything that is true now is stored.
    pub(super) fn check_all(&self, wallet: usize, target: Height) {
        let view = self.store.view().unwrap();
        let record = now(view.wallet(&self.wallets[wallet])).unwrap();
        let Some(record) = record.filter(|record| record.coverage.top().is_some()) else { return };
        let rows = now(view.rows(record.id, Position::Start, 0, usize::MAX)).unwrap().to_vec();
        let truths = self.truths.borrow();
        if self.has_doubts() {
            let wanted = self.wanted(wallet, &Filter::default(), target);
            assert!(rows.len() >= wanted, "{} rows stored, {wanted} true", rows.len());
            let stale = rows.iter().find(|row| !truths[wallet].is(row));
            assert_eq!(stale, None, "stored and not true any more");
            return;
        }
        let known: Vec<_> =
            truths[wallet].all().iter().filter(|f| record.coverage.covers(f.slot)).collect();
        assert_eq!(rows.len(), known.len(), "rows stored and true");
        let is_exact = self.way == Way::Solana;
        let fits = |row: &Row, fact: &Fact| {
            if is_exact { fact.states_value_of(row) } else { fact.is_shown_by(row) }
        };
        for (row, fact) in rows.iter().zip(known) {
            let what = || difference(row, fact, &rows, truths[wallet].all());
            assert!(fits(row, fact), "stored: {}", what());
        }
    }

    /// Rows that wait for their value, but for those of a transaction that no node gives any more.
    pub(super) fn pending(&self) -> Vec<Row> {
        let view = self.store.view().unwrap();
        let records = self.wallets.iter().filter_map(|wallet| now(view.wallet(wallet)).unwrap());
        let rows = records.flat_map(|record| {
            now(view.rows(record.id, Position::Start, 0, usize::MAX)).unwrap().to_vec()
        });
        let waits = |row: &Row| {
            row.trade.valued == ValueSource::Pending && Some(row.trade.key.tx) != self.poison
        };
        rows.filter(waits).collect()
    }

    /// Whether stored rows wait for native coin of a transaction that no node gives any more.
    fn awaits_withheld(&self, wallet: usize) -> bool {
        let Some(withheld) = self.poison else { return false };
        let view = self.store.view().unwrap();
        let Some(record) = now(view.wallet(&self.wallets[wallet])).unwrap() else { return false };
        let rows = now(view.rows(record.id, Position::Start, 0, usize::MAX)).unwrap().to_vec();
        let rows: Vec<_> = rows.iter().filter(|row| row.trade.key.tx == withheld).collect();
        // Of one token for another a price may be waited for: that is asked elsewhere.
        let is_one_sided = rows.windows(2).all(|pair| pair[0].trade.side == pair[1].trade.side);
        is_one_sided && rows.iter().any(|row| row.trade.valued == ValueSource::Pending)
    }

    /// The transactions of a wallet's stored rows, newest first.
    pub(super) fn stored(&self, wallet: usize) -> Vec<TxId> {
        let view = self.store.view().unwrap();
        let Some(record) = now(view.wallet(&self.wallets[wallet])).unwrap() else {
            return Vec::new();
        };
        let rows = now(view.rows(record.id, Position::Start, 0, usize::MAX)).unwrap();
        rows.to_vec().iter().map(|row| row.trade.key.tx).collect()
    }

    /// What is covered is stored, and nothing else is.
    pub(super) fn check_store(&self, wallet: usize) {
        let Ok(view) = self.store.view() else { return };
        let Ok(Some(record)) = now(view.wallet(&self.wallets[wallet])) else { return };
        let Ok(rows) = now(view.rows(record.id, Position::Start, 0, usize::MAX)) else { return };
        let rows = rows.to_vec();
        self.note_set_aside(wallet);
        assert_eq!(record.count, u64::try_from(rows.len()).unwrap(), "rows and their count");
        assert!(rows.is_sorted_by_key(|row| row.trade.key));
        assert!(record.coverage.top().is_none_or(|top| top <= self.chain.head()), "not final");
        if self.forked {
            return;
        }
        let truths = self.truths.borrow();
        if self.has_doubts() {
            let truth = &truths[wallet];
            for row in &rows {
                assert!(truth.is(row), "stored and not true: {row:?}, {:?}", truth.like(row));
            }
            let stored: HashSet<_> =
                rows.iter().map(|r| (r.trade.key.tx, r.trade.key.leg)).collect();
            let known = truth.all().iter().filter(|f| self.covered(&record.coverage, f.slot));
            let known: Vec<Fact> = known.copied().collect();
            let lost = known.iter().any(|fact| !stored.contains(&(fact.tx, fact.leg)));
            assert!(!lost, "covered and not stored: {}", self.lost(wallet, &known));
            return;
        }
        let known = truths[wallet].all().iter().filter(|fact| record.coverage.covers(fact.slot));
        let mut known = known.enumerate();
        for (at, row) in rows.iter().enumerate() {
            let fact = known.next().map(|(_, fact)| fact);
            let Some(fact) = fact else { panic!("row {at} is not true: {row:?}") };
            let what = || difference(row, fact, &rows, truths[wallet].all());
            assert!(fact.states_value_of(row), "row {at}: {}", what());
        }
        assert_eq!(known.next(), None, "covered and not stored");
    }

    /// Each trade that a key received counts once. A crash may lose some counts, and late rows in
    /// heights that were delivered are not counted.
    pub(super) fn check_usage(&self, key: KeyId) {
        let Ok(used) = now(self.history.usage(key)) else { return };
        let handed = self.handed.borrow().get(&key).map_or(0, HashSet::len);
        let handed = u64::try_from(handed).unwrap();
        if self.forgot || self.forked || self.has_doubts() {
            assert!(used <= handed, "{used} counted, {handed} handed out");
        } else {
            assert_eq!(used, handed, "counted and handed out");
        }
    }
}

/// Describes an unexpected row, and where the expected one is.
fn difference(row: &Row, fact: &Fact, rows: &[Row], truth: &[Fact]) -> String {
    let place = |id: (TxId, u16)| {
        let reported = rows.iter().position(|row| (row.trade.key.tx, row.trade.key.leg) == id);
        let is = truth.iter().position(|fact| (fact.tx, fact.leg) == id);
        format!(
            "reported as {reported:?} of {}, by the model {is:?} of {}",
            rows.len(),
            truth.len()
        )
    };
    let key = row.trade.key;
    format!(
        "\n{row:?}\n({})\ninstead of\n{fact:?}\n({})",
        place((key.tx, key.leg)),
        place((fact.tx, fact.leg))
    )
}
