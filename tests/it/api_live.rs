//! The API over wallets that are loaded while they are read: what a client assembles equals the
//! demo chain's model.

use std::time::Duration;

use blotter::api::{Api, ApiLimits, ApiParts, Keys};
use blotter::demo::Faults;
use blotter::demo::solana::WalletPlan;
use blotter::domain::{Side, Wallet};
use bytes::Bytes;
use serde_json::Value;
use warp::http::Response;

use crate::support::served::{KEY, json, key, lines, path, ring, trades_of};
use crate::support::world::{Build, World};

fn api(world: &World, limits: ApiLimits) -> Api {
    let keys = Keys::new(ring(&[(KEY, key(1, |_| {}))]));
    Api::new(ApiParts { history: world.history.clone(), keys, limits, seed: 1 })
}

async fn get(api: &Api, path: &str) -> Response<Bytes> {
    warp::test::request().path(path).header("x-api-key", KEY).reply(&api.routes()).await
}

fn plan(trades: u64) -> WalletPlan {
    WalletPlan { keeper_percent: 0, ..WalletPlan::trades(trades) }
}

/// Signature, side and mint of each row.
fn received(rows: &[Value]) -> Vec<[String; 3]> {
    let field = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter().map(|row| ["signature", "side", "tokenMint"].map(|name| field(row, name))).collect()
}

/// The same of the model.
fn truth(world: &World, wallet: Wallet) -> Vec<[String; 3]> {
    let side = |side| if side == Side::Buy { "buy" } else { "sell" };
    let rows = world.truth(wallet).into_iter();
    rows.map(|fact| [fact.tx.to_string(), side(fact.side).to_owned(), fact.mint.to_string()])
        .collect()
}

/// Follows the cursor as a client does; also how many requests that took.
async fn page_through(api: &Api, wallet: &Wallet, limit: u64) -> (Vec<Value>, usize) {
    let (mut pages, mut next) = (Vec::new(), format!("{}?limit={limit}", path(wallet)));
    loop {
        let page = json(&get(api, &next).await);
        let cursor = page["cursor"].as_str().map(str::to_owned);
        pages.push(page);
        assert!(pages.len() < 1000, "the walk does not end");
        match cursor {
            Some(cursor) => next = format!("{}?limit={limit}&cursor={cursor}", path(wallet)),
            None => break,
        }
    }
    assert_eq!(pages.last().unwrap()["complete"], true);
    (trades_of(&pages), pages.len())
}

#[tokio::test(start_paused = true)]
async fn pages_and_a_stream_of_unknown_wallets_are_the_models_rows() {
    let world = Build::default().world();
    let api = api(&world, ApiLimits::default());
    let (streamed, paged) = (world.add("streamed", plan(900)), world.add("paged", plan(400)));
    let stream = lines(&get(&api, &path(&streamed)).await);
    assert_eq!(received(&trades_of(&stream)), truth(&world, streamed));
    let last = stream.last().unwrap();
    assert_eq!(last["complete"], true);
    assert_eq!(last["firstTrade"], trades_of(&stream).last().unwrap()["blockTime"]);
    let (rows, _) = page_through(&api, &paged, 70).await;
    assert_eq!(received(&rows), truth(&world, paged));
    assert_eq!(trades_of(&lines(&get(&api, &path(&paged)).await)), rows);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_its_window_cuts_is_resumed_to_the_end() {
    let world = Build::default().world();
    world.set_faults(Faults::latency(Duration::from_millis(300)));
    let window = Duration::from_secs(2);
    let api = api(&world, ApiLimits { stream_window: window, ..ApiLimits::default() });
    let wallet = world.add("large", plan(3000));
    let (mut rows, mut next, mut cuts) = (Vec::new(), path(&wallet), 0);
    loop {
        let stream = lines(&get(&api, &next).await);
        rows.extend(trades_of(&stream));
        let last = stream.last().unwrap();
        if last["complete"] == true {
            break;
        }
        cuts += 1;
        assert!(cuts < 1000 && last.get("error").is_none(), "{last}");
        next = format!("{}?cursor={}", path(&wallet), last["cursor"].as_str().unwrap());
    }
    assert!(cuts > 0);
    assert_eq!(received(&rows), truth(&world, wallet));
}
