//! The store against a model, and case by case.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blotter::domain::{
    Address, ChainId, Filter, Height, KeyId, Position, Resume, Side, SourceAccount, Trade,
    TradeKey, TxId, Units, UnixMillis, UnixSeconds, ValueSource, Wallet,
};
use blotter::store::{
    Anchor, Chunk, DeliveredRange, Pending, Store, StoreError, TokenRecord, UsageUpdate, WalletId,
    WalletPatch, Written,
};
use proptest::prelude::*;

use crate::support::arms::{self, both_arms};
use crate::support::disk::Disk;
use crate::support::ready::now;
use crate::support::trades::{Model, OPTIONS, chunk, stored, trade, wallet};

async fn id_of(store: &Store, seed: u8) -> WalletId {
    store.intern(&wallet(seed)).await.unwrap().id
}

both_arms! {
    a_second_read_removes_no_row_of_a_transaction_that_it_did_not_bring,
    a_second_read_of_heights_that_are_stored_no_longer_changes_nothing,
    rows_that_are_packed_once_more_stay_as_they_are,
    a_row_with_a_time_of_its_own_is_found_and_replaced,
    each_family_keeps_its_ids_and_256_bit_amounts,
    a_wallet_has_one_number_per_chain,
    a_write_of_another_epoch_changes_nothing,
    a_patch_changes_what_it_names,
    what_is_known_of_a_token_only_grows_and_rows_show_it,
    tokens_that_lack_something_wait_by_when_they_were_asked_for,
    accounts_outlive_a_cut_back_and_go_with_the_last_of_the_coverage,
    usage_is_kept_per_key_and_wallet,
    the_number_of_a_forgotten_wallet_is_never_given_again,
    a_wrong_request_is_refused_and_spoils_no_other,
}

// Against the model.

pub(crate) const HEIGHTS: Height = 40;
pub(crate) const WALLETS: u8 = 2;

#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Heights, decoder, how late the epoch is, and for each trade its height, id and the offset of
    /// its time from that of its height.
    Chunk(Height, Height, u16, u64, Vec<(Height, u8, i8)>),
    Reopen(Height, Height),
    CutBack(Height),
}

pub(crate) fn ops(disorder: i8) -> impl Strategy<Value = Vec<(u8, Op)>> {
    let range = (0..HEIGHTS, 0..HEIGHTS).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let one = (0..HEIGHTS, 0..200_u8, -disorder..=disorder);
    // Long chunks go in as a run.
    let trades = prop_oneof![
        3 => proptest::collection::vec(one.clone(), 0..15),
        1 => proptest::collection::vec(one, 70..150),
    ];
    let stale = prop_oneof![9 => Just(0_u64), 1 => Just(1)];
    let op = prop_oneof![
        6 => (range.clone(), 0..2_u16, stale, trades)
            .prop_map(|((low, high), decoder, stale, trades)| {
                let fit = |(h, tx, off)| (low + h % (high - low + 1), tx, off);
                Op::Chunk(low, high, decoder, stale, trades.into_iter().map(fit).collect())
            }),
        1 => range.prop_map(|(low, high)| Op::Reopen(low, high)),
        1 => (0..HEIGHTS).prop_map(Op::CutBack),
    ];
    proptest::collection::vec((0..WALLETS, op), 1..14)
}

/// Three heights to a second; with `off` the time is another.
fn time(height: Height, off: i8) -> u32 {
    u32::try_from(height / 3).unwrap().checked_add_signed(i32::from(off)).unwrap_or(0) + 100
}

