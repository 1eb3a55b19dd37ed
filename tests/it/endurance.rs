//! Long runs: an hour of following a node that is up and down, readers and nodes that send a byte a
//! second over real sockets, cursors across `backup` and `compact`.

use std::net::SocketAddr;
use std::time::Duration;

use blotter::demo::solana::WalletPlan;
use blotter::demo::{Faults, Rate};
use blotter::domain::{Cursor, Filter, Row, Wallet};
use blotter::history::{Extent, Step, WalkRequest};
use blotter::rpc::{HttpMethod, HttpTransport, Request, SecretUrl, Transport as _, TransportError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{Instant, sleep, timeout};

use crate::support::program::{Place, Server};
use crate::support::served::{KEY, World as Filled, path, trades, wallet};
use crate::support::truth;
use crate::support::world::{Build, World};

const HOUR: Duration = Duration::from_secs(3600);
const WINDOW: Duration = Duration::from_secs(55);
const SECOND: Duration = Duration::from_secs(1);

/// The rows of one client that follows, resumes by its cursor, and never loses what it has.
#[derive(Default)]
struct Follower {
    history: Vec<Row>,
    live: Vec<Row>,
    cursor: Option<Cursor>,
    windows: usize,
    failed: usize,
}

impl Follower {
    /// One window of a stream, to its final line.
    async fn window(&mut self, world: &World, wallet: Wallet) {
        let request = WalkRequest {
            resume: self.cursor.map(Box::new),
            filter: Filter::default(),
            follow: true,
            window: WINDOW,
            ..World::request(wallet, Extent::All)
        };
        let mut walk = world.history.walk(request).unwrap();
        self.windows += 1;
        loop {
            match walk.next().await {
                Step::Rows(rows) if walk.is_live() => self.live.extend(rows),
                Step::Rows(rows) => self.history.extend(rows),
                Step::End(end) => {
                    assert!(!end.complete, "a stream that follows never is: {end:?}");
                    self.failed += usize::from(end.error.is_some());
                    self.cursor = Some(walk.cursor());
                    return;
                }
            }
            self.cursor = Some(walk.cursor());
        }
    }
}

/// The node alternately answers for 20 to 110 s, and refuses or is silent for 5 to 65 s.
async fn come_and_go(world: &World, ends: Instant) -> usize {
    let mut outages = 0;
    while Instant::now() < ends {
        sleep(Duration::from_secs(20 + outages * 37 % 90)).await;
        let silent = outages % 2 == 0;
        let rate = |on: bool| if on { Rate::ALWAYS } else { Rate::NEVER };
        let (silence, unavailable) = (rate(silent), rate(!silent));
        world.set_faults(Faults { silence, unavailable, ..Faults::none() });
        sleep(Duration::from_secs(5 + outages * 23 % 60)).await;
        world.set_faults(Faults::none());
        outages += 1;
    }
    usize::try_from(outages).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_following_a_node_that_comes_and_goes_loses_nothing() {
    let world = Build::default().world();
    let wallet = world.add("hour", WalletPlan::trades(200));
    let ends = Instant::now() + HOUR;
    let mut client = Follower::default();
    let arrivals = async {
        let mut batch = 0;
        while Instant::now() < ends {
            sleep(Duration::from_millis(900 + batch * 7919 % 40_000)).await;
            world.model.arrive(wallet.address, 1 + batch * 31 % 4);
            batch += 1;
        }
    };
    let follow = async {
        while Instant::now() < ends {
            client.window(&world, wallet).await;
        }
    };
    let (outages, (), ()) = tokio::join!(come_and_go(&world, ends), arrivals, follow);
    // The node is back: the newest rows are read within three windows.
    for _ in 0..3 {
        client.window(&world, wallet).await;
    }
    let live = client.live.len();
    let rows: Vec<Row> = client.live.drain(..).rev().chain(client.history).collect();
    truth::same(&rows, &world.truth(wallet));
    assert!(
        outages > 30 && client.windows > 50 && live > 200,
        "{outages} {} {live}",
        client.windows
    );
}

/// Reads a byte a second for two minutes, from a socket with the smallest buffer that the system
/// allows. What the system still buffers keeps arriving after the server has closed the connection.
async fn drip(address: SocketAddr, request: &str) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    for _ in 0..120 {
        sleep(SECOND).await;
        let _ = timeout(SECOND, stream.read_u8()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_a_byte_a_second_does_not_keep_its_stream() {
    let world = Filled::new();
    world.fill(&wallet(3), 0, trades(30_000), vec![]).await;
    let served = world.serve().await;
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n\r\n",
        path(&wallet(3))
    );
    let others = async {
        for _ in 0..20 {
            let page = served.get(&format!("{}?limit=1000", path(&wallet(3)))).await;
            assert!(page.starts_with("HTTP/1.1 200") && page.ends_with('}'), "{page:.200}");
            sleep(SECOND).await;
        }
    };
    tokio::join!(drip(served.address, &request), others);
    let metrics = world.get("/metrics").await;
    let metrics = String::from_utf8(metrics.body().to_vec()).unwrap();
    assert!(metrics.contains("blotter_http_slow_readers_total 1\n"), "{metrics}");
    assert!(metrics.contains("blotter_http_streams 0\n"), "{metrics}");
    drop(served.stop().await);
    world.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_answers_a_byte_a_second_is_given_up_at_the_time_limit() {
    let (answer, took) = asked_of_slow_node(b"HTTP/1.1 200 OK\r\n\r\n").await;
    assert_eq!(answer, TransportError::Timeout);
    assert!(took <= Duration::from_secs(62), "{took:?}");
}

/// Of a body whose length it names, it is known that the rest will not come in time.
#[tokio::test(start_paused = true)]
async fn a_body_of_a_byte_a_second_is_given_up_early() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
    let (answer, took) = asked_of_slow_node(head).await;
    assert_eq!(answer, TransportError::Broken("its body comes too slowly".to_owned()));
    assert!(took <= SECOND * u32::try_from(head.len() + 4).unwrap(), "{took:?}");
}

/// The error of a request to a node that answers a byte a second, and the time until it.
async fn asked_of_slow_node(head: &[u8]) -> (TransportError, Duration) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let node = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        for byte in head.iter().chain(std::iter::repeat(&b' ')) {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            sleep(SECOND).await;
        }
    };
    let request = Request {
        url: SecretUrl::new(url),
        method: HttpMethod::Post,
        headers: Vec::new(),
        body: b"{}".as_slice().into(),
        timeout: Duration::from_secs(60),
        body_bytes_max: 1 << 20,
    };
    let began = Instant::now();
    let asked = async { HttpTransport::new().unwrap().send(request).await };
    tokio::select! {
        answer = asked => (answer.unwrap_err(), began.elapsed()),
        () = node => panic!("the client hung up first"),
    }
}

fn page(server: &Server, wallet: &str, key: &str, query: &str) -> serde_json::Value {
    let path = format!("/v1/wallets/{wallet}/history?chain=sol&limit=50{query}");
    let answer = server.get(&path, key);
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// All trades from a cursor on.
fn below(server: &Server, wallet: &str, key: &str, cursor: &str) -> Vec<serde_json::Value> {
    let (mut cursor, mut all) = (cursor.to_owned(), Vec::new());
    loop {
        let page = page(server, wallet, key, &format!("&cursor={cursor}"));
        all.extend(page["trades"].as_array().unwrap().iter().cloned());
        match page["cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return all,
        }
    }
}

#[test]
fn cursors_stay_valid_across_a_compaction_and_a_restored_backup() {
    let place = Place::new();
    let demo = ["demo", "--listen", "127.0.0.1:0", "--large", "300", "--data-dir", "data"];
    let server = place.serve(&demo);
    let (key, wallet) = (server.printed("key"), server.printed("wallet"));
    // Reads it whole, so that nothing below is loaded again.
    let first = page(&server, &wallet, &key, "");
    let cursor = first["cursor"].as_str().unwrap().to_owned();
    let rest = below(&server, &wallet, &key, &cursor);
    assert!(rest.len() > 100, "{}", rest.len());
    stop(server);
    for args in [["backup", "copy"].as_slice(), &["compact"]] {
        let ran = place.run(&[args, &["--data-dir", "data"]].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    }
    for folder in ["data", "copy"] {
        let server = place.serve(&[&demo[..5], &["--data-dir", folder]].concat());
        let key = server.printed("key");
        assert!(below(&server, &wallet, &key, &cursor) == rest, "{folder}");
        stop(server);
    }
}

fn stop(mut server: Server) {
    server.child.kill().unwrap();
    server.child.wait().unwrap();
}
