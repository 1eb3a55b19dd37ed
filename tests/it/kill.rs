//! The real binary, killed while a client streams: what the client has, together with what it gets
//! by its last cursor from the restarted server, is each trade once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, Faults, Loopback, LoopbackLimits};
use serde_json::Value;

use crate::support::program::{PATIENCE, Place, Server};

/// The lines of a stream as they come; ends where the connection does, in whatever way.
struct Lines {
    from: BufReader<TcpStream>,
    buffer: Vec<u8>,
}

impl Lines {
    fn open(server: &Server, path: &str, key: &str) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = &server.address;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nx-api-key: {key}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut from = BufReader::new(stream);
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            from.read_line(&mut line).unwrap();
        }
        Self { from, buffer: Vec::new() }
    }

    /// One chunk of the transfer encoding; `None` at the end or where it was cut.
    fn chunk(&mut self) -> Option<()> {
        let mut size = String::new();
        self.from.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim_end(), 16).ok().filter(|size| *size > 0)?;
        let mut bytes = vec![0; size + 2];
        self.from.read_exact(&mut bytes).ok()?;
        self.buffer.extend_from_slice(&bytes[..size]);
        Some(())
    }
}

impl Iterator for Lines {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if line.len() > 1 {
                    return Some(serde_json::from_slice(&line).unwrap());
                }
                continue;
            }
            self.chunk()?;
        }
    }
}

fn serve(place: &Place) -> Server {
    place.serve(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_killed_again_and_again_gives_each_trade_once() {
    let model = SolanaModel::new(5);
    let wallet = model.add_named("killed", WalletPlan::trades(2500));
    let node = DemoNode::new(model.clone(), 1);
    node.set_faults(Faults::latency(Duration::from_millis(20)));
    let nodes = [("node".to_owned(), node)];
    let loopback = Loopback::bind(0, nodes, LoopbackLimits::default()).await.unwrap();
    let (url, handle) = (loopback.url("node"), loopback.handle());
    let running = tokio::task::JoinSet::from_iter([loopback.run()]);
    let client =
        tokio::task::spawn_blocking(move || stream_through_kills(&url, &wallet.to_string()));
    let (rows, kills) = client.await.unwrap();
    handle.stop();
    drop(running);
    let truth: Vec<(String, String)> =
        model.truth(wallet).map(|t| (t.signature.to_string(), t.mint.to_string())).collect();
    assert!(kills >= 5, "only {kills} kills: the load was too quick for the test to mean much");
    assert!(rows == truth, "{} rows, {} true ones", rows.len(), truth.len());
}

/// Kills the server after a few lines each time, until a stream ends complete.
fn stream_through_kills(url: &str, wallet: &str) -> (Vec<(String, String)>, usize) {
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", url);
    let mut server = serve(&place);
    let key = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned();
    let (mut rows, mut cursor, mut kills) = (Vec::new(), String::new(), 0);
    loop {
        let path = format!("/v1/wallets/{wallet}/history{cursor}");
        let mut lines = Lines::open(&server, &path, &key);
        for _ in 0..=kills % 4 {
            let Some(line) = lines.next() else { break };
            if line["complete"] == true {
                return (rows, kills);
            }
            for trade in line["trades"].as_array().into_iter().flatten() {
                let text = |name: &str| trade[name].as_str().unwrap().to_owned();
                rows.push((text("signature"), text("tokenMint")));
            }
            cursor = format!("?cursor={}", line["cursor"].as_str().unwrap());
        }
        server.signal("KILL");
        server.wait();
        kills += 1;
        server = serve(&place);
    }
}
