//! Common names of the venues, as the venue table has them (a test compares the two).

use super::keys::Known;

#[expect(clippy::wildcard_enum_match_arm, reason = "most accounts are no venue")]
pub(super) fn venue(program: Known) -> &'static str {
    match program {
        Known::PumpFun => "Pump.fun",
        Known::PumpSwap => "PumpSwap",
        Known::RaydiumV4 => "Raydium AMM v4",
        Known::RaydiumCpmm => "Raydium CPMM",
        Known::Whirlpool => "Orca Whirlpool",
        Known::Dlmm => "Meteora DLMM",
        Known::Jupiter => "Jupiter v6",
        Known::JupiterLimit => "Jupiter Limit Order v1",
        _ => "",
    }
}
