//! Which path leads to what: routing only.

use std::convert::Infallible;

use warp::filters::BoxedFilter;
use warp::path::FullPath;
use warp::reply::Response;
use warp::{Filter, Rejection};

use super::current::Current;
use super::estimate::RequestParts;
use super::handlers::{RouteTarget, answer};

/// Every request is answered; nothing is rejected.
pub(super) fn routes(current: &Current) -> BoxedFilter<(Response,)> {
    answered(current, endpoint())
}

/// The metrics at an address of their own, and the probes.
pub(super) fn metrics_routes(current: &Current) -> BoxedFilter<(Response,)> {
    let only = |name: &'static str| warp::path(name).and(warp::path::end());
    let endpoint = only("metrics")
        .map(|| RouteTarget::MetricsApart)
        .or(only("healthz").map(|| RouteTarget::Health))
        .unify()
        .or(only("readyz").map(|| RouteTarget::Ready))
        .unify()
        .or(warp::any().map(|| RouteTarget::Unknown))
        .unify();
    answered(current, endpoint)
}

fn answered(
    current: &Current,
    endpoint: impl Filter<Extract = (RouteTarget,), Error = Infallible> + Clone + Send + Sync + 'static,
) -> BoxedFilter<(Response,)> {
    let current = current.clone();
    endpoint
        .and(warp::method())
        .and(warp::path::full().map(|path: FullPath| path.as_str().to_owned()))
        .and(warp::header::headers_cloned())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        .and(received())
        .and(warp::any().map(move || current.get()))
        .then(answer)
        .boxed()
}

/// The rest of a request, read only where it is wanted.
fn received() -> impl Filter<Extract = (RequestParts,), Error = Rejection> + Clone {
    warp::ext::optional()
        .and(warp::ext::optional())
        .and(warp::body::stream())
        .map(RequestParts::new)
}

fn endpoint() -> impl Filter<Extract = (RouteTarget,), Error = Infallible> + Clone {
    let history = versioned().and(warp::path!("wallets" / String / "history"));
    let chains = versioned().and(warp::path!("chains")).map(|| RouteTarget::Chains);
    let explain = versioned().and(warp::path!("wallets" / String / "explain" / String));
    let coverage = versioned().and(warp::path!("wallets" / String / "coverage"));
    let pnl = versioned().and(warp::path!("wallets" / String / "pnl"));
    let usage = versioned().and(warp::path!("usage")).map(|| RouteTarget::Usage);
    let estimate =
        versioned().and(warp::path!("billing" / "estimate")).map(|| RouteTarget::Estimate);
    history
        .map(RouteTarget::History)
        .or(explain.map(RouteTarget::Explain))
        .unify()
        .or(coverage.map(RouteTarget::Coverage))
        .unify()
        .or(pnl.map(RouteTarget::Pnl))
        .unify()
        .or(chains)
        .unify()
        .or(usage)
        .unify()
        .or(estimate)
        .unify()
        .or(warp::path!("openapi.json").map(|| RouteTarget::OpenApi))
        .unify()
        .or(warp::path!("docs").map(|| RouteTarget::Docs))
        .unify()
        .or(warp::path!("llms.txt").map(|| RouteTarget::Llms))
        .unify()
        .or(warp::path!("healthz").map(|| RouteTarget::Health))
        .unify()
        .or(warp::path!("readyz").map(|| RouteTarget::Ready))
        .unify()
        .or(warp::path!("metrics").map(|| RouteTarget::Metrics))
        .unify()
        .or(warp::path::end().map(|| RouteTarget::Page))
        .unify()
        .or(warp::path!("page" / String / String)
            .map(|version, name| RouteTarget::PageFile { version, name }))
        .unify()
        .or(warp::any().map(|| RouteTarget::Unknown))
        .unify()
}

/// `/v1` and its equal, `/api/v1`.
fn versioned() -> impl Filter<Extract = (), Error = Rejection> + Clone {
    warp::path("v1").or(warp::path("api").and(warp::path("v1"))).unify()
}
