//! Account lists in Etherscan's format: every value is a string, errors come with status 200.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::coins::Coin;
use super::model::{EvmModel, PlacedTx};
use super::tx::{Frame, Op};
use super::{references, wire};
use crate::demo::faults::AnswerFaults;
use crate::demo::rpc::set;
use crate::domain::{Account, Height, Units, defaults};

/// Rows that are shown of a public contract.
const BUSY_ROWS_MAX: usize = 25;
/// Rows that paging by number reaches.
const WINDOW_MAX: usize = 10_000;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ExplorerOptions {
        /// Blocks by which the index lags behind the newest block.
        pub lag: u64 = 0,
        /// Blocks by which the lists lag behind the head that the index reports.
        pub list_lag: u64 = 0,
        /// First block that it has.
        pub first: Height = 0,
        /// Maximum number of rows in one answer.
        pub rows_max: usize = 10_000,
        /// Whether inner calls are listed.
        pub calls: bool = true,
        /// Whether failures are flagged by booleans, and all transactions marked as failed.
        pub flags_booleans: bool = false,
        pub marks_failed: bool = false,
        /// Also lists delegate calls, with the value of the enclosing call, as Blockscout does, and
        /// reports its head in Blockscout's format.
        pub blockscout: bool = false,
        /// Every list lacks what wallets sent with this nonce.
        pub hidden_nonce: Option<u64> = None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccountList {
    Transactions,
    Tokens,
    Calls,
}

pub(in crate::demo) fn answer(
    model: &EvmModel,
    options: &ExplorerOptions,
    query: &HashMap<String, String>,
    answer_faults: AnswerFaults,
) -> Value {
    let text = |name: &str| query.get(name).map_or("", String::as_str);
    let head = model.newest().saturating_sub(options.lag).saturating_sub(answer_faults.head_back);
    let list = match (text("module"), text("action")) {
        ("account", "txlist") => AccountList::Transactions,
        ("account", "tokentx") => AccountList::Tokens,
        ("account", "txlistinternal") if options.calls => AccountList::Calls,
        ("account", "txlistinternal") => return done(&[]),
        ("proxy", "eth_blockNumber") if !options.blockscout => {
            return json!({"jsonrpc": "2.0", "id": 83, "result": wire::number(head)});
        }
        ("block", "eth_block_number") if options.blockscout => {
            return json!({"jsonrpc": "2.0", "id": 1, "result": wire::number(head)});
        }
        ("account" | "proxy" | "block", _) => {
            return refused("Error! Missing Or invalid Action name");
        }
        _ => return refused("Error! Missing Or invalid Module name"),
    };
    let Some(account) = wire::bytes(&text("address").to_lowercase()) else {
        return refused("Error! Invalid address format");
    };
    let number = |name: &str, default: u64| text(name).parse().unwrap_or(default);
    let listed = head.saturating_sub(options.list_lag);
    let low = number("startblock", 0).max(options.first);
    let high = number("endblock", Height::MAX).min(listed);
    let count = |name: &str, default: usize| text(name).parse().unwrap_or(default).max(1);
    let (page, offset) = (count("page", 1), count("offset", 10_000));
    if page.saturating_mul(offset) > WINDOW_MAX {
        let most = "PageNo x Offset size must be less than or equal to 10000";
        return refused(&format!("Result window is too large, {most}"));
    }
    // A public contract always has rows: the newest represent all of them.
    if references::is_busy(model.places(), &account) {
        let rows = offset.min(BUSY_ROWS_MAX).min(options.rows_max);
        let found = model.strangers_down((low, high)).take(rows);
        let rows = found.map(|found| busy_row(model, list, account, &found));
        return done(&rows.collect::<Vec<_>>());
    }
    let ask = Ask { model, options, list, account };
    let most = offset.min(options.rows_max);
    if low == high && model.known_wallet(&account).is_none() {
        return done(&ask.in_block(low, most));
    }
    let wallet = if low > high { None } else { model.wallet(&account) };
    let Some(wallet) = wallet else { return done(&[]) };
    let newest_first = text("sort") == "desc";
    let rows = model.rows_of(&wallet, (low, high), newest_first, |found| ask.of(found));
    let mut rows: Vec<Value> = rows.skip((page - 1) * offset).take(most).collect();
    falsify(&mut rows, high, answer_faults);
    done(&rows)
}

fn falsify(rows: &mut Vec<Value>, high: Height, answer_faults: AnswerFaults) {
    let height = |row: &Value| row.get("blockNumber")?.as_str()?.parse().ok();
    answer_faults.omit_rows(rows);
    answer_faults.lie.reduce(rows, |row| height(row).unwrap_or_default());
    answer_faults.repeat_first(rows);
    answer_faults.lose_first(rows, |row| height(row) == Some(high));
}

fn done(rows: &[Value]) -> Value {
    if rows.is_empty() {
        return json!({"status": "0", "message": "No transactions found", "result": []});
    }
    json!({"status": "1", "message": "OK", "result": rows})
}

pub(in crate::demo) fn refused(text: &str) -> Value {
    json!({"status": "0", "message": "NOTOK", "result": text})
}

fn busy_row(model: &EvmModel, list: AccountList, account: Account, found: &PlacedTx) -> Value {
    let height = found.spot.height;
    let coin = if list == AccountList::Tokens { model.places().wrapped } else { [0; 20] };
    let contract = if coin == [0; 20] { String::new() } else { wire::hex(&coin) };
    let (calls, sender) = (list == AccountList::Calls, found.tx.call.from);
    let (from, to) = if calls { (account, sender) } else { (sender, account) };
    json!({
        "blockNumber": height.to_string(), "timeStamp": model.time_of(height).0.to_string(),
        "hash": wire::hex(&found.hash), "transactionIndex": found.spot.index.to_string(),
        "from": wire::hex(&from), "to": wire::hex(&to), "value": "1000000000000000",
        "contractAddress": contract, "tokenSymbol": "", "tokenName": "", "tokenDecimal": "18",
        "input": if calls { "" } else { "0xd0e30db0" }, "type": "call", "gas": "21000",
        "gasUsed": "0", "traceId": "0_1", "isError": "0", "errCode": "", "txreceipt_status": "1",
    })
}

struct Ask<'a> {
    model: &'a EvmModel,
    options: &'a ExplorerOptions,
    list: AccountList,
    account: Account,
}

