//! An open data gateway next to the nodes: it returns the transactions of some slots in which an
//! account of a wallet had a token balance, also those that do not name the wallet. Lists of
//! signatures cannot show these for accounts that are in no list of the wallet.
//!
//! A supplement: the lists do not depend on it, and a transaction that it lists counts only once a
//! node returns it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::SolanaSource;
use super::list::Entry;
use super::wire::is_error;
use crate::domain::{Address, Height, TxId};
use crate::rpc::{Ask, CallOptions, Pool, Result, UpstreamError};
use crate::sources::gateway::{RawHead, classify_stream, lines};

/// A wallet with an entry of a transaction in which it owned a token balance.
pub(super) type Owned = ([u8; 32], Entry);

const STREAM: &str = "/finalized-stream";
/// Slots above a range that are requested too: slots without a block have no line, so only a block
/// above the range shows that all of the range was scanned.
const SLOTS_ABOVE: Height = 64;

#[derive(Deserialize)]
struct RawBlock<'a> {
    header: RawHead,
    #[serde(default, borrow)]
    transactions: Vec<RawTransaction<'a>>,
    #[serde(default, borrow, rename = "tokenBalances")]
    balances: Vec<RawBalance<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTransaction<'a> {
    transaction_index: u32,
    #[serde(borrow)]
    signatures: Vec<&'a str>,
    #[serde(default, borrow)]
    err: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawBalance<'a> {
    transaction_index: u32,
    #[serde(default, borrow)]
    pre_owner: Option<&'a str>,
    #[serde(default, borrow)]
    post_owner: Option<&'a str>,
}

impl SolanaSource {
    /// Also reads such transactions, from a gateway.
    #[must_use]
    pub fn with_gateway(self, gateway: Option<Pool>) -> Self {
        Self { gateway, ..self }
    }

    /// Whether a gateway is queried for these slots: a query scans all of them, for any wallet.
    pub(super) fn is_scanned(&self, (low, high): (Height, Height)) -> bool {
        let slots = self.inner.limits.gateway_slots_max;
        self.gateway.is_some() && low <= high && high - low < slots
    }

    /// Transactions of these slots in which the wallets owned token balances. An error where the
    /// gateway does not return all of the slots, or not in time.
    pub(super) async fn owned(
        &self,
        wallets: &[Address],
        range: (Height, Height),
        options: &CallOptions,
    ) -> Result<Vec<Owned>> {
        let read = self.read_owned(wallets, range, options);
        timeout(self.inner.limits.gateway_wait, read)
            .await
            .unwrap_or_else(|_| Err(UpstreamError::unavailable("the gateway takes too long")))
    }

    async fn read_owned(
        &self,
        wallets: &[Address],
        (low, high): (Height, Height),
        options: &CallOptions,
    ) -> Result<Vec<Owned>> {
        let Some(gateway) = &self.gateway else { return Ok(Vec::new()) };
        let owners: BTreeMap<String, [u8; 32]> = wallets
            .iter()
            .filter_map(|wallet| Some((wallet.to_string(), wallet.bytes().try_into().ok()?)))
            .collect();
        let names: Vec<&String> = owners.keys().collect();
        let (mut found, mut next) = (Vec::new(), low);
        for _ in 0..self.inner.limits.gateway_answers_max {
            let range = (next, high.saturating_add(SLOTS_ABOVE));
            let body = query(&names, range).to_string().into();
            let path = STREAM.to_owned();
            let ask = Ask { name: STREAM, path, query: Vec::new(), body: Some(body) };
            let reply = gateway.ask(&ask, classify_stream, options).await?;
            let read = read(&reply.body, &owners, range);
            let (last, more) = read.ok_or_else(|| {
                gateway.malformed(reply.endpoint, "blocks are not those asked for")
            })?;
            found.extend(more.into_iter().filter(|(_, entry)| entry.slot <= high));
            if last >= high {
                return Ok(found);
            }
            next = last + 1;
        }
        Err(UpstreamError::unavailable("the gateway gives its answer in too many parts"))
    }
}

