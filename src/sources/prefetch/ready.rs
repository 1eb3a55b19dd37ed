//! What a timeline of listed transactions delivers at once. The same for every family with lists.

use crate::domain::Height;

/// How much makes a chunk.
#[derive(Debug)]
pub(in crate::sources) struct ChunkSizes {
    pub(in crate::sources) chunk_min: usize,
    pub(in crate::sources) chunk_max: usize,
    /// Entries passed over after which an empty chunk is worth it.
    pub(in crate::sources) skipped_max: usize,
}

/// What can be delivered now: transactions, and ids of those that are listed and that no endpoint
/// gives.
#[derive(Debug)]
pub(in crate::sources) struct Ready<T, I> {
    pub(in crate::sources) low: Height,
    pub(in crate::sources) high: Height,
    pub(in crate::sources) txs: Vec<T>,
    pub(in crate::sources) missing: Vec<(Height, I)>,
}
