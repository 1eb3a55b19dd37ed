//! Pure: native values of rows whose transactions do not contain them. Integers only; every
//! division rounds down.

use std::collections::HashMap;

use ruint::{Uint, UintTryFrom as _};

use crate::decode::{DecodedTrade, is_part};
use crate::domain::{
    Address, LearnedPrice, Price, Side, Trade, TxId, Units, UnixSeconds, ValueSource,
};
use crate::registry::Chain;

/// Two values of one transaction that differ by more than this factor are both rejected.
const SIDES_FACTOR_MAX: u64 = 2;
/// A trade of fewer dollars implies no price: rounding and fees weigh too much in it.
const LEARNED_DOLLARS_MIN: u64 = 10;
/// How far from a trade, before or after, learned prices count.
pub(super) const LEARNED_AGE_MAX: u32 = 300;
/// A learned price that differs from the median of those around it by more than one part in so many
/// is rejected.
const LEARNED_OFF_PART: u64 = 20;
/// Learned prices that must agree, and the nearest ones whose median is taken.
const LEARNED_COUNT_MIN: usize = 2;
const LEARNED_COUNT_MAX: usize = 3;
/// How far from a trade, before or after, another one is evidence of a token's value.
pub const TOKEN_AGE_MAX: u32 = 60;
/// A trade values amounts up to so many times its own.
const TOKEN_TIMES_MAX: u64 = 10;
/// Tokens with more decimals are not valued; powers of ten up to twice this fit the integer.
const DECIMALS_MAX: u8 = 36;

type Wide = Uint<512, 8>;

/// A chain with the decimals of its stablecoins.
#[derive(Debug)]
pub(super) struct Coins<'a> {
    pub(super) chain: &'a Chain,
    /// Decimals of the stablecoins that the rows name.
    pub(super) decimals: HashMap<Address, u8>,
}

impl Coins<'_> {
    pub(super) fn is_stable(&self, mint: &Address) -> bool {
        self.chain.stablecoins.contains(mint)
    }

    fn decimals(&self, mint: &Address) -> Option<u8> {
        self.decimals.get(mint).copied().filter(|decimals| *decimals <= DECIMALS_MAX)
    }

    /// A stablecoin's amount in dollars, divided by a price or by an amount of native coin: the
    /// other of the two.
    fn divided(&self, row: &Trade, by: Wide) -> Option<Wide> {
        let coin = self.chain.native.decimals.checked_add(Price::DECIMALS)?;
        let dollars = Wide::from(row.units?).checked_mul(ten_to(coin)?)?;
        dollars.checked_div(ten_to(self.decimals(&row.mint)?)?.checked_mul(by)?)
    }

    fn worth(&self, row: &Trade, price: Price) -> Option<Units> {
        narrow(self.divided(row, Wide::from(price.0))?)
    }

    /// The price at which a stablecoin's amount was exchanged for native coin.
    fn price(&self, row: &Trade) -> Option<Price> {
        let least = Wide::from(LEARNED_DOLLARS_MIN) * ten_to(self.decimals(&row.mint)?)?;
        if Wide::from(row.units?) < least {
            return None;
        }
        let price = self.divided(row, Wide::from(row.native?))?;
        u128::try_from(price).ok().filter(|price| *price > 0).map(Price)
    }
}

fn ten_to(exponent: u8) -> Option<Wide> {
    (exponent <= 2 * DECIMALS_MAX).then(|| Wide::from(10).pow(Wide::from(exponent)))
}

/// No value is zero: less than the smallest unit counts as unknown.
fn narrow(wide: Wide) -> Option<Units> {
    Units::uint_try_from(wide).ok().filter(|units| !units.is_zero())
}

/// Marks the rows of a transaction whose route passed through native coin: one token for another at
/// one value.
pub(super) fn mark_routed(rows: &mut [Trade]) {
    if let [one, other] = rows
        && one.side != other.side
        && one.native == other.native
        && one.valued.is_of_transaction()
    {
        (one.valued, other.valued) = (ValueSource::Route, ValueSource::Route);
    }
}

/// Whether the price of the native coin would give one of the rows a value. Rows of one side alone
/// were exchanged for native coin: its amount is exact or unknown, never a price's approximation.
pub(super) fn wants_price(coins: &Coins<'_>, rows: &[Trade]) -> bool {
    let lacks =
        |row: &Trade| row.native.is_none() && row.units.is_some() && coins.is_stable(&row.mint);
    is_token_for_token(rows) && rows.iter().any(lacks)
}

