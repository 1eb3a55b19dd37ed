//! Positions inside a block.

use std::collections::{BTreeMap, HashMap};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{DecodedTx, EnrichError, Lookups};
use crate::domain::{Height, TradeKey, TxId};
use crate::rpc::UpstreamError;
use crate::store::{StoreError, WalletId};

/// How often a block is fetched that comes back empty, or without transactions that are known to be
/// in it: an order by id would differ from the block's, which another read may get.
const BLOCK_TRIES_MAX: u32 = 12;
/// Blocks that are requested concurrently.
const BLOCKS_AT_ONCE: usize = 16;
/// Stored rows of one time that are searched for others of the same block.
const BLOCK_ROWS_MAX: usize = 1_000;

/// Positions by block with several trades of the wallet; empty where no node returns them.
pub(super) type Positions = HashMap<Height, HashMap<TxId, u32>>;

/// Looks up the positions that the transactions do not hold, of blocks in which the wallet traded
/// several times.
pub(super) async fn look_up(
    lookups: &Lookups<'_>,
    id: WalletId,
    txs: &[DecodedTx],
    is_stored: bool,
) -> Result<Positions, EnrichError> {
    let (mut known, mut open) = (Positions::new(), Vec::new());
    let mut by_height: BTreeMap<Height, Vec<&DecodedTx>> = BTreeMap::new();
    for one in txs {
        by_height.entry(one.height).or_default().push(one);
    }
    for (height, same) in by_height {
        let is_alone = match same.as_slice() {
            [one] => !is_stored || is_alone(lookups, id, one).await?,
            _ => false,
        };
        if is_alone {
            continue;
        }
        if same.iter().any(|one| one.index.is_none()) {
            open.push((height, same.iter().map(|one| one.id).collect::<Vec<TxId>>()));
        } else {
            let at = same.iter().filter_map(|one| Some((one.id, one.index?)));
            known.insert(height, at.collect());
        }
    }
    let requests = open.into_iter().map(async |(height, wanted)| {
        Ok::<_, EnrichError>((height, positions(lookups, height, &wanted).await?))
    });
    let found =
        stream::iter(requests).buffer_unordered(BLOCKS_AT_ONCE).try_collect::<Vec<_>>().await?;
    known.extend(found);
    Ok(known)
}

/// Whether no other transaction of its block is stored: a second read may bring one of several.
async fn is_alone(lookups: &Lookups<'_>, id: WalletId, tx: &DecodedTx) -> Result<bool, StoreError> {
    let view = lookups.enricher.store.view()?;
    let rows = view.rows_between(id, tx.time, tx.time, BLOCK_ROWS_MAX).await?;
    let is_other = |key: &TradeKey| key.height == tx.height && key.tx != tx.id;
    Ok(!rows.bare().iter().any(|row| is_other(&row.key)))
}

/// Positions in a block; empty where no node can return them, and then the order is by id.
async fn positions(
    lookups: &Lookups<'_>,
    height: Height,
    wanted: &[TxId],
) -> Result<HashMap<TxId, u32>, UpstreamError> {
    for _ in 0..BLOCK_TRIES_MAX {
        match lookups.source.block_order(height, lookups.lane).await {
            Ok(ids) => {
                let positions: HashMap<TxId, u32> = ids.into_iter().zip(0..).collect();
                if wanted.iter().all(|id| positions.contains_key(id)) {
                    return Ok(positions);
                }
            }
            Err(error) if is_lasting(lookups, &error).await => {
                tracing::warn!(height, %error, "no node returns the order inside this block; rows are ordered by transaction id");
                return Ok(HashMap::new());
            }
            Err(error) => return Err(error),
        }
    }
    // An order by id is better than a wallet that never gets past this block.
    tracing::warn!(height, "the block came back without transactions that are in it");
    Ok(HashMap::new())
}

/// Whether no node will return the order: each reports that, or refuses blocks while it answers
/// other requests.
async fn is_lasting(lookups: &Lookups<'_>, error: &UpstreamError) -> bool {
    let is_refused = matches!(error, UpstreamError::Refused { .. });
    error.is_final() || is_refused && lookups.source.head(lookups.lane).await.is_ok()
}
