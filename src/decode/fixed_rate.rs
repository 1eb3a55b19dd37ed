//! Distinguishes a fixed price from a market price by the ratio of two amounts. Pure.

use crate::domain::Units;

/// A fixed price has at most this many digits.
const PRICE_DIGITS_MAX: usize = 6;
/// Both amounts need at least this many significant digits. Of amounts this long, one is the other
/// times a short price by chance less than once in thousands.
const AMOUNT_DIGITS_MIN: usize = 10;
/// A price of at most this many digits is fixed also where an amount is round. Both need at least
/// so many digits, with the zeros at their end: what a market gives fits it as rarely.
const ROUND_PRICE_DIGITS_MAX: usize = 3;
const ROUND_AMOUNT_DIGITS_MIN: usize = 7;

/// Whether two amounts have the same digits, one with more zeros at the end: tokens of different
/// decimals exchanged one for one, or at a power of ten.
pub(super) fn are_alike(one: Units, other: Units) -> bool {
    let (low, high) = if one < other { (one, other) } else { (other, one) };
    let Some(mut times) = high.checked_div(low) else { return one == other };
    let ten = Units::from(10);
    let is_whole = low.checked_mul(times) == Some(high);
    while times.checked_rem(ten).is_some_and(|rest| rest.is_zero()) && !times.is_zero() {
        times /= ten;
    }
    is_whole && times == Units::ONE
}

/// Whether one amount is the other times a short decimal, rounded to a unit; a shorter one where
/// an amount is round. Amounts that are equal but for zeros at the end count even if they are short.
pub(super) fn is_fixed_rate(one: Units, other: Units) -> bool {
    let is_long = |units: Units| units.to_string().trim_end_matches('0').len() >= AMOUNT_DIGITS_MIN;
    are_alike(one, other)
        || (is_long(one) && is_long(other) && is_short_price(one, other))
        || is_round_price(one, other)
}

fn is_round_price(one: Units, other: Units) -> bool {
    let is_known = |units: Units| units.to_string().len() >= ROUND_AMOUNT_DIGITS_MIN;
    is_known(one) && is_known(other) && is_price_within(one, other, ROUND_PRICE_DIGITS_MAX)
}

/// Whether amounts of any length have a price of few digits: of short ones a market's price looks
/// like a fixed one, too.
pub(super) fn is_short_price(one: Units, other: Units) -> bool {
    are_alike(one, other) || is_price_within(one, other, PRICE_DIGITS_MAX)
}

/// Whether one amount is the other times a decimal of at most so many digits.
fn is_price_within(one: Units, other: Units, digits: usize) -> bool {
    let is_multiple = |of, by| is_product(of, by, digits).unwrap_or(false);
    is_multiple(one, other) || is_multiple(other, one)
}

/// Whether `result` is `of` times such a decimal; `None` for numbers that are too large.
fn is_product(of: Units, result: Units, digits: usize) -> Option<bool> {
    let (length, ten) = (|units: Units| units.to_string().len(), Units::from(10));
    // Zeros at the end of a price, as between tokens of different decimals, are not its digits.
    let zeros = length(result).saturating_sub(length(of));
    let of = of.checked_mul(ten.checked_pow(Units::from(zeros))?)?;
    // Scaled by this power of ten, the price has the maximum number of digits, or one more.
    let shift = (digits + length(of)).checked_sub(length(result))?;
    let longest = ten.checked_pow(Units::from(digits))?;
    let price = |power| result.checked_mul(power)?.checked_div(of);
    let mut power = ten.checked_pow(Units::from(shift))?;
    if price(power)? >= longest {
        power = power.checked_div(ten).filter(|power| !power.is_zero())?;
    }
    let low = price(power)?;
    for price in [low, low.checked_add(Units::ONE)?] {
        let (whole, rest) = of.checked_mul(price)?.div_rem(power);
        let rounded_up = if rest.is_zero() { whole } else { whole.checked_add(Units::ONE)? };
        if whole == result || rounded_up == result {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_fixed(one: &str, other: &str) -> bool {
        let [one, other] = [one, other].map(|text| text.parse().unwrap());
        assert_eq!(is_fixed_rate(one, other), is_fixed_rate(other, one));
        is_fixed_rate(one, other)
    }

    #[test]
    fn a_short_price_is_fixed() {
        // Redemptions on Ethereum at a price of 16.0848, from 18 decimals to 6.
        assert!(is_fixed("8681166285488309590820", "139634823468"));
        assert!(is_fixed("2733523400216326910723", "43968177187"));
        // One unit less; a price of seven digits.
        assert!(!is_fixed("8681166285488309590820", "139634823467"));
        assert!(!is_fixed("8681166285488309590820", "139635257526"));
        // Rounded up, 0.5 of it and 3 for 1.
        assert!(is_fixed("12345678901", "6172839451"));
        assert!(is_fixed("12345678901", "37037036703"));
        // 3 for 1 from 6 decimals to 18, and one unit less.
        assert!(is_fixed("12345678901", "37037036703000000000000"));
        assert!(!is_fixed("12345678901", "37037036702999999999999"));
    }

    #[test]
    fn a_price_of_three_digits_is_fixed_for_round_amounts() {
        // 5,000 of a token for 250 or 15,000 of another; 100 of six decimals for 40 or 300.
        assert!(is_fixed("5000000000000000000000", "250000000000000000000"));
        assert!(is_fixed("5000000000000000000000", "15000000000000000000000"));
        assert!(is_fixed("100000000", "40000000000000000000"));
        assert!(is_fixed("100000000", "300000000000000000000"));
        assert!(is_fixed("100000000", "3333333333333333333333"));
        assert!(is_fixed("12345678900", "6172839450"));
        assert!(is_fixed("5000000000", "4900000000000000000000"));
        // Four digits; an amount of less than seven.
        assert!(!is_fixed("5000000000000000000000", "250150000000000000000"));
        assert!(!is_fixed("999999", "250000000000000000000"));
    }

    #[test]
    fn the_same_digits_are_fixed_however_few() {
        assert!(is_fixed("500", "500"));
        // 5,000 of a token with six decimals for 5,000 or 5,000,000 of one with eighteen.
        assert!(is_fixed("5000000000", "5000000000000000000000"));
        assert!(is_fixed("5000000000", "5000000000000000000000000"));
        assert!(is_fixed("500", "500000000000000000000"));
        assert!(!is_fixed("5000000000", "5000100000000000000001"));
        assert!(!is_fixed("5000000000", "4999500000000000000000"));
    }

    #[test]
    fn few_digits_show_nothing() {
        assert!(!is_fixed("500", "7"));
        assert!(is_short_price(Units::from(500), Units::from(7)));
        assert!(!is_fixed("5000000", "2345670000000000000"));
        assert!(!is_fixed("12345678900", "6172962900"));
        assert!(!is_fixed("500", "5100000"));
        let largest = Units::MAX.to_string();
        assert!(!is_fixed(&largest, "12345678901"));
    }
}
