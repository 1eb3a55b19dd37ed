//! Demo nodes on a port of this machine, for the real program.

use blotter::demo::{DemoNode, Loopback, LoopbackLimits};

/// Runs a client while the nodes are served; it is given their addresses, in their order.
pub(crate) async fn with_nodes<T: Send + 'static>(
    nodes: Vec<(String, DemoNode)>,
    client: impl FnOnce(Vec<String>) -> T + Send + 'static,
) -> T {
    let names: Vec<String> = nodes.iter().map(|(name, _)| name.clone()).collect();
    let loopback = Loopback::bind(0, nodes, LoopbackLimits::default()).await.unwrap();
    let urls = names.iter().map(|name| loopback.url(name)).collect();
    let handle = loopback.handle();
    let running = tokio::task::JoinSet::from_iter([loopback.run()]);
    let result = tokio::task::spawn_blocking(move || client(urls)).await;
    handle.stop();
    drop(running);
    result.unwrap()
}
