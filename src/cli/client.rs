//! Reads a history through a running server, page by page.
//!
//! A page is asked for by the cursor of the one before, so a connection that breaks costs one page.
//! The end is a page that says so, and nothing else is taken for it.

use std::convert::Infallible;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::config::secret::ConfigUrl;
use super::coverage_note::CoverageNote;
use super::errors::CliError;
use super::http_get::{Client, GetAnswer, GetError, require_private};
use super::output::{Ending, TradeLine};
use super::progress::ProgressLine;
use super::row_sink::{Outcome, RowSink};
use super::signals;
use crate::domain::Address;

/// Rows of one page: few requests, and a body that can be held in memory.
const PAGE_ROWS: u64 = 10_000;
const PAGE_BYTES_MAX: usize = 64 << 20;
/// Above the server's own wait for rows that are being loaded.
const PAGE_WAIT_MAX: Duration = Duration::from_secs(90);
/// It is asked for once, and not waited for long.
const COVERAGE_WAIT_MAX: Duration = Duration::from_secs(5);
const ESTIMATE_WAIT_MAX: Duration = Duration::from_secs(10);
const ESTIMATE_BYTES_MAX: usize = 64 << 10;
/// Failed tries in a row after which the reading ends.
const TRIES_MAX: u32 = 6;
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A server that gives no new row for this long is not waited for any more.
const NEWS_WAIT_MAX: Duration = Duration::from_secs(1800);
/// The type of error after which a cursor leads nowhere.
const CHANGED: &str = "/errors/history_changed";

/// What to ask which server for.
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

impl Page {
    /// Nothing of it is taken: the reading stays where it is.
    fn without_rows(self, reading: &Reading) -> Self {
        Self { trades: Vec::new(), cursor: reading.cursor.clone(), ..self }
    }
}

/// How one try at a page went, where it did not succeed.
enum Miss {
    /// Worth another try, after at least this long.
    Passing(String, Duration),
    /// No connection, which is worth another try once the server has answered before.
    Unreachable(String),
    /// The server said no.
    Final(String),
    /// The cursor is of a history that is no longer so.
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
        let (client, chain) = (Client::new(key.to_owned())?, chain.to_owned());
        Ok(Self { base, client, chain, address, limit })
    }

    /// What is asked of the wallet.
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

/// Writes the pages of a history until the server gives one without a cursor, or the limit is
/// reached.
pub(super) async fn read(
    asked: &ClientRequest,
    writer: &mut dyn RowSink,
    progress: &ProgressLine,
    resume: Option<String>,
) -> Result<Outcome, CliError> {
    let mut reading = Reading {
        cursor: resume,
        oldest: None,
        trade_count: 0,
        has_answered: false,
        news_at: Instant::now(),
    };
    let (stop, expected) = (signals::stop()?, expect(asked, progress));
    tokio::pin!(stop, expected);
    let outcome = loop {
        let left = asked.limit.map_or(PAGE_ROWS, |limit| limit.saturating_sub(writer.written()));
        let url = asked.page_url(left.clamp(1, PAGE_ROWS), reading.cursor.as_deref());
        let page = tokio::select! {
            page = page(asked, &url, reading.has_answered) => page,
            never = &mut expected => match never {},
            () = &mut stop => Err(Miss::Passing("stopped".to_owned(), Duration::ZERO)),
        };
        let page = match page {
            Ok(page) => page,
            Err(Miss::Final(reason)) if writer.written() == 0 => {
                return Err(CliError::plain(reason));
            }
            Err(Miss::Unreachable(reason)) if !reading.has_answered => {
                return Err(CliError::plain(reason));
            }
            Err(Miss::Final(reason) | Miss::Passing(reason, _) | Miss::Unreachable(reason)) => {
                break reading.short(CliError::Incomplete(reason));
            }
            Err(Miss::Changed) => break reading.short(CliError::Changed),
        };
        // An earlier call wrote all rows that were wanted; the least that a page has is one.
        let page = if left == 0 { page.without_rows(&reading) } else { page };
        let is_last = page.cursor.is_none();
        let complete = page.complete;
        reading.take(page, writer, progress)?;
        if is_last || asked.limit.is_some_and(|limit| writer.written() >= limit) {
            break Outcome::new(reading.ending(complete), None);
        }
        if reading.news_at.elapsed() > NEWS_WAIT_MAX {
            let reason = "the server loads no further".to_owned();
            break reading.short(CliError::Incomplete(reason));
        }
    };
    Ok(Outcome { coverage: coverage(asked).await, ..outcome })
}

