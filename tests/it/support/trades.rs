//! Wallets, trades and chunks for tests of the store, and what must be stored after them.

use std::collections::BTreeMap;

use blotter::domain::{
    Address, ChainId, Coverage, Height, Position, Proof, Side, Span, Trade, TradeKey, TxId, Units,
    UnixSeconds, ValueSource, Wallet,
};
use blotter::store::{Chunk, Store, StoreOptions, WalletId, Written};

pub(crate) const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 8 << 20 };

pub(crate) fn wallet(seed: u8) -> Wallet {
    Wallet { chain: ChainId(1), address: Address::Solana([seed; 32]) }
}

/// A trade whose other fields follow from these.
pub(crate) fn trade(time: u32, height: Height, tx: u8) -> Trade {
    let key = TradeKey {
        time: UnixSeconds(time),
        height,
        index: u32::from(tx % 3),
        tx: TxId::solana(&[tx; 64]),
        leg: u16::from(tx % 2),
    };
    let native = (!tx.is_multiple_of(3)).then(|| Units::MAX >> usize::from(tx));
    Trade {
        key,
        side: if tx.is_multiple_of(2) { Side::Buy } else { Side::Sell },
        mint: Address::Solana([tx % 7; 32]),
        units: (!tx.is_multiple_of(5)).then(|| Units::from(u64::from(tx) * height)),
        native,
        valued: ValueSource::of_transaction(native),
        venue: ["Raydium", "Orca", "Meteora"][usize::from(tx % 3)].into(),
    }
}

pub(crate) fn chunk(id: WalletId, low: Height, high: Height, trades: Vec<Trade>) -> Chunk {
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
        trades,
        tokens: vec![],
        accounts: vec![],
        anchors: None,
        prices: vec![],
        side_payment: std::collections::HashMap::new(),
        checked_at: None,
    }
}

/// What a wallet must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Model {
    pub(crate) trades: BTreeMap<TradeKey, Trade>,
    pub(crate) coverage: Coverage,
    pub(crate) epoch: u64,
}

impl Model {
    pub(crate) fn write(&mut self, chunk: &Chunk) -> Written {
        if chunk.epoch != self.epoch {
            return Written::Stale;
        }
        self.forget(chunk.low, chunk.high);
        self.trades.extend(chunk.trades.iter().map(|trade| (trade.key, trade.clone())));
        self.coverage.insert(Span {
            low: chunk.low,
            high: chunk.high,
            decoder: chunk.decoder,
            resume: chunk.resume.clone(),
            proof: chunk.proof,
            missing: vec![],
        });
        self.written()
    }

    pub(crate) fn reopen(&mut self, low: Height, high: Height) -> Written {
        self.forget(low, high);
        self.coverage.remove(low, high);
        self.written()
    }

    pub(crate) fn cut_back(&mut self, above: Height) -> u64 {
        self.trades.retain(|key, _| key.height <= above);
        self.coverage.remove(above + 1, Height::MAX);
        self.epoch += 1;
        self.epoch
    }

    fn forget(&mut self, low: Height, high: Height) {
        self.trades.retain(|key, _| key.height < low || high < key.height);
    }

    fn written(&self) -> Written {
        let count = self.trades.len().try_into().unwrap();
        Written::Stored { count, coverage: self.coverage.clone() }
    }
}

/// What a wallet holds; read in small slices, so that resuming is tried too.
pub(crate) async fn stored(store: &Store, wallet: &Wallet) -> Model {
    let Some(record) = store.view().unwrap().wallet(wallet).await.unwrap() else {
        return Model::default();
    };
    let (mut trades, mut after) = (BTreeMap::new(), Position::Start);
    loop {
        let rows = store.view().unwrap().rows(record.id, after, 0, 37).await.unwrap();
        let Some(last) = rows.last_key() else { break };
        after = Position::After(last);
        for row in rows {
            assert_eq!(row.token.mint, row.trade.mint);
            assert!(record.coverage.covers(row.trade.key.height), "a row outside of the coverage");
            assert!(trades.insert(row.trade.key, row.trade).is_none(), "a row came twice");
        }
    }
    assert_eq!(record.count, u64::try_from(trades.len()).unwrap(), "the count is not the rows'");
    Model { trades, coverage: record.coverage.clone(), epoch: record.epoch }
}
