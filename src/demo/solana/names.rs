//! Common names of the venues, as the venue table has them (a test compares the two).

use super::keys::KnownAccount;

#[expect(clippy::wildcard_enum_match_arm, reason = "most accounts are no venue")]
pub(super) fn venue(program: KnownAccount) -> &'static str {
    match program {
        KnownAccount::PumpFun => "Pump.fun",
        KnownAccount::PumpSwap => "PumpSwap",
        KnownAccount::RaydiumV4 => "Raydium AMM v4",
        KnownAccount::RaydiumCpmm => "Raydium CPMM",
        KnownAccount::Whirlpool => "Orca Whirlpool",
        KnownAccount::Dlmm => "Meteora DLMM",
        KnownAccount::Jupiter => "Jupiter v6",
        KnownAccount::JupiterLimit => "Jupiter Limit Order v1",
        _ => "",
    }
}
