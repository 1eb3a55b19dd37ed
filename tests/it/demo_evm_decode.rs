//! The EVM demo chains' model compared with what the decoder reads from their wire format.

use blotter::decode::evm::{NativeFlows, Transaction, decode, parse, parse_trace};
use blotter::demo::DemoNode;
use blotter::demo::evm::{EvmModel, TradeKind, TrueTrade, WalletPlan};
use blotter::domain::{Address, Side, TxId, Units};
use blotter::registry::{Chain, Registry};
use serde_json::{Value, json};

type Fact = (TxId, Side, Address, Option<Units>, Option<Units>, String);

fn facts(truth: &[TrueTrade]) -> Vec<Fact> {
    let fact =
        |t: &TrueTrade| (t.hash, t.side, t.token, Some(t.units), t.native, t.venue.to_owned());
    truth.iter().map(fact).collect()
}

fn ask(node: &DemoNode, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = node.respond(call.to_string().as_bytes()).unwrap();
    let mut answer: Value = serde_json::from_slice(&answer).unwrap();
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].take()
}

fn read(node: &DemoNode, hash: &TxId, traced: bool) -> Transaction {
    let TxId::Evm(hash) = hash else { panic!("another family") };
    let hash = format!("0x{}", hex::encode(hash));
    let tx = ask(node, "eth_getTransactionByHash", json!([hash])).to_string();
    let receipt = ask(node, "eth_getTransactionReceipt", json!([hash])).to_string();
    let mut tx = parse(tx.as_bytes(), receipt.as_bytes()).unwrap();
    if traced && tx.succeeded {
        let options = json!([hash, {"tracer": "callTracer"}]);
        let trace = ask(node, "debug_traceTransaction", options).to_string();
        tx.native = NativeFlows::Calls(parse_trace(trace.as_bytes()).unwrap());
    }
    tx
}

fn decoded(registry: &Registry, chain: &Chain, wallet: Address, tx: &Transaction) -> Vec<Fact> {
    let Address::Evm(account) = wallet else { panic!("another family") };
    let decoded = decode(registry.evm(), chain, &account, tx);
    let fact = |trade: blotter::decode::DecodedTrade| {
        (
            TxId::Evm(tx.hash),
            trade.side,
            trade.mint,
            trade.units,
            trade.native,
            trade.venue.to_string(),
        )
    };
    decoded.trades.into_iter().map(fact).collect()
}

const SLUGS: [&str; 6] = ["eth", "base", "bsc", "hyperevm", "monad", "robinhood"];

#[test]
fn every_kind_of_trade_decodes_to_the_truth() {
    let registry = Registry::embedded().unwrap();
    for slug in SLUGS {
        let chain = registry.chain_named(slug).unwrap();
        let model = EvmModel::new(5, chain);
        let node = DemoNode::evm(model.clone(), 1);
        for kind in TradeKind::ALL {
            let wallet = model.add_named(&format!("{kind:?}"), WalletPlan::only(kind, 36));
            let truth: Vec<TrueTrade> = model.truth(wallet).collect();
            assert!(truth.len() >= 36, "{slug} {kind:?}");
            for rows in truth.chunk_by(|a, b| a.hash == b.hash) {
                let tx = read(&node, &rows[0].hash, true);
                assert_eq!(
                    decoded(&registry, chain, wallet, &tx),
                    facts(rows),
                    "{slug} {:?}",
                    rows[0].kind
                );
            }
        }
    }
}

#[test]
fn without_traces_nothing_is_wrong() {
    let registry = Registry::embedded().unwrap();
    let mut missing = std::collections::BTreeMap::new();
    for slug in SLUGS {
        let chain = registry.chain_named(slug).unwrap();
        let model = EvmModel::new(6, chain);
        let node = DemoNode::evm(model.clone(), 1);
        let wallet = model.add_named("mixed", WalletPlan::trades(150));
        let truth: Vec<TrueTrade> = model.truth(wallet).collect();
        for rows in truth.chunk_by(|a, b| a.hash == b.hash) {
            let got = decoded(&registry, chain, wallet, &read(&node, &rows[0].hash, false));
            let kind = rows[0].kind;
            if got.is_empty() {
                *missing.entry((slug, format!("{kind:?} {:?}", rows[0].side))).or_insert(0) += 1;
                continue;
            }
            for (row, want) in got.iter().zip(facts(rows)) {
                assert_eq!((row.1, row.2, row.3), (want.1, want.2, want.3), "{slug} {kind:?}");
                assert!(
                    row.4.is_none() || row.4 == want.4,
                    "{slug} {kind:?} {:?} not {:?}",
                    row.4,
                    want.4
                );
            }
        }
    }
    // An unknown launchpad: nothing shows that a sale was paid.
    missing.retain(|(slug, kind), _| {
        !(kind == "Launchpad Sell" && ["eth", "base", "hyperevm"].contains(slug))
    });
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn noise_is_no_trade() {
    let registry = Registry::embedded().unwrap();
    for slug in SLUGS {
        let chain = registry.chain_named(slug).unwrap();
        let model = EvmModel::new(7, chain);
        let node = DemoNode::evm(model.clone(), 1);
        let plan = WalletPlan { noise_percent: 45, failed_percent: 20, ..WalletPlan::trades(60) };
        let wallet = model.add_named("noisy", plan);
        let trades: Vec<TxId> = model.truth(wallet).map(|t| t.hash).collect();
        let mut others = 0;
        for (hash, is_trade) in model.transactions_of(wallet) {
            assert_eq!(is_trade, trades.contains(&hash));
            if !is_trade {
                others += 1;
                let tx = read(&node, &hash, true);
                assert_eq!(decoded(&registry, chain, wallet, &tx), [], "{slug} {hash}");
            }
        }
        assert!(others > 60);
    }
}
