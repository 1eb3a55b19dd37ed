//! Tron's demo chain: its model compared with what the decoder reads from its wire formats, and the
//! shapes of its lists.

use std::collections::{BTreeMap, BTreeSet};

use blotter::decode::evm::NativeFlows;
use blotter::decode::tron::{Asset, Transaction, decode, parse};
use blotter::demo::evm::tron::NodeOptions;
use blotter::demo::evm::{EvmModel, TradeKind, TrueTrade, WalletPlan};
use blotter::demo::{DemoNode, Faults, Rate};
use blotter::domain::{Address, Family, Side, TxId, Units};
use blotter::registry::{Chain, Registry};
use serde_json::{Value, json};

type Fact = (TxId, Side, Address, Option<Units>, Option<Units>, String);

struct World {
    registry: Registry,
    model: EvmModel,
    node: DemoNode,
}

fn world(options: NodeOptions) -> World {
    let registry = Registry::embedded().unwrap();
    let model = EvmModel::new(5, registry.chain_named("tron").unwrap());
    let node = DemoNode::tron(model.clone(), 1);
    node.set_options(options);
    World { registry, model, node }
}

fn without_inner_calls() -> NodeOptions {
    NodeOptions { inner_calls: false, ..NodeOptions::default() }
}

fn fact(t: &TrueTrade) -> Fact {
    (t.hash, t.side, t.token, Some(t.units), t.native, t.venue.to_owned())
}

impl World {
    fn chain(&self) -> &Chain {
        self.registry.chain_named("tron").unwrap()
    }

    fn post(&self, name: &str, body: Value) -> Value {
        let path = format!("/{name}");
        let (status, body) = self.node.fetch(&path, Some(body.to_string().as_bytes())).unwrap();
        assert_eq!(status, 200);
        serde_json::from_slice(&body).unwrap()
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.node.fetch(path, None).unwrap();
        assert_eq!(status, 200, "{path}");
        serde_json::from_slice(&body).unwrap()
    }

    fn read(&self, hash: &TxId) -> Transaction {
        let body = json!({"value": hex::encode(hash.to_bytes())});
        let tx = self.post("walletsolidity/gettransactionbyid", body.clone()).to_string();
        let info = self.post("walletsolidity/gettransactioninfobyid", body).to_string();
        let mut tx = parse(tx.as_bytes(), info.as_bytes()).unwrap();
        if let Some(id) = tx.unresolved_exchange() {
            let returned = self.post("wallet/getexchangebyid", json!({"id": id}));
            let asset = |name: &str| {
                let text = hex::decode(returned[name].as_str().unwrap()).unwrap();
                match text.as_slice() {
                    b"_" => Asset::Trx,
                    digits => Asset::Trc10(std::str::from_utf8(digits).unwrap().parse().unwrap()),
                }
            };
            tx.set_exchange_assets([asset("first_token_id"), asset("second_token_id")]);
        }
        tx
    }

    fn decoded(&self, wallet: Address, tx: &Transaction) -> Vec<Fact> {
        let Address::Tron(account) = wallet else { panic!("another family") };
        let decoded = decode(self.registry.tron(), self.chain(), &account, tx);
        let fact = |t: blotter::decode::DecodedTrade| {
            (TxId::Tron(tx.call.hash), t.side, t.mint, t.units, t.native, t.venue.to_string())
        };
        decoded.trades.into_iter().map(fact).collect()
    }
}

#[test]
fn every_kind_of_trade_decodes_to_the_truth() {
    let world = world(NodeOptions::default());
    for kind in TradeKind::ALL {
        let wallet = world.model.add_named(&format!("{kind:?}"), WalletPlan::only(kind, 48));
        let truth: Vec<TrueTrade> = world.model.truth(wallet).collect();
        assert!(truth.len() >= 48, "{kind:?}");
        for rows in truth.chunk_by(|a, b| a.hash == b.hash) {
            let expected: Vec<Fact> = rows.iter().map(fact).collect();
            let found = world.decoded(wallet, &world.read(&rows[0].hash));
            assert_eq!(found, expected, "{:?}", rows[0].kind);
        }
    }
}

/// Without inner calls, TRX amounts are exact if an event or the input states them, else null.
#[test]
fn without_inner_calls_values_are_exact_or_null() {
    let world = world(without_inner_calls());
    let (mut unvalued, mut missing) = (BTreeSet::new(), BTreeSet::new());
    let mut exact: BTreeMap<String, u32> = BTreeMap::new();
    for kind in TradeKind::ALL {
        let wallet = world.model.add_named(&format!("{kind:?}"), WalletPlan::only(kind, 64));
        let truth: Vec<TrueTrade> = world.model.truth(wallet).collect();
        for rows in truth.chunk_by(|a, b| a.hash == b.hash) {
            let what = format!("{:?} {:?}", rows[0].kind, rows[0].side);
            let mut tx = world.read(&rows[0].hash);
            let found = world.decoded(wallet, &tx);
            for why in [NativeFlows::Gone, NativeFlows::Refused] {
                tx.call.native = why;
                assert_eq!(world.decoded(wallet, &tx), found, "{what}");
            }
            if found.is_empty() {
                missing.insert(what);
                continue;
            }
            assert_eq!(found.len(), rows.len());
            for (row, truth) in found.iter().zip(rows.iter().map(fact)) {
                assert_eq!((row.1, row.2, row.3), (truth.1, truth.2, truth.3), "{what}");
                assert!(row.4.is_none() || row.4 == truth.4, "{what} {row:?} not {:?}", truth.4);
                if row.4 == truth.4 {
                    *exact.entry(what.clone()).or_default() += 1;
                } else {
                    unvalued.insert(what.clone());
                }
            }
        }
    }
    let text = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join(", ");
    // Then nothing shows the payment of a relayed sale.
    assert_eq!(text(missing), "Cow Sell", "{exact:?}");
    assert_eq!(text(unvalued), "Launchpad Sell, V4 Buy, V4 Sell", "{exact:?}");
}

