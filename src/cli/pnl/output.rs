//! The output formats of `blotter pnl`.

use std::fmt::Write as _;
use std::io;

use crate::cli::output::csv_text;
use crate::cli::table::{self, printable};
use crate::domain::{Decimal, Numbers, TxId, Units, UnixSeconds};
use crate::pnl::{
    Count, CountStep, Disposal, JsonWriter, Origin, Period, Report, ReportSubject, Signed,
    TokenPosition, TokenReport, rate,
};

/// Most tokens that the summary names.
const NAMED_MAX: usize = 20;
const DAY_SECONDS: u32 = 86_400;

type CountOf = fn(&TokenPosition) -> u64;

/// A report, and its disposals by a second pass over the trades.
pub(super) struct Output<C> {
    subject: ReportSubject,
    report: Report,
    count: C,
}

impl<C: Fn() -> Count> Output<C> {
    pub(super) fn new(subject: ReportSubject, report: Report, count: C) -> Self {
        Self { subject, report, count }
    }

    fn value(&self, units: Units) -> Decimal {
        Decimal { units, decimals: self.subject.native_decimals }
    }

    /// Passes each sale of the period to `take`, oldest first.
    fn each_disposal(&self, mut take: impl FnMut(&Disposal) -> io::Result<()>) -> io::Result<()> {
        let mut count = (self.count)();
        loop {
            match count.step() {
                CountStep::Row => {}
                CountStep::Sale(disposal) => take(&disposal)?,
                CountStep::All => return Ok(()),
            }
        }
    }

    /// Writes the API's response, byte for byte.
    pub(super) fn json(&self, disposals: bool, out: &mut dyn io::Write) -> io::Result<()> {
        let writer = JsonWriter { subject: self.subject.clone(), numbers: Numbers::Literal };
        let mut text = Vec::new();
        writer.head(&self.report, &mut text);
        for (at, token) in self.report.tokens.iter().enumerate() {
            writer.token(at, token, &mut text);
        }
        writer.tokens_end(disposals, &mut text);
        out.write_all(&text)?;
        if !disposals {
            return Ok(());
        }
        let mut at = 0;
        self.each_disposal(|disposal| {
            text.clear();
            writer.disposal(at, disposal, &mut text);
            at += 1;
            out.write_all(&text)
        })?;
        text.clear();
        writer.disposals_end(&mut text);
        out.write_all(&text)
    }

    pub(super) fn csv(&self) -> String {
        let mut text = String::from(
            "token,tokenMint,buys,sells,bought,sold,open,openUnvalued,averageCost,unmatched,\
             withoutAmount,withoutValue,spent,received,realised,realisedCost,openCost,\
             unmatchedProceeds,unvaluedProceeds,unvaluedCost,judgedSells,wins,opening,openingCost\n",
        );
        for token in &self.report.tokens {
            text.push_str(&self.csv_cells(token).join(","));
            text.push('\n');
        }
        text
    }

    fn csv_cells(&self, token: &TokenReport) -> Vec<String> {
        let p = &token.position;
        let quantity = |units| Decimal { units, decimals: token.decimals }.to_string();
        let value = |units| self.value(units).to_string();
        let average = p.average_cost(token.decimals, self.subject.native_decimals);
        vec![
            csv_text(&token.symbol),
            token.mint.to_string(),
            p.buys.to_string(),
            p.sells.to_string(),
            quantity(p.bought),
            quantity(p.sold),
            quantity(p.open),
            quantity(p.open_unvalued),
            average.map(|cost| cost.to_string()).unwrap_or_default(),
            quantity(p.unmatched),
            p.without_amount.to_string(),
            p.unvalued.to_string(),
            value(p.spent),
            value(p.received),
            p.realised.decimal(self.subject.native_decimals).to_string(),
            value(p.cost),
            value(p.open_cost),
            value(p.unmatched_proceeds),
            value(p.unvalued_proceeds),
            value(p.unvalued_cost),
            p.judged.to_string(),
            p.wins.to_string(),
            quantity(p.opening),
            value(p.opening_cost),
        ]
    }

