//! The decoder over the demo chain: its rows equal the trades of the model.

use std::collections::{BTreeMap, HashMap};

use blotter::decode::solana::{decode, parse};
use blotter::demo::DemoNode;
use blotter::demo::solana::{SolanaModel, TradeKind, TrueTrade, WalletPlan};
use blotter::domain::{Address, Side, TxId, Units};
use blotter::registry::Registry;
use serde_json::value::RawValue;

/// Side is buy, mint, units, native, venue.
type Row = (bool, String, Option<Units>, Option<Units>, String);

/// Per kind: how many transactions there were, how many were right, and one that was wrong.
type Score = BTreeMap<String, (usize, usize, Option<String>)>;

pub(crate) fn raw(node: &DemoNode, signature: &TxId) -> Vec<u8> {
    #[derive(serde::Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    let options = r#"{"encoding":"json","maxSupportedTransactionVersion":1}"#;
    let params = format!(r#"["{signature}",{options}]"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"getTransaction","params":{params}}}"#);
    let answer = node.respond(body.as_bytes()).unwrap();
    let envelope: Envelope<'_> = serde_json::from_slice(&answer).unwrap();
    envelope.result.get().as_bytes().to_vec()
}

fn decoded(registry: &Registry, wallet: Address, json: &[u8]) -> Vec<Row> {
    let Address::Solana(key) = wallet else { return Vec::new() };
    let decoded = decode(registry, &key, &parse(json).unwrap());
    let row = |t: &blotter::decode::DecodedTrade| {
        (t.side == Side::Buy, t.mint.to_string(), t.units, t.native, t.venue.to_string())
    };
    let mut rows: Vec<Row> = decoded.trades.iter().map(row).collect();
    rows.sort();
    rows
}

fn expected(rows: &[TrueTrade]) -> Vec<Row> {
    let row = |t: &TrueTrade| {
        let buys = t.side == Side::Buy;
        (buys, t.mint.to_string(), Some(t.units), t.native, t.venue.to_owned())
    };
    let mut rows: Vec<Row> = rows.iter().map(row).collect();
    rows.sort();
    rows
}

/// Decodes every transaction of a wallet: trades, failures and noise. The native value of a
/// token-for-token trade is not the decoder's task.
fn compare(score: &mut Score, label: &str, plan: WalletPlan, count: usize) {
    let registry = Registry::embedded().unwrap();
    let model = SolanaModel::new(21);
    let node = DemoNode::new(model.clone(), 1);
    let address = model.add_named("compared", plan);
    let mut truth: HashMap<TxId, Vec<TrueTrade>> = HashMap::new();
    for row in model.truth(address) {
        truth.entry(row.signature).or_default().push(row);
    }
    let blind = |mut rows: Vec<Row>| {
        if rows.len() > 1 {
            for row in &mut rows {
                row.3 = None;
            }
        }
        rows
    };
    for signature in model.signatures(address).take(count) {
        let json = raw(&node, &signature);
        let wanted = blind(expected(truth.get(&signature).map_or(&[][..], Vec::as_slice)));
        let got = blind(decoded(&registry, address, &json));
        let kind = format!("{label}: {:?}", model.kind_of(&signature).unwrap());
        let entry = score.entry(kind).or_default();
        entry.0 += 1;
        entry.1 += usize::from(got == wanted);
        if got != wanted && entry.2.is_none() {
            let json = String::from_utf8(json).unwrap();
            entry.2 = Some(format!("wanted {wanted:#?}\ngot {got:#?}\n{json}"));
        }
    }
}

#[test]
fn the_decoder_reads_every_kind_as_it_was_made() {
    let mut score = Score::new();
    let mixed = WalletPlan { keeper_percent: 30, ..WalletPlan::trades(10_000) };
    compare(&mut score, "mixed", mixed, 10_000);
    for kind in TradeKind::ALL {
        let label = format!("only {kind:?}");
        compare(&mut score, &label, WalletPlan::only(kind, 600), 600);
    }
    let wrong: Vec<_> = score.iter().filter(|(_, (count, right, _))| count != right).collect();
    let table: Vec<_> = wrong
        .iter()
        .map(|(kind, (count, right, _))| format!("{right} of {count} {kind}"))
        .collect();
    assert!(wrong.is_empty(), "{table:#?}\n{}", wrong[0].1.2.as_deref().unwrap_or_default());
}
