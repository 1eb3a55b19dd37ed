//! Names of pools whose factory no table has: the name of the pool's own contract, else its address
//! stays.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::timeout;

use super::{Enricher, Lookups};
use crate::decode::{Decoded, DecodedTrade, NoteKind};
use crate::domain::{Address, Family};
use crate::registry::{Chain, EvmTables};

/// What the contracts of pairs append to the name of their protocol.
const SUFFIXES: [&str; 3] = [" LP Token", " LPs", " LP"];
/// The fewest letters that a protocol's name keeps without its "swap".
const STEM_LETTERS_MIN: usize = 4;

/// Replaces pools' addresses by names. A pool that no node names in time keeps its address.
pub async fn name_pools(lookups: &Lookups<'_>, decoded: &mut Decoded) {
    look_up(lookups, std::iter::once(&*decoded)).await;
    set_names(lookups, decoded);
}

/// Looks up the names that are not cached.
pub(super) async fn look_up(lookups: &Lookups<'_>, decoded: impl Iterator<Item = &Decoded> + Send) {
    let trades = decoded.filter(|one| names_pools(one)).flat_map(|one| &one.trades);
    let pools: BTreeSet<Address> = trades.filter_map(pool_of).collect();
    let Lookups { chain, source, lane, .. } = lookups;
    let Enricher { registry, limits, kept, .. } = lookups.enricher;
    let is_open = |pool: &Address| kept.pool_names.get(&(chain.id, *pool)).is_none();
    let open: Vec<Address> = pools.into_iter().filter(is_open).collect();
    if open.is_empty() {
        return;
    }
    let answered = timeout(limits.token_wait_max, source.pool_names(&open, lane)).await;
    for (pool, text) in answered.ok().and_then(Result::ok).unwrap_or_default() {
        if let Some(name) = own_name(registry.evm(), chain, &text) {
            kept.pool_names.put((chain.id, pool), name);
        }
    }
}

pub(super) fn set_names(lookups: &Lookups<'_>, decoded: &mut Decoded) {
    if !names_pools(decoded) {
        return;
    }
    let names = &lookups.enricher.kept.pool_names;
    for trade in &mut decoded.trades {
        let name = pool_of(trade).and_then(|pool| names.get(&(lookups.chain.id, pool)));
        if let Some(name) = name {
            trade.venue = name;
        }
    }
}

/// Whether addresses in place of venues are those of pools: a trade by a contract that no table has
/// carries that contract's address.
fn names_pools(decoded: &Decoded) -> bool {
    decoded.notes.iter().all(|note| note.kind != NoteKind::UnknownVenue)
}

/// The pool by whose address a trade's venue is named.
fn pool_of(trade: &DecodedTrade) -> Option<Address> {
    let text = trade.venue.starts_with("0x").then_some(&*trade.venue)?;
    Address::parse(Family::Evm, text).ok()
}

/// The protocol's name in the name of a pool's contract. `None` where it names a pair of tokens, or a
/// protocol whose own pools are recognized by their factory: copies of a contract keep its texts.
fn own_name(tables: &EvmTables, chain: &Chain, text: &str) -> Option<Arc<str>> {
    let stripped = SUFFIXES.iter().find_map(|suffix| text.strip_suffix(suffix));
    let name = stripped.unwrap_or(text).trim();
    let lower = name.to_lowercase();
    // Pools that are no tokens have no name to keep.
    let is_copy = tables.all_factories().iter().filter(|made| made.makes_pairs()).any(|made| {
        let known = stem(&made.name);
        known == stem(name) || made.is_on(chain) && lower.contains(&known)
    });
    (!name.is_empty() && !name.contains('/') && !is_copy).then(|| name.into())
}

/// The first word of a protocol's name, without the "swap" that many end in.
fn stem(name: &str) -> String {
    let word = name.split_whitespace().next().unwrap_or(name).to_lowercase();
    match word.strip_suffix("swap") {
        Some(rest) if rest.len() >= STEM_LETTERS_MIN => rest.to_owned(),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn a_pools_own_name_counts_unless_it_is_copied() {
        let registry = Registry::embedded().unwrap();
        let chain = registry.chain_named("bsc").unwrap();
        let named = |text: &str| own_name(registry.evm(), chain, text);
        let given = |text: &str| named(text).map(|name| name.to_string());
        assert_eq!(given("BabyFork LPs").as_deref(), Some("BabyFork"));
        assert_eq!(given("KnightSwap LP Token").as_deref(), Some("KnightSwap"));
        assert_eq!(given("DDEX").as_deref(), Some("DDEX"));
        for copied in ["Pancake LPs", "Uniswap V2", "PancakeSwap V3", "Thena LP Token", " LPs"] {
            assert_eq!(given(copied), None, "{copied}");
        }
        // A pair of Solidly's forks.
        assert_eq!(given("VolatileV1 AMM - WBNB/CAKE"), None);
        // A chain without the protocol's factory, and one whose factory makes other pools.
        let [berachain, hyperevm] =
            ["berachain", "hyperevm"].map(|slug| registry.chain_named(slug).unwrap());
        assert_eq!(own_name(registry.evm(), berachain, "Uniswap V2"), None);
        let named = |text: &str| own_name(registry.evm(), hyperevm, text);
        assert_eq!(named("HyperSwap V2").as_deref(), Some("HyperSwap V2"));
    }

    #[test]
    fn only_an_address_is_replaced() {
        let trade = |venue: &str| DecodedTrade {
            side: crate::domain::Side::Buy,
            mint: Address::Evm([1; 20]),
            units: None,
            native: None,
            venue: venue.into(),
        };
        let pool = format!("0x{:040x}", 7);
        let mut bytes = [0; 20];
        bytes[19] = 7;
        assert_eq!(pool_of(&trade(&pool)), Some(Address::Evm(bytes)));
        assert_eq!(pool_of(&trade("Uniswap V2")), None);
        assert_eq!(pool_of(&trade("0x")), None);
    }
}
