//! Solana: from a `getTransaction` reply to trades.

mod action;
mod balances;
mod base58;
mod frames;
mod raw;
mod rows;
mod swaps;
mod transaction;

pub use raw::{RawError, parse};
pub use transaction::Transaction;

use balances::Ledger;
use base58::address;
use raw::Key;
use rows::Rows;
use swaps::Scene;

use super::{Decoded, Note, NoteKind};
use crate::registry::Registry;

/// Raised whenever the same transaction may give other trades than before.
pub const DECODER_VERSION: u16 = 1;

const SYSTEM_PROGRAM: Key = [0; 32];
const TOKEN_PROGRAM: Key = address("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
const TOKEN_2022_PROGRAM: Key = address("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");
const WRAPPED_SOL: Key = address("So11111111111111111111111111111111111111112");

/// The trades that a transaction holds for a wallet.
pub fn decode(registry: &Registry, wallet: &[u8; 32], tx: &Transaction) -> Decoded {
    let scene = Scene::new(tx, registry.solana());
    if tx.failed || !scene.has_venue() {
        return Decoded::default();
    }
    let ledger = Ledger::new(tx, wallet);
    let mut rows = Rows::default();
    let mut notes = Vec::new();
    for range in outer_ranges(tx) {
        if !scene.may_swap(&range) {
            continue;
        }
        let mut net = scene.net(&ledger, &range);
        net.native += scene.unexplained(&ledger, &range);
        if net.shares {
            notes.push(Note { kind: NoteKind::Liquidity, detail: String::new() });
        } else if net.is_swap() {
            rows.add(&scene, &ledger, range, &net);
        } else if !net.is_empty() {
            notes.push(Note { kind: NoteKind::OneSided, detail: String::new() });
        }
    }
    rows.finish(&scene, &ledger, notes)
}

/// Each outer instruction with those that it called.
fn outer_ranges(tx: &Transaction) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, instruction) in tx.instructions.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if instruction.parent.is_some() => range.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}
