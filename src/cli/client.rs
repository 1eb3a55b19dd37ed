//! Reads a history from a running server, page by page.
//!
//! Each request has the cursor of the page before, so a broken connection costs one page. Only a
//! page without a cursor is the end of a history.

use std::convert::Infallible;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::config::secret::ConfigUrl;
use super::coverage_note::CoverageNote;
use super::errors::CliError;
use super::http_get::{Client, GetAnswer, GetError, require_private};
use super::output::{Ending, Outcome, RowSink, TradeLine};
use super::progress::ProgressLine;
use super::signals;
use crate::domain::Address;

/// Rows of one page: few requests, and a body that fits into memory.
const PAGE_ROWS: u64 = 10_000;
const PAGE_BYTES_MAX: usize = 64 << 20;
/// Longer than the server waits for rows that it loads.
const PAGE_WAIT_MAX: Duration = Duration::from_secs(90);
/// Coverage is requested once, and is optional.
const COVERAGE_WAIT_MAX: Duration = Duration::from_secs(5);
const ESTIMATE_WAIT_MAX: Duration = Duration::from_secs(10);
const ESTIMATE_BYTES_MAX: usize = 64 << 10;
/// Retries of one page before the reading ends.
const RETRIES_MAX: u32 = 6;
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The reading ends after this time without a new row.
const PROGRESS_WAIT_MAX: Duration = Duration::from_secs(1800);
/// The error type of a cursor that is no longer valid.
const CHANGED: &str = "/errors/history_changed";

/// A server, and the history to read from it.
pub(super) struct ClientRequest {
    base: ConfigUrl,
    pub(super) client: Client,
    chain: String,
    address: Address,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    wallet: String,
    complete: bool,
    trade_count: u64,
    trades: Vec<TradeLine>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorPart,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct ErrorPart {
    code: String,
    message: String,
}

enum PageError {
    /// Worth a retry after at least this long.
    Transient(String, Duration),
    /// No connection, which is worth a retry only if the server has responded before.
    Unreachable(String),
    Rejected(String),
    /// The history above the cursor has changed: by a reorg, or by a row that came late.
    Changed,
}

impl ClientRequest {
    pub(super) fn new(
        url: &str,
        key: Option<&str>,
        chain: &str,
        address: Address,
        limit: Option<u64>,
        insecure: bool,
    ) -> Result<Self, CliError> {
        let base = ConfigUrl::parse(url.trim_end_matches('/'))
            .map_err(|reason| CliError::Usage(format!("--url: {reason}")))?;
        require_private("--url", &base, insecure)?;
        let key =
            key.ok_or_else(|| CliError::Usage("--url needs --key or BLOTTER_KEY".to_owned()))?;
        let (client, chain) = (Client::new(key)?, chain.to_owned());
        Ok(Self { base, client, chain, address, limit })
    }

    /// The URL of a route of the wallet; `more` are further parameters.
    pub(super) fn url(&self, what: &str, more: &str) -> String {
        let Self { base, address, chain, .. } = self;
        format!("{}/v1/wallets/{address}/{what}?chain={chain}{more}", base.expose())
    }

