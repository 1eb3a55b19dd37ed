//! One connection, driven by its user: a call reads and writes the socket in the task that waits for
//! its answer. With a task of its own for each connection, a call switches tasks twice, and once more
//! for every 8 KiB of its answer.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::domain::{lock, opaque};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Statement};

/// The cluster, how often a standby has taken over or a backup was restored in it, and the database.
const TIMELINE: &str = "SELECT system_identifier || ':' \
    || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || ':' || oid \
    FROM pg_control_system(), pg_database WHERE datname = current_database()";

/// Of a server that does not have these functions, or not for this role.
const UNREPORTED: [SqlState; 3] = [
    SqlState::UNDEFINED_FUNCTION,
    SqlState::INSUFFICIENT_PRIVILEGE,
    SqlState::FEATURE_NOT_SUPPORTED,
];

/// What moves the bytes of a connection; it ends when the connection is closed.
pub(super) type Driver = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Calls that wait at one time must be of one task: each of them moves the bytes of all.
pub(super) struct Session {
    pub(super) client: Client,
    /// `None` where the connection is closed.
    driver: Mutex<Option<Driver>>,
    statements: Mutex<HashMap<String, Statement>>,
    timeline: Mutex<Option<Arc<str>>>,
}

opaque!(Session);

impl Session {
    pub(super) fn new(client: Client, driver: Driver) -> Self {
        let driver = Mutex::new(Some(driver));
        Self { client, driver, statements: Mutex::default(), timeline: Mutex::default() }
    }

    /// Asks which history of the database it sees.
    ///
    /// # Errors
    /// Those of the call. A server that does not report its timeline is used without.
    pub(super) async fn ask_timeline(&self) -> Result<(), Error> {
        let timeline: Option<String> = match self.run(self.client.query_one(TIMELINE, &[])).await {
            Ok(row) => row.try_get(0)?,
            Err(error) if error.code().is_some_and(|code| UNREPORTED.contains(code)) => None,
            Err(error) => return Err(error),
        };
        *lock(&self.timeline) = timeline.map(Arc::from);
        Ok(())
    }

    pub(super) fn timeline(&self) -> Option<Arc<str>> {
        lock(&self.timeline).clone()
    }

    /// Takes what the server sent while no call waited, and returns whether the connection is open.
    pub(super) fn is_open(&self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        lock(&self.driver).is_some()
    }

    /// The outcome of a call of the client.
    pub(super) async fn run<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut call = pin!(call);
        poll_fn(|cx| {
            if let Poll::Ready(outcome) = call.as_mut().poll(cx) {
                return Poll::Ready(outcome);
            }
            self.drive(cx);
            call.as_mut().poll(cx)
        })
        .await
    }

    /// A statement that this connection keeps prepared.
    pub(super) async fn statement(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = lock(&self.statements).get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.run(self.client.prepare(sql)).await?;
        lock(&self.statements).insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// A connection that has ended is dropped: calls that wait for it then fail as closed.
    fn drive(&self, cx: &mut Context<'_>) {
        let mut driver = lock(&self.driver);
        if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready()) {
            *driver = None;
        }
    }
}
