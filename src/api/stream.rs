//! NDJSON mode: a line for each batch of rows as soon as it is stored, and always a final line.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, stream};
use tokio::time::timeout;
use warp::reply::Response;

use super::App;
use super::dto::LineError;
use super::error::ApiError;
use super::guarded::Guarded;
use super::reply;
use super::request::ApiRequest;
use super::stream_permit::StreamPermit;
use crate::domain::row_json::{ROW_BYTES_TYPICAL, rows_json, string};
use crate::domain::{Numbers, Wallet};
use crate::history::{End, HistoryError, Step};

/// Space for a cursor, the final line and the members other than the rows.
const OVERHEAD_BYTES: usize = 512;

/// The state of a stream. It does not keep the request, since thousands of streams may wait for new
/// rows.
struct Lines {
    app: Arc<App>,
    wallet: Wallet,
    walk: Walking,
    native_decimals: u8,
    numbers: Numbers,
    /// The step that was taken before the stream was opened. Boxed, because it is soon written.
    first: Option<Box<Step>>,
    ended: bool,
    /// For the log of errors; the client has it in a header.
    request_id: Box<str>,
    _permit: StreamPermit,
}

/// A walk, or its pending step. A step that takes longer than the heartbeat continues behind the
/// blank line; if it were restarted, it would never reach its own time limit.
enum Walking {
    Between(Box<Guarded>),
    Stepping(BoxFuture<'static, (Box<Guarded>, Step)>),
    Gone,
}

async fn stepped(mut walk: Box<Guarded>) -> (Box<Guarded>, Step) {
    let step = walk.next().await;
    (walk, step)
}

/// Opens the stream. Responds with an error status if the quota is used up and the first rows would
/// need it, or if the nodes report soon enough that the address is no wallet.
pub(super) async fn answer(
    app: &Arc<App>,
    request: ApiRequest,
    mut walk: Guarded,
    permit: StreamPermit,
    quota_used_up: bool,
) -> Result<Response, ApiError> {
    let patience = if quota_used_up { app.limits.heartbeat } else { app.limits.stream_first_wait };
    let first = timeout(patience, walk.next()).await.ok();
    if let Some(Step::End(End { error: Some(error), .. })) = &first
        && matches!(error, HistoryError::QuotaExceeded | HistoryError::NotAWallet { .. })
    {
        return Err(ApiError::History(error.clone()));
    }
    let as_of = walk.as_of().await;
    let ApiRequest { wallet, native_decimals, numbers, coding, request_id, .. } = request;
    let (packing, app) = (app.packing.clone(), Arc::clone(app));
    let lines = Lines {
        app,
        wallet,
        walk: Walking::Between(Box::new(walk)),
        native_decimals,
        numbers,
        first: first.map(Box::new),
        ended: false,
        request_id,
        _permit: permit,
    };
    let frames = stream::unfold(lines, |mut lines| async move {
        let frame = lines.next_frame().await?;
        Some((Ok::<_, Infallible>(frame), lines))
    });
    let mut response = reply::streamed(reply::NDJSON, frames, coding, &packing);
    reply::put_as_of(response.headers_mut(), as_of);
    Ok(response)
}

/// Logs an error that ends a stream. Errors of a shutdown, which end thousands of streams, and
/// those of a wallet's state, which end each of its streams, are no warnings.
fn note(request_id: &str, error: &ApiError) {
    let (route, kind) = ("history", error.kind());
    let code = kind.code;
    let is_known = matches!(
        error,
        ApiError::History(
            HistoryError::ShuttingDown
                | HistoryError::HistoryCut { .. }
                | HistoryError::Unproved { .. }
        )
    );
    if kind.status.is_server_error() && !is_known {
        tracing::warn!(request_id, route, code, %error, "a stream ended with an error");
    } else {
        tracing::debug!(request_id, route, code, "a stream ended with an error");
    }
}

impl Lines {
    /// The lines that are ready, a blank line after a heartbeat without any, or the end.
    async fn next_frame(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let Some((mut walk, step)) = self.step().await else {
            return (!self.ended).then(|| Bytes::from_static(b"\n"));
        };
        let mut frame = Vec::new();
        self.write(&mut frame, &walk, &step);
        let is_prompt = walk.is_prompt();
        while is_prompt && !self.ended && frame.len() < self.app.limits.frame_bytes {
            match walk.next().now_or_never() {
                Some(step) => self.write(&mut frame, &walk, &step),
                None => break,
            }
        }
        self.walk = Walking::Between(walk);
        Some(frame.into())
    }

    /// The walk and its next step; `None` if that takes longer than the heartbeat.
    async fn step(&mut self) -> Option<(Box<Guarded>, Step)> {
        let mut stepping = match std::mem::replace(&mut self.walk, Walking::Gone) {
            Walking::Between(walk) => match self.first.take() {
                Some(step) => return Some((walk, *step)),
                None => stepped(walk).boxed(),
            },
            Walking::Stepping(stepping) => stepping,
            Walking::Gone => {
                self.ended = true;
                return None;
            }
        };
        let stepped = timeout(self.app.limits.heartbeat, &mut stepping).await.ok();
        if stepped.is_none() {
            self.walk = Walking::Stepping(stepping);
        }
        stepped
    }

    fn write(&mut self, out: &mut Vec<u8>, walk: &Guarded, step: &Step) {
        match step {
            Step::Rows(rows) => {
                out.reserve(rows.len() * ROW_BYTES_TYPICAL + OVERHEAD_BYTES);
                out.extend_from_slice(b"{\"trades\":[");
                rows_json(rows, self.native_decimals, self.numbers, out);
                out.extend_from_slice(b"],\"cursor\":");
                string(out, &self.cursor(walk));
                if walk.is_live() {
                    out.extend_from_slice(b",\"live\":true");
                }
                out.extend_from_slice(b"}\n");
                let written = u64::try_from(rows.len()).unwrap_or(u64::MAX);
                self.app.metrics.trades_written.inc_by(written);
            }
            Step::End(end) => {
                self.write_final(out, walk, end);
                self.ended = true;
            }
        }
        self.app.metrics.stream_lines.inc();
    }

    fn write_final(&self, out: &mut Vec<u8>, walk: &Guarded, end: &End) {
        let is_whole = end.complete && !end.more;
        if is_whole {
            out.extend_from_slice(b"{\"complete\":true");
        } else {
            out.extend_from_slice(b"{\"complete\":false,\"cursor\":");
            string(out, &self.cursor(walk));
        }
        out.extend_from_slice(
            format!(",\"tradeCount\":{},\"wallet\":", end.trade_count).as_bytes(),
        );
        string(out, &self.wallet.address.to_string());
        if is_whole {
            let first = end.first_trade.map_or("null".to_owned(), |time| format!("\"{time}\""));
            out.extend_from_slice(format!(",\"firstTrade\":{first}").as_bytes());
        } else if let Some(error) = &end.error {
            let history_cut = error.history_cut();
            let error = ApiError::History(error.clone());
            note(&self.request_id, &error);
            let (kind, retryable) = (error.kind(), error.is_retryable());
            let message = &self.app.message(&error);
            let (code, r#type) = (&kind.group(), kind.uri());
            let line = LineError { code, message, r#type, retryable, history_cut };
            out.extend_from_slice(b",\"error\":");
            out.extend_from_slice(&serde_json::to_vec(&line).unwrap_or_default());
        }
        out.extend_from_slice(b"}\n");
    }

    fn cursor(&self, walk: &Guarded) -> String {
        walk.cursor().encode(&self.wallet)
    }
}
