//! A wallet's token movements, inside and outside its trades, read from the nodes again.
//!
//! Nothing comes from the store, so that stored rows can be compared with the result.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::read_task::ReadTask;
use super::tasks::Tasks;
use crate::decode::explain::{Asset, Explanation};
use crate::domain::{
    Address, Height, Resume, Side, SourceAccount, Units, UnixSeconds, Wallet, opaque,
};
use crate::registry::Registry;
use crate::rpc::{Lane, UpstreamError};
use crate::sources::{GapRequest, RawChunk, RunAhead, Source};

/// Transactions processed before the task yields.
const RUN: usize = 32;
/// Consecutive failures after which reading ends, and the pause after the first.
const FAILURES_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// A sum of amounts; `None` after an overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum(Option<Units>);

impl Default for Sum {
    fn default() -> Self {
        Self(Some(Units::ZERO))
    }
}

impl Sum {
    pub fn of(units: Units) -> Self {
        Self(Some(units))
    }

    pub fn units(self) -> Option<Units> {
        self.0
    }

    pub fn add(&mut self, units: Units) {
        self.0 = self.0.and_then(|sum| sum.checked_add(units));
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.zip(other.0).and_then(|(one, other)| one.checked_add(other)))
    }
}

/// Amounts of one token that moved: in trades and outside them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub bought: Sum,
    pub sold: Sum,
    /// Received and sent outside trades: per transaction, the movements less its trades.
    pub came: Sum,
    pub went: Sum,
}

/// Reads a wallet's transactions, newest first, and sums their movements.
pub struct Moves {
    source: Source,
    registry: Arc<Registry>,
    wallet: Wallet,
    lane: Lane,
    tasks: Tasks,
    read_task: Option<ReadTask>,
    /// Where a new reader continues after a failure; `None` before the first chunk.
    high: Option<Height>,
    resume: Option<Resume>,
    accounts: HashMap<[u8; 32], SourceAccount>,
    ended: bool,
    transactions: u64,
    oldest: Option<UnixSeconds>,
    tokens: BTreeMap<Address, Moved>,
}

opaque!(Moves, transactions);

impl Moves {
    /// Reading begins with the first [`Moves::next`] and ends when this is dropped.
    pub fn new(source: Source, registry: Arc<Registry>, wallet: Wallet, lane: Lane) -> Self {
        Self {
            source,
            registry,
            wallet,
            lane,
            tasks: Tasks::new(),
            read_task: None,
            high: None,
            resume: None,
            accounts: HashMap::new(),
            ended: false,
            transactions: 0,
            oldest: None,
            tokens: BTreeMap::new(),
        }
    }

    /// Number of successful transactions so far.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    pub fn oldest(&self) -> Option<UnixSeconds> {
        self.oldest
    }

    pub fn into_tokens(self) -> BTreeMap<Address, Moved> {
        self.tokens
    }

    /// Adds the next chunk; false after the last one.
    pub async fn next(&mut self) -> Result<bool, UpstreamError> {
        let mut failures = 0;
        while !self.ended {
            match self.read_task().next().await {
                Ok(Some(chunk)) => {
                    self.add(chunk).await;
                    return Ok(true);
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    failures += 1;
                    if error.is_final() || failures >= FAILURES_MAX {
                        return Err(error);
                    }
                    self.read_task = None;
                    sleep(PAUSE * failures).await;
                }
            }
        }
        Ok(false)
    }

    fn read_task(&mut self) -> &mut ReadTask {
        let Self { source, wallet, lane, tasks, read_task, high, resume, accounts, .. } = self;
        read_task.get_or_insert_with(|| {
            let reader = source.read(GapRequest {
                wallet: wallet.address,
                low: 0,
                high: *high,
                resume: resume.clone(),
                accounts: accounts.values().copied().collect(),
                knows_accounts: !accounts.is_empty(),
                lane: lane.clone(),
                first: high.is_none(),
                another: None,
            });
            let read_task = ReadTask::start(tasks, reader, 0, *high);
            read_task.set_run_ahead(RunAhead::All);
            read_task
        })
    }

    async fn add(&mut self, chunk: RawChunk) {
        for (at, tx) in chunk.late.iter().chain(&chunk.txs).enumerate() {
            if at % RUN == RUN - 1 {
                tokio::task::yield_now().await;
            }
            self.transactions += 1;
            self.oldest = Some(tx.time());
            if let Some(explanation) = tx.explain(&self.registry, &self.wallet, None) {
                add(&mut self.tokens, &explanation);
            }
        }
        self.accounts.extend(chunk.accounts.into_iter().map(|account| (account.account, account)));
        self.resume = chunk.resume;
        match chunk.low.checked_sub(1) {
            Some(below) => self.high = Some(below),
            None => self.ended = true,
        }
    }
}

