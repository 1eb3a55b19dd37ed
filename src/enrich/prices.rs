//! Looks up the prices that rows need, in a fixed order: the chain's reference pools, prices
//! learned from trades, the candle source. A source is queried only where the one before has no
//! price.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;

use tokio::time::{Instant, timeout_at};

use super::Lookups;
use super::valuation::{self, Coins, LEARNED_AGE_MAX};
use crate::domain::{LearnedPrice, Minute, Moment, Price, Trade, UnixSeconds, ValueSource};
use crate::rpc::UpstreamError;
use crate::store::{KeptCandle, PriceRecord, StoreError};

pub(super) type PriceAnswer = Result<Vec<Option<Price>>, UpstreamError>;
type LearnedPrices = Result<Vec<LearnedPrice>, StoreError>;

/// The price sources of a chain after its reference pools.
pub(super) trait Quoting: Sync {
    /// From the candle source; `None` where none is configured.
    fn candles(&self, at: &[UnixSeconds]) -> impl Future<Output = Option<PriceAnswer>> + Send;
    fn learned(
        &self,
        from: UnixSeconds,
        to: UnixSeconds,
    ) -> impl Future<Output = LearnedPrices> + Send;
    fn now(&self) -> UnixSeconds;
    /// Earlier answers of the candle source.
    fn kept_candle(
        &self,
        minute: Minute,
    ) -> impl Future<Output = Result<KeptCandle, StoreError>> + Send;
}

/// Seconds after which a minute without a candle counts as one that never gets a candle.
const CANDLE_SETTLED_AFTER: u32 = 2 * 60 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Price(Price, ValueSource),
    /// No source has a price, now or later.
    Unavailable,
    /// A source failed or timed out: the lookup is repeated later.
    Later,
}

/// The outcomes of one round of lookups.
#[derive(Debug, Default)]
pub struct Quotes {
    by_moment: HashMap<Moment, Quote>,
    /// Whether a row needs a price.
    pub is_asked: bool,
    /// Answers of the candle source, to be stored.
    pub news: Vec<PriceRecord>,
    pub(super) late: bool,
}

impl Quotes {
    pub(super) fn at(&self, moment: Moment) -> Quote {
        self.by_moment.get(&moment).copied().unwrap_or(Quote::Later)
    }

    pub fn all_later(&self) -> bool {
        self.by_moment.values().all(|quote| *quote == Quote::Later)
    }
}

/// The moments at which a price would give rows a value, each once.
pub(super) fn moments(coins: &Coins<'_>, trades: &[Trade]) -> Vec<Moment> {
    let wanting = transactions(trades).filter(|rows| {
        valuation::wants_price(coins, rows) && valuation::knows_decimals(coins, rows)
    });
    let all: BTreeSet<Moment> = wanting.filter_map(|rows| rows.first().map(moment)).collect();
    all.into_iter().collect()
}

pub(super) fn moment(trade: &Trade) -> Moment {
    Moment { height: trade.key.height, time: trade.key.time }
}

/// The rows of each transaction; they stand together.
pub(super) fn transactions(trades: &[Trade]) -> impl Iterator<Item = &[Trade]> {
    trades.chunk_by(|a, b| a.key.tx == b.key.tx)
}

/// Looks up prices, until `deadline` at most; without one no source is queried and every value is
/// deferred. `reference` requests the reference prices of all moments; `own` are learned prices
/// that are not stored yet.
pub(super) async fn quotes(
    sources: &impl Quoting,
    reference: impl Future<Output = PriceAnswer>,
    moments: &[Moment],
    own: &[LearnedPrice],
    deadline: Option<Instant>,
) -> Result<Quotes, StoreError> {
    let mut quotes = Quotes { is_asked: !moments.is_empty(), ..Quotes::default() };
    let (Some(deadline), false) = (deadline, moments.is_empty()) else { return Ok(quotes) };
    let asked = async { or_next_source(reference.await, moments.len()) };
    let Some(found) = in_time(asked, deadline, &mut quotes.late).await else {
        return Ok(quotes);
    };
    if found.len() != moments.len() {
        return Ok(quotes);
    }
    let mut open = Vec::new();
    for (moment, price) in moments.iter().zip(found) {
        let quote = match price {
            Some(price) => Some(Quote::Price(price, ValueSource::ReferencePool)),
            None => learned(sources, moment.time, own).await?,
        };
        match quote {
            Some(quote) => drop(quotes.by_moment.insert(*moment, quote)),
            None => open.push(*moment),
        }
    }
    candles(sources, &open, deadline, &mut quotes).await?;
    Ok(quotes)
}