/// The same for decoded trades, as far as they show it: decimals and other trades are not known
/// yet.
pub(super) fn may_want_price(chain: &Chain, trades: &[DecodedTrade]) -> bool {
    let has = |side| trades.iter().any(|trade| trade.side == side);
    let lacks = |trade: &DecodedTrade| {
        trade.native.is_none() && trade.units.is_some() && chain.stablecoins.contains(&trade.mint)
    };
    has(Side::Sell) && has(Side::Buy) && trades.iter().any(lacks)
}

/// Marks rows as pending that were exchanged for native coin whose amount an endpoint failed to
/// report.
pub(super) fn await_native(rows: &mut [Trade]) {
    if is_token_for_token(rows) {
        return;
    }
    for row in rows.iter_mut().filter(|row| row.native.is_none()) {
        row.valued = ValueSource::Pending;
    }
}

/// Whether rows of one transaction are pending for the native coin that it moved, not for a price.
pub(super) fn awaits_native(rows: &[Trade]) -> bool {
    !is_token_for_token(rows) && rows.iter().any(|row| row.valued == ValueSource::Pending)
}

/// Whether rows of a transaction are pending for other trades of their tokens, and for nothing
/// else.
pub(super) fn awaits_tokens(coins: &Coins<'_>, rows: &[Trade]) -> bool {
    let waits = rows.iter().any(|row| row.valued == ValueSource::Pending);
    waits && !wants_price(coins, rows) && !awaits_native(rows)
}

fn is_token_for_token(rows: &[Trade]) -> bool {
    [Side::Sell, Side::Buy].iter().all(|side| rows.iter().any(|row| row.side == *side))
}

/// Whether the decimals of the stablecoins among rows without a value are known.
pub(super) fn knows_decimals(coins: &Coins<'_>, rows: &[Trade]) -> bool {
    let mut stable = rows.iter().filter(|row| coins.is_stable(&row.mint));
    stable.all(|row| row.native.is_some() || coins.decimals.contains_key(&row.mint))
}

/// Values stablecoins by a price, and what was traded for nothing but stablecoins by their sum.
pub(super) fn by_price(
    coins: &Coins<'_>,
    rows: &mut [Trade],
    side_payment: Units,
    price: Price,
    source: ValueSource,
) {
    let worths: Vec<Option<Units>> = rows
        .iter()
        .map(|row| coins.is_stable(&row.mint).then(|| coins.worth(row, price)).flatten())
        .collect();
    let sums = [Side::Sell, Side::Buy].map(|side| side_sum(rows, &worths, side));
    let [given, got] = sums;
    if let (Some(given), Some(got)) = (given, got)
        && far_apart(given, got)
    {
        return;
    }
    let count = |side| rows.iter().filter(|row| row.side == side).count();
    let (sells, buys) = (count(Side::Sell), count(Side::Buy));
    for (row, own) in rows.iter_mut().zip(worths) {
        // The given side decides where both sides have a value.
        let (other, alone) = match row.side {
            Side::Buy => (given, buys == 1),
            Side::Sell => (got.filter(|_| given.is_none()), sells == 1),
        };
        let other = other.filter(|sum| alone && !is_part(side_payment, *sum));
        if row.native.is_none()
            && let Some(value) = other.or(own)
        {
            (row.native, row.valued) = (Some(value), source);
        }
    }
}

/// The worth of a side that is nothing but stablecoins.
fn side_sum(rows: &[Trade], worths: &[Option<Units>], side: Side) -> Option<Units> {
    let mut sum = None;
    for (_, worth) in rows.iter().zip(worths).filter(|(row, _)| row.side == side) {
        sum = Some(sum.unwrap_or(Units::ZERO).checked_add((*worth)?)?);
    }
    sum
}

fn far_apart(a: Units, b: Units) -> bool {
    let over = |a: Units, b: Units| a > b.saturating_mul(Units::from(SIDES_FACTOR_MAX));
    over(a, b) || over(b, a)
}

/// The price that a transaction implies: of its one stablecoin, where native coin was exchanged for
/// it and nothing else moved.
pub(super) fn teaches(coins: &Coins<'_>, rows: &[Trade], paid: Units) -> Option<LearnedPrice> {
    let mut stable = rows.iter().filter(|row| coins.is_stable(&row.mint));
    let row = stable.next().filter(|row| row.valued.is_of_transaction())?;
    if stable.next().is_some() || row.native.is_none_or(|native| is_part(paid, native)) {
        return None;
    }
    Some(LearnedPrice { time: row.key.time, price: coins.price(row)?, tag: tag(&row.key.tx) })
}

