//! Rows of the EVM tables checked against facts from which they can be derived.

use blotter::decode::evm::Account;
use blotter::domain::Family;
use blotter::registry::{Chain, Factory, PoolSalt, Registry};
use sha3::{Digest as _, Keccak256};

fn keccak(parts: &[&[u8]]) -> [u8; 32] {
    Keccak256::digest(parts.concat()).into()
}

fn word(bytes: &[u8]) -> [u8; 32] {
    let mut word = [0; 32];
    word[32 - bytes.len()..].copy_from_slice(bytes);
    word
}

/// Where a factory puts the pool of two tokens (EIP-1014; the salts of Uniswap's periphery).
fn pools(factory: &Factory, a: Account, b: Account) -> Vec<Account> {
    let made = (factory.deployer, factory.code_hash);
    made_by(0xff, made, factory.salt, (a, b))
}

/// `prefix`: 0xff on EVM chains, 0x41 on Tron.
fn made_by(
    prefix: u8,
    (deployer, code_hash): (Account, [u8; 32]),
    salt: PoolSalt,
    (a, b): (Account, Account),
) -> Vec<Account> {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    let fee = |fee: u32| keccak(&[&word(&low), &word(&high), &word(&fee.to_be_bytes())]);
    let salts = match salt {
        PoolSalt::Pair => vec![keccak(&[&low, &high])],
        PoolSalt::Fee => vec![fee(100), fee(500), fee(3000), fee(10_000)],
        PoolSalt::StablePair | PoolSalt::Words | PoolSalt::Spacing => vec![],
    };
    let address = |salt: &[u8; 32]| {
        let hash = keccak(&[&[prefix], &deployer, salt, &code_hash]);
        *hash.last_chunk().unwrap()
    };
    salts.iter().map(address).collect()
}

fn account(address: &blotter::domain::Address) -> Account {
    address.bytes().try_into().unwrap()
}

#[test]
fn reference_pools_are_pools_of_the_coin_and_a_stablecoin() {
    let registry = Registry::embedded().unwrap();
    let evm = registry.chains().iter().filter(|chain| chain.family == Family::Evm);
    let listed: Vec<&Chain> = evm.filter(|chain| !chain.reference_pools.is_empty()).collect();
    let slugs: Vec<&str> = listed.iter().map(|chain| chain.slug.as_str()).collect();
    let small = ["arbitrum", "optimism", "polygon", "celo"];
    let large = ["eth", "base", "bsc", "hyperevm", "monad", "robinhood"];
    assert_eq!(slugs, [large.as_slice(), &small].concat());
    for chain in listed {
        let coin = account(&chain.wrapped_native);
        let derived: Vec<Account> = registry
            .evm()
            .factories(chain)
            .flat_map(|factory| {
                let stable = chain.stablecoins.iter().map(account);
                stable.flat_map(move |stable| pools(factory, coin, stable))
            })
            .collect();
        for pool in &chain.reference_pools {
            assert!(derived.contains(&account(pool)), "{} {pool}", chain.slug);
        }
    }
}

/// By `SunSwap` V3's factory and the hash of its pools' code (sun-protocol's contracts).
#[test]
fn reference_pools_of_tron_follow_from_their_factory() {
    let deployer = hex::decode("c2708485c99cd8cf058de1a9a7e3c2d8261a995c").unwrap();
    let code = "ba928a717d71946d75999ef1adef801a79cd34a20efecea8b2876b85f5f49580";
    let made = (deployer.try_into().unwrap(), hex::decode(code).unwrap().try_into().unwrap());
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("tron").unwrap();
    let pair = (account(&chain.wrapped_native), account(&chain.stablecoins[0]));
    let derived = made_by(0x41, made, PoolSalt::Fee, pair);
    for pool in &chain.reference_pools[1..] {
        assert!(derived.contains(&account(pool)), "{pool}");
    }
}
