//! `blotter demo`: the server on a chain that exists only here.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::args::DemoArgs;
use super::clock::SystemClock;
use super::config::chains::{ChainLayer, Explorer, NodeSetting};
use super::config::secret::ConfigUrl;
use super::config::{Config, Listen};
use super::errors::CliError;
use super::keys::store::KeyStore;
use super::seed::random_seed;
use super::serve::{Serving, announce, cannot_listen, tell};
use super::storage;
use super::target::with_suffix;
use crate::demo::{DemoChains, DemoTransport, DemoWallet, Loopback, LoopbackLimits};
use crate::domain::Clock as _;
use crate::history::Tasks;
use crate::registry::Registry;
use crate::rpc::Transport;
use crate::store::create_private_folder;

/// Where the demo's own endpoints are reached; nothing leaves the process.
const HOST: &str = "demo.invalid";
/// They have no rate to respect.
const NODE_CONCURRENCY: u32 = 32;
const NODE_BATCH: u32 = 100;
/// The wallet to begin with, among the samples.
const SAMPLE_NAME: &str = "sample";
/// Of the key that each demo makes.
const KEY_NAME: &str = "demo";
/// How often the chain's head follows the clock.
const HEAD_EVERY: Duration = Duration::from_secs(1);

/// Of the demo's folders and locks in the system's folder for temporary files.
const SCRATCH_PREFIX: &str = "blotter-demo-";
const LOCK_SUFFIX: &str = ".lock";

/// A folder that goes when the demo ends. The locked file next to it outlives a kill without its
/// lock, by which a later demo finds the folder and removes it.
pub(super) struct Scratch {
    pub(super) path: PathBuf,
    lock: PathBuf,
    _locked: File,
}

impl Scratch {
    pub(super) fn new() -> Result<Self, CliError> {
        let folder = std::env::temp_dir();
        remove_left_over(&folder);
        let path = folder.join(format!("{SCRATCH_PREFIX}{:016x}", random_seed()?));
        let lock = with_suffix(&path, LOCK_SUFFIX);
        let failed = CliError::file("create", &lock);
        let locked = File::create_new(&lock).map_err(&failed)?;
        locked.lock().map_err(failed)?;
        create_private_folder(&path).map_err(CliError::file("create", &path))?;
        Ok(Self { path, lock, _locked: locked })
    }
}

/// Removes the folders of demos that were killed: those whose lock no process holds. What cannot be
/// removed, as it belongs to another user, stays.
fn remove_left_over(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for lock in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = lock.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let Some(name) = name.strip_suffix(LOCK_SUFFIX).filter(|n| n.starts_with(SCRATCH_PREFIX))
        else {
            continue;
        };
        if File::open(&lock).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(folder.join(name));
            let _ = std::fs::remove_file(&lock);
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, "the demo's folder could not be removed");
        }
        let _ = std::fs::remove_file(&self.lock);
    }
}

/// Refuses the store of a real server: the demo's chains would replace the histories in it. Every demo
/// makes a key of its own name.
async fn refuse_others_store(config: &Config) -> Result<(), CliError> {
    let unreadable = |error| CliError::failed("the store cannot be read", error);
    let store = storage::open(config).await?;
    let wallets = store.stats().await.map_err(unreadable)?.wallets;
    let keys = KeyStore::of(config, &store).list().await;
    store.close().await;
    let keys = keys?;
    if wallets == 0 || keys.iter().any(|key| key.name.as_deref() == Some(KEY_NAME)) {
        return Ok(());
    }
    Err(CliError::Usage(
        "the store holds histories that no demo made, and the demo's chains would replace them: name \
         another folder with --data-dir, or none, and no database"
            .to_owned(),
    ))
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
        scratch.path.clone_into(&mut config.storage.path);
    }
    refuse_others_store(&config).await?;
    let chains = DemoChains::new(args.seed, &registry);
    let wallets = chains.add_samples(args.large);
    follow_clock(&chains);
    let live = chains.add_live();
    let hosted = chains.nodes().into_iter().map(|(path, node)| (format!("{HOST}/{path}"), node));
    let transport: Arc<dyn Transport> = Arc::new(DemoTransport::new(hosted));
    // What is configured is about real chains.
    config.chains = layers(&chains, &registry)?;
    let serving = Serving::open(&config, registry, &transport, None).await?;
    serving.tasks().spawn(move_heads(chains.clone(), serving.tasks().clone()));
    if let Some(seconds) = args.trade_every {
        let large = wallets.iter().filter(|wallet| wallet.name != SAMPLE_NAME).cloned().collect();
        let every = Duration::from_secs(seconds);
        serving.tasks().spawn(trade_on(chains.clone(), large, every, serving.tasks().clone()));
    }
    if let Some(listen) = args.node {
        offer_nodes(listen, &chains, serving.tasks()).await?;
    }
    // Behind all that can fail: each start that failed would leave a key of its own.
    let key = serving.create_key(KEY_NAME).await?.key;
    introduce(&serving.url, &key, &wallets, &live);
    announce(&serving.url)?;
    serving.run().await
}

