//! Which history of the database a connection sees. A failover without synchronous replication, or a
//! backup that is restored, may lose commits: what this process remembers of them is forgotten then,
//! and no number that they gave to a wallet, a token, a venue or a process is ever given again.

use tokio::sync::Mutex;
use tokio_postgres::Error;

use super::call::{CallError, Connection};
use super::session::Session;
use super::store::PgInner;

/// The cluster, and how often a standby has taken over or a backup was restored in it.
const TIMELINE: &str = "SELECT system_identifier || ':' \
    || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) FROM pg_control_system()";

/// The name of the text that says on which timeline numbers were given last.
const DOCUMENT: &str = "timeline";

/// By how much numbers go on where some may have been lost: more than a standby can lack.
const NUMBERS_LOST_MAX: i64 = 100_000;

/// The timeline of a new connection; `None` where the server does not report one.
///
/// # Errors
/// That of the connection.
pub(super) async fn timeline_of(session: &Session) -> Result<Option<String>, Error> {
    match session.run(session.client().query_one(TIMELINE, &[])).await {
        Ok(row) => row.try_get(0),
        Err(error) if error.code().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The timeline that what is remembered is of.
#[derive(Debug, Default)]
pub(super) struct KnownTimeline(Mutex<Option<String>>);

impl PgInner {
    /// Forgets what was remembered of another timeline than the connection's. Others wait meanwhile.
    pub(super) async fn keep_to_timeline(&self, connection: &Connection) -> Result<(), CallError> {
        let Some(timeline) = connection.timeline()? else { return Ok(()) };
        let mut known = self.timeline.0.lock().await;
        if known.as_deref() == Some(timeline) {
            return Ok(());
        }
        // Apart: else every call of the store would have the room for it.
        Box::pin(raise_numbers(connection, timeline)).await?;
        if known.is_some() {
            tracing::warn!("the shared store has another timeline: commits may be lost");
            self.names.clear();
            self.ids.clear();
            self.wallets.clear();
            self.states.clear();
            // What it holds in memory of its wallets may be of lost commits too.
            self.lease.lose();
        }
        *known = Some(timeline.to_owned());
        Ok(())
    }
}

/// Once for all processes: the first one that sees a timeline.
async fn raise_numbers(connection: &Connection, timeline: &str) -> Result<(), CallError> {
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
    if last != timeline && !last.is_empty() {
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
