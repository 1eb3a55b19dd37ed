//! `alchemy_getAssetTransfers` (alchemy.com/docs, "Transfers API").

use serde_json::{Value, json};

use super::coins::Coin;
use super::model::PlacedTx;
use super::node_context::{CallResult, NodeContext, quantity};
use super::tx::{Op, TRANSFER};
use super::{tail, wire};
use crate::demo::rpc::{DemoError, set};
use crate::domain::{Account, Height};

/// Transfers in a page at most.
const PAGE_MAX: usize = 1_000;

struct Item {
    category: &'static str,
    from: Account,
    to: Account,
    /// `None` for a token without amounts.
    value: Option<u128>,
    token: Option<Account>,
}

struct Query {
    low: Height,
    high: Height,
    from: Option<Account>,
    to: Option<Account>,
    categories: Vec<String>,
    newest_first: bool,
    times: bool,
    most: usize,
    /// Position of the page before: block, index, and the number of its items already returned.
    behind: Option<(Height, u32, usize)>,
}

fn query(context: &NodeContext<'_>) -> Result<Query, DemoError> {
    let wrong = |what: &str| DemoError::invalid(format!("invalid params: {what}"));
    let raw = context.params.first().ok_or_else(|| wrong("no filter"))?;
    let text = |name: &str| raw.get(name).and_then(Value::as_str);
    let flag = |name: &str| raw.get(name).and_then(Value::as_bool).unwrap_or(false);
    let account = |name: &str| {
        let account = text(name).map(|text| wire::bytes(text).ok_or_else(|| wrong(name)));
        account.transpose()
    };
    let categories = raw.get("category").and_then(Value::as_array);
    let categories = categories.ok_or_else(|| wrong("category is required"))?;
    let low = raw.get("fromBlock").map_or(Ok(0), |block| context.height(Some(block)))?;
    let high = context.height(raw.get("toBlock"))?.min(context.newest);
    let behind = text("pageKey").map(|key| read_key(key).ok_or_else(|| wrong("pageKey")));
    let behind = behind.transpose()?;
    let most = text("maxCount").and_then(quantity).and_then(|most| usize::try_from(most).ok());
    Ok(Query {
        low,
        high,
        from: account("fromAddress")?,
        to: account("toAddress")?,
        categories: categories.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        newest_first: text("order") == Some("desc"),
        times: flag("withMetadata"),
        most: most.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX),
        behind,
    })
}

fn key((height, index, count): (Height, u32, usize)) -> String {
    format!("demo-{height:x}-{index:x}-{count:x}")
}

fn read_key(key: &str) -> Option<(Height, u32, usize)> {
    let mut parts = key.strip_prefix("demo-")?.split('-');
    let height = Height::from_str_radix(parts.next()?, 16).ok()?;
    let index = u32::from_str_radix(parts.next()?, 16).ok()?;
    Some((height, index, usize::from_str_radix(parts.next()?, 16).ok()?))
}

