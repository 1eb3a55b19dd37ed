//! Tron: contracts run there as on EVM chains, so an [`super::EvmModel`] of a Tron chain holds its
//! wallets and trades. This module adds `SunSwap`, `SunPump`, the protocol's own exchanges, and the
//! answers of `TronGrid` and of nodes.

mod lists;
mod wire;

use std::collections::HashMap;

use serde_json::{Value, json};

use super::coins::Coin;
use super::model::{EvmModel, PlacedTx};
use super::node_context::return_data;
use super::references;
use super::wire::found_in;
use super::{LimitTexts, NodeOptions as EvmNodeOptions, answer as evm_answer};
use crate::demo::faults::{AnswerFaults, CallFaults, RpcCall};
use crate::demo::rpc::{CallReply, DemoError, set};
use crate::domain::{Account, Address, Family, Height, Word, defaults};
use lists::{GridPage, TronList};

defaults! {
    /// Options of an endpoint: an index with nodes, or a node.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct NodeOptions {
        /// What it has in common with nodes of EVM chains.
        pub node: EvmNodeOptions = EvmNodeOptions {
            log_blocks_max: Some(5_000),
            texts: LimitTexts::Tron,
            traces: false,
            ..EvmNodeOptions::default()
        },
        /// Blocks by which the lists lag behind the endpoint's head.
        pub list_lag: u64 = 0,
        /// Whether it has lists by account (`/v1`), and the maximum length of their pages.
        pub lists: bool = true,
        pub page_max: usize = 200,
        /// Whether it has `/jsonrpc`.
        pub json_rpc: bool = true,
        /// `/walletsolidity`.
        pub solid: bool = true,
        /// Whether internal transactions are kept (`vm.saveInternalTx`, off by default in java-tron).
        pub inner_calls: bool = true,
    }
}

pub(in crate::demo) type TronAnswer = (u16, Value);

fn refused(text: &str) -> TronAnswer {
    (400, json!({"success": false, "error": text, "statusCode": 400}))
}

/// Answers a request that is not JSON-RPC, by its query and its body.
pub(in crate::demo) fn answer(
    model: &EvmModel,
    options: &NodeOptions,
    path: &str,
    (query, body): (HashMap<String, String>, Value),
    fault: CallFaults,
) -> TronAnswer {
    let context = NodeContext { model, options, query, body, answer_faults: fault.answer_faults };
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let method = parts.get(1).copied().unwrap_or_default();
    match parts.as_slice() {
        ["v1", ..] if options.lists && fault.busy => {
            (500, json!({"success": false, "error": "Internal Error", "statusCode": 500}))
        }
        ["v1", "accounts", account, "transactions"] if options.lists => {
            context.list(TronList::Transactions, account)
        }
        ["v1", "accounts", account, "transactions", "trc20"] if options.lists => {
            context.list(TronList::Transfers, account)
        }
        ["wallet", ..] => context.wallet(method, false, fault),
        ["walletsolidity", ..] if options.solid => context.wallet(method, true, fault),
        _ => (404, json!({"Error": "class java.lang.Exception : not found"})),
    }
}

/// A call of the JSON-RPC interface, that of EVM chains but for nonces, which Tron does not have.
pub(in crate::demo) fn call(
    model: &EvmModel,
    options: &NodeOptions,
    call: RpcCall<'_>,
) -> CallReply {
    if call.method == "eth_getTransactionCount" {
        return Err(DemoError::new(-32601, "the method does not exist/is not available"));
    }
    evm_answer(model, &options.node, call)
}

struct NodeContext<'a> {
    model: &'a EvmModel,
    options: &'a NodeOptions,
    query: HashMap<String, String>,
    body: Value,
    answer_faults: AnswerFaults,
}

