//! The decoder against an independent accounting: for every transaction and token, the rows are the
//! wallet's net movement inside the calls that trade.

use std::collections::BTreeMap;

use blotter::decode::Decoded;
use blotter::decode::solana::{decode, parse};
use blotter::demo::DemoNode;
use blotter::demo::solana::{SolanaModel, TradeKind, TxKind, WalletPlan};
use blotter::domain::{Address, Family, Side};
use blotter::registry::Registry;
use serde_json::Value;

use crate::demo_decode::raw;
use crate::support::recorded::recorded;
use crate::support::replies::{Group, Reply, WRAPPED_SOL};

/// Signed units per mint.
type Net = BTreeMap<String, i128>;

fn rows(decoded: &Decoded) -> Option<Net> {
    let signed = |row: &blotter::decode::DecodedTrade| {
        let units = i128::try_from(row.units?).ok()?;
        Some((row.mint.to_string(), if row.side == Side::Buy { units } else { -units }))
    };
    decoded.trades.iter().map(signed).collect()
}

/// The change of the wallet's own lamports, wrapped or not, with all that is no price added back:
/// the fee, other transfers outside the calls, and rent of others' accounts.
fn native(reply: &Reply, wallet: &str) -> i128 {
    let own = reply.lamports.iter().filter(|(key, _)| reply.is_own(wallet, Some(key)));
    let mut sum: i128 = own.map(|(_, (before, after))| after - before).sum();
    if reply.keys.first().is_some_and(|payer| payer == wallet) {
        sum += reply.fee;
    }
    for step in
        reply.groups.iter().flat_map(|group| &group.moves).filter(|step| step.mint.is_none())
    {
        let out = i128::from(reply.is_own(wallet, step.from.as_ref()));
        let into = i128::from(reply.is_own(wallet, step.to.as_ref()));
        let empty = step
            .to
            .as_ref()
            .and_then(|to| reply.lamports.get(to))
            .is_some_and(|(before, _)| *before == 0);
        // An account that held nothing and is no token account is given its rent.
        if step.outer || step.creates || (empty && out > into && step.amount % 6_960 == 0) {
            sum += step.amount * (out - into);
        }
    }
    sum
}

/// Rows of a signed transaction: what the groups that call one of the venues moved.
fn check(
    reply: &Reply,
    wallet: &str,
    decoded: &Decoded,
    is_venue: impl Fn(&Group) -> bool,
) -> Result<(), String> {
    let got = rows(decoded).ok_or("a row without an amount")?;
    let mut wanted = Net::new();
    for group in reply.groups.iter().filter(|group| is_venue(group)) {
        for (mint, sum) in reply.net(wallet, group) {
            *wanted.entry(mint).or_insert(0) += sum;
        }
    }
    wanted.retain(|_, sum| *sum != 0);
    if got != wanted {
        return Err(format!("rows {got:?}, moved {wanted:?}"));
    }
    let [row] = decoded.trades.as_slice() else { return Ok(()) };
    let shown = row.native.and_then(|native| i128::try_from(native).ok());
    let shown = shown.map(|shown| if row.side == Side::Buy { -shown } else { shown });
    let moved = native(reply, wallet);
    if shown == Some(moved) { Ok(()) } else { Err(format!("{shown:?} lamports, moved {moved}")) }
}

/// A fill by a keeper: what the wallet got, and what an account that is neither its own nor a
/// signer's lost.
fn check_fill(reply: &Reply, wallet: &str, decoded: &Decoded) -> Result<(), String> {
    let got = rows(decoded).ok_or("a row without an amount")?;
    for (mint, units) in &got {
        let escrow = reply.held.values().any(|held| {
            let signer =
                reply.keys.iter().take(reply.signers).any(|key| Some(key) == held.owner.as_ref());
            held.mint == *mint && !signer && held.before - held.after == -units
        });
        if reply.change(wallet, mint) != *units && !escrow {
            return Err(format!("{units} of {mint} moved nowhere"));
        }
    }
    let change = |held: &&crate::support::replies::Held| {
        held.owner.as_deref() == Some(wallet) && held.mint != WRAPPED_SOL
    };
    let missing = reply
        .held
        .values()
        .filter(change)
        .find(|held| held.before != held.after && !got.contains_key(&held.mint));
    missing.map_or(Ok(()), |held| Err(format!("no row of {}", held.mint)))
}

