//! What a wallet holds of tokens now.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::SolanaSource;
use super::open::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM};
use crate::domain::{Address, Units};
use crate::rpc::batch::Call;
use crate::rpc::error::Result;
use crate::rpc::pool::CallOptions;

impl SolanaSource {
    /// Over all of its accounts of both token programs; zero where it has none.
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
            let bad =
                || self.malformed(answer.endpoint, "getTokenAccountsByOwner gave no accounts");
            let accounts: Value = serde_json::from_str(answer.result.get()).map_err(|_| bad())?;
            let rows = accounts.pointer("/value").and_then(Value::as_array);
            for row in rows.ok_or_else(bad)? {
                let (mint, amount) = holding(row).ok_or_else(bad)?;
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

/// The mint and the amount of an account.
fn holding(row: &Value) -> Option<(String, Units)> {
    let info = row.pointer("/account/data/parsed/info")?;
    let amount = info.pointer("/tokenAmount/amount")?.as_str()?.parse().ok()?;
    Some((info.pointer("/mint")?.as_str()?.to_owned(), amount))
}
