//! Routes paths to targets.

use warp::Filter as _;
use warp::filters::BoxedFilter;
use warp::path::FullPath;
use warp::reply::Response;

use super::current::Current;
use super::estimate::RequestParts;
use super::handlers::{RouteTarget, answer};

/// The routes of the API. No request is rejected without a response.
pub(super) fn routes(current: &Current) -> BoxedFilter<(Response,)> {
    answered(current, target)
}

/// The routes of a separate metrics address: metrics and probes.
pub(super) fn metrics_routes(current: &Current) -> BoxedFilter<(Response,)> {
    answered(current, |path| {
        let target = target(path);
        if target == RouteTarget::Metrics {
            RouteTarget::MetricsApart
        } else if [RouteTarget::Health, RouteTarget::Ready].contains(&target) {
            target
        } else {
            RouteTarget::Unknown
        }
    })
}

fn answered(current: &Current, target: fn(&str) -> RouteTarget) -> BoxedFilter<(Response,)> {
    let current = current.clone();
    warp::any()
        .and(warp::path::full().map(move |path: FullPath| target(path.as_str())))
        .and(warp::method())
        .and(warp::path::full().map(|path: FullPath| path.as_str().to_owned()))
        .and(warp::header::headers_cloned())
        .and(warp::query::raw().or(warp::any().map(String::new)).unify())
        // The body is read only by handlers that need it.
        .and(
            warp::ext::optional()
                .and(warp::ext::optional())
                .and(warp::body::stream())
                .map(RequestParts::new),
        )
        .and(warp::any().map(move || current.get()))
        .then(answer)
        .boxed()
}

/// A path may end with one slash. Of empty segments only an address, or what stands behind it, is
/// refused as such; segments are not decoded.
fn target(path: &str) -> RouteTarget {
    let path = path.strip_prefix('/').unwrap_or(path);
    let segments: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    match segments.as_slice() {
        _ if path.is_empty() => RouteTarget::Page,
        ["v1", segments @ ..] | ["api", "v1", segments @ ..] => versioned(segments),
        ["openapi.json"] => RouteTarget::OpenApi,
        ["docs"] => RouteTarget::Docs,
        ["llms.txt"] => RouteTarget::Llms,
        ["healthz"] => RouteTarget::Health,
        ["readyz"] => RouteTarget::Ready,
        ["metrics"] => RouteTarget::Metrics,
        &["page", version, name] if ![version, name].contains(&"") => {
            RouteTarget::PageFile { version: version.to_owned(), name: name.to_owned() }
        }
        _ => RouteTarget::Unknown,
    }
}

/// The target below `/v1` or its alias `/api/v1`.
fn versioned(segments: &[&str]) -> RouteTarget {
    match *segments {
        ["wallets", address, "history"] => RouteTarget::History(address.to_owned()),
        ["wallets", address, "explain", id] => {
            RouteTarget::Explain(address.to_owned(), id.to_owned())
        }
        ["wallets", address, "coverage"] => RouteTarget::Coverage(address.to_owned()),
        ["wallets", address, "pnl"] => RouteTarget::Pnl(address.to_owned()),
        ["chains"] => RouteTarget::Chains,
        ["usage"] => RouteTarget::Usage,
        ["billing", "estimate"] => RouteTarget::Estimate,
        _ => RouteTarget::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_lead_where_they_should() {
        let history = |address: &str| RouteTarget::History(address.to_owned());
        assert_eq!(target("/v1/wallets/a%2Fb/history"), history("a%2Fb"));
        assert_eq!(target("/api/v1/wallets/a/history/"), history("a"));
        assert_eq!(target("/v1/wallets//history"), history(""));
        assert_eq!((target("/"), target("/docs/")), (RouteTarget::Page, RouteTarget::Docs));
        let nowhere = [
            "//",
            "///",
            "*",
            "//docs",
            "/docs//",
            "/v1",
            "/v1/",
            "/v1//chains",
            "/v1/chains//",
            "/v1//wallets/a/history",
            "/v1/wallets/a/history//",
            "/v1/wallets/a/history/b",
            "/wallets/a/history",
            "/V1/chains",
            "/api/chains",
            "/v1/docs",
            "/page/a",
            "/page//a",
            "/page/a/b/c",
        ];
        for path in nowhere {
            assert_eq!(target(path), RouteTarget::Unknown, "{path}");
        }
    }
}
