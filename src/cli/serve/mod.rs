//! `blotter serve`: the API over the configured nodes.

mod access_log;
mod admin_socket;
mod descriptors;
mod operator;
pub(super) mod reload;
pub(super) mod upkeep;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::{Arc, Mutex};
use std::thread;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;

use super::seed::random_seed;
use crate::api::{Api, ApiLimits, ApiParts, MetricsAccess};
use crate::cli::clock::SystemClock;
use crate::cli::config::{Config, Listen};
use crate::cli::engine::{Engine, history_limits};
use crate::cli::errors::CliError;
use crate::cli::keys::audit::Audit;
use crate::cli::keys::file::{Created, KeyTerms};
use crate::cli::keys::store::FIRST_NAME;
use crate::cli::keys::watch::KeysWatch;
use crate::cli::signals;
use crate::domain::Clock as _;
use crate::history::Tasks;
use crate::registry::Registry;
use crate::rpc::Transport;
use access_log::AccessFile;
use admin_socket::AdminSocket;
use descriptors::{fit, raise};
use operator::Operator;
use reload::{LoadConfig, Reload};

/// A listening server and the parts that run it.
pub(super) struct Serving {
    engine: Engine,
    api: Api,
    listener: TcpListener,
    /// The listener of metrics that have an address of their own.
    metrics: Option<TcpListener>,
    /// Completes when the server has to stop. Signals are watched before the address is announced.
    stop: BoxFuture<'static, ()>,
    watch: Arc<KeysWatch>,
    audit: Audit,
    pub(super) url: String,
}

impl Serving {
    /// Builds all parts, then listens. Creates no key, whose text is shown only once and would be
    /// lost if a later step failed.
    pub(super) async fn open(
        config: &Config,
        registry: Arc<Registry>,
        transport: &Arc<dyn Transport>,
        load: Option<LoadConfig>,
    ) -> Result<Self, CliError> {
        let engine =
            Engine::open(config, history_limits(config), Arc::clone(&registry), transport).await?;
        let watch = KeysWatch::new(engine.keys.clone(), Arc::clone(&registry)).await?;
        let watch = Arc::new(watch);
        let api = Api::new(ApiParts {
            history: engine.history.clone(),
            keys: watch.keys.clone(),
            limits: fit(api_limits(config), raise()),
            seed: random_seed()?,
        });
        let log = &config.log.access;
        let access = AccessFile::start(log).map_err(CliError::file("open", log.as_ref()))?;
        let access = access.map(Arc::new);
        if let Some(access) = &access {
            api.log_access(Arc::<AccessFile>::clone(access));
        }
        let stop = signals::stop()?.boxed();
        let metrics = match config.server.metrics_listen.0 {
            Some(listen) => Some(bind_metrics(listen).await?),
            None => None,
        };
        let (listener, address) = bind(config.server.listen, "--listen (server.listen)").await?;
        let url = format!("http://{address}");
        engine.tasks.spawn(Arc::clone(&watch).run(engine.tasks.clone()));
        let audit = Audit::new(&config.storage.path, config.log.audit);
        let operator = Arc::new(Operator {
            history: engine.history.clone(),
            folder: config.storage.path.clone(),
            keys: Arc::clone(&watch),
            audit: audit.clone(),
            started: SystemClock.now(),
            reload: load.map(|load| Reload {
                load,
                running: Mutex::new(config.clone()),
                registry,
                nodes: engine.nodes.clone(),
                history: engine.history.clone(),
                api: api.clone(),
                access,
            }),
            reloaded: Mutex::default(),
        });
        start_operator(&operator, &engine.tasks)?;
        Ok(Self { engine, api, listener, metrics, stop, watch, audit, url })
    }

    /// Creates the first key, if there is none.
    async fn create_first(&self) -> Result<Option<Created>, CliError> {
        let created = self.engine.keys.create_first(SystemClock.now()).await?;
        if let Some(created) = &created {
            self.put_in_force(created, FIRST_NAME).await;
        }
        Ok(created)
    }

    /// Creates a key of this name without limits.
    pub(super) async fn create_key(&self, name: &str) -> Result<Created, CliError> {
        let terms = KeyTerms { name: Some(name.to_owned()), ..KeyTerms::default() };
        let created = self.engine.keys.create(terms, SystemClock.now()).await?;
        self.put_in_force(&created, name).await;
        Ok(created)
    }

    /// Applies a new key at once. A failure is only logged, since the key has to be shown in any
    /// case and the watch polls again within a second.
    async fn put_in_force(&self, created: &Created, name: &str) {
        self.audit.created(created.id, Some(name));
        if let Err(error) = self.watch.follow().await {
            tracing::warn!(%error, "cannot apply a new key; the keys are polled again");
        }
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.engine.tasks
    }

