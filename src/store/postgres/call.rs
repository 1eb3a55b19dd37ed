//! Calls to the database, with deadlines and retries.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::Object;
use futures_util::TryStreamExt as _;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::LIMITS;
use super::connect::{ConnectionPool, PoolError, Race};
use super::session::Session;
use crate::store::{Result, StoreError};

pub(super) type Arguments<'a> = [&'a (dyn ToSql + Sync)];

/// Why a call failed; callers get [`CallError::into_store`], whose text contains no address.
#[derive(Debug, thiserror::Error)]
#[error("a call to the database failed")]
pub(super) enum CallError {
    Store(#[from] StoreError),
    Database(#[from] Error),
    Pool(#[from] PoolError),
    /// The deadline passed.
    Late,
}

pub(super) type Called<T> = Result<T, CallError>;

/// A connection in use. Unless it is given back, it is closed, which ends an open transaction or an
/// unfinished answer on it.
pub(super) struct Connection(Option<Object<Race>>);

impl Connection {
    pub(super) async fn take(pool: &ConnectionPool) -> Called<Self> {
        Ok(Self(Some(pool.get().await?)))
    }

    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }

    /// The timeline of the database, as last queried.
    pub(super) fn timeline(&self) -> Called<Option<Arc<str>>> {
        Ok(self.session()?.timeline())
    }

    pub(super) async fn ask_timeline(&self) -> Called<Option<Arc<str>>> {
        self.session()?.ask_timeline().await?;
        self.timeline()
    }

    fn session(&self) -> Called<&Session> {
        self.0.as_deref().ok_or(CallError::Store(StoreError::Closed))
    }

    /// Calls `take` with each row as it arrives; an error ends the call.
    pub(super) async fn each(
        &self,
        sql: &str,
        args: &Arguments<'_>,
        mut take: impl FnMut(&Row) -> Called<()>,
    ) -> Called<()> {
        let session = self.session()?;
        let statement = session.statement(sql).await?;
        let taken = session.run(async {
            let mut rows = pin!(session.client.query_raw(&statement, args.iter().copied()).await?);
            while let Some(row) = rows.try_next().await? {
                if let Err(error) = take(&row) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        });
        taken.await?
    }

    pub(super) async fn query(&self, sql: &str, args: &Arguments<'_>) -> Called<Vec<Row>> {
        let session = self.session()?;
        let statement = session.statement(sql).await?;
        Ok(session.run(session.client.query(&statement, args)).await?)
    }

    pub(super) async fn query_opt(&self, sql: &str, args: &Arguments<'_>) -> Called<Option<Row>> {
        Ok(self.query(sql, args).await?.into_iter().next())
    }

    pub(super) async fn execute(&self, sql: &str, args: &Arguments<'_>) -> Called<u64> {
        let session = self.session()?;
        let statement = session.statement(sql).await?;
        Ok(session.run(session.client.execute(&statement, args)).await?)
    }

    pub(super) async fn batch(&self, sql: &str) -> Called<()> {
        let session = self.session()?;
        Ok(session.run(session.client.batch_execute(sql)).await?)
    }

    pub(super) async fn begin(&self) -> Called<()> {
        self.batch("BEGIN").await
    }

    pub(super) async fn commit(self) -> Called<()> {
        self.batch("COMMIT").await?;
        self.give_back();
        Ok(())
    }

    pub(super) async fn roll_back(self) -> Called<()> {
        self.batch("ROLLBACK").await?;
        self.give_back();
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

#[derive(Debug)]
pub(super) struct Retries {
    until: Instant,
    pause: Duration,
}

impl Retries {
    pub(super) fn new(until: Instant) -> Self {
        Self { until, pause: LIMITS.pause_min }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The call's, where it is not transient or the time for retries is over.
    pub(super) async fn pause(&mut self, error: CallError) -> Result<()> {
        if !error.is_transient() || Instant::now() + self.pause >= self.until {
            return Err(error.into_store());
        }
        tracing::debug!(?error, "a call to the database failed; retrying");
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LIMITS.pause_max);
        Ok(())
    }
}

/// The outcome of a call, with its deadline.
pub(super) async fn in_time<T>(call: impl Future<Output = Called<T>>) -> Called<T> {
    timeout(LIMITS.call_wait, call).await.unwrap_or(Err(CallError::Late))
}

/// Makes a call with its deadline, and retries transient failures.
macro_rules! retried {
    ($metrics:expr, $call:expr) => {{
        let until = $metrics.retry_until();
        let mut retries = $crate::store::postgres::call::Retries::new(until);
        loop {
            match $crate::store::postgres::call::in_time($call).await {
                Ok(value) => break Ok(value),
                Err(error) => {
                    $metrics.failed(&error);
                    if let Err(error) = retries.pause(error).await {
                        break Err(error);
                    }
                }
            }
        }
    }};
}

pub(super) use retried;

/// Declares methods that are one [`retried`] call of [`PgInner`](super::store::PgInner) each: of
/// the same name, or `= call(arguments)`.
macro_rules! calls {
    ($arm:ident: $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        calls! { $arm: $($name($($argument: $type),*) -> $result = $name($($argument),*);)* }
    };
    ($arm:ident: $($name:ident($($argument:ident: $type:ty),*) -> $result:ty =
        $call:ident($($passed:expr),*);)*) => {
        impl $arm {
            $(pub(in crate::store) async fn $name(
                &self, $($argument: $type),*
            ) -> Result<$result> {
                $crate::store::postgres::call::retried!(
                    self.inner.failures, self.inner.$call($($passed),*)
                )
            })*
        }
    };
}

pub(super) use calls;
