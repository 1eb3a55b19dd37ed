//! Gains: against a slow model in fractions, against results by hand, and for the demo's wallets.

use std::collections::{BTreeMap, HashMap, VecDeque};

use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoChains, DemoNode, evm};
use blotter::domain::{Decimal, Side, Units};
use blotter::pnl::{Book, BookEntry, Method, TokenPosition};
use blotter::registry::Registry;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::loops::with_nodes;
use crate::support::program::Place;

const METHODS: [Method; 4] = Method::ALL;

fn entry(side: Side, quantity: Option<u64>, native: Option<u64>) -> BookEntry {
    BookEntry { side, quantity: quantity.map(Units::from), native: native.map(Units::from), row: 0 }
}

fn buy(quantity: u64, cost: u64) -> BookEntry {
    entry(Side::Buy, Some(quantity), Some(cost))
}

fn sell(quantity: u64, value: u64) -> BookEntry {
    entry(Side::Sell, Some(quantity), Some(value))
}

fn position(method: Method, entries: &[BookEntry]) -> TokenPosition {
    let mut book = Book::new(method);
    for entry in entries {
        book.enter(*entry);
    }
    *book.position()
}

fn realised(position: &TokenPosition) -> i128 {
    position.realised.decimal(0).to_string().parse().unwrap()
}

fn whole(units: Units) -> i128 {
    units.to_string().parse().unwrap()
}

#[test]
fn lots_are_sold_oldest_first_and_rounding_loses_nothing() {
    // 10 for 100, 10 for 301: 15 cost 100 + floor(301 * 5 / 10) = 250, and 5 for 151 stay.
    let p = position(Method::Fifo, &[buy(10, 100), buy(10, 301), sell(15, 300)]);
    assert_eq!((realised(&p), whole(p.cost), whole(p.open_cost)), (50, 250, 151));
    assert_eq!((whole(p.open), p.judged, p.wins), (5, 1, 1));
    // The rest takes what is left of the lot: 151.
    let p = position(Method::Fifo, &[buy(10, 100), buy(10, 301), sell(15, 300), sell(5, 150)]);
    assert_eq!((realised(&p), whole(p.open_cost), p.judged, p.wins), (49, 0, 2, 1));
}

#[test]
fn the_newest_or_the_dearest_lots_go_first_where_the_method_says_so() {
    let entries = [buy(10, 300), buy(10, 100), buy(10, 200), sell(15, 400)];
    // The lot of 200, and half of that of 100.
    let p = position(Method::Lifo, &entries);
    assert_eq!((realised(&p), whole(p.cost), whole(p.open_cost)), (150, 250, 350));
    // The lot of 300, and half of that of 200.
    let p = position(Method::Hifo, &entries);
    assert_eq!((realised(&p), whole(p.cost), whole(p.open_cost)), (0, 400, 200));
    // Of lots with equal prices the oldest is sold first, and lots without a price last.
    let free = entry(Side::Buy, Some(5), None);
    let p = position(Method::Hifo, &[free, buy(2, 4), buy(3, 6), sell(2, 10), sell(4, 40)]);
    assert_eq!((whole(p.unvalued_proceeds), whole(p.open_unvalued)), (10, 4));
    assert_eq!((realised(&p), p.judged), (30, 2));
}

#[test]
fn the_average_is_that_of_all_that_is_held() {
    // 20 for 401: 15 cost floor(401 * 15 / 20) = 300, and 101 stay in 5.
    let p = position(Method::Average, &[buy(10, 100), buy(10, 301), sell(15, 300)]);
    assert_eq!((realised(&p), whole(p.cost), whole(p.open_cost)), (0, 300, 101));
    assert_eq!((p.judged, p.wins), (1, 0));
    let average = |decimals| p.average_cost(decimals, 0).map(|cost| cost.to_string());
    assert_eq!(average(0), Some("20.2".to_owned()));
    assert_eq!(average(1), Some("202".to_owned()));
}

#[test]
fn the_average_of_a_cheap_token_keeps_its_digits() {
    // A lamport for three tokens of six decimals; exact digits, cut.
    let p = position(Method::Fifo, &[buy(3_000_000, 1)]);
    let text = |cost: Option<Decimal>| cost.map(|cost| cost.to_string());
    assert_eq!(text(p.average_cost(6, 9)), Some("0.000000000333333333333".to_owned()));
    let p = position(Method::Fifo, &[buy(1, 7)]);
    // Where the further digits do not fit the integer, the number is there without them.
    assert_eq!(text(p.average_cost(76, 0)), Some(format!("7{}", "0".repeat(76))));
    assert_eq!(text(p.average_cost(200, 0)), None);
    let p = position(Method::Fifo, &[buy(2, 7), sell(2, 9)]);
    assert_eq!(text(p.average_cost(6, 9)), None);
}

