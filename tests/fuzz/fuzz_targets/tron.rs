//! A Tron transaction with its info to trades: never more than events, calls and payments moved.
//!
//! The first byte chooses the wallet among the accounts that the transaction names, the first line
//! is the transaction, the second its info.

#![no_main]

use blotter::decode::tron::{Asset, NativeTrade, Transaction, decode, parse};
use blotter::demo::evm::TradeKind;
use blotter::domain::{Address, Units};
use blotter_fuzz::sample::{Sample, chain};
use blotter_fuzz::{REGISTRY, choice_and_lines, moved, target};

fn seeds() -> Vec<Vec<u8>> {
    let paths = ["/wallet/gettransactionbyid", "/wallet/gettransactioninfobyid"];
    let kinds = TradeKind::ALL.map(Some).into_iter().chain([None]);
    let answers = kinds.flat_map(|kind| Sample::tron(kind, 2, true).posted(&paths));
    answers.map(|lines| [b"\0".to_vec(), lines].concat()).collect()
}

/// What moved of a token of the protocol itself.
fn asset(tx: &Transaction, token: &Address) -> Option<Units> {
    let is_it = |number: u32| Asset::Trc10(number).address().as_ref() == Some(token);
    let moves = tx.assets.iter().filter(|one| is_it(one.token));
    let moved = moves.fold(Units::ZERO, |sum, one| sum.saturating_add(one.value));
    let traded = match &tx.native_trade {
        Some(NativeTrade::Exchange { paid, got, .. } | NativeTrade::Market { paid, got, .. }) => {
            paid.saturating_add(*got)
        }
        None => Units::ZERO,
    };
    let all = moved.saturating_add(traded);
    (!all.is_zero()).then_some(all)
}

fn attempt(bytes: &[u8]) {
    let Some((choice, [tx, info])) = choice_and_lines(bytes) else { return };
    let Ok(tx) = parse(tx, info) else { return };
    let (chain, accounts) = (chain("tron"), moved::accounts(&tx.call));
    let wallet = accounts[usize::from(choice) % accounts.len()];
    let decoded = decode(REGISTRY.tron(), chain, &wallet, &tx);
    if tx.native_trade.is_some() {
        let beyond = decoded.trades.iter().find(|row| row.units > asset(&tx, &row.mint));
        assert_eq!(beyond, None);
        return;
    }
    let beyond = moved::beyond(chain, &tx.call, &decoded, |token| asset(&tx, token));
    assert_eq!(beyond, None, "{:?}", decoded.trades);
}

target!(seeds, attempt);
