//! The handlers of the routes: plain async functions from a call to a response.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::time::Instant;
use warp::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use warp::reply::Response;

use super::App;
use super::access::{self, Access};
use super::arrival::Refused;
use super::auth::{Caller, has_credentials};
use super::call::ApiCall;
use super::clients::{Peer, client};
use super::dto::{
    AbilityRow, ChainRow, NativeCoinBody, Upstream, UpstreamEndpoint, UsageBody, UsageKey,
};
use super::error::ApiError;
use super::estimate::{RequestParts, estimate};
use super::guarded::Guarded;
use super::limits::MetricsAccess;
use super::rate_limit::RateState;
use super::request::ApiRequest;
use super::stream_permit::StreamPermit;
use super::{cors, coverage, explain, gains, page, reference, reply, stream};
use crate::domain::{ChainId, UnixMillis};
use crate::history::{Ability, Extent, History, WalkRequest};
use crate::registry::Chain;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RouteTarget {
    /// With the address segment, still encoded.
    History(String),
    /// Address and signature.
    Explain(String, String),
    Coverage(String),
    Pnl(String),
    Chains,
    Usage,
    Estimate,
    OpenApi,
    Docs,
    Llms,
    Health,
    Ready,
    Metrics,
    /// The metrics at an address of their own.
    MetricsApart,
    Page,
    PageFile {
        version: String,
        name: String,
    },
    Unknown,
}

impl RouteTarget {
    fn label(&self) -> &'static str {
        match self {
            Self::History(_) => "history",
            Self::Explain(..) => "explain",
            Self::Coverage(_) => "coverage",
            Self::Pnl(_) => "pnl",
            Self::Chains => "chains",
            Self::Usage => "usage",
            Self::Estimate => "estimate",
            Self::OpenApi => "openapi",
            Self::Docs => "docs",
            Self::Llms => "llms",
            Self::Health => "healthz",
            Self::Ready => "readyz",
            Self::Metrics | Self::MetricsApart => "metrics",
            Self::Page | Self::PageFile { .. } => "page",
            Self::Unknown => "unknown",
        }
    }

    fn methods(&self) -> &'static str {
        if *self == Self::Estimate { "POST, OPTIONS" } else { "GET, HEAD, OPTIONS" }
    }

    fn takes(&self, method: &Method) -> bool {
        self.methods().split(", ").any(|known| known == method.as_str())
    }
}

impl ApiCall {
    fn access(
        &self,
        endpoint: &RouteTarget,
        peer: Option<Peer>,
        status: u16,
        started: Instant,
    ) -> Access {
        let (limits, began) = (&self.app.limits, started.elapsed());
        let ago = u64::try_from(began.as_millis()).unwrap_or_default();
        Access {
            time: UnixMillis(self.now().0.saturating_sub(ago)),
            request_id: self.request_id.clone(),
            client: client(peer, &self.headers, &limits.trusted_proxies),
            key: self.caller().ok().map(|caller| caller.key.public_id.clone()),
            method: known_method(&self.method),
            route: endpoint.label(),
            path: limits.log_paths.then(|| self.path.clone()),
            status,
            bytes: 0,
            began,
            ended: began,
        }
    }
}

pub(super) async fn answer(
    endpoint: RouteTarget,
    method: Method,
    path: String,
    headers: HeaderMap,
    query: String,
    received: RequestParts,
    app: Arc<App>,
) -> Response {
    let (started, peer) = (Instant::now(), received.peer);
    let request_id = app.request_id(headers.get(REQUEST_ID));
    let call = ApiCall { app, method, path, headers, query, request_id };
    let is_shared = received.refused.is_none() && is_shared(&endpoint, &call);
    let result = match &received.refused {
        Some(Refused(error)) => Err(error.clone()),
        None if endpoint == RouteTarget::Unknown => Err(ApiError::NotFound),
        None if call.method == Method::OPTIONS => Ok(cors::options(endpoint.methods())),
        None if !endpoint.takes(&call.method) => {
            Err(ApiError::MethodNotAllowed { allowed: endpoint.methods() })
        }
        // Boxed, since warp moves the outer future twice, which would be 4 KiB each time.
        None => Box::pin(dispatch(&endpoint, &call, received)).await,
    };
    let mut response = result.unwrap_or_else(|error| {
        let code = error.kind().code;
        let (request_id, route) = (&call.request_id, endpoint.label());
        if error.kind().status.is_server_error() {
            tracing::warn!(%request_id, route, code, %error, "a request failed");
        } else {
            tracing::debug!(%request_id, route, code, "a request was rejected");
        }
        reply::error(&call, &error)
    });
    reply::put(response.headers_mut(), REQUEST_ID, call.request_id.clone());
    if is_shared {
        cors::allow(response.headers_mut());
    }
    if call.method == Method::HEAD {
        // The headers that describe the body stay.
        drop(std::mem::take(response.body_mut()));
    }
    let status = response.status().as_u16();
    let method = known_method(&call.method);
    call.app.metrics.answered(endpoint.label(), method, status, started.elapsed());
    match call.app.access.get() {
        Some(log) => {
            let entry = call.access(&endpoint, peer, status, started);
            access::follow(Arc::clone(log), entry, started, response)
        }
        None => response,
    }
}

