//! Finds the factory of a pool, whose CREATE2 address it derives from the pair of tokens.

use std::sync::Arc;

use super::ledger::{Asset, mirrors};
use super::scene::{Scene, Venue};
use super::transaction::{Account, Log, Word};
use crate::domain::{Family, keccak256};
use crate::registry::{Chain, EvmTables, Factory, PoolPlace, PoolSalt};

/// Fees of pools, in millionths, the most common ones first.
const FEES: [u32; 12] = [3_000, 500, 10_000, 100, 2_500, 200, 250, 300, 400, 1_000, 2_000, 20_000];
/// Tick spacings of pools, the most common ones first.
const SPACINGS: [u32; 7] = [200, 100, 1, 50, 2_000, 10, 500];

/// The name of the factory that created the pool.
pub(super) fn factory_name(scene: &Scene<'_>, venue: &Venue<'_>) -> Option<Arc<str>> {
    let mut tokens = venue.assets.iter().filter_map(|asset| match asset {
        Asset::Token(token) => Some(*token),
        Asset::Native => None,
    });
    let (Some(a), Some(b), None) = (tokens.next(), tokens.next(), tokens.next()) else {
        return None;
    };
    let tables = (scene.tables, scene.chain);
    factory_of_pair(tables, venue.log, a, b).or_else(|| {
        // The pool may have been created for the token's previous contract.
        let pairs = mirrors(scene.chain).flat_map(|mirror| [(a, mirror), (mirror, b)]);
        pairs.into_iter().find_map(|(a, b)| factory_of_pair(tables, venue.log, a, b))
    })
}

fn factory_of_pair(
    (tables, chain): (&EvmTables, &Chain),
    log: &Log,
    a: Account,
    b: Account,
) -> Option<Arc<str>> {
    let (pool, pair) = (log.address, if a < b { [a, b] } else { [b, a] });
    let place = PoolPlace { chain: chain.id, pool, pair };
    tables.maker(place, || {
        let factories: Vec<&Factory> = tables.factories(chain).collect();
        let mut kinds = likely_first(log).into_iter();
        let prefix = prefix(chain.family);
        let made =
            kinds.find_map(|kind| factory_of_kind(&factories, kind, &pair, (prefix, pool)))?;
        Some(Arc::clone(&made.name))
    })
}

/// The kinds of salt, the likely ones for this event first. The order only saves work, because at
/// most one factory derives a given address.
fn likely_first(log: &Log) -> [PoolSalt; 5] {
    use PoolSalt::{Fee, Pair, Spacing, StablePair, Words};
    // A V2 pair's event has four amounts; a concentrated pool's has the price and more.
    if log.data.len() <= 4 * 32 {
        [Pair, StablePair, Fee, Spacing, Words]
    } else {
        [Fee, Spacing, Words, Pair, StablePair]
    }
}

/// The factory of this kind that derives the pool's address from the pair, the lower token first.
/// The salt is the same for all factories of a kind.
fn factory_of_kind<'a>(
    factories: &[&'a Factory],
    kind: PoolSalt,
    pair: &[Account; 2],
    (prefix, pool): (u8, Account),
) -> Option<&'a Factory> {
    let of_kind = || factories.iter().copied().filter(|factory| factory.salt == kind);
    of_kind().next()?;
    numbers(kind).iter().find_map(|number| {
        let salt = salt(kind, pair, *number);
        of_kind().find(|factory| create2_address(prefix, factory, &salt) == pool)
    })
}

/// The parameters (fees, tick spacings) by which the pools of one pair differ.
fn numbers(salt: PoolSalt) -> &'static [u32] {
    match salt {
        PoolSalt::Pair | PoolSalt::Words => &[0],
        PoolSalt::StablePair => &[0, 1],
        PoolSalt::Fee => &FEES,
        PoolSalt::Spacing => &SPACINGS,
    }
}

fn salt(salt: PoolSalt, [low, high]: &[Account; 2], number: u32) -> Word {
    let (padding, number) = ([0; 12], number.to_be_bytes());
    let [.., last] = number;
    match salt {
        PoolSalt::Pair => keccak256(&[low, high]),
        PoolSalt::StablePair => keccak256(&[low, high, &[last]]),
        PoolSalt::Words => keccak256(&[&padding, low, &padding, high]),
        PoolSalt::Fee | PoolSalt::Spacing => {
            keccak256(&[&padding, low, &padding, high, &[0; 28], &number])
        }
    }
}

