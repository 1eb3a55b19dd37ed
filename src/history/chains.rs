//! The configured chains and their sources. A reload replaces sources while readers and workers go
//! on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio_util::task::AbortOnDropHandle;

use super::tasks::Tasks;
use crate::domain::ChainId;
use crate::sources::Source;

/// A source, and the task that runs its periodic checks while it is in use.
#[derive(Debug)]
struct RunningSource {
    source: Source,
    _task: AbortOnDropHandle<()>,
}

#[derive(Debug)]
pub(super) struct Chains {
    sources: RwLock<HashMap<ChainId, Arc<RunningSource>>>,
    /// Counts replacements.
    generation: AtomicU64,
}

impl Chains {
    pub(super) fn new(sources: HashMap<ChainId, Source>, tasks: &Tasks) -> Self {
        let sources = sources
            .into_iter()
            .map(|(chain, source)| (chain, start_source(source, tasks)))
            .collect();
        Self { sources: RwLock::new(sources), generation: AtomicU64::new(0) }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of `HashMap`")]
    pub(super) fn get(&self, chain: &ChainId) -> Option<Source> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        sources.get(chain).map(|running| running.source.clone())
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of `HashMap`")]
    pub(super) fn contains_key(&self, chain: &ChainId) -> bool {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).contains_key(chain)
    }

    pub(super) fn all(&self) -> Vec<(ChainId, Source)> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        sources.iter().map(|(chain, running)| (*chain, running.source.clone())).collect()
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Replaces the sources of these chains; `None` removes a chain.
    pub(super) fn replace(&self, changed: HashMap<ChainId, Option<Source>>, tasks: &Tasks) {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        for (chain, source) in changed {
            match source {
                Some(source) => drop(sources.insert(chain, start_source(source, tasks))),
                None => drop(sources.remove(&chain)),
            }
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

fn start_source(source: Source, tasks: &Tasks) -> Arc<RunningSource> {
    let (checked, stopping) = (source.clone(), tasks.clone());
    let task = tasks.spawn_owned(async move {
        stopping.run(checked.tend()).await;
    });
    Arc::new(RunningSource { source, _task: task })
}
