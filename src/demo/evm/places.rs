//! Contracts under their real addresses, and the other constants of a chain.

use super::hash::{Account, Signatures, Word, keccak, tail};
use crate::demo::mix;
use crate::demo::walk;
use crate::domain::{Address, Family, TxId, Units};
use crate::registry::{Chain, Finality};

/// Times of all chains are relative to 2026-01-01.
const ANCHOR_TIME: u64 = 1_767_225_600;
/// Distance of the newest block to the final one on chains with tags.
const UNFINAL: u64 = 64;
/// Default start of histories: this part of the chain's height.
const FIRST_PART: u64 = 4;
/// The coin's price moves around this value, in trillionths of a dollar.
const PRICE_MIDDLE: u128 = 3_000_000_000_000_000;
/// A thousand thousandths of the coin, and the 12 decimals of the price.
const PRICE_SCALE: u128 = 10_u128.pow(15);

/// keccak256 of the pairs' and pools' creation code (`Uniswap/v2-core`, `v3-core`; `PancakeSwap` V2; `SunSwap`).
const UNISWAP_V2_CODE: Word =
    hex("96e8ac4277198ff8b6f785478aa9a39f403cb768dd02cbee326c3e7da348845f");
const PANCAKE_V2_CODE: Word =
    hex("00fb7f630766e6a796048ea87d01acd3068e8ff67d078148a3fa3f4a84f69bd5");
const UNISWAP_V3_CODE: Word =
    hex("e34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54");
const SUN_V2_CODE: Word = hex("6d3f89421f83e4b62e628de8fc7ff2b014a79bf8fd8e8b0ea46e4a1d9409b67d");
const SUN_V3_CODE: Word = hex("ba928a717d71946d75999ef1adef801a79cd34a20efecea8b2876b85f5f49580");

