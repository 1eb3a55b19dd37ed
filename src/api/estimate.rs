//! `POST /v1/billing/estimate`: the sizes of wallets before they are read. It needs no key, so all
//! of it is bounded.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};
use futures_util::future::join_all;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};
use warp::http::header::CONTENT_TYPE;
use warp::http::{HeaderMap, StatusCode};
use warp::reply::Response;

use super::arrival::Refused;
use super::auth::has_credentials;
use super::call::{ApiCall, find_chain};
use super::clients::{Peer, client};
use super::dto::EstimateRow;
use super::error::ApiError;
use super::parameters::refuse_misspelt;
use super::rate_limit::RequestRate;
use super::reply;
use crate::domain::row_json::rows_json;
use crate::domain::{Address, Numbers, Wallet};
use crate::history::Estimate;

/// The peer and the body of a request.
pub(super) struct RequestParts {
    pub(super) peer: Option<Peer>,
    /// Why it is rejected before routing, if it is.
    pub(super) refused: Option<Refused>,
    body: BoxStream<'static, Option<Bytes>>,
}

impl RequestParts {
    pub(super) fn new<B: Buf, E>(
        peer: Option<Peer>,
        refused: Option<Refused>,
        body: impl Stream<Item = Result<B, E>> + Send + 'static,
    ) -> Self {
        let piece = |piece: Result<B, E>| {
            piece.ok().map(|mut piece| piece.copy_to_bytes(piece.remaining()))
        };
        Self { peer, refused, body: body.map(piece).boxed() }
    }

    async fn whole(mut self, max: usize) -> Result<Vec<u8>, ApiError> {
        let mut whole = Vec::new();
        while let Some(piece) = self.body.next().await {
            let piece = piece.ok_or_else(|| wrong("it ended early"))?;
            if whole.len() + piece.len() > max {
                return Err(wrong(format!("it is longer than {max} bytes")));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }
}

#[derive(Debug, Deserialize)]
struct EstimateRequest {
    addresses: Vec<String>,
    chain: Option<String>,
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

fn wrong(rule: impl Into<String>) -> ApiError {
    ApiError::InvalidBody { rule: rule.into() }
}

pub(super) async fn estimate(call: &ApiCall, received: RequestParts) -> Result<Response, ApiError> {
    let limits = &call.app.limits;
    if !limits.estimates {
        return Err(ApiError::EstimatesDisabled);
    }
    if !is_json(&call.headers) {
        return Err(ApiError::NotJson);
    }
    let caller = if has_credentials(&call.headers) { Some(call.caller()?) } else { None };
    let rate = if let Some(caller) = &caller {
        call.take(caller)?
    } else {
        let who = client(received.peer, &call.headers, &limits.trusted_proxies);
        let rate = RequestRate::new(limits.estimate_rate_millis, limits.estimate_burst);
        Some(call.app.client_rates.take(who, rate, limits.visitors_max)?)
    };
    let body =
        timeout(limits.estimate_body_wait_max, received.whole(limits.estimate_body_bytes_max));
    let body = body.await.map_err(|_| wrong("it did not arrive in time"))??;
    let request: EstimateRequest = serde_json::from_slice(&body)
        .map_err(|_| wrong("expected JSON such as {\"addresses\":[\"…\"],\"chain\":\"sol\"}"))?;
    // A misspelt `chain` would give an estimate for another chain.
    for name in request.others.keys() {
        refuse_misspelt(name.as_bytes(), &["addresses", "chain"])?;
    }
    let max = limits.estimate_addresses_max;
    if request.addresses.is_empty() || request.addresses.len() > max {
        return Err(wrong(format!("addresses has to hold 1 to {max}")));
    }
    let chain = request.chain.as_deref().filter(|chain| !chain.is_empty());
    let chain = find_chain(call, caller.as_ref(), chain)?;
    let mut wallets = Vec::with_capacity(request.addresses.len());
    for (at, text) in request.addresses.iter().enumerate() {
        let address = Address::parse(chain.family, text)
            .map_err(|rule| ApiError::InvalidAddressAt { at, rule })?;
        wallets.push(Wallet { chain: chain.id, address });
    }
    let budget = RequestRate::new(limits.estimate_calls_millis, limits.estimate_burst);
    let count = u32::try_from(wallets.len()).unwrap_or(u32::MAX);
    call.app.estimates.take(count, budget, Instant::now())?;
    let history = &call.app.history;
    // Without a key the response must not depend on what is stored.
    let with_stored = caller.is_some();
    let more = limits.estimate_wait_more.saturating_mul(count);
    let wait = limits.estimate_wait_max.saturating_add(more);
    let estimates = wallets.iter().map(|wallet| history.estimate(*wallet, with_stored, wait));
    let mut rows = Vec::with_capacity(wallets.len());
    // One failure fails the list, since the format has no list with missing entries.
    for (at, (wallet, estimate)) in wallets.iter().zip(join_all(estimates).await).enumerate() {
        let estimate = estimate.map_err(|error| ApiError::HistoryAt { at, error })?;
        rows.push(row(wallet, &estimate, chain.native.decimals, caller.is_some()));
    }
    let response = reply::json(StatusCode::OK, &BTreeMap::from([("addresses", rows)]));
    Ok(reply::rated(response, rate))
}

/// Other content types are rejected, since pages of other origins may send them without a preflight
/// request.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn row(wallet: &Wallet, estimate: &Estimate, decimals: u8, with_sample: bool) -> EstimateRow {
    let mut out = b"[".to_vec();
    if with_sample {
        rows_json(&estimate.sample, decimals, Numbers::Literal, &mut out);
    }
    out.push(b']');
    EstimateRow {
        address: wallet.address.to_string(),
        estimate_type: if estimate.is_exact { "exact" } else { "approximate" },
        estimated_trade_count: estimate.trades,
        estimated_seconds: estimate.seconds,
        // The encoder writes valid JSON.
        sample_trades: String::from_utf8(out).ok().and_then(|t| RawValue::from_string(t).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::limits::ApiLimits;
    use crate::api::rate_limit::Bucket;

    /// Otherwise it would be rejected forever.
    #[test]
    fn the_longest_list_fits_what_may_be_saved_up() {
        let limits = ApiLimits::default();
        let budget = RequestRate::new(limits.estimate_calls_millis, limits.estimate_burst);
        let longest = u32::try_from(limits.estimate_addresses_max).unwrap();
        assert!(Bucket::default().take(longest, budget, Instant::now()).is_ok());
    }
}
