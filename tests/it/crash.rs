//! Power loss, a full disk and failing writes: nothing acknowledged is lost, and nothing is stored
//! partially. The method is redb's own: run once to count the syncs, then end the run at each sync
//! in turn and check what the disk kept.

use std::io::ErrorKind;

use blotter::domain::{Height, KeyId, Position, Resume, Trade};
use blotter::store::{
    Chunk, Store, StoreError, StoreOptions, UsageUpdate, WalletId, WalletPatch, Written,
};

use crate::support::disk::{Disk, Kept};
use crate::support::ready::now;
use crate::support::trades::{Model, OPTIONS, chunk, stored, trade, wallet};

const WALLETS: u8 = 3;
const KEPT: [Kept; 5] = [Kept::Nothing, Kept::All, Kept::Header, Kept::Some(1), Kept::Some(2)];

/// One write of the run.
#[derive(Debug, Clone)]
enum Step {
    Chunk { low: Height, high: Height, trades: Vec<Trade>, resume: Option<Resume> },
    Reopen(Height, Height),
    CutBack(Height),
    Usage(u64),
}

/// What a wallet, and the key that reads it, must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State {
    model: Model,
    total: u64,
}

/// The steps of one wallet: some are batched with other wallets' steps, one makes the file grow.
fn steps(seed: u8) -> Vec<Step> {
    let large = vec![seed; 500_000];
    let seed = u64::from(seed);
    let part = |low, high, each| {
        let at = |h: Height| (0..each).map(move |tx| trade(u32::try_from(h / 2).unwrap(), h, tx));
        Step::Chunk { low, high, trades: (low..=high).flat_map(at).collect(), resume: None }
    };
    let grow = Step::Chunk { low: 0, high: 69, trades: vec![], resume: Some(Resume(large)) };
    vec![
        part(100 + seed, 111, 2),
        part(70, 99 + seed, 30),
        Step::Usage(7),
        Step::Reopen(75, 80),
        part(72, 88, 3),
        Step::CutBack(104),
        part(105, 140, 4),
        Step::Usage(9),
        part(0, 69, 1),
        grow,
    ]
}

impl State {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Chunk { low, high, trades, resume } => {
                let chunk = Chunk {
                    epoch: self.model.epoch,
                    resume: resume.clone(),
                    ..chunk(WalletId(0), *low, *high, trades.clone())
                };
                self.model.write(&chunk);
            }
            Step::Reopen(low, high) => drop(self.model.reopen(*low, *high)),
            Step::CutBack(above) => drop(self.model.cut_back(*above)),
            Step::Usage(total) => self.total = *total,
        }
    }

    /// Before all steps and after each.
    fn all(steps: &[Step]) -> Vec<Self> {
        let after = |state: &mut Self, step| {
            state.step(step);
            Some(state.clone())
        };
        let states = steps.iter().scan(Self::default(), after);
        std::iter::once(Self::default()).chain(states).collect()
    }

    fn stored(store: &Store, seed: u8) -> Self {
        let total = now(store.view().unwrap().usage_total(KeyId(seed.into()))).unwrap();
        Self { model: now(stored(store, &wallet(seed))), total }
    }
}

async fn take(store: &Store, seed: u8, epoch: u64, step: &Step) -> Result<(), StoreError> {
    let id = store.intern(&wallet(seed)).await?.id;
    match step.clone() {
        Step::Chunk { low, high, trades, resume } => {
            let chunk = Chunk { epoch, resume, ..chunk(id, low, high, trades) };
            assert!(matches!(store.write_chunk(chunk).await?, Written::Stored { .. }));
        }
        Step::Reopen(low, high) => {
            let patch = WalletPatch { reopen: vec![(low, high)], ..WalletPatch::default() };
            assert!(matches!(store.update_wallet(id, epoch, patch).await?, Written::Stored { .. }));
        }
        Step::CutBack(above) => drop(store.cut_back(id, above).await?),
        Step::Usage(total) => {
            let key = KeyId(seed.into());
            store
                .write_usage(vec![UsageUpdate {
                    key,
                    wallet: id,
                    ranges: vec![],
                    total,
                    credit: None,
                }])
                .await?;
        }
    }
    Ok(())
}

