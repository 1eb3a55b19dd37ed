//! Converts the movements of swaps to one row per token.

use std::ops::Range;
use std::sync::Arc;

use super::Swap;
use super::balances::{Asset, Flow, Ledger};
use super::orders::Fill;
use super::route;
use super::scene::{Scene, trades};
use super::swaps::Net;
use crate::decode::{Decoded, DecodedTrade, Note, NoteKind};
use crate::domain::{Address, Side, Units};
use crate::registry::ProgramKind;

/// Accumulates the rows of a transaction.
#[derive(Debug, Default)]
pub(super) struct RowSums {
    sums: Vec<Sum>,
    swaps: usize,
    /// Lamports of all swaps. `unvalued`: the lamports of at least one swap are unknown.
    native: i128,
    unvalued: bool,
}

#[derive(Debug)]
struct Sum {
    /// Index of the mint.
    mint: usize,
    /// Positive where the wallet received tokens.
    units: i128,
    /// The wallet gave more than `units`, by an unknown amount.
    is_open: bool,
    /// Positive if the wallet received lamports; `None` once one swap's lamports are unknown.
    native: Option<i128>,
    venue: Arc<str>,
}

impl RowSums {
    pub(super) fn add(&mut self, scene: &Scene<'_>, ledger: &Ledger, swap: &Swap) {
        let routed = route::native_value(scene, ledger, swap);
        self.add_net(&swap.net, routed, |mint| venue(scene, ledger, &swap.ranges, mint));
    }

    /// Adds the fill of an order. The keeper may swap before or after the order's own call.
    pub(super) fn add_fill(&mut self, scene: &Scene<'_>, ledger: &Ledger, fill: &Fill<'_>) {
        let whole = std::slice::from_ref(&scene.whole);
        let routed = route::value_of_fill(scene, ledger, &fill.net);
        self.add_net(&fill.net, routed, |mint| {
            exchanged_by(scene, ledger, whole, mint).unwrap_or_else(|| fill.program.name.clone())
        });
    }

    /// Adds the net of a swap. Its native coin values a row only if it moved a single token; for
    /// two tokens, the lamports that it was `routed` through are the value of both.
    fn add_net(&mut self, net: &Net, routed: Option<i128>, venue: impl Fn(usize) -> Arc<str>) {
        self.swaps += 1;
        self.native += net.native;
        self.unvalued |= net.unvalued;
        let moved = || net.tokens.iter().filter(|(_, sum)| *sum != 0);
        let single = moved().count() == 1;
        for (mint, units) in moved() {
            let native = if single {
                (!net.unvalued).then_some(net.native)
            } else {
                routed.map(|value| if *units > 0 { -value } else { value })
            };
            let is_open = net.is_open(Asset::Token(*mint));
            if let Some(row) = self.sums.iter_mut().find(|row| row.mint == *mint) {
                row.units += units;
                row.is_open |= is_open;
                row.native = row.native.zip(native).map(|(a, b)| a + b);
                continue;
            }
            let venue = venue(*mint);
            self.sums.push(Sum { mint: *mint, units: *units, is_open, native, venue });
        }
    }

    /// If several swaps leave a single token, their total native coin is its value. If they leave
    /// none, or also native coin on the same side, the wallet made a round trip.
    fn settle(&mut self) {
        let may_be_sold = |row: &Sum| row.is_open && row.units >= 0;
        if self.swaps < 2 || self.unvalued || self.sums.iter().any(may_be_sold) {
            return;
        }
        let mut left: Vec<&mut Sum> = self.sums.iter_mut().filter(|row| row.units != 0).collect();
        let mut sides = left.iter().map(|row| row.units).chain([self.native]);
        if sides.clone().all(|sum| sum >= 0) || sides.all(|sum| sum <= 0) {
            for row in left {
                row.units = 0;
            }
        } else if let [row] = left.as_mut_slice() {
            row.native = Some(self.native);
        }
    }

