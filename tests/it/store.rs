//! What the store keeps and how it answers.

use blotter::domain::{
    Address, ChainId, Position, Side, Trade, TradeKey, TxId, Units, UnixSeconds, Wallet,
};
use blotter::store::{Chunk, Store, StoreOptions, WalletId, Written};
use redb::backends::InMemoryBackend;

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 8 << 20 };

fn wallet(seed: u8) -> Wallet {
    Wallet { chain: ChainId(1), address: Address::Solana([seed; 32]) }
}

fn trade(time: u32, height: u64, tx: u8) -> Trade {
    Trade {
        key: TradeKey {
            time: UnixSeconds(time),
            height,
            index: 0,
            tx: TxId::Solana([tx; 64]),
            leg: 0,
        },
        side: Side::Buy,
        mint: Address::Solana([9; 32]),
        units: Some(Units::from(5)),
        native: None,
        venue: "Raydium".into(),
    }
}

fn chunk(id: WalletId, low: u64, high: u64, trades: Vec<Trade>) -> Chunk {
    Chunk {
        id,
        epoch: 0,
        low,
        high,
        decoder: 1,
        resume: None,
        trades,
        tokens: vec![],
        accounts: vec![],
        checked_at: None,
    }
}

#[tokio::test]
async fn rows_come_back_newest_first() {
    let store = Store::on_backend(InMemoryBackend::new(), OPTIONS).unwrap();
    let record = store.intern(&wallet(1)).await.unwrap();
    let trades = vec![trade(10, 100, 1), trade(30, 300, 3), trade(20, 200, 2)];
    let written = store.write_chunk(chunk(record.id, 0, 400, trades.clone())).await.unwrap();
    assert!(matches!(written, Written::Stored { count: 3, .. }));
    let rows = store.view().unwrap().rows(record.id, Position::Start, 0, 10).unwrap();
    let heights: Vec<_> = rows.iter().map(|row| row.trade.key.height).collect();
    assert_eq!(heights, [300, 200, 100]);
    assert_eq!(rows[2].trade, trades[0]);
    store.close().await;
    assert!(store.view().is_err());
}
