//! Tokens of the demo chain. A token's kind and number can be decoded from its address.

use super::places::TxPlaces;
use crate::demo::mix;
use crate::domain::{Account, Address};

const COIN_TAG: u64 = u64::from_le_bytes(*b"democoin");
const NAMES: [&str; 16] = [
    "PEPE", "WOJAK", "MOG", "TURBO", "BRETT", "DEGEN", "TOSHI", "KEYCAT", "NEIRO", "APU", "SPX",
    "HARAMBE", "LADYS", "BITCOIN", "ANDY", "GIGA",
];

/// Numbers of TRC-10 tokens begin here.
const FIRST_ASSET: u32 = 1_000_001;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Coin {
    Wrapped,
    Dollar,
    /// An ordinary token.
    Plain(u32),
    /// The contract keeps a part of every transfer.
    Taxed(u32),
    /// Still on its launchpad's curve.
    Curve(u32),
    /// An unsolicited token sent to wallets.
    Spam(u32),
    /// A token of the protocol itself, without a contract (TRC-10).
    Asset(u32),
}

impl Coin {
    pub(super) fn address(self, places: &TxPlaces) -> Account {
        if let Self::Asset(number) = self {
            let asset = Address::tron_asset(FIRST_ASSET + number);
            return asset.bytes().try_into().unwrap_or_default();
        }
        let Some((class, number)) = self.class() else {
            return if self == Self::Wrapped { places.wrapped } else { places.dollar.token };
        };
        let body: [u8; 5] = mix::joined(&[&[class], &number.to_be_bytes()]);
        mix::seal(places.seed ^ COIN_TAG, &body)
    }

    /// The number of the kind, and that within it; `None` of the coins that each chain has one of.
    fn class(self) -> Option<(u8, u32)> {
        Some(match self {
            Self::Wrapped | Self::Dollar => return None,
            Self::Plain(number) => (0, number),
            Self::Taxed(number) => (1, number),
            Self::Curve(number) => (2, number),
            Self::Spam(number) => (3, number),
            Self::Asset(number) => (4, number),
        })
    }

    pub(super) fn of(places: &TxPlaces, address: &Account) -> Option<Self> {
        if *address == places.wrapped {
            return Some(Self::Wrapped);
        }
        if *address == places.dollar.token {
            return Some(Self::Dollar);
        }
        if places.is_tron()
            && let Some(number) = Address::Tron(*address).as_tron_asset()
        {
            return Some(Self::Asset(number - FIRST_ASSET));
        }
        let body: [u8; 5] = mix::open(places.seed ^ COIN_TAG, address)?;
        let [class, rest @ ..] = body;
        let number = u32::from_be_bytes(rest);
        Some(match class {
            0 => Self::Plain(number),
            1 => Self::Taxed(number),
            2 => Self::Curve(number),
            _ => Self::Spam(number),
        })
    }

    pub(super) fn decimals(self, places: &TxPlaces) -> u8 {
        match self {
            Self::Wrapped if places.is_tron() => 6,
            Self::Asset(number) => u8::try_from(number % 7).unwrap_or(0),
            Self::Wrapped | Self::Taxed(_) | Self::Curve(_) | Self::Spam(_) => 18,
            Self::Dollar => places.dollar.decimals,
            Self::Plain(number) => match number % 8 {
                1 => 9,
                3 => 6,
                5 => 8,
                7 => 0,
                _ => 18,
            },
        }
    }

    pub(super) fn symbol(self, places: &TxPlaces) -> String {
        let named = |number: u32| {
            let at = usize::try_from(number).unwrap_or(0);
            let name = NAMES.get(at % NAMES.len()).copied().unwrap_or("COIN");
            match at / NAMES.len() {
                0 => name.to_owned(),
                more => format!("{name}{more}"),
            }
        };
        match self {
            Self::Wrapped => format!("W{}", places.native),
            Self::Dollar => places.dollar.symbol.to_owned(),
            Self::Plain(number) => named(number),
            Self::Taxed(number) => format!("TAX{number}"),
            Self::Curve(number) => format!("MEME{number}"),
            Self::Asset(number) => format!("ASSET{number}"),
            Self::Spam(number) => format!("claim-{number}.example"),
        }
    }

    /// Base units for a thousandth of the native coin.
    pub(super) fn per_milli(self, places: &TxPlaces) -> u128 {
        let decimals = u32::from(self.decimals(places));
        let Some((class, number)) = self.class() else {
            return if self == Self::Wrapped { places.milli } else { 3 * 10_u128.pow(decimals) };
        };
        let chance = mix::hash(places.seed, &[COIN_TAG, class.into(), number.into()]);
        let whole = 10 + chance % 90_000;
        u128::from(whole) * 10_u128.pow(decimals) + u128::from(chance >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn a_coin_is_decoded_from_its_address() {
        let registry = Registry::embedded().unwrap();
        let places = TxPlaces::new(7, registry.chain_named("eth").unwrap(), None);
        let other = TxPlaces::new(7, registry.chain_named("base").unwrap(), None);
        let all = [Coin::Wrapped, Coin::Dollar].into_iter();
        let made =
            (0..50).flat_map(|n| [Coin::Plain(n), Coin::Taxed(n), Coin::Curve(n), Coin::Spam(n)]);
        for coin in all.chain(made) {
            let address = coin.address(&places);
            assert_eq!(Coin::of(&places, &address), Some(coin));
            assert_eq!(Coin::of(&other, &address), None);
        }
        assert_eq!(Coin::of(&places, &[9; 20]), None);
        let tron = TxPlaces::new(7, registry.chain_named("tron").unwrap(), None);
        let asset = Coin::Asset(5).address(&tron);
        assert_eq!(Coin::of(&tron, &asset), Some(Coin::Asset(5)));
        assert_eq!(Coin::of(&places, &asset), None);
    }
}