#[test]
fn amounts_not_bought_here_are_reported_apart() {
    for method in METHODS {
        // Of 10 for 100 only 4 were held: floor(100 * 4 / 10) = 40 against a cost of 50.
        let p = position(method, &[buy(4, 50), sell(10, 100)]);
        assert_eq!((realised(&p), whole(p.unmatched), whole(p.unmatched_proceeds)), (-10, 6, 60));
        // Sold before anything was bought: no gain is computed.
        let p = position(method, &[sell(3, 7)]);
        assert_eq!((realised(&p), whole(p.unmatched_proceeds), p.judged), (0, 7, 0));
    }
}

#[test]
fn what_has_no_value_is_never_guessed() {
    let free = entry(Side::Buy, Some(6), None);
    // Oldest first: 6 without a price, then 2 of 4 that cost 40. 80 for 8: 60 and 20.
    let p = position(Method::Fifo, &[free, buy(4, 40), sell(8, 80)]);
    assert_eq!((realised(&p), whole(p.unvalued_proceeds), p.unvalued), (0, 60, 1));
    assert_eq!((whole(p.open_cost), whole(p.open_unvalued), whole(p.open)), (20, 0, 2));
    // With the average method, units with a price are sold first: 4 for 40 and 4 of the others.
    let p = position(Method::Average, &[free, buy(4, 40), sell(8, 80)]);
    assert_eq!((realised(&p), whole(p.unvalued_proceeds)), (0, 40));
    assert_eq!((whole(p.open_cost), whole(p.open_unvalued), whole(p.open)), (0, 2, 2));
    for method in METHODS {
        let sold = entry(Side::Sell, Some(3), None);
        let p = position(method, &[buy(6, 60), sold]);
        assert_eq!((realised(&p), whole(p.unvalued_cost), p.unvalued, p.judged), (0, 30, 1, 0));
        // A row without an amount is counted and moves nothing.
        let p = position(method, &[buy(6, 60), entry(Side::Sell, None, Some(9))]);
        assert_eq!((whole(p.open), whole(p.received), p.sells, p.without_amount), (6, 0, 1, 1));
    }
}

#[test]
fn the_widest_amounts_do_not_overflow() {
    let huge = |side, native: u128| BookEntry {
        side,
        quantity: Some(Units::MAX),
        native: Some(Units::from(native)),
        row: 0,
    };
    for method in METHODS {
        let p = position(method, &[huge(Side::Buy, u128::MAX), huge(Side::Buy, 1)]);
        assert_eq!((p.without_amount, p.buys), (1, 2), "a second such amount is more than can be");
        let half = BookEntry { quantity: Some(Units::MAX >> 1), ..huge(Side::Sell, 5) };
        let p = position(method, &[huge(Side::Buy, u128::MAX), half]);
        // floor((2^128 - 1) * (2^255 - 1) / (2^256 - 1)) = 2^127 - 1.
        assert_eq!(whole(p.cost), i128::MAX);
    }
}

// A slow model in fractions.

#[derive(Debug, Clone, Copy)]
struct Fraction(i128, i128);

impl Fraction {
    fn new(over: i128, under: i128) -> Self {
        let (mut a, mut b) = (over.abs(), under);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self(over / a.max(1), under / a.max(1))
    }

    fn plus(self, other: Self) -> Self {
        Self::new(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
    }

    fn times(self, factor: i128) -> Self {
        Self::new(self.0 * factor, self.1)
    }

    /// Whether an integer is within `margin` of it.
    fn is_near(self, number: i128, margin: i128) -> bool {
        (number * self.1 - self.0).abs() <= margin * self.1
    }
}

const ZERO: Fraction = Fraction(0, 1);

/// What the exact numbers are, nothing rounded.
#[derive(Debug)]
struct Model {
    method: Method,
    /// Quantity and unit cost, in the order of sale. With the average method at most one lot has a
    /// price, and it is the first.
    lots: VecDeque<(i128, Option<Fraction>)>,
    realised: Fraction,
    unvalued_proceeds: Fraction,
    unvalued_cost: Fraction,
    unmatched: i128,
    /// Parts that were taken: each may be rounded twice.
    parts: i128,
}

impl Model {
    fn new(method: Method) -> Self {
        Self {
            method,
            lots: VecDeque::new(),
            realised: ZERO,
            unvalued_proceeds: ZERO,
            unvalued_cost: ZERO,
            unmatched: 0,
            parts: 0,
        }
    }

