//! `blotter verify`: compares a wallet's trades and transfers with the balances that the node
//! reports, and with the rows that another node gives for the same wallet.
//!
//! Trades are the stored or served rows; transfers come from the transactions, read again. So both
//! a missing row and a missing transaction show as a residue.

mod against;
mod moves;
mod report;
mod rows;

use std::collections::BTreeMap;
use std::io::Write;

use tokio::runtime::Runtime;

use crate::cli::args::VerifyArgs;
use crate::cli::config::Config;
use crate::cli::coverage_note::CoverageNote;
use crate::cli::errors::CliError;
use crate::cli::reading::{Context, WalletReading};
use crate::cli::serve;
use crate::domain::Address;
use crate::history::Repaired;
use against::{against, node};
use moves::WalletNodes;
use report::{Comparison, TokenComparison, note};
use rows::ComparedRows;

pub(super) fn run(
    args: &VerifyArgs,
    context: &Context<'_>,
    runtime: &Runtime,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let reading = WalletReading::new(context, &args.wallet, None)?;
    if reading.is_remote() {
        require_own_nodes(context.config, &reading.chain.slug)?;
    }
    let other = args.against.as_deref().map(|url| node(url, args, context, runtime)).transpose()?;
    if args.repair {
        let repaired = runtime.block_on(repair(&reading, context))?;
        serve::print_notice(&repaired);
    }
    let rows = rows::read(&reading, context, runtime, args.against.is_some())?;
    let (transactions, tokens) = runtime.block_on(compare_tokens(&reading, context, &rows))?;
    let differences = match other {
        Some(node) => Some(against(node, args, context, runtime, &rows)?),
        None => None,
    };
    let doubts = rows.coverage.iter().flat_map(CoverageNote::doubts);
    let report = Comparison {
        wallet: reading.wallet.address.to_string(),
        chain: reading.chain.slug.clone(),
        trades: rows.count,
        transactions,
        tokens,
        complete: rows.coverage.as_ref().map(CoverageNote::is_complete),
        doubts: doubts.map(str::to_owned).collect(),
        note: note(reading.chain.family),
        differences,
    };
    let text = if args.json {
        serde_json::to_string_pretty(&report)
            .map(|text| text + "\n")
            .map_err(|error| CliError::failed("the result cannot be written", error))?
    } else {
        report.table(args.all)
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    let open = rows.coverage.iter().filter(|note| !note.is_complete() && !args.json);
    open.flat_map(CoverageNote::lines).for_each(|line| serve::print_notice(&line));
    match report.differences.as_ref().map_or(0, Vec::len) {
        0 if report.is_void() => Err(void(&reading.chain.slug)),
        0 => rows.short.map_or(Ok(()), Err),
        count => Err(CliError::plain(format!("the other node returns {count} rows otherwise"))),
    }
}

fn void(slug: &str) -> CliError {
    let variable = slug.to_uppercase();
    CliError::plain(format!(
        "no token could be held against the chain, for the reason that stands with each; where the \
         node does not report what is needed, name another one by BLOTTER_CHAINS_{variable}_RPC or by \
         rpc in [chains.{slug}]"
    ))
}

/// Requires configured nodes for a remote history: `verify` reads the transactions from nodes in
/// any case, and would expose the wallet to the default public ones.
fn require_own_nodes(config: &Config, slug: &str) -> Result<(), CliError> {
    if config.chains.get(slug).is_some_and(|chain| chain.rpc.is_some()) {
        return Ok(());
    }
    let variable = slug.to_uppercase();
    Err(CliError::Usage(format!(
        "with --url (or BLOTTER_URL), verify still reads the wallet's transactions from nodes, and no \
         endpoint of {slug} is configured: the default public nodes would learn of the wallet. Name \
         the nodes to ask by BLOTTER_CHAINS_{variable}_RPC or by rpc in [chains.{slug}]"
    )))
}

/// Reads all covered heights again.
async fn repair(reading: &WalletReading<'_>, context: &Context<'_>) -> Result<String, CliError> {
    if reading.is_remote() {
        return Err(CliError::Usage(
            "--repair works on the data folder: leave out --url and BLOTTER_URL".to_owned(),
        ));
    }
    let engine = context.engine().await?;
    let repaired = engine.history.repair(reading.wallet).await;
    engine.close().await?;
    let Repaired { heights, missing, unseen } = repaired
        .map_err(|error| CliError::failed("the finished heights cannot be read again", error))?;
    Ok(format!(
        "read {heights} heights again: {missing} missing transactions stored, {unseen} stored \
         transactions were not seen again"
    ))
}

/// Compares every token that was traded or moved, those with a residue first.
async fn compare_tokens(
    reading: &WalletReading<'_>,
    context: &Context<'_>,
    rows: &ComparedRows,
) -> Result<(u64, Vec<TokenComparison>), CliError> {
    let nodes = WalletNodes::new(reading, context)?;
    let (transactions, moved) = nodes.transactions().await?;
    let mut by_rows = BTreeMap::new();
    for (mint, sums) in &rows.tokens {
        let mint = Address::parse_token(reading.chain.family, mint)
            .map_err(|error| CliError::failed("a mint cannot be read", error))?;
        by_rows.insert(mint, sums);
    }
    let mut mints: Vec<Address> = by_rows.keys().chain(moved.keys()).copied().collect();
    mints.sort_unstable();
    mints.dedup();
    let held = nodes.held(&mints).await?;
    let report = |mint: &Address| {
        let moved = moved.get(mint).copied().unwrap_or_default();
        Some(TokenComparison::new(*mint, by_rows.get(mint).copied(), &moved, held.get(mint)?))
    };
    let mut tokens: Vec<TokenComparison> = mints.iter().filter_map(report).collect();
    tokens.sort_by_key(TokenComparison::rank);
    Ok((transactions, tokens))
}
