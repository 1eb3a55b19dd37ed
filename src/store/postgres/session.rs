//! A connection without a task of its own: a call reads and writes the socket in the task that
//! awaits it. With a task for each connection, a call would switch tasks twice, and again for every
//! 8 KiB of its answer.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::domain::{lock, opaque};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Statement};

/// The cluster, its timeline (raised by each failover or restored backup), and the database.
const TIMELINE: &str = "SELECT system_identifier || ':' \
    || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || ':' || oid \
    FROM pg_control_system(), pg_database WHERE datname = current_database()";

/// Errors of servers without these functions, or without them for this role.
const UNREPORTED: [SqlState; 3] = [
    SqlState::UNDEFINED_FUNCTION,
    SqlState::INSUFFICIENT_PRIVILEGE,
    SqlState::FEATURE_NOT_SUPPORTED,
];

/// Moves the bytes of a connection, and ends when it is closed.
pub(super) type Driver = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Concurrent calls must be of one task: each call drives the connection for all.
pub(super) struct Session {
    pub(super) client: Client,
    /// `None` once the connection is closed.
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

    /// Queries the timeline of the database; stays without one where the server does not report it.
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

    /// Receives what the server sent between calls; returns whether the connection is open.
    pub(super) fn is_open(&self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        lock(&self.driver).is_some()
    }

    /// Runs a call of the client while driving the connection.
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

    /// A prepared statement, cached by its connection.
    pub(super) async fn statement(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = lock(&self.statements).get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.run(self.client.prepare(sql)).await?;
        lock(&self.statements).insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Drives the connection. An ended one is dropped: waiting calls then fail as closed.
    fn drive(&self, cx: &mut Context<'_>) {
        let mut driver = lock(&self.driver);
        if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready()) {
            *driver = None;
        }
    }
}