    fn enter(&mut self, entry: &BookEntry) {
        let Some(quantity) = entry.quantity.map(whole).filter(|quantity| *quantity > 0) else {
            return;
        };
        let native = entry.native.map(whole);
        match entry.side {
            Side::Buy => self.buy(quantity, native),
            Side::Sell => self.sell(quantity, native),
        }
    }

    fn buy(&mut self, quantity: i128, cost: Option<i128>) {
        let lot = (quantity, cost.map(|cost| Fraction::new(cost, quantity)));
        match self.method {
            Method::Fifo => self.lots.push_back(lot),
            Method::Lifo => self.lots.push_front(lot),
            Method::Hifo => {
                let is_dearer = |other: &(i128, Option<Fraction>)| match (other.1, lot.1) {
                    (Some(other), Some(own)) => other.0 * own.1 >= own.0 * other.1,
                    (other, own) => other.is_some() || own.is_none(),
                };
                let at = self.lots.iter().take_while(|other| is_dearer(other)).count();
                self.lots.insert(at, lot);
            }
            Method::Average => self.pool(lot),
        }
    }

    fn pool(&mut self, lot: (i128, Option<Fraction>)) {
        self.lots.push_back(lot);
        let (mut valued, mut cost, mut unvalued) = (0, ZERO, 0);
        for (quantity, unit) in self.lots.drain(..) {
            match unit {
                Some(unit) => {
                    valued += quantity;
                    cost = cost.plus(unit.times(quantity));
                }
                None => unvalued += quantity,
            }
        }
        if valued > 0 {
            self.lots.push_back((valued, Some(Fraction::new(cost.0, cost.1 * valued))));
        }
        if unvalued > 0 {
            self.lots.push_back((unvalued, None));
        }
    }

