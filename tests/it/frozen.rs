//! The real binary: each sync of a load is frozen in turn and the process killed there. What a
//! client had received is on the disk, and both images of the file continue to the full history.
//! The method is redb's own, on a process instead of a backend.

#![expect(clippy::print_stderr, reason = "prints how much was tried")]
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoNode, Loopback, LoopbackLimits};
use serde_json::Value;

use crate::support::program::{PATIENCE, Place};

const SHIM: &str = include_str!("support/freeze.c");
const SERVE: [&str; 5] = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"];
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Signature and token of a row.
type RowId = (String, String);

fn shim(folder: &Path) -> PathBuf {
    let (source, shim) = (folder.join("freeze.c"), folder.join("freeze.so"));
    fs::write(&source, SHIM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(&source);
    assert!(compiler.status().unwrap().success());
    shim
}

/// The rows of all complete lines that arrived.
fn rows(answer: &[u8]) -> Vec<RowId> {
    let text = String::from_utf8_lossy(answer);
    let values = text.split('\n').filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let trades = values.flat_map(|line| line["trades"].as_array().cloned().unwrap_or_default());
    let field = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    trades.map(|row| (field(&row, "signature"), field(&row, "tokenMint"))).collect()
}

/// The outcome of a run: the rows that were delivered before the freeze, if it froze at all.
struct Run {
    delivered: Vec<RowId>,
    froze: bool,
}

struct Bench {
    place: Place,
    shim: PathBuf,
    key: String,
    history: String,
}

impl Bench {
    fn mark(&self) -> PathBuf {
        self.place.path().join("mark")
    }

    /// Streams a history from a server whose `at`th sync never returns, and kills it there.
    fn freeze(&self, at: usize) -> Run {
        let mut command = self.place.command(&SERVE);
        command.env("LD_PRELOAD", &self.shim).env("FREEZE_AT", at.to_string());
        command.env("FREEZE_MARK", self.mark());
        command.env("FREEZE_DURABLE", self.place.path().join("durable"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (listens, listening) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = stdout.read_line(&mut line);
            let _ = listens.send(line);
        });
        let began = Instant::now();
        let address = loop {
            assert!(began.elapsed() < PATIENCE, "neither frozen nor listening");
            match listening.recv_timeout(LOOK_EVERY) {
                Ok(line) => {
                    break line.trim().strip_prefix("listening on http://").map(str::to_owned);
                }
                Err(_) if self.mark().exists() => break None,
                Err(_) => {}
            }
        };
        let stream = address.as_ref().map(|address| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(self.request(&self.history).as_bytes()).unwrap();
            thread::spawn(move || {
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer);
                answer
            })
        });
        while !self.mark().exists() && stream.as_ref().is_some_and(|stream| !stream.is_finished()) {
            assert!(began.elapsed() < PATIENCE, "neither frozen nor ended");
            thread::park_timeout(LOOK_EVERY);
        }
        let froze = self.mark().exists();
        if let (true, Some(address)) = (froze, &address) {
            // A hanging disk delays only requests that need it.
            let mut other = TcpStream::connect(address).unwrap();
            other.set_read_timeout(Some(PATIENCE)).unwrap();
            other.write_all(self.request("/healthz").as_bytes()).unwrap();
            let mut answer = String::new();
            other.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 "), "sync {at}: {answer}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let answer = stream.map_or(vec![], |stream| stream.join().unwrap());
        Run { delivered: rows(&answer), froze }
    }

    fn request(&self, path: &str) -> String {
        let key = &self.key;
        format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n"
        )
    }

    /// A folder with one image of the store, as a server before some node would find it.
    fn image(&self, store: &Path, node: &str) -> Place {
        let place = Place::new()
            .variable("BLOTTER_CHAINS_SOL_RPC", node)
            .variable("BLOTTER_SERVER_HEAD_WAIT", "10ms")
            .variable("BLOTTER_SERVER_PAGE_WAIT", "10ms");
        let data = place.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::copy(self.place.path().join("data/keys.toml"), data.join("keys.toml")).unwrap();
        if store.exists() {
            fs::copy(store, data.join("trades.redb")).unwrap();
        }
        place
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sync_frozen_in_turn_loses_nothing_that_was_delivered() {
    let model = SolanaModel::new(5);
    let wallet = model.add_named("frozen", WalletPlan::trades(600));
    let nodes = [("node".to_owned(), DemoNode::new(model.clone(), 1))];
    let loopback = Loopback::bind(0, nodes, LoopbackLimits::default()).await.unwrap();
    let (url, handle) = (loopback.url("node"), loopback.handle());
    let running = tokio::task::JoinSet::from_iter([loopback.run()]);
    let truth: Vec<RowId> =
        model.truth(wallet).map(|t| (t.signature.to_string(), t.mint.to_string())).collect();
    let history = format!("/v1/wallets/{wallet}/history");
    let frozen = tokio::task::spawn_blocking(move || freeze_each(&url, &history, &truth));
    let (syncs, delivered) = frozen.await.unwrap();
    eprintln!("{syncs} syncs frozen in turn, {delivered} rows delivered before");
    handle.stop();
    drop(running);
    assert!(
        syncs > 15 && delivered > 300,
        "it proves little: {syncs} syncs, {delivered} rows delivered"
    );
}

/// How many syncs there were, and how many rows were delivered before all freezes.
fn freeze_each(url: &str, history: &str, truth: &[RowId]) -> (usize, usize) {
    let scratch = tempfile::tempdir().unwrap();
    let (shim, mut delivered) = (shim(scratch.path()), 0);
    for at in 1.. {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", url);
        let made = place.run(&["keys", "create", "--json", "--data-dir", "data"]);
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        let key = made["key"].as_str().unwrap().to_owned();
        let bench = Bench { place, shim: shim.clone(), key, history: history.to_owned() };
        let run = bench.freeze(at);
        assert!(
            truth.starts_with(&run.delivered),
            "sync {at}: {} rows are not the first",
            run.delivered.len()
        );
        if !run.froze {
            assert_eq!(run.delivered.len(), truth.len(), "not frozen, and not all of it");
            return (at - 1, delivered);
        }
        delivered += run.delivered.len();
        let live = bench.place.path().join("data/trades.redb");
        let durable = bench.place.path().join("durable");
        check_delivered(&bench, at, &durable, &run.delivered);
        // What the system had not yet synced is there, or not.
        let place = bench.image(if at % 2 == 0 { &durable } else { &live }, url);
        let server = place.serve(&SERVE);
        let all = server.get(history, &bench.key).body;
        assert!(all.contains("\"complete\":true"), "sync {at}: {all}");
        assert!(rows(all.as_bytes()) == truth, "sync {at}: another history");
    }
    unreachable!()
}

/// Delivered rows are on the disk: no node is configured from which to read them again.
fn check_delivered(bench: &Bench, at: usize, durable: &Path, delivered: &[RowId]) {
    if delivered.is_empty() {
        return;
    }
    let place = bench.image(durable, "http://127.0.0.1:1");
    let server = place.serve(&SERVE);
    let page = server.get(&format!("{}?limit={}", bench.history, delivered.len()), &bench.key);
    assert_eq!(page.status, 200, "sync {at}: {}", page.body);
    assert!(
        rows(page.body.as_bytes()) == delivered,
        "sync {at}: of {} rows some are gone",
        delivered.len()
    );
}