#[derive(Deserialize)]
struct Estimates {
    addresses: Vec<Estimate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Estimate {
    estimated_trade_count: u64,
}

/// Asks for an estimate of the size where progress is shown; never ready. A server may refuse it.
async fn expect(asked: &ClientRequest, progress: &ProgressLine) -> Infallible {
    if progress.is_shown() {
        let body = json!({"addresses": [asked.address.to_string()], "chain": asked.chain});
        let url = format!("{}/v1/billing/estimate", asked.base.expose());
        let body = Some(body.to_string().into());
        let answer = asked.client.send(&url, body, ESTIMATE_WAIT_MAX, ESTIMATE_BYTES_MAX).await;
        let read = answer.ok().and_then(|answer| serde_json::from_slice(&answer.body).ok());
        if let Some(Estimates { addresses }) = read {
            for one in &addresses {
                progress.expect(one.estimated_trade_count);
            }
        }
    }
    std::future::pending().await
}

/// Servers of an earlier version have none.
async fn coverage(asked: &ClientRequest) -> Option<CoverageNote> {
    let url = asked.url("coverage", "");
    let answer = asked.client.send(&url, None, COVERAGE_WAIT_MAX, PAGE_BYTES_MAX).await.ok()?;
    CoverageNote::read(&answer.body).filter(|_| answer.status == StatusCode::OK)
}

/// What was read so far.
struct Reading {
    cursor: Option<String>,
    oldest: Option<String>,
    trade_count: u64,
    /// The server has given a page.
    has_answered: bool,
    /// When the last row came.
    news_at: Instant,
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
            self.news_at = Instant::now();
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

/// One page, tried again while that can help.
async fn page(asked: &ClientRequest, url: &str, has_answered: bool) -> Result<Page, Miss> {
    let mut pause = PAUSE_MIN;
    let mut tries = 0;
    loop {
        let miss = match page_once(asked, url).await {
            Ok(page) => return Ok(page),
            Err(miss) => miss,
        };
        let wait = match &miss {
            Miss::Passing(_, wait) => *wait,
            Miss::Unreachable(_) if has_answered => Duration::ZERO,
            Miss::Unreachable(_) | Miss::Final(_) | Miss::Changed => return Err(miss),
        };
        if tries == TRIES_MAX {
            return Err(miss);
        }
        tokio::time::sleep(wait.max(pause).min(PAUSE_MAX)).await;
        pause = pause.saturating_mul(2);
        tries += 1;
    }
}

async fn page_once(asked: &ClientRequest, url: &str) -> Result<Page, Miss> {
    let answer = asked.client.send(url, None, PAGE_WAIT_MAX, PAGE_BYTES_MAX).await;
    let answer = answer.map_err(|error| match error {
        GetError::Unreachable(_) => Miss::Unreachable(error.to_string()),
        GetError::Broken(_) => Miss::Passing(error.to_string(), Duration::ZERO),
    })?;
    if answer.status != StatusCode::OK {
        return Err(refusal(&answer));
    }
    // A page that was cut is no JSON.
    serde_json::from_slice(&answer.body).map_err(|error| {
        Miss::Passing(format!("the server's page cannot be read: {error}"), Duration::ZERO)
    })
}

fn kind(answer: &GetAnswer) -> Option<String> {
    serde_json::from_slice::<ErrorBody>(&answer.body).ok()?.kind
}

/// What the server says instead of an answer.
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

/// What an answer other than a page means.
fn refusal(answer: &GetAnswer) -> Miss {
    let (status, reason) = (answer.status, refused(answer));
    if kind(answer).as_deref() == Some(CHANGED) {
        Miss::Changed
    } else if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        Miss::Passing(reason, answer.retry_after.unwrap_or_default())
    } else {
        Miss::Final(reason)
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
    fn a_cursor_that_leads_nowhere_is_no_reason_to_go_on() {
        let miss = |status, code| refusal(&answer(status, code));
        let changed = miss(StatusCode::CONFLICT, "history_changed");
        assert!(matches!(changed, Miss::Changed));
        // Another version of the server may read it.
        assert!(matches!(miss(StatusCode::BAD_REQUEST, "invalid_cursor"), Miss::Final(_)));
        assert!(matches!(miss(StatusCode::SERVICE_UNAVAILABLE, "overloaded"), Miss::Passing(..)));
    }
}
