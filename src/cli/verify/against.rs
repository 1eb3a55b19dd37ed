//! Compares the rows of a wallet with those from another node.

use std::collections::BTreeMap;

use serde::Serialize;
use tokio::runtime::Runtime;

use super::rows::{self, ComparedFields, ComparedKey, ComparedRows};
use crate::cli::args::VerifyArgs;
use crate::cli::chains::check;
use crate::cli::config::Config;
use crate::cli::config::chains::{ChainLayer, NodeSetting};
use crate::cli::config::choices::StorageEngine;
use crate::cli::config::secret::ConfigUrl;
use crate::cli::demo::Scratch;
use crate::cli::errors::CliError;
use crate::cli::http_get::require_private;
use crate::cli::reading::{Context, WalletReading};

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Difference {
    pub(super) signature: String,
    pub(super) side: String,
    pub(super) token_mint: String,
    /// `only here`, `only there`, or the fields that differ.
    pub(super) what: String,
}

/// The other node. Fails early if it does not respond, since a reading would wait much longer.
pub(super) fn node(
    url: &str,
    args: &VerifyArgs,
    context: &Context<'_>,
    runtime: &Runtime,
) -> Result<NodeSetting, CliError> {
    let node =
        ConfigUrl::parse(url).map_err(|reason| CliError::Usage(format!("--against: {reason}")))?;
    require_private("--against", &node, args.wallet.source.insecure)?;
    let (node, chain) = (NodeSetting::plain(node), context.chain(&args.wallet.source.chain)?);
    runtime.block_on(check::reach(chain, &node, context.transport)).map_err(|error| {
        CliError::failed("the node of --against cannot be used: name another one", error)
    })?;
    Ok(node)
}

/// Reads the wallet from the other node alone, into a temporary folder, and compares the rows.
pub(super) fn against(
    node: NodeSetting,
    args: &VerifyArgs,
    context: &Context<'_>,
    runtime: &Runtime,
    rows: &ComparedRows,
) -> Result<Vec<Difference>, CliError> {
    let chain = context.chain(&args.wallet.source.chain)?;
    let scratch = Scratch::new()?;
    let mut config = Config::clone(context.config);
    scratch.path.clone_into(&mut config.storage.path);
    // Not the database, which holds the rows to compare with.
    config.storage.engine = StorageEngine::File;
    let layer = ChainLayer { rpc: Some(vec![node]), ..ChainLayer::default() };
    config.chains.insert(chain.slug.clone(), layer);
    let context = Context { config: &config, ..*context };
    let mut wallet = args.wallet.clone();
    wallet.source.url = None;
    let reading = WalletReading::of_nodes(&context, &wallet)?;
    let mut others = rows::read(&reading, &context, runtime, true)?;
    if let Some(short) = others.short.take() {
        return Err(short);
    }
    let (here, there) = (rows.fields.as_ref(), others.fields.as_ref());
    Ok(here.zip(there).map(|(here, there)| compare(here, there)).unwrap_or_default())
}

fn compare(
    here: &BTreeMap<ComparedKey, ComparedFields>,
    there: &BTreeMap<ComparedKey, ComparedFields>,
) -> Vec<Difference> {
    let difference = |name: &ComparedKey, what: &str| Difference {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(amount: &str) -> ComparedFields {
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
}
