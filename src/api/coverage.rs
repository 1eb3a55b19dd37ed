//! `GET /v1/wallets/{address}/coverage`: which heights of a wallet were read, by which way, and what
//! those reads did not establish. Loads nothing and counts nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use warp::http::StatusCode;
use warp::reply::Response;

use super::call::{ApiCall, find_chain};
use super::error::ApiError;
use super::parameters::{decode_segment, parameters};
use super::reply;
use crate::domain::{Address, Doubts, TxId, Wallet};
use crate::history::{CoverageReport, SpanReport};
use crate::registry::Chain;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    wallet: String,
    chain: &'a str,
    complete: bool,
    rows: u64,
    /// The highest height that was read; null where nothing was.
    height: Option<u64>,
    /// When the chain was last asked for newer heights.
    as_of: Option<String>,
    /// The first height that the nodes keep, where what lies below is missing or in doubt.
    history_cut: Option<u64>,
    blind_spots: Vec<&'static str>,
    /// What the names in `blindSpots` and `doubts` mean.
    meanings: BTreeMap<&'static str, &'static str>,
    spans: Vec<SpanBody>,
    gaps: Vec<GapBody>,
}

#[derive(Debug, Serialize)]
struct SpanBody {
    low: u64,
    high: u64,
    way: &'static str,
    doubts: Vec<&'static str>,
    accepted: bool,
    /// Transactions that were listed and that no endpoint gave.
    missing: Vec<String>,
}

#[derive(Debug, Serialize)]
struct GapBody {
    low: u64,
    high: u64,
}

pub(super) async fn answer(call: &ApiCall, segment: &str) -> Result<Response, ApiError> {
    let caller = call.caller()?;
    let rate = call.take(&caller)?;
    let [chain] = parameters(&call.query, ["chain"])?;
    let chain = chain?.filter(|chain| !chain.is_empty());
    let chain = find_chain(call, Some(&caller), chain.as_deref())?;
    let address = Address::parse(chain.family, &decode_segment(segment)?)
        .map_err(|rule| ApiError::InvalidAddress { rule })?;
    let wallet = Wallet { chain: chain.id, address };
    let report = call.app.history.coverage(wallet).await?;
    let response = reply::json(StatusCode::OK, &body(report.as_ref(), &wallet, chain));
    Ok(reply::rated(response, rate))
}

/// The same as a text, for the command line.
pub fn coverage_json(
    report: Option<&CoverageReport>,
    wallet: &Wallet,
    chain: &Chain,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&body(report, wallet, chain))
}

fn body<'a>(known: Option<&CoverageReport>, wallet: &Wallet, chain: &'a Chain) -> Body<'a> {
    let gap = |&(low, high): &(u64, u64)| GapBody { low, high };
    Body {
        wallet: wallet.address.to_string(),
        chain: &chain.slug,
        complete: known.is_some_and(|report| report.complete),
        rows: known.map_or(0, |report| report.rows),
        height: known.and_then(|report| report.top),
        as_of: known.and_then(|report| report.checked_at).map(|at| at.seconds().to_string()),
        history_cut: known.and_then(|report| report.cut),
        blind_spots: known.map(|report| report.blind_spots.names().collect()).unwrap_or_default(),
        meanings: known.map(meanings).unwrap_or_default(),
        spans: known.map(|report| report.spans.iter().map(span).collect()).unwrap_or_default(),
        gaps: known.map(|report| report.gaps.iter().map(gap).collect()).unwrap_or_default(),
    }
}

fn meanings(report: &CoverageReport) -> BTreeMap<&'static str, &'static str> {
    let spans = report.spans.iter().map(|report| report.span.proof.doubts);
    spans.fold(report.blind_spots, Doubts::union).meanings().collect()
}

fn span(report: &SpanReport) -> SpanBody {
    let SpanReport { span, accepted } = report;
    SpanBody {
        low: span.low,
        high: span.high,
        way: span.proof.way.name(),
        doubts: span.proof.doubts.names().collect(),
        accepted: *accepted,
        missing: span.missing.iter().map(TxId::to_string).collect(),
    }
}
