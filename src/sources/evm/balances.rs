//! What a wallet holds of tokens now.

use serde_json::value::RawValue;

use super::tokens::call;
use super::{EvmSource, wire};
use crate::domain::{Address, Units};
use crate::rpc::batch::Call;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::CallOptions;

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
        let mut balances = Vec::with_capacity(mints.len());
        for answer in self.inner.pool.batch(&calls, options).await {
            balances.push(match answer {
                Ok(answer) => balance(&answer.result),
                // It reverts, or it is no token.
                Err(UpstreamError::Rpc { .. }) => None,
                Err(error) => return Err(error),
            });
        }
        Ok(balances)
    }
}

/// Of what `balanceOf` gave.
pub(crate) fn balance(raw: &RawValue) -> Option<Units> {
    wire::returned(raw)?.first_chunk::<WORD>().map(|word| Units::from_be_bytes(*word))
}
