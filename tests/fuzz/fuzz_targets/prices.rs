//! Answers from which native prices are read: a price service, and the reference pools of each
//! family, as a tape (`harness/tape.rs`). The first byte chooses who is asked.

#![no_main]

use std::sync::{Arc, LazyLock};

use blotter::domain::{Moment, UnixSeconds};
use blotter::rpc::Transport;
use blotter::sources::{Candles, Discovery, Source};
use blotter_fuzz::reading::{known, lane, read_prices};
use blotter_fuzz::sample::{Sample, chain, evm_source, pool, solana_source, tron_source};
use blotter_fuzz::tape::Player;
use blotter_fuzz::{REGISTRY, on_paused_time, target};

/// The newest moments of a wallet; each family's source is asked about its own.
const MOMENTS: usize = 3;

static SOLANA: LazyLock<Vec<Moment>> = LazyLock::new(|| moments(&Sample::solana(None, 3, false)));
static EVM: LazyLock<Vec<Moment>> = LazyLock::new(|| moments(&Sample::evm(chain("eth"), None, 3)));
static TRON: LazyLock<Vec<Moment>> = LazyLock::new(|| moments(&Sample::tron(None, 3, true)));

fn moments(sample: &Sample) -> Vec<Moment> {
    sample.moments.iter().take(MOMENTS).copied().collect()
}

/// Who is asked: the price service, or a source and the moments that it is asked about.
fn ask(choice: u8, node: &Arc<dyn Transport>) {
    let contracts = |slug, way| evm_source(node, chain(slug), way);
    let (source, moments): (Source, &[Moment]) = match choice % 5 {
        0 => return candles(node),
        1 => (solana_source(node), &SOLANA),
        2 => (contracts("eth", Discovery::Logs), &EVM),
        3 => (contracts("base", Discovery::Portal), &EVM),
        _ => (tron_source(node), &TRON),
    };
    read_prices(&source, moments);
}

fn candles(service: &Arc<dyn Transport>) {
    let candles = Candles::new(pool(service, "prices.test"), &REGISTRY);
    let times: Vec<UnixSeconds> = EVM.iter().map(|moment| moment.time).collect();
    let prices = on_paused_time(candles.prices("eth", &times, &lane()));
    if let Some(prices) = known(prices) {
        assert_eq!(prices.len(), times.len());
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let samples = [
        Sample::solana(None, 3, false),
        Sample::evm(chain("eth"), None, 3),
        Sample::evm(chain("base"), None, 3),
        Sample::tron(None, 3, true),
    ];
    let events = (1..)
        .zip(samples)
        .map(|(choice, sample)| [vec![choice], sample.record(|node| ask(choice, node))].concat());
    let record = |moment: &Moment| {
        let at = moment.time.0 - moment.time.0 % 300;
        format!(r#"{{"timestamp":{at},"price":3127.250000000001,"confidence":0.99}}"#)
    };
    let records: Vec<String> = EVM.iter().map(record).collect();
    let body = format!(
        r#"get/batchHistorical {{"coins":{{"coingecko:ethereum":{{"symbol":"ETH","prices":[{}]}}}}}}"#,
        records.join(",")
    );
    events.chain([[b"\0".to_vec(), body.into_bytes()].concat()]).collect()
}

fn attempt(bytes: &[u8]) {
    let Some((choice, lines)) = bytes.split_first() else { return };
    let node: Arc<dyn Transport> = Player::new(lines);
    ask(*choice, &node);
}

target!(seeds, attempt);