fn demo(seed: u64, plan: WalletPlan, count: usize, is_venue: &dyn Fn(&Group) -> bool) -> usize {
    let registry = Registry::embedded().unwrap();
    let model = SolanaModel::new(seed);
    let node = DemoNode::new(model.clone(), 1);
    let address = model.add_named("accounted", plan);
    let (wallet, Address::Solana(key)) = (address.to_string(), address) else { unreachable!() };
    let mut checked = 0;
    for signature in model.signatures(address).take(count) {
        let bytes = raw(&node, &signature);
        let json: Value = serde_json::from_slice(&bytes).unwrap();
        let reply = Reply::read(&json).unwrap();
        assert!(!reply.strange, "{json}");
        let decoded = decode(&registry, &key, &parse(&bytes).unwrap());
        let kind = model.kind_of(&signature).unwrap();
        let verdict = match kind {
            TxKind::Failed | TxKind::Noise if decoded.trades.is_empty() => Ok(()),
            TxKind::Failed | TxKind::Noise => Err(format!("{:?}", decoded.trades)),
            TxKind::Trade(TradeKind::LimitFill) => check_fill(&reply, &wallet, &decoded),
            TxKind::Trade(_) => check(&reply, &wallet, &decoded, is_venue),
        };
        assert_eq!(verdict, Ok(()), "seed {seed}, {kind:?}: {json}");
        checked += 1;
    }
    checked
}

/// The programs of the table that exchange or route, read without the registry's code.
fn venues() -> impl Fn(&Group) -> bool {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/venues-solana.toml"));
    let mut addresses = std::collections::BTreeSet::new();
    for row in text.unwrap().split("[[program]]").skip(1) {
        let value = |name: &str| {
            let line = row.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_start_matches(" = ").trim_matches('"').to_owned()
        };
        if !["conversion", "part", "limit", "dca", "smart_account"]
            .contains(&value("kind").as_str())
        {
            addresses.insert(value("address"));
        }
    }
    move |group: &Group| group.programs.iter().any(|program| addresses.contains(program))
}

#[test]
fn rows_are_the_movement_inside_the_calls_that_trade() {
    let is_venue = venues();
    let mut checked = 0;
    for seed in 0..24 {
        let plan = WalletPlan { keeper_percent: 20, ..WalletPlan::trades(120) };
        checked += demo(seed, plan, 120, &is_venue);
        for kind in TradeKind::ALL {
            checked += demo(seed, WalletPlan::only(kind, 12), 12, &is_venue);
        }
    }
    assert!(checked > 4_000, "{checked}");
}

/// Over recorded transactions: some of the groups explain the rows of all tokens at once, and each
/// group in which a venue ran and tokens went both ways is one of them.
#[test]
#[expect(clippy::print_stderr, reason = "lists what was judged")]
fn rows_of_recorded_transactions_are_movements_of_whole_groups() {
    let Some(folder) = recorded("BLOTTER_CORPUS", "sol") else { return };
    let (registry, is_venue) = (Registry::embedded().unwrap(), venues());
    let (mut judged, mut left_out, mut wrong) = (0, 0, Vec::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let (wallet, json) = (case["wallet"].as_str().unwrap(), &case["rpc"]["getTransaction"]);
        let Ok(Address::Solana(key)) = Address::parse(Family::Solana, wallet) else {
            panic!("{wallet}")
        };
        let decoded = decode(&registry, &key, &parse(json.to_string().as_bytes()).unwrap());
        let reply = Reply::read(json).unwrap();
        let signs = reply.keys.iter().take(reply.signers).any(|key| key == wallet);
        if decoded.trades.is_empty() || reply.strange || !signs {
            left_out += 1;
            continue;
        }
        judged += 1;
        if let Err(why) = explained(&reply, wallet, &decoded, &is_venue) {
            wrong.push(format!("{}: {why}", path.display()));
        }
    }
    eprintln!(
        "{judged} judged, {left_out} left out: no row, no owners reported, or filled by a keeper"
    );
    assert!(wrong.is_empty() && judged > 0, "{wrong:#?}");
}

fn explained(
    reply: &Reply,
    wallet: &str,
    decoded: &Decoded,
    is_venue: &dyn Fn(&Group) -> bool,
) -> Result<(), String> {
    let got = rows(decoded).ok_or("a row without an amount")?;
    let moving: Vec<(Net, bool)> = reply
        .groups
        .iter()
        .map(|group| (reply.net(wallet, group), is_venue(group)))
        .filter(|(net, _)| !net.is_empty())
        .collect();
    assert!(moving.len() < 16, "too many groups to try all");
    let both = |net: &Net| net.values().any(|sum| *sum > 0) && net.values().any(|sum| *sum < 0);
    let fits = |chosen: u32| {
        let mut sum = Net::new();
        for (at, (net, venue)) in moving.iter().enumerate() {
            if chosen >> at & 1 == 1 {
                for (mint, units) in net {
                    *sum.entry(mint.clone()).or_insert(0) += units;
                }
            } else if *venue && both(net) {
                return false;
            }
        }
        sum.retain(|_, units| *units != 0);
        // A mint's transfer fee is not in the instruction.
        sum.len() == got.len()
            && sum.iter().all(|(mint, units)| {
                got.get(mint).is_some_and(|got| got == units || *got == reply.change(wallet, mint))
            })
    };
    let found = (1..1_u32 << moving.len()).any(fits);
    if found { Ok(()) } else { Err(format!("rows {got:?} of {moving:?}")) }
}
