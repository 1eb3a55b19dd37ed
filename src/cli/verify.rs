//! `blotter verify`: a wallet's trades against what the node says it holds, and against what
//! another node tells of the same wallet.
//!
//! Transfers that are no trades are not read: what a wallet was sent, sent on, was paid as a reward
//! or lost as a fee is the difference that is told, token by token.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;

use super::args::VerifyArgs;
use super::config::Config;
use super::config_chains::{ChainLayer, Endpoint};
use super::demo::Scratch;
use super::errors::CliError;
use super::numbers::Number;
use super::output::{TradeLine, printable};
use super::progress::Progress;
use super::reading::{Context, Reading, RowSink};
use super::secret::SecretUrl;
use super::sources::sources;
use super::table::{self, Align};
use crate::domain::{Address, Decimal, Units};
use crate::pnl::Signed;
use crate::upstream::{Lane, Priority, TokenMeta};

/// Tokens asked for at once.
const TOKENS_AT_ONCE: usize = 500;
/// Differences that are written out.
const SHOWN_MAX: usize = 20;

pub(super) fn run(
    args: &VerifyArgs,
    context: &Context<'_>,
    runtime: &Runtime,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let reading = Reading::new(context, &args.wallet, None)?;
    let rows = read(&reading, context, runtime)?;
    let tokens = runtime.block_on(held(&reading, context, &rows))?;
    let differences = match &args.against {
        Some(url) => Some(against(url, args, context, runtime, &rows)?),
        None => None,
    };
    let report = Report {
        wallet: reading.wallet.address.to_string(),
        chain: reading.chain.slug.clone(),
        trades: rows.count,
        tokens,
        differences: differences.clone(),
    };
    let text = if args.json {
        serde_json::to_string_pretty(&report)
            .map(|text| text + "\n")
            .map_err(|error| CliError::failed("the result cannot be written", error))?
    } else {
        report.table()
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    match differences.map_or(0, |found| found.len()) {
        0 => Ok(()),
        count => Err(CliError::plain(format!("the other node tells {count} rows otherwise"))),
    }
}

fn read(reading: &Reading<'_>, context: &Context<'_>, runtime: &Runtime) -> Result<Rows, CliError> {
    let mut rows = Rows::default();
    let progress = Progress::start(context.quiet);
    let outcome = runtime.block_on(reading.read(&mut rows, &progress, None))?;
    match outcome.short {
        Some(short) => Err(short),
        None => Ok(rows),
    }
}

/// The rows by what names them, and what they add up to.
#[derive(Default)]
struct Rows {
    count: u64,
    tokens: BTreeMap<String, Moved>,
    facts: BTreeMap<Name, Fact>,
}

/// Signature, side and mint: a transaction has one row a token.
type Name = (String, String, String);
/// The other fields: amount, native value, venue and time.
type Fact = [String; 4];

#[derive(Default)]
struct Moved {
    symbol: String,
    /// Amounts bought and sold; `None` once one is not told.
    bought: Vec<Number>,
    sold: Vec<Number>,
    untold: u64,
}

impl RowSink for Rows {
    fn rows(&mut self, rows: Vec<TradeLine>, _cursor: &str) -> Result<(), CliError> {
        for row in rows {
            let text = |number: &Option<Box<RawValue>>| {
                number.as_deref().map_or("null", RawValue::get).to_owned()
            };
            self.count += 1;
            let fact = [text(&row.amount), text(&row.amount_sol), row.dex, row.block_time];
            let moved = self.tokens.entry(row.token_mint.clone()).or_default();
            let amount = row.amount.as_deref().and_then(|number| Number::parse(number.get()));
            match amount {
                None => moved.untold += 1,
                Some(amount) if row.side == "buy" => moved.bought.push(amount),
                Some(amount) => moved.sold.push(amount),
            }
            moved.symbol = row.token;
            self.facts.insert((row.signature, row.side, row.token_mint), fact);
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        self.count
    }
}

#[derive(Serialize)]
struct Report {
    wallet: String,
    chain: String,
    trades: u64,
    tokens: Vec<TokenReport>,
    /// Null where no second node was asked.
    differences: Option<Vec<Difference>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenReport {
    token: String,
    token_mint: String,
    /// Bought less sold.
    by_trades: Option<Box<RawValue>>,
    /// What the node says the wallet holds; null where it does not tell.
    held: Option<Box<RawValue>>,
    /// Held less by trades: came and went by other ways than trades.
    not_by_trades: Option<Box<RawValue>>,
    /// Rows whose amount is not told.
    without_amount: u64,
    verdict: &'static str,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Difference {
    signature: String,
    side: String,
    token_mint: String,
    /// `only here`, `only there`, or the fields that differ.
    what: String,
}

/// Asks the configured nodes for what the wallet holds of every token that it traded.
async fn held(
    reading: &Reading<'_>,
    context: &Context<'_>,
    rows: &Rows,
) -> Result<Vec<TokenReport>, CliError> {
    let all = sources(context.config, context.registry, context.transport)?;
    let wallet = reading.wallet;
    let source = all.get(&wallet.chain).ok_or_else(|| {
        CliError::Usage(format!("{} is switched off in the configuration", reading.chain.slug))
    })?;
    let lane = Lane::new(0, Arc::new(Priority::interactive()));
    let untellable =
        |error| CliError::failed("the node does not tell what the wallet holds", error);
    let family = reading.chain.family;
    let (mut reports, mints): (Vec<TokenReport>, Vec<&String>) =
        (Vec::new(), rows.tokens.keys().collect());
    for group in mints.chunks(TOKENS_AT_ONCE) {
        let parsed = |mint: &&String| match mint.parse().ok().filter(|n| Address::is_tron_asset(*n))
        {
            Some(number) => Ok(Address::tron_asset(number)),
            None => Address::parse(family, mint),
        };
        let addresses: Result<Vec<Address>, _> = group.iter().map(parsed).collect();
        let addresses =
            addresses.map_err(|error| CliError::failed("a mint cannot be read", error))?;
        let balances =
            source.balances(wallet.address, &addresses, &lane).await.map_err(untellable)?;
        let metas = source.tokens(&addresses, &lane).await.map_err(untellable)?;
        for ((mint, address), balance) in group.iter().zip(&addresses).zip(balances) {
            let meta = metas.iter().find(|meta| meta.mint == *address);
            if let Some(moved) = rows.tokens.get(*mint) {
                reports.push(moved.report(mint, meta, balance));
            }
        }
    }
    Ok(reports)
}

impl Moved {
    fn report(&self, mint: &str, meta: Option<&TokenMeta>, balance: Option<Units>) -> TokenReport {
        let decimals = meta.and_then(|meta| meta.decimals);
        let sum = |numbers: &[Number], decimals| {
            numbers
                .iter()
                .try_fold(Units::ZERO, |sum, number| sum.checked_add(number.scaled(decimals)?))
        };
        let net = decimals.and_then(|decimals| {
            Some(Signed::difference(sum(&self.bought, decimals)?, sum(&self.sold, decimals)?))
        });
        let mut rest = None;
        if let (Some(net), Some(balance)) = (net, balance) {
            // Held, plus what was sold, less what was bought.
            let mut sum = Signed::difference(balance, Units::ZERO);
            sum += net.negated();
            rest = Some(sum);
        }
        let raw = |text: String| RawValue::from_string(text).ok();
        let signed = |sum: Option<Signed>| {
            let (sum, decimals) = sum.zip(decimals)?;
            raw(sum.decimal(decimals).to_string())
        };
        let held = balance.zip(decimals);
        let held = held.and_then(|(units, decimals)| raw(Decimal { units, decimals }.to_string()));
        let verdict = match rest {
            _ if self.untold > 0 => "rows without an amount: nothing can be said",
            None => "the node does not tell what is held",
            Some(rest) if rest == Signed::ZERO => "agrees",
            Some(rest) if rest.is_positive() => {
                "more is held: transfers in, rewards, or trades before"
            }
            Some(_) => "less is held: transfers out, burns, or fees of the token",
        };
        TokenReport {
            token: self.symbol.clone(),
            token_mint: mint.to_owned(),
            by_trades: signed(net),
            held,
            not_by_trades: signed(rest).filter(|_| self.untold == 0),
            without_amount: self.untold,
            verdict,
        }
    }
}

/// Reads the wallet once more from another node alone, into a folder that goes again.
fn against(
    url: &str,
    args: &VerifyArgs,
    context: &Context<'_>,
    runtime: &Runtime,
    rows: &Rows,
) -> Result<Vec<Difference>, CliError> {
    let chain = context.chain(&args.wallet.chain)?;
    let node =
        SecretUrl::parse(url).map_err(|reason| CliError::Usage(format!("--against: {reason}")))?;
    let scratch = Scratch::new()?;
    let mut config = Config::clone(context.config);
    scratch.path().clone_into(&mut config.storage.path);
    let layer = ChainLayer { rpc: Some(vec![Endpoint::plain(node)]), ..ChainLayer::default() };
    config.chains.insert(chain.slug.clone(), layer);
    let context = Context { config: &config, ..*context };
    let mut wallet = args.wallet.clone();
    wallet.url = None;
    let reading = Reading::of_nodes(&context, &wallet)?;
    let others = read(&reading, &context, runtime)?;
    Ok(compare(&rows.facts, &others.facts))
}

fn compare(here: &BTreeMap<Name, Fact>, there: &BTreeMap<Name, Fact>) -> Vec<Difference> {
    let difference = |name: &Name, what: &str| Difference {
        signature: name.0.clone(),
        side: name.1.clone(),
        token_mint: name.2.clone(),
        what: what.to_owned(),
    };
    let mut found = Vec::new();
    for (name, fact) in here {
        let Some(other) = there.get(name) else {
            found.push(difference(name, "only here"));
            continue;
        };
        let fields = ["amount", "amountSol", "dex", "blockTime"];
        let differing: Vec<String> = fields
            .iter()
            .zip(fact.iter().zip(other))
            .filter(|(_, (one, other))| one != other)
            .map(|(field, (one, other))| format!("{field}: {one} here, {other} there"))
            .collect();
        if !differing.is_empty() {
            found.push(difference(name, &differing.join("; ")));
        }
    }
    let missing = there.keys().filter(|name| !here.contains_key(*name));
    found.extend(missing.map(|name| difference(name, "only there")));
    found
}

impl Report {
    fn table(&self) -> String {
        let number = |number: &Option<Box<RawValue>>| {
            number.as_ref().map_or_else(|| "?".to_owned(), |number| number.get().to_owned())
        };
        let rows: Vec<Vec<String>> = self
            .tokens
            .iter()
            .map(|token| {
                vec![
                    printable(&token.token),
                    number(&token.by_trades),
                    number(&token.held),
                    number(&token.not_by_trades),
                    token.verdict.to_owned(),
                    printable(&token.token_mint),
                ]
            })
            .collect();
        let (left, right) = (Align::Left, Align::Right);
        let columns = [
            ("TOKEN", left),
            ("BY TRADES", right),
            ("HELD", right),
            ("NOT BY TRADES", right),
            ("", left),
            ("MINT", left),
        ];
        let mut text = table::format(&columns, &rows);
        let agree = self.tokens.iter().filter(|token| token.verdict == "agrees").count();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n{} trades in {} tokens; {agree} agree with what is held. Transfers are not read: what \
             came or went by them is the difference.",
            self.trades,
            self.tokens.len()
        );
        match &self.differences {
            None => {}
            Some(found) if found.is_empty() => {
                text.push_str("The other node tells the same rows.\n")
            }
            Some(found) => {
                for difference in found.iter().take(SHOWN_MAX) {
                    let Difference { signature, side, token_mint, what } = difference;
                    let _ = writeln!(text, "{signature} {side} {token_mint}: {}", printable(what));
                }
                if found.len() > SHOWN_MAX {
                    let _ = writeln!(text, "… and {} more", found.len() - SHOWN_MAX);
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(amount: &str) -> Fact {
        [amount, "1", "Orca", "t"].map(str::to_owned)
    }

    #[test]
    fn every_difference_is_found() {
        let name = |text: &str| (text.to_owned(), "buy".to_owned(), "M".to_owned());
        let here = BTreeMap::from([(name("a"), fact("1")), (name("b"), fact("2"))]);
        let there = BTreeMap::from([(name("b"), fact("3")), (name("c"), fact("4"))]);
        let found: Vec<(String, String)> =
            compare(&here, &there).into_iter().map(|d| (d.signature, d.what)).collect();
        let expected = [("a", "only here"), ("b", "amount: 2 here, 3 there"), ("c", "only there")];
        assert_eq!(found, expected.map(|(one, other)| (one.to_owned(), other.to_owned())));
        assert!(compare(&here, &here).is_empty());
    }

    #[test]
    fn what_is_held_is_split_into_trades_and_the_rest() {
        let number = |text| Number::parse(text).unwrap();
        let moved = Moved {
            symbol: "T".to_owned(),
            bought: vec![number("1.5"), number("2")],
            sold: vec![number("3")],
            untold: 0,
        };
        let mint = Address::Evm([1; 20]);
        let meta = TokenMeta { mint, symbol: None, decimals: Some(2) };
        let told = |balance: Option<u64>| {
            let report = moved.report("M", Some(&meta), balance.map(Units::from));
            let text = |number: Option<Box<RawValue>>| number.map(|number| number.get().to_owned());
            (text(report.by_trades), text(report.not_by_trades), report.verdict)
        };
        let net = Some("0.5".to_owned());
        assert_eq!(told(Some(50)), (net.clone(), Some("0".to_owned()), "agrees"));
        assert_eq!(told(Some(20)).1, Some("-0.3".to_owned()));
        assert_eq!(told(Some(51)).1, Some("0.01".to_owned()));
        assert_eq!(told(None), (net, None, "the node does not tell what is held"));
    }
}
