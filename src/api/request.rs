//! A request for a history, with every part checked.

use super::auth::Caller;
use super::call::{ApiCall, find_wallet};
use super::coding::Coding;
use super::error::ApiError;
use super::query::HistoryQuery;
use crate::domain::{Cursor, Filter, Numbers, Wallet};

/// A history request whose every part was checked.
#[derive(Debug, Clone)]
pub(super) struct ApiRequest {
    pub(super) wallet: Wallet,
    /// The canonical form of the address, which answers echo.
    pub(super) wallet_text: String,
    /// The chain's slug.
    pub(super) chain: String,
    pub(super) native_decimals: u8,
    /// Present: page mode.
    pub(super) limit: Option<u64>,
    pub(super) cursor: Option<Cursor>,
    pub(super) filter: Filter,
    pub(super) follow: bool,
    pub(super) numbers: Numbers,
    /// As the client sent it.
    pub(super) path: String,
    /// Parameters to be sent again with the next page's cursor.
    pub(super) filter_query: String,
    pub(super) coding: Coding,
    /// By which the log knows the request.
    pub(super) request_id: Box<str>,
}

impl ApiRequest {
    pub(super) fn parse(call: &ApiCall, segment: &str, caller: &Caller) -> Result<Self, ApiError> {
        let query = HistoryQuery::parse(&call.query)?;
        let (chain, wallet) = find_wallet(call, caller, query.chain.as_deref(), segment)?;
        let filter = query.filter.on(chain.family)?;
        let cursor = query.cursor.as_deref().map(|text| Cursor::decode(text, &wallet)).transpose();
        let cursor = cursor.map_err(|_| ApiError::InvalidCursor)?;
        let fits =
            |cursor: &Cursor| cursor.filter == filter.tag() && (query.follow || !cursor.live);
        if cursor.as_ref().is_some_and(|cursor| !fits(cursor)) {
            return Err(ApiError::InvalidCursor);
        }
        Ok(Self {
            wallet,
            wallet_text: wallet.address.to_string(),
            chain: chain.slug.clone(),
            native_decimals: chain.native.decimals,
            limit: query.limit,
            cursor,
            filter,
            follow: query.follow,
            numbers: query.numbers,
            path: call.path.clone(),
            filter_query: query.repeated(),
            coding: Coding::accepted(&call.headers),
            request_id: call.request_id.as_str().into(),
        })
    }
}
