//! The demo chain: its transactions form one consistent chain, its balances add up, and it uses the
//! real wire formats.

use std::collections::{BTreeMap, HashMap, HashSet};

use blotter::demo::DemoNode;
use blotter::demo::solana::WalletPlan;
use blotter::demo::solana::{Crowd, NodeOptions, SolanaModel, TradeKind, TrueTrade, TxKind};
use blotter::domain::{Address, Side, TxId};
use serde_json::{Value, json};

const SOL: &str = "So11111111111111111111111111111111111111112";
const SYSTEM: &str = "11111111111111111111111111111111";
const TOKEN: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
const TOKEN_2022: &str = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";

fn ask(node: &DemoNode, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let body = node.respond(request.to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(answer["id"], 1);
    answer
}

fn result(node: &DemoNode, method: &str, params: Value) -> Value {
    let answer = ask(node, method, params);
    assert_eq!(answer.get("error"), None, "{method}: {answer}");
    answer["result"].clone()
}

fn transaction(node: &DemoNode, signature: &str) -> Value {
    let options = json!({"encoding": "json", "maxSupportedTransactionVersion": 1});
    result(node, "getTransaction", json!([signature, options]))
}

fn page(node: &DemoNode, address: &str, options: &Value) -> Vec<Value> {
    let page = result(node, "getSignaturesForAddress", json!([address, options]));
    page.as_array().unwrap().clone()
}

/// The whole list of an address, page by page.
fn list(node: &DemoNode, address: &str, limit: u64) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let before = all.last().map(|entry| entry["signature"].clone());
        let page = page(node, address, &json!({"limit": limit, "before": before}));
        if page.is_empty() {
            return all;
        }
        assert!(page.len() <= usize::try_from(limit).unwrap());
        all.extend(page);
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn number(value: &Value) -> i128 {
    i128::from(value.as_u64().unwrap())
}

/// A chain with one wallet, and a node over it.
fn chain(plan: WalletPlan) -> (SolanaModel, DemoNode, Address) {
    let model = SolanaModel::new(7);
    let address = model.add_named("wallet", plan);
    (model.clone(), DemoNode::new(model, 1), address)
}

/// A token account in one transaction: amounts are `None` where it does not exist.
#[derive(Debug, Clone, PartialEq)]
struct Held {
    mint: String,
    owner: String,
    before: Option<i128>,
    after: Option<i128>,
}

/// A transaction as plain accounting sees it.
struct Books {
    tx: Value,
    keys: Vec<String>,
    before: Vec<i128>,
    after: Vec<i128>,
    held: BTreeMap<usize, Held>,
    /// Program, accounts, data, height; outer and inner in the order of execution.
    calls: Vec<(String, Vec<usize>, Vec<u8>, u64)>,
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|v| text(v).to_owned()).collect()
}

impl Books {
    fn open(tx: Value) -> Self {
        let (meta, message) = (&tx["meta"], &tx["transaction"]["message"]);
        let mut keys = strings(&message["accountKeys"]);
        keys.extend(strings(&meta["loadedAddresses"]["writable"]));
        keys.extend(strings(&meta["loadedAddresses"]["readonly"]));
        let numbers = |v: &Value| v.as_array().unwrap().iter().map(number).collect::<Vec<_>>();
        let (before, after) = (numbers(&meta["preBalances"]), numbers(&meta["postBalances"]));
        let mut held: BTreeMap<usize, Held> = BTreeMap::new();
        for (name, is_after) in [("preTokenBalances", false), ("postTokenBalances", true)] {
            for row in meta[name].as_array().unwrap() {
                let at = usize::try_from(row["accountIndex"].as_u64().unwrap()).unwrap();
                let entry = held.entry(at).or_insert_with(|| Held {
                    mint: text(&row["mint"]).to_owned(),
                    owner: text(&row["owner"]).to_owned(),
                    before: None,
                    after: None,
                });
                let amount = text(&row["uiTokenAmount"]["amount"]).parse().unwrap();
                *(if is_after { &mut entry.after } else { &mut entry.before }) = Some(amount);
            }
        }
        let call = |call: &Value| {
            let at = |v: &Value| usize::try_from(v.as_u64().unwrap()).unwrap();
            let accounts = call["accounts"].as_array().unwrap().iter().map(at).collect();
            let data = bs58::decode(text(&call["data"])).into_vec().unwrap();
            let height = call["stackHeight"].as_u64().unwrap();
            (keys[at(&call["programIdIndex"])].clone(), accounts, data, height)
        };
        let mut calls = Vec::new();
        for (at, outer) in message["instructions"].as_array().unwrap().iter().enumerate() {
            calls.push(call(outer));
            let inner = meta["innerInstructions"].as_array().unwrap().iter();
            for group in inner.filter(|group| group["index"] == json!(at)) {
                calls.extend(group["instructions"].as_array().unwrap().iter().map(call));
            }
        }
        Self { tx, keys, before, after, held, calls }
    }

