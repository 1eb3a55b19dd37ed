//! What a Tron node and its lists answer, as a tape (`harness/tape.rs`). The first byte
//! chooses whether all is read, or the newest blocks only, as is cheap where there are no lists.

#![no_main]

use std::sync::{Arc, LazyLock};

use blotter::domain::{Address, Height};
use blotter::rpc::Transport;
use blotter_fuzz::reading::read_all;
use blotter_fuzz::sample::{Sample, chain, near_head, tron_source};
use blotter_fuzz::tape::Player;
use blotter_fuzz::target;

static WALLET: LazyLock<Address> = LazyLock::new(|| Sample::evm(chain("tron"), None, 1).wallet);

static NEAR_HEAD: LazyLock<Height> = LazyLock::new(near_head);

fn read(choice: u8, node: &Arc<dyn Transport>) {
    let low = if choice.is_multiple_of(2) { 0 } else { *NEAR_HEAD };
    read_all(chain("tron"), &tron_source(node), *WALLET, low);
}

fn seeds() -> Vec<Vec<u8>> {
    let record = |(trades, choice)| {
        let sample = Sample::tron(None, trades, choice == 0);
        [vec![choice], sample.record(|node| read(choice, node))].concat()
    };
    [(1, 0), (3, 0), (2, 1)].map(record).to_vec()
}

fn attempt(bytes: &[u8]) {
    let Some((choice, lines)) = bytes.split_first() else { return };
    let node: Arc<dyn Transport> = Player::new(lines);
    read(*choice, &node);
}

target!(seeds, attempt);
