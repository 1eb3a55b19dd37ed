//! The shared store with large wallets: neither the rows that a statement deletes nor the number of
//! statements of a write grows with the wallet.

use std::time::Duration;

use blotter::domain::{Address, ChainId, Height, KeyId, Minute, SourceAccount, Trade};
use blotter::store::transfer::{Copied, Transfer};
use blotter::store::{
    Chunk, Credit, DeliveredRange, PriceRecord, Store, StoreError, TokenRecord, UsageUpdate,
    WalletId, Written,
};

use crate::shared_faults::run;
use crate::support::arms;
use crate::support::trades::{chunk, stored, trade, wallet};
use crate::support::wire::Wire;

/// The latency of a request and of its answer: a few hundred of them exceed a call's time limit.
const SLOW: Duration = Duration::from_millis(20);

/// Refuses to delete more rows at once than a part of a wallet has.
const NO_LARGE_DELETE: &str = "
CREATE FUNCTION no_large_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM gone) > 5001 THEN RAISE EXCEPTION 'too many rows at once'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER no_large_delete AFTER DELETE ON blotter.trade REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION no_large_delete()";

/// One at each height.
fn trades(heights: std::ops::Range<u32>) -> Vec<Trade> {
    let one = |height: u32| trade(100 + height, Height::from(height), height.to_be_bytes()[3]);
    heights.map(one).collect()
}

async fn fill(store: &Store, seed: u8, rows: u32) -> WalletId {
    let id = store.intern(&wallet(seed)).await.unwrap().id;
    for low in (0..rows).step_by(4_000) {
        let next = rows.min(low + 4_000);
        let part = chunk(id, low.into(), Height::from(next) - 1, trades(low..next));
        let written = store.write_chunk(part).await.unwrap();
        assert!(matches!(written, Written::Stored { .. }), "{written:?}");
    }
    id
}

#[tokio::test]
async fn a_slow_database_takes_a_chunk_with_hundreds_of_accounts_tokens_and_prices() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let (store, plain) = (arms::connect(&wire.url).await, arms::connect(&url).await);
    let id = store.intern(&wallet(1)).await.unwrap().id;
    let bytes = |number: u16| {
        let mut bytes = [7; 32];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        bytes
    };
    let account = |number| SourceAccount { account: bytes(number), amount: Some(1), oldest: None };
    let token = |number| TokenRecord {
        decimals: Some(6),
        ..TokenRecord::bare(ChainId(1), Address::Solana(bytes(number)))
    };
    let with_all = |amount| Chunk {
        // The last of two of one account counts.
        accounts: (0..400).map(account).chain([SourceAccount { amount, ..account(0) }]).collect(),
        tokens: (0..400).map(token).collect(),
        prices: (0..400).map(|at| PriceRecord::Candle(Minute(at), None)).collect(),
        ..chunk(id, 0, 9, trades(0..9))
    };
    wire.slow(SLOW);
    for amount in [None, Some(9)] {
        let written = store.write_chunk(with_all(amount)).await.unwrap();
        assert!(matches!(written, Written::Stored { count: 9, .. }), "{written:?}");
        let view = plain.view().unwrap();
        let accounts = view.accounts(id).await.unwrap();
        assert_eq!(accounts.len(), 400);
        assert_eq!(accounts[0], SourceAccount { amount, ..account(0) });
    }
    // Records of stored tokens are merged, those of others are inserted.
    let named = |number| TokenRecord {
        symbol: Some(format!("T{number}").into()),
        ..TokenRecord::bare(ChainId(1), Address::Solana(bytes(number)))
    };
    plain.write_tokens((200..600).map(named).collect()).await.unwrap();
    let view = plain.view().unwrap();
    for (number, symbol, decimals) in
        [(199, None, Some(6)), (399, Some("T399"), Some(6)), (599, Some("T599"), None)]
    {
        let mint = Address::Solana(bytes(number));
        let found = view.token(ChainId(1), &mint).await.unwrap().unwrap();
        assert_eq!((found.symbol.as_deref(), found.decimals), (symbol, decimals), "{number}");
    }
    let kept = view.candle(ChainId(1), Minute(399)).await.unwrap();
    assert_eq!(kept, blotter::store::KeptCandle::Nothing);
}

/// The keys have read every second row of the newest ones, each in a range of its own.
fn usage(keys: std::ops::Range<u64>, id: WalletId, rows: std::ops::Range<u32>) -> Vec<UsageUpdate> {
    let range = |trade: Trade| DeliveredRange { from: trade.key, to: trade.key };
    let ranges: Vec<_> = trades(rows).into_iter().rev().step_by(2).map(range).collect();
    let total = u64::try_from(ranges.len()).unwrap();
    let one = |key| UsageUpdate {
        key: KeyId(key),
        wallet: id,
        ranges: ranges.clone(),
        total,
        credit: None,
    };
    keys.map(one).collect()
}

