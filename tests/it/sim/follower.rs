//! A client that follows the chain: the history, then each new row once, oldest first. A late row
//! ends its walk with an error, and it starts again.

use std::time::Duration;

use blotter::domain::{Cursor, Filter, Height, KeyId, Position, Row};
use blotter::history::{End, Extent, HistoryError, Step, WalkRequest};
use tokio::time::sleep;

use super::client::is_expected;
use super::dice::Dice;
use super::sieve;
use super::trouble::say;
use super::truth::Mark;
use super::world::World;

pub(super) struct Follower {
    wallet: usize,
    filter: Filter,
    dice: Dice,
    held: Held,
    /// Earlier points of the walk.
    points: Vec<Held>,
}

/// What it holds of the walk that it is on.
#[derive(Debug, Default, Clone)]
struct Held {
    cursor: Option<Cursor>,
    rows: Vec<Mark>,
}

/// Of another key than the other clients, which are counted.
const KEY: KeyId = KeyId(3);
const POINTS_MAX: usize = 20;

impl Follower {
    pub(super) fn new(world: &World, seed: u64) -> Self {
        let mut dice = Dice::new(seed, 2000);
        let last = u64::try_from(world.wallets.len() - 1).unwrap();
        let wallet = usize::try_from(dice.range(0, last)).unwrap();
        let filter = sieve::choose(world, wallet, &mut dice);
        // Uses separate random numbers, so that the rest of the seed is unchanged.
        let filter = sieve::ahead(world, wallet, &mut Dice::new(seed, 2001)).unwrap_or(filter);
        Self { wallet, filter, dice, held: Held::default(), points: Vec::new() }
    }

    fn begin_anew(&mut self) {
        self.held = Held::default();
        self.points.clear();
    }

    /// Requests, until the caller has seen enough.
    pub(super) async fn live(&mut self, world: &World) {
        loop {
            if self.dice.one_in(8) {
                self.begin_anew();
            }
            self.ask(world, true).await;
            sleep(Duration::from_millis(self.dice.pick(&[1, 500, 3_000, 20_000]))).await;
        }
    }

    /// One request.
    async fn ask(&mut self, world: &World, may_leave: bool) {
        let wallet = world.wallets[self.wallet];
        let sent = |cursor: Cursor| Cursor::decode(&cursor.encode(&wallet), &wallet).unwrap();
        let request = WalkRequest {
            wallet,
            key: KEY,
            quota: None,
            resume: self.held.cursor.map(sent).map(Box::new),
            filter: self.filter.clone(),
            follow: true,
            want: Extent::All,
            window: Duration::from_secs(self.dice.pick(&[1, 5, 20, 55])),
        };
        let mut walk = world.history.walk(request).unwrap();
        loop {
            if may_leave && self.dice.one_in(10) {
                if self.dice.one_in(3) {
                    self.lose();
                }
                return;
            }
            let was_live = walk.is_live();
            match walk.next().await {
                Step::Rows(rows) => {
                    self.points.push(self.held.clone());
                    if self.points.len() > POINTS_MAX {
                        self.points.remove(0);
                    }
                    self.take(world, (walk.cursor(), was_live), &rows.to_vec());
                }
                Step::End(end) => return self.finish(world, walk.cursor(), &end),
            }
        }
    }

    /// What came last never arrived.
    fn lose(&mut self) {
        if let Some(held) = self.points.pop() {
            self.held = held;
        }
    }

    /// True rows that it does not have, newest first, and once it is live, oldest first.
    fn take(&mut self, world: &World, (cursor, was_live): (Cursor, bool), rows: &[Row]) {
        let address = world.wallets[self.wallet].address;
        let before = self.held.cursor.filter(|_| !self.held.rows.is_empty());
        let last = match before.map(|cursor| cursor.position) {
            Some(Position::After(last)) => Some(last),
            Some(Position::Start) | None => None,
        };
        // A key sorts before those of older rows.
        let keys: Vec<_> = rows.iter().map(|row| row.trade.key).collect();
        if was_live {
            assert!(keys.is_sorted_by(|older, newer| older > newer), "live rows not in order");
            assert!(last.is_none_or(|last| keys.iter().all(|key| *key < last)), "older live rows");
        } else {
            assert!(keys.is_sorted(), "rows not in order");
        }
        let truths = world.truths.borrow();
        let truth = &truths[self.wallet];
        for row in rows {
            let is_true = if world.forked { truth.was(row) } else { truth.is(row) };
            assert!(is_true, "a row that is not true: {row:?}, {:?}", truth.like(row));
            let mark = (address, row.trade.key.tx, row.trade.key.leg);
            assert!(!self.held.rows.contains(&mark), "a follower got a row twice: {row:?}");
            self.held.rows.push(mark);
        }
        self.held.cursor = Some(cursor);
    }

    fn finish(&mut self, world: &World, cursor: Cursor, end: &End) {
        assert!(!end.complete, "a walk that follows has no end: {end:?}");
        if let Some(error) = &end.error {
            assert!(is_expected(error), "{error:?}");
        }
        self.held.cursor = Some(cursor);
        if end.error == Some(HistoryError::Changed) {
            assert!(world.is_uncertain(), "nothing changed: {cursor:?} by {:?}", self.filter);
            say("the follower begins anew");
            self.begin_anew();
            // It holds nothing now.
            return;
        }
        if let Some(head) = cursor.head.filter(|_| cursor.live && !world.is_uncertain()) {
            let lacks = self.lacks(world, head);
            assert!(lacks.is_empty(), "passed over {lacks:?} at {head}");
        }
    }

    /// True rows up to a height that it does not hold.
    fn lacks(&self, world: &World, height: Height) -> Vec<String> {
        let truths = world.truths.borrow();
        let address = world.wallets[self.wallet].address;
        let wanted = sieve::sifted(&self.filter, truths[self.wallet].below(height));
        let lacks = wanted.iter().filter(|fact| {
            Some(fact.tx) != world.poison && !self.held.rows.contains(&(address, fact.tx, fact.leg))
        });
        lacks.map(|fact| format!("{} {:?}", fact.slot, fact.side)).collect()
    }

    /// Nothing fails any more: it gets all, with what it held before or without.
    pub(super) async fn calm(&mut self, world: &World, target: Height) {
        if world.forked {
            self.begin_anew();
        }
        for _ in 0..super::CALM_TRIES {
            self.ask(world, false).await;
            let head = self.held.cursor.and_then(|cursor| cursor.head);
            if head >= Some(target) && self.lacks(world, target).is_empty() {
                return;
            }
            sleep(super::FRESHNESS).await;
        }
        let lacks = self.lacks(world, target);
        panic!("a follower never gets all; lacks {lacks:?} at {:?}", self.held.cursor);
    }
}
