//! The accounts of a wallet, written in the transactions of other writes.

use std::collections::BTreeMap;

use super::call::{Called, Connection};
use super::store::{PgInner, number};
use crate::domain::SourceAccount;
use crate::store::WalletId;
use crate::store::codec;
use crate::store::schema::names::ACCOUNTS;

impl PgInner {
    pub(super) async fn put_accounts(
        &self,
        connection: &Connection,
        id: WalletId,
        accounts: &[SourceAccount],
    ) -> Called<()> {
        if accounts.is_empty() {
            return Ok(());
        }
        // The last state of each account: a statement may change a row only once.
        let mut last: BTreeMap<&[u8], Vec<u8>> = BTreeMap::new();
        for account in accounts {
            last.insert(account.account.as_slice(), codec::encode_account(account)?);
        }
        let (keys, values): (Vec<_>, Vec<_>) = last.into_iter().unzip();
        let sql = "INSERT INTO blotter.account (wallet, account, value)
                   SELECT $1, k, v FROM unnest($2::bytea[], $3::bytea[]) AS new(k, v)
                   ON CONFLICT (wallet, account) DO UPDATE SET value = EXCLUDED.value";
        connection.execute(sql, &[&number(id), &keys, &values]).await?;
        Ok(())
    }

    /// Drops the balances of accounts after a rollback; the accounts stay.
    pub(super) async fn forget_balances(
        &self,
        connection: &Connection,
        id: WalletId,
    ) -> Called<()> {
        let sql = "SELECT account, value FROM blotter.account WHERE wallet = $1";
        let (mut keys, mut values): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        for row in connection.query(sql, &[&number(id)]).await? {
            keys.push(row.try_get(0)?);
            values.push(codec::account_without_balance(ACCOUNTS, row.try_get(1)?)?);
        }
        if keys.is_empty() {
            return Ok(());
        }
        let sql = "UPDATE blotter.account AS known SET value = new.v
                   FROM unnest($2::bytea[], $3::bytea[]) AS new(k, v)
                   WHERE known.wallet = $1 AND known.account = new.k";
        connection.execute(sql, &[&number(id), &keys, &values]).await?;
        Ok(())
    }
}
