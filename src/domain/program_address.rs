//! Program-derived addresses of Solana: hashes that are not points of the curve.

use curve25519_dalek::edwards::CompressedEdwardsY;
use sha2::{Digest as _, Sha256};

/// The address that a program derives from seeds, with the highest bump that gives none on the
/// curve.
pub fn program_address(seeds: &[&[u8]], program: &[u8; 32]) -> [u8; 32] {
    let derived = (0..=u8::MAX).rev().find_map(|bump| {
        let mut hash = Sha256::new();
        for seed in seeds {
            hash.update(seed);
        }
        hash.update([bump]);
        hash.update(program);
        hash.update(b"ProgramDerivedAddress");
        let bytes = hash.finalize().into();
        CompressedEdwardsY(bytes).decompress().is_none().then_some(bytes)
    });
    derived.unwrap_or_default()
}