pub(super) fn get(context: &NodeContext<'_>) -> CallResult {
    let mut query = query(context)?;
    let required = "invalid params: fromAddress or toAddress is required here";
    let account = query.from.or(query.to).ok_or_else(|| DemoError::invalid(required))?;
    let mut rows = Vec::new();
    let Some(wallet) = context.model.wallet(&account) else { return Ok(json!({"transfers": []})) };
    let page = |mut rows: Vec<(Height, Value)>, key: Option<String>| {
        context.answer_faults.lie.reduce(&mut rows, |(height, _)| *height);
        let rows: Vec<Value> = rows.into_iter().map(|(_, row)| row).collect();
        match key.filter(|_| context.answer_faults.lie.edge.is_none()) {
            Some(key) => json!({"transfers": rows, "pageKey": key}),
            None => json!({"transfers": rows}),
        }
    };
    if let Some((height, _, _)) = query.behind {
        let side = if query.newest_first { &mut query.high } else { &mut query.low };
        *side = height;
    }
    let mut all = context.model.transactions(&wallet, (query.low, query.high));
    let mut next = || if query.newest_first { all.next_back() } else { all.next() };
    while let Some(found) = next() {
        let place = (found.spot.height, found.spot.index);
        let done = match query.behind {
            Some((height, index, count)) if place == (height, index) => count,
            // An earlier page returned it.
            Some((height, index, _)) if (place > (height, index)) == query.newest_first => continue,
            Some(_) | None => 0,
        };
        for (at, item) in items(context, &found, &query).iter().enumerate().skip(done) {
            if context.node.silent_max == Some(rows.len()) {
                return Ok(page(rows, None));
            }
            if rows.len() == query.most {
                let key = key((place.0, place.1, at));
                return Ok(page(rows, Some(key)));
            }
            rows.push((place.0, row(context, &found, item, at, query.times)));
        }
    }
    Ok(page(rows, None))
}

fn items(context: &NodeContext<'_>, found: &PlacedTx, query: &Query) -> Vec<Item> {
    if found.tx.call.failed {
        return Vec::new();
    }
    let mut all = Vec::new();
    // Reverted frames, with all frames below them, are not movements.
    for (place, frame, undone) in wire::flat(&found.tx.call) {
        let category = if place.is_empty() { "external" } else { "internal" };
        let moves = place.is_empty() || frame.op == Op::Call && frame.value > 0;
        if moves && !undone {
            let (from, to) = (frame.from, frame.to);
            all.push(Item { category, from, to, value: Some(frame.value), token: None });
        }
    }
    let transfer = context.model.places().signatures.topic(TRANSFER);
    for log in &found.tx.logs {
        let (category, from, to, value) = match log.topics.as_slice() {
            [kind, from, to] if *kind == transfer => ("erc20", from, to, wire::amount(log)),
            [kind, from, to, _] if *kind == transfer => ("erc721", from, to, None),
            [_, _, from, to] => ("erc1155", from, to, None),
            _ => continue,
        };
        let (from, to, token) = (tail(from), tail(to), Some(log.address));
        all.push(Item { category, from, to, value, token });
    }
    all.retain(|item| {
        query.categories.iter().any(|category| category == item.category)
            && query.from.is_none_or(|from| from == item.from)
            && query.to.is_none_or(|to| to == item.to)
            // The default of `excludeZeroValue`.
            && item.value != Some(0)
    });
    all
}

fn row(context: &NodeContext<'_>, found: &PlacedTx, item: &Item, at: usize, times: bool) -> Value {
    let places = context.model.places();
    let coin = item.token.and_then(|token| Coin::of(places, &token));
    let (asset, decimals) = match (item.token, coin) {
        (None, _) => (Some(places.native.clone()), Some(18)),
        (Some(_), Some(coin)) => (Some(coin.symbol(places)), Some(coin.decimals(places))),
        (Some(_), None) => (None, None),
    };
    let mut row = json!({
        "blockNum": wire::number(found.spot.height),
        "uniqueId": format!("{}:{}:{at}", wire::hex(&found.hash), item.category),
        "hash": wire::hex(&found.hash), "from": wire::hex(&item.from), "to": wire::hex(&item.to),
        "value": null, "erc721TokenId": null, "erc1155Metadata": null, "tokenId": null,
        "asset": asset, "category": item.category,
        "rawContract": {
            "value": item.value.map(wire::number),
            "address": item.token.map(|token| wire::hex(&token)),
            "decimal": decimals.map(|decimals| wire::number(u64::from(decimals))),
        },
    });
    if times {
        let time = i64::from(context.model.time_of(found.spot.height).0);
        let time = jiff::Timestamp::from_second(time).unwrap_or_default();
        set(&mut row, "metadata", json!({"blockTimestamp": format!("{time:.3}")}));
    }
    row
}
