//! Stored values of every kind and version, and keys of rows: damage is an error, and what is taken
//! is written as it was read. The first byte chooses the kind, the next is the version.

#![no_main]

use blotter::store::fuzzing::{KINDS, value};
use blotter_fuzz::target;

fn seeds() -> Vec<Vec<u8>> {
    let kinds = (0..KINDS).flat_map(|kind| [[kind, 1], [kind, 2]]);
    kinds.map(|head| [head.as_slice(), &[0; 40]].concat()).collect()
}

fn attempt(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    value(*kind, rest);
}

target!(seeds, attempt);