/// Pools that no node can read, now or later, have no price: the next source is queried.
fn or_next_source(prices: PriceAnswer, count: usize) -> PriceAnswer {
    match prices {
        Err(error) if error.is_final() => {
            tracing::debug!(%error, "no node returns the state of reference pools; using the next price source");
            Ok(vec![None; count])
        }
        prices => prices,
    }
}

async fn learned(
    sources: &impl Quoting,
    time: UnixSeconds,
    own: &[LearnedPrice],
) -> Result<Option<Quote>, StoreError> {
    let from = UnixSeconds(time.0.saturating_sub(LEARNED_AGE_MAX));
    let to = UnixSeconds(time.0.saturating_add(LEARNED_AGE_MAX));
    let mut around = sources.learned(from, to).await?;
    around.extend(own);
    let price = valuation::learned_at(&around, time);
    Ok(price.map(|price| Quote::Price(price, ValueSource::Learned)))
}

/// Looks up candles. Each is stored by its minute, so that a minute keeps its price.
async fn candles(
    sources: &impl Quoting,
    open: &[Moment],
    deadline: Instant,
    quotes: &mut Quotes,
) -> Result<(), StoreError> {
    let minutes: BTreeSet<Minute> = open.iter().map(|moment| Minute::of(moment.time)).collect();
    let (mut found, mut unasked) = (HashMap::new(), Vec::new());
    for minute in minutes {
        match sources.kept_candle(minute).await? {
            KeptCandle::Price(price) => drop(found.insert(minute, Some(price))),
            KeptCandle::Nothing => drop(found.insert(minute, None)),
            KeptCandle::Unasked => unasked.push(minute),
        }
    }
    if !unasked.is_empty() {
        let times: Vec<UnixSeconds> = unasked.iter().map(|minute| minute.start()).collect();
        let asked = async { sources.candles(&times).await.transpose() };
        let answer = in_time(asked, deadline, &mut quotes.late).await;
        match answer {
            Some(None) => found.extend(unasked.into_iter().map(|minute| (minute, None))),
            Some(Some(prices)) if prices.len() == unasked.len() => {
                let now = sources.now().0;
                let is_settled =
                    |minute: Minute| minute.start().0.saturating_add(CANDLE_SETTLED_AFTER) < now;
                let known = unasked.into_iter().zip(prices);
                for (minute, price) in
                    known.filter(|(minute, price)| price.is_some() || is_settled(*minute))
                {
                    quotes.news.push(PriceRecord::Candle(minute, price));
                    found.insert(minute, price);
                }
            }
            Some(Some(_)) | None => {}
        }
    }
    for moment in open {
        let quote = match found.get(&Minute::of(moment.time)) {
            Some(Some(price)) => Quote::Price(*price, ValueSource::Candle),
            Some(None) => Quote::Unavailable,
            None => Quote::Later,
        };
        quotes.by_moment.insert(*moment, quote);
    }
    Ok(())
}

/// The answer of a source; `None` where it failed or timed out.
async fn in_time<T>(
    asked: impl Future<Output = Result<T, UpstreamError>>,
    deadline: Instant,
    late: &mut bool,
) -> Option<T> {
    match timeout_at(deadline, asked).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "price lookup failed; values are retried later");
            None
        }
        Err(_) => {
            *late = true;
            None
        }
    }
}

