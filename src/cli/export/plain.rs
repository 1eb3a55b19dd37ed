//! Table, CSV, NDJSON and JSON, all written as rows arrive.
//!
//! `ndjson` has the shape of the API's stream. `json` has that of a page, with `firstTrade` and
//! without the numbers of pages; its members that are known last come last.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use super::ExportSubject;
use crate::cli::args::Format;
use crate::cli::output::{Encode, Ending, State, TradeLine, csv_text, json, number_text};
use crate::cli::table::printable;

#[derive(Serialize)]
struct BatchLine<'a> {
    trades: &'a [TradeLine],
    /// Behind the rows. A server gives none behind the last ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FinalLine<'a> {
    complete: bool,
    trade_count: u64,
    wallet: &'a str,
    first_trade: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

pub(super) struct Plain {
    format: Format,
    wallet: String,
    /// Symbol of the native coin, for the table's header.
    native: String,
    colour: bool,
    written: u64,
}

impl Plain {
    pub(super) fn new(subject: &ExportSubject, colour: bool) -> Self {
        let (wallet, native) = (subject.wallet.clone(), subject.native.clone());
        Self { format: subject.format, wallet, native, colour, written: 0 }
    }

    fn coloured(&self, row: &TradeLine) -> String {
        let line = table_line([
            &printable(&row.block_time),
            &printable(&row.side),
            &printable(number_text(row.amount.as_deref(), "-")),
            &printable(&row.token),
            &printable(number_text(row.amount_sol.as_deref(), "-")),
            &printable(&row.dex),
            &printable(&row.signature),
        ]);
        match (self.colour, row.side.as_str()) {
            (true, "buy") => format!("\u{1b}[32m{line}\u{1b}[0m"),
            (true, _) => format!("\u{1b}[31m{line}\u{1b}[0m"),
            (false, _) => line,
        }
    }
}

impl Encode for Plain {
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::Table => {
                let value = format!("VALUE {}", self.native);
                let line =
                    table_line(["TIME", "SIDE", "AMOUNT", "TOKEN", &value, "DEX", "SIGNATURE"]);
                writeln!(to, "{line}")
            }
            Format::Csv => {
                writeln!(to, "signature,side,token,tokenMint,amountSol,amount,dex,blockTime")
            }
            Format::Json => {
                write!(to, "{{\"wallet\":{},\"trades\":[", json(&self.wallet)?)
            }
            Format::Ndjson | Format::Parquet | Format::Koinly | Format::Cointracking => Ok(()),
        }
    }

    /// Writes the rows at once.
    fn rows(&mut self, to: &mut dyn Write, rows: Vec<TradeLine>, cursor: &str) -> io::Result<()> {
        if self.format == Format::Ndjson && !rows.is_empty() {
            let cursor = Some(cursor).filter(|cursor| !cursor.is_empty());
            writeln!(to, "{}", json(&BatchLine { trades: &rows, cursor })?)?;
        }
        for row in &rows {
            match self.format {
                Format::Table => {
                    let line = self.coloured(row);
                    writeln!(to, "{line}")?;
                }
                Format::Csv => writeln!(to, "{}", csv_line(row))?,
                Format::Json => {
                    let comma = if self.written == 0 { "" } else { "," };
                    write!(to, "{comma}{}", json(row)?)?;
                }
                Format::Ndjson | Format::Parquet | Format::Koinly | Format::Cointracking => {}
            }
            self.written += 1;
        }
        to.flush()
    }

    fn end(&mut self, to: &mut dyn Write, ending: &Ending) -> io::Result<()> {
        let first_trade = ending.first_trade.as_deref();
        if self.format == Format::Json {
            let mut tail = format!(
                "],\"complete\":{},\"tradeCount\":{},\"firstTrade\":{}",
                ending.complete,
                ending.trade_count,
                json(&first_trade)?
            );
            if let Some(cursor) = &ending.cursor {
                let _ = write!(tail, ",\"cursor\":{}", json(cursor)?);
            }
            writeln!(to, "{tail}}}")?;
        } else if self.format == Format::Ndjson {
            let line = FinalLine {
                complete: ending.is_whole(),
                trade_count: ending.trade_count,
                wallet: &self.wallet,
                first_trade,
                cursor: ending.cursor.as_deref(),
            };
            writeln!(to, "{}", json(&line)?)?;
        }
        to.flush()
    }

    fn restore(&mut self, _state: State, rows: u64) {
        self.written = rows;
    }
}

