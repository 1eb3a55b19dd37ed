//! The Tron source against nodes with the faults of real ones: every possible trade exactly once,
//! in chunks without gaps, within limits of calls.

use std::sync::Arc;

use blotter::domain::{Address, Height, Resume, TxId};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, Pool, PoolLimits, UpstreamError};
use blotter::sources::{
    GapReader, GapRequest, HashCheck, RawChunk, RawTx, RunAhead, Source, TronLimits, TronSource,
};
use proptest::prelude::*;

use crate::support::reading::{all_of, lane};
use crate::support::script::Epoch;
use crate::support::tron_node::{Chain, Net, WALLET, Ways, millis};

/// Blocks below the head that lists are not trusted with.
const LAG: Height = 40;

fn source_at(net: &Arc<Net>) -> Source {
    let endpoint = EndpointConfig::new("http://node/planted-secret");
    let transport: Arc<Net> = Arc::clone(net);
    let pool = Pool::new(vec![endpoint], transport, PoolLimits::default(), Arc::new(Epoch), 3);
    let registry = Registry::embedded().unwrap();
    let chain = registry.chain_named("tron").unwrap();
    assert_eq!(chain.index_lag, LAG);
    Source::Tron(TronSource::new(pool, chain, TronLimits::default()))
}

fn net(chain: Chain, ways: Ways) -> Arc<Net> {
    Arc::new(Net::new(chain, ways))
}

fn all() -> GapRequest {
    all_of(Address::Tron(WALLET))
}

/// The result of a read, whose chunks are checked as they come.
#[derive(Debug, Default)]
struct Got {
    chunks: Vec<(Height, Height)>,
    found: Vec<(Height, [u8; 32])>,
    resumes: Vec<Option<Resume>>,
    error: Option<UpstreamError>,
}

impl Got {
    fn take(&mut self, chunk: RawChunk) {
        assert!(chunk.low <= chunk.high);
        if let Some((low, _)) = self.chunks.last() {
            assert_eq!(chunk.high + 1, *low, "chunks touch");
        }
        self.chunks.push((chunk.low, chunk.high));
        let mut above = chunk.high;
        for tx in &chunk.txs {
            let RawTx::Tron(tx, time) = tx else { panic!("of another family") };
            let height = tx.call.block;
            assert!(height >= chunk.low && height <= above, "newest first, inside");
            above = height;
            assert_eq!(u64::from(time.0), millis(height) / 1000);
            self.found.push((height, tx.call.hash));
        }
        self.resumes.push(chunk.resume);
    }

    #[track_caller]
    fn is(&self, truth: &[(Height, [u8; 32])]) {
        assert_eq!(self.error, None);
        let mut found = self.found.clone();
        found.sort_unstable();
        assert_eq!(found.len(), truth.len());
        assert_eq!(found, truth);
    }
}

async fn drain(reader: &mut GapReader, most: usize) -> Got {
    let mut got = Got::default();
    while got.chunks.len() < most {
        match reader.next().await {
            Ok(Some(chunk)) => got.take(chunk),
            Ok(None) => return got,
            Err(error) => {
                got.error = Some(error);
                return got;
            }
        }
    }
    got
}

async fn read(source: &Source, request: GapRequest) -> Got {
    let low = request.low;
    let mut reader = source.read(request);
    reader.set_run_ahead(RunAhead::All);
    let got = drain(&mut reader, usize::MAX).await;
    if got.error.is_none() {
        assert_eq!(got.chunks.last().map(|chunk| chunk.0), Some(low));
    }
    got
}

/// Trades of all kinds with noise between, some in one block.
fn mixed(count: u64) -> Chain {
    let mut chain = Chain::new(count * 20 + 200);
    for number in 0..count {
        let height = 100 + number * 20;
        match number % 7 {
            0 => drop(chain.relayed(height)),
            1 => drop(chain.sale(height)),
            2 => {
                chain.swap(height);
                chain.swap(height);
            }
            _ => drop(chain.swap(height)),
        }
        chain.noise(height + number % 3, number);
    }
    chain
}

#[tokio::test(start_paused = true)]
async fn finds_every_trade_by_the_lists() {
    let net = net(mixed(900), Ways::default());
    let got = read(&source_at(&net), all()).await;
    got.is(&net.chain.truth(0, u64::MAX));
    // Two lists of a page for each 200 lines, each page overlapping the last, and one to confirm; by
    // two answers each.
    assert!(net.calls("transactions") <= 2 * 14, "{}", net.calls("transactions"));
    assert!(net.calls("trc20") <= 2 * 21, "{}", net.calls("trc20"));
    // The node keeps inner calls: each info once.
    assert_eq!(net.asked_again(), Vec::<String>::new());
    let infos = u64::try_from(got.found.len()).unwrap();
    assert_eq!(net.calls("wallet/gettransactioninfobyid"), infos);
    // Only those that another account sent had to be fetched separately.
    assert_eq!(net.calls("wallet/gettransactionbyid"), 129);
}

