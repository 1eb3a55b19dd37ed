//! The expected rows of a demo wallet, by the chain's model.

use blotter::demo::evm::{EvmModel, TradeKind, TrueTrade as EvmTrade};
use blotter::demo::solana::{SolanaModel, TrueTrade};
use blotter::domain::{
    Address, Doubts, Family, Height, Row, Side, TxId, Units, UnixSeconds, ValueSource,
};
use blotter::registry::Chain;

/// The chain's one stablecoin with trades.
const USDC: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
/// By how much a value may be off that was worked out by a price: what the tests of each source are
/// held to at the 99th percentile, `docs/values.md`.
const OFF_PERCENT: u64 = 2;
/// How far from a trade another one is evidence of a token's value, `docs/values.md`.
const TOKEN_SECONDS: u32 = 60;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) slot: Height,
    pub(crate) time: UnixSeconds,
    pub(crate) tx: TxId,
    pub(crate) leg: u16,
    pub(crate) side: Side,
    pub(crate) mint: Address,
    pub(crate) units: Units,
    /// Lamports in the transaction.
    stated: Option<Units>,
    /// What its dollars are worth at the price of its slot.
    by_price: Option<Units>,
    /// The lowest and the highest value by trades of the same token around it.
    by_token: Option<(Units, Units)>,
}

/// The wallet's rows as the chain is now, newest first.
pub(crate) fn facts(model: &SolanaModel, wallet: Address) -> Vec<Fact> {
    let usdc = Address::parse(Family::Solana, USDC).unwrap();
    let trades: Vec<TrueTrade> = model.truth(wallet).collect();
    let mut facts: Vec<Fact> = trades
        .chunk_by(|one, other| one.signature == other.signature)
        .flat_map(|rows| {
            let dollars = rows.iter().find(|row| row.mint == usdc).map(|row| row.units);
            let worth = move |slot| {
                let lamports = dollars? * Units::from(10).pow(Units::from(15));
                Some(lamports / Units::from(model.price_at(slot).0))
            };
            rows.iter().map(move |row| Fact { by_price: worth(row.slot), ..fact(row) })
        })
        .collect();
    let ranges: Vec<_> = (0..facts.len()).map(|at| by_token(&facts, at)).collect();
    for (fact, range) in facts.iter_mut().zip(ranges) {
        fact.by_token = range;
    }
    facts
}

/// The same of a wallet of a demo EVM chain, or of Tron, but for what a way cannot see.
pub(crate) fn evm_facts(
    model: &EvmModel,
    chain: &Chain,
    wallet: Address,
    blind: Doubts,
) -> Vec<Fact> {
    let shown = |t: &EvmTrade| !blind.contains(Doubts::TRC10) || t.kind != TradeKind::Exchange;
    let trades: Vec<EvmTrade> = model.truth(wallet).filter(shown).collect();
    let power = |digits: u8| Units::from(10).pow(Units::from(digits));
    // The model's price on Tron is one of so many coins.
    let priced = Units::from(if model.slug() == "tron" { 10_000 } else { 1 });
    let dollar_digits = if model.slug() == "bsc" { 18 } else { 6 };
    let mut facts: Vec<Fact> = trades
        .chunk_by(|one, other| one.hash == other.hash)
        .flat_map(|rows| {
            let dollars = rows.iter().find(|row| row.token == chain.stablecoins[0]);
            let dollars = dollars.map(|row| row.units);
            rows.iter().map(move |row| {
                let native = |dollars: Units| {
                    let whole = dollars * power(chain.native.decimals) / power(dollar_digits);
                    whole * power(12) * priced / Units::from(model.price_at(row.height).0)
                };
                Fact { by_price: dollars.map(native), ..evm_fact(row) }
            })
        })
        .collect();
    let ranges: Vec<_> = (0..facts.len()).map(|at| by_token(&facts, at)).collect();
    for (fact, range) in facts.iter_mut().zip(ranges) {
        fact.by_token = range;
    }
    facts
}

