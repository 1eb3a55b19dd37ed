//! Texts that the processes share, such as the keys.

use super::call::{Called, calls};
use super::store::{PgInner, PgStore};
use crate::store::Result;

calls! {
    PgStore:
    document(name: &str) -> String;
    put_document(name: &str, before: &str, after: &str) -> bool;
}

impl PgInner {
    async fn document(&self, name: &str) -> Called<String> {
        let sql = "SELECT content FROM blotter.document WHERE name = $1";
        let row = self.row(sql, &[&name]).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
    }

    /// A text that is `after` already counts as replaced: an earlier answer may be lost.
    async fn put_document(&self, name: &str, before: &str, after: &str) -> Called<bool> {
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
