//! Sets native values of rows: by prices, then by the wallet's other trades.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::prices::{Quote, Quotes, moment, moments, quotes, transactions};
use super::reference::ReferencePrices;
use super::valuation::{self, Coins, TOKEN_AGE_MAX, TokenValue};
use super::{Enricher, Lookups, SidePayments};
use crate::domain::{Address, ChainId, LearnedPrice, Trade, Units, UnixSeconds, ValueSource, lock};
use crate::store::{PriceRecord, StoreError, TokenRecord, WalletId};

/// Until when chunks of a chain wait for no prices, after a price lookup timed out.
#[derive(Debug, Default)]
pub(super) struct PricePauses(Mutex<HashMap<ChainId, Instant>>);

impl PricePauses {
    pub(super) fn holds(&self, chain: ChainId) -> bool {
        lock(&self.0).get(&chain).is_some_and(|until| Instant::now() < *until)
    }

    pub(super) fn begin(&self, chain: ChainId, time: Duration) {
        lock(&self.0).insert(chain, Instant::now() + time);
    }
}

/// Sets the values of a chunk's rows. Waits for prices no longer than `reference` leaves, and not
/// at all during a pause. Returns the prices to be stored.
pub(super) async fn look_up(
    lookups: &Lookups<'_>,
    id: WalletId,
    trades: &mut [Trade],
    side_payment: &SidePayments,
    tokens: &[TokenRecord],
    reference: &ReferencePrices,
) -> Result<Vec<PriceRecord>, StoreError> {
    let (chain, Enricher { limits, kept, .. }) = (lookups.chain.id, lookups.enricher);
    let coins = coins(lookups, trades, tokens).await?;
    let own: Vec<LearnedPrice> = transactions(trades)
        .filter_map(|rows| {
            valuation::teaches(&coins, rows, paid_aside(side_payment, rows.first()?))
        })
        .collect();
    let moments = moments(&coins, trades);
    let is_paused = kept.price_pauses.holds(chain);
    let deadline = (!is_paused).then(|| Instant::now() + reference.wait);
    let reference = async {
        match reference.of(&moments) {
            Some(prices) => prices,
            None => Box::pin(lookups.source.native_prices(&moments, lookups.lane)).await,
        }
    };
    let quotes = quotes(lookups, reference, &moments, &own, deadline).await?;
    if quotes.late {
        kept.price_pauses.begin(chain, limits.values_pause);
    }
    set_values(lookups, &coins, id, trades, side_payment, &quotes).await?;
    let own = own.into_iter().map(PriceRecord::Learned);
    Ok(own.chain(quotes.news).collect())
}

/// Sets the values of a wallet's rows from the quotes and its other trades; a row still without a
/// value is pending, or has none.
pub(super) async fn set_values(
    lookups: &Lookups<'_>,
    coins: &Coins<'_>,
    id: WalletId,
    trades: &mut [Trade],
    side_payment: &SidePayments,
    quotes: &Quotes,
) -> Result<(), StoreError> {
    for rows in trades.chunk_by_mut(|a, b| a.key.tx == b.key.tx) {
        by_price(coins, rows, side_payment, quotes);
    }
    let value = by_tokens(lookups, coins, id, trades, side_payment).await?;
    for (rows, value) in trades.chunk_by_mut(|a, b| a.key.tx == b.key.tx).zip(value) {
        for row in rows.iter_mut().filter(|row| row.native.is_none()) {
            (row.native, row.valued) = match value {
                TokenValue::Value(value) => (Some(value), ValueSource::Token),
                TokenValue::Later => (None, ValueSource::Pending),
                TokenValue::Nothing => (None, row.valued),
            };
        }
    }
    Ok(())
}

fn by_price(coins: &Coins<'_>, rows: &mut [Trade], side_payment: &SidePayments, quotes: &Quotes) {
    let Some(first) = rows.first() else { return };
    let side_payment = paid_aside(side_payment, first);
    let waits = if !valuation::wants_price(coins, rows) {
        valuation::awaits_native(rows)
    } else if !valuation::knows_decimals(coins, rows) {
        true
    } else {
        match quotes.at(moment(first)) {
            Quote::Later => true,
            Quote::Unavailable => false,
            Quote::Price(price, source) => {
                valuation::by_price(coins, rows, side_payment, price, source);
                false
            }
        }
    };
    for row in rows.iter_mut().filter(|row| row.native.is_none()) {
        row.valued = if waits { ValueSource::Pending } else { ValueSource::Unknown };
    }
}

fn paid_aside(side_payment: &SidePayments, row: &Trade) -> Units {
    side_payment.get(&row.key.tx).copied().unwrap_or_default()
}

/// The value of each transaction by other trades.
async fn by_tokens(
    lookups: &Lookups<'_>,
    coins: &Coins<'_>,
    id: WalletId,
    trades: &[Trade],
    side_payment: &SidePayments,
) -> Result<Vec<TokenValue>, StoreError> {
    let Enricher { store, limits, .. } = lookups.enricher;
    let max = limits.values_rows_around_max;
    let mut by_mint: HashMap<Address, Vec<&Trade>> = HashMap::new();
    for trade in trades {
        by_mint.entry(trade.mint).or_default().push(trade);
    }
    let mut all = Vec::new();
    for rows in transactions(trades) {
        let waits = rows.iter().any(|row| row.valued == ValueSource::Pending);
        let (Some(first), false) = (rows.first(), waits || !valuation::wants_token(rows)) else {
            all.push(TokenValue::Nothing);
            continue;
        };
        let time = first.key.time.0;
        let newest = UnixSeconds(time.saturating_add(TOKEN_AGE_MAX));
        let oldest = UnixSeconds(time.saturating_sub(TOKEN_AGE_MAX));
        let stored = store.view()?.rows_between(id, newest, oldest, max).await?;
        let stored: Vec<Trade> = stored.into_iter().map(|row| row.trade).collect();
        let read = rows.iter().filter_map(|row| by_mint.get(&row.mint)).flatten().copied();
        // A transaction that is pending for tokens alone would wait for this one in turn.
        let stored = transactions(&stored).filter(|rows| !valuation::awaits_tokens(coins, rows));
        let others: Vec<&Trade> = read.chain(stored.flatten()).collect();
        let side_payment = paid_aside(side_payment, first);
        all.push(valuation::by_token(rows, side_payment, &others));
    }
    Ok(all)
}

/// The chain's coins, with the decimals of the stablecoins among some trades.
pub(super) async fn coins<'a>(
    lookups: &Lookups<'a>,
    trades: &[Trade],
    tokens: &[TokenRecord],
) -> Result<Coins<'a>, StoreError> {
    let mut coins = Coins { chain: lookups.chain, decimals: HashMap::new() };
    let mints: BTreeSet<Address> =
        trades.iter().map(|trade| trade.mint).filter(|mint| coins.is_stable(mint)).collect();
    let view = lookups.enricher.store.view()?;
    for mint in mints {
        let fresh = tokens.iter().find(|token| token.mint == mint);
        let decimals = match fresh.and_then(|token| token.decimals) {
            Some(decimals) => Some(decimals),
            None => view.token(coins.chain.id, &mint).await?.and_then(|token| token.decimals),
        };
        coins.decimals.extend(decimals.map(|decimals| (mint, decimals)));
    }
    Ok(coins)
}
