//! `GET /v1/wallets/{address}/pnl`: positions, realised gains and disposals, as `blotter pnl`
//! writes them. Requires the history as a page does; while it is incomplete there are no figures,
//! since what was sold may have been bought in the missing part.
//!
//! The rows are held in memory, a limited number for a limited number of requests. If the client
//! disconnects, the future is dropped, which ends its demand for the history, and the computation.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use serde::Serialize;
use tokio::task::yield_now;
use warp::http::{Method as Verb, StatusCode};
use warp::reply::Response;

use super::App;
use super::auth::Caller;
use super::call::{ApiCall, find_wallet};
use super::coding::Coding;
use super::error::ApiError;
use super::guarded::Guarded;
use super::page::refusal;
use super::parameters::{parameters, refuse_named};
use super::query::{parse_numbers, parse_switch, parse_time, read_year, wrong};
use super::rate_limit::Permit;
use super::reply;
use crate::domain::row_json::short;
use crate::domain::{Filter, Numbers, RowRef, UnixSeconds, ValueSource, Wallet};
use crate::history::{AsOf, End, Extent, Step, WalkRequest};
use crate::pnl::{
    Count, CountStep, JsonWriter, LedgerRow, Method, Period, Report, ReportSubject, TradeLedger,
};
use crate::registry::Chain;

const NAMES: [&str; 7] = ["chain", "method", "from", "to", "year", "disposals", "numbers"];
/// The filters of a history. Gains of a part of the rows would be wrong: a swap of two tokens is a
/// sale of one and a purchase of the other.
const FILTERS: [&str; 3] = ["token", "side", "dex"];
const NO_FILTER: &str =
    "gains are of the whole wallet; leave it out, and pick the token out of `tokens`";
/// Parameters that choose a format or a part of a history.
const FORMS: [&str; 4] = ["limit", "cursor", "follow", "format"];
const NO_FORM: &str = "gains are one JSON object of the whole history; leave it out";

#[derive(Debug, Clone, PartialEq, Eq)]
struct PnlQuery {
    chain: Option<String>,
    method: Method,
    period: Period,
    disposals: bool,
    numbers: Numbers,
}

impl PnlQuery {
    fn parse(query: &str) -> Result<Self, ApiError> {
        refuse_named(query, &FILTERS, NO_FILTER)?;
        refuse_named(query, &FORMS, NO_FORM)?;
        let [chain, method, from, to, year, disposals, numbers] = parameters(query, NAMES)?;
        let from = from?.map(|time| parse_time("from", &time)).transpose()?;
        let to = to?.map(|time| parse_time("to", &time)).transpose()?;
        Ok(Self {
            chain: chain?.filter(|chain| !chain.is_empty()),
            method: method?.map_or(Ok(Method::Fifo), |name| parse_method(&name))?,
            period: parse_period(from, to, year?.as_deref())?,
            disposals: disposals?
                .map(|text| parse_switch("disposals", &text))
                .transpose()?
                .unwrap_or(false),
            numbers: numbers?.map(|text| parse_numbers(&text)).transpose()?.unwrap_or_default(),
        })
    }
}

fn parse_method(name: &str) -> Result<Method, ApiError> {
    let rule = "expected fifo, lifo, hifo or average";
    Method::named(name).map_or_else(|| wrong("method", rule), Ok)
}

