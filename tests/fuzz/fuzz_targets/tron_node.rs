//! What a Tron node and its lists answer, as a tape (`harness/tape.rs`).

#![no_main]

use std::sync::{Arc, LazyLock};

use blotter::domain::Address;
use blotter::upstream::Transport;
use blotter_fuzz::reading::read_all;
use blotter_fuzz::sample::{Sample, chain, tron_source};
use blotter_fuzz::tape::Player;
use blotter_fuzz::target;

static WALLET: LazyLock<Address> = LazyLock::new(|| Sample::evm(chain("tron"), None, 1).wallet);

fn seeds() -> Vec<Vec<u8>> {
    let record = |(trades, lists)| {
        let sample = Sample::tron(None, trades, lists);
        sample.record(|node| read_all(chain("tron"), &tron_source(node), sample.wallet))
    };
    [(1, true), (3, true), (2, false)].map(record).to_vec()
}

fn attempt(bytes: &[u8]) {
    let node: Arc<dyn Transport> = Player::new(bytes);
    read_all(chain("tron"), &tron_source(&node), *WALLET);
}

target!(seeds, attempt);
