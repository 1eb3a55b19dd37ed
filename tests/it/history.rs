//! The history engine on the demo chain: what readers get is what the model holds.

use blotter::demo::solana::WalletPlan;
use blotter::domain::Row;
use blotter::history::Want;

use crate::support::world::{Build, Fact, facts, finish, pages};

/// Rows equal the truth; the first difference is shown, not all of both.
#[track_caller]
fn same(rows: &[Row], truth: &[Fact]) {
    let rows = facts(rows);
    let differ = (0..rows.len().max(truth.len())).find(|at| rows.get(*at) != truth.get(*at));
    if let Some(at) = differ {
        let (got, want) = (rows.get(at), truth.get(at));
        panic!("row {at} of {} (truth {}):\n {got:?}\n {want:?}", rows.len(), truth.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_and_pages_give_the_models_rows_in_the_models_order() {
    let world = Build::default().world();
    let wallet = world.add("mixed", WalletPlan::trades(1500));
    let mut walk = world.walk(wallet, Want::All, None);
    let (rows, end) = finish(&mut walk).await;
    let truth = world.truth(wallet);
    assert_eq!(end.error, None);
    assert!(end.complete && !end.more);
    same(&rows, &truth);
    assert_eq!(end.trade_count, u64::try_from(truth.len()).unwrap());
    same(&pages(&world, wallet, 7).await, &truth);
}
