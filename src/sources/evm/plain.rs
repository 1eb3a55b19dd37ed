//! Whether a wallet is a plain account: one without code moves native coin by its own transactions
//! alone, so that a way without inner calls sees every trade of it.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{EvmSource, lock, wire};
use crate::decode::evm::Account;
use crate::domain::{Doubts, Proof};
use crate::rpc::pool::CallOptions;

/// Wallets whose answer is remembered, and for how long: code may come to an address.
const REMEMBERED_MAX: usize = 10_000;
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// Answers that must agree, of different endpoints where there are some.
const ANSWERS: usize = 2;

impl EvmSource {
    /// A proof without the doubt about inner calls, where the wallet cannot have any. Asked only
    /// where the doubt keeps the span from being accepted.
    pub(super) async fn settle_inner_calls(
        &self,
        wallet: &Account,
        proof: Proof,
        options: &CallOptions,
    ) -> Proof {
        let is_open = proof.doubts.contains(Doubts::INNER_CALLS) && !self.accepts(proof);
        if !is_open || !self.is_plain(wallet, options).await {
            return proof;
        }
        Proof { doubts: proof.doubts.without(Doubts::INNER_CALLS), ..proof }
    }

    async fn is_plain(&self, wallet: &Account, options: &CallOptions) -> bool {
        let is_fresh = |at: &Instant| at.elapsed() < REMEMBERED_FOR;
        if lock(&self.inner.plain).get(wallet).is_some_and(is_fresh) {
            return true;
        }
        let mut options = options.clone();
        for _ in 0..ANSWERS {
            let params = json!([wire::hex(wallet), "latest"]);
            let Ok(answer) = self.inner.pool.call("eth_getCode", params, &options).await else {
                return false;
            };
            if answer.result.get().trim() != "\"0x\"" {
                return false;
            }
            options.avoid = Some(answer.endpoint);
        }
        let mut plain = lock(&self.inner.plain);
        if plain.len() >= REMEMBERED_MAX {
            plain.clear();
        }
        plain.insert(*wallet, Instant::now());
        true
    }
}
