//! `blotter explain`: why a transaction is a trade of a wallet, or why it is none.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use super::args::ExplainArgs;
use super::client::{ClientRequest, refused};
use super::errors::CliError;
use super::reading::{Context, parse_address};
use super::table::{self, printable};
use crate::api::explanation_json;
use crate::domain::{TxId, Wallet};
use crate::registry::Chain;

const WAIT_MAX: Duration = Duration::from_secs(90);
const BODY_BYTES_MAX: usize = 8 << 20;

/// A row of a section: values by member name.
type Row = HashMap<String, Box<RawValue>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    block_time: String,
    verdict: String,
    native: String,
    trades: Vec<Row>,
    movements: Vec<Row>,
    native_movements_known: bool,
    venues: Vec<Row>,
    left_out: Vec<Row>,
    notes: Vec<Row>,
}

pub(super) fn run(
    args: &ExplainArgs,
    context: &Context<'_>,
    runtime: &Runtime,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let chain = context.chain(&args.source.chain)?.clone();
    let address = parse_address(&chain, &args.wallet)?;
    let tx = TxId::parse(chain.family, &args.signature).ok_or_else(|| {
        let rule = "base58 of 64 bytes, or hex of 32 bytes (on EVM chains behind 0x)";
        let (signature, slug) = (&args.signature, &chain.slug);
        CliError::Usage(format!("{signature:?} is no transaction of {slug}: {rule}"))
    })?;
    let wallet = Wallet { chain: chain.id, address };
    let server = context.server_request(&args.source, &chain, address, None)?;
    let text = runtime.block_on(async {
        match &server {
            Some(server) => explain_by_server(server, tx).await,
            None => Box::pin(explain_locally(context, &chain, wallet, tx)).await,
        }
    })?;
    let text = if args.json { text + "\n" } else { render(&text)? };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}

async fn explain_locally(
    context: &Context<'_>,
    chain: &Chain,
    wallet: Wallet,
    tx: TxId,
) -> Result<String, CliError> {
    let engine = context.engine().await?;
    let explained = engine.history.explain(wallet, tx).await;
    engine.close().await?;
    let explained =
        explained.map_err(|error| CliError::failed("the transaction cannot be read", error))?;
    let explained = explained.ok_or_else(|| {
        CliError::plain(format!(
            "no node of {} knows this transaction: it is not final yet, or of another chain: name \
             that with --chain",
            chain.slug
        ))
    })?;
    explanation_json(&explained, &wallet, chain)
        .map_err(|error| CliError::failed("the explanation cannot be written", error))
}

async fn explain_by_server(server: &ClientRequest, tx: TxId) -> Result<String, CliError> {
    let url = server.url(&format!("explain/{tx}"), "");
    let answer = server.client.send(&url, None, WAIT_MAX, BODY_BYTES_MAX).await;
    let answer = answer.map_err(|error| CliError::failed("the server cannot be asked", error))?;
    if answer.status != StatusCode::OK {
        return Err(CliError::plain(refused(&answer)));
    }
    String::from_utf8(answer.body.to_vec())
        .map_err(|error| CliError::failed("the server's answer is no text", error))
}

/// A member as text, numbers with all digits; `none` replaces null.
fn cell(row: &Row, member: &str, none: &str) -> String {
    let raw = row.get(member).map_or("null", |raw| raw.get());
    match serde_json::from_str(raw) {
        Ok(Value::String(text)) => printable(&text),
        Ok(Value::Array(parts)) if parts.is_empty() => "left out".to_owned(),
        Ok(Value::Array(parts)) => {
            let parts = parts.iter().filter_map(Value::as_str).map(printable);
            parts.collect::<Vec<_>>().join(", ")
        }
        Ok(Value::Null) => none.to_owned(),
        Ok(Value::Bool(_) | Value::Number(_) | Value::Object(_)) | Err(_) => printable(raw),
    }
}

/// Appends a heading and a table with one column for each member; nothing if there are no rows.
fn section(text: &mut String, name: &str, columns: &[(&str, &str)], rows: &[Row], none: &str) {
    if rows.is_empty() {
        return;
    }
    let cells = |row| columns.iter().map(|(_, member)| cell(row, member, none)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    // Writing to a String cannot fail.
    let _ = write!(text, "\n{name}\n{}", table::format(&heads, &rows));
}

fn render(text: &str) -> Result<String, CliError> {
    let body: Body = serde_json::from_str(text)
        .map_err(|error| CliError::failed("the explanation cannot be read", error))?;
    let mut text = format!("{}\n{}\n", printable(&body.verdict), printable(&body.block_time));
    let value = format!(">VALUE {}", body.native);
    let columns = [
        ("SIDE", "side"),
        (">AMOUNT", "amount"),
        ("TOKEN", "token"),
        (&*value, "amountSol"),
        ("DEX", "dex"),
        ("VALUE FROM", "valueFrom"),
    ];
    section(&mut text, "Rows", &columns, &body.trades, "?");
    let columns = [("ASSET", "asset"), (">CAME", "came"), (">WENT", "went"), ("BECAME", "became")];
    section(&mut text, "Movements of the wallet", &columns, &body.movements, "?");
    let columns = [("NAME", "name"), ("PART", "part"), ("ADDRESS", "address")];
    section(&mut text, "Venues", &columns, &body.venues, "-");
    let columns = [
        ("WHAT", "what"),
        ("", "direction"),
        (">AMOUNT", "amount"),
        ("ASSET", "asset"),
        ("WHY", "why"),
    ];
    section(&mut text, "Left out", &columns, &body.left_out, "?");
    section(&mut text, "Notes", &[("", "detail")], &body.notes, "?");
    if !body.native_movements_known {
        let missing = "No node returns the inner calls: movements of native coin may be missing.";
        let _ = writeln!(text, "\n{missing}");
    }
    Ok(text)
}