    fn sell(&mut self, quantity: i128, value: Option<i128>) {
        let mut left = quantity;
        let price = value.map(|value| Fraction::new(value, quantity));
        while left > 0 {
            let Some((held, unit)) = self.lots.front_mut() else { break };
            let part = left.min(*held);
            let cost = unit.map(|unit| unit.times(part));
            *held -= part;
            if *held == 0 {
                self.lots.pop_front();
            }
            left -= part;
            self.parts += 1;
            match (price.map(|price| price.times(part)), cost) {
                (Some(got), Some(cost)) => {
                    self.realised = self.realised.plus(got).plus(cost.times(-1));
                }
                (Some(got), None) => self.unvalued_proceeds = self.unvalued_proceeds.plus(got),
                (None, Some(cost)) => self.unvalued_cost = self.unvalued_cost.plus(cost),
                (None, None) => {}
            }
        }
        self.unmatched += left;
    }
}

fn any_entry() -> impl Strategy<Value = BookEntry> {
    let quantity = proptest::option::weighted(0.95, 0_u64..=12);
    let native = proptest::option::weighted(0.85, 0_u64..=1_000);
    (any::<bool>(), quantity, native).prop_map(|(buys, quantity, native)| {
        entry(if buys { Side::Buy } else { Side::Sell }, quantity, native)
    })
}

proptest! {
    #[test]
    fn nothing_is_lost_or_made(entries in proptest::collection::vec(any_entry(), 0..60)) {
        for method in METHODS {
            let p = position(method, &entries);
            prop_assert_eq!(p.spent, p.cost + p.unvalued_cost + p.open_cost);
            let out = realised(&p) + whole(p.cost + p.unvalued_proceeds + p.unmatched_proceeds);
            prop_assert_eq!(whole(p.received), out);
            prop_assert_eq!(p.bought + p.unmatched, p.sold + p.open);
            prop_assert!(p.open_unvalued <= p.open && p.wins <= p.judged && p.judged <= p.sells);
            let rows = u64::try_from(entries.len()).unwrap();
            prop_assert_eq!(p.buys + p.sells, rows);
        }
    }

    #[test]
    fn each_number_is_what_the_fractions_say(
        entries in proptest::collection::vec(any_entry(), 0..12),
    ) {
        for method in METHODS {
            let mut model = Model::new(method);
            for entry in &entries {
                model.enter(entry);
            }
            let p = position(method, &entries);
            let held = |wanted: fn(Option<Fraction>) -> bool| -> i128 {
                let lots = model.lots.iter().filter(|(_, unit)| wanted(*unit));
                lots.map(|(quantity, _)| quantity).sum()
            };
            prop_assert_eq!(whole(p.open), held(|_| true));
            prop_assert_eq!(whole(p.open_unvalued), held(|unit| unit.is_none()));
            prop_assert_eq!(whole(p.unmatched), model.unmatched);
            // A part's cost is rounded down, and the rest of its lot carries the difference.
            let margin = 2 * model.parts + 2;
            prop_assert!(model.realised.is_near(realised(&p), margin));
            prop_assert!(model.unvalued_proceeds.is_near(whole(p.unvalued_proceeds), margin));
            prop_assert!(model.unvalued_cost.is_near(whole(p.unvalued_cost), margin));
        }
    }

    #[test]
    fn all_methods_agree_once_all_is_sold(
        trades in proptest::collection::vec((any::<bool>(), 1_u64..=1_000, 0_u64..=1_000_000), 1..40),
        last in 0_u64..=1_000_000,
    ) {
        let (mut held, mut entries) = (0, Vec::new());
        for (buys, quantity, native) in trades {
            let quantity = if buys { quantity } else { quantity.min(held) };
            if quantity > 0 {
                held = if buys { held + quantity } else { held - quantity };
                entries.push(if buys { buy(quantity, native) } else { sell(quantity, native) });
            }
        }
        if held > 0 {
            entries.push(sell(held, last));
        }
        let [fifo, others @ ..] = METHODS.map(|method| position(method, &entries));
        for other in others {
            prop_assert_eq!(fifo.realised, other.realised);
        }
        prop_assert_eq!(realised(&fifo), whole(fifo.received) - whole(fifo.spent));
        prop_assert!(fifo.open.is_zero() && fifo.open_cost.is_zero());
    }
}

// What the demo's wallets traded.

struct Traded {
    signature: String,
    side: Side,
    mint: String,
    units: Units,
    native: Option<Units>,
}

/// A second implementation of first in, first out.
#[derive(Default)]
struct Expected {
    lots: VecDeque<(Units, Option<Units>)>,
    gained: Units,
    cost: Units,
    unvalued_proceeds: Units,
    unvalued_cost: Units,
    unmatched_proceeds: Units,
    wins: u64,
}

impl Expected {
    fn sell(&mut self, quantity: Units, value: Option<Units>) {
        let held: Units = self.lots.iter().map(|(held, _)| *held).sum();
        let matched = held.min(quantity);
        let proceeds = value.map(|value| value * matched / quantity);
        if let (Some(value), Some(proceeds)) = (value, proceeds) {
            self.unmatched_proceeds += value - proceeds;
        }
        let (mut left, mut to_give) = (matched, proceeds.unwrap_or_default());
        let (mut gained, mut cost) = (Units::ZERO, Units::ZERO);
        while !left.is_zero() {
            let (held, paid) = self.lots.pop_front().unwrap();
            let part = left.min(held);
            left -= part;
            let share = match value {
                Some(value) if !left.is_zero() => value * part / quantity,
                _ => to_give,
            };
            to_give -= share;
            let taken = paid.map(|paid| paid * part / held);
            if part < held {
                self.lots.push_front((held - part, paid.map(|paid| paid - taken.unwrap())));
            }
            match (value, taken) {
                (Some(_), Some(taken)) => {
                    gained += share;
                    cost += taken;
                }
                (Some(_), None) => self.unvalued_proceeds += share,
                (None, Some(taken)) => self.unvalued_cost += taken,
                (None, None) => {}
            }
        }
        self.gained += gained;
        self.cost += cost;
        self.wins += u64::from(gained > cost);
    }
}

/// A decimal text as base units.
fn units_of(text: &str, decimals: usize) -> Units {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<decimals$}").parse().unwrap()
}

/// A JSON number's text: every digit.
fn digits(value: &Value) -> String {
    value.to_string()
}