/// Runs the steps of all wallets concurrently until one fails; returns how many were acknowledged.
async fn run(store: &Store) -> Vec<usize> {
    let one = |seed: u8| async move {
        let steps = steps(seed);
        let states = State::all(&steps);
        for (at, step) in steps.iter().enumerate() {
            if take(store, seed, states[at].model.epoch, step).await.is_err() {
                return at;
            }
        }
        steps.len()
    };
    futures_util::future::join_all((0..WALLETS).map(one)).await
}

/// Each wallet is in the state after its acknowledged steps, or one step further.
#[track_caller]
fn check(store: &Store, acknowledged: &[usize], context: &str) {
    for (seed, acknowledged) in (0..).zip(acknowledged) {
        let states = State::all(&steps(seed));
        let found = State::stored(store, seed);
        let fits = states.iter().skip(*acknowledged).take(2).any(|state| *state == found);
        assert!(fits, "{context}: wallet {seed} is not as after step {acknowledged} or the next");
    }
}

#[tokio::test]
async fn a_power_cut_at_any_sync_loses_nothing_acknowledged() {
    let probe = Disk::default();
    let store = Store::on_backend(probe.clone(), OPTIONS).unwrap();
    let small = probe.bytes();
    assert_eq!(run(&store).await, [10, 10, 10]);
    store.close().await;
    let syncs = probe.syncs();
    assert!(syncs > 20 && probe.bytes() > small, "the run proves little: {syncs} syncs");

    for sync in 1..=syncs {
        let disk = Disk::default();
        disk.power_off_at_sync(sync);
        let acknowledged = match Store::on_backend(disk.clone(), OPTIONS) {
            Ok(store) => run(&store).await,
            Err(_) => vec![0; WALLETS.into()],
        };
        for kept in KEPT {
            let context = format!("sync {sync} of {syncs}, kept {kept:?}");
            let store = Store::on_backend(Disk::holding(disk.image(kept)), OPTIONS);
            check(&store.expect(&context), &acknowledged, &context);
        }
    }
}

#[tokio::test]
async fn after_a_power_cut_writing_goes_on() {
    let disk = Disk::default();
    disk.power_off_at_sync(15);
    let store = Store::on_backend(disk.clone(), OPTIONS).unwrap();
    run(&store).await;
    drop(store);
    for kept in KEPT {
        let store = Store::on_backend(Disk::holding(disk.image(kept)), OPTIONS).unwrap();
        let record = store.intern(&wallet(9)).await.unwrap();
        let chunk = chunk(record.id, 0, 9, vec![trade(1, 1, 1)]);
        store.write_chunk(chunk).await.unwrap();
        assert_eq!(stored(&store, &wallet(9)).await.trades.len(), 1);
    }
}

/// If any single change of the disk fails, the caller gets the error, the store is intact, and a
/// retry succeeds.
#[tokio::test]
async fn a_failed_write_is_reported_and_can_be_repeated() {
    let steps = steps(0);
    let states = State::all(&steps);
    let probe = Disk::default();
    let store = Store::on_backend(probe.clone(), OPTIONS).unwrap();
    let first = probe.changes() + 1;
    for (at, step) in steps.iter().enumerate() {
        take(&store, 0, states[at].model.epoch, step).await.unwrap();
    }
    let last = probe.changes();
    store.close().await;

    let mut failures = 0;
    for change in (first..=last).step_by(7) {
        let disk = Disk::default();
        disk.fail_changes(change..change + 1);
        let store = Store::on_backend(disk, OPTIONS).unwrap();
        for (at, step) in steps.iter().enumerate() {
            while let Err(error) = take(&store, 0, states[at].model.epoch, step).await {
                assert!(matches!(error, StoreError::Io(_)), "{error}");
                failures += 1;
                assert!(failures < 1000, "it never recovers");
                mend(&store).await;
                let found = State::stored(&store, 0);
                if found == states[at + 1] {
                    // The disk has the write completely, only unacknowledged.
                    break;
                }
                assert_eq!(found, states[at], "change {change}, step {at}");
            }
        }
        assert_eq!(State::stored(&store, 0), states[steps.len()]);
    }
    assert!(failures > 20, "only {failures} failures");
}