/// Fixed widths, so that a row can be written before the next one is known. A longer cell shifts
/// the rest of its line.
fn table_line([time, side, amount, token, value, dex, signature]: [&str; 7]) -> String {
    format!("{time:<25}  {side:<4}  {amount:>24}  {token:<12}  {value:>18}  {dex:<18}  {signature}")
}

fn csv_line(row: &TradeLine) -> String {
    [
        csv_text(&row.signature),
        csv_text(&row.side),
        csv_text(&row.token),
        csv_text(&row.token_mint),
        number_text(row.amount_sol.as_deref(), "").to_owned(),
        number_text(row.amount.as_deref(), "").to_owned(),
        csv_text(&row.dex),
        csv_text(&row.block_time),
    ]
    .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::export::samples::{sample_row, sample_subject};

    fn trade(token: &str, amount: Option<&str>) -> TradeLine {
        TradeLine {
            signature: "5x".to_owned(),
            token_mint: "Mint".to_owned(),
            dex: "Raydium, \"v4\"".to_owned(),
            ..sample_row(token, None, amount)
        }
    }

    #[track_caller]
    fn check(format: Format, expected: &str) {
        let mut text = Vec::new();
        let mut writer = Plain::new(&sample_subject(format), false);
        writer.begin(&mut text).unwrap();
        let rows = vec![trade("BONK", Some("0.000000000000000001")), trade("=1+1", None)];
        writer.rows(&mut text, rows, "c1").unwrap();
        let ending = Ending {
            complete: false,
            trade_count: 2,
            first_trade: None,
            cursor: Some("c1".to_owned()),
        };
        writer.end(&mut text, &ending).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    const FIRST: &str = r#"{"signature":"5x","side":"buy","token":"BONK","tokenMint":"Mint","amountSol":null,"amount":0.000000000000000001,"dex":"Raydium, \"v4\"","blockTime":"2026-11-21T07:05:51+00:00"}"#;
    const SECOND: &str = r#"{"signature":"5x","side":"buy","token":"=1+1","tokenMint":"Mint","amountSol":null,"amount":null,"dex":"Raydium, \"v4\"","blockTime":"2026-11-21T07:05:51+00:00"}"#;

    #[test]
    fn ndjson_has_the_shapes_of_the_stream() {
        let last =
            r#"{"complete":false,"tradeCount":2,"wallet":"W","firstTrade":null,"cursor":"c1"}"#;
        check(
            Format::Ndjson,
            &format!("{{\"trades\":[{FIRST},{SECOND}],\"cursor\":\"c1\"}}\n{last}\n"),
        );
    }

    /// Another one would give these rows again.
    #[test]
    fn a_line_of_last_rows_has_no_cursor() {
        let mut text = Vec::new();
        let mut writer = Plain::new(&sample_subject(Format::Ndjson), false);
        writer.rows(&mut text, vec![trade("BONK", Some("0.000000000000000001"))], "").unwrap();
        let expected = format!("{{\"trades\":[{FIRST}]}}\n");
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn json_is_one_object() {
        let tail = r#""complete":false,"tradeCount":2,"firstTrade":null,"cursor":"c1"}"#;
        check(Format::Json, &format!("{{\"wallet\":\"W\",\"trades\":[{FIRST},{SECOND}],{tail}\n"));
    }

    #[test]
    fn csv_is_quoted_and_holds_no_formula() {
        let head = "signature,side,token,tokenMint,amountSol,amount,dex,blockTime";
        let rest = "\"Raydium, \"\"v4\"\"\",2026-11-21T07:05:51+00:00";
        check(
            Format::Csv,
            &format!(
                "{head}\n5x,buy,BONK,Mint,,0.000000000000000001,{rest}\n5x,buy,'=1+1,Mint,,,{rest}\n"
            ),
        );
    }

    #[test]
    fn a_table_shows_no_control_characters() {
        assert_eq!(printable("A\u{1b}[2JB\n"), "A\u{fffd}[2JB\u{fffd}");
    }
}