impl NodeContext<'_> {
    /// The newest block, or the newest solid one.
    fn head(&self, solid: bool) -> Height {
        let behind = self.options.node.lag.saturating_add(self.answer_faults.head_back);
        let head = if solid { self.model.head() } else { self.model.newest() };
        head.saturating_sub(behind)
    }

    fn list(&self, list: TronList, account: &str) -> TronAnswer {
        let Some(account) = account_of(account) else {
            return refused("A valid account address is required.");
        };
        let query = &self.query;
        let solid = query.get("only_confirmed").is_some_and(|text| text == "true");
        let head = self.head(solid).saturating_sub(self.options.list_lag);
        let (model, options) = (self.model, self.options);
        GridPage { model, options, list, account, query, head }.answer(self.answer_faults)
    }

    /// A field of the body, or a parameter.
    fn text(&self, name: &str) -> Option<String> {
        match self.body.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
            None => self.query.get(name).cloned(),
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn wallet(&self, name: &str, solid: bool, fault: CallFaults) -> TronAnswer {
        if fault.busy {
            // The status is that of a good answer.
            return (200, json!({"Error": "class java.lang.NullPointerException : null"}));
        }
        let about_token = matches!(name, "triggerconstantcontract" | "getassetissuebyid");
        if fault.null_result || fault.null_tokens && about_token {
            return (200, json!({}));
        }
        let model = self.model;
        let empty = || json!({});
        let value = match name {
            "getnowblock" => wire::block(model, self.head(solid), true),
            "getblock" => {
                let whole = self.text("detail").is_some_and(|text| text == "true");
                match self.text("id_or_num") {
                    None => wire::block(model, self.head(solid), whole),
                    Some(height) => self.block(height.parse().ok(), solid, whole),
                }
            }
            "getblockbynum" => self.block(self.number("num"), solid, true),
            "gettransactioninfobyblocknum" => {
                let known = self.number("num").filter(|height| self.knows(*height, solid));
                let found = known.map(|height| found_in(model, height)).unwrap_or_default();
                let inner = self.options.inner_calls;
                found.iter().map(|found| wire::info(model, found, inner)).collect()
            }
            "gettransactionbyid" => {
                let found = self.found(solid);
                found.map_or_else(empty, |found| wire::transaction(model, &found))
            }
            "gettransactioninfobyid" => {
                let info = |found: PlacedTx| {
                    let mut info = wire::info(model, &found, self.options.inner_calls);
                    let fields = info.as_object_mut().filter(|_| fault.bare_receipts);
                    fields.and_then(|fields| fields.remove("log"));
                    fault.answer_faults.lie.info(&mut info);
                    info
                };
                self.found(solid).map_or_else(empty, info)
            }
            "getaccount" => self.account(solid).unwrap_or_else(empty),
            "getexchangebyid" => self.number("id").map_or_else(empty, wire::exchange),
            "getassetissuebyid" => self.asset().unwrap_or_else(empty),
            "triggerconstantcontract" => self.constant(),
            _ => return (405, json!({"Error": "class java.lang.Exception : not found"})),
        };
        (200, value)
    }

    fn knows(&self, height: Height, solid: bool) -> bool {
        (self.options.node.first_available..=self.head(solid)).contains(&height)
    }

    fn block(&self, height: Option<Height>, solid: bool, whole: bool) -> Value {
        match height.filter(|height| self.knows(*height, solid)) {
            Some(height) => wire::block(self.model, height, whole),
            None => json!({}),
        }
    }

    fn found(&self, solid: bool) -> Option<PlacedTx> {
        let mut word: Word = [0; 32];
        hex::decode_to_slice(self.text("value")?, &mut word).ok()?;
        self.model.find(&word).filter(|found| self.knows(found.spot.height, solid))
    }

    /// An account that some transaction names.
    fn account(&self, solid: bool) -> Option<Value> {
        let account = account_of(&self.text("address")?)?;
        if references::is_busy(self.model.places(), &account) {
            let (address, made) = (wire::text(&account), wire::millis(self.model, 1));
            return Some(json!({"address": address, "type": "Contract", "create_time": made}));
        }
        let wallet = self.model.wallet(&account)?;
        let first = self.model.transactions(&wallet, (0, self.head(solid))).next()?;
        let made = wire::millis(self.model, first.spot.height);
        Some(json!({"address": wire::text(&account), "balance": 1_000_000, "create_time": made}))
    }

    /// A token without a contract.
    fn asset(&self) -> Option<Value> {
        let places = self.model.places();
        let number = self.text("value")?.parse().ok().filter(|n| Address::is_tron_asset(*n))?;
        let account: Account = Address::tron_asset(number).bytes().try_into().ok()?;
        let coin = Coin::of(places, &account)?;
        let name = hex::encode(coin.symbol(places));
        let mut asset = json!({"id": number.to_string(), "owner_address": wire::address(&[7; 20]),
            "name": name, "abbr": name, "total_supply": 1_u64 << 60});
        let precision = coin.decimals(places);
        if precision > 0 {
            set(&mut asset, "precision", precision);
        }
        Some(asset)
    }

    /// A read-only call of a function without arguments.
    fn constant(&self) -> Value {
        const KNOWN: [&str; 3] = ["symbol()", "decimals()", "name()"];
        let contract = self.text("contract_address").and_then(|text| account_of(&text));
        let Some(contract) = contract.filter(|it| Coin::of(self.model.places(), it).is_some())
        else {
            let message = hex::encode("Smart contract is not exist.");
            return json!({"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": message}});
        };
        let function = self.text("function_selector").unwrap_or_default();
        let known = KNOWN.into_iter().find(|known| *known == function);
        let selector = known.map(|known| self.model.places().signatures.selector(known));
        match selector.and_then(|selector| return_data(self.model, &contract, &selector)) {
            Some(data) => json!({"result": {"result": true}, "energy_used": 541,
                "constant_result": [hex::encode(data)], "transaction": {"ret": [{}]}}),
            None => json!({"result": {"result": true,
                "message": hex::encode("REVERT opcode executed")}, "constant_result": [""],
                "transaction": {"ret": [{"ret": "FAILED"}]}}),
        }
    }
}

/// An address in any of its forms.
fn account_of(text: &str) -> Option<Account> {
    if let Ok(Address::Tron(account)) = Address::parse(Family::Tron, text) {
        return Some(account);
    }
    let mut account = [0; 20];
    hex::decode_to_slice(text.strip_prefix("41")?, &mut account).ok()?;
    Some(account)
}
