//! Presents a Tron transaction to the EVM decoder: TRC-10 movements, and a trade's TRX if calls are
//! unknown.

use std::borrow::Cow;

use super::payout::RouterCall;
use super::transaction::{AssetMove, Transaction};
use crate::decode::abi::account;
use crate::decode::evm::{
    self, Account, DEPOSIT, Log, NativeFlows, NativeMove, TRANSFER, WITHDRAWAL, Word, topic, units,
    word,
};
use crate::domain::{Address, Units};
use crate::registry::{Chain, EvmTables};

/// `SunPump`'s `TokenPurchased(address,address,uint256,uint256,uint256,uint256)`: token, buyer, TRX
/// for the curve, fee, tokens, remainder.
const PURCHASED: Word = topic("63abb62535c21a5d221cf9c15994097b8880cc986d82faf80f57382b998dbae5");
/// `Swap` of `SunSwap` V4 and of Uniswap V4, whose pools hold unwrapped TRX.
const V4_SWAP: Word = topic("04206ad2b7c0f463bff3dd4f33c5735b0f2957a351e4f79763a4fa9e775dd237");
const UNISWAP_V4_SWAP: Word =
    topic("40e9cecb9f5f1f1c5b9c97dec2917b7ee92e57ba5563708daca94dd84ad7112f");
/// `SunSwap` V1's `TokenPurchase` and `TrxPurchase(address,uint256,uint256)`: buyer, sold, bought.
const V1_TOKEN_PURCHASE: Word =
    topic("cd60aa75dea3072fbc07ae6d7d856b5dc5f4eee88854f5b4abf7b680ef8bc50f");
const V1_TRX_PURCHASE: Word =
    topic("dad9ec5c9b9c82bf6927bf0b64293dcdd1f82c92793aef3c5f26d7b93a4a5306");
/// `tokenToTrxTransferInput` and `tokenToTrxTransferOutput(uint256,uint256,uint256,address)` of V1:
/// the last word is the receiver of the TRX, which the event does not name.
const V1_SELL_TO: [[u8; 4]; 2] = [[0x01, 0x27, 0xf1, 0x42], [0x14, 0x17, 0x8d, 0xda]];
const V1_TO: usize = 3;

/// A Tron transaction as input of the EVM decoder: TRC-10 movements become token transfers, and TRX
/// is what the trade took or gave.
pub(super) struct EvmView<'a> {
    pub(super) call: Cow<'a, evm::Transaction>,
    /// The TRX that the wallet was paid is unknown.
    pub(super) payout_unknown: bool,
}

impl<'a> EvmView<'a> {
    pub(super) fn read(
        tables: &EvmTables,
        chain: &Chain,
        wallet: &Account,
        tx: &'a Transaction,
    ) -> Self {
        let mut view = Self { call: Cow::Borrowed(&tx.call), payout_unknown: false };
        if tx.call.from == *wallet {
            view.add_native(tables, chain, wallet, tx);
        }
        if !tx.assets.is_empty() {
            view.call.to_mut().logs.extend(tx.assets.iter().filter_map(transfer));
        }
        view
    }

    /// Replaces the call's value by what the trade took of it.
    fn outlay(&mut self, spent: Units) {
        let call = self.call.to_mut();
        call.value = spent;
        call.native = NativeFlows::Calls(Vec::new());
    }

    fn add_native(
        &mut self,
        tables: &EvmTables,
        chain: &Chain,
        wallet: &Account,
        tx: &Transaction,
    ) {
        // The fee for the creation of a token is part of the value, but not of the outlay.
        let spent = curve_outlay(wallet, &tx.call);
        let unknown = !matches!(tx.call.native, NativeFlows::Calls(_));
        if let Some(spent) = spent.or_else(|| pool_outlay(wallet, &tx.call).filter(|_| unknown)) {
            self.outlay(spent);
            return;
        }
        if unknown && pays_another(wallet, tx) {
            self.call.to_mut().native = NativeFlows::Calls(Vec::new());
        } else if unknown {
            self.add_routed(tables, chain, wallet, tx);
        }
    }

