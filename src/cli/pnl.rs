//! `blotter pnl`: what a wallet's trades gained, and what is still open.
//!
//! The numbers come from the rows as they are served, by the data folder or by a server, so that
//! both give the same.

use std::collections::HashMap;
use std::io::Write;

use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use super::args::{PnlArgs, PnlFormat, PnlMethod};
use super::errors::CliError;
use super::numbers::Number;
use super::output::{Ending, TradeLine};
use super::pnl_output::{Report, TokenReport};
use super::progress::Progress;
use super::reading::{Context, Reading, RowSink};
use crate::domain::{Side, Units};
use crate::pnl::{Book, Entry, Method, Totals};

pub(super) fn run(
    args: &PnlArgs,
    context: &Context<'_>,
    runtime: &Runtime,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let reading = Reading::new(context, &args.wallet, None)?;
    let mut rows = Rows::new(reading.chain.native.decimals);
    let progress = Progress::start(context.quiet);
    let outcome = runtime.block_on(reading.read(&mut rows, &progress, None));
    drop(progress);
    let outcome = outcome?;
    // Gains on half a history would be wrong, for what was sold had been bought before.
    if let Some(short) = outcome.short {
        return Err(short);
    }
    let method = match args.method {
        PnlMethod::Fifo => Method::Fifo,
        PnlMethod::Average => Method::Average,
    };
    let report = rows.report(&reading, method, &outcome.ending);
    let text = match args.format {
        PnlFormat::Table => report.table(context.colour_on_stdout()),
        PnlFormat::Json => report.json()?,
        PnlFormat::Csv => report.csv(),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}

/// The rows of a wallet, small: a wallet of 200,000 trades takes some 20 MB.
struct Rows {
    native_decimals: u8,
    tokens: Vec<Token>,
    by_mint: HashMap<String, usize>,
    /// Newest first, as they come.
    rows: Vec<Row>,
}

struct Token {
    symbol: String,
    mint: String,
    /// The most digits behind the point of any of its amounts.
    decimals: u8,
}

struct Row {
    token: usize,
    side: Side,
    quantity: Option<Number>,
    native: Option<Units>,
}

impl Rows {
    fn new(native_decimals: u8) -> Self {
        Self { native_decimals, tokens: Vec::new(), by_mint: HashMap::new(), rows: Vec::new() }
    }

    fn token(&mut self, line: &TradeLine) -> usize {
        if let Some(at) = self.by_mint.get(&line.token_mint) {
            return *at;
        }
        let at = self.tokens.len();
        self.by_mint.insert(line.token_mint.clone(), at);
        let (symbol, mint) = (line.token.clone(), line.token_mint.clone());
        self.tokens.push(Token { symbol, mint, decimals: 0 });
        at
    }

    fn take(&mut self, line: &TradeLine) -> Option<()> {
        let number = |number: &Option<Box<RawValue>>| match number {
            Some(number) => Number::parse(number.get()).map(Some),
            None => Some(None),
        };
        let side = match line.side.as_str() {
            "buy" => Side::Buy,
            "sell" => Side::Sell,
            _ => return None,
        };
        let quantity = number(&line.amount)?;
        let native = match number(&line.amount_sol)? {
            Some(value) => Some(value.scaled(self.native_decimals)?),
            None => None,
        };
        let token = self.token(line);
        if let (Some(quantity), Some(token)) = (quantity, self.tokens.get_mut(token)) {
            token.decimals = token.decimals.max(quantity.decimals);
        }
        self.rows.push(Row { token, side, quantity, native });
        Some(())
    }

    fn report(self, reading: &Reading<'_>, method: Method, ending: &Ending) -> Report {
        let mut books: Vec<Book> = self.tokens.iter().map(|_| Book::new(method)).collect();
        for row in self.rows.iter().rev() {
            let (Some(book), Some(token)) = (books.get_mut(row.token), self.tokens.get(row.token))
            else {
                continue;
            };
            let quantity = row.quantity.and_then(|quantity| quantity.scaled(token.decimals));
            book.enter(Entry { side: row.side, quantity, native: row.native });
        }
        let mut totals = Totals::default();
        let tokens = self.tokens.into_iter().zip(books).map(|(token, book)| {
            let Token { symbol, mint, decimals } = token;
            totals.add(book.position());
            TokenReport { symbol, mint, decimals, position: *book.position() }
        });
        let tokens = tokens.collect();
        Report {
            wallet: reading.wallet.address.to_string(),
            chain: reading.chain.slug.clone(),
            native: reading.chain.native.symbol.clone(),
            native_decimals: self.native_decimals,
            method,
            trades: u64::try_from(self.rows.len()).unwrap_or(u64::MAX),
            first_trade: ending.first_trade.clone(),
            totals,
            tokens,
        }
    }
}

impl RowSink for Rows {
    fn rows(&mut self, rows: Vec<TradeLine>, _cursor: &str) -> Result<(), CliError> {
        for line in rows {
            self.take(&line).ok_or_else(|| {
                CliError::plain(format!("the row of {} cannot be read", line.signature))
            })?;
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        u64::try_from(self.rows.len()).unwrap_or(u64::MAX)
    }
}