async fn take(store: &Store, models: &mut [Model], seed: u8, op: &Op) {
    let (id, model) = (id_of(store, seed).await, &mut models[usize::from(seed)]);
    match op {
        Op::Chunk(low, high, decoder, stale, trades) => {
            let mut trades: Vec<Trade> =
                trades.iter().map(|(h, tx, off)| trade(time(*h, *off), *h, *tx)).collect();
            // A transaction has one place: a chunk does not hold it at two.
            trades.sort_by_key(|trade| trade.key);
            trades.dedup_by_key(|trade| trade.key);
            let chunk = Chunk {
                epoch: model.epoch + stale,
                decoder: *decoder,
                resume: Some(Resume(low.to_be_bytes().to_vec())),
                ..chunk(id, *low, *high, trades)
            };
            let expected = model.write(&chunk);
            assert_eq!(store.write_chunk(chunk).await.unwrap(), expected);
        }
        Op::Reopen(low, high) => {
            let patch = WalletPatch { reopen: vec![(*low, *high)], ..WalletPatch::default() };
            let epoch = model.epoch;
            let expected = model.reopen(*low, *high);
            assert_eq!(store.update_wallet(id, epoch, patch).await.unwrap(), expected);
        }
        Op::CutBack(above) => {
            let expected = model.cut_back(*above);
            assert_eq!(store.cut_back(id, *above).await.unwrap(), expected);
        }
    }
}

/// Rows of transactions that a second read did not bring stay, those that it brought are replaced.
async fn a_second_read_removes_no_row_of_a_transaction_that_it_did_not_bring(store: Store) {
    let id = id_of(&store, 0).await;
    let [one, two, three] = [1_u8, 2, 3].map(|at| trade(100 + u32::from(at), u64::from(at), at));
    let first = vec![one.clone(), two.clone(), three.clone()];
    store.write_chunk(chunk(id, 0, 9, first)).await.unwrap();
    let brought = Trade { units: Some(Units::from(77)), ..two.clone() };
    let reread = Some(HashSet::from([two.key.tx, three.key.tx]));
    let again = Chunk { reread, ..chunk(id, 0, 9, vec![brought.clone()]) };
    let Written::Stored { count, .. } = store.write_chunk(again).await.unwrap() else { panic!() };
    assert_eq!(count, 2, "the first stays, the second is replaced, the third was no trade");
    let rows = store.view().unwrap().rows(id, Position::Start, 0, 9).await.unwrap().to_vec();
    let trades: Vec<Trade> = rows.into_iter().map(|row| row.trade).collect();
    assert_eq!(trades, [brought, one]);
}

/// Between a second read and its write, heights are deleted to make room: it brings some rows only.
async fn a_second_read_of_heights_that_are_stored_no_longer_changes_nothing(store: Store) {
    let id = id_of(&store, 0).await;
    let [one, two] = [1_u8, 2].map(|at| trade(100 + u32::from(at), u64::from(at), at));
    store.write_chunk(chunk(id, 0, 9, vec![one, two.clone()])).await.unwrap();
    let again = |low, high| {
        let reread = Some(HashSet::from([two.key.tx]));
        Chunk { reread, ..chunk(id, low, high, vec![two.clone()]) }
    };
    let evicted = WalletPatch { reopen: vec![(0, 5)], ..WalletPatch::default() };
    store.update_wallet(id, 0, evicted).await.unwrap();
    for (low, high) in [(0, 9), (2, 2), (2, 6)] {
        let written = store.write_chunk(again(low, high)).await.unwrap();
        assert_eq!(written, Written::Stale, "{low} {high}");
    }
    let record = store.view().unwrap().wallet(&wallet(0)).await.unwrap().unwrap();
    assert_eq!((record.count, record.coverage.run_low(9)), (0, Some(6)));
    let empty = Chunk { reread: Some(HashSet::new()), ..chunk(id, 6, 9, Vec::new()) };
    assert!(matches!(store.write_chunk(empty).await.unwrap(), Written::Stored { count: 0, .. }));
}

/// Every read of a wallet, compared with the model.
async fn check_reads(
    store: &Store,
    seed: u8,
    model: &Model,
    floor: Height,
    skip: usize,
    limit: usize,
) {
    let view = store.view().unwrap();
    let Some(record) = view.wallet(&wallet(seed)).await.unwrap() else { return };
    let keys: Vec<TradeKey> = model.trades.keys().copied().collect();
    let (after, rest) = match keys.get(skip) {
        Some(key) => (Position::After(*key), &keys[skip + 1..]),
        None => (Position::Start, &keys[..]),
    };
    let expected: Vec<&Trade> = rest
        .iter()
        .take_while(|key| key.height >= floor)
        .take(limit)
        .map(|key| &model.trades[key])
        .collect();
    let rows = view.rows(record.id, after, floor, limit).await.unwrap().to_vec();
    assert_eq!(rows.iter().map(|row| &row.trade).collect::<Vec<_>>(), expected);

    let above = keys.iter().take_while(|key| key.height > floor).count();
    let limit = u64::try_from(limit).unwrap();
    let expected = u64::try_from(above).unwrap().min(limit);
    assert_eq!(view.count_above(record.id, floor, limit).await.unwrap(), expected);
    assert_eq!(view.first_time(record.id).await.unwrap(), keys.last().map(|key| key.time));
}

