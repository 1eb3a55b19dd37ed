//! `TronGrid`'s lists of an account: its transactions, and the movements of its TRC-20 tokens.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{NodeOptions, TronAnswer, refused, wire};
use crate::demo::evm::coins::Coin;
use crate::demo::evm::model::{EvmModel, PlacedTx};
use crate::demo::evm::references;
use crate::demo::evm::wire::{TokenEvent, token_events};
use crate::demo::faults::AnswerFaults;
use crate::demo::mix;
use crate::demo::rpc::set;
use crate::domain::{Account, Height, Units, UnixSeconds, Word};

const LIMIT: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TronList {
    Transactions,
    Transfers,
}

#[derive(Clone)]
struct Line {
    height: Height,
    tx: Word,
    row: usize,
    json: Value,
}

/// The end of a page: the last row's transaction, and the row's index in it.
type Mark = (Word, usize);

pub(super) struct GridPage<'a> {
    pub(super) model: &'a EvmModel,
    pub(super) options: &'a NodeOptions,
    pub(super) list: TronList,
    pub(super) account: Account,
    pub(super) query: &'a HashMap<String, String>,
    /// What is listed ends here.
    pub(super) head: Height,
}

fn mark(text: &str) -> Option<Mark> {
    let (tx, row) = text.split_at_checked(64)?;
    let mut word = [0; 32];
    hex::decode_to_slice(tx, &mut word).ok()?;
    Some((word, usize::from_str_radix(row, 16).ok()?))
}

