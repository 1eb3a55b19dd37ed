//! The result of `blotter verify`, as a table or as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::RawValue;

use super::against::Difference;
use super::moves::CurrentBalance;
use super::rows::{ByDigits, TokenSums, scaled};
use crate::cli::output::{number_text, symbol_shown};
use crate::cli::table::{self, printable};
use crate::domain::{Address, Family, Token, Units};
use crate::history::{Moved, Sum};
use crate::pnl::Signed;

/// Most differences that are written out.
const SHOWN_MAX: usize = 20;

type Number = Option<Box<RawValue>>;

#[derive(Serialize)]
pub(super) struct Comparison {
    pub(super) wallet: String,
    pub(super) chain: String,
    pub(super) trades: u64,
    /// Transactions that were read for the transfers.
    pub(super) transactions: u64,
    pub(super) tokens: Vec<TokenComparison>,
    /// Every height is read and proved; null if unknown.
    pub(super) complete: Option<bool>,
    /// Doubts of the coverage, by name.
    pub(super) doubts: Vec<String>,
    /// Which of this chain's transfers are not read; null if all are.
    pub(super) note: Option<&'static str>,
    /// Null without a second node.
    pub(super) differences: Option<Vec<Difference>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenComparison {
    token: String,
    token_mint: String,
    bought: Number,
    sold: Number,
    transfers_in: Number,
    transfers_out: Number,
    /// Bought less sold, plus transfers in less transfers out.
    expected: Number,
    /// The wallet's balance; null if the node does not report it.
    balance: Number,
    /// Balance less expected; null if one of them is unknown.
    residue: Number,
    without_amount: u64,
    /// Whether the transactions, decoded again, give the same sums as the rows.
    rows_agree: bool,
    verdict: &'static str,
    #[serde(skip)]
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Residue,
    Differs,
    Unknown,
    Settled,
}

/// Transfers that a family's readers leave out, because they cannot be trades.
pub(super) fn note(family: Family) -> Option<&'static str> {
    match family {
        Family::Solana => None,
        Family::Evm => Some(
            "Tokens that strangers only sent to the wallet, in transactions of their own, are not all read on this chain: they show as residue.",
        ),
        Family::Tron => Some(
            "Plain transfers of tokens, to the wallet and from it, are not all read on this chain: they show as residue.",
        ),
    }
}

impl TokenComparison {
    pub(super) fn new(
        mint: Address,
        rows: Option<&TokenSums>,
        moved: &Moved,
        held: &CurrentBalance,
    ) -> Self {
        let decimals = held.meta.as_ref().and_then(|meta| meta.decimals);
        let none = TokenSums::default();
        let rows = rows.unwrap_or(&none);
        let of_rows = |sums: &ByDigits| scaled(sums, decimals?);
        let (bought, sold) = (of_rows(&rows.bought), of_rows(&rows.sold));
        let gained = bought.and_then(|units| Sum::of(units).plus(moved.came).units());
        let lost = sold.and_then(|units| Sum::of(units).plus(moved.went).units());
        let sides = gained.zip(lost);
        let has_amounts = rows.without_amount == 0;
        let residue =
            held.balance.zip(sides).filter(|_| has_amounts).and_then(|(balance, sides)| {
                Some(Signed::difference(balance.checked_add(sides.1)?, sides.0))
            });
        let rows_agree = (bought, sold) == (moved.bought.units(), moved.sold.units());
        let state = match residue {
            None => State::Unknown,
            Some(residue) if residue != Signed::ZERO => State::Residue,
            Some(_) if !rows_agree => State::Differs,
            Some(_) => State::Settled,
        };
        let missing = missing(has_amounts, held.balance.is_some(), decimals.is_some());
        let number =
            |units: Option<Units>| signed(Some(Signed::difference(units?, Units::ZERO)), decimals);
        let expected = sides.map(|(gained, lost)| Signed::difference(gained, lost));
        Self {
            token: symbol(mint, rows, held),
            token_mint: mint.as_tron_asset().map_or_else(|| mint.to_string(), |id| id.to_string()),
            bought: number(bought),
            sold: number(sold),
            transfers_in: number(moved.came.units()),
            transfers_out: number(moved.went.units()),
            expected: signed(expected.filter(|_| has_amounts), decimals),
            balance: number(held.balance),
            residue: signed(residue, decimals),
            without_amount: rows.without_amount,
            rows_agree,
            verdict: verdict(state, rows_agree, residue, missing),
            state,
        }
    }

