//! What a Solana node answers to all that is asked of it: signature lists, accounts, blocks,
//! transactions, tokens, as a tape (`harness/tape.rs`).

#![no_main]

use std::sync::{Arc, LazyLock};

use blotter::domain::Address;
use blotter::rpc::Transport;
use blotter_fuzz::reading::read_all;
use blotter_fuzz::sample::{Sample, chain, solana_source};
use blotter_fuzz::tape::Player;
use blotter_fuzz::target;

static WALLET: LazyLock<Address> = LazyLock::new(|| Sample::solana(None, 1, false).wallet);

fn seeds() -> Vec<Vec<u8>> {
    let sizes = [(1, false), (3, false), (2, true)];
    let record = |(trades, whole_pages)| {
        let sample = Sample::solana(None, trades, whole_pages);
        sample.record(|node| read_all(chain("sol"), &solana_source(node), sample.wallet, 0))
    };
    sizes.map(record).to_vec()
}

fn attempt(bytes: &[u8]) {
    let node: Arc<dyn Transport> = Player::new(bytes);
    read_all(chain("sol"), &solana_source(&node), *WALLET, 0);
}

target!(seeds, attempt);