/// The first byte of what CREATE2 hashes: 0xff, on Tron the prefix of its addresses.
fn prefix(family: Family) -> u8 {
    match family {
        Family::Tron => 0x41,
        Family::Evm | Family::Solana => 0xff,
    }
}

/// The address of a contract created by CREATE2 (EIP-1014).
fn create2_address(prefix: u8, factory: &Factory, salt: &Word) -> Account {
    let hash = keccak256(&[&[prefix], &factory.deployer, salt, &factory.code_hash]);
    let mut account = Account::default();
    if let Some((_, bytes)) = hash.split_first_chunk::<12>() {
        account.copy_from_slice(bytes);
    }
    account
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn account(text: &str) -> Account {
        let mut bytes = [0; 20];
        hex::decode_to_slice(text, &mut bytes).unwrap();
        bytes
    }

    /// The pair of WETH and USDC, as Uniswap's own explorer shows it; no factory of Base derives it.
    #[test]
    fn a_factory_of_one_chain_makes_no_pool_of_another() {
        let registry = Registry::embedded().unwrap();
        let pair = account("b4e16d0168e52d35cacd2c6185b44281ec28c9dc");
        let weth = account("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2");
        let usdc = account("a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48");
        let log = Log { address: pair, topics: Vec::new().into(), data: vec![0; 4 * 32] };
        let made = |slug: &str, a, b| {
            let chain = registry.chain_named(slug).unwrap();
            factory_of_pair((registry.evm(), chain), &log, a, b)
        };
        // Each twice: the second answer comes from the cache.
        for _ in 0..2 {
            assert_eq!(made("eth", weth, usdc).as_deref(), Some("Uniswap V2"));
            assert_eq!(made("eth", usdc, weth).as_deref(), Some("Uniswap V2"));
            assert_eq!(made("base", weth, usdc), None);
            assert_eq!(made("eth", weth, pair), None);
        }
    }

    /// WTRX and USDT on Tron: `SunSwap`'s pair, its pool of 0.05 %, and WTRX and DCT's pair, by the addresses
    /// that public programs use.
    #[test]
    fn tron_derives_addresses_with_its_own_prefix() {
        let registry = Registry::embedded().unwrap();
        let chain = registry.chain_named("tron").unwrap();
        let wtrx = account("891cdb91d149f23b1a45d9c5ca78a88d0cb44c18");
        let usdt = account("a614f803b6fd780986a42c78ec9c7f77e6ded13c");
        let made = |pool: &str, token| {
            let log =
                Log { address: account(pool), topics: Vec::new().into(), data: vec![0; 4 * 32] };
            factory_of_pair((registry.tron(), chain), &log, wtrx, token)
                .map(|name| name.to_string())
        };
        let pair = "3a10321a4e97a64d9376af42ec07d5fa50294b35";
        assert_eq!(made(pair, usdt).as_deref(), Some("SunSwap V2"));
        let pool = "b50b027637ab9a7f2ba5b70a24f778f8438bb279";
        assert_eq!(made(pool, usdt).as_deref(), Some("SunSwap V3"));
        let dct = account("af3f2254a9c6a3c143c10cbe15eb9eb75c553f45");
        assert_eq!(
            made("6ca269605dcf30f2346377c4707c096c5efb9a9b", dct).as_deref(),
            Some("SunSwap V2")
        );
        assert_eq!(made(pair, dct), None);
    }

    /// The order in which the kinds of salt are tried does not change the result.
    #[test]
    fn no_two_factories_derive_one_address_and_each_kind_of_salt_is_tried() {
        let registry = Registry::embedded().unwrap();
        let log = |words: usize| Log {
            address: Account::default(),
            topics: Vec::new().into(),
            data: vec![0; words * 32],
        };
        for chain in registry.chains() {
            let mut seen = std::collections::HashSet::new();
            for factory in registry.evm().factories(chain) {
                let derives = (factory.deployer, factory.code_hash);
                assert!(seen.insert(derives), "{} on {}", factory.name, chain.slug);
                for words in [4, 5, 7] {
                    assert!(likely_first(&log(words)).contains(&factory.salt), "{}", factory.name);
                }
            }
        }
    }

    /// Pools from explorers, for the kinds of salt that `tests/it/evm_decode.rs` does not cover:
    /// tick spacing and whole words.
    #[test]
    fn a_pool_is_recognized_by_its_factory_and_by_no_other() {
        let weth = account("4200000000000000000000000000000000000006");
        let usdc = account("833589fcd6edb6e08f4c7c32d4f71b54bda02913");
        let slipstream = account("b2cc224c1c9fee385f8ad6a55b4d94e92359dc59");
        let wmatic = account("0d500b1d8e8ef31e21c99d1db9a6444d3adf1270");
        let usdc_bridged = account("2791bca1f2de4661ed88a30c99a7a9449aa84174");
        let quickswap = account("ae81fac689a1b4b1e06e7ef4a2ab4cd8ac0a087d");
        let slipstreams = [
            slipstream,
            account("c758d81b9b81a6fcdad075bd471874a2c46b54e0"),
            account("3fe04a59ebd38cf06080a6f60a98d124eb59392a"),
        ];
        let wbnb = account("bb4cdb9cbd36b01bd1cbaebf2de08d9173bc095c");
        let usdt = account("55d398326f99059ff775485246999027b3197955");
        let the = account("f4c8e32eadec4bfe97e0f595add0f4450a863a11");
        let whype = [0x55; 20];
        let usdc_hyper = account("b88339cb7199b77e23db6e890353e22632ba630f");
        let (pancake, thena, pair, prjx) = (
            account("36696169c63e42cd08ce11f5deebbcebae652050"),
            account("d405b976ac01023c9064024880999fc450a8668b"),
            account("63db6ba9e512186c2faadacef342fb4a40dc577c"),
            account("6c9a33e3b592c0d65b3ba59355d5be0d38259285"),
        );
        let (usdc_linea, weth_linea, usdc_ink, usdt_lisk, usdc_lisk) = (
            account("176211869ca2b568f2a7d4ee941e073a821ee1ff"),
            account("e5d7c2a44ffddf6b295a15c148167daaaf5cf34f"),
            account("f1815bd50389c46847f0bda824ec8da914045d14"),
            account("05d032ac25d322df992303dca074ee7392c117b9"),
            account("f242275d3a6527d877f2c927a82d9b057609cc71"),
        );
        let (pair_linea, pair_ink, velodrome) = (
            account("85e140a505ac30857fcf7d082b6dac3ee14da396"),
            account("fa3a9015e5fd82485835e23260bc98adadca8a01"),
            account("e36926807aa151c89125057742656af8669d4cb1"),
        );
        let cases = [
            ("polygon", [wmatic, usdc_bridged], quickswap, "QuickSwap V3"),
            ("bsc", [usdt, wbnb], pancake, "PancakeSwap V3"),
            ("bsc", [usdt, wbnb], thena, "Thena"),
            ("bsc", [wbnb, the], pair, "Thena"),
            ("hyperevm", [whype, usdc_hyper], prjx, "Project X"),
            ("linea", [usdc_linea, weth_linea], pair_linea, "Uniswap V2"),
            ("ink", [weth, usdc_ink], pair_ink, "Uniswap V2"),
            // A pool on Lisk, where the same factory has the same address.
            ("unichain", [usdt_lisk, usdc_lisk], velodrome, "Velodrome V2"),
        ];
        let slipstreams =
            slipstreams.map(|pool| ("base", [weth, usdc], pool, "Aerodrome Slipstream"));
        let registry = Registry::embedded().unwrap();
        for (chain, pair, pool, name) in cases.into_iter().chain(slipstreams) {
            let chain = registry.chain_named(chain).unwrap();
            let makes =
                |one: &&Factory| factory_of_kind(&[*one], one.salt, &pair, (0xff, pool)).is_some();
            let factories = registry.evm().factories(chain);
            let makers: Vec<&str> = factories.filter(makes).map(|one| &*one.name).collect();
            assert_eq!(makers, [name], "{}", chain.slug);
        }
    }
}
