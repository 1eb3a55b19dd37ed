//! The real binary, killed repeatedly while clients stream: what a client has, together with what
//! it gets from the restarted server by its last cursor, is each trade once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, Faults, Loopback, LoopbackLimits};
use serde_json::Value;

use crate::support::mangle::Dice;
use crate::support::program::{PATIENCE, Place, Server};

/// The lines of a stream as they come; ends where the connection does, in any way.
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

/// How often the process is killed, each time at another moment.
const KILLS: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_killed_again_and_again_gives_each_trade_once() {
    let model = SolanaModel::new(5);
    let wallets =
        [("killed", 3000), ("too", 1200)].map(|(n, t)| model.add_named(n, WalletPlan::trades(t)));
    let node = DemoNode::new(model.clone(), 1);
    node.set_faults(Faults::latency(Duration::from_millis(20)));
    let nodes = [("node".to_owned(), node)];
    let loopback = Loopback::bind(0, nodes, LoopbackLimits::default()).await.unwrap();
    let (url, handle) = (loopback.url("node"), loopback.handle());
    let running = tokio::task::JoinSet::from_iter([loopback.run()]);
    let truths: Vec<Vec<RowId>> = wallets
        .iter()
        .map(|w| model.truth(*w).map(|t| (t.signature.to_string(), t.mint.to_string())).collect())
        .collect();
    let readers: Vec<Reader> = [0, 1, 0]
        .into_iter()
        .map(|of| Reader { of, wallet: wallets[of].to_string(), ..Reader::default() })
        .collect();
    let client = tokio::task::spawn_blocking(move || stream_through_kills(&url, readers, &truths));
    let kills = client.await.unwrap();
    handle.stop();
    drop(running);
    assert!(kills >= KILLS, "only {kills} kills");
}

/// Signature and token of a row.
type RowId = (String, String);

/// A client that resumes from its last cursor, and starts again when it has everything.
#[derive(Debug, Default)]
struct Reader {
    /// Number of its wallet.
    of: usize,
    wallet: String,
    rows: Vec<RowId>,
    cursor: String,
    walks: usize,
}

impl Reader {
    fn open(&self, server: &Server, key: &str) -> Lines {
        Lines::open(server, &format!("/v1/wallets/{}/history{}", self.wallet, self.cursor), key)
    }

    /// Processes a line; true if it was the last one of the whole history.
    fn take(&mut self, line: &Value, truth: &[RowId]) -> bool {
        for trade in line["trades"].as_array().into_iter().flatten() {
            let text = |name: &str| trade[name].as_str().unwrap().to_owned();
            self.rows.push((text("signature"), text("tokenMint")));
        }
        assert!(truth.starts_with(&self.rows), "{} rows are not the first ones", self.rows.len());
        if line["complete"] != true {
            self.cursor = format!("?cursor={}", line["cursor"].as_str().unwrap());
            return false;
        }
        assert_eq!(self.rows.len(), truth.len(), "reported as complete");
        (self.rows, self.cursor) = (Vec::new(), String::new());
        self.walks += 1;
        true
    }
}

/// Kills the server after a few lines each time; in the end every client gets all.
fn stream_through_kills(url: &str, mut readers: Vec<Reader>, truths: &[Vec<RowId>]) -> usize {
    let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", url);
    let mut server = serve(&place);
    let key = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned();
    let mut seed = Dice(1);
    for kill in 0..KILLS {
        let mut streams: Vec<Lines> = readers.iter().map(|one| one.open(&server, &key)).collect();
        // Reads up to ten lines, from one stream or from all in turn.
        for turn in 0..(kill * 7) % 11 {
            let at = if kill % 3 == 0 { 0 } else { turn % readers.len() };
            let (reader, stream) = (&mut readers[at], &mut streams[at]);
            if stream.next().is_some_and(|line| reader.take(&line, &truths[reader.of])) {
                *stream = reader.open(&server, &key);
            }
        }
        // The moment is random: no event that is waited for decides it.
        std::thread::park_timeout(Duration::from_micros(seed.roll() % 40_000));
        server.signal("KILL");
        server.wait();
        server = serve(&place);
    }
    for reader in &mut readers {
        let walks = reader.walks;
        while reader.walks == walks {
            for line in reader.open(&server, &key) {
                if reader.take(&line, &truths[reader.of]) {
                    break;
                }
            }
        }
    }
    KILLS
}
