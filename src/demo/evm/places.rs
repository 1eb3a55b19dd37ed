//! Contracts under their real addresses, and the other constants of a chain.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::{Signatures, TradeKind, keccak256, tail};
use crate::demo::mix;
use crate::domain::{Account, Address, Family, TxId, Units, Word};
use crate::registry::{Chain, Finality};

/// Times of all chains are relative to 2026-01-01.
const ANCHOR_TIME: u64 = 1_767_225_600;
/// Distance of the newest block to the final one on chains with tags.
const UNFINAL: u64 = 64;
/// The coin's price moves around this value, in trillionths of a dollar.
const PRICE_MIDDLE: u128 = 3_000_000_000_000_000;
/// A thousand thousandths of the coin, and the 12 decimals of the price.
const PRICE_SCALE: u128 = 10_u128.pow(15);

pub(super) const COW_SETTLEMENT: Account = hex("9008d19f58aabd9ed0d60971565aa8510560ab41");
/// Version 0.7.
pub(super) const ENTRY_POINT: Account = hex("0000000071727de22e5e9d8baf0edac6f37da032");
pub(super) const MULTICALL3: Account = hex("ca11bde05977b3631167028862be2a173976ca11");

/// A pool of the wrapped coin and the dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) pool: Account,
    /// A pair, which logs its reserves, and not a pool, which logs the root of its price.
    pub(super) is_pair: bool,
}

/// The constants of one chain. Addresses are those of `data/venues-evm.toml`'s sources.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainPlaces {
    slug: &'static str,
    /// Block at the anchor's time, and milliseconds a block.
    anchor: u64,
    block_millis: u64,
    dollar: (&'static str, u8),
    pub(super) v2: Option<Amm>,
    v3: Option<Amm>,
    pub(super) v4: Option<Singleton>,
    /// All zeros where there is none.
    #[serde(default, deserialize_with = "hex_text")]
    launchpad: Account,
    #[serde(deserialize_with = "hex_text")]
    pub(super) aggregator: Account,
    /// Unit of native amounts: about three dollars' worth on chains with a dollar token.
    pub(super) milli: u128,
    /// Part of the OP stack: receipts contain a second fee.
    #[serde(default)]
    pub(super) has_l1_fee: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(super) struct DemoTable {
    chains: Vec<ChainPlaces>,
    /// A chain that the table lacks.
    other: ChainPlaces,
    /// How a lane trades every two coins; a purchase for dollars follows a sale for dollars.
    pub(super) kinds: Vec<[[TradeKind; 8]; 2]>,
    pub(super) tron_kinds: Vec<[[TradeKind; 8]; 2]>,
    /// By [`LimitTexts`](super::LimitTexts): code and text where a log query is too wide, or finds
    /// too many events.
    pub(super) limits: HashMap<String, HashMap<String, (i64, String)>>,
}

/// A text that cannot be read stops the tests.
pub(super) static TABLE: LazyLock<DemoTable> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../data/demo-chains.json")).unwrap_or_default()
});

fn hex_text<'de, D: Deserializer<'de>, const N: usize>(text: D) -> Result<[u8; N], D::Error> {
    let text = <&str>::deserialize(text)?;
    const_hex::decode_to_array(text).map_err(D::Error::custom)
}

/// A protocol with its own router, whose pools have derived addresses where their factory is known.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Amm {
    pub(super) name: &'static str,
    #[serde(deserialize_with = "hex_text")]
    pub(super) router: Account,
    maker: Option<Maker>,
}

/// A factory, by which the addresses of its pools follow (EIP-1014).
#[derive(Debug, Clone, Copy, Deserialize)]
struct Maker {
    /// Tron's factories begin with the prefix of its addresses.
    prefix: u8,
    #[serde(deserialize_with = "hex_text")]
    factory: Account,
    /// keccak256 of the pools' creation code.
    #[serde(deserialize_with = "hex_text")]
    code: Word,
}

/// Uniswap's fourth version: one contract holds all pools.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Singleton {
    #[serde(deserialize_with = "hex_text")]
    pub(super) router: Account,
    #[serde(deserialize_with = "hex_text")]
    pub(super) manager: Account,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Dollar {
    pub(super) token: Account,
    pub(super) symbol: &'static str,
    pub(super) decimals: u8,
}

