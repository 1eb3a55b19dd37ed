//! An open data gateway: transactions in which an owner's token balances change (SQD Portal).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::keys::ModelKey;
use super::model::{SolanaModel, build};
use super::{base58_text, rpc, slots};
use crate::demo::evm::{PortalOptions, asked, by_block, reply};
use crate::demo::faults::AnswerFaults;
use crate::demo::rpc::HttpAnswer;
use crate::demo::timeline::Spot;
use crate::domain::Height;

pub(in crate::demo) fn portal(
    model: &SolanaModel,
    options: &PortalOptions,
    path: &str,
    body: &[u8],
    answer_faults: AnswerFaults,
) -> HttpAnswer {
    let head = model.head().saturating_sub(options.lag.saturating_add(answer_faults.head_back));
    match path.rsplit('/').next().unwrap_or_default() {
        "finalized-head" => reply(200, json!({"number": head}).to_string()),
        "finalized-stream" => stream(model, options, body, head).unwrap_or_else(|bad| bad),
        _ => reply(404, "Not found"),
    }
}

fn stream(
    model: &SolanaModel,
    options: &PortalOptions,
    body: &[u8],
    head: Height,
) -> Result<HttpAnswer, HttpAnswer> {
    let (query, (low, high)) = asked(body, "solana", (options.first, head))?;
    let found = found(model, &owners(&query), (low, high));
    let (mut blocks, end) = by_block(found, high, options.transactions_max);
    // The last block of the range is always included; slots without a block have no line.
    if let Some(last) = (low..=end).rev().find(|slot| slots::has_block(*slot)) {
        blocks.entry(last).or_default();
    }
    let line = |(slot, found): (Height, Vec<(Value, Vec<Value>)>)| {
        let (transactions, balances): (Vec<Value>, Vec<Vec<Value>>) = found.into_iter().unzip();
        let block = json!({
            "header": {"number": slot}, "transactions": transactions,
            "tokenBalances": balances.concat(),
        });
        block.to_string() + "\n"
    };
    Ok(reply(200, blocks.into_iter().map(line).collect::<String>()))
}

fn owners(query: &Value) -> Vec<ModelKey> {
    let filters = query.get("tokenBalances").and_then(Value::as_array).into_iter().flatten();
    let named = filters.flat_map(|filter| {
        let lists =
            ["preOwner", "postOwner"].map(|name| filter.get(name).and_then(Value::as_array));
        lists.into_iter().flatten().flatten().cloned().collect::<Vec<_>>()
    });
    let mut owners: Vec<ModelKey> = named.filter_map(|text| rpc::key(&[text], 0).ok()).collect();
    owners.sort_unstable();
    owners.dedup();
    owners
}

type Rows = BTreeMap<Spot, (Value, Vec<Value>)>;

/// Transactions by slot and place, each with its rows of balances.
fn found(model: &SolanaModel, owners: &[ModelKey], (low, high): (Height, Height)) -> Rows {
    let mut found = Rows::new();
    for owner in owners {
        let wallet = model.history(owner);
        let first = low.checked_sub(1).map_or(0, |below| wallet.count_at(below));
        for number in first..wallet.count_at(high) {
            let Some(entry) = model.entry(&wallet, number) else { continue };
            let spec = model.spec(&wallet, number, entry.spot);
            let tx = build(model.script(&wallet), &spec, slots::time(entry.spot.height));
            let rows: Vec<Value> = tx
                .accounts
                .iter()
                .filter_map(|account| Some((account, account.token?)))
                .filter(|(_, state)| state.owner == *owner)
                .map(|(account, state)| {
                    let side = |amount: Option<u64>| amount.map(|_| base58_text(&state.owner));
                    json!({
                        "account": base58_text(&account.key), "preOwner": side(state.before),
                        "postOwner": side(state.after), "transactionIndex": entry.spot.index,
                    })
                })
                .collect();
            if rows.is_empty() {
                continue;
            }
            let err = entry.failed.then(|| json!({"InstructionError": [0, {"Custom": 1}]}));
            let transaction = json!({
                "signatures": [base58_text(&entry.signature)], "err": err,
                "transactionIndex": entry.spot.index,
            });
            found.insert(entry.spot, (transaction, rows));
        }
    }
    found
}
