//! Current token balances of a wallet.

use super::TronSource;
use crate::domain::{Address, Units};
use crate::rpc::{CallOptions, Result, unless_final};
use crate::sources::evm::balances::{balance, balance_calls};

impl TronSource {
    /// Balances in the order of the tokens; `None` if a contract does not report one, if the node
    /// has no JSON-RPC, and for TRC-10 tokens, which have no contract.
    pub(crate) async fn balances(
        &self,
        wallet: Address,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<Option<Units>>> {
        let mut balances = Vec::with_capacity(mints.len());
        for group in mints.chunks(self.inner.limits.tokens_batch.max(1)) {
            let answered = self.rpc("eth_call", &balance_calls(wallet, group), options).await;
            let Some((answers, _)) = unless_final(answered)? else {
                balances.extend(group.iter().map(|_| None));
                continue;
            };
            balances.extend(group.iter().zip(answers).map(|(mint, answer)| {
                let is_contract = mint.as_tron_asset().is_none();
                answer.ok().filter(|_| is_contract).and_then(|raw| balance(&raw))
            }));
        }
        Ok(balances)
    }
}
