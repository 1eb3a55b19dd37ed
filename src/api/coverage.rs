//! `GET /v1/wallets/{address}/coverage`: which heights of a wallet were read, in which way, and
//! with which doubts. Loads nothing and counts towards no quota.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warp::http::StatusCode;
use warp::reply::Response;

use super::call::{ApiCall, find_wallet};
use super::error::ApiError;
use super::parameters::parameters;
use super::reply;
use crate::domain::{Doubts, TxId, Wallet};
use crate::history::{CoverageReport, SpanReport};
use crate::registry::Chain;

type Word = Cow<'static, str>;

/// The response, which the command line also reads.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CoverageBody {
    wallet: String,
    chain: String,
    pub complete: bool,
    rows: u64,
    /// The highest height that was read; null if none was.
    pub height: Option<u64>,
    /// When the chain was last checked for newer heights.
    as_of: Option<String>,
    /// The first height that the nodes keep, if heights below it are missing or in doubt.
    pub history_cut: Option<u64>,
    pub blind_spots: Vec<Word>,
    /// The meanings of the names in `blindSpots` and `doubts`.
    pub meanings: BTreeMap<Word, Word>,
    pub spans: Vec<SpanBody>,
    pub gaps: Vec<GapBody>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct SpanBody {
    pub low: u64,
    pub high: u64,
    pub way: Word,
    pub doubts: Vec<Word>,
    pub accepted: bool,
    /// Listed transactions that no endpoint returned.
    pub missing: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct GapBody {
    pub low: u64,
    pub high: u64,
}

pub(super) async fn answer(call: &ApiCall, segment: &str) -> Result<Response, ApiError> {
    let caller = call.caller()?;
    let rate = call.take(&caller)?;
    let [chain] = parameters(&call.query, ["chain"])?;
    let chain = chain?.filter(|chain| !chain.is_empty());
    let (chain, wallet) = find_wallet(call, &caller, chain.as_deref(), segment)?;
    let report = call.app.history.coverage(wallet).await?;
    let response = reply::json(StatusCode::OK, &coverage_body(report.as_ref(), &wallet, chain));
    Ok(reply::rated(response, rate))
}

pub fn coverage_body(
    known: Option<&CoverageReport>,
    wallet: &Wallet,
    chain: &Chain,
) -> CoverageBody {
    let gap = |&(low, high): &(u64, u64)| GapBody { low, high };
    CoverageBody {
        wallet: wallet.address.to_string(),
        chain: chain.slug.clone(),
        complete: known.is_some_and(|report| report.complete),
        rows: known.map_or(0, |report| report.rows),
        height: known.and_then(|report| report.top),
        as_of: known.and_then(|report| report.checked_at).map(|at| at.seconds().to_string()),
        history_cut: known.and_then(|report| report.cut),
        blind_spots: known.map(|report| words(report.blind_spots)).unwrap_or_default(),
        meanings: known.map(meanings).unwrap_or_default(),
        spans: known.map(|report| report.spans.iter().map(span).collect()).unwrap_or_default(),
        gaps: known.map(|report| report.gaps.iter().map(gap).collect()).unwrap_or_default(),
    }
}

fn words(doubts: Doubts) -> Vec<Word> {
    doubts.names().map(Word::Borrowed).collect()
}

fn meanings(report: &CoverageReport) -> BTreeMap<Word, Word> {
    let spans = report.spans.iter().map(|report| report.span.proof.doubts);
    let doubts = spans.fold(report.blind_spots, Doubts::union);
    doubts.meanings().map(|(name, meaning)| (name.into(), meaning.into())).collect()
}

fn span(report: &SpanReport) -> SpanBody {
    let SpanReport { span, accepted } = report;
    SpanBody {
        low: span.low,
        high: span.high,
        way: span.proof.way.name().into(),
        doubts: words(span.proof.doubts),
        accepted: *accepted,
        missing: span.missing.iter().map(TxId::to_string).collect(),
    }
}
