//! A wallet's present token balances.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::SolanaSource;
use super::open::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM};
use crate::domain::{Address, Units};
use crate::rpc::{Call, CallOptions, Result};

impl SolanaSource {
    /// Sums over all of its accounts of both token programs; zero where it has none.
    pub(crate) async fn balances(
        &self,
        wallet: Address,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<Option<Units>>> {
        let call = |program| Call {
            method: "getTokenAccountsByOwner",
            params: json!([
                wallet.to_string(),
                {"programId": program},
                {"encoding": "jsonParsed", "commitment": "finalized"},
            ]),
        };
        let calls = [TOKEN_PROGRAM, TOKEN_2022_PROGRAM].map(call);
        let mut held: HashMap<String, Units> = HashMap::new();
        for answer in self.inner.pool.batch(&calls, options).await {
            let answer = answer?;
            let what = "getTokenAccountsByOwner gave no accounts";
            let accounts = balances_in(&answer.result);
            for (mint, amount) in accounts.ok_or_else(|| self.malformed(answer.endpoint, what))? {
                let sum = held.entry(mint).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        Ok(mints
            .iter()
            .map(|mint| held.get(&mint.to_string()).copied().or(Some(Units::ZERO)))
            .collect())
    }
}

#[derive(Deserialize)]
struct Accounts<'a> {
    /// Parsed one by one: a tree of thousands takes several times the memory of the answer.
    #[serde(borrow)]
    value: Vec<&'a RawValue>,
}

/// The mint and the amount of each account; `None` where one has none.
fn balances_in(raw: &RawValue) -> Option<Vec<(String, Units)>> {
    let of = |row: &RawValue| {
        let row: Value = serde_json::from_str(row.get()).ok()?;
        let info = row.pointer("/account/data/parsed/info")?;
        let amount = info.pointer("/tokenAmount/amount")?.as_str()?.parse().ok()?;
        Some((info.get("mint")?.as_str()?.to_owned(), amount))
    };
    let Accounts { value } = serde_json::from_str(raw.get()).ok()?;
    value.into_iter().map(of).collect()
}
