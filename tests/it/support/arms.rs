//! Tests of the store on both of its arms. The shared one needs a `PostgreSQL` server on which a test
//! may create databases: its address is in `BLOTTER_TEST_POSTGRES`; without one, those tests are skipped
//! and say so.

#[cfg(feature = "postgres")]
use blotter::history::Tasks;
use blotter::store::Store;
use redb::backends::InMemoryBackend;

use super::trades::OPTIONS;

/// Names the server.
#[cfg(feature = "postgres")]
const VARIABLE: &str = "BLOTTER_TEST_POSTGRES";

pub(crate) fn embedded() -> Store {
    Store::on_backend(InMemoryBackend::new(), OPTIONS).unwrap()
}

#[expect(clippy::print_stdout, reason = "what is skipped is counted")]
fn skipped(reason: &str) {
    println!("SKIPPED: {reason}");
}

/// A store on an empty database; `None` without a server.
#[cfg(feature = "postgres")]
pub(crate) async fn shared() -> Option<Store> {
    Some(connect(&database().await?).await)
}

#[cfg(not(feature = "postgres"))]
pub(crate) async fn shared() -> Option<Store> {
    skipped("built without the feature `postgres`");
    None
}

#[cfg(feature = "postgres")]
pub(crate) async fn connect(url: &str) -> Store {
    let options = blotter::store::SharedOptions { url: url.to_owned(), connections: 4 };
    Store::connect(&options).await.unwrap()
}

/// Whether a server is named, and so one is installed.
#[cfg(feature = "postgres")]
pub(crate) fn is_tested() -> bool {
    let is_named = std::env::var_os(VARIABLE).is_some();
    if !is_named {
        skipped(&format!("no PostgreSQL server is named by {VARIABLE}"));
    }
    is_named
}

/// The address of an empty database of its own.
#[cfg(feature = "postgres")]
pub(crate) async fn database() -> Option<String> {
    if !is_tested() {
        return None;
    }
    let server = std::env::var(VARIABLE).unwrap();
    let name = format!("blotter_{}", hex::encode(getrandom::u64().unwrap().to_be_bytes()));
    let (client, connection) =
        tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
    let driver = Tasks::new().spawn(async { connection.await.unwrap() });
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    drop(client);
    driver.await.unwrap();
    let (address, _) = server.rsplit_once('/').unwrap();
    Some(format!("{address}/{name}"))
}

/// Runs test functions that take a store on both arms.
macro_rules! both_arms {
    ($($name:ident,)+) => { $(
        mod $name {
            use crate::support::arms;

            #[tokio::test]
            async fn embedded() {
                super::$name(arms::embedded()).await;
            }

            #[tokio::test]
            async fn shared() {
                if let Some(store) = arms::shared().await {
                    super::$name(store).await;
                }
            }
        }
    )+ };
}

pub(crate) use both_arms;