    fn page_url(&self, rows: u64, cursor: Option<&str>) -> String {
        // Cursors are base64url: nothing in them needs escaping.
        let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        self.url("history", &format!("&limit={rows}{cursor}"))
    }
}

/// Passes the pages of a history to the sink until one has no cursor or the limit is reached.
pub(super) async fn read(
    request: &ClientRequest,
    writer: &mut dyn RowSink,
    progress: &ProgressLine,
    resume: Option<String>,
) -> Result<Outcome, CliError> {
    let mut reading = Reading {
        cursor: resume,
        oldest: None,
        trade_count: 0,
        has_answered: false,
        progressed_at: Instant::now(),
    };
    let (stop, expected) = (signals::stop()?, expect(request, progress));
    tokio::pin!(stop, expected);
    let outcome = loop {
        let left = request.limit.map_or(PAGE_ROWS, |limit| limit.saturating_sub(writer.written()));
        let url = request.page_url(left.clamp(1, PAGE_ROWS), reading.cursor.as_deref());
        let page = tokio::select! {
            page = page(request, &url, &reading) => page,
            never = &mut expected => match never {},
            () = &mut stop => Err(PageError::Transient("stopped".to_owned(), Duration::ZERO)),
        };
        let page = match page {
            Ok(page) => page,
            Err(PageError::Rejected(reason)) if writer.written() == 0 => {
                return Err(CliError::plain(reason));
            }
            Err(PageError::Unreachable(reason)) if !reading.has_answered => {
                return Err(CliError::plain(reason));
            }
            Err(
                PageError::Rejected(reason)
                | PageError::Transient(reason, _)
                | PageError::Unreachable(reason),
            ) => {
                break reading.short(CliError::Incomplete(reason));
            }
            Err(PageError::Changed) => break reading.short(CliError::Changed),
        };
        // An earlier call wrote all rows up to the limit, and a page has at least one. The reading
        // must not advance.
        let page = if left == 0 {
            Page { trades: Vec::new(), cursor: reading.cursor.clone(), ..page }
        } else {
            page
        };
        let is_last = page.cursor.is_none();
        let complete = page.complete;
        reading.take(page, writer, progress)?;
        if is_last || request.limit.is_some_and(|limit| writer.written() >= limit) {
            break Outcome::new(reading.ending(complete), None);
        }
        if reading.progressed_at.elapsed() > PROGRESS_WAIT_MAX {
            let reason = "the server loads no further".to_owned();
            break reading.short(CliError::Incomplete(reason));
        }
    };
    Ok(Outcome { coverage: coverage(request).await, ..outcome })
}

/// Passes an estimate of the size to a visible progress line, unless the server refuses estimates.
/// Never completes.
async fn expect(request: &ClientRequest, progress: &ProgressLine) -> Infallible {
    if progress.is_shown() {
        let body = json!({"addresses": [request.address.to_string()], "chain": request.chain});
        let url = format!("{}/v1/billing/estimate", request.base.expose());
        let body = Some(body.to_string().into());
        let answer = request.client.send(&url, body, ESTIMATE_WAIT_MAX, ESTIMATE_BYTES_MAX).await;
        let read =
            answer.ok().and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
        let count = read.as_ref().and_then(|read| read.pointer("/addresses/0/estimatedTradeCount"));
        if let Some(trades) = count.and_then(Value::as_u64) {
            progress.expect(trades);
        }
    }
    std::future::pending().await
}

/// `None` if the server does not have the route, as those of an earlier version.
async fn coverage(request: &ClientRequest) -> Option<CoverageNote> {
    let url = request.url("coverage", "");
    let answer = request.client.send(&url, None, COVERAGE_WAIT_MAX, PAGE_BYTES_MAX).await.ok()?;
    CoverageNote::read(&answer.body).filter(|_| answer.status == StatusCode::OK)
}

struct Reading {
    cursor: Option<String>,
    oldest: Option<String>,
    trade_count: u64,
    has_answered: bool,
    progressed_at: Instant,
}

impl Reading {
    fn take(
        &mut self,
        page: Page,
        writer: &mut dyn RowSink,
        progress: &ProgressLine,
    ) -> Result<(), CliError> {
        self.has_answered = true;
        let oldest = page.trades.last().map(|last| last.block_time.clone());
        if let Some(cursor) = &page.cursor {
            writer.rows(page.trades, cursor)?;
        } else {
            writer.last_rows(page.trades)?;
        }
        self.cursor = page.cursor;
        self.trade_count = page.trade_count;
        progress.total(page.complete.then_some(page.trade_count));
        if let Some(oldest) = oldest {
            progress.reached(writer.written(), &oldest);
            self.oldest = Some(oldest);
            self.progressed_at = Instant::now();
        }
        Ok(())
    }

    fn ending(self, complete: bool) -> Ending {
        let first_trade = self.oldest.filter(|_| complete && self.cursor.is_none());
        Ending { complete, trade_count: self.trade_count, first_trade, cursor: self.cursor }
    }

