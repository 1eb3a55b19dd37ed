//! `GET /v1/wallets/{address}/explain/{signature}`: why a transaction is a trade of a wallet, or
//! why it is none.

use serde::Serialize;
use serde_json::value::RawValue;
use warp::http::StatusCode;
use warp::reply::Response;

use super::call::{ApiCall, find_wallet};
use super::error::ApiError;
use super::query::HistoryQuery;
use super::reply;
use crate::domain::row_json::short;
use crate::domain::{Address, Decimal, Token, TxId, Units, ValueSource, Wallet};
use crate::history::{
    Asset, DecodedTrade, Explained, Explanation, HistoryError, Note, NoteKind, Why,
};
use crate::registry::Chain;

type Number = Option<Box<RawValue>>;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    signature: String,
    wallet: String,
    chain: &'a str,
    native: &'a str,
    height: u64,
    block_time: String,
    is_trade: bool,
    /// One sentence.
    verdict: String,
    trades: Vec<TradeBody>,
    movements: Vec<MovementBody>,
    /// If false, movements of native coin may be missing.
    native_movements_known: bool,
    venues: Vec<VenueBody<'a>>,
    left_out: Vec<LeftOutBody>,
    notes: Vec<NoteBody<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TradeBody {
    side: &'static str,
    token: String,
    token_mint: String,
    amount_sol: Number,
    amount: Number,
    dex: String,
    /// Source of `amountSol`: a `movement` of the wallet, a `route` (native coin through which the
    /// swap of two tokens went), an `order` (an account of the wallet's order paid it), or the
    /// source of a stored value that the transaction itself does not contain.
    value_from: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MovementBody {
    asset: String,
    /// Null for native coin.
    mint: Option<String>,
    came: Number,
    went: Number,
    /// The fields of rows that contain it, such as `buy BONK amount`.
    became: Vec<String>,
}

#[derive(Debug, Serialize)]
struct VenueBody<'a> {
    name: &'a str,
    part: &'static str,
    address: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LeftOutBody {
    what: &'static str,
    asset: String,
    mint: Option<String>,
    amount: Number,
    /// `in` or `out`.
    direction: &'static str,
    why: &'static str,
}

#[derive(Debug, Serialize)]
struct NoteBody<'a> {
    kind: &'static str,
    detail: &'a str,
}

pub(super) async fn answer(
    call: &ApiCall,
    segment: &str,
    signature: &str,
) -> Result<Response, ApiError> {
    let caller = call.caller()?;
    let rate = call.take(&caller)?;
    let query = HistoryQuery::parse(&call.query)?;
    let (chain, wallet) = find_wallet(call, &caller, query.chain.as_deref(), segment)?;
    let rule = "it is no transaction of this chain: base58 of 64 bytes, or hex of 32 bytes \
                (on EVM chains behind 0x)";
    let tx = TxId::parse(chain.family, signature)
        .ok_or(ApiError::InvalidParameter { name: "signature", rule })?;
    if caller.has_used_up(&call.app.history).await? {
        return Err(HistoryError::QuotaExceeded.into());
    }
    let app = &call.app;
    let max = app.limits.explain_per_key_max;
    let too_many = ApiError::TooManyExplained { max, rate };
    let _of_key = caller.state.explained.take(max).ok_or(too_many)?;
    let max = app.limits.explain_at_once_max;
    let _of_all = app.explained.take(max).ok_or(ApiError::ExplainedFull)?;
    let unknown = || ApiError::UnknownTransaction { slug: chain.slug.clone() };
    let explained = app.history.explain(wallet, tx).await?.ok_or_else(unknown)?;
    let body = body(&explained, &wallet, chain);
    Ok(reply::rated(reply::json(StatusCode::OK, &body), rate))
}

/// The response's body, for the command line.
pub fn explanation_json(
    explained: &Explained,
    wallet: &Wallet,
    chain: &Chain,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&body(explained, wallet, chain))
}