    fn names(&self, key: &str) -> bool {
        self.keys.iter().any(|k| k == key)
    }

    fn failed(&self) -> bool {
        !self.tx["meta"]["err"].is_null()
    }

    /// What every transaction of a real chain obeys.
    fn check(&self) {
        let (meta, message) = (&self.tx["meta"], &self.tx["transaction"]["message"]);
        let count = self.keys.len();
        assert_eq!((count, count), (self.before.len(), self.after.len()));
        assert_eq!(self.keys.iter().collect::<HashSet<_>>().len(), count);
        let (spent, kept): (i128, i128) = (self.before.iter().sum(), self.after.iter().sum());
        assert_eq!(spent - kept, number(&meta["fee"]), "lamports leave as the fee only");
        let header = &message["header"];
        let signatures = self.tx["transaction"]["signatures"].as_array().unwrap().len();
        let written = message["accountKeys"].as_array().unwrap().len();
        assert_eq!(header["numRequiredSignatures"], json!(signatures));
        let readonly = header["numReadonlyUnsignedAccounts"].as_u64().unwrap();
        let writable = written - usize::try_from(readonly).unwrap();
        for at in writable..written {
            assert_eq!(self.before[at], self.after[at], "what is read only does not change");
        }
        self.check_version(written);
        self.check_tokens();
        self.check_calls(written);
        if self.failed() {
            assert_eq!(self.before[0] - self.after[0], number(&meta["fee"]));
            assert!(self.held.values().all(|held| held.before == held.after));
        }
    }

    fn check_version(&self, written: usize) {
        let message = &self.tx["transaction"]["message"];
        let version = &self.tx["version"];
        assert_eq!(message.get("addressTableLookups").is_some(), *version == json!(0));
        assert_eq!(message.get("transactionConfig").is_some(), *version == json!(1));
        let lookups = message["addressTableLookups"].as_array().cloned().unwrap_or_default();
        let indexes = |table: &Value, name: &str| table[name].as_array().unwrap().len();
        let names = ["writableIndexes", "readonlyIndexes"];
        let loaded = lookups.iter().flat_map(|t| names.map(|name| indexes(t, name))).sum::<usize>();
        assert_eq!(loaded, self.keys.len() - written);
    }

    fn check_tokens(&self) {
        let mut sums: HashMap<&str, i128> = HashMap::new();
        for (at, held) in &self.held {
            let moved = held.after.unwrap_or(0) - held.before.unwrap_or(0);
            *sums.entry(&held.mint).or_default() += moved;
            for (lamports, amount) in
                [(self.before[*at], held.before), (self.after[*at], held.after)]
            {
                assert_eq!(lamports > 0, amount.is_some(), "an account with lamports exists");
                let rent = lamports - if held.mint == SOL { amount.unwrap_or(0) } else { 0 };
                assert!(amount.is_none() || [2_039_280, 2_074_080].contains(&rent));
            }
        }
        for (program, accounts, data, _) in &self.calls {
            let minted = (program == TOKEN || program == TOKEN_2022) && [7, 8].contains(&data[0]);
            if minted && data.len() == 9 {
                let amount = i128::from(u64::from_le_bytes(data[1..9].try_into().unwrap()));
                let (mint, sign) = if data[0] == 7 { (accounts[0], -1) } else { (accounts[1], 1) };
                *sums.get_mut(self.keys[mint].as_str()).unwrap() += sign * amount;
            }
        }
        sums.remove(SOL);
        assert!(sums.values().all(|sum| *sum == 0), "{sums:?}");
    }

