//! `blotter demo`: the server on simulated chains.

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
use super::serve::{Serving, announce, cannot_listen, print_notice};
use super::storage;
use super::target::with_suffix;
use crate::demo::{DemoChains, DemoTransport, DemoWallet, Loopback, LoopbackLimits};
use crate::domain::Clock as _;
use crate::history::Tasks;
use crate::registry::Registry;
use crate::rpc::Transport;
use crate::store::create_private_folder;

/// Host of the demo's endpoints; requests to it never leave the process.
const HOST: &str = "demo.invalid";
// The demo's endpoints have no rate limit.
const NODE_CONCURRENCY: u32 = 32;
const NODE_BATCH: u32 = 100;
/// Name of the sample wallet that is listed first.
const SAMPLE_NAME: &str = "sample";
/// Name of the API key that each demo creates.
const KEY_NAME: &str = "demo";
/// Interval at which the chains' heads follow the clock.
const HEAD_EVERY: Duration = Duration::from_secs(1);

// Name of a demo's folder and lock file in the system's temporary directory.
const SCRATCH_PREFIX: &str = "blotter-demo-";
const LOCK_SUFFIX: &str = ".lock";

/// A temporary folder, removed on drop. If the process is killed, the lock file next to it stays
/// but is no longer locked, so a later demo finds the folder and removes it.
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

/// Removes the folders of killed demos: those whose lock no process holds. Folders of other users,
/// which cannot be removed, stay.
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
            tracing::warn!(%error, "cannot remove the demo's folder");
        }
        let _ = std::fs::remove_file(&self.lock);
    }
}

/// Rejects the store of a real server, whose histories the demo's chains would replace. A store
/// with the key that every demo creates is a demo's own.
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

/// `keep_data`: the caller named a data folder, which is used and kept.
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
    // The configured chains are real ones.
    config.chains = layers(&chains, &registry)?;
    let serving = Serving::open(&config, registry, &transport, None).await?;
    serving.tasks().spawn(move_heads(chains.clone(), serving.tasks().clone()));
    if let Some(seconds) = args.trade_every {
        let large = wallets.iter().filter(|wallet| wallet.name != SAMPLE_NAME).cloned().collect();
        let every = Duration::from_secs(seconds);
        serving.tasks().spawn(add_trades(chains.clone(), large, every, serving.tasks().clone()));
    }
    if let Some(listen) = args.node {
        serve_nodes(listen, &chains, serving.tasks()).await?;
    }
    // After everything that can fail: each failed start would leave a key behind.
    let key = serving.create_key(KEY_NAME).await?.key;
    introduce(&serving.url, &key, &wallets, &live);
    announce(&serving.url)?;
    serving.run().await
}

/// The demo's endpoints for its own chains; all other chains are disabled.
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
    // If the clock is behind a chain's start, nothing changes.
    chains.follow(SystemClock.now().seconds());
}

async fn move_heads(chains: DemoChains, tasks: Tasks) {
    while tasks.run(tokio::time::sleep(HEAD_EVERY)).await.is_some() {
        follow_clock(&chains);
    }
}

/// Adds trades to the wallets until the demo stops. They are not kept over a restart.
async fn add_trades(chains: DemoChains, wallets: Vec<DemoWallet>, every: Duration, tasks: Tasks) {
    while tasks.run(tokio::time::sleep(every)).await.is_some() {
        for wallet in &wallets {
            chains.arrive(wallet, 1);
        }
    }
}

/// Serves the demo chains' node interfaces on loopback, for use by other programs.
async fn serve_nodes(listen: Listen, chains: &DemoChains, tasks: &Tasks) -> Result<(), CliError> {
    if listen.0.ip() != Ipv4Addr::LOCALHOST {
        return Err(CliError::Usage("--node listens on 127.0.0.1 only".to_owned()));
    }
    let loopback = Loopback::bind(listen.0.port(), chains.nodes(), LoopbackLimits::default())
        .await
        .map_err(|error| cannot_listen(listen, "--node", error))?;
    for paths in chains.slugs().filter_map(|slug| chains.paths(slug)) {
        let lists = [paths.explorer, paths.portal].into_iter().flatten();
        print_notice(&format!("The demo chain's own node: {}", loopback.url(&paths.rpc)));
        for path in lists {
            print_notice(&format!("  and its lists: {}", loopback.url(&path)));
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
    print_notice(&format!(
        "Chains that exist only here, with the wire formats of real nodes and indexes.\n\
         key     {key}"
    ));
    for DemoWallet { chain, name, trades, address } in wallets {
        let label = if *name == SAMPLE_NAME { "wallet" } else { name };
        print_notice(&format!("{label:<7} {address} ({chain}, {trades} swaps)"));
    }
    for DemoWallet { chain, name, address, .. } in live {
        print_notice(&format!("{name:<7} {address} ({chain}, trades on while the demo runs)"));
    }
    print_notice(
        "A swap of two tokens is two trades, so that a wallet has more trades than swaps.",
    );
    let examples = [(wallets.first(), ""), (live.first(), "&follow=1")];
    for (wallet, query) in examples {
        let Some(DemoWallet { chain, address, .. }) = wallet else { continue };
        print_notice(&format!(
            "\ncurl -N -H \"Authorization: Bearer {key}\" \
             \"{url}/v1/wallets/{address}/history?chain={chain}{query}\""
        ));
    }
    print_notice("");
}
