//! The wallet whose transactions are searched, and the known contracts.

use std::sync::Arc;

use crate::decode::evm::Account;
use crate::registry::{Chain, Registry};

#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) wallet: Account,
    pub(super) chain: Arc<Chain>,
    pub(super) registry: Arc<Registry>,
}

impl Subject {
    /// Whether a trade may come from this contract, or through it.
    pub(super) fn knows(&self, account: &Account) -> bool {
        let tables = self.registry.evm();
        tables.is_known(&self.chain, account) || tables.is_settlement(&self.chain, account)
    }
}
