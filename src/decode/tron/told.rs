//! What events tell beyond transfers: TRC-10 tokens that moved, and the TRX that a trade took
//! where calls do not tell it.

use super::payout::payouts;
use super::transaction::{AssetMove, Transaction};
use crate::decode::evm::{self, Account, Log, NativeFlows, Word, topic};
use crate::domain::{Address, Units};
use crate::registry::{Chain, EvmTables};

/// `Transfer(address,address,uint256)`.
const TRANSFER: Word = topic("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
/// WTRX's `Withdrawal(address,uint256)`.
const WITHDRAWAL: Word = topic("7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65");
/// SunPump's `TokenPurchased(address,address,uint256,uint256,uint256,uint256)`: token, buyer, TRX
/// for the curve, fee, tokens, what is left.
const PURCHASED: Word = topic("63abb62535c21a5d221cf9c15994097b8880cc986d82faf80f57382b998dbae5");
/// SunSwap V1's `TokenPurchase` and `TrxPurchase(address,uint256,uint256)`: buyer, sold, bought.
const V1_TOKEN_PURCHASE: Word =
    topic("cd60aa75dea3072fbc07ae6d7d856b5dc5f4eee88854f5b4abf7b680ef8bc50f");
const V1_TRX_PURCHASE: Word =
    topic("dad9ec5c9b9c82bf6927bf0b64293dcdd1f82c92793aef3c5f26d7b93a4a5306");

/// The transaction as the EVM decoder reads it: TRC-10 movements stand as transfers of a token, and
/// TRX stands as what the trade took or gave of it.
pub(super) struct Told {
    pub(super) call: evm::Transaction,
    /// What the wallet was paid in TRX cannot be known.
    pub(super) pay_is_untold: bool,
}

impl Told {
    pub(super) fn read(
        tables: &EvmTables,
        chain: &Chain,
        wallet: &Account,
        tx: &Transaction,
    ) -> Self {
        let mut told = Self { call: tx.call.clone(), pay_is_untold: false };
        if tx.call.from == *wallet {
            told.add_native(tables, chain, wallet, tx);
        }
        told.call.logs.extend(tx.assets.iter().filter_map(transfer));
        told
    }

    fn add_native(
        &mut self,
        tables: &EvmTables,
        chain: &Chain,
        wallet: &Account,
        tx: &Transaction,
    ) {
        // The fee for the creation of a token stands in the value beside the outlay.
        let spent = curve_outlay(wallet, &tx.call);
        let unknown = tx.call.native == NativeFlows::Unknown;
        if let Some(spent) = spent.or_else(|| pool_outlay(wallet, &tx.call).filter(|_| unknown)) {
            self.call.value = spent;
            self.call.native = NativeFlows::Calls(Vec::new());
            return;
        }
        if !unknown || !tx.call.value.is_zero() {
            return;
        }
        let Some(router) = tx.call.to else { return };
        let is_exact = tables.contract(chain, &router).is_some_and(|contract| contract.exact);
        let mut unwraps = tx.call.logs.iter().filter(|log| {
            log.address == chain.wrapped_native.bytes() && log.topics.first() == Some(&WITHDRAWAL)
        });
        let Some(unwrap) = unwraps.next().filter(|_| is_exact) else { return };
        let is_only = unwraps.next().is_none()
            && unwrap.topics.get(1) == Some(&padded(&router))
            && !tx.call.logs.iter().any(|log| is_v1(&log));
        let paid = word(unwrap, 0).filter(|_| is_only);
        match paid.and_then(|paid| payouts(router, &tx.input, paid)) {
            Some(paid) => self.call.native = NativeFlows::Calls(paid),
            None => self.pay_is_untold = true,
        }
    }
}

fn is_v1(log: &&Log) -> bool {
    matches!(log.topics.first(), Some(&V1_TOKEN_PURCHASE | &V1_TRX_PURCHASE))
}

/// What one purchase on the called launchpad took of its buyer.
fn curve_outlay(wallet: &Account, call: &evm::Transaction) -> Option<Units> {
    let mut bought = call.logs.iter().filter(|log| log.topics.first() == Some(&PURCHASED));
    let (log, None) = (bought.next()?, bought.next()) else { return None };
    let is_own = call.to == Some(log.address) && log.topics.get(2) == Some(&padded(wallet));
    let outlay = word(log, 0)?.checked_add(word(log, 1)?)?;
    (is_own && outlay <= call.value).then_some(outlay)
}

/// What the called exchange took of its buyer; it gives back what is left at once.
fn pool_outlay(wallet: &Account, call: &evm::Transaction) -> Option<Units> {
    let is_v1 =
        |log: &&Log| matches!(log.topics.first(), Some(&V1_TOKEN_PURCHASE | &V1_TRX_PURCHASE));
    let mut swaps = call.logs.iter().filter(is_v1);
    let (log, None) = (swaps.next()?, swaps.next()) else { return None };
    let [V1_TOKEN_PURCHASE, buyer, sold, _] = log.topics.as_slice() else { return None };
    let outlay = Units::from_be_bytes(*sold);
    let is_own = call.to == Some(log.address) && *buyer == padded(wallet);
    (is_own && outlay <= call.value).then_some(outlay)
}

fn word(log: &Log, at: usize) -> Option<Units> {
    let (words, _) = log.data.as_chunks::<32>();
    words.get(at).map(|word| Units::from_be_bytes(*word))
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
