//! Slots and times. Every twentieth slot was skipped, as happens on mainnet; slots with a block are
//! numbered without holes by their ordinal.

/// Head of a new chain: late November 2025 by [`time`].
pub(super) const DEFAULT_HEAD: u64 = 400_000_000;
pub(super) const DEFAULT_FIRST: u64 = 300_000_000;
/// The last of so many slots has no block.
const PERIOD: u64 = 20;
/// Block time of slot 0 (2020-03-16), and the average length of a slot as a fraction of a second.
const GENESIS_TIME: u64 = 1_584_368_940;
const SLOT_TIME: (u64, u64) = (9, 20);

pub(super) fn has_block(slot: u64) -> bool {
    slot % PERIOD != PERIOD - 1
}

/// The slot, or the one before it that has a block.
pub(super) fn at_or_below(slot: u64) -> u64 {
    if has_block(slot) { slot } else { slot.saturating_sub(1) }
}

pub(super) fn slot(ordinal: u64) -> u64 {
    ordinal.saturating_add(ordinal / (PERIOD - 1))
}

/// Ordinal of the slot, or of the next one that has a block.
pub(super) fn ordinal(slot: u64) -> u64 {
    slot - slot / PERIOD
}

/// Ordinal of the slot, or of the one before it that has a block.
pub(super) fn ordinal_below(slot: u64) -> Option<u64> {
    if has_block(slot) { Some(ordinal(slot)) } else { ordinal(slot).checked_sub(1) }
}

pub(super) fn time(slot: u64) -> u64 {
    let (above, below) = SLOT_TIME;
    GENESIS_TIME.saturating_add(slot / below * above + slot % below * above / below)
}

/// The last slot at or before a time.
pub(super) fn at_time(seconds: u64) -> u64 {
    in_seconds(seconds.saturating_sub(GENESIS_TIME))
}

pub(super) fn in_seconds(seconds: u64) -> u64 {
    let (above, below) = SLOT_TIME;
    seconds.saturating_mul(below) / above
}

/// Blocks below a slot: the block height of nodes.
pub(super) fn block_height(slot: u64) -> u64 {
    ordinal_below(slot).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_number_the_slots_that_have_a_block() {
        let with_block = (0..1_000).filter(|s| has_block(*s));
        for (expected, at) in (0_u64..).zip(with_block) {
            assert_eq!(
                (ordinal(at), slot(expected), ordinal_below(at)),
                (expected, at, Some(expected))
            );
        }
        assert_eq!((ordinal(19), ordinal_below(19)), (19, Some(18)));
        assert!(time(at_time(1_764_000_000)).abs_diff(1_764_000_000) <= 1);
    }
}
