//! `blotter chains --check`: probes each endpoint.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;

use super::probe::{CheckedEndpoint, Finding, ProbeTarget};
use super::probe_tron::KEY_HEADER;
use crate::cli::config::Config;
use crate::cli::config::chains::{ChainLayer, NodeSetting};
use crate::cli::errors::CliError;
use crate::cli::sources::{self, ChainLists, Nodes, is_on, pool};
use crate::registry::{Chain, Registry};
use crate::rpc::{CallOptions, Lane, PoolLimits, Priority, Transport};
use crate::sources::AbilityKind;

// Few attempts with a short timeout: a check shows an endpoint's current state.
const TRIES_MAX: u32 = 2;
const TRY_TIME_MAX: Duration = Duration::from_secs(10);

/// An explorer or a gateway of a chain, which is not probed.
#[derive(Debug, Serialize)]
struct Listed {
    chain: String,
    /// The name in `discovery`.
    kind: &'static str,
    endpoint: String,
    probed: bool,
}

/// Probes the endpoints of the chains of [`chains_to_check`].
pub(in crate::cli) async fn run(
    as_json: bool,
    config: &Config,
    registry: &Registry,
    transport: &Arc<dyn Transport>,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let (mut all, mut lists) = (Vec::new(), Vec::new());
    for chain in chains_to_check(config, registry) {
        let found = ChainLists::of(config, chain)?;
        // All endpoints before one is shown: the advice on one depends on the others.
        let mut endpoints = Vec::new();
        for endpoint in sources::endpoints(config, chain)? {
            endpoints.push(check(chain, &endpoint, transport).await?);
        }
        let (endpoints, listed) = (advise(endpoints, &found), listed(chain, &found));
        if !as_json {
            write_chain(&endpoints, &listed, out).map_err(CliError::Output)?;
        }
        all.extend(endpoints);
        lists.extend(listed);
    }
    if as_json {
        let text = json!({ "endpoints": all, "lists": lists });
        writeln!(out, "{text}").map_err(CliError::Output)?;
    }
    let dead = all.iter().filter(|checked| !checked.usable).count();
    if dead > 0 {
        return Err(CliError::plain(format!("{dead} of {} endpoints cannot be used", all.len())));
    }
    Ok(())
}

fn listed(chain: &Chain, lists: &ChainLists) -> Vec<Listed> {
    let both = [("explorer", &lists.explorer), ("portal", &lists.portal)];
    let there = both.into_iter().filter_map(|(kind, list)| Some((kind, list.as_ref()?)));
    let row = |(kind, list): (&'static str, &NodeSetting)| Listed {
        chain: chain.slug.clone(),
        kind,
        endpoint: list.url.host(),
        probed: false,
    };
    there.map(row).collect()
}

fn write_chain(
    endpoints: &[CheckedEndpoint],
    lists: &[Listed],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for checked in endpoints {
        write_lines(checked, out)?;
    }
    for Listed { chain, kind, endpoint, .. } in lists {
        writeln!(
            out,
            "{chain}  {endpoint}  {kind}, not probed: it is asked when a wallet is read"
        )?;
    }
    out.flush()
}

fn write_lines(checked: &CheckedEndpoint, out: &mut dyn Write) -> std::io::Result<()> {
    let state = if checked.usable { "usable" } else { "NOT usable" };
    let latency = checked.latency_ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
    writeln!(out, "{}  {}  {state}{latency}", checked.chain, checked.endpoint)?;
    for finding in &checked.results {
        let mark = if finding.ok { "yes" } else { "no " };
        writeln!(out, "    {mark}  {}: {}", finding.what, finding.detail)?;
        if let Some((loses, configure)) = finding.loses.zip(finding.configure) {
            writeln!(out, "         without it {loses}; configure {configure}")?;
        }
    }
    Ok(())
}

/// Fails if an endpoint does not respond within a short time, or reports another chain.
pub(in crate::cli) async fn reach(
    chain: &Chain,
    endpoint: &NodeSetting,
    transport: &Arc<dyn Transport>,
) -> Result<(), CliError> {
    let (target, host) = (target(endpoint, transport)?, endpoint.url.host());
    let answer = target.reach(chain.family).await;
    let failed = || format!("{host} does not answer as a node of {}", chain.slug);
    answer.map_err(|error| CliError::failed(failed(), error))?;
    let other = target.other_chain(chain).await;
    other.map_or(Ok(()), |other| Err(CliError::plain(format!("{host}: {other}"))))
}

fn target(endpoint: &NodeSetting, transport: &Arc<dyn Transport>) -> Result<ProbeTarget, CliError> {
    let limits = PoolLimits {
        attempts_max: TRIES_MAX,
        retry_time_max: TRY_TIME_MAX,
        request_wait_max: TRY_TIME_MAX,
        unsupported_answers: 1,
        denied_answers: 1,
        unknown_rounds: 1,
        ..PoolLimits::default()
    };
    let pool = pool(std::slice::from_ref(endpoint), &Nodes::alone(transport), limits)?;
    Ok(ProbeTarget {
        pool,
        options: CallOptions::new(Lane::unowned(Priority::interactive())),
        has_tron_key: endpoint.headers.keys().any(|name| name.eq_ignore_ascii_case(KEY_HEADER)),
    })
}