    pub(super) fn disposals_csv(&self, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(
            b"token,tokenMint,soldAt,signature,acquiredAt,acquiredBy,heldDays,matched,quantity,\
              proceeds,cost,realised\n",
        )?;
        self.each_disposal(|disposal| {
            for line in self.disposal_cells(disposal) {
                out.write_all(line.join(",").as_bytes())?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })
    }

    fn disposal_cells(&self, disposal: &Disposal) -> Vec<[String; 12]> {
        let optional = |units: Option<Units>| {
            units.map(|units| self.value(units).to_string()).unwrap_or_default()
        };
        let parts = disposal.sale.parts.iter().zip(&disposal.bought).map(|(part, bought)| {
            let gain = part.gain().map(|gain| gain.realised());
            let gain = gain.map(|gain| gain.decimal(self.subject.native_decimals).to_string());
            let quantity = Decimal { units: part.quantity, decimals: disposal.decimals };
            [
                csv_text(&disposal.symbol),
                disposal.mint.to_string(),
                disposal.time.to_string(),
                disposal.tx.as_ref().map(TxId::to_string).unwrap_or_default(),
                bought.map(|(time, _)| time.to_string()).unwrap_or_default(),
                bought.and_then(|(_, tx)| tx).map(|tx| tx.to_string()).unwrap_or_default(),
                bought.map(|(time, _)| days(disposal.time, time)).unwrap_or_default(),
                (part.origin != Origin::Unmatched).to_string(),
                quantity.to_string(),
                optional(part.proceeds),
                optional(part.cost),
                gain.unwrap_or_default(),
            ]
        });
        parts.collect()
    }

    pub(super) fn disposals_table(&self) -> String {
        let columns =
            ["SOLD", "TOKEN", "ACQUIRED", ">DAYS", ">QUANTITY", ">PROCEEDS", ">COST", ">REALISED"];
        let mut rows = Vec::new();
        // The closure does not fail.
        let _ = self.each_disposal(|disposal| {
            for line in self.disposal_cells(disposal) {
                let [_, _, sold, _, acquired, _, days, _, quantity, proceeds, cost, gain] = line;
                let token = printable(&disposal.symbol);
                rows.push(vec![sold, token, acquired, days, quantity, proceeds, cost, gain]);
            }
            Ok(())
        });
        table::format(&columns, &rows)
    }

    pub(super) fn table(&self, colour: bool) -> String {
        let columns = [
            "TOKEN",
            ">BUYS",
            ">SELLS",
            ">WINS",
            ">BOUGHT",
            ">SOLD",
            ">OPEN",
            ">OPEN COST",
            ">REALISED",
            "MINT",
        ];
        let rows: Vec<Vec<String>> =
            self.report.tokens.iter().map(|token| self.cells(token)).collect();
        let text = table::format(&columns, &rows);
        let signs = std::iter::once(Signed::ZERO)
            .chain(self.report.tokens.iter().map(|t| t.position.realised));
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
            p.realised.decimal(self.subject.native_decimals).to_string(),
            token.mint.to_string(),
        ]
    }

    /// The lines below the table, without those of zero amounts.
    fn summary(&self) -> String {
        let totals = &self.report.totals;
        let mut text = String::from("\n");
        let mut line = |name: &str, value: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name:<22} {value}");
        };
        let value = |units: Units| format!("{} {}", self.value(units), self.subject.native);
        line(
            "trades",
            format!(
                "{} in {} tokens, {}",
                self.report.trades,
                self.report.tokens.len(),
                self.report.method.name()
            ),
        );
        let moment = |time: Option<UnixSeconds>, open: &str| {
            time.map_or_else(|| open.to_owned(), |time| time.to_string())
        };
        let period = self.report.period;
        if period != Period::default() {
            let (from, to) = (moment(period.from, "the start"), moment(period.to, "now"));
            line("period", format!("{from} to before {to}"));
            line("open before, at cost", value(totals.opening_cost));
        }
        line("spent", value(totals.spent));
        line("received", value(totals.received));
        let realised = totals.realised.decimal(self.subject.native_decimals);
        line("realised", format!("{realised} {}", self.subject.native));
        line("open, at cost", value(totals.open_cost));
        if let Some(rate) = rate(totals.wins, totals.judged) {
            let percent = Decimal { units: rate.units, decimals: rate.decimals.saturating_sub(2) };
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
        for (name, value) in self.unknowns() {
            line(name, value);
        }
        text
    }

    /// Trades without a value or an amount, with the tokens that have them.
    fn unknowns(&self) -> Vec<(&'static str, String)> {
        let counts: [(&str, CountOf); 2] = [
            ("trades without value", |p| p.unvalued),
            ("trades without amount", |p| p.without_amount),
        ];
        let mut lines = Vec::new();
        for (name, count) in counts {
            let named: Vec<String> = self
                .report
                .tokens
                .iter()
                .filter(|token| count(&token.position) > 0)
                .map(|token| format!("{} ({})", printable(&token.symbol), count(&token.position)))
                .collect();
            if named.is_empty() {
                continue;
            }
            let all: u64 = self.report.tokens.iter().map(|token| count(&token.position)).sum();
            let shown = named.get(..NAMED_MAX).unwrap_or(&named).join(", ");
            let more = match named.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} tokens more, which json and csv name"),
            };
            lines.push((name, format!("{all}: {shown}{more}")));
        }
        lines
    }
}

fn days(sold: UnixSeconds, bought: UnixSeconds) -> String {
    (sold.0.saturating_sub(bought.0) / DAY_SECONDS).to_string()
}
