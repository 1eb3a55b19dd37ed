//! Current token balances of a wallet.

use serde_json::value::RawValue;

use super::{EvmSource, wire};
use crate::domain::{Address, Units};
use crate::rpc::{Call, CallOptions, Result, unless_refused};

/// `balanceOf(address)`.
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
const WORD: usize = 32;

impl EvmSource {
    /// Balances in the order of the tokens; `None` if a contract does not report one.
    pub(crate) async fn balances(
        &self,
        wallet: Address,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<Option<Units>>> {
        let calls = balance_calls(wallet, mints);
        let answers = self.inner.pool.batch(&calls, options).await.into_iter();
        // A contract that reverts or is no token has no balance.
        let answers = answers.map(unless_refused);
        answers.map(|answer| Ok(answer?.and_then(|answer| balance(&answer.result)))).collect()
    }
}

pub(crate) fn balance_calls(wallet: Address, mints: &[Address]) -> Vec<Call> {
    let mut data = BALANCE_OF.to_vec();
    data.extend([0; WORD - 20]);
    data.extend(wallet.bytes());
    mints.iter().map(|mint| wire::eth_call(mint.bytes(), &data)).collect()
}

pub(crate) fn balance(raw: &RawValue) -> Option<Units> {
    wire::returned(raw)?.first_chunk::<WORD>().map(|word| Units::from_be_bytes(*word))
}