impl Quoting for Lookups<'_> {
    async fn candles(&self, at: &[UnixSeconds]) -> Option<PriceAnswer> {
        let candles = self.enricher.candles.as_ref()?;
        Some(candles.prices(&self.chain.slug, at, self.lane).await)
    }

    async fn learned(&self, from: UnixSeconds, to: UnixSeconds) -> LearnedPrices {
        self.enricher.store.view()?.learned_prices(self.chain.id, from, to).await
    }

    fn now(&self) -> UnixSeconds {
        self.enricher.clock.now().seconds()
    }

    async fn kept_candle(&self, minute: Minute) -> Result<KeptCandle, StoreError> {
        self.enricher.store.view()?.candle(self.chain.id, minute).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    const AT: Moment = Moment { height: 9, time: UnixSeconds(1_700_000_000) };
    const WAIT: Duration = Duration::from_secs(3);

    #[derive(Debug, Clone, Copy)]
    enum Answer {
        Price(u128),
        Unavailable,
        Fails,
        Refuses,
        Silent,
    }

    impl Answer {
        async fn give(self, count: usize) -> PriceAnswer {
            match self {
                Self::Price(price) => Ok(vec![Some(Price(price)); count]),
                Self::Unavailable => Ok(vec![None; count]),
                Self::Fails => Err(UpstreamError::Unavailable { attempts: 1, last: String::new() }),
                Self::Refuses => {
                    Err(UpstreamError::NotSupported { method: "eth_getLogs".to_owned() })
                }
                Self::Silent => std::future::pending().await,
            }
        }
    }

    /// Sources with configured answers that record the queries.
    struct Script {
        reference: Answer,
        learned: Vec<u128>,
        candles: Option<Answer>,
        now: UnixSeconds,
        kept: KeptCandle,
        asked: Mutex<Vec<&'static str>>,
    }

    impl Quoting for Script {
        async fn candles(&self, at: &[UnixSeconds]) -> Option<PriceAnswer> {
            assert!(at.iter().all(|time| time.0 % 60 == 0), "by the minute");
            self.asked.lock().unwrap().push("candles");
            match self.candles {
                Some(answer) => Some(answer.give(at.len()).await),
                None => None,
            }
        }

        async fn learned(&self, from: UnixSeconds, to: UnixSeconds) -> LearnedPrices {
            assert_eq!((from.0, to.0), (AT.time.0 - 300, AT.time.0 + 300));
            self.asked.lock().unwrap().push("learned");
            let price = |(price, tag): (&u128, u64)| LearnedPrice {
                time: AT.time,
                price: Price(*price),
                tag,
            };
            Ok(self.learned.iter().zip(0..).map(price).collect())
        }

        fn now(&self) -> UnixSeconds {
            self.now
        }

        async fn kept_candle(&self, _: Minute) -> Result<KeptCandle, StoreError> {
            Ok(self.kept)
        }
    }

    impl Script {
        async fn reference(&self) -> PriceAnswer {
            self.asked.lock().unwrap().push("reference");
            self.reference.give(1).await
        }
    }

    fn script(reference: Answer) -> Script {
        let (learned, asked) = (Vec::new(), Mutex::default());
        let now = UnixSeconds(AT.time.0 + CANDLE_SETTLED_AFTER + 60);
        Script { reference, learned, candles: None, now, kept: KeptCandle::Unasked, asked }
    }

    async fn quote(script: &Script) -> (Quote, Vec<&'static str>) {
        let deadline = Some(Instant::now() + WAIT);
        let quotes = quotes(script, script.reference(), &[AT], &[], deadline).await.unwrap();
        (quotes.at(AT), std::mem::take(&mut script.asked.lock().unwrap()))
    }

    fn quoted(price: u128, source: ValueSource) -> Quote {
        Quote::Price(Price(price), source)
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_source_is_queried_only_where_the_one_before_has_no_price() {
        let all = |reference| Script {
            learned: vec![21, 21],
            candles: Some(Answer::Price(30)),
            ..script(reference)
        };
        let first = quote(&all(Answer::Price(10))).await;
        assert_eq!(first, (quoted(10, ValueSource::ReferencePool), vec!["reference"]));
        let second = quote(&all(Answer::Unavailable)).await;
        assert_eq!(second, (quoted(21, ValueSource::Learned), vec!["reference", "learned"]));
        let third = quote(&Script { learned: vec![21], ..all(Answer::Unavailable) }).await;
        let order = vec!["reference", "learned", "candles"];
        assert_eq!(third, (quoted(30, ValueSource::Candle), order.clone()));
        let none =
            quote(&Script { candles: None, learned: vec![], ..all(Answer::Unavailable) }).await;
        assert_eq!(none, (Quote::Unavailable, order));
    }

    #[tokio::test(start_paused = true)]
    async fn pools_that_no_node_will_ever_read_are_as_good_as_none() {
        let pools = || script(Answer::Refuses);
        let found = quote(&Script { learned: vec![21, 21], ..pools() }).await;
        assert_eq!(found, (quoted(21, ValueSource::Learned), vec!["reference", "learned"]));
        let found = quote(&Script { candles: Some(Answer::Price(30)), ..pools() }).await;
        assert_eq!(found.0, quoted(30, ValueSource::Candle));
        assert_eq!(quote(&pools()).await.0, Quote::Unavailable);
        // The operator may fix the last source.
        let found = quote(&Script { candles: Some(Answer::Refuses), ..pools() }).await;
        assert_eq!(found.0, Quote::Later);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_fails_is_no_reason_to_query_the_next_one() {
        for reference in [Answer::Fails, Answer::Silent] {
            let candles = Some(Answer::Price(30));
            let begun = Instant::now();
            let found =
                quote(&Script { candles, learned: vec![21, 21], ..script(reference) }).await;
            assert_eq!(found, (Quote::Later, vec!["reference"]));
            assert!(begun.elapsed() <= WAIT);
        }
        for candles in [Answer::Fails, Answer::Silent] {
            let begun = Instant::now();
            let found =
                quote(&Script { candles: Some(candles), ..script(Answer::Unavailable) }).await;
            assert_eq!(found.0, Quote::Later);
            assert!(begun.elapsed() <= WAIT);
        }
        let unavailable = Some(Answer::Unavailable);
        let found = quote(&Script { candles: unavailable, ..script(Answer::Unavailable) }).await;
        assert_eq!(found.0, Quote::Unavailable);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_candle_said_of_a_minute_is_kept_and_not_asked_again() {
        let candles = Some(Answer::Price(30));
        let fresh = Script { candles, ..script(Answer::Unavailable) };
        let later = Moment { height: 10, time: UnixSeconds(AT.time.0 + 1) };
        let at = Minute::of(AT.time);
        let mut found = Quotes::default();
        super::candles(&fresh, &[AT, later], Instant::now() + WAIT, &mut found).await.unwrap();
        assert!(!found.all_later());
        assert_eq!(found.news, [PriceRecord::Candle(at, Some(Price(30)))], "two of one minute");
        for (kept, expected) in [
            (KeptCandle::Price(Price(31)), quoted(31, ValueSource::Candle)),
            (KeptCandle::Nothing, Quote::Unavailable),
        ] {
            let found = quote(&Script { candles, kept, ..script(Answer::Unavailable) }).await;
            assert_eq!(found, (expected, vec!["reference", "learned"]));
        }
    }

    /// The newest records of a price service come late.
    #[tokio::test(start_paused = true)]
    async fn a_candle_that_is_not_there_yet_is_asked_for_again() {
        let candles = Some(Answer::Unavailable);
        let settled = script(Answer::Unavailable).now;
        for (now, expected) in [(AT.time, Quote::Later), (settled, Quote::Unavailable)] {
            let script = Script { candles, now, ..script(Answer::Unavailable) };
            assert_eq!(quote(&script).await.0, expected, "{now:?}");
            let mut found = Quotes::default();
            super::candles(&script, &[AT], Instant::now() + WAIT, &mut found).await.unwrap();
            assert_eq!(found.news.is_empty(), expected == Quote::Later, "what is kept");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_source_is_queried_during_a_pause() {
        let script = script(Answer::Price(10));
        let found = quotes(&script, script.reference(), &[AT], &[], None).await.unwrap();
        assert_eq!(found.at(AT), Quote::Later);
        assert!(script.asked.lock().unwrap().is_empty());
    }
}
