//! Reloads the configuration while the server runs, and applies what can change at run time.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::access_log::AccessFile;
use super::descriptors::{fit, raise};
use crate::api::Api;
use crate::cli::config::Config;
use crate::cli::config::chains::ChainLayer;
use crate::cli::engine::capacity;
use crate::cli::errors::CliError;
use crate::cli::serve::api_limits;
use crate::cli::sources::{Nodes, source};
use crate::domain::{ChainId, lock};
use crate::history::History;
use crate::registry::Registry;
use crate::sources::Source;

/// Reads and merges all layers of the configuration.
pub(in crate::cli) type LoadConfig = Box<dyn Fn() -> Result<Config, CliError> + Send + Sync>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Reloaded {
    /// Settings and chains that were changed.
    pub(in crate::cli) changed: Vec<String>,
    /// Settings and chains whose change needs a restart.
    pub(in crate::cli) restart: Vec<String>,
}

/// The parts of a running server that a reload changes.
pub(in crate::cli) struct Reload {
    pub(in crate::cli) load: LoadConfig,
    pub(in crate::cli) running: Mutex<Config>,
    pub(in crate::cli) registry: Arc<Registry>,
    pub(in crate::cli) nodes: Nodes,
    pub(in crate::cli) history: History,
    pub(in crate::cli) api: Api,
    pub(in crate::cli) access: Option<Arc<AccessFile>>,
}

impl Reload {
    /// On an error nothing changes.
    pub(in crate::cli) fn run(&self) -> Result<Reloaded, CliError> {
        if let Some(access) = &self.access {
            access.reopen();
        }
        let mut running = lock(&self.running);
        let loaded = (self.load)()?;
        let (chains, unusable) = self.changed_chains(&running, &loaded);
        let mut next = running.clone();
        let (mut changed, mut restart) = next.reload(loaded);
        for slug in &unusable {
            restart.push(format!("chains.{slug}"));
            match running.chains.get(slug) {
                Some(layer) => drop(next.chains.insert(slug.clone(), layer.clone())),
                None => drop(next.chains.remove(slug)),
            }
        }
        let mut sources: HashMap<ChainId, Option<Source>> = HashMap::new();
        for slug in &chains {
            let Some(chain) = self.registry.chain_named(slug) else { continue };
            sources.insert(chain.id, source(&next, chain, &self.registry, &self.nodes)?);
            changed.push(format!("chains.{slug}"));
        }
        self.api.set_limits(fit(api_limits(&next), raise()));
        self.history.set_capacity(capacity(&next));
        if !sources.is_empty() {
            self.history.replace_sources(sources);
        }
        *running = next;
        Ok(Reloaded { changed, restart })
    }

    /// Slugs of chains whose configuration changed, and of those that need a restart, because the
    /// chain table is built at the start.
    fn changed_chains(&self, old: &Config, new: &Config) -> (Vec<String>, Vec<String>) {
        let slugs: BTreeSet<&String> = old.chains.keys().chain(new.chains.keys()).collect();
        let of = |config: &Config, slug: &str| {
            let layer = config.chains.get(slug).cloned().unwrap_or_default();
            // Another position in the file is no change.
            ChainLayer { place: String::new(), ..layer }
        };
        let (mut changed, mut unusable) = (Vec::new(), Vec::new());
        for slug in slugs {
            let (before, after) = (of(old, slug), of(new, slug));
            if before == after {
                continue;
            }
            let is_known = self.registry.chain_named(slug).is_some();
            if is_known && is_same_chain(&before, &after) {
                changed.push(slug.clone());
            } else {
                unusable.push(slug.clone());
            }
        }
        (changed, unusable)
    }
}

/// Whether two layers define the same chain, apart from its endpoints.
fn is_same_chain(one: &ChainLayer, other: &ChainLayer) -> bool {
    one.family == other.family
        && one.chain_id == other.chain_id
        && one.native == other.native
        && one.wrapped_native == other.wrapped_native
        && one.multicall == other.multicall
        && one.finality == other.finality
}
