//! The store of the program, through its public interface, for `benches/compare/store.py`: what
//! it can be asked is in `drive.rs`.

#![expect(clippy::print_stdout, reason = "figures are the result of this program")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run should stop")]
#![expect(clippy::indexing_slicing, reason = "as above")]

use std::collections::HashMap;
use std::path::Path;

use blotter::domain::{Address, Position, RowRef, Side, Signature, TradeKey, TxId, UnixSeconds};
use blotter::store::{Chunk, Store, StoreOptions, WalletId};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::runtime::Runtime;

mod drive;
mod synthetic;

use drive::{Engine, Part, Sum};
use synthetic::raw_trade;
use synthetic::raw_trade::RawTrade;

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 64 << 20 };
/// As streams and pages read.
const SLICE: u64 = 1_000;

struct Ours {
    store: Store,
    runtime: Runtime,
    ids: HashMap<u64, WalletId>,
}

impl Engine for Ours {
    type Batch = Chunk;

    fn open(folder: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { store: Store::open(folder, OPTIONS).unwrap(), runtime, ids: HashMap::new() }
    }

    fn add_wallet(&mut self, wallet: u64) {
        let record = self.runtime.block_on(self.store.intern(&synthetic::wallet(wallet)));
        self.ids.insert(wallet, record.unwrap().id);
    }

    fn prepare(&mut self, part: Part) -> Chunk {
        let Part { wallet, from, end, trades } = part;
        synthetic::chunk(self.ids[&wallet], wallet, from, end - from, trades)
    }

    fn write(&mut self, batches: Vec<Chunk>) {
        let written = join_all(batches.into_iter().map(|chunk| self.store.write_chunk(chunk)));
        for one in self.runtime.block_on(written) {
            one.unwrap();
        }
    }

    fn read(
        &mut self,
        wallet: u64,
        behind: Option<RawTrade<'_>>,
        limit: u64,
        sum: &mut Sum,
    ) -> u64 {
        let mut after = behind.map_or(Position::Start, |raw| Position::After(key(&raw)));
        let mut seen = 0;
        let record = now(self.store.view().unwrap().wallet(&synthetic::wallet(wallet))).unwrap();
        let Some(id) = record.map(|record| record.id) else { return 0 };
        while seen < limit {
            let slice = usize::try_from(SLICE.min(limit - seen)).unwrap();
            let rows = now(self.store.view().unwrap().rows(id, after, 0, slice)).unwrap();
            for row in rows.iter() {
                sum.add(&raw(row));
            }
            seen += u64::try_from(rows.len()).unwrap();
            match rows.last_key() {
                Some(last) if rows.len() == slice => after = Position::After(last),
                Some(_) | None => break,
            }
        }
        seen
    }

    fn close(self) {
        self.runtime.block_on(self.store.close());
    }
}

/// The outcome of a read of the embedded store, which is ready at once.
fn now<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().unwrap()
}

fn key(raw: &RawTrade<'_>) -> TradeKey {
    let tx = TxId::Solana(Signature::from_stored(&raw.tx).unwrap());
    let (time, height) = (UnixSeconds(raw.time), raw.height);
    TradeKey { time, height, index: 0, tx, leg: 0 }
}

fn raw(row: RowRef<'_>) -> RawTrade<'_> {
    let RowRef { bare: trade, token, venue } = row;
    let (TxId::Solana(tx), Address::Solana(mint)) = (trade.key.tx, token.mint) else {
        unreachable!("only trades of one family are written")
    };
    RawTrade {
        time: trade.key.time.0,
        height: trade.key.height,
        tx: tx.to_stored(),
        sell: trade.side == Side::Sell,
        mint,
        units: trade.units.unwrap().try_into().unwrap(),
        native: trade.native.unwrap().try_into().unwrap(),
        venue,
    }
}

fn main() {
    drive::main::<Ours>();
}
