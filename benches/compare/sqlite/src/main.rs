//! SQLite with the layout of the store: the same key bytes, tokens and venues as numbers, amounts
//! without leading zeros; write-ahead log, every commit synced, rows in the key's own tree.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

#[path = "../../../drive.rs"]
mod drive;
#[path = "../../../raw_trade.rs"]
mod raw_trade;

use drive::{Engine, Part, Sum};
use raw_trade::{RawTrade, raw_trade};

/// As much memory for pages as ours is given.
const SET_UP: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA cache_size = -65536;
    CREATE TABLE IF NOT EXISTS wallets (
        id INTEGER PRIMARY KEY, address BLOB NOT NULL UNIQUE, count INTEGER NOT NULL, low INTEGER);
    CREATE TABLE IF NOT EXISTS tokens (id INTEGER PRIMARY KEY, mint BLOB NOT NULL UNIQUE);
    CREATE TABLE IF NOT EXISTS venues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE IF NOT EXISTS trades (
        key BLOB PRIMARY KEY, flags INTEGER NOT NULL, token INTEGER NOT NULL,
        venue INTEGER NOT NULL, units BLOB, native BLOB) WITHOUT ROWID;";
const KEY_BYTES: usize = 4 + 4 + 8 + 4 + 72 + 2;

struct Sqlite {
    db: Connection,
    /// What readers and the writer know already, as ours does.
    wallets: HashMap<[u8; 32], u32>,
    tokens: HashMap<[u8; 32], u32>,
    mints: HashMap<u32, [u8; 32]>,
    venue_ids: HashMap<&'static str, u32>,
    venues: HashMap<u32, String>,
}

struct Batch {
    wallet: u64,
    low: u64,
    trades: Vec<RawTrade<'static>>,
}

