//! Replies that are nearly right: generated transactions with a few fields, values or bytes changed.
//! `BLOTTER_HOSTILE=N` tries N changes instead of the few thousand of an ordinary run.

use blotter::decode::solana::{decode, parse};
use blotter::demo::DemoNode;
use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::domain::Address;
use blotter::registry::Registry;
use serde_json::Value;

use crate::demo_decode::raw;
use crate::support::bounds::beyond_balances;
use crate::support::places::each_place;

const CHANGES: u64 = 4_000;
const TRANSACTIONS: usize = 48;

/// splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }
}

/// Every place of a JSON document, as a pointer.
fn places(value: &Value, found: &mut Vec<String>) {
    each_place(value, "", &mut |at, _| {
        // Log lines are most of the places and have no meaning for the decoder.
        if !at.contains("/logMessages/") && !at.is_empty() {
            found.push(at.to_owned());
        }
    });
}

/// A number near by, far off or out of range; a text with changed bytes; or another place's value.
fn changed(json: &Value, all: &[String], place: &str, dice: &mut Dice) -> Value {
    let old = json.pointer(place).unwrap();
    match (dice.below(8), old) {
        (0, _) => json.pointer(&all[dice.below(all.len())]).unwrap().clone(),
        (1, _) => Value::Null,
        (_, Value::Number(number)) => {
            let number = number.as_u64().unwrap_or(0);
            match dice.below(5) {
                0 => number.wrapping_add(1).into(),
                1 => number.saturating_sub(1).into(),
                2 => (number ^ (1 << dice.below(64))).into(),
                3 => u64::MAX.into(),
                _ => number.saturating_mul(1_000).into(),
            }
        }
        (_, Value::String(text)) => {
            if let Ok(number) = text.parse::<u64>() {
                return (number ^ (1 << dice.below(40))).to_string().into();
            }
            let Ok(mut bytes) = bs58::decode(text).into_vec() else { return "".into() };
            match (dice.below(4), bytes.len()) {
                (_, 0) => bytes.push(3),
                (0, len) => bytes.truncate(dice.below(len)),
                (_, len) => {
                    let at = dice.below(len);
                    bytes[at] ^= 1 << dice.below(8);
                }
            }
            bs58::encode(bytes).into_string().into()
        }
        (_, Value::Array(list)) => {
            let mut list = list.clone();
            if !list.is_empty() {
                let at = dice.below(list.len());
                if dice.below(2) == 0 { drop(list.remove(at)) } else { list.push(list[at].clone()) }
            }
            list.into()
        }
        (_, Value::Object(map)) => {
            let mut map = map.clone();
            let name = map.keys().nth(dice.below(map.len())).cloned();
            name.map(|name| map.remove(&name));
            map.into()
        }
        (_, Value::Null | Value::Bool(_)) => Value::Bool(dice.below(2) == 0),
    }
}

/// One generated transaction: its reply, and all places in it.
struct Sample {
    json: Value,
    places: Vec<String>,
}

fn samples(seed: u64) -> (Address, Vec<Sample>) {
    let model = SolanaModel::new(seed);
    let node = DemoNode::new(model.clone(), 1);
    let plan = WalletPlan { keeper_percent: 20, ..WalletPlan::trades(60) };
    let wallet = model.add_named("hostile", plan);
    let sample = |signature| {
        let json: Value = serde_json::from_slice(&raw(&node, &signature)).unwrap();
        let mut found = Vec::new();
        places(&json, &mut found);
        Sample { json, places: found }
    };
    let samples = model.signatures(wallet).take(TRANSACTIONS).map(sample).collect();
    (wallet, samples)
}

#[test]
fn a_changed_reply_gives_no_amount_that_no_balance_moved_by() {
    let changes = std::env::var("BLOTTER_HOSTILE").map_or(CHANGES, |n| n.parse().unwrap());
    let registry = Registry::embedded().unwrap();
    let (mut readable, mut with_rows) = (0_u64, 0_u64);
    let (mut wallet, mut all) = samples(0);
    for change in 0..changes {
        if change % 20_000 == 19_999 {
            (wallet, all) = samples(change);
        }
        let mut dice = Dice(change);
        let sample = &all[dice.below(all.len())];
        let mut json = sample.json.clone();
        for _ in 0..=dice.below(2) {
            let place = &sample.places[dice.below(sample.places.len())];
            if json.pointer(place).is_none() {
                continue;
            }
            let valid: Vec<String> = sample
                .places
                .iter()
                .filter(|place| json.pointer(place).is_some())
                .cloned()
                .collect();
            *json.pointer_mut(place).unwrap() = changed(&json, &valid, place, &mut dice);
        }
        let Address::Solana(key) = wallet else { unreachable!() };
        let Ok(tx) = parse(json.to_string().as_bytes()) else { continue };
        let decoded = decode(&registry, &key, &tx);
        readable += 1;
        with_rows += u64::from(!decoded.trades.is_empty());
        let wrong = beyond_balances(&json, &wallet.to_string(), &decoded);
        assert_eq!(wrong, None, "change {change}: {:?} {json}", decoded.trades);
    }
    // If most changes left nothing to check, the test would prove nothing.
    assert!(readable * 4 > changes && with_rows * 10 > changes, "{readable} {with_rows} {changes}");
}

#[test]
fn changed_bytes_make_no_panic() {
    let registry = Registry::embedded().unwrap();
    let (wallet, all) = samples(7);
    let Address::Solana(key) = wallet else { unreachable!() };
    for change in 0..CHANGES {
        let mut dice = Dice(change);
        let mut bytes = all[dice.below(all.len())].json.to_string().into_bytes();
        for _ in 0..=dice.below(4) {
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"\"\\{}[],:0-"[dice.below(10)]),
                _ => bytes.truncate(bytes.len() - dice.below(8)),
            }
        }
        if let Ok(tx) = parse(&bytes) {
            decode(&registry, &key, &tx);
        }
    }
}
