//! `blotter pnl`: the gains of a wallet's trades in a period, and its open positions.
//!
//! The figures are computed from the rows as served, so the data folder and a server give the same.

mod output;

use std::io::Write;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use super::output::RowSink;
use crate::api::read_time;
use crate::cli::args::{PnlArgs, PnlFormat};
use crate::cli::config::numbers;
use crate::cli::errors::CliError;
use crate::cli::output::TradeLine;
use crate::cli::progress::ProgressLine;
use crate::cli::reading::{Context, WalletReading};
use crate::cli::serve::print_notice;
use crate::domain::{Address, Family, Side, TxId};
use crate::pnl::{Count, CountStep, LedgerRow, Report, ReportSubject, TradeLedger};
use output::Output;

pub(super) fn run(
    args: &PnlArgs,
    context: &Context<'_>,
    runtime: &Runtime,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let period = args.period();
    if period.from.zip(period.to).is_some_and(|(from, to)| to <= from) {
        return Err(CliError::Usage("--to has to be later than --from".to_owned()));
    }
    let reading = WalletReading::new(context, &args.wallet, None)?;
    let mut rows = Rows::new(&reading, args.disposals);
    let progress = ProgressLine::start(context.quiet);
    let outcome = runtime.block_on(reading.read(&mut rows, &progress, None));
    drop(progress);
    let outcome = outcome?;
    // Gains of a partial history would be wrong: what was sold was bought before.
    if let Some(short) = outcome.short {
        return Err(short);
    }
    if let Some(note) = outcome.values_note().filter(|_| !context.quiet) {
        print_notice(&note);
    }
    let chain = &reading.chain;
    let subject = ReportSubject {
        wallet: reading.wallet.address.to_string(),
        chain: chain.slug.clone(),
        native: chain.native.symbol.clone(),
        native_decimals: chain.native.decimals,
        values_pending: outcome.values_pending,
        first_trade: outcome.ending.first_trade.as_deref().and_then(read_time),
    };
    let (ledger, method) = (Arc::new(rows.ledger), args.method);
    let count = || Count::new(Arc::clone(&ledger), method, period);
    let output = Output::new(subject, report(count()), count);
    write(args, &output, context.colour_on_stdout(), out)
        .and_then(|()| out.flush())
        .map_err(CliError::Output)
}

fn write<C: Fn() -> Count>(
    args: &PnlArgs,
    output: &Output<C>,
    colour: bool,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match (args.format, args.disposals) {
        (PnlFormat::Table, false) => out.write_all(output.table(colour).as_bytes()),
        (PnlFormat::Table, true) => out.write_all(output.disposals_table().as_bytes()),
        (PnlFormat::Json, with_disposals) => output.json(with_disposals, out),
        (PnlFormat::Csv, false) => out.write_all(output.csv().as_bytes()),
        (PnlFormat::Csv, true) => output.disposals_csv(out),
    }
}

fn report(mut count: Count) -> Report {
    while !matches!(count.step(), CountStep::All) {}
    count.report()
}

struct Rows {
    family: Family,
    native_decimals: u8,
    ledger: TradeLedger,
}

impl Rows {
    fn new(reading: &WalletReading<'_>, disposals: bool) -> Self {
        let ledger =
            if disposals { TradeLedger::with_transactions() } else { TradeLedger::default() };
        let native_decimals = reading.chain.native.decimals;
        Self { family: reading.chain.family, native_decimals, ledger }
    }

    fn take(&mut self, line: TradeLine) -> Option<()> {
        let number = |number: &Option<Box<RawValue>>| match number {
            Some(number) => numbers::decimal(number.get()).map(Some),
            None => Some(None),
        };
        let side = Side::ALL.into_iter().find(|side| side.name() == line.side)?;
        let amount = number(&line.amount)?;
        let native = match number(&line.amount_sol)? {
            Some(value) => Some(value.scaled(self.native_decimals)?),
            None => None,
        };
        let row = LedgerRow {
            mint: Address::parse_token(self.family, &line.token_mint).ok()?,
            side,
            time: read_time(&line.block_time)?,
            amount,
            native,
            tx: TxId::parse(self.family, &line.signature)?,
        };
        self.ledger.push(&row, || line.token);
        Some(())
    }
}

impl RowSink for Rows {
    fn rows(&mut self, rows: Vec<TradeLine>, _cursor: &str) -> Result<(), CliError> {
        for line in rows {
            let signature = line.signature.clone();
            self.take(line)
                .ok_or_else(|| CliError::plain(format!("the row of {signature} cannot be read")))?;
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        u64::try_from(self.ledger.len()).unwrap_or(u64::MAX)
    }
}