fn tag(tx: &TxId) -> u64 {
    tx.to_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// The price at a time from learned prices around it: the median of the nearest ones that agree
/// with the rest. `None` where too few do.
pub(super) fn learned_at(around: &[LearnedPrice], time: UnixSeconds) -> Option<Price> {
    let near = |price: &&LearnedPrice| price.time.0.abs_diff(time.0) <= LEARNED_AGE_MAX;
    let mut near: Vec<&LearnedPrice> = around.iter().filter(near).collect();
    near.sort_by_key(|price| (price.tag, price.price));
    near.dedup_by_key(|price| price.tag);
    let middle = median(near.iter().map(|price| price.price).collect())?;
    near.retain(|price| {
        let off = Wide::from(price.price.0.abs_diff(middle.0));
        off * Wide::from(LEARNED_OFF_PART) <= Wide::from(middle.0)
    });
    if near.len() < LEARNED_COUNT_MIN {
        return None;
    }
    near.sort_by_key(|price| (price.time.0.abs_diff(time.0), price.price, price.tag));
    near.truncate(LEARNED_COUNT_MAX);
    median(near.iter().map(|price| price.price).collect())
}

/// The median; of an even number the lower of the two in the middle.
fn median(mut prices: Vec<Price>) -> Option<Price> {
    prices.sort_unstable();
    prices.get(prices.len().checked_sub(1)? / 2).copied()
}

/// The value that another trade gives to a transaction of one token for one other which nothing
/// else values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenValue {
    Value(Units),
    /// A trade that could be evidence is pending itself.
    Later,
    Nothing,
}

/// Whether [`by_token`] may give the rows of a transaction a value.
pub(super) fn wants_token(rows: &[Trade]) -> bool {
    matches!(rows, [one, other] if one.side != other.side
        && rows.iter().all(|row| row.native.is_none() && row.units.is_some()))
}

/// The value of one token for one other by the value of one of them within a minute in another
/// trade of the wallet. What was given takes precedence over what was received; where both are
/// known and disagree, neither counts.
pub(super) fn by_token(rows: &[Trade], side_payment: Units, others: &[&Trade]) -> TokenValue {
    if !wants_token(rows) {
        return TokenValue::Nothing;
    }
    let mut rows: Vec<&Trade> = rows.iter().collect();
    rows.sort_by_key(|row| row.side == Side::Buy);
    let mut values = Vec::new();
    for row in rows {
        match token_worth(row, others) {
            TokenValue::Value(value) => values.push(value),
            TokenValue::Later => return TokenValue::Later,
            TokenValue::Nothing => {}
        }
    }
    match values.as_slice() {
        [given, got] if far_apart(*given, *got) => TokenValue::Nothing,
        [value, ..] if !is_part(side_payment, *value) => TokenValue::Value(*value),
        _ => TokenValue::Nothing,
    }
}

/// A row's worth by the nearest trade of the same token.
fn token_worth(row: &Trade, others: &[&Trade]) -> TokenValue {
    let Some(units) = row.units else { return TokenValue::Nothing };
    let fits = |other: &&&Trade| {
        other.mint == row.mint
            && other.key.tx != row.key.tx
            && other.key.time.0.abs_diff(row.key.time.0) <= TOKEN_AGE_MAX
            && other.units.is_some_and(|known| {
                !known.is_zero() && units <= known.saturating_mul(Units::from(TOKEN_TIMES_MAX))
            })
    };
    let nearest = |other: &&&Trade| {
        let distance = other.key.time.0.abs_diff(row.key.time.0);
        (distance, std::cmp::Reverse(other.units), other.key)
    };
    // Only values that do not depend on which trades this server happens to hold.
    let firm = |other: &&&Trade| {
        other.valued.is_of_transaction() || other.valued == ValueSource::ReferencePool
    };
    let fitting = || others.iter().filter(fits);
    let waits = |other: &&Trade| other.valued == ValueSource::Pending;
    if fitting().any(waits) {
        return TokenValue::Later;
    }
    let Some(other) = fitting().filter(firm).min_by_key(nearest) else {
        return TokenValue::Nothing;
    };
    let worth = || {
        let product = Wide::from(units).checked_mul(Wide::from(other.native?))?;
        narrow(product.checked_div(Wide::from(other.units?))?)
    };
    worth().map_or(TokenValue::Nothing, TokenValue::Value)
}

#[cfg(test)]
mod tests;
