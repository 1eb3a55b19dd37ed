//! A wallet's positions in a period.

use super::method::Method;
use super::period::Period;
use super::position::TokenPosition;
use crate::domain::{Address, Decimal, Units};

/// Digits of a win rate.
const RATE_DECIMALS: u8 = 4;

#[derive(Debug)]
pub struct Report {
    pub method: Method,
    pub period: Period,
    /// Rows of the period.
    pub trades: u64,
    /// Counts and values of all tokens.
    pub totals: TokenPosition,
    /// Tokens with rows in the period or held when it began; the one traded last stands first.
    pub tokens: Vec<TokenReport>,
}

#[derive(Debug)]
pub struct TokenReport {
    pub symbol: String,
    pub mint: Address,
    /// Decimals of the quantities.
    pub decimals: u8,
    pub position: TokenPosition,
}

/// Wins per judged sell, rounded down to four decimals; `None` where none was judged.
pub fn rate(wins: u64, judged: u64) -> Option<Decimal> {
    let scaled = wins.saturating_mul(10_u64.pow(u32::from(RATE_DECIMALS)));
    let units = Units::from(scaled.checked_div(judged)?);
    Some(Decimal { units, decimals: RATE_DECIMALS })
}
