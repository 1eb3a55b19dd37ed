//! Whose pool an address is: factories derive it from the pair, so it can be derived again.

use std::sync::Arc;

use sha3::{Digest as _, Keccak256};

use super::ledger::Asset;
use super::scene::{Scene, Venue};
use super::transaction::{Account, Word};
use crate::registry::{Factory, PoolSalt};

/// Fees, in millionths, of which factories make pools.
const FEES: [u32; 9] = [100, 200, 250, 300, 400, 500, 2_500, 3_000, 10_000];
/// Spacings of ticks of which factories make pools.
const SPACINGS: [u32; 6] = [1, 10, 50, 100, 200, 2_000];

/// The name of the factory that made the pool.
pub(super) fn maker<'a>(scene: &Scene<'a>, venue: &Venue<'_>) -> Option<&'a Arc<str>> {
    let mut tokens = venue.assets.iter().filter_map(|asset| match asset {
        Asset::Token(token) => Some(*token),
        Asset::Native => None,
    });
    let (Some(a), Some(b), None) = (tokens.next(), tokens.next(), tokens.next()) else {
        return None;
    };
    let pair = if a < b { [a, b] } else { [b, a] };
    let made = |factory: &&Factory| {
        salts(factory.salt, &pair).iter().any(|salt| derived(factory, salt) == venue.log.address)
    };
    scene.tables.factories(scene.chain).find(made).map(|factory| &factory.name)
}

fn salts(salt: PoolSalt, [low, high]: &[Account; 2]) -> Vec<Word> {
    let padding = [0; 12];
    let words: [&[u8]; 4] = [&padding, low, &padding, high];
    match salt {
        PoolSalt::Pair => vec![hash(&[low, high])],
        PoolSalt::StablePair => vec![hash(&[low, high, &[0]]), hash(&[low, high, &[1]])],
        PoolSalt::Words => vec![hash(&words)],
        PoolSalt::Fee => numbered(&words, &FEES),
        PoolSalt::Spacing => numbered(&words, &SPACINGS),
    }
}

fn numbered(words: &[&[u8]], numbers: &[u32]) -> Vec<Word> {
    let salt = |number: &u32| {
        let number = number.to_be_bytes();
        hash(&[words, &[&[0; 28], &number]].concat())
    };
    numbers.iter().map(salt).collect()
}

/// The address of a contract made by CREATE2 (EIP-1014).
fn derived(factory: &Factory, salt: &Word) -> Account {
    let hash = hash(&[&[0xff], &factory.deployer, salt, &factory.code_hash]);
    let mut account = Account::default();
    if let Some((_, bytes)) = hash.split_first_chunk::<12>() {
        account.copy_from_slice(bytes);
    }
    account
}

fn hash(parts: &[&[u8]]) -> Word {
    let mut hasher = Keccak256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}