async fn check(
    chain: &Chain,
    endpoint: &NodeSetting,
    transport: &Arc<dyn Transport>,
) -> Result<CheckedEndpoint, CliError> {
    let target = target(endpoint, transport)?;
    let started = Instant::now();
    let identity = target.identity(chain).await;
    let latency_ms = u64::try_from(started.elapsed().as_millis()).ok().filter(|_| identity.is_ok());
    let usable = identity.is_ok();
    let mut results = vec![Finding::of("is a node of this chain", identity)];
    if usable {
        results.extend(target.abilities(chain).await);
    }
    Ok(CheckedEndpoint {
        chain: chain.slug.clone(),
        endpoint: endpoint.url.host(),
        usable,
        latency_ms,
        results,
    })
}

/// Removes the advice on an ability for which the chain has an alternative: another method of this
/// endpoint, another endpoint, or a list that is queried first.
fn advise(mut endpoints: Vec<CheckedEndpoint>, lists: &ChainLists) -> Vec<CheckedEndpoint> {
    let results = endpoints.iter().flat_map(|checked| &checked.results);
    let offered: BTreeSet<AbilityKind> =
        results.filter(|finding| finding.ok).filter_map(|finding| finding.kind).collect();
    for finding in endpoints.iter_mut().flat_map(|checked| &mut checked.results) {
        if finding.kind.is_some_and(|kind| has_alternative(kind, &offered, lists)) {
            (finding.loses, finding.configure) = (None, None);
        }
    }
    endpoints
}

fn has_alternative(kind: AbilityKind, offered: &BTreeSet<AbilityKind>, lists: &ChainLists) -> bool {
    let (explorer, portal) = (lists.explorer.is_some(), lists.portal.is_some());
    match kind {
        AbilityKind::Traces | AbilityKind::States => {
            let either = [AbilityKind::Traces, AbilityKind::States];
            explorer || either.iter().any(|kind| offered.contains(kind))
        }
        AbilityKind::Logs | AbilityKind::AssetTransfers => {
            explorer || portal || offered.contains(&kind)
        }
        AbilityKind::SignatureLists
        | AbilityKind::TokenAccounts
        | AbilityKind::FullPages
        | AbilityKind::AccountLists
        | AbilityKind::InnerCalls
        | AbilityKind::Events => offered.contains(&kind),
    }
}