/// Adds the movements and trades of one transaction.
fn add(tokens: &mut BTreeMap<Address, Moved>, explanation: &Explanation) {
    // Per token: movements in and sells, then movements out and buys.
    let mut rests: BTreeMap<Address, (Sum, Sum)> = BTreeMap::new();
    for movement in &explanation.movements {
        if let Asset::Token(mint) = movement.asset {
            let (more, less) = rests.entry(mint).or_default();
            more.add(movement.got);
            less.add(movement.gave);
        }
    }
    for trade in &explanation.decoded.trades {
        let Some(units) = trade.units else { continue };
        let (more, less) = rests.entry(trade.mint).or_default();
        let moved = tokens.entry(trade.mint).or_default();
        match trade.side {
            Side::Buy => {
                moved.bought.add(units);
                less.add(units);
            }
            Side::Sell => {
                moved.sold.add(units);
                more.add(units);
            }
        }
    }
    for (mint, (more, less)) in rests {
        let moved = tokens.entry(mint).or_default();
        let (Some(more), Some(less)) = (more.units(), less.units()) else {
            (moved.came, moved.went) = (Sum(None), Sum(None));
            continue;
        };
        match more.checked_sub(less) {
            Some(rest) => moved.came.add(rest),
            None => moved.went.add(less.saturating_sub(more)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::explain::Movement;
    use crate::decode::{Decoded, DecodedTrade};

    fn token(number: u8) -> Address {
        Address::Evm([number; 20])
    }

    fn tx(moved: &[(u8, u64, u64)], rows: &[(u8, Side, Option<u64>)]) -> Explanation {
        let movement = |&(of, got, gave): &(u8, u64, u64)| Movement {
            asset: Asset::Token(token(of)),
            got: Units::from(got),
            gave: Units::from(gave),
        };
        let trade = |&(of, side, units): &(u8, Side, Option<u64>)| DecodedTrade {
            side,
            mint: token(of),
            units: units.map(Units::from),
            native: None,
            venue: "Orca".into(),
        };
        let native = Movement { asset: Asset::Native, got: Units::from(7), gave: Units::ZERO };
        let trades = rows.iter().map(trade).collect();
        Explanation {
            decoded: Decoded { trades, ..Decoded::default() },
            movements: moved.iter().map(movement).chain([native]).collect(),
            ..Explanation::default()
        }
    }

    fn sums(txs: &[Explanation]) -> BTreeMap<Address, [u64; 4]> {
        let mut tokens = BTreeMap::new();
        for tx in txs {
            add(&mut tokens, tx);
        }
        let units = |sum: Sum| u64::try_from(sum.units().unwrap()).unwrap();
        let four = |moved: Moved| [moved.bought, moved.sold, moved.came, moved.went].map(units);
        tokens.into_iter().map(|(mint, moved)| (mint, four(moved))).collect()
    }

    #[test]
    fn what_moved_outside_the_rows_is_a_transfer() {
        let (buy, sell) = (Side::Buy, Side::Sell);
        let txs = [
            // Three transactions with a buy of 100: one moves as much, one also passes a part on at
            // once, and one receives more.
            tx(&[(1, 100, 0)], &[(1, buy, Some(100))]),
            tx(&[(1, 100, 30)], &[(1, buy, Some(100))]),
            tx(&[(1, 105, 0)], &[(1, buy, Some(100))]),
            // Sold out of what an order held since it was placed.
            tx(&[(1, 0, 40)], &[]),
            tx(&[], &[(1, sell, Some(40))]),
            // Token for token, and plain transfers.
            tx(&[(1, 0, 10), (2, 20, 0)], &[(1, sell, Some(10)), (2, buy, Some(20))]),
            tx(&[(2, 3, 0)], &[]),
            tx(&[(3, 9, 9)], &[]),
            // A row without an amount: the movement counts separately.
            tx(&[(4, 6, 0)], &[(4, buy, None)]),
        ];
        let expected = [
            (token(1), [300, 50, 45, 70]),
            (token(2), [20, 0, 3, 0]),
            (token(3), [0, 0, 0, 0]),
            (token(4), [0, 0, 6, 0]),
        ];
        assert_eq!(sums(&txs), BTreeMap::from(expected));
    }

    #[test]
    fn a_sum_that_no_amount_can_be_is_not_reported() {
        let mut sum = Sum::of(Units::MAX);
        assert_eq!(sum.plus(Sum::of(Units::from(1))).units(), None);
        sum.add(Units::from(1));
        sum.add(Units::from(1));
        assert_eq!(sum.units(), None);
    }
}