    /// Adds the TRX of a trade through a router that wraps and unwraps it.
    fn add_routed(
        &mut self,
        tables: &EvmTables,
        chain: &Chain,
        wallet: &Account,
        tx: &Transaction,
    ) {
        let Some(router) = tx.call.to else { return };
        let of = |kind: Word, own: bool| {
            let its = padded(&router);
            let logs = tx.call.logs.iter().filter(move |log| {
                log.address == chain.wrapped_native.bytes()
                    && log.topics.first() == Some(&kind)
                    && (log.topics.get(1) == Some(&its)) == own
            });
            logs.filter_map(|log| word(log, 0).map(units))
        };
        let sum = |kind, own| of(kind, own).fold(Units::ZERO, Units::saturating_add);
        let others = [DEPOSIT, WITHDRAWAL].iter().any(|kind| !sum(*kind, false).is_zero());
        let (wrapped, unwrapped) = (sum(DEPOSIT, true), sum(WITHDRAWAL, true));
        let last_unwrapped = of(WITHDRAWAL, true).next_back().unwrap_or_default();
        let moves_native = |log: &Log| {
            matches!(log.topics.first(), Some(&V4_SWAP | &UNISWAP_V4_SWAP)) || is_v1(log)
        };
        if others || tx.call.logs.iter().any(moves_native) {
            self.payout_unknown = !unwrapped.is_zero();
            return;
        }
        let is_known = tables
            .contract(chain, &router)
            .is_some_and(|contract| contract.is_exact(tx.call.selector));
        let routed = RouterCall {
            call: &tx.call,
            input: &tx.input,
            wrapped,
            unwrapped,
            last_unwrapped,
            is_known,
        };
        if !tx.call.value.is_zero() {
            if let Some(spent) = routed.spent() {
                self.outlay(spent);
            }
        } else if !unwrapped.is_zero() {
            match routed.paid() {
                Some(value) => {
                    let paid = NativeMove { from: router, to: *wallet, value };
                    let paid = Some(paid).filter(|paid| !paid.value.is_zero());
                    self.call.to_mut().native = NativeFlows::Calls(paid.into_iter().collect());
                }
                None => self.payout_unknown = true,
            }
        }
    }
}

fn is_v1(log: &Log) -> bool {
    matches!(log.topics.first(), Some(&V1_TOKEN_PURCHASE | &V1_TRX_PURCHASE))
}

/// The buyer's cost of a single purchase on the called launchpad.
fn curve_outlay(wallet: &Account, call: &evm::Transaction) -> Option<Units> {
    let mut bought = call.logs.iter().filter(|log| log.topics.first() == Some(&PURCHASED));
    let (log, None) = (bought.next()?, bought.next()) else { return None };
    let is_own = call.to == Some(log.address) && log.topics.get(2) == Some(&padded(wallet));
    let outlay = units(word(log, 0)?).checked_add(units(word(log, 1)?))?;
    (is_own && outlay <= call.value).then_some(outlay)
}

/// The buyer's cost of a single purchase at the called V1 exchange, which refunds the rest at once.
fn pool_outlay(wallet: &Account, call: &evm::Transaction) -> Option<Units> {
    let mut swaps = call.logs.iter().filter(|log| is_v1(log));
    let (log, None) = (swaps.next()?, swaps.next()) else { return None };
    let [V1_TOKEN_PURCHASE, buyer, sold, _] = log.topics.as_slice() else { return None };
    let outlay = units(sold);
    let is_own = call.to == Some(log.address) && *buyer == padded(wallet);
    (is_own && outlay <= call.value).then_some(outlay)
}

/// Whether the called V1 exchange paid what it gave to an account other than the wallet.
fn pays_another(wallet: &Account, tx: &Transaction) -> bool {
    let sells =
        |log: &Log| Some(log.address) == tx.call.to && log.topics.first() == Some(&V1_TRX_PURCHASE);
    let receiver = tx.input.split_first_chunk().and_then(|(selector, words)| {
        V1_SELL_TO.contains(selector).then(|| account(words, V1_TO)).flatten()
    });
    receiver.is_some_and(|to| to != *wallet) && tx.call.logs.iter().any(sells)
}

fn transfer(moved: &AssetMove) -> Option<Log> {
    let AssetMove { from, to, token, value } = moved;
    let address = Address::tron_asset(*token).bytes().try_into().ok()?;
    let topics = [TRANSFER, padded(from), padded(to)].into_iter().collect();
    Some(Log { address, topics, data: value.to_be_bytes::<32>().to_vec() })
}

fn padded(account: &Account) -> Word {
    let mut word = [0; 32];
    if let Some(tail) = word.last_chunk_mut() {
        *tail = *account;
    }
    word
}
