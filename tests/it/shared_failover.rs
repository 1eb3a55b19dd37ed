//! The shared store after a failover that lost commits: the test's own server, whose data is set
//! back.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use blotter::domain::{Trade, Wallet};
use blotter::history::Tasks;
use blotter::store::{Store, StoreError, Written};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::support::arms;
use crate::support::trades::{chunk, stored, trade, wallet};

/// Longer than all repeats of a call.
const PATIENCE: Duration = Duration::from_secs(40);

struct Server {
    folder: TempDir,
}

impl Server {
    /// `None` where no server is to be tested with.
    fn start() -> Option<(Self, String)> {
        arms::is_tested().then(|| {
            let server = Self { folder: tempfile::Builder::new().tempdir_in("/tmp").unwrap() };
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(server.folder.path(), open).unwrap();
            let address = server.run("start");
            (server, address.trim().to_owned())
        })
    }

    fn run(&self, command: &str) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shared_store/postgres");
        let folder = self.folder.path().join("server");
        let output = Command::new(script).arg(command).arg(folder).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.run("stop");
    }
}

/// A row of a token and at a venue of its own.
fn row(height: u64, name: u8) -> Trade {
    let time = 100 + u32::try_from(height).unwrap();
    let mint = blotter::domain::Address::Solana([name; 32]);
    let venue = format!("venue {name}").into();
    Trade { mint, venue, ..trade(time, height, name) }
}

/// Stores a span of ten heights with one row.
async fn write(store: &Store, wallet: &Wallet, low: u64, name: u8) -> Result<Written, StoreError> {
    let record = store.intern(wallet).await?;
    let end = Instant::now() + PATIENCE;
    while !store.hold(record.id).await? {
        assert!(Instant::now() < end, "the wallet cannot be held");
        sleep(Duration::from_millis(50)).await;
    }
    let epoch = stored(store, wallet).await.epoch;
    let rows = vec![row(low + 5, name)];
    let chunk = chunk(record.id, low, low + 9, rows);
    store.write_chunk(blotter::store::Chunk { epoch, ..chunk }).await
}

/// What another process reads of a wallet: names of venues and tokens, newest first.
async fn names(url: &str, of: u8) -> Vec<(String, u8)> {
    let rows = stored(&arms::connect(url).await, &wallet(of)).await.trades;
    rows.values().map(|row| (row.venue.to_string(), row.mint.bytes()[0])).collect()
}

fn named(name: u8) -> (String, u8) {
    (format!("venue {name}"), name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_commits_that_a_failover_lost_are_never_given_again() {
    let Some((server, url)) = Server::start() else { return };
    let one = arms::connect(&url).await;
    let beating = one.clone();
    let beating = Tasks::new().spawn(async move { beating.keep_lease().await });
    let written = write(&one, &wallet(1), 0, 1).await.unwrap();
    assert!(matches!(written, Written::Stored { count: 1, .. }), "{written:?}");
    server.run("keep");
    // A wallet, a token, a venue and a span that are lost, and that this process has cached.
    write(&one, &wallet(2), 0, 2).await.unwrap();
    write(&one, &wallet(1), 10, 2).await.unwrap();
    let lost = one.intern(&wallet(2)).await.unwrap().id;
    server.run("lose");
    // Another process assigns the same numbers anew.
    let two = arms::connect(&url).await;
    let other = Tasks::new().spawn({
        let two = two.clone();
        async move { two.keep_lease().await }
    });
    write(&two, &wallet(3), 0, 3).await.unwrap();
    assert_ne!(two.intern(&wallet(3)).await.unwrap().id, lost, "a lost number is another's");
    assert!(stored(&one, &wallet(1)).await.coverage.run_low(19).is_none(), "the span was lost");
    let written = write(&one, &wallet(1), 20, 2).await.unwrap();
    assert!(matches!(written, Written::Stored { count: 2, .. }), "{written:?}");
    write(&one, &wallet(2), 20, 4).await.unwrap();
    assert_eq!(names(&url, 1).await, [named(2), named(1)]);
    assert_eq!(names(&url, 2).await, [named(4)], "its first row was lost");
    assert_eq!(names(&url, 3).await, [named(3)]);
    beating.abort();
    other.abort();
}
