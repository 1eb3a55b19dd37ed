//! The JSON shapes other than the history: the public contract, separate from the domain types.

use serde::Serialize;

/// The body of every error, which combines two formats (see `error`).
#[derive(Debug, Serialize)]
pub(super) struct ErrorBody<'a> {
    pub(super) error: ErrorObject<'a>,
    pub(super) r#type: String,
    pub(super) title: &'a str,
    pub(super) status: u16,
    pub(super) detail: &'a str,
    pub(super) instance: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorObject<'a> {
    pub(super) code: &'a str,
    pub(super) message: &'a str,
    pub(super) timestamp: String,
    pub(super) request_id: &'a str,
}

/// The `error` of a stream's final line.
#[derive(Debug, Serialize)]
pub(super) struct LineError<'a> {
    pub(super) code: &'a str,
    pub(super) message: &'a str,
    pub(super) r#type: String,
    /// Whether resuming from the line's cursor can succeed with the same request and key.
    pub(super) retryable: bool,
    /// With `history_cut`: the first height that the nodes keep.
    #[serde(rename = "historyCut", skip_serializing_if = "Option::is_none")]
    pub(super) history_cut: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct ChainRow<'a> {
    pub(super) slug: &'a str,
    pub(super) aliases: &'a [String],
    pub(super) name: &'a str,
    pub(super) family: crate::domain::Family,
    pub(super) native: NativeCoinBody<'a>,
    /// Website that shows transactions; null if none is known.
    pub(super) explorer: Option<&'a str>,
    /// `live` or `disabled`.
    pub(super) status: &'static str,
    /// What no configured way of reading this chain sees (closed list: docs/reliability.md).
    #[serde(rename = "blindSpots")]
    pub(super) blind_spots: Vec<&'static str>,
    /// Null if the chain is disabled.
    pub(super) upstream: Option<Upstream>,
}

/// A chain's nodes as a whole, and for callers with a key each of them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Upstream {
    /// `down` while all endpoints are in cooldown, `degraded` while some are, else `up`.
    pub(super) state: &'static str,
    pub(super) endpoints_total: usize,
    pub(super) endpoints_resting: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) endpoints: Option<Vec<UpstreamEndpoint>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpstreamEndpoint {
    /// Scheme and host, never the rest of the URL.
    pub(super) label: String,
    pub(super) resting: bool,
    pub(super) in_flight: usize,
    pub(super) latency_ms: u128,
    pub(super) last_error: Option<String>,
    /// Abilities observed during use.
    pub(super) abilities: Vec<AbilityRow>,
}

#[derive(Debug, Serialize)]
pub(super) struct AbilityRow {
    pub(super) name: &'static str,
    /// `yes`, `no` or `unknown`.
    pub(super) offered: &'static str,
    /// The lowest height for which the endpoint is known to keep the data.
    pub(super) from: Option<u64>,
    /// A height for which it was seen to keep nothing.
    pub(super) lacks: Option<u64>,
    /// Most blocks of one request.
    pub(super) most: Option<u64>,
    /// If the ability is missing: the consequence, and what to configure.
    pub(super) loses: Option<&'static str>,
    pub(super) configure: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct NativeCoinBody<'a> {
    pub(super) symbol: &'a str,
    pub(super) decimals: u8,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageBody<'a> {
    pub(super) key: UsageKey<'a>,
    pub(super) trades_counted: u64,
    pub(super) quota: Option<u64>,
    pub(super) remaining: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct UsageKey<'a> {
    pub(super) id: &'a str,
    pub(super) name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EstimateRow {
    pub(super) address: String,
    /// `exact` or `approximate`.
    pub(super) estimate_type: &'static str,
    pub(super) estimated_trade_count: u64,
    pub(super) estimated_seconds: u64,
    /// Empty without a key.
    pub(super) sample_trades: Option<Box<serde_json::value::RawValue>>,
}