    fn short(self, reason: CliError) -> Outcome {
        Outcome::new(self.ending(false), Some(reason))
    }
}

/// Requests a page, with retries of transient errors.
async fn page(request: &ClientRequest, url: &str, reading: &Reading) -> Result<Page, PageError> {
    let mut pause = PAUSE_MIN;
    let mut retries = 0;
    loop {
        let error = match page_once(request, url).await {
            Ok(page) => return page.asked_for(&request.address, reading.cursor.as_deref()),
            Err(error) => error,
        };
        let wait = match &error {
            PageError::Transient(_, wait) => *wait,
            PageError::Unreachable(_) if reading.has_answered => Duration::ZERO,
            PageError::Unreachable(_) | PageError::Rejected(_) | PageError::Changed => {
                return Err(error);
            }
        };
        if retries == RETRIES_MAX {
            return Err(error);
        }
        tokio::time::sleep(wait.max(pause).min(PAUSE_MAX)).await;
        pause = pause.saturating_mul(2);
        retries += 1;
    }
}

async fn page_once(request: &ClientRequest, url: &str) -> Result<Page, PageError> {
    let answer = request.client.send(url, None, PAGE_WAIT_MAX, PAGE_BYTES_MAX).await;
    let answer = answer.map_err(|error| match error {
        GetError::Unreachable(_) => PageError::Unreachable(error.to_string()),
        GetError::Broken(_) => PageError::Transient(error.to_string(), Duration::ZERO),
    })?;
    if answer.status != StatusCode::OK {
        return Err(page_error(&answer));
    }
    read_page(&answer.body)
}

/// Only a truncated page is worth a retry: others are no server's of this kind.
fn read_page(body: &[u8]) -> Result<Page, PageError> {
    serde_json::from_slice(body).map_err(|error| {
        let reason = format!("the server's page cannot be read: {error}");
        if error.is_eof() {
            PageError::Transient(reason, Duration::ZERO)
        } else {
            PageError::Rejected(reason)
        }
    })
}

impl Page {
    /// An error for a page that cannot be the one behind a cursor: a cache may answer in place of
    /// the server, by the path alone.
    fn asked_for(self, address: &Address, cursor: Option<&str>) -> Result<Self, PageError> {
        let is_same = cursor.is_some() && cursor == self.cursor.as_deref();
        let reason = if self.wallet != address.to_string() {
            "the server's page is of another wallet"
        } else if is_same && !self.trades.is_empty() {
            "the server gives the same page again"
        } else if self.cursor.is_none() && !self.complete {
            "the server names no cursor of a history that is not complete"
        } else {
            return Ok(self);
        };
        Err(PageError::Rejected(reason.to_owned()))
    }
}

/// The text of an error response.
pub(super) fn refused(answer: &GetAnswer) -> String {
    let hint = match answer.status {
        StatusCode::UNAUTHORIZED => "; `blotter keys create` makes a key",
        _ => "",
    };
    match serde_json::from_slice::<ErrorBody>(&answer.body) {
        Ok(ErrorBody { error, .. }) => {
            format!("the server says {}: {}{hint}", error.code, error.message)
        }
        Err(_) => format!("the server answers {}{hint}", answer.status),
    }
}

/// Classifies a response that is no page.
fn page_error(answer: &GetAnswer) -> PageError {
    let (status, reason) = (answer.status, refused(answer));
    let body = serde_json::from_slice::<ErrorBody>(&answer.body).ok();
    if body.and_then(|body| body.kind).as_deref() == Some(CHANGED) {
        PageError::Changed
    } else if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        PageError::Transient(reason, answer.retry_after.unwrap_or_default())
    } else {
        PageError::Rejected(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: StatusCode, code: &str) -> GetAnswer {
        let group = code.to_ascii_uppercase();
        let error = json!({"code": group, "message": "m"});
        let body = json!({"error": error, "type": format!("/errors/{code}")}).to_string().into();
        GetAnswer { status, retry_after: None, body }
    }

    #[test]
    fn error_answers_for_a_page_are_classified() {
        let error = |status, code| page_error(&answer(status, code));
        let changed = error(StatusCode::CONFLICT, "history_changed");
        assert!(matches!(changed, PageError::Changed));
        // A server of another version may accept the cursor.
        assert!(matches!(error(StatusCode::BAD_REQUEST, "invalid_cursor"), PageError::Rejected(_)));
        assert!(matches!(
            error(StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            PageError::Transient(..)
        ));
    }

    #[test]
    fn a_page_that_was_not_asked_for_is_refused() {
        let address = Address::Evm([7; 20]);
        let row = json!({"signature": "s", "side": "buy", "token": "T", "tokenMint": "M",
                         "amountSol": 1, "amount": 2, "dex": "D",
                         "blockTime": "2026-11-21T07:05:51+00:00"});
        let page = |wallet: &str, rows: usize, cursor: Option<&str>, complete: bool| {
            let trades = vec![&row; rows];
            let body = json!({"wallet": wallet, "trades": trades, "tradeCount": 9,
                              "complete": complete, "cursor": cursor});
            read_page(body.to_string().as_bytes()).ok().unwrap()
        };
        let own = address.to_string();
        let is_taken = |page: Page| page.asked_for(&address, Some("c1")).is_ok();
        assert!(is_taken(page(&own, 1, Some("c2"), false)) && is_taken(page(&own, 1, None, true)));
        assert!(is_taken(page(&own, 0, Some("c1"), false)), "its rows are not loaded yet");
        assert!(!is_taken(page(&own, 1, Some("c1"), true)), "it would never end");
        assert!(!is_taken(page(&own, 1, None, false)));
        assert!(!is_taken(page(&Address::Evm([8; 20]).to_string(), 1, Some("c2"), false)));
    }

    #[test]
    fn only_a_truncated_page_is_asked_for_again() {
        assert!(matches!(read_page(b"{\"wallet\": \"a"), Err(PageError::Transient(..))));
        assert!(matches!(read_page(b"<html></html>"), Err(PageError::Rejected(_))));
    }
}