/// Whether pages of other origins may read the response. From estimates without a key they could
/// find out what is stored here.
fn is_shared(endpoint: &RouteTarget, call: &ApiCall) -> bool {
    *endpoint != RouteTarget::Estimate
        || call.method == Method::OPTIONS
        || has_credentials(&call.headers)
}

/// Clients can send any method, so the metric's label needs a bound.
fn known_method(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

async fn dispatch(
    endpoint: &RouteTarget,
    call: &ApiCall,
    received: RequestParts,
) -> Result<Response, ApiError> {
    match endpoint {
        RouteTarget::History(segment) => history(call, segment).await,
        RouteTarget::Explain(segment, signature) => explain::answer(call, segment, signature).await,
        RouteTarget::Coverage(segment) => coverage::answer(call, segment).await,
        RouteTarget::Pnl(segment) => gains::answer(call, segment).await,
        RouteTarget::Chains => chains(call),
        RouteTarget::Usage => usage(call).await,
        RouteTarget::Estimate => estimate(call, received).await,
        RouteTarget::OpenApi => Ok(reference::openapi()),
        RouteTarget::Docs => Ok(reference::docs(&call.app.reference)),
        RouteTarget::Llms => Ok(reference::llms()),
        RouteTarget::Health => Ok(reply::json(StatusCode::OK, &json!({ "status": "ok" }))),
        RouteTarget::Ready => Ok(ready(call).await),
        RouteTarget::Metrics => metrics(call).await,
        RouteTarget::MetricsApart => Ok(reply::metrics(call.app.metrics.render().await)),
        RouteTarget::Page => Ok(call.app.site.page(call)),
        RouteTarget::PageFile { version, name } => call.app.site.file(call, version, name),
        RouteTarget::Unknown => Err(ApiError::NotFound),
    }
}

async fn history(call: &ApiCall, segment: &str) -> Result<Response, ApiError> {
    let caller = call.caller()?;
    let rate = call.take(&caller)?;
    let request = ApiRequest::parse(call, segment, &caller)?;
    let response = if call.method == Method::HEAD {
        // HEAD loads nothing and counts nothing.
        reply::head_of_stream(if request.limit.is_some() { reply::JSON } else { reply::NDJSON })
    } else {
        read(call, &caller, request, rate).await?
    };
    Ok(reply::rated(response, rate))
}

async fn read(
    call: &ApiCall,
    caller: &Caller,
    request: ApiRequest,
    rate: Option<RateState>,
) -> Result<Response, ApiError> {
    let (app, limits) = (&call.app, &call.app.limits);
    match request.limit {
        None => {
            let permit = StreamPermit::take(app, caller, rate)?;
            let walk = open(call, caller, &request, Extent::All, limits.stream_window)?;
            let used_up = caller.has_used_up(&app.history).await?;
            stream::answer(app, request, walk, permit, used_up).await
        }
        Some(size) => {
            let is_small = size <= limits.page_rows_buffered_max;
            let permit = if is_small { None } else { Some(StreamPermit::take(app, caller, rate)?) };
            let walk = open(call, caller, &request, Extent::Rows(size), limits.page_wait)?;
            page::answer(app, request, size, walk, permit).await
        }
    }
}

fn open(
    call: &ApiCall,
    caller: &Caller,
    request: &ApiRequest,
    want: Extent,
    window: std::time::Duration,
) -> Result<Guarded, ApiError> {
    let walk = call.app.history.walk(WalkRequest {
        wallet: request.wallet,
        key: caller.key.id,
        quota: caller.key.quota,
        resume: request.cursor.map(Box::new),
        filter: request.filter.clone(),
        follow: request.follow,
        want,
        window,
    })?;
    Ok(Guarded::new(&call.app, caller, walk))
}

/// Needs no key. A request with a key needs a valid one, and also gets the endpoints.
fn chains(call: &ApiCall) -> Result<Response, ApiError> {
    let has_key = has_credentials(&call.headers);
    if has_key {
        call.caller()?;
    }
    let history = &call.app.history;
    let mut upstream: HashMap<ChainId, Upstream> = history
        .chains_status()
        .into_iter()
        .map(|(chain, endpoints)| {
            let rest = endpoints.iter().filter(|endpoint| endpoint.resting).count();
            let mut abilities = history.abilities(chain).into_iter();
            let rows = endpoints.into_iter().map(|endpoint| UpstreamEndpoint {
                abilities: abilities.next().iter().flatten().map(ability_row).collect(),
                label: endpoint.label,
                resting: endpoint.resting,
                in_flight: endpoint.in_flight,
                latency_ms: endpoint.latency.as_millis(),
                last_error: endpoint.last_error,
            });
            (chain, nodes(rows.collect(), rest, has_key))
        })
        .collect();
    let chains = history.registry().chains().iter();
    let rows = chains.map(|chain| chain_row(history, chain, upstream.remove(&chain.id)));
    let rows: Vec<ChainRow<'_>> = rows.collect();
    Ok(reply::json(StatusCode::OK, &BTreeMap::from([("chains", rows)])))
}

fn ability_row(ability: &Ability) -> AbilityRow {
    let Ability { kind, offered, from, lacks, most } = *ability;
    let is_short = ability.is_short();
    AbilityRow {
        name: kind.name(),
        offered: offered.name(),
        from,
        lacks,
        most,
        loses: is_short.then(|| kind.loses()),
        configure: is_short.then(|| kind.configure()),
    }
}

fn nodes(rows: Vec<UpstreamEndpoint>, resting: usize, in_detail: bool) -> Upstream {
    let state = match resting {
        _ if resting == rows.len() => "down",
        0 => "up",
        _ => "degraded",
    };
    Upstream {
        state,
        endpoints_total: rows.len(),
        endpoints_resting: resting,
        endpoints: in_detail.then_some(rows),
    }
}

fn chain_row<'a>(history: &History, chain: &'a Chain, upstream: Option<Upstream>) -> ChainRow<'a> {
    ChainRow {
        slug: &chain.slug,
        aliases: &chain.aliases,
        name: &chain.name,
        family: chain.family,
        native: NativeCoinBody { symbol: &chain.native.symbol, decimals: chain.native.decimals },
        explorer: Some(chain.explorer.as_str()).filter(|site| !site.is_empty()),
        status: if upstream.is_some() { "live" } else { "disabled" },
        blind_spots: history.blind_spots(chain.id).names().collect(),
        upstream,
    }
}

