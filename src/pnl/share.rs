//! Parts of an amount, rounded down.

use std::cmp::Ordering;

use crate::domain::Units;

type Wide = ruint::Uint<512, 8>;

/// `amount * part / whole` rounded down; `amount` where the part is not below the whole.
pub(super) fn share(amount: Units, part: Units, whole: Units) -> Units {
    if part >= whole {
        return amount;
    }
    // The result is at most `amount`, and `whole` is above `part`, so not zero.
    multiply_divide(amount, part, whole).unwrap_or_default()
}

/// `one * other / by` rounded down; `None` for a divisor of zero or a result above 256 bits.
pub(super) fn multiply_divide(one: Units, other: Units, by: Units) -> Option<Units> {
    let product: Wide = one.widening_mul(other);
    Units::checked_from_limbs_slice(product.checked_div(Wide::from(by))?.as_limbs())
}

/// Compares two quotients, each as dividend and divisor, without rounding.
pub(super) fn compare_ratios(one: (Units, Units), other: (Units, Units)) -> Ordering {
    let wide = |a: Units, b: Units| -> Wide { a.widening_mul(b) };
    wide(one.0, other.1).cmp(&wide(other.0, one.1))
}
