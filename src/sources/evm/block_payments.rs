//! Whether a block contains anything else that changes an account's balance than one transaction:
//! only without it is the balance change across the block that transaction's.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire;
use crate::decode::evm::{Account, Word};
use crate::domain::Units;

#[derive(Deserialize)]
struct Whole<'a> {
    miner: Option<&'a str>,
    #[serde(borrow)]
    transactions: Vec<Payment<'a>>,
    /// Payments to validators, which no transaction contains.
    #[serde(borrow)]
    withdrawals: Option<Vec<Withdrawal<'a>>>,
}

#[derive(Deserialize)]
struct Payment<'a> {
    hash: &'a str,
    from: &'a str,
    to: Option<&'a str>,
    value: &'a str,
}

#[derive(Deserialize)]
struct Withdrawal<'a> {
    address: &'a str,
}

/// Whether a full block contains this transaction and nothing else that changes the account's
/// balance: another transaction of the account, a payment to it, its block reward or a withdrawal.
/// Payments by contracts in other transactions are not visible in a block.
pub(super) fn is_lone(block: &RawValue, hash: &Word, account: &Account) -> bool {
    let Ok(Some(block)) = serde_json::from_str::<Option<Whole<'_>>>(block.get()) else {
        return false;
    };
    let is_account = |text: &str| wire::account(text).as_ref() == Some(account);
    let is_it = |one: &Payment<'_>| wire::word(one.hash).as_ref() == Some(hash);
    let is_free =
        |one: &Payment<'_>| wire::hex_units(one.value).is_some_and(|paid| paid == Units::ZERO);
    let concerns = |one: &Payment<'_>| {
        is_account(one.from) || (one.to.is_some_and(is_account) && !is_free(one))
    };
    let withdrawn = block.withdrawals.iter().flatten().any(|one| is_account(one.address));
    block.transactions.iter().any(is_it)
        && !block.transactions.iter().any(|one| !is_it(one) && concerns(one))
        && !block.miner.is_some_and(is_account)
        && !withdrawn
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    const WALLET: Account = [7; 20];

    fn payment(hash: u8, from: u8, to: u8, value: &str) -> serde_json::Value {
        let hex = |byte: u8, bytes: usize| format!("0x{}", hex::encode(vec![byte; bytes]));
        json!({"hash": hex(hash, 32), "from": hex(from, 20), "to": hex(to, 20), "value": value})
    }

    fn lone(others: &[serde_json::Value], more: &serde_json::Value) -> bool {
        let mut all = vec![payment(1, 7, 9, "0x5")];
        all.extend_from_slice(others);
        let mut block = json!({"number": "0x1", "transactions": all});
        for (key, value) in more.as_object().into_iter().flatten() {
            block[key] = value.clone();
        }
        is_lone(&to_raw_value(&block).unwrap(), &[1; 32], &WALLET)
    }

    #[test]
    fn a_balance_is_one_transactions_only_where_the_block_shows_nothing_else() {
        let none = json!({});
        assert!(lone(&[], &none));
        assert!(lone(&[payment(2, 8, 9, "0x5"), payment(3, 8, 7, "0x0")], &none));
        assert!(!lone(&[payment(2, 8, 7, "0x309")], &none), "a payment of another");
        assert!(!lone(&[payment(2, 7, 9, "0x0")], &none), "it has a fee");
        let address = format!("0x{}", hex::encode(WALLET));
        assert!(!lone(&[], &json!({"miner": address})));
        assert!(!lone(&[], &json!({"withdrawals": [{"address": address, "amount": "0x1"}]})));
        assert!(lone(&[], &json!({"withdrawals": null, "miner": format!("0x{}", "0".repeat(40))})));
    }

    #[test]
    fn a_block_without_the_transaction_shows_nothing() {
        let of =
            |block: serde_json::Value| is_lone(&to_raw_value(&block).unwrap(), &[1; 32], &WALLET);
        assert!(!of(json!(null)));
        assert!(!of(json!({"transactions": []})));
        assert!(!of(json!({"transactions": [payment(2, 7, 9, "0x5")]})));
        assert!(!of(json!({"transactions": [format!("0x{}", "01".repeat(32))]})));
    }
}
