//! What a read of a Solana wallet claims: one answer ends no list and makes no transaction missing, and
//! one that no endpoint gives hides nothing below it.

use std::sync::Arc;

use blotter::domain::{Address, Doubts, Height, TxId};
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, UpstreamError};
use blotter::sources::{SolanaLimits, SolanaSource, Source};
use serde_json::json;

use crate::support::reading::all_of;
use crate::support::script::Epoch;
use crate::support::solana_node::{Chain, GENESIS, Net, Ways};

const WALLET: [u8; 32] = [42; 32];

fn source(net: &Arc<Net>, nodes: usize) -> Source {
    let endpoint = |at| EndpointConfig::new(format!("http://node{at}/planted-secret"));
    let transport: Arc<Net> = Arc::clone(net);
    let endpoints = (0..nodes).map(endpoint).collect();
    let pool = Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(Epoch), 3);
    let genesis = Some(GENESIS.to_owned());
    Source::Solana(SolanaSource::new(pool, genesis, SolanaLimits::default()))
}

#[derive(Debug, Default)]
struct Got {
    found: Vec<(Height, TxId)>,
    missing: Vec<(Height, TxId)>,
    doubts: Doubts,
    low: Option<Height>,
    error: Option<UpstreamError>,
}

async fn read(source: &Source) -> Got {
    let mut reader = source.read(all_of(Address::Solana(WALLET)));
    let mut got = Got::default();
    loop {
        match reader.next().await {
            Ok(Some(chunk)) => {
                got.low = Some(chunk.low);
                got.doubts = got.doubts.union(chunk.proof.doubts);
                let ids = chunk.txs.iter().filter_map(|tx| Some((tx.height(), tx.id()?)));
                got.found.extend(ids);
                got.missing.extend(chunk.missing);
            }
            Ok(None) => break,
            Err(error) => {
                got.error = Some(error);
                break;
            }
        }
    }
    got.found.sort_unstable();
    got
}

fn truth(net: &Net) -> Vec<(Height, TxId)> {
    net.chain.lock().unwrap().truth(&[WALLET], 0, Height::MAX)
}

fn chain() -> Chain {
    let mut chain = Chain::new(1000);
    for slot in 1..40 {
        chain.add(slot * 3, &[WALLET]);
    }
    chain
}

/// Issue 16, 7.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_no_endpoint_gives_hides_nothing_below_it() {
    let mut chain = chain();
    let lacks = (50, chain.add(50, &[WALLET]).id);
    let net = Net::new(chain, vec![Ways { lacks: Some(lacks.1), ..Ways::default() }]);
    let one = source(&net, 1);
    let got = read(&one).await;
    assert_eq!((got.error, got.missing, got.low), (None, vec![lacks], Some(0)));
    let mut given = truth(&net);
    given.retain(|one| *one != lacks);
    assert_eq!(got.found, given);
    assert!(net.calls("getTransaction") < 60, "bounded");
    // Another node has it.
    net.set(0, Ways::default());
    let got = read(&one).await;
    assert_eq!((got.error, got.missing, got.found), (None, vec![], truth(&net)));
}

#[tokio::test(start_paused = true)]
async fn an_existing_account_with_an_empty_list_is_in_doubt() {
    let mut chain = chain();
    let system = "11111111111111111111111111111111";
    let info = json!({"data": ["", "base64"], "owner": system, "executable": false, "lamports": 1});
    chain.set_info(WALLET, info);
    let empty = Ways { empty_page_every: 1, ..Ways::default() };
    let net = Net::new(chain, vec![empty.clone(), empty]);
    for nodes in [1, 2] {
        let source = source(&net, nodes);
        let got = read(&source).await;
        assert_eq!((got.error, got.low, got.found), (None, Some(0), vec![]));
        assert_eq!(got.doubts, Doubts::UNCONFIRMED);
    }
    // The lists have come.
    net.set(0, Ways::default());
    let got = read(&source(&net, 1)).await;
    assert_eq!((got.error, got.doubts, got.found), (None, Doubts::NONE, truth(&net)));
}

/// A trade of another account that names none but the wallet's token account.
#[tokio::test(start_paused = true)]
async fn an_answer_without_accounts_hides_none() {
    let account = [7; 32];
    let never = Ways { no_accounts_every: 1, ..Ways::default() };
    let some = Ways { no_accounts_every: 3, ..Ways::default() };
    let good = Ways::default();
    for ways in [vec![some], vec![never.clone(), good.clone()], vec![good, never]] {
        let nodes = ways.len();
        let mut chain = chain();
        chain.open_account(account, 1);
        chain.add(62, &[[5; 32], account]);
        let net = Net::new(chain, ways);
        let got = read(&source(&net, nodes)).await;
        assert_eq!(got.error, None);
        assert!(got.found.iter().any(|(slot, _)| *slot == 62), "{nodes}");
    }
}
