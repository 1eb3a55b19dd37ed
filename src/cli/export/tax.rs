//! The layouts that tax programs import: one line for each swap, with the amounts sent and
//! received.
//!
//! A sell and a buy of one transaction with the same value, or both without one, are one swap. Any
//! other row is a swap against native coin. The fee columns stay empty: a row's amounts include the
//! fees of venue and route, and the network fee is no part of a trade.

use std::io::{self, Write};

use serde_json::value::RawValue;

use crate::cli::export::ExportSubject;
use crate::cli::output::{Encode, Ending, State, TradeLine, csv_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The universal template (support.koinly.io, "How to create a custom CSV file").
    Koinly,
    /// The custom import ("CSV import: custom"), with its optional columns up to the transaction.
    Cointracking,
}

const KOINLY_HEAD: &str = "Date,Sent Amount,Sent Currency,Received Amount,Received Currency,Fee Amount,\
    Fee Currency,Net Worth Amount,Net Worth Currency,Label,Description,TxHash";
const COINTRACKING_HEAD: &str = "Type,Buy Amount,Buy Currency,Sell Amount,Sell Currency,Fee,Fee Currency,\
    Exchange,Trade-Group,Comment,Date,Liquidity pool (optional),Tx-ID (optional)";

/// Writes swaps. The rows of a transaction are consecutive, so only those of the last one are
/// buffered.
pub(super) struct Tax {
    layout: Layout,
    native: String,
    held: Vec<TradeLine>,
    /// The export ends before the history does: more rows of the last transaction may follow.
    is_cut: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Part {
    amount: String,
    currency: String,
}

struct Swap<'a> {
    sent: Part,
    received: Part,
    /// Venue, tokens and unknown values.
    comment: String,
    row: &'a TradeLine,
}

impl Tax {
    pub(super) fn new(layout: Layout, subject: &ExportSubject) -> Self {
        Self { layout, native: subject.native.clone(), held: Vec::new(), is_cut: false }
    }

    fn write_held(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let rows = std::mem::take(&mut self.held);
        for swap in self.swaps(&rows) {
            let line = match self.layout {
                Layout::Koinly => koinly(&swap),
                Layout::Cointracking => cointracking(&swap),
            };
            writeln!(to, "{line}")?;
        }
        Ok(())
    }

    fn swaps<'a>(&self, rows: &'a [TradeLine]) -> Vec<Swap<'a>> {
        if let [one, other] = rows
            && one.side != other.side
            && text(one.amount_sol.as_deref()) == text(other.amount_sol.as_deref())
            && one.amount.is_some()
            && other.amount.is_some()
            // A third row behind the cut may be the other side of both.
            && !(self.is_cut && one.amount_sol.is_none())
        {
            let (sold, bought) = if one.side == "sell" { (one, other) } else { (other, one) };
            let mut comment =
                format!("{}; {} for {}", sold.dex, sold.token_mint, bought.token_mint);
            if sold.amount_sol.is_none() {
                comment.push_str("; its value and coin that was paid in addition are not known");
            }
            let (sent, received) = (self.part(sold), self.part(bought));
            return vec![Swap { sent, received, comment, row: sold }];
        }
        rows.iter().map(|row| self.against_native(row)).collect()
    }

    fn against_native<'a>(&self, row: &'a TradeLine) -> Swap<'a> {
        let native = match &row.amount_sol {
            Some(value) => Part { amount: value.get().to_owned(), currency: self.native.clone() },
            None => Part::default(),
        };
        let mut comment = format!("{}; {}", row.dex, row.token_mint);
        if row.amount_sol.is_none() {
            comment.push_str("; a swap whose other side's value is not known");
        }
        if row.amount.is_none() {
            comment.push_str("; the token's amount is not known");
        }
        if self.is_cut {
            comment.push_str("; cut here: another row of the same swap may follow");
        }
        let part = self.part(row);
        let (sent, received) = if row.side == "sell" { (part, native) } else { (native, part) };
        Swap { sent, received, comment, row }
    }

    /// A token with the native coin's symbol is named by its address, or it would be imported as
    /// the coin.
    fn part(&self, row: &TradeLine) -> Part {
        let is_coin = row.token.eq_ignore_ascii_case(&self.native);
        Part {
            amount: text(row.amount.as_deref()).unwrap_or_default().to_owned(),
            currency: if is_coin { &row.token_mint } else { &row.token }.clone(),
        }
    }
}

