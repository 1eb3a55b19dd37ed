//! The configuration file and the variables: a clear error, or a configuration that can be shown.
//! Behind a line `=` come variables.

#![no_main]

use blotter::cli::fuzzing::config;
use blotter_fuzz::{REGISTRY, target};

const BREAK: &str = "\n=\n";
const REFERENCE: &str = include_str!("../../../data/default.toml");

fn seeds() -> Vec<Vec<u8>> {
    let own = r#"
[chains.sol]
rpc = ["https://a.test/planted-secret", { url = "https://b.test", rate = 5, batch = 3, concurrency = 2, headers = { x-key = "k" } }]
[chains.eth]
enabled = false
portal = "https://portal.test"
explorer = { url = "https://explorer.test/api", key = "k", rate = "5/s" }
discovery = ["portal", "explorer", "alchemy", "logs"]
[chains.mine]
family = "evm"
chain_id = 424242
native = "MINE"
wrapped_native = "0x4200000000000000000000000000000000000006"
rpc = ["http://localhost:8545"]
"#;
    let variables = "BLOTTER_SERVER_LISTEN=127.0.0.1:0\nBLOTTER_STORAGE_CACHE=64MiB\n\
        BLOTTER_CHAINS_ETH_RPC=https://one.test,https://two.test\nBLOTTER_CHAINS_ETH_DISCOVERY=logs\n\
        BLOTTER_PRICES_CANDLES=off\nBLOTTER_SERVER_STREAM_WINDOW=10s\n";
    [REFERENCE, own, &format!("[server]\nlisten = \"localhost:1\"{BREAK}{variables}")]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

fn attempt(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (file, variables) = text.split_once(BREAK).unwrap_or((text, ""));
    config(&REGISTRY, file, variables);
}

target!(seeds, attempt);
