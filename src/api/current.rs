//! The parts of the API in force, which a reload of the limits replaces.

use std::sync::{Arc, PoisonError, RwLock};

use super::{ApiLimits, App};

#[derive(Debug, Clone)]
pub(super) struct Current(Arc<RwLock<Arc<App>>>);

impl Current {
    pub(super) fn new(app: App) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(app))))
    }

    pub(super) fn get(&self) -> Arc<App> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, limits: ApiLimits) {
        let mut app = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *app = Arc::new(App { limits, ..App::clone(&app) });
    }
}
