//! A transaction with its receipt and its trace to trades: never more than events and calls moved.
//!
//! The first byte chooses the wallet among the accounts that the transaction names, the first line
//! is the transaction, the second its receipt, the third a trace of either form or nothing.

#![no_main]

use blotter::decode::evm::{NativeFlows, decode, parse, parse_flat_trace, parse_trace};
use blotter::demo::evm::TradeKind;
use blotter_fuzz::sample::{Sample, chain};
use blotter_fuzz::{REGISTRY, choice_and_lines, moved, target};

/// Chains with mirrors of the native coin, and without.
const CHAINS: [&str; 4] = ["eth", "bsc", "base", "polygon"];

fn seeds() -> Vec<Vec<u8>> {
    let traces = ["debug_traceTransaction", "trace_transaction"];
    let kinds = TradeKind::ALL.into_iter().enumerate();
    let answers = kinds.flat_map(|(number, kind)| {
        let sample = Sample::evm(chain("eth"), Some(kind), 2);
        let trace = traces[number % traces.len()];
        sample.called(&["eth_getTransactionByHash", "eth_getTransactionReceipt", trace])
    });
    answers.map(|lines| [b"\0".to_vec(), lines].concat()).collect()
}

fn attempt(bytes: &[u8]) {
    let Some((choice, [tx, receipt, trace])) = choice_and_lines(bytes) else { return };
    let Ok(mut tx) = parse(tx, receipt) else { return };
    if let Ok(calls) = parse_trace(trace).or_else(|_| parse_flat_trace(trace)) {
        tx.native = NativeFlows::Calls(calls);
    }
    let (slug, choice) = (usize::from(choice) % CHAINS.len(), usize::from(choice) / CHAINS.len());
    let (chain, accounts) = (chain(CHAINS[slug]), moved::accounts(&tx));
    let wallet = accounts[choice % accounts.len()];
    let decoded = decode(REGISTRY.evm(), chain, &wallet, &tx);
    assert_eq!(moved::beyond(chain, &tx, &decoded, |_| None), None, "{:?}", decoded.trades);
}

target!(seeds, attempt);