fn key(id: u32, trade: &RawTrade<'_>) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..4].copy_from_slice(&id.to_be_bytes());
    key[4..8].copy_from_slice(&(!trade.time).to_be_bytes());
    key[8..16].copy_from_slice(&(!trade.height).to_be_bytes());
    key[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    key[20..92].copy_from_slice(&trade.tx);
    key
}

fn minimal(bytes: &[u8; 8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..]
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().unwrap()
}

/// The number of a token or venue, which is new or not.
macro_rules! intern {
    ($db:expr, $known:expr, $name:expr, $find:literal, $add:literal) => {
        match $known.get(&$name) {
            Some(id) => *id,
            None => {
                let found = $db.prepare_cached($find).unwrap().query_row([$name], |row| row.get(0));
                let id = found.optional().unwrap().unwrap_or_else(|| {
                    $db.prepare_cached($add).unwrap().execute([$name]).unwrap();
                    u32::try_from($db.last_insert_rowid()).unwrap()
                });
                $known.insert($name, id);
                id
            }
        }
    };
}

impl Engine for Sqlite {
    type Batch = Batch;

    fn open(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let db = Connection::open(folder.join("trades.sqlite")).unwrap();
        db.execute_batch(SET_UP).unwrap();
        Self {
            db,
            wallets: HashMap::new(),
            tokens: HashMap::new(),
            mints: HashMap::new(),
            venue_ids: HashMap::new(),
            venues: HashMap::new(),
        }
    }

    fn add_wallet(&mut self, wallet: u64) {
        let address = raw_trade::address(wallet);
        intern!(
            self.db,
            self.wallets,
            address,
            "SELECT id FROM wallets WHERE address = ?",
            "INSERT INTO wallets (address, count) VALUES (?, 0)"
        );
    }

    fn prepare(&mut self, part: Part) -> Batch {
        let Part { wallet, from, end, trades } = part;
        let low = raw_trade::heights(from, end, trades).0;
        let trades = (from..end).map(|at| raw_trade(wallet, at, trades)).collect();
        Batch { wallet, low, trades }
    }

    fn write(&mut self, batches: Vec<Batch>) {
        let txn = self.db.transaction().unwrap();
        let insert = "INSERT INTO trades VALUES (?, ?, ?, ?, ?, ?)";
        let state = "UPDATE wallets SET count = count + ?, low = ? WHERE id = ?";
        for mut batch in batches {
            let id = self.wallets[&raw_trade::address(batch.wallet)];
            let mut insert = txn.prepare_cached(insert).unwrap();
            batch.trades.sort_by_cached_key(|trade| key(id, trade));
            for trade in &batch.trades {
                let token = intern!(
                    txn,
                    self.tokens,
                    trade.mint,
                    "SELECT id FROM tokens WHERE mint = ?",
                    "INSERT INTO tokens (mint) VALUES (?)"
                );
                let venue = intern!(
                    txn,
                    self.venue_ids,
                    trade.venue,
                    "SELECT id FROM venues WHERE name = ?",
                    "INSERT INTO venues (name) VALUES (?)"
                );
                let (units, native) = (trade.units.to_be_bytes(), trade.native.to_be_bytes());
                let (units, native) = (minimal(&units), minimal(&native));
                let key = key(id, trade);
                insert.execute(params![key, trade.sell, token, venue, units, native]).unwrap();
            }
            let low = i64::try_from(batch.low).unwrap();
            let count = i64::try_from(batch.trades.len()).unwrap();
            let mut state = txn.prepare_cached(state).unwrap();
            state.execute(params![count, low, id]).unwrap();
        }
        txn.commit().unwrap();
    }

    fn read(&mut self, wallet: u64, behind: Option<RawTrade<'_>>, limit: u64, sum: &mut Sum) -> u64 {
        let Self { db, mints, venues, .. } = self;
        let mut wallet_of =
            db.prepare_cached("SELECT id, count, low FROM wallets WHERE address = ?").unwrap();
        let address = raw_trade::address(wallet);
        let id: Option<u32> = wallet_of.query_row([address], |row| row.get(0)).optional().unwrap();
        let Some(id) = id else { return 0 };
        let mut rows = db
            .prepare_cached(
                "SELECT key, flags, token, venue, units, native FROM trades
                 WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
            )
            .unwrap();
        let start = behind.map_or(id.to_be_bytes().to_vec(), |raw| key(id, &raw).to_vec());
        let end = [&id.to_be_bytes()[..], &[0xFF; KEY_BYTES]].concat();
        let limit = i64::try_from(limit.min(u64::from(u32::MAX))).unwrap();
        let mut rows = rows.query(params![start, end, limit]).unwrap();
        let mut seen = 0;
        while let Some(row) = rows.next().unwrap() {
            let key = row.get_ref(0).unwrap().as_blob().unwrap();
            let (token, venue): (u32, u32) = (row.get(2).unwrap(), row.get(3).unwrap());
            let mint = *mints.entry(token).or_insert_with(|| {
                let find = "SELECT mint FROM tokens WHERE id = ?";
                db.prepare_cached(find).unwrap().query_row([token], |row| row.get(0)).unwrap()
            });
            let venue = venues.entry(venue).or_insert_with(|| {
                let find = "SELECT name FROM venues WHERE id = ?";
                db.prepare_cached(find).unwrap().query_row([venue], |row| row.get(0)).unwrap()
            });
            sum.add(&RawTrade {
                time: !u32::from_be_bytes(array(key, 4)),
                height: !u64::from_be_bytes(array(key, 8)),
                tx: array(key, 20),
                sell: row.get(1).unwrap(),
                mint,
                units: number(row.get_ref(4).unwrap().as_blob().unwrap()),
                native: number(row.get_ref(5).unwrap().as_blob().unwrap()),
                venue,
            });
            seen += 1;
        }
        seen
    }

    /// The last connection moves the log into the file.
    fn close(self) {
        self.db.close().unwrap();
    }
}

fn main() {
    drive::main::<Sqlite>();
}
