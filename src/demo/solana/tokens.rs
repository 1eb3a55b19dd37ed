//! The tokens of the demo chain. A token is a number; all its properties are functions of it.

use super::keys::{KnownAccount, ModelKey};
use crate::demo::mix;

/// Coins of all wallets: half SPL tokens with Metaplex metadata, half Token-2022 with their own.
const UNIVERSE: u32 = 512;
pub(super) const SPL_TOKENS: u32 = UNIVERSE / 2;
/// Mints are the same on every demo chain, so that their derived data is computed once.
const MINT_SEED: u64 = u64::from_le_bytes(*b"demomint");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum DemoToken {
    WrappedSol,
    Usdc,
    /// A coin of the universe, below [`UNIVERSE`].
    Coin(u32),
    /// A coin that one wallet created: wallet tag and number.
    Created(u64, u32),
    Spam(u32),
    /// The token of a liquidity position, and its LP token.
    Position,
    PositionShare,
    /// A token whose account is opened and closed without a trade.
    Idle,
}

impl DemoToken {
    /// The number that is sealed in the token's accounts.
    pub(super) fn code(self) -> u32 {
        match self {
            Self::Coin(number) => number,
            Self::WrappedSol => 0x1000,
            Self::Usdc => 0x1001,
            Self::Position => 0x1002,
            Self::PositionShare => 0x1003,
            Self::Idle => 0x1004,
            Self::Spam(number) => 0x0010_0000 | number & 0x000f_ffff,
            Self::Created(_, number) => 0x8000_0000 | number,
        }
    }

    /// The token of a sealed account; a created coin belongs to the account's wallet.
    pub(super) fn from_code(code: u32, wallet_tag: u64) -> Option<Self> {
        Some(match code {
            0x1000 => Self::WrappedSol,
            0x1001 => Self::Usdc,
            0x1002 => Self::Position,
            0x1003 => Self::PositionShare,
            0x1004 => Self::Idle,
            number if number < UNIVERSE => Self::Coin(number),
            number if number & 0x8000_0000 != 0 => Self::Created(wallet_tag, number & 0x7fff_ffff),
            number if number >> 20 == 1 => Self::Spam(number & 0x000f_ffff),
            _ => return None,
        })
    }

    pub(super) fn mint(self) -> ModelKey {
        if self == Self::WrappedSol {
            return KnownAccount::WrappedSol.key();
        }
        if self == Self::Usdc {
            return KnownAccount::Usdc.key();
        }
        mix::seal(MINT_SEED, &body(self.code(), self.owner_tag()))
    }

    pub(super) fn from_mint(mint: &ModelKey) -> Option<Self> {
        if *mint == KnownAccount::WrappedSol.key() {
            return Some(Self::WrappedSol);
        }
        if *mint == KnownAccount::Usdc.key() {
            return Some(Self::Usdc);
        }
        let (code, owner) = parts(&mix::open(MINT_SEED, mint)?)?;
        Self::from_code(code, owner)
    }

    pub(super) fn is_2022(self) -> bool {
        matches!(self, Self::Created(..) | Self::Coin(SPL_TOKENS..))
    }

    pub(super) fn program(self) -> KnownAccount {
        if self.is_2022() { KnownAccount::Token2022 } else { KnownAccount::Token }
    }

    /// Rent of a token account in lamports: 165 bytes, or 170 with the immutable-owner extension.
    pub(super) fn account_rent(self) -> u64 {
        if self.is_2022() { 2_074_080 } else { 2_039_280 }
    }

    pub(super) fn decimals(self) -> u8 {
        if matches!(self, Self::WrappedSol | Self::PositionShare) {
            return 9;
        }
        let Self::Coin(number @ ..SPL_TOKENS) = self else { return 6 };
        match number % 5 {
            0 => 5,
            1 => 9,
            2 => 8,
            _ => 6,
        }
    }

    /// Base units for a thousand lamports, around which the token trades.
    pub(super) fn rate(self, seed: u64) -> u64 {
        if self == Self::WrappedSol {
            return 1000;
        }
        if self == Self::Usdc {
            // 150 USDC a SOL.
            return 150;
        }
        let scale = 10_u64.pow(u32::from(self.decimals())) / 100_000;
        let (number, owner) = (u64::from(self.code()), self.owner_tag());
        (1_000 + mix::hash(seed, &[number, owner, 77]) % 300_000) * scale
    }

    pub(super) fn owner_tag(self) -> u64 {
        if let Self::Created(wallet, _) = self { wallet } else { 0 }
    }

    /// Symbol on the chain; some coins have none, some are padded with zeros and odd characters.
    pub(super) fn symbol(self) -> String {
        const HEADS: [&str; 16] = [
            "MOON", "FROG", "CAT", "BONE", "WAGMI", "PEPE", "SHARK", "NEKO", "GIGA", "TURBO",
            "DOGE", "MICE", "BEAR", "OTTER", "LLAMA", "YETI",
        ];
        let head = |number: u32| {
            let at = usize::try_from(number % 16).unwrap_or(0);
            HEADS.get(at).copied().unwrap_or("COIN")
        };
        match self {
            Self::WrappedSol => "SOL".to_owned(),
            Self::Usdc => "USDC".to_owned(),
            Self::Coin(number) => format!("{}{}", head(number), number / 16),
            Self::Created(_, number) => format!("NEW{number}"),
            Self::Spam(number) => format!("CLAIM{number}.COM"),
            Self::Position => "POS".to_owned(),
            Self::PositionShare => "LP-POS".to_owned(),
            Self::Idle => "IDLE".to_owned(),
        }
    }

    /// Whether the mint has metadata: every sixteenth SPL coin has none.
    pub(super) fn has_metadata(self) -> bool {
        match self {
            Self::Coin(number) => number >= SPL_TOKENS || number % 16 != 15,
            Self::WrappedSol | Self::PositionShare | Self::Idle => false,
            Self::Usdc | Self::Created(..) | Self::Spam(_) | Self::Position => true,
        }
    }

    pub(super) fn supply(self, seed: u64) -> u64 {
        let unit = 10_u64.pow(u32::from(self.decimals()));
        1_000_000_000_u64.saturating_mul(unit).max(self.rate(seed))
    }
}

/// What is sealed in a mint or a token account: a token's code, and a wallet's tag.
pub(super) fn body(code: u32, tag: u64) -> [u8; 12] {
    mix::joined(&[&code.to_le_bytes(), &tag.to_le_bytes()])
}

pub(super) fn parts(body: &[u8; 12]) -> Option<(u32, u64)> {
    let (code, tag) = body.split_first_chunk()?;
    Some((u32::from_le_bytes(*code), u64::from_le_bytes(*tag.first_chunk()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mint_is_decoded_to_its_token() {
        let tokens = [
            DemoToken::WrappedSol,
            DemoToken::Usdc,
            DemoToken::Coin(0),
            DemoToken::Coin(UNIVERSE - 1),
            DemoToken::Created(0xdead_beef, 12),
            DemoToken::Spam(40),
            DemoToken::Position,
            DemoToken::PositionShare,
            DemoToken::Idle,
        ];
        for token in tokens {
            assert_eq!(DemoToken::from_mint(&token.mint()), Some(token));
            assert_eq!(DemoToken::from_code(token.code(), 0xdead_beef), Some(token));
        }
        assert_eq!(DemoToken::from_mint(&[9; 32]), None);
    }
}
