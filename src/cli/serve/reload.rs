//! Reads the configuration again while the server runs, and puts in force what can be changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
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

/// What a reload did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Reloaded {
    /// Settings and chains that are in force by it.
    pub(in crate::cli) changed: Vec<String>,
    /// What has changed in the configuration and needs a restart.
    pub(in crate::cli) restart: Vec<String>,
}

/// What a running server reads again.
pub(in crate::cli) struct Reload {
    pub(in crate::cli) load: LoadConfig,
    /// As it is in force.
    pub(in crate::cli) running: Mutex<Config>,
    pub(in crate::cli) registry: Arc<Registry>,
    pub(in crate::cli) nodes: Nodes,
    pub(in crate::cli) history: History,
    pub(in crate::cli) api: Api,
    pub(in crate::cli) access: Option<Arc<AccessFile>>,
}

impl Reload {
    /// On an error everything stays as it was.
    pub(in crate::cli) fn run(&self) -> Result<Reloaded, CliError> {
        if let Some(access) = &self.access {
            access.reopen();
        }
        let mut running = lock(&self.running);
        let wanted = (self.load)()?;
        let (chains, unusable) = self.changed_chains(&running, &wanted);
        let mut next = running.clone();
        let (mut changed, mut restart) = next.reload(wanted);
        for slug in &unusable {
            restart.push(format!("chains.{slug}"));
            keep(&mut next.chains, slug, &running.chains);
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

    /// Slugs of chains that are configured in another way, and of those that need a restart: the
    /// chain table is made at the start.
    fn changed_chains(&self, old: &Config, new: &Config) -> (Vec<String>, Vec<String>) {
        let slugs: BTreeSet<&String> = old.chains.keys().chain(new.chains.keys()).collect();
        let of = |config: &Config, slug: &str| {
            let layer = config.chains.get(slug).cloned().unwrap_or_default();
            // Where it stands in the file is no change.
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

/// Whether two layers describe the same chain, endpoints aside.
fn is_same_chain(one: &ChainLayer, other: &ChainLayer) -> bool {
    one.family == other.family
        && one.chain_id == other.chain_id
        && one.native == other.native
        && one.wrapped_native == other.wrapped_native
        && one.multicall == other.multicall
        && one.finality == other.finality
}

fn keep(
    next: &mut BTreeMap<String, ChainLayer>,
    slug: &str,
    running: &BTreeMap<String, ChainLayer>,
) {
    match running.get(slug) {
        Some(layer) => drop(next.insert(slug.to_owned(), layer.clone())),
        None => drop(next.remove(slug)),
    }
}
