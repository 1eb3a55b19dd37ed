//! Single refusals, each for a moment, on a chain with one endpoint of each kind.

use std::time::Duration;

use blotter::demo::{Faults, Refusal};
use tokio::time::sleep;

use super::client::Client;
use super::finish;
use super::way::Way;
use super::world::World;

/// A refusal while a wallet is asked for the first time, or for what is new, holds nothing up for
/// long, and loses nothing.
async fn check(way: Way, method: &'static str, how: Refusal) {
    for is_known in [false, true] {
        let world = World::plain(way);
        let mut client = Client::new(0, 1, 1);
        let mut target = world.chain.head() - 200;
        if is_known {
            finish(&world, &mut client, target, true).await;
            world.chain.arrive(world.wallets[0].address, 5);
            target = world.chain.head();
            world.chain.advance(200);
            world.learn();
        }
        let refused = || Faults { refused: vec![(method, how)], ..Faults::none() };
        super::trouble::say(&format!("{} {method} {how:?}, known {is_known}", way.name()));
        world.set_faults(refused);
        client.ask(&world, false).await.unwrap();
        sleep(Duration::from_secs(3)).await;
        world.set_faults(Faults::none);
        finish(&world, &mut client, target, true).await;
        world.check_all(0, target);
        drop(client);
        world.history.stop();
        assert!(world.history.tasks().shutdown(Duration::from_secs(5)).await);
    }
}

async fn check_all(ways: &[Way], methods: &[&'static str], refusals: &[Refusal]) {
    for way in ways {
        for method in methods {
            for how in refusals {
                check(*way, method, *how).await;
            }
        }
    }
}

const RPC: [&str; 5] = [
    "eth_getLogs",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    "eth_getBlockByNumber",
    "eth_chainId",
];

#[tokio::test(start_paused = true)]
async fn a_missing_method_for_a_moment_is_asked_for_again() {
    check_all(&[Way::Logs, Way::Explorer, Way::Portal], &RPC, &[Refusal::NoMethod]).await;
    let tron = ["eth_getLogs", "eth_chainId"];
    check_all(&[Way::Events], &tron, &[Refusal::NoMethod]).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_not_there_for_a_moment_is_asked_for_again() {
    check_all(&[Way::Logs, Way::Explorer], &RPC, &[Refusal::NotFound]).await;
    let lists = ["txlist", "tokentx", "txlistinternal"];
    check_all(&[Way::Explorer], &lists, &[Refusal::NotFound]).await;
    check_all(&[Way::Portal], &["finalized-stream", "finalized-head"], &[Refusal::NotFound]).await;
    let tron = ["transactions", "trc20", "gettransactioninfobyid", "eth_getLogs"];
    check_all(&[Way::Lists, Way::Events], &tron, &[Refusal::NotFound]).await;
    check_all(&[Way::Lists], &["getexchangebyid"], &[Refusal::NotFound, Refusal::MethodNotAllowed])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_for_a_moment_is_asked_for_again() {
    let lists = ["txlist", "tokentx", "txlistinternal"];
    check_all(&[Way::Explorer], &lists, &Refusal::ALL[..7]).await;
    check_all(&[Way::Explorer], &["txlistinternal"], &Refusal::ALL[7..]).await;
    check_all(&[Way::Lists], &["transactions", "trc20"], &Refusal::ALL[..7]).await;
}