const KYBER: Account = hex("6131b5fae19ea4f9d964eac0408e4408b66337b5");
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
struct Row {
    slug: &'static str,
    /// Block at the anchor's time, and milliseconds a block.
    anchor: u64,
    block_millis: u64,
    dollar: Option<(&'static str, u8)>,
    v2: Option<Amm>,
    v3: Option<Amm>,
    v4: Option<Singleton>,
    launchpad: Option<Account>,
    aggregator: Account,
    /// Unit of native amounts: about three dollars' worth on chains with a dollar token.
    milli: u128,
    /// Part of the OP stack: receipts contain a second fee.
    has_l1_fee: bool,
}

const BLANK: Row = Row {
    slug: "",
    anchor: 20_000_000,
    block_millis: 2_000,
    dollar: None,
    v2: None,
    v3: None,
    v4: None,
    launchpad: None,
    aggregator: KYBER,
    milli: 1_000_000_000_000_000,
    has_l1_fee: false,
};

const ROWS: &[Row] = &[
    Row {
        slug: "eth",
        anchor: 24_136_000,
        block_millis: 12_000,
        dollar: Some(("USDC", 6)),
        v2: Some(Amm {
            name: "Uniswap V2",
            router: hex("7a250d5630b4cf539739df2c5dacb4c659f2488d"),
            maker: Some(on_evm(hex("5c69bee701ef814a2b6a3edd4b1652cb9cc5aa6f"), UNISWAP_V2_CODE)),
        }),
        v3: Some(Amm {
            name: "Uniswap V3",
            router: hex("68b3465833fb72a70ecdf485e0e4c7bd8665fc45"),
            maker: Some(on_evm(hex("1f98431c8ad98523631ae4a59f267346ea31f984"), UNISWAP_V3_CODE)),
        }),
        v4: Some(Singleton {
            router: hex("66a9893cc07d91d95644aedd05d03f95e1dba8af"),
            manager: hex("000000000004444c5dc75cb358380d2e3de08a90"),
        }),
        ..BLANK
    },
    Row {
        slug: "base",
        anchor: 40_200_000,
        dollar: Some(("USDC", 6)),
        v2: Some(Amm {
            name: "Uniswap V2",
            router: hex("4752ba5dbc23f44d87826276bf6fd6b1c372ad24"),
            maker: Some(on_evm(hex("8909dc15e40173ff4699343b6eb8132c65e18ec6"), UNISWAP_V2_CODE)),
        }),
        v3: Some(Amm {
            name: "Uniswap V3",
            router: hex("2626664c2603336e57b271c5c0b26f421741e481"),
            maker: Some(on_evm(hex("33128a8fc17869897dce68ed026d694621f6fdfd"), UNISWAP_V3_CODE)),
        }),
        v4: Some(Singleton {
            router: hex("6ff5693b99212da76ad316178a184ab56d299b43"),
            manager: hex("498581ff718922c3f8e6a244956af099b2652b2b"),
        }),
        has_l1_fee: true,
        ..BLANK
    },
    Row {
        slug: "bsc",
        anchor: 74_000_000,
        block_millis: 750,
        dollar: Some(("USDT", 18)),
        v2: Some(Amm {
            name: "PancakeSwap V2",
            router: hex("10ed43c718714eb63d5aa57b78b54704e256024e"),
            maker: Some(on_evm(hex("ca143ce32fe78f1f7019d7d551a6402fc5350c73"), PANCAKE_V2_CODE)),
        }),
        v3: Some(Amm {
            name: "Uniswap V3",
            router: hex("b971ef87ede563556b2ed4b1c0b0019111dd85d2"),
            maker: Some(on_evm(hex("db1d10011ad0ff90774d0c6bb92e5c5c8b4461f7"), UNISWAP_V3_CODE)),
        }),
        v4: Some(Singleton {
            router: hex("1906c1d672b88cd1b9ac7593301ca990f94eae07"),
            manager: hex("28e2ea090877bf75740558f6bfb36a5ffee9e9df"),
        }),
        launchpad: Some(hex("e2ce6ab80874fa9fa2aae65d277dd6b8e65c9de0")),
        ..BLANK
    },
    Row {
        slug: "hyperevm",
        anchor: 23_000_000,
        block_millis: 1_000,
        dollar: Some(("USDT0", 6)),
        v3: Some(Amm {
            name: "Project X",
            router: hex("1ebdfc75ffe3ba3de61e7138a3e8706ac841af9b"),
            maker: None,
        }),
        ..BLANK
    },
    Row {
        slug: "monad",
        anchor: 45_000_000,
        block_millis: 400,
        dollar: Some(("USDC", 6)),
        v3: Some(Amm {
            name: "Uniswap V3",
            router: hex("fe31f71c1b106eac32f1a19239c9a9a72ddfb900"),
            maker: Some(on_evm(hex("204faca1764b154221e35c0d20abb3c525710498"), UNISWAP_V3_CODE)),
        }),
        v4: Some(Singleton {
            router: hex("0d97dc33264bfc1c226207428a79b26757fb9dc3"),
            manager: hex("188d586ddcf52439676ca21a244753fa19f9ea8e"),
        }),
        launchpad: Some(hex("30e8ee7b5881bf2e158a0514f2150aabe2c68b23")),
        ..BLANK
    },
    Row {
        slug: "robinhood",
        anchor: 100_000_000,
        block_millis: 100,
        dollar: Some(("USDG", 6)),
        v2: Some(Amm {
            name: "Uniswap V2",
            router: hex("89e5db8b5aa49aa85ac63f691524311aeb649eba"),
            maker: Some(on_evm(hex("8bceaa40b9acdfaedf85adf4ff01f5ad6517937f"), UNISWAP_V2_CODE)),
        }),
        v3: Some(Amm {
            name: "Uniswap V3",
            router: hex("caf681a66d020601342297493863e78c959e5cb2"),
            maker: Some(on_evm(hex("1f7d7550b1b028f7571e69a784071f0205fd2efa"), UNISWAP_V3_CODE)),
        }),
        launchpad: Some(hex("26605f322f7ff986f381bb9a6e3f5dab0beaeb09")),
        ..BLANK
    },
    Row {
        slug: "tron",
        anchor: 78_860_000,
        block_millis: 3_000,
        dollar: Some(("USDT", 6)),
        v2: Some(Amm {
            name: "SunSwap V2",
            router: hex("6e0617948fe030a7e4970f8389d4ad295f249b7e"),
            maker: Some(on_tron(hex("689abaeeed3f0bb3585773192e23224cac25dd41"), SUN_V2_CODE)),
        }),
        v3: Some(Amm {
            name: "SunSwap V3",
            router: hex("9bc8fbecba5d240b977b6fd4e9ac25b0012ef843"),
            maker: Some(on_tron(hex("c2708485c99cd8cf058de1a9a7e3c2d8261a995c"), SUN_V3_CODE)),
        }),
        v4: Some(Singleton {
            router: hex("a31d689a84244bc01be56e07aeafb7686f56bb89"),
            manager: hex("d8de75898a30b097da826464e932934a512c7be3"),
        }),
        launchpad: Some(hex("c22dd1b7bc7574e94563c8282f64b065bc07b2fa")),
        aggregator: hex("18ff186cb1973d4b29700f2aac6b1eec9e55ffbd"),
        // Ten TRX, in sun.
        milli: 10_000_000,
        ..BLANK
    },
];

/// A protocol with its own router, whose pools have derived addresses where their factory is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amm {
    pub(super) name: &'static str,
    pub(super) router: Account,
    maker: Option<Maker>,
}