fn query(owners: &[&String], (low, high): (Height, Height)) -> Value {
    json!({
        "type": "solana", "fromBlock": low, "toBlock": high,
        "fields": {
            "block": {"number": true},
            "transaction": {"transactionIndex": true, "signatures": true, "err": true},
            "tokenBalance": {
                "transactionIndex": true, "account": true, "preOwner": true, "postOwner": true,
            },
        },
        "tokenBalances": [
            {"preOwner": owners, "transaction": true},
            {"postOwner": owners, "transaction": true},
        ],
    })
}

/// The last slot of an answer, and its entries. Rows of other wallets are left out: the gateway may
/// ignore filters.
fn read(
    body: &[u8],
    owners: &BTreeMap<String, [u8; 32]>,
    (low, high): (Height, Height),
) -> Option<(Height, Vec<Owned>)> {
    let (mut found, mut last): (Vec<Owned>, Option<Height>) = (Vec::new(), None);
    for line in lines(std::str::from_utf8(body).ok()?) {
        let block: RawBlock<'_> = serde_json::from_str(line).ok()?;
        let slot = block.header.number;
        if !(low..=high).contains(&slot) || last.is_some_and(|last| slot <= last) {
            return None;
        }
        last = Some(slot);
        let mut pairs: BTreeSet<([u8; 32], u32)> = BTreeSet::new();
        for row in &block.balances {
            let ends = [row.pre_owner, row.post_owner].into_iter().flatten();
            let own = ends.filter_map(|owner| owners.get(owner));
            pairs.extend(own.map(|owner| (*owner, row.transaction_index)));
        }
        for (owner, at) in pairs {
            let tx = block.transactions.iter().find(|tx| tx.transaction_index == at)?;
            let id = TxId::parse_solana(tx.signatures.first()?)?;
            let failed = tx.err.is_some_and(is_error).then_some(true);
            found.push((owner, Entry { slot, id, time: None, failed }));
        }
    }
    Some((last?, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners() -> BTreeMap<String, [u8; 32]> {
        let wallet = Address::Solana([7; 32]);
        BTreeMap::from([(wallet.to_string(), [7; 32])])
    }

    fn line(slot: Height, owner: &Address, err: &str) -> String {
        let id = TxId::solana(&[u8::try_from(slot).unwrap(); 64]);
        format!(
            r#"{{"header":{{"number":{slot}}},"transactions":[{{"transactionIndex":3,"signatures":["{id}"],"err":{err}}}],"tokenBalances":[{{"transactionIndex":3,"account":"x","preOwner":"{owner}","postOwner":null}}]}}"#
        )
    }

    #[test]
    fn rows_of_other_owners_are_left_out_and_errors_are_seen() {
        let (own, other) = (Address::Solana([7; 32]), Address::Solana([8; 32]));
        let failed = r#"{"InstructionError":[0,"x"]}"#;
        let body = [line(5, &own, "null"), line(6, &other, "null"), line(7, &own, failed)];
        let (last, found) = read(body.join("\n").as_bytes(), &owners(), (5, 9)).unwrap();
        assert_eq!(last, 7);
        let seen: Vec<_> =
            found.iter().map(|(_, entry)| (entry.slot, entry.has_failed())).collect();
        assert_eq!(seen, [(5, false), (7, true)]);
    }

    /// A balance without its transaction, or blocks outside the range or out of order, make the
    /// answer invalid.
    #[test]
    fn an_answer_that_does_not_fit_is_none() {
        let own = Address::Solana([7; 32]);
        let torn = line(5, &own, "null")
            .replace("\"transactionIndex\":3,\"sig", "\"transactionIndex\":4,\"sig");
        for body in [
            torn,
            line(4, &own, "null"),
            [line(6, &own, "null"), line(6, &own, "null")].join("\n"),
            String::new(),
        ] {
            assert!(read(body.as_bytes(), &owners(), (5, 9)).is_none(), "{body}");
        }
    }
}
