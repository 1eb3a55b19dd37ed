//! The output forms of `blotter pnl`.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::RawValue;

use super::errors::CliError;
use super::output::{csv_text, printable};
use super::table::{self, Align};
use crate::domain::{Decimal, Units};
use crate::pnl::{Method, Position, Signed, Totals};

/// Digits of a win rate.
const RATE_DECIMALS: u8 = 4;
/// Tokens that the table's last lines name.
const NAMED_MAX: usize = 20;

pub(super) struct Report {
    pub(super) wallet: String,
    pub(super) chain: String,
    /// Symbol of the chain's coin, in which all values are.
    pub(super) native: String,
    pub(super) native_decimals: u8,
    pub(super) method: Method,
    pub(super) trades: u64,
    pub(super) first_trade: Option<String>,
    pub(super) totals: Totals,
    pub(super) tokens: Vec<TokenReport>,
}

pub(super) struct TokenReport {
    pub(super) symbol: String,
    pub(super) mint: String,
    /// Of the quantities.
    pub(super) decimals: u8,
    pub(super) position: Position,
}

type Number = Box<RawValue>;
type Count = fn(&Position) -> u64;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    wallet: &'a str,
    chain: &'a str,
    native: &'a str,
    method: &'a str,
    trades: u64,
    first_trade: Option<&'a str>,
    totals: Sums,
    tokens: Vec<TokenBody<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenBody<'a> {
    token: &'a str,
    token_mint: &'a str,
    bought: Number,
    sold: Number,
    open: Number,
    open_unvalued: Number,
    average_cost: Option<Number>,
    unmatched: Number,
    #[serde(flatten)]
    sums: Sums,
}

/// What a token and all of them have in common.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sums {
    buys: u64,
    sells: u64,
    without_amount: u64,
    without_value: u64,
    spent: Number,
    received: Number,
    realised: Number,
    realised_cost: Number,
    open_cost: Number,
    unmatched_proceeds: Number,
    unvalued_proceeds: Number,
    unvalued_cost: Number,
    judged_sells: u64,
    wins: u64,
    win_rate: Option<Number>,
}

fn raw(text: &impl ToString) -> Result<Number, CliError> {
    RawValue::from_string(text.to_string())
        .map_err(|error| CliError::failed("a number cannot be written", error))
}

fn rate(wins: u64, judged: u64) -> Option<Decimal> {
    let scaled = wins.saturating_mul(10_u64.pow(u32::from(RATE_DECIMALS)));
    let units = Units::from(scaled.checked_div(judged)?);
    Some(Decimal { units, decimals: RATE_DECIMALS })
}

impl Report {
    fn value(&self, units: Units) -> Decimal {
        Decimal { units, decimals: self.native_decimals }
    }

