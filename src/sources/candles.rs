//! Prices of native coins by a price service over HTTP: historical prices by coin and time.
//!
//! Off by default: the service learns when trades happened. The request is that of `DefiLlama`'s
//! coins service (`/batchHistorical`, defillama.com/docs/api), which needs no key.

mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::reference::interpolate;
use crate::domain::{Price, UnixSeconds};
use crate::registry::{Chain, Registry};
use crate::rpc::{Ask, CallOptions, Lane, Pool, ReplyClass, Result};
use wire::Record;

/// Requested times are multiples of this many seconds, so that nearby trades share them: the
/// service's finest records are five minutes apart.
const STEP: u32 = 600;
/// Seconds by which a record may differ from the requested time: older records are an hour apart.
const WIDTH: u32 = 3_600;
/// Times per request, so that the URL stays within what web servers accept.
const TIMES_MAX: usize = 60;
/// Seconds between two records above which the price is not interpolated between them.
const APART_MAX: u32 = 2 * WIDTH;

#[derive(Debug, Clone)]
pub struct Candles {
    pool: Pool,
    /// The service's name for each chain's native coin, by the chain's slug.
    coins: Arc<HashMap<String, String>>,
}

impl Candles {
    pub fn new(pool: Pool, registry: &Registry) -> Self {
        let coin = |chain: &Chain| Some((chain.slug.clone(), chain.price_coin.clone()?));
        let coins = registry.chains().iter().filter_map(coin).collect();
        Self { pool, coins: Arc::new(coins) }
    }

    /// Price of a chain's native coin at each time, in the same order; `None` where the service has
    /// none. A price depends on its own time alone. After an error nothing is known: the caller
    /// retries.
    pub async fn prices(
        &self,
        chain: &str,
        at: &[UnixSeconds],
        lane: &Lane,
    ) -> Result<Vec<Option<Price>>> {
        let Some(coin) = self.coins.get(chain) else { return Ok(vec![None; at.len()]) };
        let wanted: BTreeSet<u32> = at.iter().flat_map(|time| points(*time)).collect();
        let wanted: Vec<u32> = wanted.into_iter().collect();
        let mut records = BTreeMap::new();
        for times in wanted.chunks(TIMES_MAX) {
            records.extend(self.records(coin, times, lane).await?);
        }
        Ok(at.iter().map(|time| price(*time, &records)).collect())
    }

    /// For each time the service's nearest record, where one lies within `WIDTH`.
    async fn records(&self, coin: &str, at: &[u32], lane: &Lane) -> Result<BTreeMap<u32, Record>> {
        let coins = serde_json::json!({ coin: at }).to_string();
        let ask = Ask {
            name: "batchHistorical",
            path: "/batchHistorical".to_owned(),
            query: vec![("coins", coins), ("searchWidth", WIDTH.to_string())],
            body: None,
        };
        let reply = self.pool.ask(&ask, read, &CallOptions::new(lane.clone())).await?;
        let records = wire::records(&reply.body, coin)
            .ok_or_else(|| self.pool.malformed(reply.endpoint, "batchHistorical gave no prices"))?;
        let nearest = |time: &u32| {
            let record = records.iter().min_by_key(|r| (r.time.abs_diff(*time), r.time))?;
            (record.time.abs_diff(*time) <= WIDTH).then_some((*time, *record))
        };
        Ok(at.iter().filter_map(nearest).collect())
    }
}

/// The times whose records give the price at `time`: two near ones for records that are minutes
/// apart, two far ones for records that are an hour apart.
fn points(time: UnixSeconds) -> [u32; 4] {
    let below = time.0 - time.0 % STEP;
    let above = below.saturating_add(STEP);
    [below.saturating_sub(WIDTH - STEP), below, above, above.saturating_add(WIDTH - STEP)]
}

/// Interpolates between the nearest records before and after; a single record counts if it is near.
fn price(time: UnixSeconds, records: &BTreeMap<u32, Record>) -> Option<Price> {
    let nearby: Vec<Record> =
        points(time).iter().filter_map(|point| records.get(point).copied()).collect();
    let before = nearby.iter().filter(|r| r.time <= time.0).max_by_key(|r| r.time);
    let after = nearby.iter().filter(|r| r.time >= time.0).min_by_key(|r| r.time);
    match (before, after) {
        (Some(before), Some(after)) if after.time - before.time <= APART_MAX => {
            let span = u64::from(after.time - before.time);
            interpolate(before.price, after.price, u64::from(time.0 - before.time), span)
        }
        (Some(one), _) | (_, Some(one)) => (one.time.abs_diff(time.0) <= STEP).then_some(one.price),
        (None, None) => None,
    }
}

fn read(status: u16, _body: &[u8]) -> ReplyClass {
    match status {
        200..=299 => ReplyClass::Good,
        429 => ReplyClass::SlowDown(None),
        400 | 404 | 414 => ReplyClass::Refused {
            code: i64::from(status),
            message: "the price service does not take the request".to_owned(),
        },
        _ => ReplyClass::Again(format!("status {status}")),
    }
}
