//! `blotter explain`: why a transaction is a trade of a wallet, or why it is none.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use super::args::ExplainArgs;
use super::client::{Asked, refused};
use super::errors::CliError;
use super::http_get::get;
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
    let chain = context.chain(&args.chain)?.clone();
    let address = parse_address(&chain, &args.wallet)?;
    let tx = TxId::parse(chain.family, &args.signature).ok_or_else(|| {
        CliError::Usage(format!("{} is no transaction of {}", args.signature, chain.slug))
    })?;
    let wallet = Wallet { chain: chain.id, address };
    let url = args.url.as_deref().or_else(|| context.environment.get("BLOTTER_URL"));
    let key = args.key.as_deref().or_else(|| context.environment.get("BLOTTER_KEY"));
    let asked = url.map(|url| Asked::new(url, key, &chain.slug, address, None)).transpose()?;
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
    let engine = context.engine()?;
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

async fn by_server(asked: &Asked, tx: TxId) -> Result<String, CliError> {
    let answer = get(&asked.explain_url(tx), asked.key(), WAIT_MAX, BODY_BYTES_MAX).await;
    let answer = answer.map_err(|error| CliError::failed("the server cannot be asked", error))?;
    if answer.status != StatusCode::OK {
        return Err(CliError::plain(refused(&answer)));
    }
    String::from_utf8(answer.body.to_vec())
        .map_err(|error| CliError::failed("the server's answer is no text", error))
}

fn number(number: &Number) -> String {
    number.as_ref().map_or_else(|| "?".to_owned(), |number| printable(number.get()))
}

fn shown(text: &str) -> Result<String, CliError> {
    let body: Body = serde_json::from_str(text)
        .map_err(|error| CliError::failed("the explanation cannot be read", error))?;
    let mut text = format!("{}\n{}\n", printable(&body.verdict), printable(&body.block_time));
    let mut section = |name: &str, columns: &[(&str, Align)], rows: &[Vec<String>]| {
        if !rows.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{name}\n{}", table::format(columns, rows));
        }
    };
    let (left, right) = (Align::Left, Align::Right);
    let rows: Vec<_> = body
        .trades
        .iter()
        .map(|trade| {
            vec![
                printable(&trade.side),
                number(&trade.amount),
                printable(&trade.token),
                number(&trade.amount_sol),
                printable(&trade.dex),
                printable(&trade.value_from),
            ]
        })
        .collect();
    let value = format!("VALUE {}", body.native);
    let columns = [
        ("SIDE", left),
        ("AMOUNT", right),
        ("TOKEN", left),
        (value.as_str(), right),
        ("DEX", left),
        ("VALUE FROM", left),
    ];
    section("Rows", &columns, &rows);
    let rows: Vec<_> = body
        .movements
        .iter()
        .map(|movement| {
            let became = match movement.became.as_slice() {
                [] => "left out".to_owned(),
                became => {
                    became.iter().map(|field| printable(field)).collect::<Vec<_>>().join(", ")
                }
            };
            vec![printable(&movement.asset), number(&movement.came), number(&movement.went), became]
        })
        .collect();
    let columns = [("ASSET", left), ("CAME", right), ("WENT", right), ("BECAME", left)];
    section("Movements of the wallet", &columns, &rows);
    let rows: Vec<_> = body
        .venues
        .iter()
        .map(|venue| {
            let address = venue.address.as_deref().unwrap_or("-");
            vec![printable(&venue.name), printable(&venue.part), printable(address)]
        })
        .collect();
    section("Venues", &[("NAME", left), ("PART", left), ("ADDRESS", left)], &rows);
    let rows: Vec<_> = body
        .left_out
        .iter()
        .map(|left| {
            vec![
                printable(&left.what),
                printable(&left.direction),
                number(&left.amount),
                printable(&left.asset),
                printable(&left.why),
            ]
        })
        .collect();
    let columns = [("WHAT", left), ("", left), ("AMOUNT", right), ("ASSET", left), ("WHY", left)];
    section("Left out", &columns, &rows);
    let rows: Vec<_> = body.notes.iter().map(|note| vec![printable(&note.detail)]).collect();
    section("Notes", &[("", left)], &rows);
    if !body.native_movements_known {
        text.push_str(
            "\nNo node tells the inner calls: movements of native coin may be missing.\n",
        );
    }
    Ok(text)
}