#[tokio::test]
async fn a_wallet_of_many_rows_and_ranges_is_forgotten_in_parts_over_a_slow_wire() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let (store, plain) = (arms::connect(&wire.url).await, arms::connect(&url).await);
    let id = fill(&plain, 1, 12_000).await;
    plain.write_usage(usage(1..3, id, 11_400..12_000)).await.unwrap();
    run(&url, &[NO_LARGE_DELETE]).await;
    wire.slow(SLOW);
    assert_eq!(store.forget(wallet(1), [5; 4]).await.unwrap(), Some(12_000));
    let view = plain.view().unwrap();
    assert!(view.wallet(&wallet(1)).await.unwrap().is_none());
    let again = plain.intern(&wallet(1)).await.unwrap().id;
    assert_ne!(again, id);
    for key in [KeyId(1), KeyId(2)] {
        let credit = view.credit(key, again).await.unwrap();
        assert_eq!(credit.map(|credit| credit.left), Some(300));
    }
    assert!(view.all_usage().await.unwrap().is_empty());
    assert!(stored(&plain, &wallet(1)).await.trades.is_empty());
}

/// Takes no rows from a wallet that has lost some already.
const ONE_DELETE: &str = "
CREATE FUNCTION one_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM blotter.trade) < 12000 THEN RAISE EXCEPTION 'no more'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER one_delete BEFORE DELETE ON blotter.trade
FOR EACH STATEMENT EXECUTE FUNCTION one_delete()";

#[tokio::test]
async fn a_forget_that_fails_between_two_parts_leaves_a_whole_wallet_and_can_be_repeated() {
    let Some(url) = arms::database().await else { return };
    let store = arms::connect(&url).await;
    let id = fill(&store, 1, 12_000).await;
    let ends = trades(0..12_000);
    let all = DeliveredRange { from: ends[11_999].key, to: ends[0].key };
    let update = |ranges, total| UsageUpdate { ranges, total, ..usage(1..2, id, 0..0).remove(0) };
    store.write_usage(vec![update(vec![all], 12_000)]).await.unwrap();
    run(&url, &[ONE_DELETE]).await;
    let failed = store.forget(wallet(1), [5; 4]).await;
    assert!(matches!(failed, Err(StoreError::Engine(_))), "{failed:?}");
    let left = stored(&store, &wallet(1)).await;
    assert_eq!(left.trades.len(), 6_999);
    let record = store.view().unwrap().wallet_by_id(id).await.unwrap().unwrap();
    assert_eq!((record.count, record.coverage.spans()[0].low), (6_999, 5_001));
    // Rows of the rest that are read meanwhile are counted by the credit, and returned to it.
    let newest = DeliveredRange { from: ends[11_999].key, to: ends[11_990].key };
    let view = store.view().unwrap();
    let credit = view.credit(KeyId(1), id).await.unwrap().unwrap();
    assert_eq!(credit.left, 12_000);
    let credit = Some(Credit { left: 11_990, ..credit });
    store.write_usage(vec![UsageUpdate { credit, ..update(vec![newest], 12_000) }]).await.unwrap();
    run(&url, &["DROP TRIGGER one_delete ON blotter.trade"]).await;
    assert_eq!(store.forget(wallet(1), [5; 4]).await.unwrap(), Some(6_999));
    let again = store.intern(&wallet(1)).await.unwrap().id;
    let view = store.view().unwrap();
    let credit = view.credit(KeyId(1), again).await.unwrap().unwrap();
    assert_eq!(credit.left, 12_000);
    assert_eq!(view.usage_total(KeyId(1)).await.unwrap(), 12_000);
}

#[tokio::test]
async fn a_copy_replaces_what_a_large_one_has_left_and_writes_usage_over_a_slow_wire() {
    let Some(url) = arms::database().await else { return };
    let wire = Wire::to(&url).await;
    let (slow, plain) = (arms::connect(&wire.url).await, arms::connect(&url).await);
    let from = arms::embedded();
    let source = fill(&from, 1, 12_000).await;
    from.write_usage(usage(0..300, source, 0..4)).await.unwrap();
    // Left by a copy of another source, and cut off.
    let left = fill(&plain, 1, 11_000).await;
    let other = chunk(left, 20_000, 20_009, vec![trade(9_000, 20_001, 1)]);
    plain.write_chunk(other).await.unwrap();
    run(&url, &[NO_LARGE_DELETE]).await;
    let mut transfer = Transfer::new(&from, &plain, &[ChainId(1)]).await.unwrap();
    let copied = transfer.wallet(&wallet(1)).await.unwrap();
    assert!(matches!(copied, Copied::Written(digest) if digest.rows == 12_000), "{copied:?}");
    assert_eq!(stored(&plain, &wallet(1)).await, stored(&from, &wallet(1)).await);

    let mut transfer = Transfer::new(&from, &slow, &[ChainId(1)]).await.unwrap();
    let copied = transfer.wallet(&wallet(1)).await.unwrap();
    assert!(matches!(copied, Copied::Same(_)), "{copied:?}");
    wire.slow(SLOW);
    assert_eq!(transfer.usage().await.unwrap(), 300);
    let view = plain.view().unwrap();
    for key in [KeyId(0), KeyId(299)] {
        assert_eq!(view.usage_total(key).await.unwrap(), 2);
        assert_eq!(view.usage(key, left).await.unwrap().len(), 2);
    }
}