    fn check_calls(&self, written: usize) {
        let mut depth = 0;
        for (program, accounts, _, height) in &self.calls {
            assert!(*height <= depth + 1 && *height >= 1);
            depth = *height;
            assert!(accounts.iter().all(|at| *at < self.keys.len()));
            let at = self.keys.iter().position(|key| key == program).unwrap();
            assert!(*height > 1 || at < written, "the outer level cannot call what is looked up");
        }
        let log = strings(&self.tx["meta"]["logMessages"]);
        let begun: Vec<_> = log.iter().filter(|line| line.contains(" invoke [")).collect();
        assert_eq!(begun.len(), self.calls.len());
        for (line, (program, _, _, height)) in begun.iter().zip(&self.calls) {
            assert_eq!(**line, format!("Program {program} invoke [{height}]"));
        }
        let ended = |line: &&String| line.ends_with(" success") || line.contains(" failed: ");
        assert_eq!(log.iter().filter(ended).count(), begun.len());
    }

    /// Tokens that an owner's accounts gained or lost, wrapped SOL apart.
    fn moved(&self, owner: &str) -> BTreeMap<String, i128> {
        let mut moved = BTreeMap::new();
        for held in self.held.values().filter(|held| held.owner == owner && held.mint != SOL) {
            let sum: &mut i128 = moved.entry(held.mint.clone()).or_default();
            *sum += held.after.unwrap_or(0) - held.before.unwrap_or(0);
        }
        moved.retain(|_, sum| *sum != 0);
        moved
    }

    fn index(&self, key: &str) -> Option<usize> {
        self.keys.iter().position(|k| k == key)
    }

    /// Lamports that the owner and its token accounts gained by the swap alone: the fee, transfers
    /// to others on the outer level and rent of others' accounts are added back.
    fn native_moved(&self, owner: &str) -> i128 {
        let wallet = self.index(owner).unwrap();
        let own = |at: usize| at == wallet || self.held.get(&at).is_some_and(|h| h.owner == owner);
        let all = (0..self.keys.len()).filter(|at| own(*at));
        let mut moved: i128 = all.map(|at| self.after[at] - self.before[at]).sum();
        if wallet == 0 {
            moved += number(&self.tx["meta"]["fee"]);
        }
        for (program, accounts, data, height) in &self.calls {
            if program != SYSTEM || accounts[0] != wallet {
                continue;
            }
            let target = accounts[1];
            let passing = self.before[target] == 0 && self.after[target] == 0;
            let lamports = i128::from(u64::from_le_bytes(data[4..12].try_into().unwrap()));
            let transfer = data[0] == 2 && *height == 1;
            if (transfer || data[0] == 0) && !own(target) && !passing {
                moved += lamports;
            }
        }
        moved
    }

    /// The most wrapped SOL that one account gained or lost.
    fn largest_native_leg(&self) -> i128 {
        let legs = self.held.values().filter(|held| held.mint == SOL);
        legs.map(|h| (h.after.unwrap_or(0) - h.before.unwrap_or(0)).abs()).max().unwrap_or(0)
    }
}

fn amount(value: Option<blotter::domain::Units>) -> Option<i128> {
    value.map(|units| i128::try_from(u128::try_from(units).unwrap()).unwrap())
}