fn check_demo(place: &Place, chain: &str, decimals: usize, wallet: &str, truth: Vec<Traded>) {
    let ran = place.run(&["history", wallet, "--chain", chain, "--format", "csv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // What the chain does not contain is valued by prices, or not at all: these come from the rows.
    let rows: HashMap<(String, String), (String, String)> = ran
        .stdout
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            ((cells[0].to_owned(), cells[3].to_owned()), (cells[4].to_owned(), cells[5].to_owned()))
        })
        .collect();
    assert_eq!(rows.len(), truth.len());
    let mut expected: BTreeMap<String, Expected> = BTreeMap::new();
    let mut without_value = 0;
    for trade in truth.into_iter().rev() {
        let (native, amount) = &rows[&(trade.signature, trade.mint.clone())];
        let value = (!native.is_empty()).then(|| units_of(native, decimals));
        if trade.native.is_some() {
            assert_eq!(value, trade.native);
        }
        let book = expected.entry(trade.mint).or_default();
        if amount.is_empty() {
            continue;
        }
        without_value += u64::from(value.is_none());
        match trade.side {
            Side::Buy => book.lots.push_back((trade.units, value)),
            Side::Sell => book.sell(trade.units, value),
        }
    }
    let ran = place.run(&["pnl", wallet, "--chain", chain, "--format", "json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    // Numbers as their text: a reader of floats would round them.
    let report: HashMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(&ran.stdout).unwrap();
    let tokens: Vec<HashMap<String, Box<serde_json::value::RawValue>>> =
        serde_json::from_str(report["tokens"].get()).unwrap();
    assert_eq!(tokens.len(), expected.len());
    let mut sold_at_a_gain = 0;
    for token in &tokens {
        let mint: String = serde_json::from_str(token["tokenMint"].get()).unwrap();
        let want = &expected[&mint];
        let value = |name: &str| {
            let text = token[name].get();
            match text.strip_prefix('-') {
                Some(text) => (true, units_of(text, decimals)),
                None => (false, units_of(text, decimals)),
            }
        };
        let loses = want.cost > want.gained;
        let by = if loses { want.cost - want.gained } else { want.gained - want.cost };
        assert_eq!(value("realised"), (loses, by), "{mint}");
        assert_eq!(value("realisedCost"), (false, want.cost), "{mint}");
        let open: Units = want.lots.iter().filter_map(|(_, cost)| *cost).sum();
        assert_eq!(value("openCost"), (false, open), "{mint}");
        assert_eq!(value("unmatchedProceeds"), (false, want.unmatched_proceeds), "{mint}");
        assert_eq!(value("unvaluedProceeds"), (false, want.unvalued_proceeds), "{mint}");
        assert_eq!(value("unvaluedCost"), (false, want.unvalued_cost), "{mint}");
        assert_eq!(token["wins"].get(), want.wins.to_string(), "{mint}");
        sold_at_a_gain += want.wins;
    }
    assert!(sold_at_a_gain > 0, "no trade gained anything");
    let totals: Value = serde_json::from_str(report["totals"].get()).unwrap();
    assert_eq!(digits(&totals["withoutValue"]), without_value.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_solana_wallets_gains_are_those_of_its_trades() {
    let model = SolanaModel::new(31);
    let wallet = model.add_named("gains", WalletPlan::trades(900));
    let truth: Vec<Traded> = model
        .truth(wallet)
        .map(|row| Traded {
            signature: row.signature.to_string(),
            side: row.side,
            mint: row.mint.to_string(),
            units: row.units,
            native: row.native,
        })
        .collect();
    let nodes = vec![("sol".to_owned(), DemoNode::new(model, 1))];
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        check_demo(&place, "sol", 9, &wallet.to_string(), truth);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evm_wallets_gains_are_those_of_its_trades() {
    let chains = DemoChains::new(32, &Registry::embedded().unwrap());
    let base = chains.evm("base").unwrap();
    let wallet = base.add_named("gains", evm::WalletPlan::trades(400));
    let truth: Vec<Traded> = base
        .truth(wallet)
        .map(|row| Traded {
            signature: row.hash.to_string(),
            side: row.side,
            mint: row.token.to_string(),
            units: row.units,
            native: row.native,
        })
        .collect();
    let paths = chains.paths("base").unwrap();
    let wanted = [paths.rpc, paths.portal.unwrap()];
    let nodes = chains.nodes().into_iter().filter(|(path, _)| wanted.contains(path)).collect();
    with_nodes(nodes, move |urls| {
        let portal = urls.iter().find(|url| url.contains("portal")).unwrap();
        let rpc = urls.iter().find(|url| !url.contains("portal")).unwrap();
        let place = Place::new()
            .variable("BLOTTER_CHAINS_BASE_RPC", rpc)
            .variable("BLOTTER_CHAINS_BASE_PORTAL", portal);
        check_demo(&place, "base", 18, &wallet.to_string(), truth);
    })
    .await;
}
