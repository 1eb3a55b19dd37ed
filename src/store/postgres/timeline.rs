//! Handles a new timeline of the database. A failover without synchronous replication, or a
//! restored backup, may lose commits: no number that they gave to a wallet, a token, a venue or a
//! process is ever given again.

use super::call::{Called, Connection};

/// The name of the document with the timeline on which numbers were given last.
const DOCUMENT: &str = "timeline";

/// How many numbers are skipped where some may have been lost: more than a standby can lack.
const NUMBERS_LOST_MAX: i64 = 1_000_000;

/// Skips numbers, once for all processes: the first one that sees the timeline does so. A database
/// without a recorded timeline is new or of an earlier program, unless this process has seen
/// another timeline.
pub(super) async fn raise_numbers(
    connection: &Connection,
    timeline: &str,
    is_other: bool,
) -> Called<()> {
    let sql = "SELECT content FROM blotter.document WHERE name = $1";
    let found = connection.query_opt(sql, &[&DOCUMENT]).await?;
    if found.is_some_and(|row| row.get::<_, &str>(0) == timeline) {
        return Ok(());
    }
    connection.begin().await?;
    let sql = "INSERT INTO blotter.document (name, content) VALUES ($1, '') ON CONFLICT DO NOTHING";
    connection.execute(sql, &[&DOCUMENT]).await?;
    let sql = "SELECT content FROM blotter.document WHERE name = $1 FOR UPDATE";
    let row = connection.query_opt(sql, &[&DOCUMENT]).await?;
    let last: String = row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    if last != timeline && (is_other || !last.is_empty()) {
        let sql = "SELECT setval(s, nextval(s) + $1) FROM unnest(ARRAY[
                       pg_get_serial_sequence('blotter.wallet', 'id'),
                       pg_get_serial_sequence('blotter.token', 'id'),
                       pg_get_serial_sequence('blotter.venue', 'id'),
                       pg_get_serial_sequence('blotter.node', 'id')]::regclass[]) AS s";
        connection.query(sql, &[&NUMBERS_LOST_MAX]).await?;
    }
    let sql = "UPDATE blotter.document SET content = $2 WHERE name = $1";
    connection.execute(sql, &[&DOCUMENT, &timeline]).await?;
    connection.batch("COMMIT").await
}
