//! What an EVM node, an explorer's lists and a gateway answer, as a tape (`harness/tape.rs`). The
//! first byte chooses how the wallet's transactions are found.

#![no_main]

use std::sync::{Arc, LazyLock};

use blotter::domain::Address;
use blotter::rpc::Transport;
use blotter::sources::Discovery;
use blotter_fuzz::reading::read_all;
use blotter_fuzz::sample::{Sample, chain, evm_source};
use blotter_fuzz::tape::Player;
use blotter_fuzz::target;

static WALLET: LazyLock<Address> = LazyLock::new(|| Sample::evm(chain("eth"), None, 1).wallet);
const WAYS: [Discovery; 4] =
    [Discovery::Portal, Discovery::Explorer, Discovery::Logs, Discovery::Alchemy];

fn way(choice: u8) -> Discovery {
    WAYS[usize::from(choice) % WAYS.len()]
}

fn seeds() -> Vec<Vec<u8>> {
    let record = |choice: u8| {
        let sample = Sample::evm(chain("eth"), None, 2);
        let lines = sample.record(|node| {
            let source = evm_source(node, chain("eth"), way(choice));
            read_all(chain("eth"), &source, sample.wallet, 0);
        });
        [vec![choice], lines].concat()
    };
    (0..4).map(record).collect()
}

fn attempt(bytes: &[u8]) {
    let Some((choice, lines)) = bytes.split_first() else { return };
    let node: Arc<dyn Transport> = Player::new(lines);
    read_all(chain("eth"), &evm_source(&node, chain("eth"), way(*choice)), *WALLET, 0);
}

target!(seeds, attempt);