fn body<'a>(explained: &'a Explained, wallet: &Wallet, chain: &'a Chain) -> Body<'a> {
    let explanation = &explained.explanation;
    let named = Named { explained, chain };
    let notes = explanation.decoded.notes.iter().map(note);
    let venues = explanation.venues.iter().map(|venue| VenueBody {
        name: &venue.name,
        part: venue.part,
        address: venue.address.map(|address| address.to_string()),
    });
    Body {
        signature: explained.tx.to_string(),
        wallet: wallet.address.to_string(),
        chain: &chain.slug,
        native: &chain.native.symbol,
        height: explained.height,
        block_time: explained.time.to_string(),
        is_trade: !explanation.decoded.trades.is_empty(),
        verdict: verdict(explanation),
        trades: named.trades(),
        movements: named.movements(),
        native_movements_known: explanation.native_known,
        venues: venues.collect(),
        left_out: named.left_out(),
        notes: notes.collect(),
    }
}

/// Builds the parts of a body, with assets by symbol.
struct Named<'a> {
    explained: &'a Explained,
    chain: &'a Chain,
}

impl Named<'_> {
    fn token(&self, mint: &Address) -> Option<&Token> {
        self.explained.tokens.get(mint)
    }

    fn symbol(&self, asset: Asset) -> String {
        match asset {
            Asset::Native => self.chain.native.symbol.clone(),
            Asset::Token(mint) => {
                let symbol = self.token(&mint).and_then(|token| token.symbol.as_ref());
                symbol.map_or_else(|| short(&mint.to_string()), ToString::to_string)
            }
        }
    }

    fn number(&self, asset: Asset, units: Option<Units>) -> Number {
        let decimals = match asset {
            Asset::Native => self.chain.native.decimals,
            Asset::Token(mint) => self.token(&mint)?.decimals?,
        };
        RawValue::from_string(Decimal { units: units?, decimals }.to_string()).ok()
    }

    fn trades(&self) -> Vec<TradeBody> {
        let trades = self.explained.explanation.decoded.trades.iter().map(|trade| {
            let stored = self
                .explained
                .stored
                .iter()
                .find(|row| row.trade.mint == trade.mint && row.trade.side == trade.side);
            let (native, value_from) = match (trade.native, stored) {
                (Some(native), _) if self.is_routed(trade) => (Some(native), "route"),
                (Some(native), _) if self.is_from_order() => (Some(native), "order"),
                (Some(native), _) => (Some(native), "movement"),
                (None, Some(row)) => (row.trade.native, value_from(row.trade.valued)),
                (None, None) => (None, "unknown"),
            };
            let asset = Asset::Token(trade.mint);
            TradeBody {
                side: trade.side.name(),
                token: self.symbol(asset),
                token_mint: trade.mint.to_string(),
                amount_sol: self.number(Asset::Native, native),
                amount: self.number(asset, trade.units),
                dex: trade.venue.to_string(),
                value_from,
            }
        });
        trades.collect()
    }

    /// Whether a row's value is also that of a row on the other side, and so no native coin of the
    /// wallet.
    fn is_routed(&self, trade: &DecodedTrade) -> bool {
        let trades = &self.explained.explanation.decoded.trades;
        trades.iter().any(|other| other.side != trade.side && other.native == trade.native)
    }

    /// Whether an order's account paid native coin of a row.
    fn is_from_order(&self) -> bool {
        let left_out = &self.explained.explanation.left_out;
        left_out.iter().any(|left| left.why == Why::FromOrder && left.asset == Asset::Native)
    }

    fn movements(&self) -> Vec<MovementBody> {
        let trades = &self.explained.explanation.decoded.trades;
        let movements = self.explained.explanation.movements.iter().map(|movement| {
            let asset = movement.asset;
            let became = trades.iter().filter_map(|trade| {
                let name =
                    format!("{} {}", trade.side.name(), self.symbol(Asset::Token(trade.mint)));
                match asset {
                    Asset::Native => trade
                        .native
                        .filter(|_| !self.is_routed(trade))
                        .map(|_| format!("{name} amountSol")),
                    Asset::Token(mint) => (mint == trade.mint).then(|| format!("{name} amount")),
                }
            });
            MovementBody {
                asset: self.symbol(asset),
                mint: mint(asset),
                came: self.number(asset, Some(movement.got)),
                went: self.number(asset, Some(movement.gave)),
                became: became.collect(),
            }
        });
        movements.collect()
    }

    fn left_out(&self) -> Vec<LeftOutBody> {
        let all = self.explained.explanation.left_out.iter().map(|left| {
            let (what, why) = why(left.why);
            LeftOutBody {
                what,
                asset: self.symbol(left.asset),
                mint: mint(left.asset),
                amount: self.number(left.asset, Some(left.units)),
                direction: if left.came { "in" } else { "out" },
                why,
            }
        });
        all.collect()
    }
}

