//! Looks up what rows need and their transactions do not contain.

pub(super) mod pools;
pub(super) mod prices;
pub(super) mod retrace;
pub(super) mod valuation;