/// An empty write makes the writer reopen the file.
async fn mend(store: &Store) {
    let mut left = 3;
    while store.write_usage(vec![]).await.is_err() {
        left -= 1;
        assert!(left > 0, "the file stays shut");
    }
}

#[tokio::test]
async fn one_failed_commit_answers_all_that_joined_it() {
    let disk = Disk::default();
    let store = Store::on_backend(disk.clone(), OPTIONS).unwrap();
    let ids = [1, 2, 3].map(wallet);
    let mut records = vec![];
    for wallet in &ids {
        records.push(store.intern(wallet).await.unwrap());
    }
    disk.fail_changes(0..u64::MAX);
    let writes = records
        .iter()
        .map(|record| store.write_chunk(chunk(record.id, 0, 9, vec![trade(1, 1, 1)])));
    for written in futures_util::future::join_all(writes).await {
        assert!(matches!(written, Err(StoreError::Io(_))), "{written:?}");
    }
    disk.fail_changes(0..0);
    mend(&store).await;
    for wallet in &ids {
        assert_eq!(stored(&store, wallet).await, Model::default());
    }
}

#[tokio::test]
async fn a_full_disk_is_reported_and_reading_goes_on() {
    let disk = Disk::default();
    let store = Store::on_backend(disk.clone(), OPTIONS).unwrap();
    let record = store.intern(&wallet(1)).await.unwrap();
    let small = vec![trade(500, 500, 1)];
    store.write_chunk(chunk(record.id, 500, 600, small)).await.unwrap();
    let before = stored(&store, &wallet(1)).await;

    disk.set_capacity(Some(disk.bytes()));
    let large: Vec<_> = (0..200).flat_map(|h| (0..200).map(move |tx| trade(1, h, tx))).collect();
    let written = store.write_chunk(chunk(record.id, 0, 499, large.clone())).await;
    let Err(StoreError::Io(error)) = written else { panic!("{written:?}") };
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    mend(&store).await;
    assert_eq!(stored(&store, &wallet(1)).await, before);

    disk.set_capacity(None);
    store.write_chunk(chunk(record.id, 0, 499, large)).await.unwrap();
    assert_eq!(now(stored(&store, &wallet(1))).trades.len(), 40_001);
}

#[tokio::test]
async fn a_failed_read_heals() {
    let disk = Disk::default();
    let writer = Store::on_backend(disk.clone(), OPTIONS).unwrap();
    assert_eq!(run(&writer).await, [10, 10, 10]);
    writer.close().await;
    // Nothing is served from memory.
    let store = Store::on_backend(disk.clone(), StoreOptions { cache_bytes: 0 }).unwrap();
    let id = store.intern(&wallet(0)).await.unwrap().id;
    disk.fail_reads(true);
    let failed = match store.view() {
        Ok(view) => view.rows(id, Position::Start, 0, 10_000).await,
        Err(error) => Err(error),
    };
    assert!(matches!(failed, Err(StoreError::Io(_))), "it was read all the same");
    disk.fail_reads(false);
    mend(&store).await;
    check(&store, &[10, 10, 10], "after a failed read");
}

#[tokio::test]
async fn a_panic_in_the_writer_hangs_no_caller() {
    let disk = Disk::default();
    let store = Store::on_backend(disk.clone(), OPTIONS).unwrap();
    let record = store.intern(&wallet(1)).await.unwrap();
    disk.panic_on_change();
    let writes = (0..5).map(|h| store.write_chunk(chunk(record.id, h, h, vec![])));
    for written in futures_util::future::join_all(writes).await {
        assert!(matches!(written, Err(StoreError::WriterGone)), "{written:?}");
    }
    assert!(matches!(store.intern(&wallet(2)).await, Err(StoreError::WriterGone)));
    store.close().await;
}