/// The name of a stored value's source. The wallet's own coin is a `movement` here.
fn value_from(source: ValueSource) -> &'static str {
    if source == ValueSource::Direct { "movement" } else { source.name() }
}

fn mint(asset: Asset) -> Option<String> {
    match asset {
        Asset::Native => None,
        Asset::Token(mint) => Some(mint.to_string()),
    }
}

fn why(why: Why) -> (&'static str, &'static str) {
    match why {
        Why::NetworkFee => ("network fee", "the network takes it for any transaction"),
        Why::Tip => ("tip", "paid to a relay for inclusion, outside the swap"),
        Why::BotFee => ("bot fee", "a bot's or a wallet program's own fee, outside the swap"),
        Why::Rent => ("rent", "put into new accounts of the wallet; it is still the wallet's"),
        Why::RentBack => ("rent given back", "it was the wallet's own before"),
        Why::Follows => ("follows", "minted or burnt in step with a token that was exchanged"),
        Why::GasSponsor => ("gas sponsor", "a sponsor kept it for the network fee that it paid"),
        Why::NotExchanged => ("transfer", "no venue exchanged this token"),
        Why::SidePayment => (
            "beside the trade",
            "a transfer, rent of others' accounts, or a fee that is no part of the swap",
        ),
        Why::FromOrder => (
            "from an order",
            "an account of the wallet's order gave it; it left the wallet in an earlier transaction",
        ),
        Why::NoTrade => ("no trade", "what moved was not exchanged for something else"),
    }
}

fn note(note: &Note) -> NoteBody<'_> {
    let kind = match note.kind {
        NoteKind::OneSided => "one_sided",
        NoteKind::Liquidity => "liquidity",
        NoteKind::Conversion => "conversion",
        NoteKind::Order => "order",
        NoteKind::RoundTrip => "round_trip",
        NoteKind::Unvalued => "unvalued",
        NoteKind::UnknownVenue => "unknown_venue",
    };
    NoteBody { kind, detail: &note.detail }
}

fn verdict(explanation: &Explanation) -> String {
    let trades = &explanation.decoded.trades;
    if explanation.failed {
        return "no trade: the transaction failed".to_owned();
    }
    if let Some(first) = trades.first() {
        let rows =
            if trades.len() == 1 { "one row".to_owned() } else { format!("{} rows", trades.len()) };
        return format!("a trade: {rows}, on {}", first.venue);
    }
    if let Some(note) = explanation.decoded.notes.first() {
        return format!("no trade: {}", note.detail);
    }
    if explanation.movements.is_empty() {
        return "no trade: nothing of the wallet's moved".to_owned();
    }
    if explanation.venues.is_empty() {
        return "no trade: no known venue ran".to_owned();
    }
    let came = explanation.movements.iter().any(|movement| movement.got > movement.gave);
    let went = explanation.movements.iter().any(|movement| movement.gave > movement.got);
    match (came, went) {
        (true, false) => "no trade: the wallet only got".to_owned(),
        (false, true) => "no trade: the wallet only gave".to_owned(),
        (true, true) | (false, false) => "no trade: no venue exchanged what moved".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coin_of_the_wallets_own_has_one_name() {
        assert_eq!(value_from(ValueSource::Direct), "movement");
        assert_eq!(value_from(ValueSource::ReferencePool), "reference_pool");
    }
}
