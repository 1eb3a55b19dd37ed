//! Addresses: real ones for programs and known accounts, keyed mixes for the rest. Those that must
//! be decoded (token accounts, mints, signatures) are sealed, not looked up.

use std::sync::LazyLock;

use crate::demo::mix;

pub(super) type ModelKey = [u8; 32];

macro_rules! known {
    (
        programs { $($program:ident = $address:literal $(is $venue:literal)?,)* }
        others { $($other:ident = $text:literal,)* }
    ) => {
        /// Accounts that exist on mainnet under these addresses.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(super) enum KnownAccount { $($program,)* $($other,)* }

        impl KnownAccount {
            pub(super) const ALL: &[Self] = &[$(Self::$program,)* $(Self::$other,)*];

            pub(super) const fn text(self) -> &'static str {
                match self { $(Self::$program => $address,)* $(Self::$other => $text,)* }
            }

            /// Whether the account is a program (the rest are mints, sysvars and plain accounts).
            pub(super) fn is_program(self) -> bool {
                matches!(self, $(Self::$program)|*)
            }

            /// Common name of a venue, as the venue table has it (a test compares the two).
            pub(super) const fn venue(self) -> &'static str {
                match self { $(Self::$program => concat!($($venue)?),)* $(Self::$other => "",)* }
            }
        }
    };
}

known! {
    programs {
        System = "11111111111111111111111111111111",
        ComputeBudget = "ComputeBudget111111111111111111111111111111",
        Token = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
        Token2022 = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
        AssociatedToken = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL",
        Stake = "Stake11111111111111111111111111111111111111",
        Loader = "BPFLoaderUpgradeab1e11111111111111111111111",
        Metaplex = "metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s",
        PumpFun = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P" is "Pump.fun",
        PumpSwap = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA" is "PumpSwap",
        PumpFees = "pfeeUxB6jkeY1Hxd7CsFCAjcbHA9rWtchMGdZ6VojVZ",
        RaydiumV4 = "675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8" is "Raydium AMM v4",
        RaydiumCpmm = "CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C" is "Raydium CPMM",
        Whirlpool = "whirLbMiicVdio4qvUfM5KAg6Ct8VwpYzGff3uctyCc" is "Orca Whirlpool",
        Dlmm = "LBUZKhRxPF3XUpBCjp4YzTKgLccjZhTSDM9YuVaPwxo" is "Meteora DLMM",
        Jupiter = "JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4" is "Jupiter v6",
        JupiterLimit = "jupoNjAxXgZ4rjzxzPMP4oxduvQsQtZzyknqvzYNrNu" is "Jupiter Limit Order v1",
    }
    others {
        WhirlpoolVaultSol = "EUuUbDcafPrmVTD5M6qoJAoyyNbihBhugADAxRMn5he9",
        WhirlpoolVaultUsdc = "2WLWEuKDgkDUccTpbwYp1GToYktiSB1cXvreHUwiSUVP",
        RaydiumV4VaultSol = "DQyrAcCrDXQ7NeoqGgDCZwBvWDcYmFCjSb9JtteuvPpz",
        RaydiumV4VaultUsdc = "HLmqeL62xR1QoZ1HKKbXRrdN1p3phKpxRMb2VVopvBBz",
        RaydiumV4Authority = "5Q544fKrFoe6tsEbD7S8EmxGTJYAKtTVhAW5Q5pge4j1",
        JupiterEvents = "D8cy77BBepLMngZx6ZukaTff5hCt1HrWyKk3Hnd9oitf",
        WrappedSol = "So11111111111111111111111111111111111111112",
        Usdc = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
        Rent = "SysvarRent111111111111111111111111111111111",
        Clock = "SysvarC1ock11111111111111111111111111111111",
        StakeHistory = "SysvarStakeHistory1111111111111111111111111",
        StakeConfig = "StakeConfig11111111111111111111111111111111",
        Instructions = "Sysvar1nstructions1111111111111111111111111",
        JitoTip1 = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5",
        JitoTip2 = "DfXygSm4jCyNCybVYYK6DwvWqjKee8pbDmJGcLWNDXjh",
        JitoTip3 = "ADuUkR4vqLUMWXxW9gh6D6L8pMSawimctcNZ5pGwDcEt",
    }
}

static KEYS: LazyLock<Vec<ModelKey>> = LazyLock::new(|| {
    let decode = |known: &KnownAccount| {
        let mut key = [0; 32];
        // The texts are constants of this file, checked by a test.
        let _ = five8::decode_32(known.text().as_bytes(), &mut key);
        key
    };
    KnownAccount::ALL.iter().map(decode).collect()
});

impl KnownAccount {
    pub(super) fn key(self) -> ModelKey {
        let at = Self::ALL.iter().position(|known| *known == self);
        at.and_then(|at| KEYS.get(at)).copied().unwrap_or_default()
    }

    pub(super) fn of(key: &ModelKey) -> Option<Self> {
        let at = KEYS.iter().position(|known| known == key)?;
        Self::ALL.get(at).copied()
    }
}

/// The role of an account of the model; an input of its address.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(super) enum Role {
    Pool = 1,
    VaultBase,
    VaultQuote,
    PoolAuthority,
    FeeReceiver,
    FeeVault,
    CreatorVault,
    CreatorVaultAccount,
    EventAuthority,
    GlobalState,
    Volume,
    FeeConfig,
    TickArray,
    Oracle,
    Keeper,
    KeeperAccount,
    Order,
    Escrow,
    AggregatorAuthority,
    AggregatorAccount,
    TemporaryAccount,
    Stranger,
    BotFee,
    StakeAccount,
    Validator,
    LookupTable,
    FailedAccount,
    LimitFee,
    Blockhash,
    Signer,
}

/// An address that belongs to the chain, not to one wallet.
#[expect(clippy::as_conversions, reason = "the discriminant of a unit enum; no value is cut")]
pub(super) fn account(seed: u64, role: Role, [first, second]: [u64; 2]) -> ModelKey {
    mix::key(seed, &[role as u64, first, second])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_text_is_an_address() {
        for known in KnownAccount::ALL {
            assert_eq!(crate::demo::solana::base58_text(&known.key()), known.text());
            assert_eq!(KnownAccount::of(&known.key()), Some(*known));
        }
    }
}
