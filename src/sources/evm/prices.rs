//! Price of the native coin from the chain's reference pools.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::{EvmSource, ReferencePool, abi, wire};
use crate::decode::evm::Account;
use crate::domain::{Moment, Price};
use crate::rpc::{Call, CallAnswer, CallOptions, Result, UpstreamError};
use crate::sources::known_pools::MISSING_ANSWERS;
use crate::sources::reference::{DECIMALS_MAX, Search};

impl EvmSource {
    pub(crate) async fn native_prices(
        &self,
        at: &[Moment],
        options: &CallOptions,
    ) -> Result<Vec<Option<Price>>> {
        let pools = self.references(options).await?;
        let mut search = Search::new(&pools, at);
        for blocks in Search::search_depths(self.inner.chain.reference_blocks) {
            if search.open().is_empty() {
                break;
            }
            let events = self.pool_events(&pools, search.open(), blocks, options).await?;
            search.read(&pools, &events, blocks);
        }
        Ok(search.prices(at))
    }

    /// The pools of the chain's row, if the nodes confirm what the row says of them.
    async fn references(&self, options: &CallOptions) -> Result<Arc<Vec<ReferencePool>>> {
        if let Some(known) = self.inner.references.get() {
            return Ok(known);
        }
        let chain = &self.inner.chain;
        let account = |bytes: &[u8]| -> Option<Account> { bytes.try_into().ok() };
        let emitters: Vec<Account> =
            chain.reference_pools.iter().filter_map(|pool| account(pool.bytes())).collect();
        let stables: Vec<Account> =
            chain.stablecoins.iter().filter_map(|coin| account(coin.bytes())).collect();
        let mut found: Vec<(Account, Option<[u8; 32]>, bool, Account)> = Vec::new();
        let native = account(chain.wrapped_native.bytes()).unwrap_or_default();
        let exchanged =
            self.read_of(emitters.iter().copied(), &abi::TOKENS, exchanged_by, options).await?;
        for emitter in &emitters {
            match exchanged.get(emitter).copied() {
                Some([one, stable]) if one == native && stables.contains(&stable) => {
                    found.push((*emitter, None, true, stable));
                }
                Some([stable, one]) if one == native && stables.contains(&stable) => {
                    found.push((*emitter, None, false, stable));
                }
                Some(_) | None => {
                    let (chain, pool) = (&chain.slug, wire::hex(emitter));
                    tracing::warn!(
                        chain,
                        pool,
                        "a reference pool is not one of the coin and a stablecoin"
                    );
                }
            }
        }
        for row in &chain.reference_ids {
            let ends = (account(row.manager.bytes()), account(row.stable.bytes()));
            if let (Some(manager), Some(stable)) = ends {
                // The coin itself is the zero address, which sorts first.
                found.push((manager, Some(row.id), true, stable));
            }
        }
        let stables: BTreeSet<Account> = found.iter().map(|one| one.3).collect();
        let decimals = self.read_of(stables, &[abi::DECIMALS], decimals_in, options).await?;
        let pools = found.into_iter().filter_map(|(emitter, id, native_first, stable)| {
            let stable_decimals = *decimals.get(&stable)?;
            let native_decimals = chain.native.decimals;
            Some(ReferencePool { emitter, id, native_first, native_decimals, stable_decimals })
        });
        let wanted = chain.reference_pools.len() + chain.reference_ids.len();
        Ok(self.inner.references.set(pools.collect(), wanted))
    }

    /// Return data of contracts' calls without arguments, decoded by `read`. A contract without a
    /// valid result is queried again elsewhere, as the node may not know it yet.
    async fn read_of<T: Send>(
        &self,
        contracts: impl IntoIterator<Item = Account>,
        selectors: &[[u8; 4]],
        read: fn(&[Vec<u8>]) -> Option<T>,
        options: &CallOptions,
    ) -> Result<HashMap<Account, T>> {
        let (mut known, mut options) = (HashMap::new(), options.clone());
        let mut open: Vec<Account> = contracts.into_iter().collect();
        for _ in 0..MISSING_ANSWERS {
            open.retain(|contract| !known.contains_key(contract));
            let of = |to: &Account| {
                selectors.iter().map(|selector| wire::eth_call(to, selector)).collect()
            };
            let calls: Vec<Call> = open.iter().flat_map::<Vec<Call>, _>(of).collect();
            if calls.is_empty() {
                break;
            }
            let mut returned = Vec::with_capacity(calls.len());
            for answer in self.inner.pool.batch(&calls, &options).await {
                let by = answer.as_ref().ok().map(|answer| answer.endpoint);
                let data = self.returned(answer)?;
                options.avoid = by.filter(|_| data.is_empty()).or(options.avoid);
                returned.push(data);
            }
            let each = open.iter().zip(returned.chunks(selectors.len()));
            known.extend(each.filter_map(|(of, returned)| Some((*of, read(returned)?))));
        }
        Ok(known)
    }

    /// A contract's return data; empty if it reverts or does not exist. Any other error says
    /// nothing about the contract.
    fn returned(&self, answer: CallAnswer) -> Result<Vec<u8>> {
        let answer = match answer {
            Err(UpstreamError::Rpc { message, .. })
                if message.to_lowercase().contains("revert") =>
            {
                return Ok(Vec::new());
            }
            answer => answer?,
        };
        wire::returned(&answer.result)
            .ok_or_else(|| self.malformed(answer.endpoint, "eth_call gave no data"))
    }
}

fn exchanged_by(returned: &[Vec<u8>]) -> Option<[Account; 2]> {
    let token = |at: usize| returned.get(at)?.first_chunk::<32>().and_then(wire::account_of);
    Some([token(0)?, token(1)?])
}

fn decimals_in(returned: &[Vec<u8>]) -> Option<u8> {
    abi::decimals(returned.first()?).filter(|decimals| *decimals <= DECIMALS_MAX)
}
