//! Makes every request of a source, and checks the answers against its promises.

use std::sync::Arc;
use std::time::Duration;

use blotter::decode;
use blotter::domain::{Address, Height, Moment, TxId};
use blotter::registry::Chain;
use blotter::rpc::{Lane, Priority, UpstreamError};
use blotter::sources::{GapRequest, RawTx, RunAhead, Source, TokenMeta};

use crate::{REGISTRY, on_paused_time};

/// Stands in the address of every endpoint.
pub const SECRET: &str = "planted-secret";
/// A reading gives up, or ends, long before.
const ENDLESS: Duration = Duration::from_secs(24 * 3600);
const SYMBOL_CHARS_MAX: usize = 32;

pub fn lane() -> Lane {
    Lane::new(1, Arc::new(Priority::interactive()))
}

/// An error never contains an endpoint's address, for any text of the endpoint.
pub fn known<T>(result: Result<T, UpstreamError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
            None
        }
    }
}

/// Reads the wallet's history from a height up, decodes it, and asks what else can be asked.
pub fn read_all(chain: &Chain, source: &Source, wallet: Address, low: Height) {
    on_paused_time(async {
        let all = tokio::time::timeout(ENDLESS, read(chain, source, wallet, low));
        all.await.expect("it ends");
    });
}

async fn read(chain: &Chain, source: &Source, wallet: Address, low: Height) {
    let lane = lane();
    let request = GapRequest {
        wallet,
        low,
        high: None,
        resume: None,
        accounts: Vec::new(),
        knows_accounts: true,
        lane: lane.clone(),
        first: true,
        another: None,
    };
    let mut reader = source.read(request);
    reader.set_run_ahead(RunAhead::All);
    let (mut below, mut newest): (Option<Height>, Option<TxId>) = (None, None);
    let mut mints = vec![wallet];
    while let Some(Some(chunk)) = known(reader.next().await) {
        assert!(chunk.low <= chunk.high && below.is_none_or(|low| chunk.high < low));
        below = Some(chunk.low);
        for tx in &chunk.txs {
            assert!((chunk.low..=chunk.high).contains(&tx.height()), "outside of its chunk");
            newest = newest.or(id(tx));
            mints.extend(decoded(chain, wallet, tx).trades.iter().map(|trade| trade.mint));
        }
    }
    drop(reader);
    if let Some(id) = newest {
        known(source.transaction(id, wallet, &lane).await);
    }
    mints.truncate(8);
    let metas = known(source.tokens(&mints, &lane).await).unwrap_or_default();
    metas.iter().for_each(check_token_meta);
    if let Some(balances) = known(source.balances(wallet, &mints, &lane).await) {
        assert_eq!(balances.len(), mints.len());
    }
    known(source.head(&lane).await);
    known(source.block_hash(1_000, &lane).await);
    known(source.block_order(1_000, &lane).await);
    known(source.check_hash(1_000, [7; 32], &lane).await);
    known(source.activity(wallet, &lane).await);
}

/// A price for each moment that was asked for, or an error for all.
pub fn read_prices(source: &Source, moments: &[Moment]) {
    on_paused_time(async {
        let lane = lane();
        let prices = tokio::time::timeout(ENDLESS, source.native_prices(moments, &lane));
        if let Some(prices) = known(prices.await.expect("it ends")) {
            assert_eq!(prices.len(), moments.len());
        }
    });
}

fn check_token_meta(meta: &TokenMeta) {
    let Some(symbol) = &meta.symbol else { return };
    let count = symbol.chars().count();
    assert!(count <= SYMBOL_CHARS_MAX && !symbol.chars().any(char::is_control), "{symbol:?}");
}

fn id(tx: &RawTx) -> Option<TxId> {
    match tx {
        RawTx::Solana(tx, _) => tx.id(),
        RawTx::Evm(tx, _) => Some(TxId::Evm(tx.hash)),
        RawTx::Tron(tx, _) => Some(TxId::Tron(tx.call.hash)),
    }
}

fn decoded(chain: &Chain, wallet: Address, tx: &RawTx) -> decode::Decoded {
    match (tx, wallet) {
        (RawTx::Solana(tx, _), Address::Solana(key)) => decode::solana::decode(&REGISTRY, &key, tx),
        (RawTx::Evm(tx, _), Address::Evm(key)) => {
            decode::evm::decode(REGISTRY.evm(), chain, &key, tx)
        }
        (RawTx::Tron(tx, _), Address::Tron(key)) => {
            decode::tron::decode(REGISTRY.tron(), chain, &key, tx)
        }
        (RawTx::Solana(..) | RawTx::Evm(..) | RawTx::Tron(..), _) => panic!("another family"),
    }
}
