//! Prices of native coins by a price service over HTTP: historical prices by coin and time.
//!
//! Off by default: the service learns when trades happened. The request is that of `DefiLlama`'s
//! coins service (`/batchHistorical`, defillama.com/docs/api), which needs no key.

mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::reference::between;
use crate::domain::{Price, UnixSeconds};
use crate::registry::{Chain, Registry};
use crate::rpc::ask::ReplyClass;
use crate::rpc::error::Result;
use crate::rpc::exchange::Ask;
use crate::rpc::pool::{CallOptions, Pool};
use crate::rpc::scheduler::Lane;
use wire::Record;

/// Times that are asked for are multiples of this, so that neighbours share them: the finest
/// records that the service keeps are five minutes apart.
const STEP: u32 = 600;
/// How far from an asked time a record may be: older records are an hour apart.
const WIDTH: u32 = 3_600;
/// Times of one request: what a web server takes as one address.
const TIMES_MAX: usize = 60;
/// The records on both sides of a time are at most so far apart.
const APART_MAX: u32 = 2 * WIDTH;

/// A price service. Cheap to clone.
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

    /// Price of a chain's native coin at each time, in their order. `None`: the service has none.
    /// Each depends on its own time alone. An error: nothing was learned, ask again.
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

    /// The service's record nearest to each time, where it has one near enough.
    async fn records(
        &self,
        coin: &str,
        times: &[u32],
        lane: &Lane,
    ) -> Result<BTreeMap<u32, Record>> {
        let coins = serde_json::json!({ coin: times }).to_string();
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
        Ok(times.iter().filter_map(nearest).collect())
    }
}

/// The times whose records give the price at another: near ones for records that are minutes apart,
/// far ones for those that are an hour apart.
fn points(time: UnixSeconds) -> [u32; 4] {
    let below = time.0 - time.0 % STEP;
    let above = below.saturating_add(STEP);
    [below.saturating_sub(WIDTH - STEP), below, above, above.saturating_add(WIDTH - STEP)]
}

/// Between the nearest records before and after by time; one alone counts where it is near.
fn price(time: UnixSeconds, records: &BTreeMap<u32, Record>) -> Option<Price> {
    let nearby: Vec<Record> =
        points(time).iter().filter_map(|point| records.get(point).copied()).collect();
    let before = nearby.iter().filter(|r| r.time <= time.0).max_by_key(|r| r.time);
    let after = nearby.iter().filter(|r| r.time >= time.0).min_by_key(|r| r.time);
    match (before, after) {
        (Some(before), Some(after)) if after.time - before.time <= APART_MAX => {
            let span = u64::from(after.time - before.time);
            between(before.price, after.price, u64::from(time.0 - before.time), span)
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
