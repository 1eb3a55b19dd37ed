//! The store's file: its permissions, what is rejected, and that older files stay readable.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use blotter::domain::{
    Address, ChainId, Doubts, Height, KeyId, Position, Proof, Resume, Side, SourceAccount, Trade,
    TradeKey, TxId, Units, UnixMillis, UnixSeconds, ValueSource, Wallet, Way,
};
use blotter::store::{
    Anchor, Chunk, DeliveredRange, FILE_NAME, Pending, Store, StoreError, TokenRecord, UsageUpdate,
    WalletPatch,
};
use redb::{ReadableDatabase as _, TableDefinition};

use crate::support::trades::{OPTIONS, chunk, stored, trade, wallet};

/// A store with one trade, closed.
async fn fill(folder: &Path) {
    let store = Store::open(folder, OPTIONS).unwrap();
    let id = store.intern(&wallet(1)).await.unwrap().id;
    store.write_chunk(chunk(id, 0, 9, vec![trade(1, 1, 1)])).await.unwrap();
    store.close().await;
}

fn open(folder: &Path) -> Result<(), StoreError> {
    Store::open(folder, OPTIONS).map(drop)
}

/// Opening fails, says why, and leaves every byte as it was.
#[track_caller]
fn assert_refused(folder: &Path, says: &str) {
    let file = folder.join(FILE_NAME);
    let before = fs::read(&file).unwrap();
    let error = open(folder).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
    assert!(error.to_string().contains(says), "{error}");
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    assert!(fs::read(&file).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn it_comes_back_after_closing() {
    let folder = tempfile::tempdir().unwrap();
    let nested = folder.path().join("a/b");
    fill(&nested).await;
    let store = Store::open(&nested, OPTIONS).unwrap();
    assert_eq!(stored(&store, &wallet(1)).await.trades.len(), 1);
    let stats = store.stats().await.unwrap();
    assert_eq!((stats.rows, stats.wallets, stats.tokens), (1, 1, 1));
    assert_eq!(stats.file_bytes, fs::metadata(nested.join(FILE_NAME)).unwrap().len());
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let nested = folder.path().join("data");
    fill(&nested).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&nested), 0o700);
    assert_eq!(mode(&nested.join(FILE_NAME)), 0o600);
}

#[tokio::test]
async fn a_second_process_gets_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), OPTIONS).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    for word in ["in use", "URL", "stop"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    store.close().await;
    open(folder.path()).unwrap();
}

#[tokio::test]
async fn what_a_killed_process_leaves_opens() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), OPTIONS).unwrap();
    let id = store.intern(&wallet(1)).await.unwrap().id;
    store.write_chunk(chunk(id, 0, 9, vec![trade(1, 1, 1)])).await.unwrap();
    // A copy of the open file, as it is on the disk at this moment.
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(folder.path().join(FILE_NAME), copy.join(FILE_NAME)).unwrap();
    let copy = Store::open(&copy, OPTIONS).unwrap();
    assert_eq!(stored(&copy, &wallet(1)).await.trades.len(), 1);
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["x", "not a database", &"SQLite format 3\0".repeat(1_000)] {
        fs::write(folder.path().join(FILE_NAME), text).unwrap();
        assert_refused(folder.path(), "move it away");
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    let theirs: TableDefinition<'_, u64, u64> = TableDefinition::new("theirs");
    let database = redb::Database::create(&path).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(theirs).unwrap().insert(1, 2).unwrap();
    txn.commit().unwrap();
    drop(database);
    assert_refused(folder.path(), "another program");
    let database = redb::Database::open(&path).unwrap();
    let table = database.begin_read().unwrap().open_table(theirs).unwrap();
    assert_eq!(table.get(1).unwrap().unwrap().value(), 2);
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path()).await;
    let path = folder.path().join(FILE_NAME);
    let database = redb::Database::open(&path).unwrap();
    let txn = database.begin_write().unwrap();
    let table: TableDefinition<'_, &str, u64> = TableDefinition::new("blotter");
    txn.open_table(table).unwrap().insert("format", 99).unwrap();
    txn.commit().unwrap();
    drop(database);
    let before = fs::read(&path).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 99, supported: 3 }), "{error:?}");
    assert!(fs::read(&path).unwrap() == before, "the file was changed");
}

