//! Program-derived addresses: hashes that are not points of the curve.

use sha2::{Digest as _, Sha256};

use crate::domain::Units;

use super::keys::ModelKey;

/// 2^255 - 19.
const PRIME: Units = Units::from_limbs([
    0xffff_ffff_ffff_ffed,
    0xffff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
    0x7fff_ffff_ffff_ffff,
]);
/// The curve's d: -121665 / 121666.
const D: Units = Units::from_limbs([
    0x75eb_4dca_1359_78a3,
    0x0070_0a4d_4141_d8ab,
    0x8cc7_4079_7779_e898,
    0x5203_6cee_2b6f_fe73,
]);

/// The address that a program derives from seeds, with the highest bump that gives none on the
/// curve.
pub(super) fn derive(seeds: &[&[u8]], program: &ModelKey) -> ModelKey {
    for bump in (0..=u8::MAX).rev() {
        let mut hash = Sha256::new();
        for seed in seeds {
            hash.update(seed);
        }
        hash.update([bump]);
        hash.update(program);
        hash.update(b"ProgramDerivedAddress");
        let key: ModelKey = hash.finalize().into();
        if !is_on_curve(&key) {
            return key;
        }
    }
    [0; 32]
}

/// Whether the bytes are the y of a point: x^2 = (y^2 - 1) / (d y^2 + 1) has a root.
fn is_on_curve(key: &ModelKey) -> bool {
    let one = Units::from(1);
    let mut y = Units::from_le_bytes(*key);
    y.set_bit(255, false);
    let square = y.mul_mod(y, PRIME);
    let above = square.add_mod(PRIME - one, PRIME);
    let below = D.mul_mod(square, PRIME).add_mod(one, PRIME);
    // A quotient is a square where the product is one.
    jacobi(above.mul_mod(below, PRIME)) >= 0
}

/// The Jacobi symbol over [`PRIME`]: 1 for squares, 0 for zero, -1 for the rest.
fn jacobi(value: Units) -> i8 {
    let (mut a, mut n, mut sign) = (value, PRIME, 1_i8);
    let low = |x: Units| x.as_limbs().first().copied().unwrap_or(0);
    while !a.is_zero() {
        let zeros = a.trailing_zeros();
        a >>= zeros;
        if zeros % 2 == 1 && matches!(low(n) % 8, 3 | 5) {
            sign = -sign;
        }
        if a < n {
            std::mem::swap(&mut a, &mut n);
            if low(a) % 4 == 3 && low(n) % 4 == 3 {
                sign = -sign;
            }
        }
        a -= n;
    }
    if n == Units::from(1) { sign } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::solana::keys::KnownAccount;

    /// The metadata account of USDC as explorers show it.
    #[test]
    fn derives_what_mainnet_derives() {
        let program = KnownAccount::Metaplex.key();
        let key = derive(&[b"metadata", &program, &KnownAccount::Usdc.key()], &program);
        let mut text = Vec::new();
        crate::demo::base58::encode(&key, &mut text);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "5x38Kp4hvdomTCnCrAny4UtMUt5rQBdB6px2K1Ui45Wq"
        );
    }

    #[test]
    fn a_public_key_is_on_the_curve() {
        // The base point's y is 4/5.
        let y = Units::from(5).inv_mod(PRIME).unwrap().mul_mod(Units::from(4), PRIME);
        assert!(is_on_curve(&y.to_le_bytes()));
    }
}