/// A factory, by which the addresses of its pools follow (EIP-1014).
#[derive(Debug, Clone, Copy)]
struct Maker {
    prefix: u8,
    factory: Account,
    code: Word,
}

const fn on_evm(factory: Account, code: Word) -> Maker {
    Maker { prefix: 0xff, factory, code }
}

/// Tron puts the prefix of its addresses first.
const fn on_tron(factory: Account, code: Word) -> Maker {
    Maker { prefix: 0x41, factory, code }
}

/// Uniswap's fourth version: one contract holds all pools.
#[derive(Debug, Clone, Copy)]
pub(super) struct Singleton {
    pub(super) router: Account,
    pub(super) manager: Account,
}

/// A token that is worth a dollar.
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
    pub(super) v2: Option<Amm>,
    pub(super) v3: Amm,
    pub(super) v4: Option<Singleton>,
    pub(super) aggregator: Account,
    pub(super) launchpad: Account,
    pub(super) references: Vec<Reference>,
    pub(super) has_l1_fee: bool,
    pub(super) milli: u128,
    /// Distance of the newest block to the final one.
    pub(super) unfinal: u64,
    /// Seed of the chain's addresses.
    pub(super) seed: u64,
    /// The head, where none is set.
    pub(super) anchor: u64,
    block_millis: u64,
}