/// The enabled chains with a configured endpoint or list; if there are none, all enabled chains.
/// The public nodes of other chains do not matter to an operator with own endpoints.
fn chains_to_check<'a>(config: &Config, registry: &'a Registry) -> Vec<&'a Chain> {
    let is_own = |chain: &&Chain| {
        let has = |layer: &ChainLayer| layer.rpc.is_some() || layer.has_lists();
        config.chains.get(&chain.slug).is_some_and(has)
    };
    let on: Vec<&Chain> = registry.chains().iter().filter(|chain| is_on(config, chain)).collect();
    let own: Vec<&Chain> = on.iter().copied().filter(is_own).collect();
    if own.is_empty() { on } else { own }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cli::config::Flags;
    use crate::cli::config::secret::{ConfigSecret, ConfigUrl};
    use crate::demo::evm::tron::NodeOptions;
    use crate::demo::evm::{self, EvmModel, WalletPlan};
    use crate::demo::{DemoNode, DemoTransport};

    type Headers = BTreeMap<String, ConfigSecret>;

    async fn checked(node: DemoNode, chain: &Chain, headers: Headers) -> CheckedEndpoint {
        let transport = DemoTransport::new([("demo.test/node".to_owned(), node)]);
        let transport: Arc<dyn Transport> = Arc::new(transport);
        let url = ConfigUrl::parse("https://demo.test/node").unwrap();
        let endpoint = NodeSetting { headers, ..NodeSetting::plain(url) };
        check(chain, &endpoint, &transport).await.unwrap()
    }

    async fn checked_eth(options: evm::NodeOptions) -> CheckedEndpoint {
        let registry = Registry::embedded().unwrap();
        let chain = registry.chain_named("eth").unwrap();
        let node = DemoNode::evm(EvmModel::new(3, chain), 1);
        node.set_options(options);
        checked(node, chain, Headers::new()).await
    }

    /// The output of `chains --check` for an Ethereum node with these options.
    async fn eth_text(options: evm::NodeOptions, lists: &ChainLists) -> String {
        let registry = Registry::embedded().unwrap();
        let mut text = Vec::new();
        let endpoints = advise(vec![checked_eth(options).await], lists);
        let listed = listed(registry.chain_named("eth").unwrap(), lists);
        write_chain(&endpoints, &listed, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn explorer() -> ChainLists {
        let url = ConfigUrl::parse("https://index.test/api?apikey=word").unwrap();
        ChainLists { explorer: Some(NodeSetting::plain(url)), ..ChainLists::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn advice_is_given_only_where_nothing_serves_instead() {
        let whole = eth_text(evm::NodeOptions::default(), &ChainLists::default()).await;
        assert!(whole.contains("yes  traces (debug_traceTransaction): offered"), "{whole}");
        assert!(whole.contains("no   traces (trace_transaction)"), "{whole}");
        assert!(!whole.contains("amountSol is null"), "{whole}");
        let bare = || evm::NodeOptions {
            traces: false,
            state_blocks: Some(128),
            ..evm::NodeOptions::default()
        };
        let alone = eth_text(bare(), &ChainLists::default()).await;
        assert!(alone.contains("amountSol is null"), "{alone}");
        assert!(alone.contains("configure a provider with alchemy_getAssetTransfers"), "{alone}");
        assert!(!alone.contains("not probed"), "{alone}");
        let listed = eth_text(bare(), &explorer()).await;
        assert!(!listed.contains("configure"), "{listed}");
        assert!(listed.contains("eth  index.test  explorer, not probed"), "{listed}");
        assert!(!listed.contains("word"), "{listed}");
    }

    #[test]
    fn configured_chains_are_checked_alone() {
        let registry = Registry::embedded().unwrap();
        let slugs = |file: &str| -> Vec<String> {
            let read = |_: &std::path::Path| Ok(file.to_owned());
            let environment = std::iter::empty::<(String, String)>().collect();
            let config =
                crate::cli::config::load(&Flags::default(), &environment, &registry, read).unwrap();
            chains_to_check(&config, &registry).iter().map(|chain| chain.slug.clone()).collect()
        };
        assert_eq!(slugs("").len(), registry.chains().len());
        assert_eq!(slugs("[chains.tron]\nenabled = false\n").len(), registry.chains().len() - 1);
        let file = "[chains.eth]\nrpc = ['http://h']\n[chains.base]\nportal = 'http://h'\n\
                    [chains.bsc]\nrpc = ['http://h']\nenabled = false\n";
        assert_eq!(slugs(file), ["eth", "base"]);
    }

    async fn tron(options: NodeOptions, key: Option<&str>) -> CheckedEndpoint {
        let registry = Registry::embedded().unwrap();
        let chain = registry.chain_named("tron").unwrap();
        let model = EvmModel::new(3, chain);
        // Trades in every block up to the head.
        let (first, last) = (Some(model.head() - 300), Some(model.head()));
        model.add_named("busy", WalletPlan { first, last, ..WalletPlan::trades(500) });
        let node = DemoNode::tron(model, 1);
        node.set_options(options);
        let secret = || serde_json::from_value(json!("word")).unwrap();
        let headers = key.map(|key| (key.to_owned(), secret())).into_iter().collect();
        checked(node, chain, headers).await
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_index_of_tron_offers_is_shown() {
        let checked = tron(NodeOptions::default(), Some("tron-pro-api-key")).await;
        assert!(checked.usable, "{:?}", checked.results);
        let all = checked.results.iter().all(|finding| finding.ok);
        assert!(all && checked.results.len() == 9, "{:?}", checked.results);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_plain_node_of_tron_lacks_is_shown() {
        let mut options =
            NodeOptions { lists: false, inner_calls: false, ..NodeOptions::default() };
        options.node.first_available = 70_000_000;
        let checked = tron(options, None).await;
        assert!(checked.usable, "{:?}", checked.results);
        let lacks = checked.results.iter().filter(|finding| !finding.ok);
        let lacks: Vec<&str> = lacks.map(|finding| finding.what).collect();
        let expected = [
            "lists an account",
            "lists its tokens",
            "keeps the whole history",
            "keeps inner calls",
            "key",
        ];
        assert_eq!(lacks.len(), expected.len(), "{lacks:?}");
        for (lacks, expected) in lacks.iter().zip(expected) {
            assert!(lacks.starts_with(expected), "{lacks}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_pruned_evm_node_lacks_is_named_with_what_to_configure() {
        let registry = Registry::embedded().unwrap();
        let model = EvmModel::new(3, registry.chain_named("eth").unwrap());
        let kept = model.head() - 100_000;
        let checked = checked_eth(evm::NodeOptions {
            first_available: kept,
            prunes_silently: true,
            traces: false,
            ..evm::NodeOptions::default()
        })
        .await;
        let mut text = Vec::new();
        write_lines(&checked, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let line = text.lines().find(|line| line.contains("earliest logs")).unwrap();
        let from = line.split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap();
        assert!(from.abs_diff(kept) < 50_000, "{line}, kept from {kept}");
        let lacks = "no   traces (debug_traceTransaction)";
        let after = text.lines().skip_while(|line| !line.contains(lacks)).nth(1).unwrap();
        assert!(after.contains("without it amountSol is null"), "{text}");
        assert!(after.contains("configure a node with debug_traceTransaction"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_of_another_tron_is_not_usable() {
        let mut options = NodeOptions::default();
        options.node.chain_id = Some(0x94a9_059e);
        assert!(!tron(options, None).await.usable);
        // Without JSON-RPC the first block identifies the chain.
        let options = NodeOptions { json_rpc: false, ..NodeOptions::default() };
        let checked = tron(options, None).await;
        assert!(checked.usable, "{:?}", checked.results);
    }
}