#[tokio::test]
async fn a_file_cut_short_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path()).await;
    let path = folder.path().join(FILE_NAME);
    let whole = fs::read(&path).unwrap();
    for len in [1, 8, 9, 100, 320, 4_095, 4_096, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        assert_refused(folder.path(), "move it away");
    }
    fs::write(&path, &whole).unwrap();
    open(folder.path()).unwrap();
}

#[tokio::test]
async fn a_damaged_header_is_refused_or_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path()).await;
    let path = folder.path().join(FILE_NAME);
    let whole = fs::read(&path).unwrap();
    // The header's two commit slots end at byte 320.
    for at in (0..320).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, bytes).unwrap();
        match Store::open(folder.path(), OPTIONS) {
            Ok(store) => assert_eq!(stored(&store, &wallet(1)).await.trades.len(), 1, "byte {at}"),
            Err(error) => assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}"),
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_cannot_be_created_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let error = open(&folder.path().join("file/data")).unwrap_err();
    assert!(matches!(error, StoreError::Io(_)), "{error:?}");
}

// Files that each format wrote. The values below are what went in when they were made.

/// What the spans of the third format's file rest on: the upper chunk's, and the lower one's.
const PROOF: Proof = Proof { way: Way::Logs, doubts: Doubts::TRC10 };
const RECORDED: [Proof; 2] = [PROOF, Proof { way: Way::Unknown, doubts: Doubts::NONE }];

const FIXTURES: [(&str, [Proof; 2]); 3] = [
    (
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/store/v1.redb"),
        [Proof::UNRECORDED, Proof::UNRECORDED],
    ),
    (
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/store/v2.redb"),
        [Proof::UNRECORDED, Proof::UNRECORDED],
    ),
    (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/store/v3.redb"), RECORDED),
];

struct Fixture {
    wallet: Wallet,
    chunks: Vec<Chunk>,
    patch: WalletPatch,
}

fn fixture_trade(tx: TxId, mint: Address, height: Height, units: Option<Units>) -> Trade {
    let key = TradeKey {
        time: UnixSeconds(u32::try_from(1_600_000_000 + height).unwrap()),
        height,
        index: 3,
        tx,
        leg: 1,
    };
    let side = if units.is_some() { Side::Buy } else { Side::Sell };
    let native = units.map(|units| units >> 1_usize);
    let valued = ValueSource::of_transaction(native);
    Trade { key, side, mint, units, native, valued, venue: "Raydium".into() }
}

fn fixtures(ids: &[blotter::store::WalletId; 3]) -> Vec<Fixture> {
    let parts = [
        (Address::Solana([1; 32]), TxId::solana(&[2; 64]), Some(Units::MAX)),
        (Address::Evm([1; 20]), TxId::Evm([2; 32]), Some(Units::from(1_000_000))),
        (Address::Tron([1; 20]), TxId::Tron([2; 32]), None),
    ];
    (1..)
        .zip(ids)
        .zip(parts)
        .map(|((chain, id), (address, tx, units))| {
            let wallet = Wallet { chain: ChainId(chain), address };
            let token = |mint, symbol: Option<&str>, decimals| TokenRecord {
                chain: wallet.chain,
                mint,
                symbol: symbol.map(Arc::from),
                decimals,
                asked_at: Some(UnixMillis(77)),
            };
            let high = Chunk {
                resume: Some(Resume(vec![chain.to_be_bytes()[1], 9])),
                tokens: vec![token(address, Some("TOK"), Some(9))],
                accounts: vec![SourceAccount {
                    account: [4; 32],
                    amount: Some(5),
                    oldest: Some(6),
                }],
                checked_at: Some(UnixMillis(88)),
                proof: PROOF,
                ..chunk(*id, 500, 600, vec![fixture_trade(tx, address, 550, units)])
            };
            let low = Chunk {
                decoder: 2,
                ..chunk(*id, 100, 200, vec![fixture_trade(tx, address, 150, None)])
            };
            let patch = WalletPatch {
                pending: Some(Some(Pending { key: KeyId(8), until: UnixMillis(99) })),
                anchors: Some(vec![Anchor { height: 555, hash: [7; 32] }]),
                cut: Some(Some(90)),
                ..WalletPatch::default()
            };
            Fixture { wallet, chunks: vec![high, low], patch }
        })
        .collect()
}

fn fixture_usage(id: blotter::store::WalletId) -> UsageUpdate {
    let key =
        |height| fixture_trade(TxId::solana(&[2; 64]), Address::Solana([1; 32]), height, None).key;
    let ranges = vec![DeliveredRange { from: key(550), to: key(150) }];
    UsageUpdate { key: KeyId(8), wallet: id, ranges, total: 2, credit: None }
}

const IDS: [blotter::store::WalletId; 3] =
    [blotter::store::WalletId(0), blotter::store::WalletId(1), blotter::store::WalletId(2)];

/// The current version writes the same data as the file of each format. For a new format, and under
/// a new name, `BLOTTER_FIXTURE=FILE` keeps the file.
#[tokio::test]
async fn a_file_that_is_written_now_is_read_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), OPTIONS).unwrap();
    for Fixture { wallet, chunks, patch } in fixtures(&IDS) {
        let id = store.intern(&wallet).await.unwrap().id;
        for chunk in chunks {
            store.write_chunk(chunk).await.unwrap();
        }
        store.update_wallet(id, 0, patch).await.unwrap();
    }
    store.write_usage(vec![fixture_usage(IDS[0])]).await.unwrap();
    store.close().await;
    let file = folder.path().join(FILE_NAME);
    while redb::Database::open(&file).unwrap().compact().unwrap() {}
    if let Ok(kept) = std::env::var("BLOTTER_FIXTURE") {
        assert!(!fs::exists(&kept).unwrap(), "a format is written once");
        fs::copy(&file, kept).unwrap();
    }
    let store = Store::open(folder.path(), OPTIONS).unwrap();
    check_fixture(&store, RECORDED).await;
    store.close().await;
}

