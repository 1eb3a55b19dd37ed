//! A request for a history.

use super::auth::Caller;
use super::call::{ApiCall, find_wallet};
use super::coding::Coding;
use super::error::ApiError;
use super::query::HistoryQuery;
use crate::domain::{Cursor, Filter, Numbers, Wallet};

/// A history request with all parts checked.
#[derive(Debug, Clone)]
pub(super) struct ApiRequest {
    pub(super) wallet: Wallet,
    /// The canonical form of the address, which responses contain.
    pub(super) wallet_text: String,
    pub(super) chain: String,
    pub(super) native_decimals: u8,
    /// The rows of a page; `None` is a stream.
    pub(super) limit: Option<u64>,
    pub(super) cursor: Option<Cursor>,
    pub(super) filter: Filter,
    pub(super) follow: bool,
    pub(super) numbers: Numbers,
    pub(super) path: String,
    /// The parameters to send again with the next page's cursor.
    pub(super) filter_query: String,
    pub(super) coding: Coding,
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
