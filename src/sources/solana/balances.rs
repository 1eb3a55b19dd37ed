//! A wallet's present token balances.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::json;

use super::SolanaSource;
use super::open::{TOKEN_2022_PROGRAM, TOKEN_PROGRAM};
use crate::domain::{Address, Units};
use crate::rpc::{Call, CallOptions, Result};

#[derive(Deserialize)]
struct Accounts {
    value: Vec<Keyed>,
}

#[derive(Deserialize)]
struct Keyed {
    account: Account,
}

#[derive(Deserialize)]
struct Account {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    parsed: Parsed,
}

#[derive(Deserialize)]
struct Parsed {
    info: Info,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    mint: String,
    token_amount: Amount,
}

#[derive(Deserialize)]
struct Amount {
    amount: String,
}

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
            let accounts: Accounts = serde_json::from_str(answer.result.get())
                .map_err(|_| self.malformed(answer.endpoint, what))?;
            for Keyed { account } in accounts.value {
                let Info { mint, token_amount } = account.data.parsed.info;
                let amount: Units = token_amount
                    .amount
                    .parse()
                    .map_err(|_| self.malformed(answer.endpoint, what))?;
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