#[derive(Debug)]
pub(super) struct TxPlaces {
    pub(super) signatures: Signatures,
    pub(super) family: Family,
    pub(super) chain_id: u64,
    pub(super) native: String,
    pub(super) wrapped: Account,
    pub(super) dollar: Dollar,
    pub(super) v3: Amm,
    pub(super) launchpad: Account,
    pub(super) references: Vec<Reference>,
    /// Distance of the newest block to the final one.
    pub(super) unfinal: u64,
    /// Seed of the chain's addresses.
    pub(super) seed: u64,
    /// The head, where none is set.
    pub(super) anchor: u64,
    row: &'static ChainPlaces,
}

impl Deref for TxPlaces {
    type Target = ChainPlaces;

    fn deref(&self) -> &ChainPlaces {
        self.row
    }
}

impl TxPlaces {
    /// A chain without a row of the table trades through the protocols that every chain has.
    pub(super) fn new(seed: u64, chain: &Chain, head: Option<u64>) -> Self {
        let row = TABLE.chains.iter().find(|row| row.slug == chain.slug).unwrap_or(&TABLE.other);
        let chain_id = chain.chain_id.unwrap_or(1);
        let seed = mix::hash(seed, &[chain_id]);
        let (symbol, decimals) = row.dollar;
        let launchpad = Some(row.launchpad).filter(|it| *it != [0; 20]);
        let stable = chain.stablecoins.first().and_then(|coin| coin.bytes().try_into().ok());
        let token = stable.unwrap_or_else(|| made(seed, Made::Dollar, 0));
        let wrapped = chain.wrapped_native.bytes().try_into().unwrap_or_default();
        let pair = row.v2.map(|v2| v2.pool(seed, [wrapped, token], None));
        let references = chain.reference_pools.iter().filter_map(|pool| {
            let pool: Account = pool.bytes().try_into().ok()?;
            Some(Reference { pool, is_pair: pair == Some(pool) })
        });
        let other = Amm { name: "Uniswap V3", router: made(seed, Made::Router, 3), maker: None };
        Self {
            signatures: Signatures::default(),
            family: chain.family,
            chain_id,
            native: chain.native.symbol.clone(),
            wrapped,
            dollar: Dollar { token, symbol, decimals },
            v3: row.v3.unwrap_or(other),
            launchpad: launchpad.unwrap_or_else(|| made(seed, Made::Router, 4)),
            references: references.collect(),
            unfinal: match chain.finality {
                Finality::Depth(depth) => depth,
                Finality::Finalized | Finality::Safe => UNFINAL,
            },
            seed,
            anchor: head.unwrap_or(row.anchor),
            row,
        }
    }

    pub(super) fn knows(chain: &Chain) -> bool {
        TABLE.chains.iter().any(|row| row.slug == chain.slug)
    }

    pub(super) fn is_tron(&self) -> bool {
        self.family == Family::Tron
    }

    pub(super) fn address(&self, account: Account) -> Address {
        if self.is_tron() { Address::Tron(account) } else { Address::Evm(account) }
    }

    pub(super) fn tx_id(&self, hash: Word) -> TxId {
        if self.is_tron() { TxId::Tron(hash) } else { TxId::Evm(hash) }
    }

    pub(super) fn time(&self, height: u64) -> u64 {
        let millis = |blocks: u64| blocks.saturating_mul(self.block_millis) / 1000;
        if height >= self.anchor {
            ANCHOR_TIME.saturating_add(millis(height - self.anchor))
        } else {
            let below = (self.anchor - height).saturating_mul(self.block_millis).div_ceil(1000);
            ANCHOR_TIME.saturating_sub(below)
        }
    }

    pub(super) fn at_time(&self, seconds: u64) -> u64 {
        let blocks = |seconds: u64| seconds.saturating_mul(1000) / self.block_millis.max(1);
        if let Some(after) = seconds.checked_sub(ANCHOR_TIME) {
            return self.anchor.saturating_add(blocks(after));
        }
        let before = (ANCHOR_TIME - seconds).saturating_sub(1);
        self.anchor.saturating_sub(blocks(before) + 1)
    }

    pub(super) fn price(&self, height: u64) -> u128 {
        mix::price(self.seed, PRICE_MIDDLE, self.time(height))
    }

    /// Wei for base units of the dollar at a price.
    pub(super) fn wei(&self, dollars: u128, price: u128) -> u128 {
        let wei = Units::from(dollars) * Units::from(self.milli) * Units::from(PRICE_SCALE)
            / Units::from(self.dollar_unit())
            / Units::from(price.max(1));
        wei.try_into().unwrap_or(u128::MAX)
    }

