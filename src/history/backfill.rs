//! Value backfill: looks up values whose source failed when their trades were stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{History, Inner, Result};
use crate::domain::{ChainId, Trade, ValueSource, Wallet};
use crate::enrich::{Lookups, Quotes, Retraced, SidePayments};
use crate::rpc::{Lane, Priority};
use crate::store::{NewValue, PriceRecord, WalletId, WantedPlace, WantedValue};

/// Progress of a chain's backfill.
#[derive(Debug)]
struct Backfill {
    position: WantedPlace,
    /// Pause after the next failure.
    pause: Duration,
    until: Option<Instant>,
}

/// A wallet's transactions without a value, and their native side payments.
#[derive(Debug, Default)]
struct PendingTrades {
    trades: Vec<Trade>,
    side_payment: SidePayments,
}

impl History {
    /// Looks up the pending values of a wallet's trades once.
    pub async fn complete_values(&self, wallet: &Wallet) {
        if self.inner.has_duty("values", wallet.chain).await
            && let Err(error) = self.inner.complete_once(wallet).await
        {
            tracing::warn!(%error, "cannot look up pending values; they stay pending");
        }
    }
}

impl Inner {
    /// Looks up pending values at intervals, until the tasks are cancelled.
    pub(super) async fn complete_values(self: Arc<Self>) {
        let mut states: HashMap<ChainId, Backfill> = HashMap::new();
        while self.tasks.run(sleep(self.limits.values_check_every)).await.is_some() {
            if self.is_paused() {
                continue;
            }
            for (id, source) in &self.sources.all() {
                let lane = Lane::unowned(Priority::background());
                let Some(lookups) = self.enricher.lookups(*id, source, &lane) else { continue };
                if !self.has_duty("values", *id).await {
                    continue;
                }
                let (position, pause) = (WantedPlace::default(), self.limits.values_check_every);
                let state = states.entry(*id).or_insert(Backfill { position, pause, until: None });
                let Some(filled) = self.tasks.run(self.fill_chain(&lookups, state)).await else {
                    return;
                };
                if let Err(error) = filled {
                    tracing::warn!(%error, "cannot look up pending values; they stay pending");
                }
            }
        }
    }

    /// Looks up all pending values of a wallet once.
    async fn complete_once(&self, wallet: &Wallet) -> Result<()> {
        let chain = wallet.chain;
        let Some(source) = self.sources.get(&chain) else { return Ok(()) };
        let lane = Lane::unowned(Priority::interactive());
        let Some(lookups) = self.enricher.lookups(chain, &source, &lane) else { return Ok(()) };
        let Some(record) = self.view()?.wallet(wallet).await? else { return Ok(()) };
        let mut position = WantedPlace::of_wallet(chain, record.id);
        loop {
            let max = self.limits.values_check_max;
            let mut wanted = self.view()?.wanted_values(chain, &position, max).await?;
            let is_last = wanted.len() < max || wanted.iter().any(|one| one.id != record.id);
            wanted.retain(|one| one.id == record.id);
            let Some(last) = wanted.last() else { return Ok(()) };
            position = last.place.clone();
            if !self.fill(&lookups, wanted).await? || is_last {
                return Ok(());
            }
        }
    }

    /// Looks up pending values of a chain from where the last round stopped, while sources answer.
    async fn fill_chain(&self, lookups: &Lookups<'_>, state: &mut Backfill) -> Result<()> {
        if state.until.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        loop {
            let max = self.limits.values_check_max;
            let wanted = self.view()?.wanted_values(lookups.chain.id, &state.position, max).await?;
            let is_last = wanted.len() < max;
            let last = wanted.last().map(|wanted| wanted.place.clone());
            state.position = last.filter(|_| !is_last).unwrap_or_default();
            if !wanted.is_empty() && !self.fill(lookups, wanted).await? {
                state.until = Some(Instant::now() + state.pause);
                state.pause = (state.pause * 2).min(self.limits.values_pause_max);
                return Ok(());
            }
            (state.until, state.pause) = (None, self.limits.values_check_every);
            if is_last {
                return Ok(());
            }
        }
    }

    /// Looks up all prices at once, then sets values wallet by wallet. False if sources were
    /// queried and none answered.
    async fn fill(&self, lookups: &Lookups<'_>, wanted: Vec<WantedValue>) -> Result<bool> {
        let mut wallets: BTreeMap<(WalletId, u64), PendingTrades> = BTreeMap::new();
        for one in wanted {
            let waiting = wallets.entry((one.id, one.epoch)).or_default();
            waiting
                .side_payment
                .extend(one.trades.first().map(|row| (row.key.tx, one.side_payment)));
            waiting.trades.extend(one.trades);
        }
        let all: Vec<Trade> = wallets.values().flat_map(|one| &one.trades).cloned().collect();
        let mut quotes = lookups.quotes(&all).await?;
        let mut retraced = Retraced::default();
        let mut news = std::mem::take(&mut quotes.news);
        for ((id, epoch), waiting) in wallets {
            let news = std::mem::take(&mut news);
            retraced.add(self.fill_wallet(lookups, (id, epoch), waiting, &quotes, news).await?);
        }
        let is_asked = quotes.is_asked || retraced.requested > 0;
        let is_answered = retraced.answered > 0 || !quotes.all_later();
        Ok(is_answered || !is_asked)
    }

    async fn fill_wallet(
        &self,
        lookups: &Lookups<'_>,
        (id, epoch): (WalletId, u64),
        PendingTrades { mut trades, side_payment }: PendingTrades,
        quotes: &Quotes,
        news: Vec<PriceRecord>,
    ) -> Result<Retraced> {
        let waiting: Vec<bool> =
            trades.iter().map(|trade| trade.valued == ValueSource::Pending).collect();
        let retraced = lookups.value_again(id, &mut trades, &side_payment, quotes).await?;
        let settled = trades
            .iter()
            .zip(waiting)
            .filter(|(trade, waited)| *waited && trade.valued != ValueSource::Pending);
        let values: Vec<NewValue> = settled
            .map(|(trade, _)| NewValue {
                key: trade.key,
                units: trade.units,
                native: trade.native,
                valued: trade.valued,
            })
            .collect();
        if values.is_empty() && news.is_empty() {
            return Ok(retraced);
        }
        for value in &values {
            self.metrics.values.add(value.valued);
        }
        self.store.write_values(id, epoch, values, news).await?;
        Ok(retraced)
    }
}
