//! Page mode: one JSON object. The members that are known last come last, so that a page of any
//! size can be written while it is read.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use warp::http::StatusCode;
use warp::http::header::LINK;
use warp::reply::Response;

use super::App;
use super::error::ApiError;
use super::guarded::Guarded;
use super::reply;
use super::request::ApiRequest;
use super::stream_permit::StreamPermit;
use crate::domain::row_json::{ROW_BYTES_TYPICAL, rows_json, string};
use crate::history::{AsOf, End, HistoryError, Step};

/// Space for two cursors and the members other than the rows.
const OVERHEAD_BYTES: usize = 512;

struct Page {
    app: Arc<App>,
    request: ApiRequest,
    size: u64,
    walk: Guarded,
    rows_written: u64,
    out: Vec<u8>,
    ended: bool,
    _permit: Option<StreamPermit>,
}

/// Responds with a page. Small pages are buffered until complete, so that a failure has its status;
/// larger ones are sent while they are written, which requires a `permit`.
pub(super) async fn answer(
    app: &Arc<App>,
    request: ApiRequest,
    size: u64,
    walk: Guarded,
    permit: Option<StreamPermit>,
) -> Result<Response, ApiError> {
    let rows_at_once = usize::try_from(size.min(app.limits.page_rows_buffered_max)).unwrap_or(0);
    let out = Vec::with_capacity(rows_at_once * ROW_BYTES_TYPICAL + OVERHEAD_BYTES);
    let app = Arc::clone(app);
    let mut page =
        Page { app, request, size, walk, rows_written: 0, out, ended: false, _permit: permit };
    page.begin();
    loop {
        match page.walk.next().await {
            Step::Rows(rows) => page.write(&Step::Rows(rows)),
            Step::End(end) => return page.whole(&end).await,
        }
        if page.rows_written > page.app.limits.page_rows_buffered_max {
            let as_of = page.walk.as_of().await;
            return Ok(page.streamed(as_of));
        }
    }
}

impl Page {
    async fn whole(&mut self, end: &End) -> Result<Response, ApiError> {
        if self.rows_written == 0
            && let Some(error) = refusal(end).or_else(|| self.standstill(end))
        {
            return Err(error.into());
        }
        let cursor = self.write_end(end);
        let body = std::mem::take(&mut self.out);
        let mut response = reply::whole_in(StatusCode::OK, reply::JSON, body, self.request.coding);
        let headers = response.headers_mut();
        reply::put_as_of(headers, self.walk.as_of().await);
        if let Some(cursor) = cursor {
            let ApiRequest { path, chain, filter_query: filter, .. } = &self.request;
            let mut digits = itoa::Buffer::new();
            let (size, rel) = (digits.format(self.size), ">; rel=\"next\"");
            let next =
                ["<", path, "?chain=", chain, "&limit=", size, filter, "&cursor=", &cursor, rel];
            reply::put(headers, LINK, next.concat());
        }
        Ok(response)
    }

    /// The error of a page that ends at its own cursor because endpoints fail. Without it, a client
    /// that follows cursors immediately would request the same page forever.
    fn standstill(&self, end: &End) -> Option<HistoryError> {
        let stands = self.request.cursor == Some(self.walk.cursor());
        end.error.clone().filter(|error| stands && is_unavailable(error))
    }

    fn streamed(self, as_of: Option<AsOf>) -> Response {
        let (coding, packing) = (self.request.coding, self.app.packing.clone());
        let frames = stream::unfold(self, |mut page| async move {
            let frame = page.next_frame().await?;
            Some((Ok::<_, Infallible>(frame), page))
        });
        let mut response = reply::streamed(reply::JSON, frames, coding, &packing);
        reply::put_as_of(response.headers_mut(), as_of);
        response
    }

    async fn next_frame(&mut self) -> Option<Bytes> {
        while !self.ended && self.out.len() < self.app.limits.frame_bytes {
            // Written rows are sent before waiting for the walk.
            let prompt = if self.walk.is_prompt() { self.walk.next().now_or_never() } else { None };
            let step = match prompt {
                Some(step) => step,
                None if self.out.is_empty() => self.walk.next().await,
                None => break,
            };
            self.write(&step);
        }
        (!self.out.is_empty()).then(|| std::mem::take(&mut self.out).into())
    }

    fn begin(&mut self) {
        self.out.extend_from_slice(b"{\"wallet\":");
        string(&mut self.out, &self.request.wallet_text);
        self.number(",\"pageSize\":", self.size);
        self.out.extend_from_slice(b",\"trades\":[");
    }

    fn write(&mut self, step: &Step) {
        match step {
            Step::Rows(rows) => {
                if self.rows_written > 0 {
                    self.out.push(b',');
                }
                rows_json(rows, self.request.native_decimals, self.request.numbers, &mut self.out);
                let written = u64::try_from(rows.len()).unwrap_or(u64::MAX);
                self.rows_written += written;
                self.app.metrics.trades_written.inc_by(written);
            }
            Step::End(end) => {
                self.write_end(end);
                self.ended = true;
            }
        }
    }

    /// Returns the cursor, which only the last page of a complete history lacks.
    fn write_end(&mut self, end: &End) -> Option<String> {
        let End { complete, trade_count, more, .. } = end;
        let is_last = *complete && !*more;
        let cursor = (!is_last).then(|| self.walk.cursor().encode(&self.request.wallet));
        let complete_text = if *complete { "true" } else { "false" };
        self.out.extend_from_slice(b"],\"complete\":");
        self.out.extend_from_slice(complete_text.as_bytes());
        self.number(",\"tradeCount\":", *trade_count);
        if *complete {
            self.number(",\"totalPages\":", trade_count.div_ceil(self.size));
        }
        if let Some(cursor) = &cursor {
            self.out.extend_from_slice(b",\"cursor\":");
            string(&mut self.out, cursor);
        }
        self.out.push(b'}');
        cursor
    }

    fn number(&mut self, name: &str, value: u64) {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }
}

/// The error of a page without rows. `None` if some history is stored and only endpoints fail: the
/// first such page is empty, and its cursor lets the client retry.
pub(super) fn refusal(end: &End) -> Option<HistoryError> {
    end.error.clone().filter(|error| end.trade_count == 0 || !is_unavailable(error))
}

fn is_unavailable(error: &HistoryError) -> bool {
    matches!(error, HistoryError::UpstreamUnavailable { .. })
}
