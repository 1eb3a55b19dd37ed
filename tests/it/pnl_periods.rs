//! Gains by period: the sums over parts of a history equal those of the whole.

use std::sync::Arc;

use blotter::domain::{Address, Decimal, Side, TxId, Units, UnixSeconds};
use blotter::pnl::{
    Count, CountStep, Disposal, LedgerRow, Method, Origin, Period, Report, TradeLedger,
};
use proptest::prelude::*;

/// Token, side, quantity, value; times are the rows' places.
type Line = (u8, bool, Option<u64>, Option<u64>);

fn ledger(lines: &[Line]) -> Arc<TradeLedger> {
    let mut ledger = TradeLedger::with_transactions();
    for (time, &(token, buys, quantity, native)) in lines.iter().enumerate().rev() {
        let row = LedgerRow {
            mint: Address::Evm([token; 20]),
            side: if buys { Side::Buy } else { Side::Sell },
            time: UnixSeconds(time.try_into().unwrap()),
            amount: quantity.map(|units| Decimal { units: Units::from(units), decimals: 6 }),
            native: native.map(Units::from),
            tx: TxId::Evm([u8::try_from(time).unwrap(); 32]),
        };
        ledger.push(&row, || format!("T{token}"));
    }
    Arc::new(ledger)
}

fn period(from: Option<u32>, to: Option<u32>) -> Period {
    Period { from: from.map(UnixSeconds), to: to.map(UnixSeconds) }
}

fn count(ledger: &Arc<TradeLedger>, method: Method, period: Period) -> (Report, Vec<Disposal>) {
    let mut count = Count::new(Arc::clone(ledger), method, period);
    let mut disposals = Vec::new();
    loop {
        match count.step() {
            CountStep::Row => {}
            CountStep::Sale(disposal) => disposals.push(*disposal),
            CountStep::All => return (count.report(), disposals),
        }
    }
}

fn realised(report: &Report) -> i128 {
    report.totals.realised.decimal(0).to_string().parse().unwrap()
}

fn whole(units: Units) -> i128 {
    units.to_string().parse().unwrap()
}

#[test]
fn what_was_bought_before_is_carried_over() {
    let lines = [
        (1, true, Some(10), Some(100)),
        (1, true, Some(10), Some(300)),
        (1, false, Some(15), Some(600)),
    ];
    let ledger = ledger(&lines);
    let (report, disposals) = count(&ledger, Method::Fifo, period(Some(2), None));
    let [token] = &report.tokens[..] else { panic!("one token") };
    let p = &token.position;
    assert_eq!((report.trades, p.buys, p.sells), (1, 0, 1));
    assert_eq!((whole(p.opening), whole(p.opening_cost)), (20, 400));
    assert_eq!((whole(p.spent), whole(p.received), realised(&report)), (0, 600, 350));
    assert_eq!((whole(p.open), whole(p.open_cost)), (5, 150));
    let [sale] = &disposals[..] else { panic!("one sale") };
    let bought: Vec<_> = sale.bought.iter().map(|bought| bought.unwrap()).collect();
    assert_eq!(
        bought,
        [(UnixSeconds(0), Some(TxId::Evm([0; 32]))), (UnixSeconds(1), Some(TxId::Evm([1; 32]))),]
    );
    // Later rows do not affect an earlier period.
    let (report, disposals) = count(&ledger, Method::Fifo, period(None, Some(1)));
    assert_eq!((report.trades, whole(report.totals.open_cost), disposals.len()), (1, 100, 0));
    // A period after the last row holds what is open.
    let (report, _) = count(&ledger, Method::Fifo, period(Some(50), None));
    assert_eq!((report.trades, whole(report.totals.opening_cost)), (0, 150));
    assert_eq!((whole(report.totals.open_cost), realised(&report)), (150, 0));
}