fn text(number: Option<&RawValue>) -> Option<&str> {
    number.map(RawValue::get)
}

/// Date and time of `2026-11-21T07:05:51+00:00`, the format of all times.
fn moment(row: &TradeLine) -> Option<(&str, &str)> {
    let (date, rest) = row.block_time.split_once('T')?;
    Some((date, rest.get(..8)?))
}

/// `YYYY-MM-DD HH:MM:SS UTC`.
fn koinly(swap: &Swap<'_>) -> String {
    let date = moment(swap.row).map(|(date, time)| format!("{date} {time} UTC"));
    let Swap { sent, received, .. } = swap;
    // A line with both sides empty cannot be imported, but shows the user that a row is unknown.
    line([
        &date.unwrap_or_default(),
        &sent.amount,
        &sent.currency,
        &received.amount,
        &received.currency,
        "",
        "",
        "",
        "",
        "",
        &swap.comment,
        &swap.row.signature,
    ])
}

/// `DD.MM.YYYY HH:MM:SS`.
fn cointracking(swap: &Swap<'_>) -> String {
    let date = moment(swap.row).and_then(|(date, time)| {
        let [year, month, day] = date.split('-').collect::<Vec<_>>().try_into().ok()?;
        let (year, month, day): (&str, &str, &str) = (year, month, day);
        Some(format!("{day}.{month}.{year} {time}"))
    });
    let Swap { sent, received, .. } = swap;
    let kind = match (received.amount.is_empty(), sent.amount.is_empty()) {
        (false, true) => "Deposit",
        (true, false) => "Withdrawal",
        (false, false) | (true, true) => "Trade",
    };
    line([
        kind,
        &received.amount,
        &received.currency,
        &sent.amount,
        &sent.currency,
        "",
        "",
        &swap.row.dex,
        "",
        &swap.comment,
        &date.unwrap_or_default(),
        "",
        &swap.row.signature,
    ])
}

fn line<const N: usize>(cells: [&str; N]) -> String {
    cells.map(csv_text).join(",")
}

impl Encode for Tax {
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()> {
        match self.layout {
            Layout::Koinly => writeln!(to, "{KOINLY_HEAD}"),
            Layout::Cointracking => writeln!(to, "{COINTRACKING_HEAD}"),
        }
    }

    fn rows(&mut self, to: &mut dyn Write, rows: Vec<TradeLine>, _cursor: &str) -> io::Result<()> {
        for row in rows {
            if self.held.first().is_some_and(|held| held.signature != row.signature) {
                self.write_held(to)?;
            }
            self.held.push(row);
        }
        to.flush()
    }

    fn end(&mut self, to: &mut dyn Write, ending: &Ending) -> io::Result<()> {
        self.is_cut = ending.cursor.is_some();
        self.write_held(to)?;
        to.flush()
    }

    fn state(&self) -> Option<State> {
        Some(State { held: self.held.clone(), ..State::default() })
    }

