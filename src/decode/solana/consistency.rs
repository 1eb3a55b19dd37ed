//! Whether the parts of a transaction fit each other: a node may leave out one of them, or give it
//! as it was before, and state nothing of it.

use super::TOKEN_PROGRAM;
use super::action::{Action, is_token_program};
use super::transaction::{Instruction, TokenAccount, Transaction};

impl Transaction {
    /// The fee leaves the accounts; a token account's balance changes by a call of its program that
    /// names it; and what tokens were transferred between is among the token accounts.
    pub(super) fn is_consistent(&self) -> bool {
        let sums = self.lamports.iter().fold((0_u128, 0_u128), |sums, (before, after)| {
            (sums.0 + u128::from(*before), sums.1 + u128::from(*after))
        });
        let calls = || {
            let is_its = |one: &&Instruction| self.key(one.program).is_some_and(is_token_program);
            self.instructions.iter().filter(is_its)
        };
        let is_named = |token: &TokenAccount| {
            calls().any(|one| self.accounts_of(one).contains(&token.account))
        };
        let has_moved = |token: &&TokenAccount| token.before != token.after;
        // Nodes recorded the accounts of the second token program later than its calls.
        let transfers = |one: &Instruction| {
            matches!(one.action, Action::Transfer { amount: 1.., .. })
                && self.key(one.program) == Some(&TOKEN_PROGRAM)
        };
        sums.1 + u128::from(self.fee) <= sums.0
            && self.tokens.iter().filter(has_moved).all(is_named)
            && (!self.tokens.is_empty() || !self.instructions.iter().any(transfers))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::parse;
    use crate::decode::solana::OWNERS_FROM;
    use crate::domain::{Address, TxId};

    /// Three of a classic token from the third to the fourth account, for a fee of five.
    fn transfer() -> Value {
        let key = |number: u8| Address::Solana([number; 32]).to_string();
        let balance = |account: u8, amount: u64| {
            json!({"accountIndex": account, "mint": key(8), "owner": key(account),
                   "uiTokenAmount": {"amount": amount.to_string(), "decimals": 6}})
        };
        let token = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
        let data = bs58::encode([3, 3, 0, 0, 0, 0, 0, 0, 0]).into_string();
        let call = json!({"programIdIndex": 1, "accounts": [2, 3, 0], "data": data});
        json!({
            "slot": OWNERS_FROM, "blockTime": 1,
            "transaction": {"signatures": [TxId::solana(&[1; 64]).to_string()], "message": {
                "header": {"numRequiredSignatures": 1}, "instructions": [call],
                "accountKeys": [key(5), token, key(6), key(7)]}},
            "meta": {"err": null, "fee": 5, "preBalances": [9, 1, 2, 2],
                     "postBalances": [4, 1, 2, 2], "innerInstructions": [],
                     "preTokenBalances": [balance(2, 9), balance(3, 0)],
                     "postTokenBalances": [balance(2, 6), balance(3, 3)]},
        })
    }

    #[test]
    fn what_moved_fits_what_was_called() {
        let is_whole = |tx: &Value| parse(tx.to_string().as_bytes()).unwrap().is_whole();
        let without = |change: &dyn Fn(&mut Value)| {
            let mut tx = transfer();
            change(&mut tx);
            is_whole(&tx)
        };
        assert!(is_whole(&transfer()));
        // Coin as it was before, no token account, and neither of the calls.
        assert!(!without(&|tx| tx["meta"]["postBalances"] = tx["meta"]["preBalances"].clone()));
        assert!(!without(&|tx| {
            tx["meta"]["preTokenBalances"] = json!([]);
            tx["meta"]["postTokenBalances"] = json!([]);
        }));
        assert!(!without(&|tx| tx["transaction"]["message"]["instructions"] = json!([])));
        // A call that names one of the two accounts alone.
        assert!(!without(&|tx| {
            tx["transaction"]["message"]["instructions"][0]["accounts"] = json!([2, 2, 0]);
        }));
        // A transaction of before owners were recorded is as it was recorded.
        assert!(without(&|tx| {
            tx["slot"] = (OWNERS_FROM - 1).into();
            tx["transaction"]["message"]["instructions"] = json!([]);
        }));
    }
}
