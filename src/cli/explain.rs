//! `blotter explain`: why a transaction is a trade of a wallet, or why it is none.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use super::args::ExplainArgs;
use super::client::{ClientRequest, refused};
use super::errors::CliError;
use super::output::printable;
use super::reading::{Context, parse_address};
use super::table::{self, Align};
use crate::api::explanation_json;
use crate::domain::{TxId, Wallet};
use crate::registry::Chain;

const WAIT_MAX: Duration = Duration::from_secs(90);
const BODY_BYTES_MAX: usize = 8 << 20;

type Number = Option<Box<RawValue>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    block_time: String,
    verdict: String,
    native: String,
    trades: Vec<Trade>,
    movements: Vec<Movement>,
    native_movements_known: bool,
    venues: Vec<Venue>,
    left_out: Vec<LeftOut>,
    notes: Vec<Note>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trade {
    side: String,
    token: String,
    amount_sol: Number,
    amount: Number,
    dex: String,
    value_from: String,
}

#[derive(Deserialize)]
struct Movement {
    asset: String,
    came: Number,
    went: Number,
    became: Vec<String>,
}

#[derive(Deserialize)]
struct Venue {
    name: String,
    part: String,
    address: Option<String>,
}

#[derive(Deserialize)]
struct LeftOut {
    what: String,
    asset: String,
    amount: Number,
    direction: String,
    why: String,
}

#[derive(Deserialize)]
struct Note {
    detail: String,
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
        CliError::Usage(format!("{} is no transaction of {}", args.signature, chain.slug))
    })?;
    let wallet = Wallet { chain: chain.id, address };
    let asked = context.asked(&args.source, &chain, address, None)?;
    let text = runtime.block_on(async {
        match &asked {
            Some(asked) => by_server(asked, tx).await,
            None => here(context, &chain, wallet, tx).await,
        }
    })?;
    let text = if args.json { text + "\n" } else { shown(&text)? };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}

async fn here(
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
            "no node of {} has this transaction among what is final",
            chain.slug
        ))
    })?;
    explanation_json(&explained, &wallet, chain)
        .map_err(|error| CliError::failed("the explanation cannot be written", error))
}

async fn by_server(asked: &ClientRequest, tx: TxId) -> Result<String, CliError> {
    let url = asked.url(&format!("explain/{tx}"), "");
    let answer = asked.client().send(&url, None, WAIT_MAX, BODY_BYTES_MAX).await;
    let answer = answer.map_err(|error| CliError::failed("the server cannot be asked", error))?;
    if answer.status != StatusCode::OK {
        return Err(CliError::plain(refused(&answer)));
    }
    String::from_utf8(answer.body.to_vec())
        .map_err(|error| CliError::failed("the server's answer is no text", error))
}

fn number(number: Option<&RawValue>) -> String {
    number.map_or_else(|| "?".to_owned(), |number| printable(number.get()))
}

/// A heading, and columns below it; nothing where there is no row.
fn section(text: &mut String, name: &str, columns: &[(&str, Align)], rows: &[Vec<String>]) {
    if !rows.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{name}\n{}", table::format(columns, rows));
    }
}

fn shown(text: &str) -> Result<String, CliError> {
    let body: Body = serde_json::from_str(text)
        .map_err(|error| CliError::failed("the explanation cannot be read", error))?;
    let mut text = format!("{}\n{}\n", printable(&body.verdict), printable(&body.block_time));
    let (left, right) = (Align::Left, Align::Right);
    let value = format!("VALUE {}", body.native);
    let columns = [
        ("SIDE", left),
        ("AMOUNT", right),
        ("TOKEN", left),
        (value.as_str(), right),
        ("DEX", left),
        ("VALUE FROM", left),
    ];
    section(&mut text, "Rows", &columns, &cells(&body.trades));
    let columns = [("ASSET", left), ("CAME", right), ("WENT", right), ("BECAME", left)];
    section(&mut text, "Movements of the wallet", &columns, &cells(&body.movements));
    let columns = [("NAME", left), ("PART", left), ("ADDRESS", left)];
    section(&mut text, "Venues", &columns, &cells(&body.venues));
    let columns = [("WHAT", left), ("", left), ("AMOUNT", right), ("ASSET", left), ("WHY", left)];
    section(&mut text, "Left out", &columns, &cells(&body.left_out));
    section(&mut text, "Notes", &[("", left)], &cells(&body.notes));
    if !body.native_movements_known {
        let missing = "No node returns the inner calls: movements of native coin may be missing.";
        let _ = writeln!(text, "\n{missing}");
    }
    Ok(text)
}

/// One line of a table.
trait Cells {
    fn cells(&self) -> Vec<String>;
}

fn cells(rows: &[impl Cells]) -> Vec<Vec<String>> {
    rows.iter().map(Cells::cells).collect()
}

impl Cells for Trade {
    fn cells(&self) -> Vec<String> {
        vec![
            printable(&self.side),
            number(self.amount.as_deref()),
            printable(&self.token),
            number(self.amount_sol.as_deref()),
            printable(&self.dex),
            printable(&self.value_from),
        ]
    }
}

impl Cells for Movement {
    fn cells(&self) -> Vec<String> {
        let became: Vec<String> = self.became.iter().map(|field| printable(field)).collect();
        let became = if became.is_empty() { "left out".to_owned() } else { became.join(", ") };
        let (came, went) = (number(self.came.as_deref()), number(self.went.as_deref()));
        vec![printable(&self.asset), came, went, became]
    }
}

impl Cells for Venue {
    fn cells(&self) -> Vec<String> {
        let address = self.address.as_deref().unwrap_or("-");
        vec![printable(&self.name), printable(&self.part), printable(address)]
    }
}

impl Cells for LeftOut {
    fn cells(&self) -> Vec<String> {
        vec![
            printable(&self.what),
            printable(&self.direction),
            number(self.amount.as_deref()),
            printable(&self.asset),
            printable(&self.why),
        ]
    }
}

impl Cells for Note {
    fn cells(&self) -> Vec<String> {
        vec![printable(&self.detail)]
    }
}