    fn restore(&mut self, state: State, _rows: u64) {
        self.held = state.held;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Format;
    use crate::cli::export::samples::{sample_row, sample_subject};

    fn row(
        signature: &str,
        side: &str,
        token: &str,
        amounts: (Option<&str>, Option<&str>),
    ) -> TradeLine {
        TradeLine {
            signature: signature.to_owned(),
            side: side.to_owned(),
            ..sample_row(token, amounts.0, amounts.1)
        }
    }

    fn written(layout: Layout, batches: Vec<Vec<TradeLine>>) -> Vec<String> {
        written_to(None, layout, batches)
    }

    fn written_to(
        cursor: Option<&str>,
        layout: Layout,
        batches: Vec<Vec<TradeLine>>,
    ) -> Vec<String> {
        let subject = sample_subject(Format::Koinly);
        let (mut tax, mut out) = (Tax::new(layout, &subject), Vec::new());
        tax.begin(&mut out).unwrap();
        for rows in batches {
            tax.rows(&mut out, rows, "c").unwrap();
            // Each batch is a call of its own.
            let state = tax.state().unwrap();
            tax = Tax::new(layout, &subject);
            tax.restore(state, 0);
        }
        let cursor = cursor.map(str::to_owned);
        let ending = Ending { complete: true, trade_count: 0, first_trade: None, cursor };
        tax.end(&mut out, &ending).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_swap_is_one_line_also_across_batches() {
        let lines = written(
            Layout::Koinly,
            vec![
                vec![
                    row("c", "buy", "BONK", (Some("1.5"), Some("100"))),
                    row("b", "sell", "BONK", (Some("2"), Some("50"))),
                ],
                vec![
                    row("b", "buy", "WIF", (Some("2"), Some("7"))),
                    row("a", "sell", "BONK", (Some("3"), Some("9"))),
                ],
            ],
        );
        let date = "2026-11-21 07:05:51 UTC";
        let expected = [
            "Date,Sent Amount,Sent Currency,Received Amount,Received Currency,Fee Amount,Fee Currency,\
             Net Worth Amount,Net Worth Currency,Label,Description,TxHash"
                .to_owned(),
            format!("{date},1.5,SOL,100,BONK,,,,,,Orca; BONKMint,c"),
            format!("{date},50,BONK,7,WIF,,,,,,Orca; BONKMint for WIFMint,b"),
            format!("{date},9,BONK,3,SOL,,,,,,Orca; BONKMint,a"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn details_without_a_column_are_in_the_comment() {
        let date = "2026-11-21 07:05:51 UTC";
        let swapped = || {
            vec![
                row("b", "sell", "BONK", (None, Some("50"))),
                row("b", "buy", "WIF", (None, Some("7"))),
            ]
        };
        let lines = written(Layout::Koinly, vec![swapped()]);
        let unknown = "its value and coin that was paid in addition are not known";
        assert_eq!(
            lines[1],
            format!("{date},50,BONK,7,WIF,,,,,,Orca; BONKMint for WIFMint; {unknown},b")
        );
        // Between the rows of a swap.
        let first = row("c", "buy", "BONK", (Some("1.5"), Some("100")));
        let sold = row("b", "sell", "BONK", (Some("2"), Some("50")));
        let lines = written_to(Some("cursor"), Layout::Koinly, vec![vec![first, sold]]);
        assert_eq!(lines[1], format!("{date},1.5,SOL,100,BONK,,,,,,Orca; BONKMint,c"));
        let cut = "cut here: another row of the same swap may follow";
        assert_eq!(lines[2], format!("{date},50,BONK,2,SOL,,,,,,Orca; BONKMint; {cut},b"));
    }

    #[test]
    fn rows_without_a_value_are_no_pair_where_a_third_one_may_be_cut_off() {
        let rows = vec![
            row("b", "sell", "BONK", (None, Some("50"))),
            row("b", "buy", "WIF", (None, Some("7"))),
        ];
        let lines = written_to(Some("cursor"), Layout::Koinly, vec![rows]);
        let (date, unknown) =
            ("2026-11-21 07:05:51 UTC", "a swap whose other side's value is not known");
        let cut = "cut here: another row of the same swap may follow";
        assert_eq!(
            lines[1..],
            [
                format!("{date},50,BONK,,,,,,,,Orca; BONKMint; {unknown}; {cut},b"),
                format!("{date},,,7,WIF,,,,,,Orca; WIFMint; {unknown}; {cut},b"),
            ]
        );
    }

    #[test]
    fn a_token_with_the_name_of_the_coin_is_not_the_coin() {
        let named = row("a", "buy", "sol", (Some("2"), Some("6")));
        let lines = written(Layout::Koinly, vec![vec![named]]);
        assert_eq!(lines[1], "2026-11-21 07:05:51 UTC,2,SOL,6,solMint,,,,,,Orca; solMint,a");
    }

    #[test]
    fn rows_at_different_values_are_swaps_of_their_own() {
        let lines = written(
            Layout::Cointracking,
            vec![vec![
                row("a", "sell", "=X", (Some("1"), Some("5"))),
                row("a", "buy", "Y", (Some("2"), Some("6"))),
                row("b", "buy", "Z", (None, Some("7"))),
            ]],
        );
        let date = "21.11.2026 07:05:51";
        let unknown = "a swap whose other side's value is not known";
        let expected = [
            "Type,Buy Amount,Buy Currency,Sell Amount,Sell Currency,Fee,Fee Currency,Exchange,\
             Trade-Group,Comment,Date,Liquidity pool (optional),Tx-ID (optional)"
                .to_owned(),
            format!("Trade,1,SOL,5,'=X,,,Orca,,Orca; =XMint,{date},,a"),
            format!("Trade,6,Y,2,SOL,,,Orca,,Orca; YMint,{date},,a"),
            format!("Deposit,7,Z,,,,,Orca,,Orca; ZMint; {unknown},{date},,b"),
        ];
        assert_eq!(lines, expected);
    }
}