async fn usage(call: &ApiCall) -> Result<Response, ApiError> {
    let caller = call.caller()?;
    let rate = call.take(&caller)?;
    let key = &caller.key;
    let trades_counted = call.app.history.usage(key.id).await?;
    let body = UsageBody {
        key: UsageKey { id: &key.public_id, name: key.name.as_deref() },
        trades_counted,
        quota: key.quota,
        remaining: key.quota.map(|quota| quota.saturating_sub(trades_counted)),
    };
    Ok(reply::rated(reply::json(StatusCode::OK, &body), rate))
}

async fn metrics(call: &ApiCall) -> Result<Response, ApiError> {
    match call.app.limits.metrics {
        MetricsAccess::Open => {}
        MetricsAccess::Key => drop(call.caller()?),
        MetricsAccess::Apart => return Err(ApiError::NotFound),
    }
    Ok(reply::metrics(call.app.metrics.render().await))
}

async fn ready(call: &ApiCall) -> Response {
    let history = &call.app.history;
    let draining = call.app.draining.load(Ordering::Relaxed) || history.tasks().is_cancelled();
    let (code, status) = match draining {
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        false if !history.is_ready().await => {
            (StatusCode::SERVICE_UNAVAILABLE, "store unavailable")
        }
        false => (StatusCode::OK, "ready"),
    };
    reply::json(code, &json!({ "status": status }))
}

impl App {
    /// The client's own id if it can be echoed, else a new one.
    pub(super) fn request_id(&self, sent: Option<&HeaderValue>) -> String {
        let fits = |id: &&str| {
            let visible = id.bytes().all(|b| b.is_ascii_graphic());
            visible && !id.is_empty() && id.len() <= self.limits.request_id_chars_max
        };
        if let Some(id) = sent.and_then(|id| id.to_str().ok()).filter(fits) {
            return id.to_owned();
        }
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("{:016x}-{number:x}", self.seed)
    }
}