fn evm_fact(t: &EvmTrade) -> Fact {
    Fact {
        slot: t.height,
        time: t.time,
        tx: t.hash,
        leg: t.leg,
        side: t.side,
        mint: t.token,
        units: t.units,
        stated: t.native,
        by_price: None,
        by_token: None,
    }
}

fn fact(t: &TrueTrade) -> Fact {
    Fact {
        slot: t.slot,
        time: t.time,
        tx: t.signature,
        leg: t.leg,
        side: t.side,
        mint: t.mint,
        units: t.units,
        stated: t.native,
        by_price: None,
        by_token: None,
    }
}

fn by_token(facts: &[Fact], at: usize) -> Option<(Units, Units)> {
    let one = facts[at];
    if one.stated.is_some() {
        return None;
    }
    let near = |other: &&Fact| other.time.0.abs_diff(one.time.0) <= TOKEN_SECONDS;
    let (newer, older) = facts.split_at(at);
    let around = || newer.iter().rev().take_while(near).chain(older.iter().take_while(near));
    let own = || around().filter(|fact| fact.tx == one.tx);
    let said = around().filter(|other| other.tx != one.tx).filter_map(|other| {
        let mine = own().find(|fact| fact.mint == other.mint)?;
        Some(mine.units * other.stated.or(other.by_price)? / other.units)
    });
    said.fold(None, |range, worth| {
        let (low, high) = range.unwrap_or((worth, worth));
        Some((worth.min(low), worth.max(high)))
    })
}

impl Fact {
    /// The same where the native side of a transaction may be hidden from a read: the row has no
    /// value then, or one by a price, but no other.
    pub(crate) fn is_shown_by(&self, row: &Row) -> bool {
        let trade = &row.trade;
        match (trade.valued, self.stated) {
            (ValueSource::Direct | ValueSource::Route, _) | (_, None) => self.states_value_of(row),
            (ValueSource::Pending | ValueSource::Unknown, Some(_)) => {
                let bare = Self { stated: None, by_price: None, by_token: None, ..*self };
                bare.states_value_of(row)
            }
            (_, Some(stated)) => {
                let by_token = Some((stated, stated));
                let priced = Self { stated: None, by_price: Some(stated), by_token, ..*self };
                priced.states_value_of(row)
            }
        }
    }

    /// A value in the transaction is exact; a value by a price is near the one by the model's
    /// price; an unknown one is null.
    pub(crate) fn states_value_of(&self, row: &Row) -> bool {
        let (trade, key) = (&row.trade, row.trade.key);
        let worth = |low: Units, high: Units| {
            let native = trade.native.unwrap_or_default() * Units::from(100);
            native >= low * Units::from(100 - OFF_PERCENT)
                && native <= high * Units::from(100 + OFF_PERCENT)
        };
        let is_worth = match trade.valued {
            ValueSource::Direct | ValueSource::Route => {
                self.stated.is_some() && trade.native == self.stated
            }
            ValueSource::ReferencePool | ValueSource::Learned | ValueSource::Candle => {
                self.stated.is_none() && self.by_price.is_some_and(|price| worth(price, price))
            }
            ValueSource::Token => {
                self.stated.is_none() && self.by_token.is_some_and(|(low, high)| worth(low, high))
            }
            ValueSource::Pending | ValueSource::Unknown => {
                self.stated.is_none() && trade.native.is_none()
            }
        };
        (key.height, key.time, key.tx, key.leg) == (self.slot, self.time, self.tx, self.leg)
            && (trade.side, trade.mint, trade.units) == (self.side, self.mint, Some(self.units))
            && is_worth
    }
}

/// Rows equal the truth; the first difference is shown, not all of both.
#[track_caller]
pub(crate) fn same(rows: &[Row], truth: &[Fact]) {
    let equal =
        |at: usize| rows.get(at).zip(truth.get(at)).is_some_and(|(row, f)| f.states_value_of(row));
    if let Some(at) = (0..rows.len().max(truth.len())).find(|at| !equal(*at)) {
        let (got, want) = (rows.get(at), truth.get(at));
        panic!("row {at} of {} (truth {}):\n {got:?}\n {want:?}", rows.len(), truth.len());
    }
}
