//! Renews the lease of this process, and takes wallets and duties.

use std::sync::atomic::Ordering;

use tokio::sync::watch;
use tokio::time::Instant;

use super::call::{Called, Connection, calls, in_time};
use super::store::{PgInner, PgStore, number};
use super::{LIMITS, schema};
use crate::domain::lock;
use crate::store::{Result, Share, StoreError, StoreFailure, WalletId};

impl PgStore {
    /// Renews the lease until the future is dropped. A process that cannot renew it gives its
    /// wallets up before others may take them.
    pub(in crate::store) async fn keep_lease(&self) {
        let lease = &self.inner.lease;
        let mut missed = false;
        loop {
            let sent = Instant::now();
            let mut pause = LIMITS.heartbeat;
            match in_time(self.inner.beat()).await {
                Ok(node) => {
                    lease.renewed(node, sent + LIMITS.lease);
                    self.inner.failures.renewed();
                    missed = false;
                }
                Err(error) => {
                    self.inner.failures.failed(&error);
                    pause = LIMITS.heartbeat_pause;
                    if !std::mem::replace(&mut missed, true) {
                        let error = error.into_store();
                        tracing::warn!(%error, "cannot renew the lease on the shared store; retrying until it expires");
                    }
                }
            }
            let is_over = lock(&lease.until).is_some_and(|until| {
                Instant::now() + LIMITS.heartbeat + LIMITS.call_wait / 2 >= until
            });
            if is_over {
                lease.lose();
            }
            tokio::time::sleep(pause).await;
        }
    }

    pub(in crate::store) fn losses(&self) -> watch::Receiver<u64> {
        self.inner.lease.losses.subscribe()
    }

    pub(in crate::store) fn share(&self) -> watch::Receiver<Share> {
        self.inner.lease.share.subscribe()
    }

    pub(in crate::store) fn failed_calls(&self) -> Vec<(StoreFailure, u64)> {
        self.inner.failures.counts()
    }

    /// Ends the lease at the end of the process, so that others can take its wallets at once.
    pub(super) async fn release_all(&self) {
        let Some(node) = self.inner.lease.node() else { return };
        self.inner.lease.lose();
        let released = in_time(self.inner.leave(node)).await;
        if let Err(error) = released {
            tracing::warn!(error = %error.into_store(), "cannot release the lease on the shared store; it expires by itself");
        }
    }
}

calls! {
    PgStore:
    hold(id: WalletId) -> bool;
    release(id: WalletId) -> ();
    take_duty(name: &str) -> bool;
}

impl PgInner {
    /// Renews the lease, or takes a new one after the old one has ended.
    async fn beat(&self) -> Called<i64> {
        let connection = self.connection().await?;
        let milliseconds = LIMITS.lease.as_millis().to_string();
        let sql = "UPDATE blotter.node SET until = now() + ($2 || ' ms')::interval
                   WHERE id = $1 AND until > now() RETURNING id";
        let mut row = match self.lease.node() {
            Some(node) => connection.query_opt(sql, &[&node, &milliseconds]).await?,
            None => None,
        };
        if row.is_none() {
            self.lease.lose();
            // The wallets of this process are free at once: it writes nothing under the old number.
            let given_up = self.lease.given_up.load(Ordering::Acquire);
            let sql = "DELETE FROM blotter.node
                       WHERE id = $1 OR until < now() - interval '1 hour' AND NOT EXISTS (
                           SELECT 1 FROM blotter.wallet_state WHERE holder = node.id)";
            connection.execute(sql, &[&given_up]).await?;
            let sql = "INSERT INTO blotter.node (until)
                       VALUES (now() + ($1 || ' ms')::interval) RETURNING id";
            row = connection.query_opt(sql, &[&milliseconds]).await?;
        }
        let row = row.ok_or_else(|| StoreError::Engine("no heartbeat row".to_owned()))?;
        let node = row.try_get(0)?;
        let sql = "SELECT count(*), count(*) FILTER (WHERE id < $1),
                       (SELECT compatible FROM blotter.schema_version)
                   FROM blotter.node WHERE until > now()";
        let live = connection.query_opt(sql, &[&node]).await?;
        let live = live.ok_or_else(|| StoreError::Engine("no heartbeat row".to_owned()))?;
        if let Some(outdated) = live.try_get::<_, Option<i32>>(2)?.and_then(schema::refusal) {
            connection.execute("DELETE FROM blotter.node WHERE id = $1", &[&node]).await?;
            self.lease.lose();
            self.outdate(&outdated);
            return Err(outdated.into());
        }
        connection.give_back();
        let number = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
        let share = Share::new(number(live.try_get(1)?), number(live.try_get(0)?));
        self.lease.share.send_if_modified(|known| std::mem::replace(known, share) != share);
        Ok(node)
    }

    async fn hold(&self, id: WalletId) -> Called<bool> {
        let Some(node) = self.lease.node() else { return Ok(false) };
        // Without an orderly end the holder may resume, so its epoch must become stale.
        let sql = "UPDATE blotter.wallet_state SET holder = $2, version = version + 1,
                       epoch = epoch + CASE WHEN holder <> $2 THEN 1 ELSE 0 END
                   WHERE wallet = $1 AND (holder IS NULL OR holder = $2 OR NOT EXISTS (
                       SELECT 1 FROM blotter.node WHERE node.id = holder AND until > now()))";
        let taken = self.execute(sql, &[&number(id), &node]).await?;
        if taken > 0 {
            self.states.take(&id);
        }
        Ok(taken > 0)
    }

    async fn release(&self, id: WalletId) -> Called<()> {
        let sql = "UPDATE blotter.wallet_state SET holder = NULL
                   WHERE wallet = $1 AND holder = $2";
        // Before the number is read: the lease may be lost while waiting for a connection.
        let connection = self.connection().await?;
        connection.execute(sql, &[&number(id), &self.lease.node()]).await?;
        connection.give_back();
        Ok(())
    }

    async fn take_duty(&self, name: &str) -> Called<bool> {
        let Some(node) = self.lease.node() else { return Ok(false) };
        let connection = self.connection().await?;
        let sql = "INSERT INTO blotter.duty (name, holder) VALUES ($1, $2)
                   ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder
                   WHERE duty.holder = $2 OR NOT EXISTS (
                       SELECT 1 FROM blotter.node WHERE node.id = duty.holder AND until > now())";
        let taken = connection.execute(sql, &[&name, &node]).await?;
        if taken > 0 {
            self.trim_prices(&connection).await?;
        }
        connection.give_back();
        Ok(taken > 0)
    }

    async fn leave(&self, node: i64) -> Called<()> {
        let connection = Connection::take(&self.pool).await?;
        let sql = "UPDATE blotter.wallet_state SET holder = NULL WHERE holder = $1";
        connection.execute(sql, &[&node]).await?;
        connection.execute("DELETE FROM blotter.node WHERE id = $1", &[&node]).await?;
        connection.give_back();
        Ok(())
    }
}
