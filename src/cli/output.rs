//! What all outputs share: a trade in the API's shape, what receives a history's rows, the encoder
//! trait and its state.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::coverage_note::CoverageNote;
use super::errors::CliError;
use crate::domain::row_json::short;
use crate::domain::{Decimal, RowRef, Token};

/// A trade in the API's shape. Numbers stay text, so that they keep all digits.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TradeLine {
    pub(super) signature: String,
    pub(super) side: String,
    pub(super) token: String,
    pub(super) token_mint: String,
    pub(super) amount_sol: Option<Box<RawValue>>,
    pub(super) amount: Option<Box<RawValue>>,
    pub(super) dex: String,
    pub(super) block_time: String,
}

#[derive(Debug)]
pub(super) struct Ending {
    /// All trades on the chain are known; rows may still remain behind the cursor.
    pub(super) complete: bool,
    pub(super) trade_count: u64,
    pub(super) first_trade: Option<String>,
    /// The cursor to resume from, if rows remain.
    pub(super) cursor: Option<String>,
}

impl Ending {
    /// No trade is missing below the last row.
    pub(super) fn is_whole(&self) -> bool {
        self.complete && self.cursor.is_none()
    }
}

/// Receives a history's rows, newest first.
pub(super) trait RowSink {
    /// `cursor` is the position behind the last of these rows.
    fn rows(&mut self, rows: Vec<TradeLine>, cursor: &str) -> Result<(), CliError>;

    /// The last rows of a history, which have no cursor behind them.
    fn last_rows(&mut self, rows: Vec<TradeLine>) -> Result<(), CliError> {
        self.rows(rows, "")
    }

    /// Rows received so far, including those of an earlier call that this one resumes.
    fn written(&self) -> u64;
}

pub(super) struct Outcome {
    pub(super) ending: Ending,
    /// Why rows are missing, if any are.
    pub(super) short: Option<CliError>,
    /// Rows of this call whose value is still pending; 0 if a server was read, which does not
    /// report it.
    pub(super) values_pending: u64,
    /// Which heights are read and proved, if known.
    pub(super) coverage: Option<CoverageNote>,
}

impl Outcome {
    pub(super) fn new(ending: Ending, short: Option<CliError>) -> Self {
        Self { ending, short, values_pending: 0, coverage: None }
    }

    /// Notes about the history for the user, one line each.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        self.coverage.iter().flat_map(CoverageNote::lines).chain(self.values_note())
    }

    /// A note about rows whose value is still pending.
    pub(super) fn values_note(&self) -> Option<String> {
        let count = self.values_pending;
        let trades = if count == 1 { "trade is" } else { "trades are" };
        (count > 0).then(|| {
            format!(
                "values: those of {count} {trades} not known yet; the same call asks for them again"
            )
        })
    }
}

impl TradeLine {
    pub(super) fn of_row(row: RowRef<'_>, native_decimals: u8) -> Self {
        let RowRef { bare, token, venue } = row;
        let native = bare.native.map(|units| Decimal { units, decimals: native_decimals });
        Self {
            signature: bare.key.tx.to_string(),
            side: bare.side.name().to_owned(),
            token: symbol_shown(token),
            token_mint: token.mint.to_string(),
            amount_sol: native.and_then(number),
            amount: row.amount().and_then(number),
            dex: venue.to_string(),
            block_time: bare.key.time.to_string(),
        }
    }
}

/// The symbol, or without one the first and last four characters of the address.
pub(super) fn symbol_shown(token: &Token) -> String {
    token.symbol.as_deref().map_or_else(|| short(&token.mint.to_string()), str::to_owned)
}

/// A number as it was written, or `none` if it is unknown.
pub(super) fn number_text<'a>(number: Option<&'a RawValue>, none: &'a str) -> &'a str {
    number.map_or(none, RawValue::get)
}

/// A decimal's text is always a JSON number.
fn number(decimal: Decimal) -> Option<Box<RawValue>> {
    RawValue::from_string(decimal.to_string()).ok()
}

pub(super) trait Encode {
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()>;

    /// `cursor` is the position behind the last of these rows; empty if there is none.
    fn rows(&mut self, to: &mut dyn Write, rows: Vec<TradeLine>, cursor: &str) -> io::Result<()>;

    fn end(&mut self, to: &mut dyn Write, ending: &Ending) -> io::Result<()>;

    /// Writes buffered rows, if the format can write them before the end.
    fn pause(&mut self, _to: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// The state from which a later call can continue the output; `None` while rows are buffered
    /// that the state cannot hold.
    fn state(&self) -> Option<State> {
        Some(State::default())
    }

    fn restore(&mut self, state: State, rows: u64);
}

/// The state of an encoder that a later call resumes from.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct State {
    /// Buffered rows, which depend on the rows behind them.
    pub(super) held: Vec<TradeLine>,
    /// The row groups that a Parquet file's footer lists.
    pub(super) groups: Vec<RowGroup>,
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::other)
}

/// A CSV cell, quoted where needed (RFC 4180). Text that a spreadsheet would evaluate as a formula
/// gets a leading apostrophe, since a token's creator chooses its symbol.
pub(super) fn csv_text(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// The position of a row group's columns in a Parquet file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RowGroup {
    pub(super) rows: u64,
    pub(super) columns: Vec<ColumnChunk>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ColumnChunk {
    pub(super) offset: u64,
    /// Including the page header.
    pub(super) plain_bytes: u64,
    pub(super) bytes: u64,
}