/// Whether the balances of a transaction agree with the model's trade.
fn check_truth(books: &Books, wallet: &str, rows: &[TrueTrade]) {
    let mut expected = BTreeMap::new();
    for row in rows {
        let units = amount(Some(row.units)).unwrap();
        let signed = if row.side == Side::Buy { units } else { -units };
        assert!(units > 0 && expected.insert(row.mint.to_string(), signed).is_none());
        assert!(!row.venue.is_empty());
        assert!(books.names(&row.program.to_string()) || row.venue.is_empty());
    }
    assert_eq!(books.moved(wallet), expected, "{}", books.tx);
    let native = amount(rows[0].native);
    match (rows, rows[0].kind) {
        ([row], TradeKind::LimitFill) => {
            assert_eq!((row.side, native), (Side::Buy, Some(books.largest_native_leg())));
        }
        ([row], _) => {
            let moved = books.native_moved(wallet);
            let expected = if row.side == Side::Buy { -moved } else { moved };
            assert_eq!(native, Some(expected), "{:?}\n{}", row.kind, books.tx);
        }
        (rows, _) => {
            assert!(rows.iter().all(|row| amount(row.native) == native));
            assert_eq!(native.unwrap_or(0), books.largest_native_leg());
        }
    }
}

/// Every transaction of a wallet by its own list and those of its token accounts, oldest first.
fn everything(node: &DemoNode, wallet: &str) -> (Vec<Books>, BTreeMap<String, Vec<String>>) {
    let mut found: BTreeMap<(u64, u64), Books> = BTreeMap::new();
    let mut lists = BTreeMap::new();
    let mut open = vec![wallet.to_owned()];
    while let Some(address) = open.pop() {
        if lists.contains_key(&address) {
            continue;
        }
        let entries = list(node, &address, 1_000);
        let mut names = Vec::new();
        for entry in &entries {
            let tx = transaction(node, text(&entry["signature"]));
            assert_eq!(tx["transaction"]["signatures"][0], entry["signature"]);
            assert_eq!((&tx["slot"], &tx["blockTime"]), (&entry["slot"], &entry["blockTime"]));
            assert_eq!(tx["meta"]["err"], entry["err"]);
            names.push(text(&entry["signature"]).to_owned());
            let place = (tx["slot"].as_u64().unwrap(), tx["transactionIndex"].as_u64().unwrap());
            let books = Books::open(tx);
            assert!(books.names(&address), "a list names its address");
            let own = books.held.iter().filter(|(_, held)| held.owner == wallet);
            open.extend(own.map(|(at, _)| books.keys[*at].clone()));
            found.insert(place, books);
        }
        let places: Vec<_> = entries.iter().map(|e| e["slot"].as_u64().unwrap()).collect();
        assert!(places.is_sorted_by(|a, b| a >= b), "newest first");
        lists.insert(address, names);
    }
    (found.into_values().collect(), lists)
}

/// Balances of each token account follow from one transaction to the next, up to the head.
fn check_continuity(books: &[Books], wallet: &str, node: &DemoNode) {
    let mut state: HashMap<String, i128> = HashMap::new();
    for book in books {
        for (at, held) in book.held.iter().filter(|(_, held)| held.owner == wallet) {
            let key = &book.keys[*at];
            assert_eq!(state.remove(key), held.before, "{key} in {}", book.tx);
            if let Some(after) = held.after {
                state.insert(key.clone(), after);
            }
        }
    }
    let mut open = HashMap::new();
    for program in [TOKEN, TOKEN_2022] {
        let params = json!([wallet, {"programId": program}, {"encoding": "jsonParsed"}]);
        for row in result(node, "getTokenAccountsByOwner", params)["value"].as_array().unwrap() {
            let info = &row["account"]["data"]["parsed"]["info"];
            assert_eq!(info["owner"], json!(wallet));
            let amount: i128 = text(&info["tokenAmount"]["amount"]).parse().unwrap();
            assert!(open.insert(text(&row["pubkey"]).to_owned(), amount).is_none());
        }
    }
    assert_eq!(state, open);
}

