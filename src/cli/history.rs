//! `blotter history`: writes one wallet's trades in one of several formats to stdout or a file.

use tokio::runtime::Runtime;

use super::args::{Format, HistoryArgs};
use super::destination::Destination;
use super::errors::CliError;
use super::export::{Export, ExportSubject};
use super::progress::ProgressLine;
use super::reading::{Context, WalletReading};
use super::serve;
use super::target::Target;

pub(super) fn run(
    args: &HistoryArgs,
    context: &Context<'_>,
    runtime: &Runtime,
) -> Result<(), CliError> {
    let reading = WalletReading::new(context, &args.wallet, args.limit)?;
    let output = Destination::of(args.output.as_deref())?;
    let subject = ExportSubject {
        wallet: reading.wallet.address.to_string(),
        chain: reading.chain.slug.clone(),
        native: reading.chain.native.symbol.clone(),
        format: args.format(),
        limit: args.limit,
    };
    let resumed = if args.resume {
        let path = output.file().ok_or_else(|| {
            CliError::Usage("--resume goes on with the file of --output: name one".to_owned())
        })?;
        Export::resume(&subject, path, |cursor| reading.accepts(cursor))?
    } else {
        None
    };
    let mut export = if let Some(export) = resumed {
        export
    } else {
        if args.resume && !context.quiet {
            serve::print_notice(
                "nothing is there to go on from: the history is read from its beginning",
            );
        }
        let target = Target::open(&output)?;
        let on_terminal = target.is_terminal();
        if on_terminal && subject.format == Format::Parquet {
            return Err(CliError::Usage(
                "parquet is no text: give it a file with --output".to_owned(),
            ));
        }
        let colour = on_terminal && context.environment.get("NO_COLOR").is_none();
        Export::begin(subject, target, output.file(), colour)?
    };
    let progress = ProgressLine::start(context.quiet || export.is_on_terminal());
    let resume = export.cursor();
    let result = runtime.block_on(reading.read(&mut export, &progress, resume));
    drop(progress);
    match result {
        Ok(outcome) => {
            if !context.quiet {
                outcome.notes().for_each(|line| serve::print_notice(&line));
            }
            export.end(outcome.ending, outcome.short)
        }
        Err(error) => {
            export.abandon();
            Err(error)
        }
    }
}
