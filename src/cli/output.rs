//! What the forms of output have in common: a trade in the API's shape, an encoder, its state.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::domain::row_json::short;
use crate::domain::{Decimal, RowRef, Side, Token};

/// A trade in the API's shape. Numbers stay text, so that no digit is lost.
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

/// How a history ended.
#[derive(Debug)]
pub(super) struct Ending {
    /// All that the chain has is known; rows may still remain behind the cursor.
    pub(super) complete: bool,
    pub(super) trade_count: u64,
    pub(super) first_trade: Option<String>,
    /// Where to go on; only where rows remain.
    pub(super) cursor: Option<String>,
}

impl Ending {
    /// No trade is missing below the last row.
    pub(super) fn is_whole(&self) -> bool {
        self.complete && self.cursor.is_none()
    }
}

impl TradeLine {
    /// `native_decimals` are those of the chain's coin.
    pub(super) fn of_row(row: RowRef<'_>, native_decimals: u8) -> Self {
        let RowRef { bare, token, venue } = row;
        let native = bare.native.map(|units| Decimal { units, decimals: native_decimals });
        Self {
            signature: bare.key.tx.to_string(),
            side: match bare.side {
                Side::Buy => "buy".to_owned(),
                Side::Sell => "sell".to_owned(),
            },
            token: symbol_shown(token),
            token_mint: token.mint.to_string(),
            amount_sol: native.and_then(number),
            amount: row.amount().and_then(number),
            dex: venue.to_string(),
            block_time: bare.key.time.to_string(),
        }
    }
}

/// The symbol; without one, the first and last four characters of the address.
pub(super) fn symbol_shown(token: &Token) -> String {
    token.symbol.as_deref().map_or_else(|| short(&token.mint.to_string()), str::to_owned)
}

/// A number as it was written; `none` stands for one that is not known.
pub(super) fn number_text<'a>(number: Option<&'a RawValue>, none: &'a str) -> &'a str {
    number.map_or(none, RawValue::get)
}

/// A decimal's text is always a JSON number.
fn number(decimal: Decimal) -> Option<Box<RawValue>> {
    RawValue::from_string(decimal.to_string()).ok()
}

/// Writes one history in one form.
pub(super) trait Encode {
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()>;

    /// Writes rows; `cursor` stands behind the last of them, and is empty where none does.
    fn rows(&mut self, to: &mut dyn Write, rows: Vec<TradeLine>, cursor: &str) -> io::Result<()>;

    fn end(&mut self, to: &mut dyn Write, ending: &Ending) -> io::Result<()>;

    /// Writes what is held back and can be written before the end.
    fn pause(&mut self, _to: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// What a later call needs to go on behind what is written; `None` at a moment at which it
    /// could not.
    fn state(&self) -> Option<State> {
        Some(State::default())
    }

    fn restore(&mut self, state: State, rows: u64);
}

/// What an encoder keeps from one call to the next.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct State {
    /// Rows that wait for those behind them.
    pub(super) held: Vec<TradeLine>,
    /// What the end of a Parquet file has to list.
    pub(super) groups: Vec<RowGroup>,
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::other)
}

/// Symbols are anybody's text: nothing in them may steer the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// A cell, quoted where needed (RFC 4180). Symbols are anybody's text: one that a spreadsheet would
/// take for a formula is led by an apostrophe.
pub(super) fn csv_text(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// Where a group's columns are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RowGroup {
    pub(super) rows: u64,
    pub(super) columns: Vec<ColumnChunk>,
}

/// One column of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ColumnChunk {
    pub(super) offset: u64,
    /// With the page's head.
    pub(super) plain_bytes: u64,
    pub(super) bytes: u64,
}