    pub(super) fn finish(
        mut self,
        scene: &Scene<'_>,
        ledger: &Ledger,
        notes: Vec<Note>,
    ) -> Decoded {
        self.settle();
        let mut decoded = Decoded { notes, ..Decoded::default() };
        // If more of a received token was given than is known, its side is unknown.
        let has_side = |row: &&Sum| match row.units {
            0 => row.is_open,
            units => units < 0 || !row.is_open,
        };
        for row in self.sums.iter().filter(has_side) {
            let Some(key) = ledger.mints.get(row.mint) else { continue };
            let mint = Address::Solana(*key);
            let side = if row.units > 0 { Side::Buy } else { Side::Sell };
            // No value if native coin is on the same side as the token, exceeds all lamports of the
            // transaction, or remains while the known amounts of the token cancel.
            let native = row.native.filter(|_| row.units != 0);
            let native = native.filter(|native| (*native < 0) == (row.units > 0));
            let native =
                native.filter(|native| native.unsigned_abs() <= scene.tx.lamports_in_all());
            decoded.trades.push(DecodedTrade {
                side,
                mint,
                units: (!row.is_open && ledger.is_mint_explained(row.mint))
                    .then(|| Units::from(row.units.unsigned_abs())),
                native: native.map(|native| Units::from(native.unsigned_abs())),
                venue: row.venue.clone(),
            });
            let token = scene.tx.tokens.iter().find(|token| token.mint == *key);
            decoded.decimals.extend(token.map(|token| (mint, token.decimals)));
        }
        if decoded.trades.is_empty() && !self.sums.is_empty() {
            let detail = "what was bought was sold again".to_owned();
            decoded.notes.push(Note { kind: NoteKind::RoundTrip, detail });
        }
        decoded.trades.sort_by_key(|trade| (trade.side == Side::Buy, trade.mint));
        let has = |side| decoded.trades.iter().any(|trade| trade.side == side);
        if has(Side::Buy) && has(Side::Sell) {
            let moved = Units::from(self.native.unsigned_abs());
            decoded.side_payment = if self.unvalued { Units::MAX } else { moved };
        }
        decoded
    }
}

/// The venue that exchanged most of the token in these instructions, else the program that led the
/// swap.
fn venue(scene: &Scene<'_>, ledger: &Ledger, ranges: &[Range<usize>], mint: usize) -> Arc<str> {
    let venue = exchanged_by(scene, ledger, ranges, mint).or_else(|| routed_by(scene, ranges));
    venue.unwrap_or_else(|| {
        let outer = ranges.first().and_then(|range| scene.instruction(range.start));
        let key = outer.and_then(|outer| scene.tx.key(outer.program));
        key.map(|key| Address::Solana(*key).to_string()).unwrap_or_default().into()
    })
}

/// The venue that exchanged most of the token in these instructions, counting only movements of the
/// wallet's own accounts if there are any.
fn exchanged_by(
    scene: &Scene<'_>,
    ledger: &Ledger,
    ranges: &[Range<usize>],
    mint: usize,
) -> Option<Arc<str>> {
    let is_own = |flow: &Flow| ledger.is_own(flow.from) || ledger.is_own(flow.to);
    most_exchanged(scene, ledger, (ranges, mint), is_own)
        .or_else(|| most_exchanged(scene, ledger, (ranges, mint), |_| true))
}

fn most_exchanged(
    scene: &Scene<'_>,
    ledger: &Ledger,
    (ranges, mint): (&[Range<usize>], usize),
    counts: impl Fn(&Flow) -> bool,
) -> Option<Arc<str>> {
    let mut shares: Vec<(&Arc<str>, u128)> = Vec::new();
    let of_mint = |flow: &&Flow| {
        flow.asset == Asset::Token(mint)
            && ranges.iter().any(|range| range.contains(&flow.instruction))
            && !scene.moves_liquidity(flow.instruction)
            && counts(flow)
    };
    for flow in ledger.flows.iter().filter(of_mint) {
        let Some((_, program)) = scene.leaf(flow.instruction) else { continue };
        match shares.iter_mut().find(|(name, _)| **name == program.name) {
            Some((_, share)) => *share += u128::from(flow.amount),
            None => shares.push((&program.name, u128::from(flow.amount))),
        }
    }
    let best = shares.iter().rev().max_by_key(|(_, share)| *share);
    best.map(|(name, _)| (*name).clone())
}

/// The name of the program that led the swap, where no venue of the tables exchanged the token.
fn routed_by(scene: &Scene<'_>, ranges: &[Range<usize>]) -> Option<Arc<str>> {
    let programs = || {
        let all = ranges.iter().flat_map(|range| scene.acting(range));
        all.filter(|program| trades(program.kind))
    };
    let aggregator = programs().find(|program| program.kind == ProgramKind::Aggregator);
    aggregator.or_else(|| programs().next()).map(|program| program.name.clone())
}