    /// Base units of the dollar for wei at a price.
    pub(super) fn dollars(&self, wei: u128, price: u128) -> u128 {
        let dollars = Units::from(wei) * Units::from(self.dollar_unit()) * Units::from(price)
            / Units::from(self.milli)
            / Units::from(PRICE_SCALE);
        dollars.try_into().unwrap_or(u128::MAX)
    }

    pub(super) fn dollar_unit(&self) -> u128 {
        10_u128.pow(u32::from(self.dollar.decimals))
    }

    pub(super) fn block_millis(&self) -> u64 {
        self.block_millis.max(1)
    }

    /// Whether an account is a public contract, and so not a wallet.
    pub(super) fn is_public(&self, account: &Account) -> bool {
        let amms = [self.v2, Some(self.v3)].into_iter().flatten().map(|amm| amm.router);
        let v4 = self.v4.into_iter().flat_map(|v4| [v4.router, v4.manager]);
        let own = [self.wrapped, self.dollar.token, self.aggregator, self.launchpad];
        let fixed = [COW_SETTLEMENT, ENTRY_POINT, MULTICALL3];
        let mut all = own.into_iter().chain(fixed).chain(amms).chain(v4);
        all.any(|public| public == *account) || self.is_reference(account)
    }

    pub(super) fn is_reference(&self, account: &Account) -> bool {
        self.references.iter().any(|one| one.pool == *account)
    }

    pub(super) fn made(&self, what: Made, number: u64) -> Account {
        made(self.seed, what, number)
    }
}

impl Amm {
    /// The venue of a pool without a known router: that of its factory, or of its events.
    pub(super) fn pool_name(&self) -> &'static str {
        if self.maker.is_some() { self.name } else { "Uniswap V3" }
    }

    /// The address of the pool of two tokens; `fee` in millionths where the protocol has several.
    pub(super) fn pool(&self, seed: u64, [a, b]: [Account; 2], fee: Option<u32>) -> Account {
        let [low, high] = if a < b { [a, b] } else { [b, a] };
        let with_fee =
            |fee: u32| keccak256(&[&[0; 12], &low, &[0; 12], &high, &[0; 28], &fee.to_be_bytes()]);
        let salt = fee.map_or_else(|| keccak256(&[&low, &high]), with_fee);
        let unknown = Maker { prefix: 0xff, factory: [7; 20], code: mix::key(seed, &[7]) };
        let Maker { prefix, factory, code } = self.maker.unwrap_or(unknown);
        tail(&keccak256(&[&[prefix], &factory, &salt, &code]))
    }
}

#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(super) enum Made {
    Dollar = 1,
    Router,
    Executor,
    FeeReceiver,
    Solver,
    Stranger,
    Exchange,
    Spammer,
    SpamContract,
    Bundler,
    Paymaster,
    Marketing,
    Relayer,
    Maker,
    Collection,
    Miner,
    Named,
}

#[expect(clippy::as_conversions, reason = "the discriminant of a unit enum; no value is cut")]
fn made(seed: u64, what: Made, number: u64) -> Account {
    tail(&mix::key(seed, &[what as u64, number]))
}

/// An address or a hash, decoded at compile time.
#[expect(clippy::panic, reason = "runs at build time, where a wrong text stops the build")]
const fn hex<const N: usize>(text: &str) -> [u8; N] {
    match const_hex::const_decode_to_array(text.as_bytes()) {
        Ok(bytes) => bytes,
        Err(_) => panic!("an address has 40 hex digits, a hash 64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The USDC/WETH pair and pool of mainnet, as explorers show them.
    #[test]
    fn pools_have_the_addresses_of_the_real_factories() {
        let usdc = hex("a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48");
        let weth = hex("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2");
        let row = TABLE.chains.first().unwrap();
        let v2 = row.v2.unwrap().pool(1, [weth, usdc], None);
        assert_eq!(const_hex::encode(v2), "b4e16d0168e52d35cacd2c6185b44281ec28c9dc");
        let v3 = row.v3.unwrap().pool(1, [usdc, weth], Some(500));
        assert_eq!(const_hex::encode(v3), "88e6a0c2ddd26feeb64f039a2c41296fcb3f5640");
        // The pair of WTRX and USDT on Tron.
        let wtrx = hex("891cdb91d149f23b1a45d9c5ca78a88d0cb44c18");
        let usdt = hex("a614f803b6fd780986a42c78ec9c7f77e6ded13c");
        let tron = TABLE.chains.iter().find(|row| row.slug == "tron").unwrap();
        let pair = tron.v2.unwrap().pool(1, [wtrx, usdt], None);
        assert_eq!(const_hex::encode(pair), "3a10321a4e97a64d9376af42ec07d5fa50294b35");
    }
}