fn check_model(ops: &[(u8, Op)], floor: Height, skip: usize, limit: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(check_model_on(&arms::embedded(), ops, (floor, skip, limit)));
}

pub(crate) async fn check_model_on(
    store: &Store,
    ops: &[(u8, Op)],
    (floor, skip, limit): (Height, usize, usize),
) {
    let mut models = vec![Model::default(); usize::from(WALLETS)];
    for (seed, op) in ops {
        take(store, &mut models, *seed, op).await;
        for (seed, model) in (0..).zip(&models) {
            assert_eq!(stored(store, &wallet(seed)).await, *model);
            check_reads(store, seed, model, floor, skip, limit).await;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn it_holds_what_a_map_holds(
        ops in ops(0), floor in 0..HEIGHTS, skip in 0..20_usize, limit in 0..20_usize,
    ) {
        check_model(&ops, floor, skip, limit);
    }

    /// Times that fall with height must not hide a row from a replace.
    #[test]
    fn it_does_so_when_times_and_heights_disagree(
        ops in ops(4), floor in 0..HEIGHTS, skip in 0..20_usize, limit in 0..20_usize,
    ) {
        check_model(&ops, floor, skip, limit);
    }
}

/// The case that the property finds last: a late time comes with the chunk below, and the row must
/// still be found when its own height is replaced. More rows at both ends than are packed at once,
/// next to another wallet.
async fn rows_that_are_packed_once_more_stay_as_they_are(store: Store) {
    let mut models = vec![Model::default(); usize::from(WALLETS)];
    let ids = [id_of(&store, 0).await, id_of(&store, 1).await];
    let (middle, step) = (1_520, 40);
    let down = (1..=middle / step).map(|at| middle - at * step);
    let up = (0..62).map(|at| middle + at * step);
    for low in down.chain(up) {
        for (id, model) in ids.iter().zip(&mut models) {
            let high = low + step - 1;
            let one =
                |height: Height| trade(time(height, 0), height, u8::try_from(height % 7).unwrap());
            let chunk = chunk(*id, low, high, (low..=high).map(one).collect());
            let expected = model.write(&chunk);
            assert_eq!(store.write_chunk(chunk).await.unwrap(), expected);
        }
    }
    for (seed, model) in (0..).zip(&models) {
        assert_eq!(model.trades.len(), 4_000);
        assert_eq!(stored(&store, &wallet(seed)).await, *model);
        check_reads(&store, seed, model, 700, 900, 1_500).await;
    }
}

async fn a_row_with_a_time_of_its_own_is_found_and_replaced(store: Store) {
    let id = id_of(&store, 1).await;
    store.write_chunk(chunk(id, 20, 29, vec![trade(200, 20, 1)])).await.unwrap();
    store.write_chunk(chunk(id, 10, 19, vec![trade(900, 15, 2), trade(150, 14, 3)])).await.unwrap();
    store.write_chunk(chunk(id, 15, 15, vec![])).await.unwrap();
    let heights: Vec<_> =
        stored(&store, &wallet(1)).await.trades.keys().map(|key| key.height).collect();
    assert_eq!(heights, [20, 14]);
    store.write_chunk(chunk(id, 0, 40, vec![])).await.unwrap();
    assert_eq!(stored(&store, &wallet(1)).await.trades.len(), 0);
}

// Case by case.

async fn each_family_keeps_its_ids_and_256_bit_amounts(store: Store) {
    for (chain, address, tx) in [
        (1, Address::Solana([1; 32]), TxId::solana(&[2; 64])),
        (2, Address::Evm([1; 20]), TxId::Evm([2; 32])),
        (3, Address::Tron([1; 20]), TxId::Tron([2; 32])),
    ] {
        let wallet = Wallet { chain: ChainId(chain), address };
        let id = store.intern(&wallet).await.unwrap().id;
        let key = TradeKey {
            time: UnixSeconds(u32::MAX),
            height: Height::MAX,
            index: u32::MAX,
            tx,
            leg: u16::MAX,
        };
        let trade = Trade {
            key,
            side: Side::Sell,
            mint: address,
            units: Some(Units::MAX),
            native: Some(Units::ZERO),
            valued: ValueSource::Direct,
            venue: "".into(),
        };
        store.write_chunk(chunk(id, 0, Height::MAX, vec![trade.clone()])).await.unwrap();
        let rows = store.view().unwrap().rows(id, Position::Start, 0, 10).await.unwrap().to_vec();
        assert_eq!(rows.iter().map(|row| &row.trade).collect::<Vec<_>>(), [&trade]);
        assert!(
            store.view().unwrap().rows(id, Position::After(key), 0, 10).await.unwrap().is_empty()
        );
    }
}

async fn a_wallet_has_one_number_per_chain(store: Store) {
    let first = wallet(1);
    let elsewhere = Wallet { chain: ChainId(2), ..first };
    assert!(store.view().unwrap().wallet(&first).await.unwrap().is_none());
    let records =
        futures_util::future::join_all([&first, &elsewhere, &first].map(|w| store.intern(w))).await;
    let ids: Vec<_> = records.into_iter().map(|record| record.unwrap().id).collect();
    assert_eq!(ids[0], ids[2]);
    assert_ne!(ids[0], ids[1]);
    let record = store.view().unwrap().wallet_by_id(ids[1]).await.unwrap().unwrap();
    assert_eq!((record.wallet, record.epoch, record.count), (elsewhere, 0, 0));
    assert!(store.view().unwrap().wallet_by_id(WalletId(7)).await.unwrap().is_none());
}

async fn a_write_of_another_epoch_changes_nothing(store: Store) {
    let id = id_of(&store, 1).await;
    store.write_chunk(chunk(id, 0, 9, vec![trade(1, 1, 1)])).await.unwrap();
    assert_eq!(store.cut_back(id, 50).await.unwrap(), 1);
    let before = store.view().unwrap().wallet_by_id(id).await.unwrap();

    let late = Chunk {
        tokens: vec![token(3, Some("LATE"), Some(1), None)],
        accounts: vec![SourceAccount { account: [1; 32], amount: None, oldest: None }],
        ..chunk(id, 0, 9, vec![])
    };
    assert_eq!(store.write_chunk(late).await.unwrap(), Written::Stale);
    let patch = WalletPatch { cut: Some(Some(5)), reopen: vec![(0, 9)], ..Default::default() };
    assert_eq!(store.update_wallet(id, 0, patch).await.unwrap(), Written::Stale);

    let view = store.view().unwrap();
    assert_eq!(view.wallet_by_id(id).await.unwrap(), before);
    assert_eq!(view.rows(id, Position::Start, 0, 10).await.unwrap().len(), 1);
    assert_eq!(view.token(ChainId(1), &Address::Solana([3; 32])).await.unwrap(), None);
    assert!(view.accounts(id).await.unwrap().is_empty());
}

async fn a_patch_changes_what_it_names(store: Store) {
    let id = id_of(&store, 1).await;
    id_of(&store, 2).await;
    let pending = Pending { key: KeyId(4), until: UnixMillis(5) };
    let anchors = vec![Anchor { height: 8, hash: [8; 32] }, Anchor { height: 3, hash: [3; 32] }];
    let patch = WalletPatch {
        pending: Some(Some(pending)),
        anchors: Some(anchors.clone()),
        cut: Some(Some(2)),
        checked_at: Some(UnixMillis(9)),
        reopen: vec![],
    };
    store.update_wallet(id, 0, patch).await.unwrap();
    store.update_wallet(id, 0, WalletPatch::default()).await.unwrap();
    let view = store.view().unwrap();
    let record = view.wallet_by_id(id).await.unwrap().unwrap();
    assert_eq!(view.pending_of(id).await.unwrap(), Some(pending));
    assert_eq!(view.anchors(id).await.unwrap(), anchors);
    assert_eq!((record.cut, record.checked_at), (Some(2), Some(UnixMillis(9))));
    assert_eq!(store.view().unwrap().pending().await.unwrap(), [(id, wallet(1), pending)]);

    let patch = WalletPatch { pending: Some(None), cut: Some(None), ..WalletPatch::default() };
    store.update_wallet(id, 0, patch).await.unwrap();
    store.cut_back(id, 5).await.unwrap();
    let view = store.view().unwrap();
    let record = view.wallet_by_id(id).await.unwrap().unwrap();
    assert_eq!((view.pending_of(id).await.unwrap(), record.cut), (None, None));
    assert_eq!(view.anchors(id).await.unwrap(), anchors[1..]);
    assert!(store.view().unwrap().pending().await.unwrap().is_empty());
}

fn token(mint: u8, symbol: Option<&str>, decimals: Option<u8>, asked: Option<u64>) -> TokenRecord {
    TokenRecord {
        chain: ChainId(1),
        mint: Address::Solana([mint; 32]),
        symbol: symbol.map(Arc::from),
        decimals,
        asked_at: asked.map(UnixMillis),
    }
}

async fn what_is_known_of_a_token_only_grows_and_rows_show_it(store: Store) {
    let id = id_of(&store, 1).await;
    // The mint of this trade is token 1.
    store.write_chunk(chunk(id, 0, 9, vec![trade(1, 1, 1)])).await.unwrap();
    let shown = async || {
        let rows = store.view().unwrap().rows(id, Position::Start, 0, 10).await.unwrap().to_vec();
        (rows[0].token.symbol.clone(), rows[0].token.decimals)
    };
    assert_eq!(shown().await, (None, None));
    let learn = |news: TokenRecord| {
        store.write_chunk(Chunk { tokens: vec![news], ..chunk(id, 20, 20, vec![]) })
    };
    learn(token(1, None, Some(5), Some(100))).await.unwrap();
    assert_eq!(shown().await, (None, Some(5)));
    learn(token(1, Some("BONK"), None, None)).await.unwrap();
    assert_eq!(shown().await, (Some("BONK".into()), Some(5)));
    learn(token(1, None, None, Some(50))).await.unwrap();
    let known = store.view().unwrap().token(ChainId(1), &Address::Solana([1; 32])).await.unwrap();
    assert_eq!(known, Some(token(1, Some("BONK"), Some(5), Some(100))));
}

async fn tokens_that_lack_something_wait_by_when_they_were_asked_for(store: Store) {
    let id = id_of(&store, 1).await;
    let tokens = vec![
        token(1, None, Some(5), Some(300)),
        token(2, Some("FULL"), Some(5), Some(10)),
        token(3, Some("HALF"), None, Some(200)),
        token(4, None, None, None),
    ];
    store.write_chunk(Chunk { tokens, ..chunk(id, 0, 0, vec![]) }).await.unwrap();
    let wanted = async |before, limit| -> Vec<u8> {
        let view = store.view().unwrap();
        let tokens = view.tokens_wanting_symbols(ChainId(1), UnixMillis(before), limit).await;
        tokens.unwrap().iter().map(|token| token.mint.bytes()[0]).collect()
    };
    assert_eq!(wanted(1_000, 10).await, [4, 3, 1]);
    assert_eq!(wanted(300, 10).await, [4, 3]);
    assert_eq!(wanted(1_000, 1).await, [4]);
    let view = store.view().unwrap();
    assert!(
        view.tokens_wanting_symbols(ChainId(2), UnixMillis(1_000), 10).await.unwrap().is_empty()
    );

    let tokens = vec![token(4, None, None, Some(400)), token(3, None, Some(9), Some(401))];
    store.write_chunk(Chunk { tokens, ..chunk(id, 1, 1, vec![]) }).await.unwrap();
    assert_eq!(wanted(1_000, 10).await, [1, 4]);
}

async fn accounts_outlive_a_cut_back_and_go_with_the_last_of_the_coverage(store: Store) {
    let (one, two) = (id_of(&store, 1).await, id_of(&store, 2).await);
    let account =
        |account, amount, oldest| SourceAccount { account: [account; 32], amount, oldest };
    let write = |id, accounts| store.write_chunk(Chunk { accounts, ..chunk(id, 0, 0, vec![]) });
    write(one, vec![account(255, Some(7), None), account(0, None, Some(3))]).await.unwrap();
    write(two, vec![account(0, Some(1), None)]).await.unwrap();
    write(one, vec![account(255, Some(0), Some(9))]).await.unwrap();
    let view = store.view().unwrap();
    let expected = [account(0, None, Some(3)), account(255, Some(0), Some(9))];
    assert_eq!(view.accounts(one).await.unwrap(), expected);
    // Nothing is covered above: the head at which they were seen is still the chain's.
    let epoch = store.cut_back(one, 50).await.unwrap();
    assert_eq!(store.view().unwrap().accounts(one).await.unwrap(), expected);
    // Coverage stays below, so that what it was read with is still to be looked at.
    store.write_chunk(Chunk { epoch, ..chunk(one, 1, 20, vec![]) }).await.unwrap();
    let epoch = store.cut_back(one, 9).await.unwrap();
    let unseen = [account(0, None, None), account(255, Some(SourceAccount::OPEN), None)];
    assert_eq!(store.view().unwrap().accounts(one).await.unwrap(), unseen);
    let reopened = |part| WalletPatch { reopen: vec![part], ..WalletPatch::default() };
    store.update_wallet(one, epoch, reopened((0, 4))).await.unwrap();
    assert_eq!(store.view().unwrap().accounts(one).await.unwrap(), unseen);
    store.update_wallet(one, epoch, reopened((0, Height::MAX))).await.unwrap();
    let view = store.view().unwrap();
    assert!(view.accounts(one).await.unwrap().is_empty());
    assert_eq!(view.accounts(two).await.unwrap(), [account(0, Some(1), None)]);
}

async fn usage_is_kept_per_key_and_wallet(store: Store) {
    let (one, two) = (id_of(&store, 1).await, id_of(&store, 2).await);
    let range = |newest: u8, oldest: u8| DeliveredRange {
        from: trade(9, 9, newest).key,
        to: trade(1, 1, oldest).key,
    };
    let update = |key, wallet, ranges, total| UsageUpdate {
        key: KeyId(key),
        wallet,
        ranges,
        total,
        credit: None,
    };
    store
        .write_usage(vec![
            update(1, one, vec![range(1, 2)], 10),
            update(1, two, vec![range(3, 4), range(5, 6)], 30),
            update(2, one, vec![], 5),
        ])
        .await
        .unwrap();
    store.write_usage(vec![update(1, one, vec![range(7, 8)], 31)]).await.unwrap();
    let view = store.view().unwrap();
    assert_eq!(view.usage(KeyId(1), one).await.unwrap(), [range(7, 8)]);
    assert_eq!(view.usage(KeyId(1), two).await.unwrap(), [range(3, 4), range(5, 6)]);
    assert!(view.usage(KeyId(2), one).await.unwrap().is_empty());
    assert!(view.usage(KeyId(3), one).await.unwrap().is_empty());
    for (key, total) in [(1, 31), (2, 5), (3, 0)] {
        assert_eq!(view.usage_total(KeyId(key)).await.unwrap(), total);
    }
}

async fn the_number_of_a_forgotten_wallet_is_never_given_again(store: Store) {
    let first = id_of(&store, 1).await;
    assert_eq!(store.forget(wallet(1), [1; 4]).await.unwrap(), Some(0));
    let ids = [first, id_of(&store, 2).await, id_of(&store, 1).await];
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 3, "{ids:?}");
}

async fn a_wrong_request_is_refused_and_spoils_no_other(store: Store) {
    let (one, two) = (id_of(&store, 1).await, id_of(&store, 2).await);
    let evm = Trade { mint: Address::Evm([1; 20]), ..trade(1, 1, 1) };
    let wrong = [
        chunk(one, 9, 0, vec![]),
        chunk(one, 0, 9, vec![trade(1, 10, 1)]),
        chunk(one, 5, 9, vec![trade(1, 4, 1)]),
        chunk(one, 0, 9, vec![evm]),
    ];
    let unknown = store.write_chunk(chunk(WalletId(77), 0, 9, vec![]));
    let good = store.write_chunk(chunk(two, 0, 9, vec![trade(1, 1, 1)]));
    let wrong = futures_util::future::join_all(wrong.map(|chunk| store.write_chunk(chunk)));
    let (wrong, unknown, good) = futures_util::join!(wrong, unknown, good);
    for refused in wrong {
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    assert!(matches!(unknown, Err(StoreError::UnknownWallet(WalletId(77)))));
    assert!(matches!(good, Ok(Written::Stored { count: 1, .. })));
    assert_eq!(stored(&store, &wallet(1)).await, Model::default());
    assert_eq!(stored(&store, &wallet(2)).await.trades.len(), 1);
}

#[tokio::test]
async fn a_view_stays_as_it_was_while_others_write() {
    let store = arms::embedded();
    let id = id_of(&store, 1).await;
    store.write_chunk(chunk(id, 0, 9, vec![trade(1, 1, 1)])).await.unwrap();
    let before = store.view().unwrap();
    store.write_chunk(chunk(id, 0, 9, vec![trade(2, 2, 2), trade(3, 3, 3)])).await.unwrap();
    assert_eq!(before.rows(id, Position::Start, 0, 10).await.unwrap().len(), 1);
    assert_eq!(before.wallet_by_id(id).await.unwrap().unwrap().count, 1);
    assert_eq!(store.view().unwrap().rows(id, Position::Start, 0, 10).await.unwrap().len(), 2);
}

/// At any moment, a reader's rows, count and coverage belong together.
#[tokio::test]
async fn readers_next_to_the_writer_see_whole_chunks() {
    let store = arms::embedded();
    let id = id_of(&store, 1).await;
    let done = Arc::new(AtomicBool::new(false));
    let read = |store: Store, done: Arc<AtomicBool>| {
        move || {
            let mut views = 0;
            while !done.load(Ordering::Acquire) || views == 0 {
                let view = store.view().unwrap();
                let record = now(view.wallet_by_id(id)).unwrap().unwrap();
                let rows = now(view.rows(id, Position::Start, 0, 10_000)).unwrap().to_vec();
                assert_eq!(u64::try_from(rows.len()).unwrap(), record.count);
                assert!(rows.iter().all(|row| record.coverage.covers(row.trade.key.height)));
                // A chunk holds three trades of each of its heights.
                assert_eq!(rows.len() % 3, 0);
                views += 1;
            }
        }
    };
    let readers: Vec<_> =
        (0..2).map(|_| std::thread::spawn(read(store.clone(), Arc::clone(&done)))).collect();
    for round in 0..60 {
        let (low, high) = (100 - round, 110);
        let at = |h: Height| (0..3).map(move |tx| trade(time(h, 0), h, tx));
        let tokens = vec![token(1, Some(&format!("T{round}")), None, None)];
        let trades = (low..=high).flat_map(at).collect();
        store.write_chunk(Chunk { tokens, ..chunk(id, low, high, trades) }).await.unwrap();
        let rows = store.view().unwrap().rows(id, Position::Start, 0, 2).await.unwrap().to_vec();
        let symbol = rows.iter().find(|row| row.trade.mint == Address::Solana([1; 32]));
        assert_eq!(symbol.unwrap().token.symbol.as_deref(), Some(&*format!("T{round}")));
    }
    done.store(true, Ordering::Release);
    for reader in readers {
        reader.join().unwrap();
    }
}

#[tokio::test]
async fn what_arrives_during_a_commit_joins_the_next() {
    let disk = Disk::default();
    let store = Store::on_backend(disk.clone(), OPTIONS).unwrap();
    let id = id_of(&store, 1).await;
    let commit = disk.syncs();
    id_of(&store, 2).await;
    let (before, commit) = (disk.syncs(), disk.syncs() - commit);
    let writes = (0..200).map(|h| store.write_chunk(chunk(id, h, h, vec![trade(1, h, 1)])));
    for written in futures_util::future::join_all(writes).await {
        written.unwrap();
    }
    let commits = (disk.syncs() - before) / commit;
    assert!(commits < 100, "{commits} commits for 200 requests");
}

#[tokio::test]
async fn requests_of_a_wallet_keep_their_order_in_a_joined_commit() {
    let store = arms::embedded();
    let (one, two) = (id_of(&store, 1).await, id_of(&store, 2).await);
    let writes = (0..100_u8).map(|round| {
        let id = if round.is_multiple_of(3) { two } else { one };
        store.write_chunk(chunk(id, 0, 9, vec![trade(1, 1, round)]))
    });
    for written in futures_util::future::join_all(writes).await {
        assert!(matches!(written, Ok(Written::Stored { count: 1, .. })), "{written:?}");
    }
    for (seed, last) in [(1, trade(1, 1, 98)), (2, trade(1, 1, 99))] {
        let trades = stored(&store, &wallet(seed)).await.trades;
        assert_eq!(trades.into_values().collect::<Vec<_>>(), [last]);
    }
}

/// In the file, the rows of the next wallet follow.
#[tokio::test]
async fn what_is_read_and_passed_over_ends_with_the_wallet() {
    let store = arms::embedded();
    let ids = [id_of(&store, 1).await, id_of(&store, 2).await];
    for id in ids {
        let trades = vec![trade(2, 2, 2), trade(1, 1, 1)];
        store.write_chunk(chunk(id, 0, 9, trades)).await.unwrap();
    }
    let (view, token) = (store.view().unwrap(), Some(Address::Solana([99; 32])));
    let filter = Filter { token, ..Filter::default() };
    for id in ids {
        let read = view.rows(id, Position::Start, 0, 9).await.unwrap().to_vec();
        let heights: Vec<Height> = read.iter().map(|row| row.trade.key.height).collect();
        assert_eq!(heights, [2, 1]);
        let passed = view.pass_over(id, (Position::Start, 0), &filter, 9).unwrap();
        assert_eq!(passed, Some((trade(1, 1, 1).key, 2)));
        let rest = view.pass_over(id, (Position::After(trade(1, 1, 1).key), 0), &filter, 9);
        assert_eq!(rest.unwrap(), None);
    }
}

#[tokio::test]
async fn closing_writes_what_was_sent() {
    let disk = Disk::default();
    let store = Store::on_backend(disk.clone(), OPTIONS).unwrap();
    let id = id_of(&store, 1).await;
    let writes = (0..50).map(|h| store.write_chunk(chunk(id, h, h, vec![trade(1, h, 1)])));
    let (written, ()) = futures_util::join!(futures_util::future::join_all(writes), store.close());
    assert!(written.iter().all(Result::is_ok));
    assert!(matches!(store.view().map(drop), Err(StoreError::Closed)));
    assert!(matches!(store.cut_back(id, 0).await, Err(StoreError::Closed)));
    store.close().await;

    let store = Store::on_backend(disk, OPTIONS).unwrap();
    assert_eq!(stored(&store, &wallet(1)).await.trades.len(), 50);
    assert_eq!(store.stats().await.unwrap().rows, 50);
}

#[tokio::test]
async fn dropping_writes_what_was_sent_even_if_no_caller_waits() {
    let disk = Disk::default();
    let store = Store::on_backend(disk.clone(), OPTIONS).unwrap();
    let id = id_of(&store, 1).await;
    // Polled once, then given up: the request is on its way.
    assert!(
        futures_util::FutureExt::now_or_never(store.write_chunk(chunk(
            id,
            0,
            9,
            vec![trade(1, 1, 1)]
        )))
        .is_none_or(|written| written.is_ok())
    );
    drop(store);
    let store = Store::on_backend(disk, OPTIONS).unwrap();
    assert_eq!(stored(&store, &wallet(1)).await.trades.len(), 1);
}