    /// Serves until a signal, then waits for open responses within the configured time.
    pub(super) async fn run(self) -> Result<(), CliError> {
        let Self { engine, api, listener, metrics, stop, .. } = self;
        let resumed = engine.history.resume_pending().await;
        let resumed =
            resumed.map_err(|error| CliError::failed("earlier loads cannot be resumed", error))?;
        if resumed > 0 {
            tracing::info!(wallets = resumed, "resumed background loads of earlier runs");
        }
        let stopping = async move {
            stop.await;
            tracing::info!("stopping; a second signal stops at once");
        };
        if let Some(listener) = metrics {
            let (api, tasks) = (api.clone(), engine.tasks.clone());
            engine.tasks.spawn(async move {
                api.serve_metrics(listener, tasks.cancelled()).await;
            });
        }
        let tasks = engine.tasks.clone();
        let second_signal = async move {
            tasks.cancelled().await;
            signals::exit_at_once().await
        };
        let served = async move {
            let drained = api.serve(listener, stopping).await;
            if drained.cut > 0 {
                tracing::warn!(
                    connections = drained.cut,
                    "connections with open responses were closed to stop in time"
                );
            }
            engine.close().await
        };
        tokio::select! {
            result = served => result,
            result = second_signal => result,
        }
    }
}

/// Reloads at each SIGHUP and serves the admin socket. If the folder cannot hold a socket (it is
/// read-only, or its path too long), the server runs without.
fn start_operator(operator: &Arc<Operator>, tasks: &Tasks) -> Result<(), CliError> {
    if operator.reload.is_some() {
        let (mut hangups, stopping) = (signals::hangups()?, tasks.clone());
        let operator = Arc::clone(operator);
        tasks.spawn(async move {
            while let Some(Some(())) = stopping.run(hangups.recv()).await {
                // The outcome is logged.
                drop(operator.reload("SIGHUP"));
            }
        });
    }
    match AdminSocket::bind(&operator.folder) {
        Ok(socket) => drop(tasks.spawn(socket.serve(Arc::clone(operator), tasks.clone()))),
        Err(error) => {
            tracing::warn!(%error, "cannot open the admin socket; `blotter admin` cannot reach this server");
        }
    }
    Ok(())
}

/// Logs the address, since port 0 takes a free one.
async fn bind_metrics(listen: Listen) -> Result<TcpListener, CliError> {
    let (listener, address) = bind(listen, "server.metrics_listen").await?;
    tracing::info!("metrics are served at http://{address}/metrics");
    Ok(listener)
}

/// `setting` names the address in errors.
async fn bind(
    listen: Listen,
    setting: &'static str,
) -> Result<(TcpListener, SocketAddr), CliError> {
    let cannot = |error| cannot_listen(listen, setting, error);
    let listener = TcpListener::bind(listen.0).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    Ok((listener, address))
}

pub(super) fn cannot_listen(listen: Listen, setting: &str, error: io::Error) -> CliError {
    let advice = if error.kind() == io::ErrorKind::AddrInUse {
        let ip = listen.0.ip();
        let free = SocketAddr::new(ip, 0);
        format!(
            ": another program has this port; name another one by {setting}, or {free} for a free one"
        )
    } else {
        String::new()
    };
    CliError::failed(format!("cannot listen on {listen}{advice}"), error)
}

pub(super) fn api_limits(config: &Config) -> ApiLimits {
    let server = &config.server;
    ApiLimits {
        stream_window: server.stream_window.0,
        page_wait: server.page_wait.0,
        heartbeat: server.heartbeat.0,
        connections_max: server.connections,
        connections_per_address_max: server.connections_per_address,
        // The other half is for pages.
        streams_max: usize::try_from(server.connections / 2).unwrap_or(usize::MAX),
        drain_wait_max: server.shutdown_wait.0,
        estimates: server.estimates.are_on(server.listen),
        trusted_proxies: server.trusted_proxies.clone(),
        allowed_hosts: server.allowed_hosts.clone(),
        metrics: match (server.metrics_listen.0, server.metrics_key) {
            (Some(_), _) => MetricsAccess::Apart,
            (None, true) => MetricsAccess::Key,
            (None, false) => MetricsAccess::Open,
        },
        log_paths: config.log.paths,
        pack_threads_max: thread::available_parallelism().map_or(1, NonZero::get),
        ..ApiLimits::default()
    }
}

pub(super) async fn run(
    config: &Config,
    registry: Arc<Registry>,
    transport: &Arc<dyn Transport>,
    load: LoadConfig,
) -> Result<(), CliError> {
    let serving = Serving::open(config, registry, transport, Some(load)).await?;
    if let Some(created) = serving.create_first().await? {
        print_notice(&format!(
            "There was no API key yet, so one was made (id {}). It is shown only now:\n{}",
            created.id, created.key
        ));
    }
    announce(&serving.url)?;
    serving.run().await
}

/// Writes the only line on stdout, from which programs that start the server read its address.
pub(super) fn announce(url: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on {url}").and_then(|()| out.flush()).map_err(CliError::Output)
}

pub(super) fn print_notice(text: &str) {
    // If stderr is closed, nothing more can be reported.
    let _ = writeln!(io::stderr(), "{text}");
}
