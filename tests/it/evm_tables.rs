//! Rows of the EVM chains held against what they must follow from.

use blotter::decode::evm::Account;
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
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    let fee = |fee: u32| keccak(&[&word(&low), &word(&high), &word(&fee.to_be_bytes())]);
    let salts = match factory.salt {
        PoolSalt::Pair => vec![keccak(&[&low, &high])],
        PoolSalt::Fee => vec![fee(100), fee(500), fee(3000), fee(10_000)],
        PoolSalt::StablePair | PoolSalt::Words | PoolSalt::Spacing => vec![],
    };
    let address = |salt: &[u8; 32]| {
        let hash = keccak(&[&[0xff], &factory.deployer, salt, &factory.code_hash]);
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
    let told: Vec<&Chain> =
        registry.chains().iter().filter(|chain| !chain.reference_pools.is_empty()).collect();
    let slugs: Vec<&str> = told.iter().map(|chain| chain.slug.as_str()).collect();
    assert_eq!(slugs, ["eth", "base", "bsc", "hyperevm", "monad", "robinhood"]);
    for chain in told {
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