impl TxPlaces {
    /// The constants of a chain of the table; a chain without a row here trades through the
    /// protocols that every chain has.
    pub(super) fn new(seed: u64, chain: &Chain, head: Option<u64>) -> Self {
        let row = ROWS.iter().find(|row| row.slug == chain.slug).unwrap_or(&BLANK);
        let chain_id = chain.chain_id.unwrap_or(1);
        let seed = mix::hash(seed, &[chain_id]);
        let (symbol, decimals) = row.dollar.unwrap_or(("USDC", 6));
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
            v2: row.v2,
            v3: row.v3.unwrap_or(other),
            v4: row.v4,
            aggregator: row.aggregator,
            launchpad: row.launchpad.unwrap_or_else(|| made(seed, Made::Router, 4)),
            references: references.collect(),
            has_l1_fee: row.has_l1_fee,
            milli: row.milli,
            unfinal: match chain.finality {
                Finality::Depth(depth) => depth,
                Finality::Finalized | Finality::Safe => UNFINAL,
            },
            seed,
            anchor: head.unwrap_or(row.anchor),
            block_millis: row.block_millis,
        }
    }

    pub(super) fn knows(chain: &Chain) -> bool {
        ROWS.iter().any(|row| row.slug == chain.slug)
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

    pub(super) fn default_first(&self) -> u64 {
        self.anchor - self.anchor / FIRST_PART
    }

    /// Unix seconds of a block.
    pub(super) fn time(&self, height: u64) -> u64 {
        let millis = |blocks: u64| blocks.saturating_mul(self.block_millis) / 1000;
        if height >= self.anchor {
            ANCHOR_TIME.saturating_add(millis(height - self.anchor))
        } else {
            let below = (self.anchor - height).saturating_mul(self.block_millis).div_ceil(1000);
            ANCHOR_TIME.saturating_sub(below)
        }
    }

    /// The last block at or before a time.
    pub(super) fn at_time(&self, seconds: u64) -> u64 {
        let blocks = |seconds: u64| seconds.saturating_mul(1000) / self.block_millis.max(1);
        if let Some(after) = seconds.checked_sub(ANCHOR_TIME) {
            return self.anchor.saturating_add(blocks(after));
        }
        let before = (ANCHOR_TIME - seconds).saturating_sub(1);
        self.anchor.saturating_sub(blocks(before) + 1)
    }

    /// Price of a whole coin at a height in trillionths of a dollar.
    pub(super) fn price(&self, height: u64) -> u128 {
        walk::price(self.seed, PRICE_MIDDLE, self.time(height))
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

    /// Base units of a dollar.
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

    /// A generated address of this chain.
    pub(super) fn made(&self, what: Made, number: u64) -> Account {
        made(self.seed, what, number)
    }
}

impl Amm {
    /// The venue name of a pool without a known router: a pool of an unknown factory has the name
    /// of the protocol whose events it emits.
    pub(super) fn pool_name(&self) -> &'static str {
        if self.maker.is_some() { self.name } else { "Uniswap V3" }
    }

    /// The address of the pool of two tokens; `fee` in millionths where the protocol has several.
    pub(super) fn pool(&self, seed: u64, [a, b]: [Account; 2], fee: Option<u32>) -> Account {
        let [low, high] = if a < b { [a, b] } else { [b, a] };
        let with_fee =
            |fee: u32| keccak(&[&[0; 12], &low, &[0; 12], &high, &[0; 28], &fee.to_be_bytes()]);
        let salt = fee.map_or_else(|| keccak(&[&low, &high]), with_fee);
        let unknown = Maker { prefix: 0xff, factory: [7; 20], code: mix::key(seed, &[7]) };
        let Maker { prefix, factory, code } = self.maker.unwrap_or(unknown);
        tail(&keccak(&[&[prefix], &factory, &salt, &code]))
    }
}

/// The kind of a generated address.
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
        let row = ROWS.first().unwrap();
        let v2 = row.v2.unwrap().pool(1, [weth, usdc], None);
        assert_eq!(const_hex::encode(v2), "b4e16d0168e52d35cacd2c6185b44281ec28c9dc");
        let v3 = row.v3.unwrap().pool(1, [usdc, weth], Some(500));
        assert_eq!(const_hex::encode(v3), "88e6a0c2ddd26feeb64f039a2c41296fcb3f5640");
        // The pair of WTRX and USDT on Tron.
        let wtrx = hex("891cdb91d149f23b1a45d9c5ca78a88d0cb44c18");
        let usdt = hex("a614f803b6fd780986a42c78ec9c7f77e6ded13c");
        let tron = ROWS.iter().find(|row| row.slug == "tron").unwrap();
        let pair = tron.v2.unwrap().pool(1, [wtrx, usdt], None);
        assert_eq!(const_hex::encode(pair), "3a10321a4e97a64d9376af42ec07d5fa50294b35");
    }
}