    fn method(&self) -> &'static str {
        match self.method {
            Method::Fifo => "fifo",
            Method::Average => "average",
        }
    }

    pub(super) fn json(&self) -> Result<String, CliError> {
        let tokens = self.tokens.iter().map(|token| self.token(token));
        let body = Body {
            wallet: &self.wallet,
            chain: &self.chain,
            native: &self.native,
            method: self.method(),
            trades: self.trades,
            first_trade: self.first_trade.as_deref(),
            totals: self.sums(&self.totals)?,
            tokens: tokens.collect::<Result<_, _>>()?,
        };
        let text = serde_json::to_string_pretty(&body)
            .map_err(|error| CliError::failed("the result cannot be written", error))?;
        Ok(text + "\n")
    }

    fn token<'a>(&self, token: &'a TokenReport) -> Result<TokenBody<'a>, CliError> {
        let position = &token.position;
        let quantity = |units| raw(&Decimal { units, decimals: token.decimals });
        let mut sums = Totals::default();
        sums.add(position);
        let average = position.average_cost(token.decimals);
        Ok(TokenBody {
            token: &token.symbol,
            token_mint: &token.mint,
            bought: quantity(position.bought)?,
            sold: quantity(position.sold)?,
            open: quantity(position.open)?,
            open_unvalued: quantity(position.open_unvalued)?,
            average_cost: average.map(|cost| raw(&self.value(cost))).transpose()?,
            unmatched: quantity(position.unmatched)?,
            sums: self.sums(&sums)?,
        })
    }

    fn sums(&self, totals: &Totals) -> Result<Sums, CliError> {
        let value = |units| raw(&self.value(units));
        Ok(Sums {
            buys: totals.buys,
            sells: totals.sells,
            without_amount: totals.untold,
            without_value: totals.unvalued,
            spent: value(totals.spent)?,
            received: value(totals.received)?,
            realised: raw(&totals.realised.decimal(self.native_decimals))?,
            realised_cost: value(totals.cost)?,
            open_cost: value(totals.open_cost)?,
            unmatched_proceeds: value(totals.unmatched_proceeds)?,
            unvalued_proceeds: value(totals.unvalued_proceeds)?,
            unvalued_cost: value(totals.unvalued_cost)?,
            judged_sells: totals.judged,
            wins: totals.wins,
            win_rate: rate(totals.wins, totals.judged).as_ref().map(raw).transpose()?,
        })
    }

    pub(super) fn csv(&self) -> String {
        let mut text = String::from(
            "token,tokenMint,buys,sells,bought,sold,open,openUnvalued,averageCost,unmatched,\
             withoutAmount,withoutValue,spent,received,realised,realisedCost,openCost,\
             unmatchedProceeds,unvaluedProceeds,unvaluedCost,judgedSells,wins\n",
        );
        for token in &self.tokens {
            let p = &token.position;
            let quantity = |units| Decimal { units, decimals: token.decimals }.to_string();
            let value = |units| self.value(units).to_string();
            let average = p.average_cost(token.decimals).map(value).unwrap_or_default();
            let cells = [
                csv_text(&token.symbol),
                csv_text(&token.mint),
                p.buys.to_string(),
                p.sells.to_string(),
                quantity(p.bought),
                quantity(p.sold),
                quantity(p.open),
                quantity(p.open_unvalued),
                average,
                quantity(p.unmatched),
                p.untold.to_string(),
                p.unvalued.to_string(),
                value(p.spent),
                value(p.received),
                p.realised.decimal(self.native_decimals).to_string(),
                value(p.cost),
                value(p.open_cost),
                value(p.unmatched_proceeds),
                value(p.unvalued_proceeds),
                value(p.unvalued_cost),
                p.judged.to_string(),
                p.wins.to_string(),
            ];
            text.push_str(&cells.join(","));
            text.push('\n');
        }
        text
    }

    pub(super) fn table(&self, colour: bool) -> String {
        let columns = [
            ("TOKEN", Align::Left),
            ("BUYS", Align::Right),
            ("SELLS", Align::Right),
            ("WINS", Align::Right),
            ("BOUGHT", Align::Right),
            ("SOLD", Align::Right),
            ("OPEN", Align::Right),
            ("OPEN COST", Align::Right),
            ("REALISED", Align::Right),
            ("MINT", Align::Left),
        ];
        let rows: Vec<Vec<String>> = self.tokens.iter().map(|token| self.cells(token)).collect();
        let text = table::format(&columns, &rows);
        let signs =
            std::iter::once(Signed::ZERO).chain(self.tokens.iter().map(|t| t.position.realised));
        let mut coloured = String::with_capacity(text.len());
        for (line, sign) in text.lines().zip(signs) {
            let paint = match (colour, sign.is_positive(), sign.is_negative()) {
                (true, true, _) => ("\u{1b}[32m", "\u{1b}[0m"),
                (true, _, true) => ("\u{1b}[31m", "\u{1b}[0m"),
                _ => ("", ""),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(coloured, "{}{line}{}", paint.0, paint.1);
        }
        coloured + &self.summary()
    }

    fn cells(&self, token: &TokenReport) -> Vec<String> {
        let p = &token.position;
        let quantity = |units| Decimal { units, decimals: token.decimals }.to_string();
        vec![
            printable(&token.symbol),
            p.buys.to_string(),
            p.sells.to_string(),
            format!("{}/{}", p.wins, p.judged),
            quantity(p.bought),
            quantity(p.sold),
            quantity(p.open),
            self.value(p.open_cost).to_string(),
            p.realised.decimal(self.native_decimals).to_string(),
            printable(&token.mint),
        ]
    }

    /// What stands below the table; lines about nothing are left out.
    fn summary(&self) -> String {
        let totals = &self.totals;
        let mut text = String::from("\n");
        let mut line = |name: &str, value: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:<22} {value}");
        };
        let value = |units: Units| format!("{} {}", self.value(units), self.native);
        line(
            "trades",
            format!("{} in {} tokens, {}", self.trades, self.tokens.len(), self.method()),
        );
        line("spent", value(totals.spent));
        line("received", value(totals.received));
        let realised = totals.realised.decimal(self.native_decimals);
        line("realised", format!("{realised} {}", self.native));
        line("open, at cost", value(totals.open_cost));
        if let Some(rate) = rate(totals.wins, totals.judged) {
            // Hundredths of a percent.
            let percent = Decimal { units: rate.units, decimals: RATE_DECIMALS - 2 };
            line("win rate", format!("{percent} % ({} of {} sells)", totals.wins, totals.judged));
        }
        for (name, units) in [
            ("sold without a buy", totals.unmatched_proceeds),
            ("cost unknown, got", totals.unvalued_proceeds),
            ("value unknown, cost", totals.unvalued_cost),
        ] {
            if !units.is_zero() {
                line(name, value(units));
            }
        }
        let counts: [(&str, Count); 2] =
            [("trades without value", |p| p.unvalued), ("trades without amount", |p| p.untold)];
        for (name, count) in counts {
            let named: Vec<String> = self
                .tokens
                .iter()
                .filter(|token| count(&token.position) > 0)
                .map(|token| format!("{} ({})", printable(&token.symbol), count(&token.position)))
                .collect();
            if !named.is_empty() {
                let all: u64 = self.tokens.iter().map(|token| count(&token.position)).sum();
                let shown = named.get(..NAMED_MAX).unwrap_or(&named).join(", ");
                let more = match named.len().saturating_sub(NAMED_MAX) {
                    0 => String::new(),
                    more => format!(" and {more} tokens more, which json and csv name"),
                };
                line(name, format!("{all}: {shown}{more}"));
            }
        }
        text
    }
}