impl GridPage<'_> {
    pub(super) fn answer(&self, answer_faults: AnswerFaults) -> TronAnswer {
        let given = self.query.get("fingerprint");
        let mark = given.and_then(|text| mark(text));
        if given.is_some() && mark.is_none() {
            return refused("invalid fingerprint");
        }
        let limit = self.number("limit").and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(LIMIT).clamp(1, self.options.page_max);
        let (low, high) = self.range();
        let (mut lines, more) = self.lines((low, high), mark, limit);
        let place = |last: &Line| format!("{}{:x}", hex::encode(last.tx), last.row);
        let mut fingerprint = lines.last().filter(|_| more).map(place);
        if answer_faults.cut && more {
            // A page that one moment fills comes whole.
            if lines.first().map(|line| line.height) != lines.last().map(|line| line.height) {
                lines.truncate(lines.len() / 2 + 1);
            }
            fingerprint = None;
        }
        if answer_faults.empty {
            (lines, fingerprint) = (Vec::new(), None);
        }
        if let Some(salt) = answer_faults.lie.hollow {
            lines.truncate(usize::try_from(salt % 4).unwrap_or(0) * lines.len() / 4);
        }
        answer_faults.lie.reduce(&mut lines, |line| line.height);
        if answer_faults.lie.edge.is_some() {
            fingerprint = None;
        }
        answer_faults.flip_blocks(&mut lines, |line| line.height, |line| mix::digest(1, &line.tx));
        answer_faults.lose_first(&mut lines, |line| line.height == high);
        answer_faults.repeat_first(&mut lines);
        let data: Vec<Value> = lines.into_iter().map(|line| line.json).collect();
        let at = wire::millis(self.model, self.head);
        let mut meta = json!({"at": at, "page_size": data.len()});
        if let Some(mark) = fingerprint {
            set(&mut meta, "fingerprint", mark);
        }
        (200, json!({"data": data, "success": true, "meta": meta}))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.query.get(name)?.parse().ok()
    }

    /// The queried blocks; both times are inclusive.
    fn range(&self) -> (Height, Height) {
        let below = |millis: u64| {
            let seconds = u32::try_from(millis / 1_000).unwrap_or(u32::MAX);
            self.model.height_at(UnixSeconds(seconds))
        };
        let low = self.number("min_timestamp").and_then(|at| at.checked_sub(1));
        let high = self.number("max_timestamp").map_or(self.head, below);
        (low.map_or(0, |at| below(at) + 1), high.min(self.head))
    }

    /// The rows after a mark, and whether there are more.
    fn lines(
        &self,
        (mut low, mut high): (Height, Height),
        mark: Option<Mark>,
        most: usize,
    ) -> (Vec<Line>, bool) {
        let up = self.query.get("order_by").is_some_and(|order| order.ends_with("asc"));
        let at = mark.and_then(|(tx, _)| self.model.listed(&tx)).map(|found| found.spot.height);
        if let Some(at) = at {
            (low, high) = if up { (low.max(at), high) } else { (low, high.min(at)) };
        }
        if references::is_busy(self.model.places(), &self.account) {
            return (self.busy((low, high), most), false);
        }
        let Some(wallet) = self.model.wallet(&self.account).filter(|_| low <= high) else {
            return (Vec::new(), false);
        };
        let mut all = self.model.rows_of(&wallet, (low, high), !up, |found| self.of(found));
        if let Some(last) = mark.filter(|_| at.is_some()) {
            let _ = all.find(|line| (line.tx, line.row) == last);
        }
        let mut lines: Vec<Line> = all.take(most + 1).collect();
        let more = lines.len() > most;
        lines.truncate(most);
        (lines, more)
    }

    /// The newest rows of an account that other users use all the time.
    fn busy(&self, range: (Height, Height), most: usize) -> Vec<Line> {
        let found = self.model.strangers_down(range);
        found.filter_map(|found| self.busy_line(found)).take(most).collect()
    }

    fn busy_line(&self, mut found: PlacedTx) -> Option<Line> {
        found.tx.call.to = self.account;
        let json = match self.list {
            TronList::Transactions => self.transactions(&found).pop(),
            TronList::Transfers => token_events(self.model, &found).pop().map(|moved| {
                let moved = TokenEvent { to: self.account, ..moved };
                self.transfer(&found, &moved)
            }),
        };
        json.map(|json| Line { height: found.spot.height, tx: found.hash, row: 0, json })
    }

    fn of(&self, found: &PlacedTx) -> Vec<Line> {
        let rows = match self.list {
            TronList::Transactions => self.transactions(found),
            TronList::Transfers => self.transfers(found),
        };
        let line = |(row, json)| Line { height: found.spot.height, tx: found.hash, row, json };
        rows.into_iter().enumerate().map(line).collect()
    }

    fn transactions(&self, found: &PlacedTx) -> Vec<Value> {
        let call = &found.tx.call;
        let (sends, called) = (call.from == self.account, call.to == self.account);
        let at = wire::millis(self.model, found.spot.height);
        if sends || called {
            let mut item = wire::transaction(self.model, found);
            set(&mut item, "blockNumber", found.spot.height);
            set(&mut item, "block_timestamp", at);
            set(&mut item, "net_usage", 345);
            set(&mut item, "energy_usage_total", found.tx.gas.used);
            set(&mut item, "internal_transactions", json!([]));
            return vec![item];
        }
        if !self.options.inner_calls {
            return Vec::new();
        }
        // Internal transactions of the account are items of another form.
        let names =
            |inner: &wire::InternalCall| inner.from == self.account || inner.to == self.account;
        let all = (0_u64..).zip(wire::inner(found)).filter(|(_, inner)| names(inner));
        let item = |(at_call, inner): (u64, wire::InternalCall)| {
            json!({
                "internal_tx_id": wire::inner_hash(found, at_call),
                "tx_id": hex::encode(found.hash), "block_timestamp": at,
                "from_address": wire::address(&inner.from), "to_address": wire::address(&inner.to),
                "data": {"note": "63616c6c", "rejected": inner.rejected,
                    "call_value": {"_": u64::try_from(inner.value).unwrap_or(u64::MAX)}},
            })
        };
        all.map(item).collect()
    }

    fn transfers(&self, found: &PlacedTx) -> Vec<Value> {
        let names = |moved: &TokenEvent| moved.from == self.account || moved.to == self.account;
        let all = token_events(self.model, found).into_iter().filter(names);
        all.map(|moved| self.transfer(found, &moved)).collect()
    }

    fn transfer(&self, found: &PlacedTx, moved: &TokenEvent) -> Value {
        json!({
            "transaction_id": hex::encode(found.hash), "token_info": self.token(&moved.token),
            "block_timestamp": wire::millis(self.model, found.spot.height),
            "from": wire::text(&moved.from), "to": wire::text(&moved.to), "type": moved.kind,
            "value": Units::from_be_bytes(moved.data).to_string(),
        })
    }

    /// A contract that is not a token has only its address.
    fn token(&self, token: &Account) -> Value {
        let places = self.model.places();
        let address = wire::text(token);
        match Coin::of(places, token) {
            Some(coin) => {
                let symbol = coin.symbol(places);
                json!({"symbol": symbol, "address": address,
                    "decimals": coin.decimals(places), "name": symbol})
            }
            None => json!({"address": address}),
        }
    }
}