#[test]
fn a_pool_has_no_time_of_purchase_and_what_was_not_bought_has_no_cost() {
    let lines = [(1, true, Some(4), Some(40)), (1, false, Some(6), Some(90))];
    for method in Method::ALL {
        let (_, disposals) = count(&ledger(&lines), method, Period::default());
        let [sale] = &disposals[..] else { panic!("one sale") };
        let [part, rest] = &sale.sale.parts[..] else { panic!("two parts") };
        let is_pool = method == Method::Average;
        assert_eq!(part.origin, if is_pool { Origin::Pool } else { Origin::Lot(1) });
        assert_eq!(sale.bought[0].is_none(), is_pool);
        assert_eq!((rest.origin, rest.cost, sale.bought[1]), (Origin::Unmatched, None, None));
        assert_eq!((part.proceeds.map(whole), rest.proceeds.map(whole)), (Some(60), Some(30)));
    }
}

fn any_line() -> impl Strategy<Value = Line> {
    let quantity = proptest::option::weighted(0.95, 0_u64..=20);
    let native = proptest::option::weighted(0.85, 0_u64..=1_000);
    (1_u8..=2, any::<bool>(), quantity, native)
}

proptest! {
    #[test]
    fn periods_add_up_to_the_whole(
        lines in proptest::collection::vec(any_line(), 1..80),
        first in 0_u32..80, second in 0_u32..80,
    ) {
        let ledger = ledger(&lines);
        let (one, two) = (first.min(second), first.max(second) + 1);
        for method in Method::ALL {
            let (all, every) = count(&ledger, method, Period::default());
            let parts = [(None, Some(one)), (Some(one), Some(two)), (Some(two), None)]
                .map(|(from, to)| count(&ledger, method, period(from, to)));
            let sum = |of: fn(&Report) -> i128| parts.iter().map(|(report, _)| of(report)).sum::<i128>();
            let figures: [fn(&Report) -> i128; 10] = [
                realised,
                |r| r.trades.into(),
                |r| r.totals.judged.into(),
                |r| r.totals.wins.into(),
                |r| whole(r.totals.cost),
                |r| whole(r.totals.spent),
                |r| whole(r.totals.received),
                |r| whole(r.totals.unvalued_cost),
                |r| whole(r.totals.unvalued_proceeds),
                |r| whole(r.totals.unmatched_proceeds),
            ];
            for (at, of) in figures.into_iter().enumerate() {
                prop_assert_eq!(of(&all), sum(of), "{} {:?}", at, method);
            }
            for ((before, _), (after, _)) in parts.iter().zip(&parts[1..]) {
                prop_assert_eq!(before.totals.open_cost, after.totals.opening_cost);
            }
            let counted: usize = parts.iter().map(|(_, disposals)| disposals.len()).sum();
            prop_assert_eq!(every.len(), counted);
            prop_assert_eq!(all.totals.open_cost, parts[2].0.totals.open_cost);
        }
    }

    #[test]
    fn disposals_add_up_to_the_figures(lines in proptest::collection::vec(any_line(), 1..80)) {
        let ledger = ledger(&lines);
        for method in Method::ALL {
            let (report, disposals) = count(&ledger, method, Period::default());
            let parts = || disposals.iter().flat_map(|disposal| &disposal.sale.parts);
            let gained: i128 = parts()
                .filter_map(|part| Some(whole(part.proceeds?) - whole(part.cost?)))
                .sum();
            prop_assert_eq!(gained, realised(&report));
            let proceeds: i128 = parts().filter_map(|part| part.proceeds.map(whole)).sum();
            prop_assert_eq!(proceeds, whole(report.totals.received));
            for disposal in &disposals {
                let sum = disposal.sale.parts.iter().map(|part| whole(part.quantity)).sum::<i128>();
                prop_assert_eq!(sum, whole(disposal.sale.quantity));
                prop_assert_eq!(disposal.bought.len(), disposal.sale.parts.len());
                for bought in disposal.bought.iter().flatten() {
                    prop_assert!(bought.0 < disposal.time);
                }
            }
        }
    }
}
