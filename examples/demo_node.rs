//! A Solana node of the demo chain on a port of 127.0.0.1: try it with curl.
//!
//!     cargo run --example demo_node [PORT]

#![expect(clippy::print_stdout, reason = "the example talks to whoever started it")]

use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, Faults, Loopback, LoopbackLimits, Rate};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(8899), |text| text.parse())?;
    let model = SolanaModel::new(2026);
    let wallets = [60, 5_000, 200_000].map(|trades| {
        let plan = WalletPlan { live_every: Some(25), ..WalletPlan::trades(trades) };
        (trades, model.add_named(&format!("sample of {trades}"), plan))
    });

    // Two endpoints over one chain: one that works, one that often does not.
    let (good, bad) = (DemoNode::new(model.clone(), 1), DemoNode::new(model.clone(), 2));
    bad.set_faults(Faults::storm(Rate(50)));
    let nodes = [("good".to_owned(), good), ("bad".to_owned(), bad)];
    let server = Loopback::bind(port, nodes, LoopbackLimits::default()).await?;

    println!("{}\n{}", server.url("good"), server.url("bad"));
    for (trades, wallet) in wallets {
        println!("wallet of {trades:>7} trades: {wallet}");
    }
    let (_, small) = wallets[0];
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"getSignaturesForAddress","params":["{small}",{{"limit":3}}]}}"#
    );
    println!("curl -s {} -d '{call}'", server.url("good"));

    // The chain moves on by two and a half slots a second, about as the real one does.
    let mut beat = tokio::time::interval(std::time::Duration::from_millis(400));
    let handle = server.handle();
    let mut running = std::pin::pin!(server.run());
    loop {
        tokio::select! {
            () = &mut running => return Ok(()),
            _ = tokio::signal::ctrl_c() => handle.stop(),
            _ = beat.tick() => { model.advance(1); }
        }
    }
}
