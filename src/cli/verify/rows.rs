//! The rows that `blotter verify` compares, summed by token.

use std::collections::BTreeMap;

use tokio::runtime::Runtime;

use crate::cli::config::numbers;
use crate::cli::coverage_note::CoverageNote;
use crate::cli::errors::CliError;
use crate::cli::output::{RowSink, TradeLine, number_text};
use crate::cli::progress::ProgressLine;
use crate::cli::reading::{Context, WalletReading};
use crate::domain::{Decimal, Units};
use crate::history::Sum;

/// Signature, side and mint, which identify a row.
pub(super) type ComparedKey = (String, String, String);
/// The other fields: amount, native value, venue and time.
pub(super) type ComparedFields = [String; 4];

/// The sums of the rows, and each row if they are to be compared.
#[derive(Default)]
pub(in crate::cli) struct ComparedRows {
    pub(in crate::cli) count: u64,
    pub(in crate::cli) tokens: BTreeMap<String, TokenSums>,
    pub(in crate::cli) fields: Option<BTreeMap<ComparedKey, ComparedFields>>,
    pub(in crate::cli) coverage: Option<CoverageNote>,
    /// Why rows may be missing although all heights were read.
    pub(in crate::cli) short: Option<CliError>,
}

#[derive(Debug, Default)]
pub(in crate::cli) struct TokenSums {
    pub(in crate::cli) symbol: String,
    pub(super) bought: ByDigits,
    pub(super) sold: ByDigits,
    pub(in crate::cli) without_amount: u64,
}

/// Sums by number of decimals, which varies as amounts have no trailing zeros.
pub(super) type ByDigits = BTreeMap<u8, Sum>;

impl TokenSums {
    pub(in crate::cli) fn add(&mut self, is_buy: bool, amount: Option<Decimal>) {
        let Some(amount) = amount else {
            self.without_amount += 1;
            return;
        };
        let sums = if is_buy { &mut self.bought } else { &mut self.sold };
        sums.entry(amount.decimals).or_default().add(amount.units);
    }
}

/// `None` if the token has fewer decimals than its rows, or the sum overflows.
pub(super) fn scaled(sums: &ByDigits, decimals: u8) -> Option<Units> {
    sums.iter().try_fold(Units::ZERO, |all, (digits, sum)| {
        let number = Decimal { units: sum.units()?, decimals: *digits };
        all.checked_add(number.scaled(decimals)?)
    })
}

impl RowSink for ComparedRows {
    fn rows(&mut self, rows: Vec<TradeLine>, _cursor: &str) -> Result<(), CliError> {
        for row in rows {
            let text = |number| number_text(number, "null").to_owned();
            self.count += 1;
            let (amount, value) = (row.amount.as_deref(), row.amount_sol.as_deref());
            let fact = [text(amount), text(value), row.dex, row.block_time];
            let sums = self.tokens.entry(row.token_mint.clone()).or_default();
            sums.add(row.side == "buy", amount.and_then(|text| numbers::decimal(text.get())));
            sums.symbol = row.token;
            if let Some(fields) = &mut self.fields {
                fields.insert((row.signature, row.side, row.token_mint), fact);
            }
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        self.count
    }
}

/// `each` keeps every row for comparison.
pub(super) fn read(
    reading: &WalletReading<'_>,
    context: &Context<'_>,
    runtime: &Runtime,
    each: bool,
) -> Result<ComparedRows, CliError> {
    let mut rows = ComparedRows { fields: each.then(BTreeMap::new), ..ComparedRows::default() };
    let progress = ProgressLine::start(context.quiet);
    let outcome = runtime.block_on(reading.read(&mut rows, &progress, None))?;
    rows.coverage = outcome.coverage;
    // If all heights were read, the rows can be checked even without proof of completeness.
    let is_read = rows.coverage.as_ref().is_some_and(CoverageNote::is_read);
    match outcome.short {
        Some(short) if !is_read => Err(short),
        short => {
            rows.short = short;
            Ok(rows)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_different_decimals_add_up() {
        let mut sums = TokenSums::default();
        for text in ["1.5", "2", "0.25", "1.5"] {
            sums.add(true, numbers::decimal(text));
        }
        sums.add(false, numbers::decimal("3"));
        sums.add(false, None);
        assert_eq!(scaled(&sums.bought, 2), Some(Units::from(525)));
        assert_eq!(scaled(&sums.sold, 2), Some(Units::from(300)));
        assert_eq!(scaled(&sums.bought, 1), None, "a quarter has no place in tenths");
        assert_eq!(sums.without_amount, 1);
    }
}