fn parse_period(
    from: Option<UnixSeconds>,
    to: Option<UnixSeconds>,
    year: Option<&str>,
) -> Result<Period, ApiError> {
    match year {
        None if from.zip(to).is_some_and(|(from, to)| to <= from) => {
            wrong("to", "it has to be later than from")
        }
        None => Ok(Period { from, to }),
        Some(_) if from.or(to).is_some() => wrong("year", "it stands without from and to"),
        Some(year) => match read_year(year) {
            Some((from, to)) => Ok(Period { from: Some(from), to: Some(to) }),
            None => wrong("year", "expected a year from 1970 to 2105"),
        },
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Incomplete<'a> {
    wallet: &'a str,
    chain: &'a str,
    complete: bool,
    trade_count: u64,
}

pub(super) async fn answer(call: &ApiCall, segment: &str) -> Result<Response, ApiError> {
    let caller = call.caller()?;
    let rate = call.take(&caller)?;
    let query = PnlQuery::parse(&call.query)?;
    let (chain, wallet) = find_wallet(call, &caller, query.chain.as_deref(), segment)?;
    let response = if call.method == Verb::HEAD {
        reply::head_of_stream(reply::JSON)
    } else {
        let (limits, max) = (&call.app.limits, call.app.limits.pnl_per_key_max);
        let of_key = caller.state.gains.take(max).ok_or(ApiError::TooManyPnl { max, rate })?;
        let of_all = call.app.gains.take(limits.pnl_at_once_max).ok_or(ApiError::PnlFull)?;
        let (read, walk) = read(call, &caller, wallet, query.disposals).await?;
        let as_of = walk.as_of().await;
        drop(walk);
        respond(call, &query, chain, wallet, read, (of_key, of_all), as_of).await
    };
    Ok(reply::rated(response, rate))
}

/// A computation's permits, of its key and of the server.
type Permits = (Permit, Permit);

/// The rows of a history, and how its walk ended.
struct Read {
    ledger: TradeLedger,
    values_pending: u64,
    end: End,
}

async fn read(
    call: &ApiCall,
    caller: &Caller,
    wallet: Wallet,
    disposals: bool,
) -> Result<(Read, Guarded), ApiError> {
    let limits = &call.app.limits;
    let walk = call.app.history.walk(WalkRequest {
        wallet,
        key: caller.key.id,
        quota: caller.key.quota,
        resume: None,
        filter: Filter::default(),
        follow: false,
        // One more than allowed, to detect a larger history.
        want: Extent::Rows(limits.pnl_rows_max.saturating_add(1)),
        window: limits.page_wait,
    })?;
    let mut walk = Guarded::new(&call.app, caller, walk);
    let mut ledger =
        if disposals { TradeLedger::with_transactions() } else { TradeLedger::default() };
    let mut values_pending = 0;
    loop {
        match walk.next().await {
            Step::Rows(rows) => {
                for row in rows.iter() {
                    values_pending += u64::from(row.bare.valued == ValueSource::Pending);
                    push(&mut ledger, row);
                }
            }
            Step::End(end) => {
                return match refusal(&end) {
                    Some(error) => Err(error.into()),
                    None => Ok((Read { ledger, values_pending, end }, walk)),
                };
            }
        }
        if u64::try_from(ledger.len()).unwrap_or(u64::MAX) > limits.pnl_rows_max {
            return Err(ApiError::TooManyTrades { max: limits.pnl_rows_max });
        }
    }
}

fn push(ledger: &mut TradeLedger, row: RowRef<'_>) {
    let (bare, token) = (row.bare, row.token);
    let line = LedgerRow {
        mint: token.mint,
        side: bare.side,
        time: bare.key.time,
        amount: row.amount(),
        native: bare.native,
        tx: bare.key.tx,
    };
    let symbol =
        || token.symbol.as_deref().map_or_else(|| short(&token.mint.to_string()), Into::into);
    ledger.push(&line, symbol);
}

async fn respond(
    call: &ApiCall,
    query: &PnlQuery,
    chain: &Chain,
    wallet: Wallet,
    read: Read,
    permits: Permits,
    as_of: Option<AsOf>,
) -> Response {
    let Read { ledger, values_pending, end } = read;
    let wallet = wallet.address.to_string();
    let mut response = if end.complete && !end.more {
        let subject = ReportSubject {
            wallet,
            chain: chain.slug.clone(),
            native: chain.native.symbol.clone(),
            native_decimals: chain.native.decimals,
            values_pending,
            first_trade: end.first_trade,
        };
        let ledger = Arc::new(ledger);
        let count = || Count::new(Arc::clone(&ledger), query.method, query.period);
        let report = report(count(), call.app.limits.pnl_slice_rows).await;
        let count = query.disposals.then(count);
        let writer = JsonWriter { subject, numbers: query.numbers };
        let text = Text {
            writer,
            report,
            count,
            written: Written::Nothing,
            app: Arc::clone(&call.app),
            _permits: permits,
        };
        text.response(Coding::accepted(&call.headers))
    } else {
        let trade_count = end.trade_count;
        let body = Incomplete { wallet: &wallet, chain: &chain.slug, complete: false, trade_count };
        reply::json(StatusCode::OK, &body)
    };
    reply::put_as_of(response.headers_mut(), as_of);
    response
}

/// Runs the computation in slices, so that other requests get their turn.
async fn report(mut count: Count, slice: usize) -> Report {
    let mut rows = 0_usize;
    while !matches!(count.step(), CountStep::All) {
        rows += 1;
        if rows.is_multiple_of(slice.max(1)) {
            yield_now().await;
        }
    }
    count.report()
}

/// The response's body, written piece by piece.
struct Text {
    app: Arc<App>,
    writer: JsonWriter,
    report: Report,
    /// The second pass, if disposals are requested.
    count: Option<Count>,
    written: Written,
    _permits: Permits,
}

/// How much of the body is written.
enum Written {
    Nothing,
    Tokens(usize),
    Disposals(usize),
    All,
}

impl Text {
    fn response(self, coding: Coding) -> Response {
        let packing = self.app.packing.clone();
        let frames = stream::unfold(self, |mut text| async move {
            let frame = text.next_frame()?;
            Some((Ok::<_, Infallible>(frame), text))
        });
        reply::streamed(reply::JSON, frames, coding, &packing)
    }

    fn next_frame(&mut self) -> Option<Bytes> {
        let limits = &self.app.limits;
        let (frame_bytes, slice) = (limits.frame_bytes, limits.pnl_slice_rows);
        let (mut out, mut steps) = (Vec::new(), 0_usize);
        while out.len() < frame_bytes && !matches!(self.written, Written::All) {
            self.write(&mut out);
            steps += 1;
            // A long run of buys writes nothing: what is written is sent before it.
            if steps >= slice && !out.is_empty() {
                break;
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        self.written = match self.written {
            Written::Nothing => {
                self.writer.head(&self.report, out);
                Written::Tokens(0)
            }
            Written::Tokens(at) => {
                if let Some(token) = self.report.tokens.get(at) {
                    self.writer.token(at, token, out);
                    Written::Tokens(at + 1)
                } else {
                    self.writer.tokens_end(self.count.is_some(), out);
                    if self.count.is_some() { Written::Disposals(0) } else { Written::All }
                }
            }
            Written::Disposals(at) => match self.count.as_mut().map(Count::step) {
                Some(CountStep::Row) => Written::Disposals(at),
                Some(CountStep::Sale(disposal)) => {
                    self.writer.disposal(at, &disposal, out);
                    Written::Disposals(at + 1)
                }
                Some(CountStep::All) | None => {
                    self.writer.disposals_end(out);
                    Written::All
                }
            },
            Written::All => Written::All,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(query: &str, name: &str) {
        let error = PnlQuery::parse(query).expect_err(query);
        assert!(error.message().starts_with(&format!("parameter {name}: ")), "{error}");
    }

    #[test]
    fn a_year_is_its_first_moment_to_that_of_the_next() {
        let year = PnlQuery::parse("year=2025&method=hifo&disposals=1&numbers=string").unwrap();
        let times = PnlQuery::parse("from=2025-01-01&to=2026-01-01").unwrap();
        assert_eq!(year.period, times.period);
        assert_eq!(
            (year.method, year.disposals, year.numbers),
            (Method::Hifo, true, Numbers::Text)
        );
        assert_eq!((times.method, times.disposals), (Method::Fifo, false));
    }

    #[test]
    fn wrong_parameters_are_refused_by_name() {
        for query in ["method=FIFO", "method=", "method=lofo"] {
            refused(query, "method");
        }
        for query in ["year=25", "year=1969", "year=2025&from=2025-01-01", "year=20x5"] {
            refused(query, "year");
        }
        refused("from=10&to=10", "to");
        refused("disposals=yes", "disposals");
        refused("numbers=text", "numbers");
        refused("mehtod=fifo", "\"mehtod\" is not known");
    }
}