/// The demo's own endpoints for the chains that it has; the others are switched off.
fn layers(
    chains: &DemoChains,
    registry: &Registry,
) -> Result<BTreeMap<String, ChainLayer>, CliError> {
    let url = |path: &str| ConfigUrl::parse(&format!("http://{HOST}/{path}"));
    let layer = |slug: &str| -> Result<ChainLayer, &'static str> {
        let Some(paths) = chains.paths(slug) else {
            return Ok(ChainLayer { enabled: Some(false), ..ChainLayer::default() });
        };
        let (concurrency, batch) = (Some(NODE_CONCURRENCY), Some(NODE_BATCH));
        let node = NodeSetting { concurrency, batch, ..NodeSetting::plain(url(&paths.rpc)?) };
        let lists = paths.explorer.as_deref().map(url).transpose()?;
        Ok(ChainLayer {
            rpc: Some(vec![node]),
            explorer: lists.map(|url| Explorer { url, key: None, rate: None }),
            portal: paths.portal.as_deref().map(url).transpose()?,
            ..ChainLayer::default()
        })
    };
    let slugs = registry.chains().iter().map(|chain| &chain.slug);
    let layers: Result<_, &'static str> =
        slugs.map(|slug| Ok((slug.clone(), layer(slug)?))).collect();
    layers.map_err(CliError::plain)
}

fn follow_clock(chains: &DemoChains) {
    // A clock that is behind a chain's own beginning changes nothing.
    chains.follow(SystemClock.now().seconds());
}

async fn move_heads(chains: DemoChains, tasks: Tasks) {
    while tasks.run(tokio::time::sleep(HEAD_EVERY)).await.is_some() {
        follow_clock(&chains);
    }
}

/// New trades of wallets until the demo stops; a restarted demo does not have them.
async fn trade_on(chains: DemoChains, wallets: Vec<DemoWallet>, every: Duration, tasks: Tasks) {
    while tasks.run(tokio::time::sleep(every)).await.is_some() {
        for wallet in &wallets {
            chains.arrive(wallet, 1);
        }
    }
}

/// Offers the demo chains' own interfaces, so that other programs can be tried on them.
async fn offer_nodes(listen: Listen, chains: &DemoChains, tasks: &Tasks) -> Result<(), CliError> {
    if listen.0.ip() != Ipv4Addr::LOCALHOST {
        return Err(CliError::Usage("--node listens on 127.0.0.1 only".to_owned()));
    }
    let loopback = Loopback::bind(listen.0.port(), chains.nodes(), LoopbackLimits::default())
        .await
        .map_err(|error| cannot_listen(listen, "--node", error))?;
    for paths in chains.slugs().filter_map(|slug| chains.paths(slug)) {
        let lists = [paths.explorer, paths.portal].into_iter().flatten();
        tell(&format!("The demo chain's own node: {}", loopback.url(&paths.rpc)));
        for path in lists {
            tell(&format!("  and its lists: {}", loopback.url(&path)));
        }
    }
    let stopping = tasks.clone();
    tasks.spawn(async move {
        let _handle = loopback.handle();
        stopping.run(loopback.run()).await;
    });
    Ok(())
}

fn introduce(url: &str, key: &str, wallets: &[DemoWallet], live: &[DemoWallet]) {
    tell(&format!(
        "Chains that exist only here, with the wire formats of real nodes and indexes.\n\
         key     {key}"
    ));
    for DemoWallet { chain, name, trades, address } in wallets {
        let label = if *name == SAMPLE_NAME { "wallet" } else { name };
        tell(&format!("{label:<7} {address} ({chain}, {trades} swaps)"));
    }
    for DemoWallet { chain, name, address, .. } in live {
        tell(&format!("{name:<7} {address} ({chain}, trades on while the demo runs)"));
    }
    tell("A swap of two tokens is two trades, so that a wallet has more trades than swaps.");
    let examples = [(wallets.first(), ""), (live.first(), "&follow=1")];
    for (wallet, query) in examples {
        let Some(DemoWallet { chain, address, .. }) = wallet else { continue };
        tell(&format!(
            "\ncurl -N -H \"Authorization: Bearer {key}\" \
             \"{url}/v1/wallets/{address}/history?chain={chain}{query}\""
        ));
    }
    tell("");
}
