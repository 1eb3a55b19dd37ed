//! Price of the native coin from the chain's reference pools, by what their vaults paid and
//! received in a block. Blocks are large and cannot be queried by account, so moments share them:
//! each uses the last block of a grid of slots, whose result is cached.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::SolanaSource;
use super::blocks::{NO_BLOCK, NOT_AVAILABLE};
use super::price_wire::{self, Mints, Vaults};
use crate::domain::{Address, Height, Moment, Price, lock};
use crate::registry::{Chain, ReferenceVaults};
use crate::rpc::{CallOptions, CallResponse, Result, UpstreamError};

/// Slots of the grid: about 25 seconds, in which the coin moves by less than a pool's fee.
const GRID: u64 = 64;
/// Slots, from the grid's slot downwards, that are searched until one holds a swap: about one in
/// two does, in pools of much traffic.
const SLOTS_MAX: u64 = 8;
/// The pool's error code for an answer above the size limit.
const TOO_LARGE: i64 = 413;
/// Blocks requested in parallel: each has some megabytes.
const PARALLEL: usize = 4;
/// Answers about one block at most; two of them must refuse it.
const BLOCK_TRIES: u32 = 3;
/// Prices of grid slots to keep.
const KEPT_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct References {
    pools: Vec<Vaults>,
    mints: Mints,
    kept: Mutex<BTreeMap<Height, Option<Price>>>,
}

impl References {
    pub(super) fn of(chain: &Chain) -> Self {
        let key = |address: &Address| address.bytes().try_into().ok();
        let vaults = |row: &ReferenceVaults| {
            Some(Vaults { native: key(&row.native)?, stable: key(&row.stable)?, fee: row.fee })
        };
        let mints = Mints {
            native: key(&chain.wrapped_native).unwrap_or_default(),
            stables: chain.stablecoins.iter().filter_map(key).collect(),
        };
        let pools = chain.reference_vaults.iter().filter_map(vaults).collect();
        Self { pools, mints, kept: Mutex::default() }
    }
}

impl SolanaSource {
    pub(crate) async fn native_prices(
        &self,
        at: &[Moment],
        options: &CallOptions,
    ) -> Result<Vec<Option<Price>>> {
        if self.references.pools.is_empty() {
            return Ok(vec![None; at.len()]);
        }
        let slots: BTreeSet<Height> = at.iter().map(|moment| grid(moment.height)).collect();
        let kept = |slot: &Height| Some((*slot, *lock(&self.references.kept).get(slot)?));
        let mut known: HashMap<Height, Option<Price>> = slots.iter().filter_map(kept).collect();
        let open: Vec<Height> =
            slots.into_iter().filter(|slot| !known.contains_key(slot)).collect();
        let asked = open.into_iter().map(|slot| {
            let options = options.clone();
            async move { (slot, self.price_below(slot, &options).await) }
        });
        let mut answers = stream::iter(asked).buffer_unordered(PARALLEL);
        while let Some((slot, answer)) = answers.next().await {
            match answer {
                Ok(price) => {
                    known.insert(slot, price);
                    self.keep(slot, price);
                }
                // No node will ever return this block; the others may still be returned.
                Err(error) if error.is_final() => drop(known.insert(slot, None)),
                Err(error) => return Err(error),
            }
        }
        let price = |moment: &Moment| known.get(&grid(moment.height)).copied().flatten();
        Ok(at.iter().map(price).collect())
    }

    fn keep(&self, slot: Height, price: Option<Price>) {
        let mut kept = lock(&self.references.kept);
        kept.insert(slot, price);
        // The oldest slots are dropped first: requests are mostly for new ones.
        while kept.len() > KEPT_MAX {
            kept.pop_first();
        }
    }

    /// The price in the first block from a slot downwards that holds a swap.
    async fn price_below(&self, slot: Height, options: &CallOptions) -> Result<Option<Price>> {
        let References { pools, mints, .. } = self.references.as_ref();
        for slot in (slot.saturating_sub(SLOTS_MAX - 1)..=slot).rev() {
            let Some(answer) = self.price_block(slot, options).await? else { continue };
            let price = price_wire::price(&answer.result, pools, mints)
                .map_err(|()| self.malformed(answer.endpoint, "getBlock gave no block"))?;
            if price.is_some() {
                return Ok(price);
            }
        }
        Ok(None)
    }

    /// A slot's block; `None` where the slot has none, where nodes lack it for good, or where it is
    /// larger than an answer may be. That there is none, or that no node keeps it, takes two
    /// answers: servers of one address start and prune independently.
    async fn price_block(&self, at: Height, options: &CallOptions) -> Result<Option<CallResponse>> {
        let (mut options, mut refusals, mut others) = (options.clone(), 0, 0);
        for _ in 0..BLOCK_TRIES {
            match self.ask_block(at, "accounts", &options).await {
                // A node may come to know later what it does not know now.
                Ok(answer) if answer.result.get() == "null" => {
                    options.avoid = Some(answer.endpoint);
                }
                Ok(answer) if !price_wire::may_be_of(&answer.result, at) => {
                    options.avoid = Some(answer.endpoint);
                    others += 1;
                }
                Ok(answer) => return Ok(Some(answer)),
                // Another block serves as well.
                Err(UpstreamError::Rpc { code, .. })
                    if [TOO_LARGE, NOT_AVAILABLE].contains(&code) =>
                {
                    return Ok(None);
                }
                Err(UpstreamError::Rpc { .. }) if refusals == 0 => refusals += 1,
                Err(UpstreamError::Rpc { code, .. }) if NO_BLOCK.contains(&code) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        if others == BLOCK_TRIES {
            return Ok(None);
        }
        let last = "no node gives the block of a price yet".to_owned();
        Err(UpstreamError::Unavailable { attempts: BLOCK_TRIES, last })
    }
}

fn grid(slot: Height) -> Height {
    slot - slot % GRID
}
