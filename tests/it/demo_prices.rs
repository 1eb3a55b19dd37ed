//! Prices of the demo's tokens: they move within a day like those of ordinary tokens.

use std::collections::HashMap;

use blotter::demo::evm;
use blotter::demo::evm::EvmModel;
use blotter::demo::solana;
use blotter::demo::solana::SolanaModel;
use blotter::domain::{Address, Family, Price, TxId, Units};
use blotter::registry::Registry;

const DAY: u32 = 86_400;
const SLOTS_PER_DAY: u64 = 216_000;
/// Limit of the ratio between the highest and the lowest price of a token in a day.
const RATIO_MAX: u64 = 2;

/// One row of the truth. The units of a dollar row value the other row of its transaction.
struct Fact {
    id: TxId,
    token: Address,
    day: u32,
    units: Units,
    native: Option<Units>,
    price: Price,
}

/// Base units of the native coin for base units of the dollar, at a price.
type Worth = fn(Units, Price) -> Units;

/// The value of each transaction that states none itself, from its dollar row.
fn by_dollars(facts: &[Fact], dollar: Address, worth: Worth) -> HashMap<TxId, Units> {
    let dollars = facts.iter().filter(|fact| fact.token == dollar && fact.native.is_none());
    dollars.map(|fact| (fact.id, worth(fact.units, fact.price))).collect()
}

/// The lowest and the highest price of each token on each day, as value and units.
fn check(label: &str, facts: &[Fact], dollar: Address, worth: Worth) {
    let valued = by_dollars(facts, dollar, worth);
    let mut days: HashMap<(Address, u32), Vec<(Units, Units)>> = HashMap::new();
    for fact in facts {
        let value = fact.native.or_else(|| valued.get(&fact.id).copied()).unwrap();
        days.entry((fact.token, fact.day)).or_default().push((value, fact.units));
    }
    let mut compared = 0;
    for ((token, day), prices) in &days {
        for (value, units) in prices {
            for (other_value, other_units) in prices {
                let (high, low) = (*value * *other_units, *other_value * *units);
                assert!(
                    high < low * Units::from(RATIO_MAX),
                    "{label}: {token} on day {day}: {value}/{units}, {other_value}/{other_units}"
                );
            }
        }
        compared += usize::from(prices.len() > 1);
    }
    assert!(compared > 100, "{label}: {compared} days with two trades of one token");
}

fn evm_facts(model: &EvmModel, wallet: Address) -> Vec<Fact> {
    let fact = |row: evm::TrueTrade| Fact {
        id: row.hash,
        token: row.token,
        day: row.time.0 / DAY,
        units: row.units,
        native: row.native,
        price: model.price_at(row.height),
    };
    model.truth(wallet).map(fact).collect()
}

/// A mixed wallet and one of each kind, some hundred trades a day.
fn check_evm(model: &EvmModel, dollar: Address, worth: Worth) {
    let days = |days: u64| Some(model.head() - model.blocks_in(days * u64::from(DAY)));
    let plan = evm::WalletPlan { first: days(40), ..evm::WalletPlan::trades(4_000) };
    check("mixed", &evm_facts(model, model.add_named("mixed", plan)), dollar, worth);
    for kind in evm::TradeKind::ALL {
        let plan = evm::WalletPlan { first: days(10), ..evm::WalletPlan::only(kind, 1_000) };
        let wallet = model.add_named(&format!("{kind:?}"), plan);
        check(&format!("{kind:?}"), &evm_facts(model, wallet), dollar, worth);
    }
}

#[test]
fn within_a_day_no_evm_token_doubles_its_price() {
    let registry = Registry::embedded().unwrap();
    let model = EvmModel::new(3, registry.chain_named("eth").unwrap());
    let dollar = Address::parse(Family::Evm, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48").unwrap();
    // 18 decimals of the coin, 12 of the price, 6 of the dollar.
    let worth: Worth =
        |dollars, price| dollars * Units::from(10_u128.pow(24)) / Units::from(price.0);
    check_evm(&model, dollar, worth);
}

#[test]
fn within_a_day_no_tron_token_doubles_its_price() {
    let registry = Registry::embedded().unwrap();
    let model = EvmModel::new(5, registry.chain_named("tron").unwrap());
    let dollar = Address::parse(Family::Tron, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").unwrap();
    // The demo's price is that of 10,000 TRX: 10 decimals, 12 of the price, 6 of the dollar.
    let worth: Worth =
        |dollars, price| dollars * Units::from(10_u128.pow(16)) / Units::from(price.0);
    check_evm(&model, dollar, worth);
}

#[test]
fn within_a_day_no_solana_token_doubles_its_price() {
    let model = SolanaModel::new(7);
    let dollar =
        Address::parse_token(Family::Solana, "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v")
            .unwrap();
    // 9 decimals of the coin, 12 of the price, 6 of the dollar.
    let worth: Worth =
        |dollars, price| dollars * Units::from(10_u128.pow(15)) / Units::from(price.0);
    let facts = |wallet: Address| -> Vec<Fact> {
        let fact = |row: solana::TrueTrade| Fact {
            id: row.signature,
            token: row.mint,
            day: row.time.0 / DAY,
            units: row.units,
            native: row.native,
            price: model.price_at(row.slot),
        };
        model.truth(wallet).map(fact).collect()
    };
    let mixed = solana::WalletPlan::trades(4_000);
    let first = |days: u64| mixed.last.unwrap() - days * SLOTS_PER_DAY;
    let plan = solana::WalletPlan { first: Some(first(40)), ..mixed };
    check("mixed", &facts(model.add_named("mixed", plan)), dollar, worth);
    for kind in solana::TradeKind::ALL {
        let plan =
            solana::WalletPlan { first: Some(first(10)), ..solana::WalletPlan::only(kind, 1_000) };
        let wallet = model.add_named(&format!("{kind:?}"), plan);
        check(&format!("{kind:?}"), &facts(wallet), dollar, worth);
    }
}