impl Ask<'_> {
    fn of(&self, found: &PlacedTx) -> Vec<Value> {
        let is_sent = found.tx.call.from == self.account;
        if is_sent && self.options.hidden_nonce == Some(found.nonce) {
            return Vec::new();
        }
        match self.list {
            AccountList::Transactions => self.transaction(found).into_iter().collect(),
            AccountList::Tokens => self.tokens(found),
            AccountList::Calls => self.calls(found),
        }
    }

    /// Rows of an account that is no wallet: shown of single blocks alone.
    fn in_block(&self, height: Height, most: usize) -> Vec<Value> {
        let found = [wire::all_in(self.model, height), self.model.strangers_in(height)].concat();
        found.iter().flat_map(|found| self.of(found)).take(most).collect()
    }

    /// What each row has, and the fields that its list adds.
    fn row(&self, found: &PlacedTx, more: Value) -> Value {
        let height = found.spot.height;
        let mut row = json!({
            "blockNumber": height.to_string(),
            "timeStamp": self.model.time_of(height).0.to_string(),
            "hash": wire::hex(&found.hash), "gas": "1500000",
        });
        if self.list != AccountList::Calls {
            let of_transaction = json!({
                "nonce": found.nonce.to_string(),
                "blockHash": wire::hex(&self.model.block_hash(height)),
                "transactionIndex": found.spot.index.to_string(),
                "gasPrice": found.tx.gas.price.to_string(),
                "gasUsed": found.tx.gas.used.to_string(), "cumulativeGasUsed": "0",
                "confirmations": (self.model.newest() - height).to_string(),
            });
            extend(&mut row, of_transaction);
        }
        extend(&mut row, more);
        row
    }

    fn transaction(&self, found: &PlacedTx) -> Option<Value> {
        let call = &found.tx.call;
        let flag = self.flag(call.failed || self.options.marks_failed);
        let status = if call.failed { "0" } else { "1" };
        let method = call.input.get(..4).map_or_else(|| "0x".to_owned(), wire::hex);
        let more = json!({
            "from": wire::hex(&call.from), "to": wire::hex(&call.to),
            "value": call.value.to_string(), "isError": flag, "txreceipt_status": status,
            "input": wire::hex(&call.input), "contractAddress": "", "methodId": method,
            "functionName": "",
        });
        let is_named = call.from == self.account || call.to == self.account;
        is_named.then(|| self.row(found, more))
    }

    fn flag(&self, failed: bool) -> Value {
        let digit = u8::from(failed).to_string();
        if self.options.flags_booleans { failed.into() } else { digit.into() }
    }

    fn tokens(&self, found: &PlacedTx) -> Vec<Value> {
        let places = self.model.places();
        let row = |moved: wire::TokenEvent| {
            let coin = Coin::of(places, &moved.token);
            let symbol = coin.map(|coin| coin.symbol(places)).unwrap_or_default();
            let decimals = coin.map(|coin| coin.decimals(places).to_string()).unwrap_or_default();
            let more = json!({
                "from": wire::hex(&moved.from), "to": wire::hex(&moved.to), "input": "deprecated",
                "contractAddress": wire::hex(&moved.token),
                "value": Units::from_be_bytes(moved.data).to_string(),
                "tokenName": symbol, "tokenSymbol": symbol, "tokenDecimal": decimals,
            });
            self.row(found, more)
        };
        let moved = wire::token_events(self.model, found).into_iter();
        let own = moved.filter(|moved| [moved.from, moved.to].contains(&self.account));
        own.filter(|moved| moved.kind == "Transfer").map(row).collect()
    }

    fn calls(&self, found: &PlacedTx) -> Vec<Value> {
        if found.tx.call.failed {
            return Vec::new();
        }
        let is_listed = |frame: &Frame| {
            let listed =
                frame.op == Op::Call || self.options.blockscout && frame.op == Op::Delegate;
            listed && frame.value > 0 && [frame.from, frame.to].contains(&self.account)
        };
        let inner = wire::flat(&found.tx.call).into_iter().skip(1);
        let listed = inner.filter(|(_, frame, _)| is_listed(frame));
        listed.map(|(place, frame, failed)| self.call(found, &place, frame, failed)).collect()
    }

    fn call(&self, found: &PlacedTx, place: &[usize], frame: &Frame, failed: bool) -> Value {
        let id: Vec<String> = place.iter().map(usize::to_string).collect();
        let more = json!({
            "from": wire::hex(&frame.from), "to": wire::hex(&frame.to),
            "value": frame.value.to_string(), "contractAddress": "", "input": "",
            "type": wire::call_type(frame.op), "gasUsed": "0",
            "isError": self.flag(failed), "errCode": "",
        });
        let mut row = self.row(found, more);
        if !self.options.blockscout {
            set(&mut row, "traceId", id.join("_"));
            return row;
        }
        set(&mut row, "callType", wire::call_type(frame.op));
        set(&mut row, "type", "call");
        set(&mut row, "index", id.join(""));
        let hash = row.as_object_mut().and_then(|row| row.remove("hash"));
        set(&mut row, "transactionHash", hash);
        row
    }
}

fn extend(row: &mut Value, more: Value) {
    if let (Some(row), Value::Object(more)) = (row.as_object_mut(), more) {
        row.extend(more);
    }
}