#[test]
fn noise_is_no_trade() {
    for options in [NodeOptions::default(), without_inner_calls()] {
        let world = world(options);
        let plan = WalletPlan { noise_percent: 45, failed_percent: 20, ..WalletPlan::trades(60) };
        let wallet = world.model.add_named("noisy", plan);
        let mut others = 0;
        for (hash, is_trade) in world.model.transactions_of(wallet) {
            if !is_trade {
                others += 1;
                assert_eq!(world.decoded(wallet, &world.read(&hash)), [], "{hash}");
            }
        }
        assert!(others > 60);
    }
}

/// All pages of a list, in the order asked for, by its cursors.
fn pages(world: &World, path: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("{path}&limit={limit}{cursor}"));
        let data = page["data"].as_array().unwrap();
        assert!(data.len() <= limit && page["meta"]["page_size"] == data.len());
        all.extend(data.iter().cloned());
        let Some(next) = page["meta"]["fingerprint"].as_str() else { return all };
        assert_eq!(data.len(), limit);
        cursor = format!("&fingerprint={next}");
    }
}

#[test]
fn lists_page_by_cursor_and_by_time_without_loss() {
    let world = world(NodeOptions::default());
    let wallet =
        world.model.add_named("lister", WalletPlan { burst: 9, ..WalletPlan::trades(150) });
    let base = format!("/v1/accounts/{wallet}/transactions");
    for list in ["", "/trc20"] {
        let path = format!("{base}{list}?order_by=block_timestamp%2Cdesc&only_confirmed=true");
        let whole = pages(&world, &path, 200);
        assert!(whole.len() > 100);
        assert!(pages(&world, &path, 7) == whole, "small pages");
        let mut up = pages(&world, &path.replace("desc", "asc"), 11);
        up.reverse();
        assert!(up == whole, "the other way round");
        let at = |row: &Value| row["block_timestamp"].as_u64().unwrap();
        assert!(whole.is_sorted_by_key(|row| std::cmp::Reverse(at(row))));
        let (low, high) = (at(&whole[90]), at(&whole[20]));
        let window = format!("{path}&min_timestamp={low}&max_timestamp={high}");
        let inside: Vec<Value> =
            whole.iter().filter(|row| (low..=high).contains(&at(row))).cloned().collect();
        assert!(pages(&world, &window, 50) == inside, "a window");
    }
    let (status, body) = world.node.fetch("/v1/accounts/nowhere/transactions", None).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &body["success"], &body["statusCode"]), (400, &false.into(), &400.into()));
}

#[test]
fn tokens_report_names_and_decimals_in_every_interface() {
    let world = world(NodeOptions::default());
    let wallet = world.model.add_named("asset", WalletPlan::only(TradeKind::Exchange, 8));
    let token = world.model.truth(wallet).next().unwrap().token;
    let number = token.as_tron_asset().unwrap();
    let asset = world.post("wallet/getassetissuebyid", json!({"value": number.to_string()}));
    assert_eq!(asset["id"], number.to_string());
    let usdt = Address::parse(Family::Tron, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").unwrap();
    let to = hex::encode(usdt.bytes());
    let body = json!({"contract_address": format!("41{to}"), "function_selector": "decimals()"});
    let returned = world.post("wallet/triggerconstantcontract", body);
    assert_eq!(returned["constant_result"][0], format!("{:064x}", 6));
    let call = json!([{"jsonrpc": "2.0", "id": 1, "method": "eth_call",
        "params": [{"to": format!("0x{to}"), "data": "0x313ce567"}, "latest"]}]);
    assert_eq!(world.post("jsonrpc", call)[0]["result"], format!("0x{:064x}", 6));
    let unknown =
        json!({"jsonrpc": "2.0", "id": 1, "method": "debug_traceTransaction", "params": []});
    assert_eq!(world.post("jsonrpc", unknown)["error"]["code"], -32601);
}

/// Texts and statuses are those of the documentation of the index and of java-tron.
#[tokio::test(start_paused = true)]
async fn a_client_that_asks_too_often_is_suspended_for_a_while() {
    let world = world(NodeOptions::default());
    let wallet = world.model.add_named("asked", WalletPlan::trades(3));
    let list = format!("/v1/accounts/{wallet}/transactions");
    let suspension = "suspended for 30s";
    let mut statuses = BTreeSet::new();
    for path in [list.as_str(), "/wallet/getnowblock", "/jsonrpc"] {
        for _ in 0..20 {
            world.node.set_faults(Faults { suspended: Rate::ALWAYS, ..Faults::none() });
            let (status, body) = world.node.fetch(path, Some(b"{}")).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let text = if path.starts_with("/v1") { &body["error"] } else { &body["Error"] };
            assert!(text.as_str().unwrap().contains(suspension), "{body}");
            statuses.insert((path.starts_with("/v1"), status));
            world.node.set_faults(Faults::none());
            assert_ne!(world.node.fetch(path, None).unwrap().1, b"", "still suspended");
            tokio::time::advance(std::time::Duration::from_secs(30)).await;
        }
        world.get("/wallet/getnowblock");
    }
    let all = [(false, 200), (false, 403), (false, 429), (true, 403), (true, 429)];
    assert_eq!(statuses, BTreeSet::from(all));
    world.node.set_faults(Faults { too_many: Rate::ALWAYS, ..Faults::none() });
    let (status, body) = world.node.fetch("/wallet/getnowblock", None).unwrap();
    assert_eq!(status, 200);
    assert!(String::from_utf8(body).unwrap().contains("lack of computing resources"));
}
