//! What a wallet holds of tokens now.

use serde_json::value::RawValue;

use super::tokens::call;
use super::{EvmSource, wire};
use crate::domain::{Address, Units};
use crate::rpc::error::unless_refused;
use crate::rpc::{Call, CallOptions, UpstreamError};

/// `balanceOf(address)`.
const BALANCE_OF: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
const WORD: usize = 32;

impl EvmSource {
    /// `None` where the contract does not report it.
    pub(crate) async fn balances(
        &self,
        wallet: Address,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<Option<Units>>, UpstreamError> {
        let mut data = BALANCE_OF.to_vec();
        data.extend([0; WORD - 20]);
        data.extend(wallet.bytes());
        let calls: Vec<Call> = mints.iter().map(|mint| call(mint.bytes(), &data)).collect();
        let answers = self.inner.pool.batch(&calls, options).await.into_iter();
        // One that reverts, or is no token, has none.
        let answers = answers.map(unless_refused);
        answers.map(|answer| Ok(answer?.and_then(|answer| balance(&answer.result)))).collect()
    }
}

/// Of what `balanceOf` gave.
pub(crate) fn balance(raw: &RawValue) -> Option<Units> {
    wire::returned(raw)?.first_chunk::<WORD>().map(|word| Units::from_be_bytes(*word))
}
