//! Writes a chunk of trades, reads it in pages, and goes on behind a cursor.
//!
//! `cargo run --example open_store`

#![expect(clippy::print_stdout, reason = "it shows what it does")]

use blotter::domain::{
    Address, ChainId, Position, Proof, Side, Trade, TradeKey, TxId, Units, UnixSeconds,
    ValueSource, Wallet, Way,
};
use blotter::store::{Chunk, Store, StoreError, StoreOptions};

fn trade(height: u8) -> Trade {
    let time = UnixSeconds(1_700_000_000 + u32::from(height));
    let tx = TxId::solana(&[height; 64]);
    Trade {
        key: TradeKey { time, height: height.into(), index: 0, tx, leg: 0 },
        side: Side::Buy,
        mint: Address::Solana([7; 32]),
        units: Some(Units::from(1_000_000)),
        native: Some(Units::from(25_000)),
        valued: ValueSource::Direct,
        venue: "Raydium".into(),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StoreError> {
    let folder = std::env::temp_dir().join(format!("blotter-example-{}", std::process::id()));
    let store = Store::open(&folder, StoreOptions { cache_bytes: 16 << 20 })?;
    let wallet = Wallet { chain: ChainId(1), address: Address::Solana([1; 32]) };
    let record = store.intern(&wallet).await?;
    let written = store
        .write_chunk(Chunk {
            id: record.id,
            epoch: record.epoch,
            low: 0,
            high: 99,
            decoder: 1,
            resume: None,
            proof: Proof::of(Way::Signatures),
            missing: vec![],
            reread: None,
            unshown: std::collections::HashSet::new(),
            trades: (0..10).map(trade).collect(),
            tokens: vec![],
            accounts: vec![],
            anchors: None,
            prices: vec![],
            side_payment: std::collections::HashMap::new(),
            checked_at: None,
        })
        .await?;
    println!("{written:?}");

    let mut after = Position::Start;
    loop {
        let rows = store.view()?.rows(record.id, after, 0, 4).await?;
        let Some(last) = rows.last_key() else { break };
        let heights: Vec<_> = rows.bare().iter().map(|row| row.key.height).collect();
        println!("page {heights:?}");
        after = Position::After(last);
    }
    store.close().await;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
