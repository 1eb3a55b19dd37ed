//! Texts that the processes share, such as the keys.

use super::call::{CallError, repeated};
use super::store::{PgInner, PgStore};
use crate::store::StoreError;

impl PgStore {
    pub(in crate::store) async fn document(&self, name: &str) -> Result<String, StoreError> {
        repeated!(self.inner.failures, self.inner.document(name))
    }

    pub(in crate::store) async fn put_document(
        &self,
        name: &str,
        before: &str,
        after: &str,
    ) -> Result<bool, StoreError> {
        repeated!(self.inner.failures, self.inner.put_document(name, before, after))
    }
}

impl PgInner {
    async fn document(&self, name: &str) -> Result<String, CallError> {
        let connection = self.connection().await?;
        let sql = "SELECT content FROM blotter.document WHERE name = $1";
        let row = connection.query_opt(sql, &[&name]).await?;
        connection.give_back();
        Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
    }

    /// A text that is there already, after an answer that was lost, counts as replaced.
    async fn put_document(&self, name: &str, before: &str, after: &str) -> Result<bool, CallError> {
        let connection = self.connection().await?;
        let sql = "INSERT INTO blotter.document (name, content) VALUES ($1, '')
                   ON CONFLICT DO NOTHING";
        connection.execute(sql, &[&name]).await?;
        let sql = "UPDATE blotter.document SET content = $3
                   WHERE name = $1 AND content IN ($2, $3)";
        let changed = connection.execute(sql, &[&name, &before, &after]).await?;
        connection.give_back();
        Ok(changed > 0)
    }
}