    /// Sort key: tokens that need attention first.
    pub(super) fn rank(&self) -> impl Ord + use<> {
        (self.state, self.token_mint.clone())
    }

    fn cells(&self) -> Vec<String> {
        let number = |number: &Number| number_text(number.as_deref(), "?").to_owned();
        vec![
            printable(&self.token),
            number(&self.bought),
            number(&self.sold),
            number(&self.transfers_in),
            number(&self.transfers_out),
            number(&self.expected),
            number(&self.balance),
            number(&self.residue),
            self.verdict.to_owned(),
            printable(&self.token_mint),
        ]
    }
}

fn missing(has_amounts: bool, has_balance: bool, has_decimals: bool) -> &'static str {
    match (has_amounts, has_balance, has_decimals) {
        (false, _, _) => "rows without an amount: nothing can be said",
        (true, false, false) => {
            "the node reports neither the balance nor the decimals; try another"
        }
        (true, false, true) => "the node does not report the balance; try another",
        (true, true, false) => "the node does not report the decimals; try another",
        (true, true, true) => "the amounts are too large to be added up",
    }
}

fn verdict(
    state: State,
    rows_agree: bool,
    residue: Option<Signed>,
    missing: &'static str,
) -> &'static str {
    match state {
        State::Unknown => missing,
        State::Settled => "agrees",
        State::Differs => "agrees, but the rows are not what the transactions give now",
        State::Residue if !rows_agree => "the rows are not what the transactions give now",
        State::Residue if residue.is_some_and(|residue| residue.is_positive()) => "more is held",
        State::Residue => "less is held",
    }
}

fn signed(sum: Option<Signed>, decimals: Option<u8>) -> Number {
    let (sum, decimals) = sum.zip(decimals)?;
    RawValue::from_string(sum.decimal(decimals).to_string()).ok()
}

/// The symbol of the rows, else that of the chain.
fn symbol(mint: Address, rows: &TokenSums, held: &CurrentBalance) -> String {
    if !rows.symbol.is_empty() {
        return rows.symbol.clone();
    }
    let symbol = held.meta.as_ref().and_then(|meta| meta.symbol.clone());
    symbol_shown(&Token::new(mint, symbol, None))
}

impl Comparison {
    /// Whether there are tokens and none could be compared.
    pub(super) fn is_void(&self) -> bool {
        let mut tokens = self.tokens.iter();
        !self.tokens.is_empty() && tokens.all(|token| token.state == State::Unknown)
    }

    /// `all` shows the tokens without a residue too.
    pub(super) fn table(&self, all: bool) -> String {
        let shown = |token: &&TokenComparison| all || token.state != State::Settled;
        let rows: Vec<Vec<String>> =
            self.tokens.iter().filter(shown).map(TokenComparison::cells).collect();
        let columns = [
            "TOKEN",
            ">BOUGHT",
            ">SOLD",
            ">IN",
            ">OUT",
            ">EXPECTED",
            ">BALANCE",
            ">RESIDUE",
            "",
            "MINT",
        ];
        let mut text = String::new();
        if !rows.is_empty() {
            text = table::format(&columns, &rows) + "\n";
        }
        self.write_summary(&mut text, all);
        self.write_differences(&mut text);
        text
    }

