//! Credits: what keys have counted of forgotten wallets, so that a wallet that is loaded again is
//! not counted again. Only a keyed hash of such a wallet is stored.

use redb::{ReadTransaction, ReadableTable, WriteTransaction};
use sha2::{Digest as _, Sha256};

use super::codec;
use super::key::{RowKey, address_key};
use super::schema::names::RANGES;
use super::schema::{CREDIT, HASH_KEY, ROW_KEY_TO_TRADE, USAGE_TO_RANGES};
use super::{Result, WalletId};
use crate::domain::{KeyId, Wallet};

/// The names of the four numbers that are the secret of the hash.
const WORDS: [&str; 4] = ["credit 0", "credit 1", "credit 2", "credit 3"];

/// Trades of a forgotten wallet that a key has counted and has not read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credit {
    /// The keyed hash of the wallet.
    pub mark: u128,
    pub left: u64,
}

pub(super) fn mark(secret: [u64; 4], wallet: &Wallet) -> u128 {
    let secret = secret.map(u64::to_be_bytes);
    let hash = Sha256::new()
        .chain_update(secret.as_flattened())
        .chain_update(address_key(wallet.chain, &wallet.address))
        .finalize();
    hash.first_chunk().map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

fn secret(table: &impl ReadableTable<&'static str, u64>) -> Result<Option<[u64; 4]>> {
    let mut secret = [0; 4];
    for (name, word) in WORDS.iter().zip(&mut secret) {
        let Some(stored) = table.get(name)? else { return Ok(None) };
        *word = stored.value();
    }
    Ok(Some(secret))
}

pub(super) fn read(txn: &ReadTransaction, key: KeyId, wallet: &Wallet) -> Result<Option<Credit>> {
    let Some(secret) = secret(&txn.open_table(HASH_KEY)?)? else { return Ok(None) };
    let mark = mark(secret, wallet);
    let left = txn.open_table(CREDIT)?.get((key.0, mark))?;
    Ok(left.map(|left| Credit { mark, left: left.value() }))
}

/// Turns what keys have counted of a wallet into credits, before its rows are deleted. `seed`
/// becomes the secret where there is none.
pub(super) fn keep(
    txn: &WriteTransaction,
    id: WalletId,
    wallet: &Wallet,
    seed: [u64; 4],
) -> Result<()> {
    let mut words = txn.open_table(HASH_KEY)?;
    let secret = if let Some(secret) = secret(&words)? {
        secret
    } else {
        for (name, word) in WORDS.iter().zip(seed) {
            words.insert(name, word)?;
        }
        seed
    };
    let (mark, mut credits) = (mark(secret, wallet), txn.open_table(CREDIT)?);
    let (mut ranges, rows) = (txn.open_table(USAGE_TO_RANGES)?, txn.open_table(ROW_KEY_TO_TRADE)?);
    let of_wallet: Vec<(u64, u32)> = ranges
        .iter()?
        .filter_map(|entry| entry.ok().map(|(key, _)| key.value()))
        .filter(|(_, of)| *of == id.0)
        .collect();
    for place in of_wallet {
        let stored = ranges.remove(place)?;
        let bytes = stored.as_ref().map_or(&[][..], |bytes| bytes.value());
        let mut counted = credits.get((place.0, mark))?.map_or(0, |left| left.value());
        for range in codec::decode_ranges(RANGES, wallet.address.family(), bytes)? {
            let (from, to) = (RowKey::new(id, &range.from), RowKey::new(id, &range.to));
            let inside = rows.range(from.bytes()..=to.bytes())?.count();
            counted += u64::try_from(inside).unwrap_or(u64::MAX);
        }
        credits.insert((place.0, mark), counted)?;
    }
    Ok(())
}
