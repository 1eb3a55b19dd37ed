//! An account that transactions of other users name in every block: the mint of wrapped SOL.

use crate::demo::timeline::Spot;
use crate::domain::Height;

use super::keys::{KnownAccount, ModelKey};
use super::model::{ListEntry, SolanaModel};
use super::slots;

/// Transactions of a block that name it.
const OF_A_BLOCK: u32 = 3;

pub(super) fn is_busy(key: &ModelKey) -> bool {
    KnownAccount::of(key) == Some(KnownAccount::WrappedSol)
}

/// Its entries below a place, newest first.
pub(super) fn entries(
    model: &SolanaModel,
    (top, below): (Height, u32),
) -> impl Iterator<Item = ListEntry> {
    let blocks = (0..=top).rev().filter(|slot| slots::has_block(*slot));
    blocks.flat_map(move |slot| {
        let most = if slot == top { below.min(OF_A_BLOCK) } else { OF_A_BLOCK };
        (0..most).rev().map(move |index| ListEntry {
            signature: model.filler(slot, index),
            number: 0,
            spot: Spot { height: slot, index },
            failed: false,
        })
    })
}
