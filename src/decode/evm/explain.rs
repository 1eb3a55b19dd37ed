//! Explains an EVM transaction.

use std::collections::BTreeMap;

use super::decode;
use super::ledger::{Asset as Moved, Ledger};
use super::own::{Own, of_sponsors};
use super::scene::Scene;
use super::side_legs::without_extras;
use super::tips;
use super::transaction::{Account, NativeFlows, Transaction};
use super::words::ZERO;
use crate::decode::explain::{Asset, Explanation, FoundVenue, LeftOut, Movement, Why};
use crate::decode::flow::Flow;
use crate::domain::{Address, Units};
use crate::registry::{Chain, ContractKind, EventKind, EvmTables};

/// The wallet's movements, and why they became the rows that `decode` returns. `fee` is the
/// sender's network fee, where it is known.
pub fn explain(
    tables: &EvmTables,
    chain: &Chain,
    wallet: &Account,
    tx: &Transaction,
    fee: Option<Units>,
) -> Explanation {
    let mut explanation = Explanation { failed: !tx.succeeded, ..Explanation::default() };
    if let Some(units) = fee.filter(|_| tx.from == *wallet) {
        let (why, asset) = (Why::NetworkFee, Asset::Native);
        explanation.left_out.push(LeftOut { why, asset, units, came: false });
    }
    if !tx.succeeded {
        return explanation;
    }
    let Some(ledger) = Ledger::read(tx, chain) else { return explanation };
    let scene = Scene::read(tables, chain, tx, &ledger, wallet);
    explanation.decoded = decode(tables, chain, wallet, tx);
    let net = matches!(tx.native, NativeFlows::Net { .. });
    explanation.native_known = ledger.native_known || net;
    explanation.movements = movements(&scene);
    explanation.venues = venues(&scene);
    let (why, asset, units) = (Why::Tip, Asset::Native, tips::paid(&scene));
    if !units.is_zero() {
        explanation.left_out.push(LeftOut { why, asset, units, came: false });
    }
    explanation.list_left_out();
    name_sponsors(&mut explanation, &of_sponsors(&scene));
    name_followers(&mut explanation, &scene);
    explanation
}

/// Marks what gas sponsors kept.
fn name_sponsors(explanation: &mut Explanation, sponsored: &BTreeMap<Moved, Flow>) {
    let kept = |mint: &Address| {
        let flow = sponsored.get(&Moved::Token(mint.bytes().try_into().ok()?))?;
        flow.gave.checked_sub(flow.got)
    };
    for out in &mut explanation.left_out {
        if let Asset::Token(mint) = out.asset
            && !out.came
            && kept(&mint) == Some(out.units)
        {
            out.why = Why::GasSponsor;
        }
    }
}

/// Marks tokens without a row that were minted or burnt together with a token that has one.
fn name_followers(explanation: &mut Explanation, scene: &Scene<'_>) {
    let own = without_extras(scene, Own::read(scene));
    let is_made = |token: Account| {
        let mut moves = scene.ledger.moves.iter().filter(|m| m.asset == Moved::Token(token));
        moves.any(|m| m.from == ZERO || m.to == ZERO)
    };
    let follows = |mint: &Address| {
        let leg = own.legs.iter().find(|leg| mint.bytes() == leg.token);
        leg.is_some_and(|leg| !own.exchanged.contains(leg) && is_made(leg.token))
    };
    for out in &mut explanation.left_out {
        if let (Asset::Token(mint), Why::NotExchanged) = (out.asset, out.why)
            && follows(&mint)
        {
            out.why = Why::Follows;
        }
    }
}

fn movements(scene: &Scene<'_>) -> Vec<Movement> {
    let Scene { chain, ledger, wallet, tx, .. } = *scene;
    let mut native = Flow::default();
    let mut tokens = Vec::new();
    for (asset, flow) in ledger.of(wallet) {
        let is_net = matches!(tx.native, NativeFlows::Net { .. });
        match asset {
            Moved::Native if is_net => {}
            _ if ledger.is_measure(asset) => native.join(flow),
            Moved::Token(token) => tokens.push((token, flow)),
            Moved::Native => {}
        }
    }
    if let NativeFlows::Net { gained, lost } = tx.native {
        native.join(Flow { got: gained, gave: lost });
    }
    let native = (native != Flow::default()).then_some(Movement {
        asset: Asset::Native,
        got: native.got,
        gave: native.gave,
    });
    let token = |(token, flow): (Account, Flow)| {
        let mint = Address::from_bytes(chain.family, &token)?;
        Some(Movement { asset: Asset::Token(mint), got: flow.got, gave: flow.gave })
    };
    native.into_iter().chain(tokens.into_iter().filter_map(token)).collect()
}

fn venues(scene: &Scene<'_>) -> Vec<FoundVenue> {
    let mut venues = Vec::new();
    let address = |account: &Account| Address::from_bytes(scene.chain.family, account);
    if let (Some(contract), Some(to)) = (scene.called, &scene.tx.to) {
        let (name, part) = (contract.name.to_string(), called(contract.kind));
        venues.push(FoundVenue { name, part, address: address(to) });
    }
    for venue in &scene.venues {
        let found = FoundVenue {
            name: venue.name(scene.chain).to_string(),
            part: part(venue.event.kind),
            address: address(&venue.log.address),
        };
        FoundVenue::push_new(&mut venues, found);
    }
    venues
}

fn called(kind: ContractKind) -> &'static str {
    match kind {
        ContractKind::Router => "called: router",
        ContractKind::Exchange => "called: exchange",
        ContractKind::Launchpad => "called: launchpad",
        ContractKind::Settlement => "called: fills signed orders",
        ContractKind::EntryPoint => "called: runs operations of smart accounts",
        ContractKind::EthFlow => "called: places orders for native coin",
        ContractKind::Vault => "called: holds the assets of pools",
        ContractKind::Positions => "called: positions of liquidity",
        ContractKind::Conversion => "called: conversion at a fixed price",
        ContractKind::Part => "called: part of a venue",
    }
}

fn part(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Pool => "pool exchanged",
        EventKind::Curve => "price curve of a launchpad exchanged",
        EventKind::Router => "router exchanged through others",
        EventKind::Fill => "signed order filled",
        EventKind::CowTrade => "order settled",
        EventKind::Liquidity => "liquidity changed: no trade",
        EventKind::Position => "position of liquidity grew: no trade",
        EventKind::Conversion => "converted at a fixed price: no trade by itself",
        EventKind::Bridge => "sent to another chain: no trade",
        EventKind::Operation => "smart account did something by itself",
        EventKind::Fee => "platform took a fee of native coin",
    }
}
