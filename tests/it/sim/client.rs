//! Clients that stream, page, disconnect, lose their last answer, and come back.

use std::time::Duration;

use blotter::domain::{Cursor, Filter, KeyId};
use blotter::history::{End, Extent, HistoryError, Step, WalkRequest};
use tokio::time::sleep;

use super::dice::Dice;
use super::sieve;
use super::world::World;

/// One client of one wallet and one key.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) wallet: usize,
    pub(super) key: KeyId,
    /// Rows of a page; `None` streams.
    page: Option<u64>,
    /// It disconnects after one step in this many.
    hasty: u64,
    pub(super) filter: Filter,
    dice: Dice,
    pub(super) walk: Trail,
}

/// What a client holds of the walk it is on, over all its requests.
#[derive(Debug, Default)]
pub(super) struct Trail {
    pub(super) cursor: Option<Cursor>,
    /// Rows that lie above the cursor.
    pub(super) rows: usize,
    /// Earlier points of the walk.
    points: Vec<(Option<Cursor>, usize)>,
}

impl Client {
    pub(super) fn new(number: u64, seed: u64, wallets: usize) -> Self {
        let mut dice = Dice::new(seed, 1000 + number);
        let wallet = dice.range(0, u64::try_from(wallets).unwrap() - 1);
        Self {
            wallet: usize::try_from(wallet).unwrap(),
            key: KeyId(dice.range(1, 2)),
            page: dice.pick(&[None, None, Some(1), Some(2), Some(7), Some(50), Some(1_000_000)]),
            hasty: dice.pick(&[3, 10, 1000]),
            filter: Filter::default(),
            dice,
            walk: Trail::default(),
        }
    }

    /// The same, with a filter for some seeds. Uses separate random numbers, so that the rest of
    /// the seed is unchanged.
    pub(super) fn sifting(self, number: u64, seed: u64, world: &World) -> Self {
        let mut dice = Dice::new(seed, 3000 + number);
        Self { filter: sieve::choose(world, self.wallet, &mut dice), ..self }
    }

    /// One that takes pages of so many rows.
    pub(super) fn paging(rows: u64) -> Self {
        Self { page: Some(rows), ..Self::new(0, 1, 1) }
    }

    /// Requests, until the caller has seen enough.
    pub(super) async fn live(&mut self, world: &World) {
        loop {
            if self.dice.one_in(8) {
                self.walk = Trail::default();
            }
            let end = self.ask(world, true).await;
            let is_over =
                |end: End| end.complete && !end.more || end.error == Some(HistoryError::Changed);
            if end.is_some_and(is_over) {
                self.walk = Trail::default();
            }
            world.check_usage(self.key);
            if self.dice.one_in(4) {
                world.check_store(self.wallet);
            }
            sleep(Duration::from_millis(self.dice.pick(&[1, 500, 3_000, 20_000]))).await;
        }
    }

    /// One request. `None` where the client hung up.
    pub(super) async fn ask(&mut self, world: &World, may_leave: bool) -> Option<End> {
        let wallet = world.wallets[self.wallet];
        let decoded = |cursor: Cursor| Cursor::decode(&cursor.encode(&wallet), &wallet).unwrap();
        let request = WalkRequest {
            wallet,
            key: self.key,
            quota: None,
            resume: self.walk.cursor.map(decoded).map(Box::new),
            filter: self.filter.clone(),
            follow: false,
            want: self.page.map_or(Extent::All, Extent::Rows),
            window: Duration::from_secs(self.dice.pick(&[1, 5, 20, 55])),
        };
        let mut walk = world.history.walk(request).unwrap();
        let mut left = self.page.unwrap_or(u64::MAX);
        loop {
            if may_leave && self.dice.one_in(self.hasty) {
                if self.dice.one_in(3) {
                    self.walk.lose();
                }
                return None;
            }
            match walk.next().await {
                Step::Rows(rows) => {
                    left = left
                        .checked_sub(u64::try_from(rows.len()).unwrap())
                        .unwrap_or_else(|| panic!("too many rows"));
                    world.check_rows(self, walk.cursor(), &rows.to_vec());
                    self.walk.points.push((self.walk.cursor, self.walk.rows));
                    self.walk.cursor = Some(walk.cursor());
                    self.walk.rows += rows.len();
                }
                Step::End(end) => {
                    self.walk.cursor = Some(walk.cursor());
                    world.check_end(self, walk.cursor(), &end);
                    return Some(end);
                }
            }
        }
    }
}

impl Trail {
    /// What came last never reached the client.
    fn lose(&mut self) {
        if let Some((cursor, rows)) = self.points.pop() {
            (self.cursor, self.rows) = (cursor, rows);
        }
    }
}

/// Whether an error may be reported while nodes and disk fail.
pub(super) fn is_expected(error: &HistoryError) -> bool {
    match error {
        HistoryError::UpstreamUnavailable { detail } => !detail.contains("planted"),
        HistoryError::HistoryCut { .. }
        | HistoryError::Unproved { .. }
        | HistoryError::Changed
        | HistoryError::ShuttingDown
        | HistoryError::Overloaded
        | HistoryError::StoreFull { .. }
        | HistoryError::Store { .. } => true,
        HistoryError::NotAWallet { .. }
        | HistoryError::ChainDisabled
        | HistoryError::NotEstimable { .. }
        | HistoryError::QuotaExceeded
        | HistoryError::KeyEnded
        | HistoryError::Internal => false,
    }
}
