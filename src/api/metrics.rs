//! The metrics of `/metrics`. Labels are bounded: never a wallet, a key or an address.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::domain::lock;
use crate::history::{History, StoreStats};

/// Seconds until a response begins: stored pages take milliseconds, live ones up to `page_wait`.
const BUCKETS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.0, 5.0, 10.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
}

#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<[(&'static str, &'static str); 1], Histogram>,
    pub(super) connections: Gauge,
    pub(super) connections_refused: Counter,
    pub(super) slow_readers: Counter,
    pub(super) streams: Gauge,
    pub(super) stream_lines: Counter,
    pub(super) trades_written: Counter,
    collected: Collected,
}

impl Metrics {
    pub(super) fn new(history: History) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("blotter"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            slow_readers: Counter::default(),
            streams: Gauge::default(),
            stream_lines: Counter::default(),
            trades_written: Counter::default(),
            collected: Collected { history, store: Arc::default() },
        };
        metrics.register();
        metrics.registry.register_collector(Box::new(metrics.collected.clone()));
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What is running", build);
        registry.register("http_requests", "Requests answered", self.requests.clone());
        let help = "Time until an answer begins";
        registry.register("http_request_seconds", help, self.seconds.clone());
        registry.register("http_connections", "Open connections", self.connections.clone());
        let help = "Connections turned away at the cap";
        registry.register("http_connections_refused", help, self.connections_refused.clone());
        let help = "Connections dropped because the client accepted nothing";
        registry.register("http_slow_readers", help, self.slow_readers.clone());
        let help = "Answers being written as a stream";
        registry.register("http_streams", help, self.streams.clone());
        let help = "NDJSON lines written, blank ones left out";
        registry.register("http_stream_lines", help, self.stream_lines.clone());
        let help = "Trades written into answers";
        registry.register("http_trades", help, self.trades_written.clone());
    }

    pub(super) fn answered(
        &self,
        route: &'static str,
        method: &'static str,
        status: u16,
        after: Duration,
    ) {
        self.requests.get_or_create(&RequestLabels { route, method, status }).inc();
        self.seconds.get_or_create(&[("route", route)]).observe(after.as_secs_f64());
    }

    pub(super) async fn render(&self) -> String {
        self.collected.refresh().await;
        let mut text = String::new();
        // Writing to a string fails only if a collector does, and ours do not.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

/// Reads the engine's own counters at each scrape.
#[derive(Debug, Clone)]
struct Collected {
    history: History,
    /// Sizes of the store, read before a scrape is encoded.
    store: Arc<Mutex<Option<StoreStats>>>,
}

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let metrics = self.history.metrics();
        for (name, help, value) in metrics.counters() {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(descriptor)?;
        }
        self.values(&mut encoder)?;
        gauge(&mut encoder, "workers", "Wallets with a worker", metrics.workers.get())?;
        gauge(&mut encoder, "walks", "Open walks", metrics.walks.get())?;
        let help = "Wallets that are followed by scans of their chain";
        gauge(&mut encoder, "wallets_followed", help, self.history.followed())?;
        let sizes = *lock(&self.store);
        if let Some(stats) = sizes {
            gauge(&mut encoder, "store_file_bytes", "Length of the store", stats.file_bytes)?;
            gauge(&mut encoder, "store_trades", "Trades stored", stats.rows)?;
            gauge(&mut encoder, "store_wallets", "Wallets stored", stats.wallets)?;
            gauge(&mut encoder, "store_tokens", "Tokens stored", stats.tokens)?;
        }
        if let Some(sharing) = self.history.sharing() {
            let help = "Processes that share the store";
            gauge(&mut encoder, "store_processes", help, u64::from(sharing.processes))?;
            let help = "Calls to the shared store that failed, most of them repeated";
            let failed = sharing.failed_calls.iter();
            let failed = failed.map(|(kind, count)| ([("reason", kind.name())], *count));
            counters(&mut encoder, "store_failed_calls", help, failed)?;
        }
        self.capacity(&mut encoder)?;
        self.upstream(&mut encoder)
    }
}

fn counters<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    lines: impl Iterator<Item = (L, u64)>,
) -> Result<(), std::fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, count) in lines {
        ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

impl Collected {
    async fn refresh(&self) {
        let sizes = self.history.store_stats().await.ok();
        *lock(&self.store) = sizes;
    }

    /// The disk space of a store in a file, and whether background work is paused.
    fn capacity(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let history = &self.history;
        let help = "1 while background work is paused";
        gauge(encoder, "paused", help, u64::from(history.is_paused()))?;
        let size = history.store_size().ok().flatten();
        let (used, free) = (size.map(|size| size.disk_bytes), size.and_then(|s| s.disk_free_bytes));
        gauge(encoder, "store_disk_bytes", "What the store takes of its disk", used)?;
        gauge(encoder, "disk_free_bytes", "Free on the disk of the store", free)?;
        gauge(encoder, "store_max_bytes", "Limit of the store", history.capacity().max_bytes)
    }

    fn values(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let help = "Trades stored or completed, by how their native value was found";
        let values = self.history.metrics().values.iter();
        counters(encoder, "values", help, values.map(|(of, n)| ([("source", of.name())], n)))
    }

    /// Endpoints are numbered in the order of the configuration, since scrapers must not learn
    /// their hosts.
    fn upstream(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let registry = self.history.registry();
        let mut endpoints = Vec::new();
        for (id, all) in self.history.chains_status() {
            let chain = registry.chain(id).map_or("unknown", |chain| chain.slug.as_str());
            let of_chain = all.into_iter().enumerate();
            endpoints.extend(of_chain.map(|(at, endpoint)| (chain, at.to_string(), endpoint)));
        }
        let calls = || {
            endpoints.iter().flat_map(|(chain, at, endpoint)| {
                endpoint.calls.iter().map(move |(method, counts)| {
                    (
                        [("chain", *chain), ("endpoint", at.as_str()), ("method", method.as_str())],
                        counts,
                    )
                })
            })
        };
        let sent = calls().map(|(labels, counts)| (labels, counts.sent));
        let failed = calls().map(|(labels, counts)| (labels, counts.failed));
        counters(encoder, "upstream_calls", "Calls sent to nodes", sent)?;
        counters(encoder, "upstream_calls_failed", "Calls to nodes that failed", failed)?;
        let (name, help) = ("upstream_endpoint_resting", "1 while it rests after failures");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (chain, at, endpoint) in &endpoints {
            let labels = [("chain", *chain), ("endpoint", at.as_str())];
            let metric = ConstGauge::new(i64::from(endpoint.resting));
            metric.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// Encodes a gauge, without a line if the value is unknown.
fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: impl Into<Option<u64>>,
) -> Result<(), std::fmt::Error> {
    let described = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    let Some(value) = value.into() else { return Ok(()) };
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(described)
}