/// The whole examination of one wallet.
fn examine(plan: WalletPlan) -> HashMap<TxKind, u64> {
    let (model, node, address) = chain(plan);
    let wallet = address.to_string();
    let (books, lists) = everything(&node, &wallet);
    let total = usize::try_from(model.transaction_count(address)).unwrap();
    assert_eq!(books.len(), total, "the lists lead to every transaction");
    let mut truth: HashMap<String, Vec<TrueTrade>> = HashMap::new();
    for row in model.truth(address) {
        truth.entry(row.signature.to_string()).or_default().push(row);
    }
    let mut kinds = HashMap::new();
    for book in &books {
        book.check();
        let signature = text(&book.tx["transaction"]["signatures"][0]);
        for (listed, names) in &lists {
            let named = names.iter().any(|name| name == signature);
            assert_eq!(book.names(listed), named, "{listed} {signature}");
        }
        let kind = model.kind_of(&TxId::parse_solana(signature).unwrap()).unwrap();
        *kinds.entry(kind).or_default() += 1;
        match (kind, truth.remove(signature)) {
            (TxKind::Trade(_), Some(rows)) => check_truth(book, &wallet, &rows),
            (TxKind::Failed, None) => assert!(book.failed()),
            (TxKind::Noise, None) => assert!(!book.failed()),
            other => panic!("{other:?}"),
        }
    }
    assert!(truth.is_empty());
    assert_eq!(
        books[0].before[books[0].index(&wallet).unwrap()],
        0,
        "the first comes from nothing"
    );
    check_continuity(&books, &wallet, &node);
    kinds
}

#[test]
fn a_mixed_wallet_keeps_its_books() {
    let kinds = examine(WalletPlan::trades(1_100));
    let trades: u64 = TradeKind::ALL.iter().map(|kind| kinds[&TxKind::Trade(*kind)]).sum();
    assert_eq!(trades, 1_100, "{kinds:?}");
    assert!(kinds[&TxKind::Failed] > 50 && kinds[&TxKind::Noise] > 100);
}

#[test]
fn a_wallet_of_any_one_kind_keeps_its_books() {
    for kind in TradeKind::ALL {
        let kinds = examine(WalletPlan::only(kind, 150));
        assert!(kinds[&TxKind::Trade(kind)] >= 15, "{kind:?} {kinds:?}");
    }
}

#[test]
fn odd_wallets_keep_their_books() {
    examine(WalletPlan { keeper_percent: 100, noise_percent: 40, ..WalletPlan::trades(300) });
    examine(WalletPlan { open_accounts: 256, spam_accounts: 40, ..WalletPlan::trades(700) });
    let crowd = Some(Crowd { start: 40, count: 150 });
    examine(WalletPlan { crowd, burst: 64, version_1_percent: 100, ..WalletPlan::trades(200) });
    for trades in [1, 3, 9, 20, 33, 47, 61, 77, 90] {
        examine(WalletPlan { open_accounts: 1, ..WalletPlan::trades(trades) });
    }
}

#[test]
fn the_service_order_is_the_order_of_the_truth() {
    let (model, _, address) = chain(WalletPlan { burst: 20, ..WalletPlan::trades(2_000) });
    let rows: Vec<TrueTrade> = model.truth(address).collect();
    let order = |row: &TrueTrade| (row.time, row.slot, row.index);
    assert!(rows.is_sorted_by(|a, b| order(a) >= order(b)));
    assert!(rows.len() > 2_000);
    for pair in rows.windows(2).filter(|pair| pair[0].signature == pair[1].signature) {
        assert_eq!((pair[0].leg, pair[1].leg), (0, 1));
        assert_eq!((pair[0].side, pair[1].side), (Side::Sell, Side::Buy));
    }
}

#[test]
fn one_seed_is_one_chain() {
    let answers = |seed| {
        let model = SolanaModel::new(seed);
        let address = model.add_named("wallet", WalletPlan::trades(50));
        let node = DemoNode::new(model, 1);
        let entries = list(&node, &address.to_string(), 13);
        let txs: Vec<Value> =
            entries.iter().map(|e| transaction(&node, text(&e["signature"]))).collect();
        (entries, txs)
    };
    assert_eq!(answers(1), answers(1));
    assert_ne!(answers(1), answers(2));
}

