//! One request, with its caller, rate and chain.

use std::sync::Arc;

use tokio::time::Instant;
use warp::http::{HeaderMap, Method};

use super::App;
use super::auth::Caller;
use super::error::ApiError;
use super::parameters::decode_segment;
use super::rate_limit::{RateState, RequestRate};
use crate::domain::{Address, UnixMillis, Wallet};
use crate::registry::Chain;

const CHAIN_DEFAULT: &str = "sol";
/// Longest part of an unknown chain's name in the error.
const CHAIN_CHARS_ECHOED: usize = 40;

#[derive(Debug)]
pub(super) struct ApiCall {
    pub(super) app: Arc<App>,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) query: String,
    pub(super) request_id: String,
}

impl ApiCall {
    pub(super) fn now(&self) -> UnixMillis {
        self.app.history.clock().now()
    }

    pub(super) fn caller(&self) -> Result<Caller, ApiError> {
        self.app.keys.caller(&self.headers, self.now()).ok_or(ApiError::Unauthorized)
    }

    /// Counts one request against the caller's rate; `None` for a key without a rate.
    pub(super) fn take(&self, caller: &Caller) -> Result<Option<RateState>, ApiError> {
        let Some(millis) = caller.key.rate_millis else { return Ok(None) };
        let rate = RequestRate::new(millis, self.app.limits.rate_burst);
        Ok(Some(caller.state.bucket.take(1, rate, Instant::now())?))
    }
}

/// The chain of that name. A caller with a key must be allowed to read it.
pub(super) fn find_chain<'a>(
    call: &'a ApiCall,
    caller: Option<&Caller>,
    name: Option<&str>,
) -> Result<&'a Chain, ApiError> {
    let (registry, name) = (call.app.history.registry(), name.unwrap_or(CHAIN_DEFAULT));
    let chain = registry.chain_named(name).ok_or_else(|| {
        let slugs: Vec<&str> = registry.chains().iter().map(|chain| chain.slug.as_str()).collect();
        let name = name.chars().take(CHAIN_CHARS_ECHOED).collect();
        ApiError::UnknownChain { name, slugs: slugs.join(", ") }
    })?;
    let allowed = caller.and_then(|caller| caller.key.chains.as_ref());
    if allowed.is_some_and(|chains| !chains.contains(&chain.id)) {
        return Err(ApiError::ChainNotAllowed { slug: chain.slug.clone() });
    }
    Ok(chain)
}

/// The wallet of a path's address segment on the chain of that name.
pub(super) fn find_wallet<'a>(
    call: &'a ApiCall,
    caller: &Caller,
    chain: Option<&str>,
    segment: &str,
) -> Result<(&'a Chain, Wallet), ApiError> {
    let chain = find_chain(call, Some(caller), chain)?;
    let address = Address::parse(chain.family, &decode_segment(segment)?)
        .map_err(|rule| ApiError::InvalidAddress { rule })?;
    Ok((chain, Wallet { chain: chain.id, address }))
}
