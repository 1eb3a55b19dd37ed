//! Reports and disposals as JSON, piece by piece: an answer of any length needs no more memory than
//! one of its elements. The API and the command line write the same bytes.

use std::fmt::Display;

use super::count::Disposal;
use super::position::TokenPosition;
use super::report::{Report, TokenReport, rate};
use super::sale::{Gain, Origin, Part};
use super::signed::SignedDecimal;
use crate::domain::row_json::string;
use crate::domain::{Decimal, Numbers, TxId, Units, UnixSeconds};

#[derive(Debug, Clone)]
pub struct ReportSubject {
    pub wallet: String,
    pub chain: String,
    /// Symbol of the chain's coin, the unit of all values.
    pub native: String,
    pub native_decimals: u8,
    /// Rows of the history whose value is still pending: figures change when it is found.
    pub values_pending: u64,
    pub first_trade: Option<UnixSeconds>,
}

/// Writes the parts of one JSON object, in order: `head`, `token` each, `tokens_end`, then either
/// `disposal` each and `disposals_end`, or `end`.
#[derive(Debug, Clone)]
pub struct JsonWriter {
    pub subject: ReportSubject,
    pub numbers: Numbers,
}

impl JsonWriter {
    /// Up to the first token.
    pub fn head(&self, report: &Report, out: &mut Vec<u8>) {
        let subject = &self.subject;
        let mut object = self.object(out);
        object.text("wallet", &subject.wallet);
        object.text("chain", &subject.chain);
        object.word("complete", "true");
        object.text("native", &subject.native);
        object.text("method", report.method.name());
        object.optional("from", report.period.from);
        object.optional("to", report.period.to);
        object.count("trades", report.trades);
        object.optional("firstTrade", subject.first_trade);
        if subject.values_pending > 0 {
            object.count("valuesPending", subject.values_pending);
        }
        object.name("totals");
        let mut totals = self.object(object.out);
        totals.sums(&report.totals, subject.native_decimals);
        totals.end();
        object.name("tokens");
        object.out.extend_from_slice(b"[");
    }

    pub fn token(&self, at: usize, token: &TokenReport, out: &mut Vec<u8>) {
        next_element(at, out);
        let p = &token.position;
        let mut object = self.object(out);
        object.text("token", &token.symbol);
        object.text("tokenMint", &token.mint.to_string());
        let quantities = [
            ("bought", p.bought),
            ("sold", p.sold),
            ("opening", p.opening),
            ("open", p.open),
            ("openUnvalued", p.open_unvalued),
            ("unmatched", p.unmatched),
        ];
        for (name, units) in quantities {
            object.number(name, Some(Decimal { units, decimals: token.decimals }));
        }
        let native = self.subject.native_decimals;
        object.number("averageCost", p.average_cost(token.decimals, native));
        object.sums(p, native);
        object.end();
    }

    /// Closes the tokens; `disposals`: they follow.
    pub fn tokens_end(&self, disposals: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(if disposals { b"\n],\"disposals\":[" } else { b"\n]}\n" });
    }

    pub fn disposal(&self, at: usize, disposal: &Disposal, out: &mut Vec<u8>) {
        next_element(at, out);
        let sale = &disposal.sale;
        let mut object = self.object(out);
        object.optional("signature", disposal.tx);
        object.text("token", &disposal.symbol);
        object.text("tokenMint", &disposal.mint.to_string());
        object.text("soldAt", &disposal.time.to_string());
        let quantity = Decimal { units: sale.quantity, decimals: disposal.decimals };
        object.number("quantity", Some(quantity));
        object.number("proceeds", self.value(sale.value));
        object.number("realised", self.realised(sale.gain()));
        object.name("lots");
        object.out.push(b'[');
        for (at, (part, bought)) in sale.parts.iter().zip(&disposal.bought).enumerate() {
            if at > 0 {
                object.out.push(b',');
            }
            self.part(part, *bought, disposal, object.out);
        }
        object.out.push(b']');
        object.end();
    }

    fn part(
        &self,
        part: &Part,
        bought: Option<(UnixSeconds, Option<TxId>)>,
        disposal: &Disposal,
        out: &mut Vec<u8>,
    ) {
        let quantity = Decimal { units: part.quantity, decimals: disposal.decimals };
        let mut object = self.object(out);
        object.word("matched", if part.origin == Origin::Unmatched { "false" } else { "true" });
        object.optional("signature", bought.and_then(|(_, tx)| tx));
        object.optional("acquiredAt", bought.map(|(time, _)| time));
        let held = bought.map(|(time, _)| disposal.time.0.saturating_sub(time.0).to_string());
        object.word("heldSeconds", held.as_deref().unwrap_or("null"));
        object.number("quantity", Some(quantity));
        object.number("proceeds", self.value(part.proceeds));
        object.number("cost", self.value(part.cost));
        object.number("realised", self.realised(part.gain()));
        object.end();
    }

    pub fn disposals_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n]}\n");
    }

    fn value(&self, units: Option<Units>) -> Option<Decimal> {
        units.map(|units| Decimal { units, decimals: self.subject.native_decimals })
    }

    fn realised(&self, gain: Option<Gain>) -> Option<SignedDecimal> {
        gain.map(|gain| gain.realised().decimal(self.subject.native_decimals))
    }

    fn object<'a>(&self, out: &'a mut Vec<u8>) -> Object<'a> {
        out.push(b'{');
        Object { out, is_empty: true, numbers: self.numbers }
    }
}

fn next_element(at: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(if at > 0 { b",\n" } else { b"\n" });
}

struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
    numbers: Numbers,
}

impl Object<'_> {
    fn name(&mut self, name: &str) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        string(self.out, name);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        string(self.out, text);
    }

    /// A literal, unquoted.
    fn word(&mut self, name: &str, word: &str) {
        self.name(name);
        self.out.extend_from_slice(word.as_bytes());
    }

    fn count(&mut self, name: &str, count: u64) {
        self.word(name, &count.to_string());
    }

    fn optional(&mut self, name: &str, text: Option<impl Display>) {
        match text {
            Some(text) => self.text(name, &text.to_string()),
            None => self.word(name, "null"),
        }
    }

    fn number(&mut self, name: &str, number: Option<impl Display>) {
        match (number, self.numbers) {
            (Some(number), Numbers::Literal) => self.word(name, &number.to_string()),
            (number, _) => self.optional(name, number),
        }
    }

    /// The fields that a token and the totals have in common.
    fn sums(&mut self, totals: &TokenPosition, native_decimals: u8) {
        self.count("buys", totals.buys);
        self.count("sells", totals.sells);
        self.count("withoutAmount", totals.without_amount);
        self.count("withoutValue", totals.unvalued);
        let native = |units| Some(Decimal { units, decimals: native_decimals });
        self.number("spent", native(totals.spent));
        self.number("received", native(totals.received));
        self.number("realised", Some(totals.realised.decimal(native_decimals)));
        let sums = [
            ("realisedCost", totals.cost),
            ("openingCost", totals.opening_cost),
            ("openCost", totals.open_cost),
            ("unmatchedProceeds", totals.unmatched_proceeds),
            ("unvaluedProceeds", totals.unvalued_proceeds),
            ("unvaluedCost", totals.unvalued_cost),
        ];
        for (name, units) in sums {
            self.number(name, native(units));
        }
        self.count("judgedSells", totals.judged);
        self.count("wins", totals.wins);
        self.number("winRate", rate(totals.wins, totals.judged));
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
