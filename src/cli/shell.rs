//! `blotter completions` and `blotter man`, generated from the flags.

use std::io::Write;

use clap::CommandFactory as _;

use super::args::Args;
use super::errors::CliError;

const NAME: &str = "blotter";

pub(super) fn completions(
    shell: clap_complete::Shell,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    // Into memory first: the generator panics if a write fails.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), NAME, &mut text);
    out.write_all(&text).map_err(CliError::Output)
}

/// The program's page, then one for each command; `man` shows them as one.
pub(super) fn man(out: &mut dyn Write) -> Result<(), CliError> {
    let mut program = Args::command();
    program.build();
    let mut text = Vec::new();
    let pages = std::iter::once(program.clone())
        .chain(program.get_subcommands().filter(|command| command.get_name() != "help").cloned());
    for command in pages {
        clap_mangen::Man::new(command).render(&mut text).map_err(CliError::Output)?;
    }
    out.write_all(&text).map_err(CliError::Output)
}
