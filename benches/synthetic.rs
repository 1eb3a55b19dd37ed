//! Generated trades: each a pure function of its wallet and number, so that none is kept.

use std::sync::{Arc, LazyLock};

use blotter::domain::{
    Address, ChainId, Proof, Side, Signature, Trade, TradeKey, TxId, Units, UnixSeconds,
    ValueSource, Wallet,
};
use blotter::store::{Chunk, WalletId};

#[path = "raw_trade.rs"]
pub(crate) mod raw_trade;

use raw_trade::{VENUES, address, heights, raw_trade};

/// One text for each, as decoders hand them on.
static NAMES: LazyLock<[Arc<str>; VENUES.len()]> = LazyLock::new(|| VENUES.map(Arc::from));

/// Trade `at` of a wallet, counted from the newest.
pub(crate) fn trade(wallet: u64, at: u64, trades: u64) -> Trade {
    let raw = raw_trade(wallet, at, trades);
    Trade {
        key: TradeKey {
            time: UnixSeconds(raw.time),
            height: raw.height,
            index: 0,
            tx: TxId::Solana(Signature::from_stored(&raw.tx).unwrap()),
            leg: 0,
        },
        side: if raw.sell { Side::Sell } else { Side::Buy },
        mint: Address::Solana(raw.mint),
        units: Some(Units::from(raw.units)),
        native: Some(Units::from(raw.native)),
        valued: ValueSource::Direct,
        venue: NAMES.iter().find(|name| &***name == raw.venue).unwrap().clone(),
    }
}

pub(crate) fn wallet(number: u64) -> Wallet {
    Wallet { chain: ChainId(1), address: Address::Solana(address(number)) }
}

/// The heights between a chunk's first trade and the one below its last.
pub(crate) fn chunk(id: WalletId, number: u64, from: u64, size: u64, trades: u64) -> Chunk {
    let end = (from + size).min(trades);
    let (low, high) = heights(from, end, trades);
    Chunk {
        id,
        epoch: 0,
        low,
        high,
        decoder: 1,
        resume: None,
        proof: Proof::default(),
        missing: vec![],
        reread: None,
        unshown: std::collections::HashSet::new(),
        trades: (from..end).map(|at| trade(number, at, trades)).collect(),
        tokens: vec![],
        accounts: vec![],
        anchors: None,
        prices: vec![],
        side_payment: std::collections::HashMap::new(),
        checked_at: None,
    }
}
