//! Trades that nobody made: each a pure function of its wallet and number, so that none is kept.

use blotter::domain::{
    Address, ChainId, Side, Trade, TradeKey, TxId, Units, UnixSeconds, ValueSource, Wallet,
};
use blotter::store::{Chunk, WalletId};

const MINTS: u64 = 5_000;

/// Trade `at` of a wallet, counted from the newest: a pure function, so nothing has to be kept.
pub(crate) fn trade(wallet: u64, at: u64, trades: u64) -> Trade {
    let mut seed = wallet << 32 | at;
    let mut next = || splitmix(&mut seed);
    let height = (trades - at) * 150 + next() % 100;
    let mut tx = [0; 64];
    for part in tx.chunks_mut(8) {
        part.copy_from_slice(&next().to_be_bytes());
    }
    // Few mints have most of the trades.
    let mint = (next() % MINTS).min(next() % MINTS).min(next() % MINTS);
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&mint.to_be_bytes());
    Trade {
        key: TradeKey {
            time: UnixSeconds(u32::try_from(1_600_000_000 + height * 2 / 5).unwrap()),
            height,
            index: 0,
            tx: TxId::solana(&tx),
            leg: 0,
        },
        side: if next().is_multiple_of(2) { Side::Buy } else { Side::Sell },
        mint: Address::Solana(bytes),
        units: Some(Units::from(next() >> (next() % 32))),
        native: Some(Units::from(next() >> (24 + next() % 20))),
        valued: ValueSource::Direct,
        venue: ["Raydium", "Orca", "Meteora", "Pump.fun"][usize::try_from(next() % 4).unwrap()]
            .into(),
    }
}

pub(crate) fn splitmix(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

pub(crate) fn wallet(number: u64) -> Wallet {
    let mut bytes = [3; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Wallet { chain: ChainId(1), address: Address::Solana(bytes) }
}

/// The heights between a chunk's first trade and the one below its last.
pub(crate) fn chunk(id: WalletId, number: u64, from: u64, size: u64, trades: u64) -> Chunk {
    let end = (from + size).min(trades);
    Chunk {
        id,
        epoch: 0,
        low: if end == trades { 0 } else { (trades - end) * 150 + 100 },
        high: (trades - from) * 150 + 99,
        decoder: 1,
        resume: None,
        trades: (from..end).map(|at| trade(number, at, trades)).collect(),
        tokens: vec![],
        accounts: vec![],
        anchors: None,
        prices: vec![],
        beside: std::collections::HashMap::new(),
        checked_at: None,
    }
}