#[tokio::test]
async fn a_file_of_each_format_is_read_row_by_row() {
    for (file, proof) in FIXTURES {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(file, folder.path().join(FILE_NAME)).unwrap();
        // Once as it was written, once more as the first opening left it.
        for _ in 0..2 {
            let store = Store::open(folder.path(), OPTIONS).unwrap();
            check_fixture(&store, proof).await;
            store.close().await;
        }
        // And it can be written to.
        let store = Store::open(folder.path(), OPTIONS).unwrap();
        store.write_chunk(chunk(IDS[0], 201, 499, vec![])).await.unwrap();
        store.close().await;
    }
}

/// `proof`: what the spans of the upper chunk rest on, and of the lower one.
async fn check_fixture(store: &Store, proof: [Proof; 2]) {
    let view = store.view().unwrap();
    for (id, Fixture { wallet, chunks, patch }) in IDS.into_iter().zip(fixtures(&IDS)) {
        let record = view.wallet(&wallet).await.unwrap().unwrap();
        assert_eq!((record.id, record.wallet, record.epoch, record.count), (id, wallet, 0, 2));
        assert_eq!(record.checked_at, Some(UnixMillis(88)));
        assert_eq!(record.cut, Some(90));
        assert_eq!(Some(view.pending_of(id).await.unwrap()), patch.pending);
        assert_eq!(Some(view.anchors(id).await.unwrap()), patch.anchors);
        let spans: Vec<_> = record
            .coverage
            .spans()
            .iter()
            .map(|s| (s.low, s.high, s.decoder, s.resume.clone()))
            .collect();
        let found: Vec<Proof> = record.coverage.spans().iter().rev().map(|s| s.proof).collect();
        assert_eq!(found, proof);
        let resume = chunks[0].resume.clone();
        assert_eq!(spans, [(100, 200, 2, None), (500, 600, 1, resume)]);

        let rows = view.rows(id, Position::Start, 0, 10).await.unwrap().to_vec();
        let trades: Vec<_> = rows.iter().map(|row| &row.trade).collect();
        assert_eq!(trades, [&chunks[0].trades[0], &chunks[1].trades[0]]);
        assert_eq!(rows[0].token.symbol.as_deref(), Some("TOK"));
        assert_eq!(rows[0].token.decimals, Some(9));
        let token = view.token(wallet.chain, &wallet.address).await.unwrap();
        assert_eq!(token.as_ref(), chunks[0].tokens.first());
        assert_eq!(view.accounts(id).await.unwrap(), chunks[0].accounts);
    }
    let usage = fixture_usage(IDS[0]);
    assert_eq!(view.usage(usage.key, IDS[0]).await.unwrap(), usage.ranges);
    assert_eq!(view.usage_total(usage.key).await.unwrap(), 2);
    assert_eq!(view.pending().await.unwrap().len(), 3);
}
