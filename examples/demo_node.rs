//! The demo chains' own interfaces on a port of 127.0.0.1: try them with curl.
//!
//!     cargo run --example demo_node [PORT]

#![expect(clippy::print_stdout, reason = "the example prints for its user")]

use blotter::demo::{DemoChains, Faults, LARGE_TRADES, Loopback, LoopbackLimits, Rate};
use blotter::registry::Registry;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(8899), |text| text.parse())?;
    let chains = DemoChains::new(2026, &Registry::embedded()?);
    let wallets = chains.add_samples(LARGE_TRADES);

    // Next to each endpoint that works, one that often does not.
    let mut nodes = chains.nodes();
    for (path, bad) in chains.nodes() {
        bad.set_faults(Faults::storm(Rate(50)));
        nodes.push((format!("bad/{path}"), bad));
    }
    let paths: Vec<String> = nodes.iter().map(|(path, _)| path.clone()).collect();
    let server = Loopback::bind(port, nodes, LoopbackLimits::default()).await?;
    for path in paths {
        println!("{}", server.url(&path));
    }
    for wallet in &wallets {
        println!("{:>10} {:>7} trades: {}", wallet.chain, wallet.trades, wallet.address);
    }
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
    println!("curl -s {} -d '{call}'", server.url("evm/eth"));

    // The Solana chain moves on by two and a half slots a second, about as the real one does.
    let mut beat = tokio::time::interval(std::time::Duration::from_millis(400));
    let handle = server.handle();
    let mut running = std::pin::pin!(server.run());
    loop {
        tokio::select! {
            () = &mut running => return Ok(()),
            _ = tokio::signal::ctrl_c() => handle.stop(),
            _ = beat.tick() => { chains.solana().advance(1); }
        }
    }
}
