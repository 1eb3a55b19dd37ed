//! The resume hint of a read, in bytes that the store keeps.

use crate::domain::{Family, Height, Resume, TxId};

/// An entry of a list of signatures.
pub(super) type Mark = (Height, TxId);

/// Encodes the resume hint: the two lowest entries of the wallet's list.
pub(super) fn hint(above: Mark, tail: Mark) -> Resume {
    let mut bytes = Vec::with_capacity(2 * (8 + 64));
    for (slot, id) in [above, tail] {
        bytes.extend(slot.to_be_bytes());
        bytes.extend(id.to_bytes());
    }
    Resume(bytes)
}

pub(super) fn resume(hint: Option<&Resume>) -> Option<(Mark, Mark)> {
    let (above, tail) = hint?.0.split_at_checked(8 + 64)?;
    let mark = |bytes: &[u8]| {
        let (slot, id) = bytes.split_first_chunk::<8>()?;
        Some((u64::from_be_bytes(*slot), TxId::from_bytes(Family::Solana, id)?))
    };
    Some((mark(above)?, mark(tail)?))
}