    fn write_summary(&self, text: &mut String, all: bool) {
        let count = |state| self.tokens.iter().filter(|token| token.state == state).count();
        let settled = count(State::Settled);
        let left_out = if all || settled == 0 { "" } else { " (not shown; --all shows them)" };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{} trades and {} transactions in {} tokens: {settled} agree with what is held{left_out}.",
            self.trades,
            self.transactions,
            self.tokens.len()
        );
        if count(State::Residue) > 0 {
            text.push_str(
                "A residue may come of rewards, of tokens that change balances by themselves or take fees, of transactions that no index lists, and of what happened during this call.\n",
            );
        }
        if let Some(note) = self.note {
            let _ = writeln!(text, "{note}");
        }
    }

    fn write_differences(&self, text: &mut String) {
        let Some(found) = &self.differences else { return };
        if found.is_empty() {
            text.push_str("The other node gives the same rows.\n");
        }
        for difference in found.iter().take(SHOWN_MAX) {
            let Difference { signature, side, token_mint, what } = difference;
            let _ = writeln!(text, "{signature} {side} {token_mint}: {}", printable(what));
        }
        if found.len() > SHOWN_MAX {
            let _ = writeln!(text, "… and {} more", found.len() - SHOWN_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::numbers::decimal;
    use crate::sources::TokenMeta;

    fn rows(bought: &[&str], sold: &[&str]) -> TokenSums {
        let mut rows = TokenSums::default();
        for text in bought {
            rows.add(true, decimal(text));
        }
        for text in sold {
            rows.add(false, decimal(text));
        }
        rows
    }

    fn moved([bought, sold, came, went]: [u64; 4]) -> Moved {
        let sum = |units: u64| Sum::of(Units::from(units));
        Moved { bought: sum(bought), sold: sum(sold), came: sum(came), went: sum(went) }
    }

    fn report(rows: &TokenSums, moved: &Moved, balance: Option<u64>) -> TokenComparison {
        let mint = Address::Evm([1; 20]);
        let meta = Some(TokenMeta { mint, symbol: None, decimals: Some(2) });
        let held = CurrentBalance { meta, balance: balance.map(Units::from) };
        TokenComparison::new(mint, Some(rows), moved, &held)
    }

    fn residue(report: &TokenComparison) -> Option<&str> {
        report.residue.as_ref().map(|number| number.get())
    }

    #[test]
    fn trades_and_transfers_are_compared_with_the_balance() {
        let stored = rows(&["1.5", "2"], &["3"]);
        // 3.5 bought, 3 sold, 0.25 came, 0.5 went: 0.25 is left.
        let anew = moved([350, 300, 25, 50]);
        let judged = |balance| report(&stored, &anew, balance);
        assert_eq!((residue(&judged(Some(25))), judged(Some(25)).verdict), (Some("0"), "agrees"));
        assert_eq!(judged(Some(25)).expected.unwrap().get(), "0.25");
        assert_eq!(
            (residue(&judged(Some(5))), judged(Some(5)).verdict),
            (Some("-0.2"), "less is held")
        );
        assert_eq!(residue(&judged(Some(26))), Some("0.01"));
        assert_eq!(residue(&judged(None)), None);
    }

    /// Only what is missing is named.
    #[test]
    fn what_the_node_does_not_report_is_named() {
        assert!(missing(false, true, true).starts_with("rows without an amount"));
        let names = |has_balance, has_decimals| {
            let text = missing(true, has_balance, has_decimals);
            [text.contains("balance"), text.contains("decimals")]
        };
        assert_eq!(names(false, false), [true, true]);
        assert_eq!(names(false, true), [true, false]);
        assert_eq!(names(true, false), [false, true]);
        assert_eq!(names(true, true), [false, false]);
        let held = CurrentBalance { meta: None, balance: Some(Units::from(5_u64)) };
        let rows = rows(&["1"], &[]);
        let judged =
            TokenComparison::new(Address::Evm([1; 20]), Some(&rows), &moved([1, 0, 0, 0]), &held);
        assert_eq!(judged.verdict, missing(true, true, false));
    }

    #[test]
    fn a_missing_row_and_a_missing_transaction_stay() {
        let anew = moved([350, 300, 25, 50]);
        let missing = report(&rows(&["1.5"], &["3"]), &anew, Some(25));
        assert_eq!((residue(&missing), missing.rows_agree), (Some("2"), false));
        // A transfer of 0.5 out that no node reported.
        let missing = report(&rows(&["1.5", "2"], &["3"]), &moved([350, 300, 25, 0]), Some(25));
        assert_eq!((residue(&missing), missing.rows_agree), (Some("-0.5"), true));
    }

    #[test]
    fn rows_without_an_amount_settle_nothing() {
        let mut stored = rows(&["1"], &[]);
        stored.add(false, None);
        let judged = report(&stored, &moved([100, 0, 0, 0]), Some(100));
        assert_eq!((residue(&judged), judged.without_amount), (None, 1));
        assert!(judged.expected.is_none() && judged.verdict.contains("without an amount"));
    }
}