#[test]
fn any_address_has_some_history() {
    let model = SolanaModel::new(3);
    let node = DemoNode::new(model.clone(), 1);
    let sizes = (1..40_u8).map(|n| model.truth(Address::Solana([n; 32])).count());
    assert!(sizes.filter(|size| *size > 0).count() > 30);
    let address = Address::Solana([5; 32]).to_string();
    assert_eq!(list(&node, &address, 1_000).len(), list(&node, &address, 7).len());
    // A later process that was never asked for the list still knows the signature.
    let signature = list(&node, &address, 5)[2]["signature"].clone();
    let fresh = DemoNode::new(SolanaModel::new(3), 1);
    assert_eq!(transaction(&fresh, text(&signature)), transaction(&node, text(&signature)));
}

#[test]
fn pages_follow_cursors() {
    let (_, node, address) = chain(WalletPlan { burst: 30, ..WalletPlan::trades(700) });
    let address = address.to_string();
    let all = list(&node, &address, 1_000);
    assert_eq!(all, list(&node, &address, 17));
    let until = json!({"until": all[40]["signature"], "before": all[20]["signature"]});
    assert_eq!(page(&node, &address, &until), all[21..40]);
    // A cursor that the node does not know.
    let unknown = TxId::solana(&[7; 64]).to_string();
    assert!(page(&node, &address, &json!({"before": unknown})).is_empty());
    let errors = [
        (json!([address, {"limit": 1_001}]), -32602, "Invalid limit; max 1000"),
        (json!([address, {"limit": 0}]), -32602, "Invalid limit; max 1000"),
        (json!(["abc"]), -32602, "Invalid param: WrongSize"),
        (json!(["0x12"]), -32602, "Invalid param: Invalid"),
        (
            json!([address, {"minContextSlot": 999_999_999}]),
            -32016,
            "Minimum context slot has not been reached",
        ),
        (
            json!([address, {"commitment": "processed"}]),
            -32602,
            "Method does not support commitment below `confirmed`",
        ),
    ];
    for (params, code, message) in errors {
        let error = &ask(&node, "getSignaturesForAddress", params)["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(code), &json!(message)));
    }
}

#[test]
fn versions_are_refused_as_nodes_do() {
    let plan = WalletPlan { version_1_percent: 100, ..WalletPlan::only(TradeKind::PumpFun, 5) };
    let (model, node, address) = chain(plan);
    let signature = model.truth(address).next().unwrap().signature.to_string();
    for options in [json!({}), json!({"maxSupportedTransactionVersion": 0})] {
        let error = &ask(&node, "getTransaction", json!([signature, options]))["error"];
        assert_eq!(error["code"], -32015);
        assert!(text(&error["message"]).contains("Transaction version (1) is not supported"));
    }
    assert_eq!(transaction(&node, &signature)["version"], 1);
}

#[test]
fn blocks_agree_with_transactions() {
    let crowd = Some(Crowd { start: 100, count: 60 });
    let (model, node, address) = chain(WalletPlan { crowd, ..WalletPlan::trades(300) });
    for row in model.truth(address).step_by(7) {
        let options = json!({"transactionDetails": "signatures", "rewards": false});
        let block = result(&node, "getBlock", json!([row.slot, options]));
        let at = usize::try_from(row.index).unwrap();
        assert_eq!(block["signatures"][at], json!(row.signature.to_string()));
        assert_eq!(block["blockTime"], json!(row.time.0));
        let hash = bs58::encode(model.block_hash(row.slot)).into_string();
        assert_eq!(block["blockhash"], json!(hash));
        assert_eq!(result(&node, "getBlockTime", json!([row.slot])), json!(row.time.0));
    }
    let head = model.head();
    let next = result(&node, "getBlocksWithLimit", json!([head - 60, 20]));
    let skipped = (head - 60..=head).find(|slot| !SolanaModel::has_block(*slot)).unwrap();
    assert_eq!(next.as_array().unwrap().len(), 20);
    assert!(next.as_array().unwrap().iter().all(|slot| *slot != json!(skipped)));
    let none = json!({"transactionDetails": "none", "rewards": false});
    for (slot, code) in [(skipped, -32007), (head + 1, -32004)] {
        assert_eq!(ask(&node, "getBlock", json!([slot, none]))["error"]["code"], code);
    }
}

#[test]
fn a_pruned_node_keeps_the_upper_part() {
    let (model, node, address) = chain(WalletPlan::trades(400));
    let address = address.to_string();
    let all = list(&node, &address, 1_000);
    let first = all[100]["slot"].as_u64().unwrap();
    let pruned = DemoNode::new(model, 2);
    pruned.set_options(NodeOptions { first_available: first, ..NodeOptions::default() });
    assert_eq!(list(&pruned, &address, 50), all[..=100]);
    assert_eq!(result(&pruned, "getFirstAvailableBlock", json!([])), json!(first));
    let gone = text(&all[150]["signature"]).to_owned();
    assert_eq!(transaction(&pruned, &gone), Value::Null);
    assert_eq!(page(&pruned, &address, &json!({"before": gone})), Vec::<Value>::new());
    let error = &ask(&pruned, "getBlockTime", json!([first - 5]))["error"];
    assert_eq!(error["code"], -32001);
}

#[test]
fn the_head_brings_new_trades_and_a_reorg_other_ones() {
    let (model, node, address) = chain(WalletPlan::trades(100));
    let wallet = address.to_string();
    let before = list(&node, &wallet, 1_000);
    let count = model.truth(address).count();
    let head = model.head();
    let top = model.arrive(address, 9);
    assert!(top > head && model.truth(address).count() >= count + 9);
    let after = list(&node, &wallet, 1_000);
    assert!(after.ends_with(&before) && after.len() > before.len());
    model.set_head(head);
    assert_eq!(list(&node, &wallet, 1_000), before);
    model.set_head(top);
    let lagging = DemoNode::new(model.clone(), 3);
    lagging.set_options(NodeOptions { lag: top - head, ..NodeOptions::default() });
    assert_eq!(list(&lagging, &wallet, 1_000), before);
    assert_eq!(result(&lagging, "getSlot", json!([])), json!(head));

    let from = before[10]["slot"].as_u64().unwrap();
    let hashes = (model.block_hash(from - 1), model.block_hash(from));
    model.reorg(from);
    let forked = list(&node, &wallet, 1_000);
    assert_eq!(transaction(&node, text(&before[3]["signature"])), Value::Null);
    assert!(forked.ends_with(&before[11..]));
    let old: HashSet<&str> = before.iter().map(|entry| text(&entry["signature"])).collect();
    let above = forked.iter().filter(|entry| entry["slot"].as_u64().unwrap() >= from);
    assert!(above.into_iter().all(|entry| !old.contains(text(&entry["signature"]))));
    assert_eq!(model.block_hash(from - 1), hashes.0);
    assert_ne!(model.block_hash(from), hashes.1);
    let (books, _) = everything(&node, &wallet);
    check_continuity(&books, &wallet, &node);
}

#[test]
fn a_live_wallet_grows_with_the_head() {
    let plan = WalletPlan { live_every: Some(40), ..WalletPlan::trades(50) };
    let (model, _, address) = chain(plan);
    let before = model.transaction_count(address);
    model.advance(4_000);
    assert!(model.transaction_count(address).abs_diff(before + 95) < 5);
}

#[test]
fn a_live_history_ends_at_the_head_and_goes_on() {
    let model = SolanaModel::new(2);
    model.set_head(SolanaModel::slot_at(blotter::domain::UnixSeconds(1_795_000_000)));
    let head = model.head();
    for trades in [60, 5_000] {
        let plan = WalletPlan {
            first: Some(head - 100_000_000),
            last: Some(head - 200),
            live_every: Some(50),
            ..WalletPlan::trades(trades)
        };
        let address = model.add_named(&format!("of {trades}"), plan);
        let newest = model.truth(address).next().unwrap();
        assert!((newest.time.0..newest.time.0 + 3_600 * 24).contains(&1_795_000_000));
        let rows: HashSet<_> = model.truth(address).map(|row| row.signature).collect();
        assert!(u64::try_from(rows.len()).unwrap().abs_diff(trades) < 9, "{trades}");
        let before = model.transaction_count(address);
        model.advance(1_000);
        assert!((15..25).contains(&(model.transaction_count(address) - before)));
        model.set_head(head);
    }
}

#[test]
fn what_is_not_final_yet_says_so() {
    let (model, node, address) = chain(WalletPlan::trades(30));
    let top = model.arrive(address, 3);
    model.set_head(top - 5);
    let page = page(&node, &address.to_string(), &json!({"commitment": "confirmed"}));
    let status = |entry: &Value| text(&entry["confirmationStatus"]).to_owned();
    for entry in &page {
        let is_final = entry["slot"].as_u64().unwrap() <= top - 5;
        assert_eq!(status(entry), if is_final { "finalized" } else { "confirmed" });
    }
    assert_eq!(status(&page[0]), "confirmed");
}

#[test]
fn a_million_trades_cost_no_memory() {
    let (model, node, address) = chain(WalletPlan::trades(1_000_000));
    let wallet = address.to_string();
    let top = page(&node, &wallet, &json!({"limit": 1_000}));
    assert_eq!(top.len(), 1_000);
    let below = page(&node, &wallet, &json!({"before": top[999]["signature"], "limit": 10}));
    assert!(below[0]["slot"].as_u64() <= top[999]["slot"].as_u64());
    assert!(model.transaction_count(address) > 1_000_000);
    assert_eq!(model.truth(address).take(3).count(), 3);
}

#[test]
fn accounts_are_what_they_are() {
    let (model, node, address) = chain(WalletPlan::trades(600));
    let row = model.truth(address).find(|row| row.kind == TradeKind::RaydiumV4).unwrap();
    let (mint, wallet) = (row.mint.to_string(), address.to_string());
    let error = &ask(&node, "getMultipleAccounts", json!([[mint, "short"]]))["error"];
    assert_eq!(error["code"], -32602);
    let accounts = result(&node, "getMultipleAccounts", json!([[mint, wallet, TOKEN]]));
    let owner = |at: usize| text(&accounts["value"][at]["owner"]);
    assert_eq!((owner(0), owner(1)), (TOKEN, SYSTEM));
    assert_eq!(accounts["value"][2]["executable"], true);
    assert_eq!(accounts["value"][0]["space"], 82);
    let many: Vec<&str> = vec![&mint; 101];
    let error = &ask(&node, "getMultipleAccounts", json!([many]))["error"];
    assert_eq!(error["message"], "Too many inputs provided; max 100");
}

#[test]
fn the_one_call_list_holds_what_the_two_call_lists_hold() {
    let (model, node, address) =
        chain(WalletPlan { keeper_percent: 90, ..WalletPlan::trades(300) });
    let wallet = address.to_string();
    assert_eq!(ask(&node, "getTransactionsForAddress", json!([wallet]))["error"]["code"], -32601);
    node.set_options(NodeOptions { transactions_for_address: true, ..NodeOptions::default() });
    for (accounts, expected) in [
        ("none", list(&node, &wallet, 1_000).len()),
        ("balanceChanged", usize::try_from(model.transaction_count(address)).unwrap()),
    ] {
        for order in ["desc", "asc"] {
            let mut token = Value::Null;
            let mut slots = Vec::new();
            loop {
                let options = json!({
                    "transactionDetails": "full", "sortOrder": order, "limit": 70,
                    "maxSupportedTransactionVersion": 1, "paginationToken": token,
                    "filters": {"tokenAccounts": accounts},
                });
                let page = result(&node, "getTransactionsForAddress", json!([wallet, options]));
                for tx in page["data"].as_array().unwrap() {
                    let signature = text(&tx["transaction"]["signatures"][0]);
                    assert_eq!(*tx, transaction(&node, signature));
                    slots.push(tx["slot"].as_u64().unwrap());
                }
                token = page["paginationToken"].clone();
                if token.is_null() {
                    break;
                }
            }
            assert_eq!(slots.len(), expected, "{accounts} {order}");
            assert!(slots.is_sorted_by(|a, b| if order == "asc" { a <= b } else { a >= b }));
        }
    }
}
