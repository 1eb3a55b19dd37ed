//! `blotter demo`: the server on a chain that exists only here.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::args::DemoArgs;
use super::clock::SystemClock;
use super::config::{Config, Listen};
use super::config_chains::{ChainLayer, Endpoint};
use super::engine::random_seed;
use super::errors::CliError;
use super::keys_file::{KeysFile, Terms, create_private_folder};
use super::secret::SecretUrl;
use super::serve::{Serving, announce, tell};
use crate::demo::solana::{SolanaModel, WalletPlan};
use crate::demo::{DemoNode, DemoTransport, Loopback, LoopbackLimits};
use crate::domain::{Address, Clock as _};
use crate::history::Tasks;
use crate::registry::Registry;
use crate::upstream::Transport;

/// Where the demo's own node is reached; nothing leaves the process.
const NODE_HOST: &str = "demo.invalid";
const NODE_URL: &str = "http://demo.invalid/sol";
/// It has no rate to respect.
const NODE_CONCURRENCY: u32 = 32;
const NODE_BATCH: u32 = 100;
const NODE_NAME: &str = "sol";
/// The sample wallet.
const SAMPLE_NAME: &str = "sample";
const SAMPLE_TRADES: u64 = 2_500;
/// A wallet that does not come at once.
const LARGE_NAME: &str = "large";
const LARGE_TRADES: u64 = 200_000;
/// It goes on trading about once a day of the chain's time.
const SAMPLE_SLOTS_BETWEEN: u64 = 200_000;
/// How often the chain's head follows the clock.
const HEAD_EVERY: Duration = Duration::from_secs(1);

/// A folder that goes when the demo ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, CliError> {
        let path = std::env::temp_dir().join(format!("blotter-demo-{:016x}", random_seed()?));
        create_private_folder(&path).map_err(|source| CliError::File {
            action: "create",
            path: path.clone(),
            source,
        })?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, "the demo's folder could not be removed");
        }
    }
}

/// `keep_data`: the data folder was named, so it is used and kept.
pub(super) async fn run(
    args: &DemoArgs,
    mut config: Config,
    registry: Arc<Registry>,
    keep_data: bool,
) -> Result<(), CliError> {
    let scratch = if keep_data { None } else { Some(Scratch::new()?) };
    if let Some(scratch) = &scratch {
        scratch.path().clone_into(&mut config.storage.path);
    }
    let model = SolanaModel::new(args.seed);
    let plan =
        WalletPlan { live_every: Some(SAMPLE_SLOTS_BETWEEN), ..WalletPlan::trades(SAMPLE_TRADES) };
    let wallet = model.add_named(SAMPLE_NAME, plan);
    let large = model.add_named(LARGE_NAME, WalletPlan::trades(LARGE_TRADES));
    follow_clock(&model);
    let node = DemoNode::new(model.clone(), args.seed);
    let transport: Arc<dyn Transport> =
        Arc::new(DemoTransport::new([(NODE_HOST.to_owned(), node.clone())]));
    // What is configured is about real chains.
    let url = SecretUrl::parse(NODE_URL).map_err(CliError::plain)?;
    let (concurrency, batch) = (Some(NODE_CONCURRENCY), Some(NODE_BATCH));
    let rpc = Some(vec![Endpoint { concurrency, batch, ..Endpoint::plain(url) }]);
    config.chains = [(NODE_NAME.to_owned(), ChainLayer { rpc, ..ChainLayer::default() })].into();
    let terms = Terms { name: Some("demo".to_owned()), ..Terms::default() };
    let key = KeysFile::new(&config.storage.path).create(terms, SystemClock.now())?.key;
    let serving = Serving::open(&config, registry, &transport).await?;
    serving.tasks().spawn(move_head(model, serving.tasks().clone()));
    if let Some(listen) = args.node {
        offer_node(listen, node, serving.tasks()).await?;
    }
    introduce(&serving.url, &key, &wallet, &large);
    announce(&serving.url)?;
    serving.run().await
}

fn follow_clock(model: &SolanaModel) {
    // A clock that is behind the chain's own beginning changes nothing.
    let slot = SolanaModel::slot_at(SystemClock.now().seconds());
    model.set_head(slot.max(model.head()));
}

async fn move_head(model: SolanaModel, tasks: Tasks) {
    loop {
        tokio::select! {
            () = tasks.cancelled() => return,
            () = tokio::time::sleep(HEAD_EVERY) => follow_clock(&model),
        }
    }
}

/// Offers the demo chain's own node interface, so that other programs can be tried on it.
async fn offer_node(listen: Listen, node: DemoNode, tasks: &Tasks) -> Result<(), CliError> {
    if listen.0.ip() != Ipv4Addr::LOCALHOST {
        return Err(CliError::Usage("--node listens on 127.0.0.1 only".to_owned()));
    }
    let nodes = [(NODE_NAME.to_owned(), node)];
    let loopback = Loopback::bind(listen.0.port(), nodes, LoopbackLimits::default())
        .await
        .map_err(|error| CliError::failed(format!("cannot listen on {listen}"), error))?;
    tell(&format!("The demo chain's own node: {}", loopback.url(NODE_NAME)));
    let stopping = tasks.clone();
    tasks.spawn(async move {
        let _handle = loopback.handle();
        tokio::select! {
            () = loopback.run() => {}
            () = stopping.cancelled() => {}
        }
    });
    Ok(())
}

fn introduce(url: &str, key: &str, wallet: &Address, large: &Address) {
    tell(&format!(
        "A chain that exists only here, with the wire format of Solana's nodes.\n\
         key     {key}\n\
         wallet  {wallet} (sol)\n\
         large   {large} (sol, {LARGE_TRADES} trades)\n\n\
         curl -N -H \"Authorization: Bearer {key}\" \"{url}/v1/wallets/{wallet}/history\"\n"
    ));
}