#[tokio::test(start_paused = true)]
async fn a_wallet_without_anything_is_known_at_once() {
    let net = net(Chain::new(5_000), Ways::default());
    let got = read(&source_at(&net), all()).await;
    got.is(&[]);
    assert_eq!(got.chunks, [(0, 5_000 - LAG)]);
    assert_eq!(net.calls("transactions") + net.calls("trc20"), 8, "each list four times");
}

#[tokio::test(start_paused = true)]
async fn payments_and_what_others_send_cost_no_further_call() {
    let mut chain = Chain::new(1_000_000);
    for number in 0..5_000 {
        chain.airdrop(1_000 + number * 10);
        if number % 50 == 0 {
            chain.noise(1_000 + number * 10, number / 50 % 3);
        }
    }
    chain.swap(500);
    let net = net(chain, Ways::default());
    let got = read(&source_at(&net), all()).await;
    got.is(&net.chain.truth(0, u64::MAX));
    assert_eq!(got.found.len(), 1);
    // One in so many is read to find how far down it is.
    assert!(
        net.calls("wallet/gettransactioninfobyid") <= 6,
        "{}",
        net.calls("wallet/gettransactioninfobyid")
    );
}

#[tokio::test(start_paused = true)]
async fn lost_cursors_and_lost_rows_lose_nothing() {
    for (cut_pages, lose_rows) in [(2, 0), (3, 0), (0, 4), (3, 5)] {
        let ways = Ways { cut_pages, lose_rows, ..Ways::default() };
        let net = net(mixed(600), ways);
        let got = read(&source_at(&net), all()).await;
        // A page may lack rows in its middle undetectably: only its edges are compared with what is
        // known. Here the first rows of a page are lost, so the overlap is.
        got.is(&net.chain.truth(0, u64::MAX));
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_that_fills_pages_is_read_whole() {
    let mut chain = Chain::new(2_000);
    chain.swap(300);
    for _ in 0..950 {
        chain.swap(700);
    }
    chain.swap(1_100);
    let net = net(chain, Ways::default());
    let got = read(&source_at(&net), all()).await;
    got.is(&net.chain.truth(0, u64::MAX));
}

#[tokio::test(start_paused = true)]
async fn a_plain_node_gives_the_same_by_events() {
    for logs_range in [5_000, 700] {
        let ways = Ways { no_index: true, logs_range, ..Ways::default() };
        let net = net(mixed(900), ways);
        let got = read(&source_at(&net), all()).await;
        got.is(&net.chain.truth(0, u64::MAX));
        let windows = net.chain.truth(0, u64::MAX).last().unwrap().0 / logs_range;
        // Before each chunk, the node names its chain once more.
        let most = 2 * (windows / 5) + 12 + u64::try_from(got.chunks.len()).unwrap();
        assert!(net.calls("jsonrpc") <= most, "{} of {most}", net.calls("jsonrpc"));
    }
}

#[tokio::test(start_paused = true)]
async fn goes_on_from_any_chunk_with_a_hint_and_without() {
    for no_index in [false, true] {
        let net = net(mixed(300), Ways { no_index, ..Ways::default() });
        let source = source_at(&net);
        let truth = net.chain.truth(0, u64::MAX);
        for most in [1, 2, 4, 7] {
            let upper = drain(&mut source.read(all()), most).await;
            let (low, _) = *upper.chunks.last().unwrap();
            for resume in [upper.resumes.last().unwrap().clone(), None] {
                let below = GapRequest { high: Some(low - 1), resume, first: false, ..all() };
                let rest = read(&source, below).await;
                assert_eq!(rest.chunks[0].1, low - 1);
                let mut found = [upper.found.clone(), rest.found.clone()].concat();
                found.sort_unstable();
                assert_eq!(found, truth);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_asks_for_the_new_heights_only() {
    let net = net(mixed(2_000), Ways::default());
    let source = source_at(&net);
    let low = 2_000 * 20 - 500;
    let got = read(&source, GapRequest { low, first: false, ..all() }).await;
    let high = 2_000 * 20 + 200 - LAG;
    got.is(&net.chain.truth(low, high));
    assert_eq!(net.calls("transactions") + net.calls("trc20"), 8, "each page by two answers");
    // Nothing new: the head has not come further than what is known.
    let none = source.read(GapRequest { low: high + 1, first: false, ..all() }).next().await;
    assert!(matches!(none, Ok(None)));
    net.chain.set_head(high + LAG + 30);
    let got = read(&source, GapRequest { low: high + 1, first: false, ..all() }).await;
    assert_eq!(got.chunks, [(high + 1, high + 30)]);
}

#[tokio::test(start_paused = true)]
async fn what_the_lists_may_lack_is_left_for_later() {
    let mut chain = Chain::new(1_000);
    chain.swap(1_000 - LAG + 1);
    chain.swap(1_000 - LAG);
    let net = net(chain, Ways::default());
    let got = read(&source_at(&net), all()).await;
    got.is(&net.chain.truth(0, 1_000 - LAG));
    assert_eq!((got.found.len(), got.chunks[0].1), (1, 1_000 - LAG));
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_comes_late_is_waited_for_and_never_dropped() {
    let late = net(mixed(20), Ways { late_infos: 3, ..Ways::default() });
    let got = read(&source_at(&late), all()).await;
    got.is(&late.chain.truth(0, u64::MAX));
    let never = net(mixed(20), Ways { late_infos: u64::MAX, ..Ways::default() });
    let got = read(&source_at(&never), all()).await;
    // Blocks have their infos.
    got.is(&never.chain.truth(0, u64::MAX));
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_chain_is_not_believed() {
    let net = net(mixed(20), Ways { wrong_chain: true, ..Ways::default() });
    let got = read(&source_at(&net), all()).await;
    assert!(matches!(got.error, Some(UpstreamError::WrongChain { .. })), "{:?}", got.error);
}

#[tokio::test(start_paused = true)]
async fn an_exchange_of_the_protocol_is_asked_about_once() {
    let mut chain = Chain::new(1_000);
    for height in 100..140 {
        chain.exchange(height, 9);
    }
    let net = net(chain, Ways::default());
    let mut reader = source_at(&net).read(all());
    let got = drain(&mut reader, usize::MAX).await;
    got.is(&net.chain.truth(0, u64::MAX));
    // Once for each that was on its way before the first answer.
    assert!(net.calls("getexchangebyid") <= 10, "{}", net.calls("getexchangebyid"));
}

#[tokio::test(start_paused = true)]
async fn answers_about_blocks() {
    let net = net(mixed(20), Ways::default());
    let source = source_at(&net);
    let lane = lane();
    let hash = source.block_hash(140, &lane).await.unwrap().unwrap();
    assert_eq!(hash[24..], 140_u64.to_be_bytes());
    let same = source.check_hash(140, hash, &lane).await.unwrap();
    assert_eq!(same, HashCheck::Same);
    // One endpoint, and it says so twice.
    assert_eq!(source.check_hash(140, [1; 32], &lane).await.unwrap(), HashCheck::Differs);
    assert_eq!(source.block_hash(1_000_000, &lane).await.unwrap(), None);
    let order = source.block_order(140, &lane).await.unwrap();
    let ids = net.chain.truth(140, 140).into_iter().map(|(_, id)| TxId::Tron(id));
    assert!(ids.clone().count() == 2 && ids.into_iter().all(|id| order.contains(&id)));
    assert_eq!(source.head(&lane).await.unwrap(), 20 * 20 + 200);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However trades, noise and faults fall: by lists or by events, each trade once.
    #[test]
    fn any_history_comes_whole(
        steps in proptest::collection::vec((0_u64..4_000, 0_u8..6), 0..120),
        no_index in any::<bool>(),
        cut_pages in 0_u64..4,
        late_infos in 0_u64..3,
    ) {
        let mut chain = Chain::new(steps.iter().map(|(step, _)| step).sum::<u64>() + 100);
        let mut height = 1;
        for (step, kind) in &steps {
            height += step;
            match kind {
                0 => drop(chain.relayed(height)),
                1 => drop(chain.sale(height)),
                2 | 3 => drop(chain.swap(height)),
                _ => chain.noise(height, *step),
            }
        }
        let head = height + 99;
        chain.set_head(head);
        let ways = Ways { no_index, cut_pages, late_infos, ..Ways::default() };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let net = net(chain, ways);
            let got = read(&source_at(&net), all()).await;
            got.is(&net.chain.truth(0, head - LAG));
        });
    }
}
