//! Filters of clients, and which of the true rows each lets through.

use blotter::domain::{Filter, UnixSeconds};

use super::dice::Dice;
use super::world::World;
use crate::support::truth::Fact;

/// A filter that passes some rows and rejects others, if the wallet has both; most seeds have no
/// filter.
pub(super) fn choose(world: &World, wallet: usize, dice: &mut Dice) -> Filter {
    let all = Filter::default();
    let truths = world.truths.borrow();
    let facts = truths[wallet].all();
    if facts.is_empty() || !dice.one_in(3) {
        return all;
    }
    let last = u64::try_from(facts.len() - 1).unwrap();
    let fact = facts[usize::try_from(dice.range(0, last)).unwrap()];
    match dice.range(0, 4) {
        0 => Filter { side: Some(fact.side), ..all },
        1 => Filter { token: Some(fact.mint), ..all },
        2 => Filter { side: Some(fact.side), token: Some(fact.mint), ..all },
        3 => Filter { from: Some(fact.time), ..all },
        _ => Filter { to: Some(fact.time), ..all },
    }
}

/// A `from` that new rows have not reached yet; most seeds have none.
pub(super) fn ahead(world: &World, wallet: usize, dice: &mut Dice) -> Option<Filter> {
    let truths = world.truths.borrow();
    let UnixSeconds(newest) = truths[wallet].all().first()?.time;
    let more = u32::try_from(dice.pick(&[1, 60, 3_600, 86_400])).unwrap();
    let from = Some(UnixSeconds(newest + more));
    dice.one_in(5).then(|| Filter { from, ..Filter::default() })
}

pub(super) fn fits(filter: &Filter, fact: &Fact) -> bool {
    filter.side.is_none_or(|side| side == fact.side)
        && filter.token.is_none_or(|token| token == fact.mint)
        && filter.from.is_none_or(|from| fact.time >= from)
        && filter.to.is_none_or(|to| fact.time < to)
}

/// The rows that it lets through, in their order.
pub(super) fn sifted(filter: &Filter, facts: &[Fact]) -> Vec<Fact> {
    facts.iter().filter(|fact| fits(filter, fact)).copied().collect()
}
