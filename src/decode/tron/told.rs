//! What events tell beyond transfers: TRC-10 tokens that moved, and TRX where no inner calls are
//! kept.

use super::transaction::{AssetMove, Transaction};
use crate::decode::evm::{self, Account, Log, TRANSFER, Word};
use crate::domain::Address;

/// The transaction as the EVM decoder reads it: TRC-10 movements stand as transfers of a token.
pub(super) fn whole(_wallet: &Account, tx: &Transaction) -> evm::Transaction {
    let mut call = tx.call.clone();
    call.logs.extend(tx.assets.iter().filter_map(transfer));
    call
}

fn transfer(moved: &AssetMove) -> Option<Log> {
    let AssetMove { from, to, token, value } = moved;
    let address = Address::tron_asset(*token).bytes().try_into().ok()?;
    let topics = vec![TRANSFER, padded(from), padded(to)];
    Some(Log { address, topics, data: value.to_be_bytes::<32>().to_vec() })
}

fn padded(account: &Account) -> Word {
    let mut word = [0; 32];
    if let Some(tail) = word.last_chunk_mut() {
        *tail = *account;
    }
    word
}
