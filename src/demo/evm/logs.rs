//! `eth_getLogs`: from the histories of the wallets among the topics, else of all wallets met.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use serde_json::Value;

use super::model::{EvmModel, PlacedTx};
use super::node_context::{CallResult, NodeContext};
use super::options::LimitTexts;
use super::places::TABLE;
use super::script::WalletHistory;
use super::tx::{Choice, LogFilter};
use super::{references, wire};
use crate::demo::rpc::DemoError;
use crate::domain::{Account, Height, Word};

/// Blocks of one query about reference pools, whose swaps are generated block by block.
const REFERENCE_BLOCKS_MAX: u64 = 100_000;

/// The wallets whose histories contain all matches.
pub(super) fn wallets_of(filter: &LogFilter, model: &EvmModel) -> Vec<Arc<WalletHistory>> {
    let named = |choice: &Choice<Word>| -> Option<Vec<Arc<WalletHistory>>> {
        let words = choice.as_ref()?;
        let accounts: Option<Vec<Account>> = words.iter().map(padded).collect();
        let is_busy = |account: &Account| references::is_busy(model.places(), account);
        let others = accounts?.into_iter().filter(|account| !is_busy(account));
        others.map(|account| model.wallet(&account)).collect()
    };
    // Of the accounts that a filter for transfers names, those that are wallets have the histories.
    let places: Vec<&Vec<Word>> = filter.topics.iter().skip(1).flatten().collect();
    let accounts = places.iter().copied().flatten().filter_map(padded);
    let known: BTreeMap<Account, Arc<WalletHistory>> =
        accounts.filter_map(|account| Some((account, model.known_wallet(&account)?))).collect();
    if places.len() > 1 && !known.is_empty() {
        return known.into_values().collect();
    }
    let all: Vec<_> = filter.topics.iter().skip(1).filter_map(named).collect();
    // A topic of busy contracts alone names no wallet; another one may.
    let found = all.iter().find(|wallets| !wallets.is_empty()).or(all.first()).cloned();
    found.unwrap_or_else(|| model.wallets())
}

/// The account that a topic encodes.
fn padded(word: &Word) -> Option<Account> {
    let (padding, account) = word.split_first_chunk::<12>()?;
    (padding == &[0; 12]).then_some(())?;
    account.first_chunk().copied()
}

fn choice<T>(
    value: Option<&Value>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Choice<T>, DemoError> {
    let wrong = || DemoError::invalid("invalid argument 0: invalid address or topic");
    let one = |value: &Value| value.as_str().and_then(&read).ok_or_else(wrong);
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(all)) if all.is_empty() => Ok(None),
        Some(Value::Array(all)) => Ok(Some(all.iter().map(one).collect::<Result<_, _>>()?)),
        Some(value) => Ok(Some(vec![one(value)?])),
    }
}

fn filter(query: &Value) -> Result<LogFilter, DemoError> {
    let topics = match query.get("topics") {
        Some(Value::Array(topics)) if topics.len() <= 4 => {
            topics.iter().map(|topic| choice(Some(topic), wire::bytes)).collect::<Result<_, _>>()?
        }
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return Err(DemoError::invalid("invalid argument 0: topics")),
    };
    Ok(LogFilter { addresses: choice(query.get("address"), wire::bytes)?, topics })
}

pub(super) fn get(context: &NodeContext<'_>) -> CallResult {
    let query = context.params.first().cloned().unwrap_or_default();
    let filter = filter(&query)?;
    let low = context.height(query.get("fromBlock"))?;
    let high = context.height(query.get("toBlock"))?;
    if low > high {
        return Err(DemoError::new(-32000, "invalid block range params"));
    }
    if low < context.node.first_available && !context.node.prunes_silently {
        let first = context.node.first_available;
        let text = format!("pruned history unavailable: blocks below {first} are not kept");
        return Err(DemoError::new(4444, text));
    }
    if let Some(most) = context.node.log_blocks_max.filter(|most| high - low >= *most) {
        return Err(too_wide(context.node.texts, (low, high), most));
    }
    let top = context.newest.saturating_sub(context.node.logs_lag);
    let range = (low.max(context.node.first_available), high.min(top));
    let mut found: BTreeMap<(Height, u64), Value> = BTreeMap::new();
    let newest = |found: BTreeMap<(Height, u64), Value>| -> CallResult {
        let others = found.len().saturating_sub(context.node.silent_max.unwrap_or(usize::MAX));
        let mut kept: Vec<_> = found.into_iter().skip(others).collect();
        context.answer_faults.lie.reduce(&mut kept, |((height, _), _)| *height);
        Ok(context.answer_faults.events(kept.into_iter().map(|(_, log)| log).collect()))
    };
    let mut add = |tx: &PlacedTx| {
        for (at, log) in (0..).zip(&tx.tx.logs).filter(|(_, log)| filter.fits(log)) {
            let value = wire::log(context.model, tx, at, log, context.node.log_times);
            found.insert((tx.spot.height, wire::log_index(tx, at)), value);
        }
        match context.node.logs_max.filter(|most| found.len() > *most) {
            Some(most) => Err(too_many(context.node.texts, (low, high), tx.spot.height, most)),
            None => Ok(()),
        }
    };
    if let Some(mut swaps) = context.model.reference_swaps(&filter, range) {
        if range.1.saturating_sub(range.0) > REFERENCE_BLOCKS_MAX {
            return Err(too_many(
                context.node.texts,
                (low, high),
                low + REFERENCE_BLOCKS_MAX,
                10_000,
            ));
        }
        swaps.try_for_each(|tx| add(&tx))?;
        if references::are_all(context.model.places(), &filter) {
            return newest(found);
        }
    }
    // A query for a single block returns every log in its bloom filter.
    let is_open = filter.addresses.is_none() && filter.topics.is_empty();
    if is_open && range.0 == range.1 {
        context.model.strangers_in(range.0).iter().try_for_each(&mut add)?;
    }
    for wallet in wallets_of(&filter, context.model) {
        context.model.transactions(&wallet, range).try_for_each(|tx| add(&tx))?;
    }
    newest(found)
}

fn too_wide(texts: LimitTexts, (low, high): (Height, Height), most: u64) -> DemoError {
    limit_error(texts, "wide", (low, low + most - 1), &(high - low + 1), &most)
}

/// `at`: the block at which the limit was exceeded.
fn too_many(texts: LimitTexts, range: (Height, Height), at: Height, most: usize) -> DemoError {
    let (low, high) = range;
    // The largest range below that block; within one block no smaller range exists.
    let last = at.saturating_sub(1).clamp(low, high);
    limit_error(texts, "many", (low, last), &"", &most)
}

/// An error of the table, with the range that works, the blocks asked for and the limit.
fn limit_error(
    texts: LimitTexts,
    limit: &str,
    (low, last): (Height, Height),
    asked: &dyn Display,
    most: &dyn Display,
) -> DemoError {
    let known = TABLE.limits.get(&format!("{texts:?}")).and_then(|errors| errors.get(limit));
    let (code, text) = known.cloned().unwrap_or_default();
    let filled = text
        .replace("{most}", &most.to_string())
        .replace("{asked}", &asked.to_string())
        .replace("{low}", &low.to_string())
        .replace("{last}", &last.to_string())
        .replace("{low:#x}", &format!("{low:#x}"))
        .replace("{last:#x}", &format!("{last:#x}"));
    DemoError::new(code, filled)
}
