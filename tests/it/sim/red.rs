//! Ways that are known to fail (issue 16). A way leaves this list with its last failing seed.

use std::ops::Range;

use super::seeds;
use super::way::Way;

/// Ways of which some seeds fail: their failures are printed, and fail the run only where
/// `BLOTTER_SIM_SEEDS` asks for seeds.
const WAYS: &[Way] = &[];
/// Seeds of such a way that a usual run shows.
const SHOWN: Range<u64> = 0..10;
/// Seeds that are known to fail, and run only where `BLOTTER_SIM_SEEDS` asks for them: a node that
/// strays to another chain gives the price of a reference pool.
const SEEDS_THAT_FAIL: &[(Way, u64)] = &[(Way::Solana, 30_034)];
/// Of each way that does not fail, but for Solana's; [`seeds::usual`] says how many a run takes.
const SEEDS: u64 = 100;
/// Seeds above them that once failed.
const KEPT_SEEDS: &[(Way, u64)] = &[
    (Way::Transfers, 131),
    (Way::Transfers, 487),
    (Way::Transfers, 907),
    (Way::Transfers, 1348),
    (Way::Transfers, 1363),
    (Way::Transfers, 1378),
    (Way::Transfers, 1870),
    (Way::Transfers, 1023),
    (Way::Transfers, 381),
    (Way::Transfers, 766),
    (Way::Portal, 110),
    (Way::Portal, 532),
    (Way::Portal, 1102),
    (Way::Portal, 1584),
    (Way::Portal, 1721),
    (Way::Portal, 2163),
    (Way::Logs, 134),
    (Way::Logs, 225),
    (Way::Logs, 382),
    (Way::Logs, 1713),
    (Way::Logs, 1870),
    (Way::Logs, 716),
    (Way::Logs, 747),
    (Way::Logs, 1338),
    (Way::Logs, 1738),
    (Way::Logs, 1764),
    (Way::Logs, 1774),
    (Way::Logs, 348),
    (Way::Logs, 630),
    (Way::Logs, 748),
    (Way::Logs, 518),
    (Way::Logs, 1212),
    (Way::Logs, 1785),
    (Way::Logs, 2881),
    (Way::Logs, 2953),
    (Way::Logs, 1388),
    (Way::Logs, 450),
    (Way::Portal, 2800),
    (Way::Explorer, 158),
    (Way::Explorer, 1280),
    (Way::Explorer, 2528),
    (Way::Explorer, 2535),
    (Way::Explorer, 1773),
    (Way::Explorer, 3369),
    (Way::Explorer, 1936),
    (Way::Explorer, 659),
    (Way::Explorer, 691),
    (Way::Lists, 3186),
    (Way::Lists, 3321),
    (Way::Lists, 2931),
    (Way::Explorer, 321),
    (Way::Explorer, 702),
    (Way::Explorer, 121),
    (Way::Explorer, 129),
    (Way::Explorer, 359),
    (Way::Events, 299),
    (Way::Events, 465),
    (Way::Events, 459),
    (Way::Events, 1006),
    (Way::Events, 427),
    (Way::Events, 589),
    (Way::Lists, 326),
    (Way::Lists, 465),
    (Way::Lists, 553),
    (Way::Lists, 820),
    (Way::Lists, 1299),
    (Way::Lists, 2359),
];

pub(super) fn is_red(way: Way) -> bool {
    WAYS.contains(&way)
}

pub(super) fn fails(way: Way, seed: u64) -> bool {
    SEEDS_THAT_FAIL.contains(&(way, seed))
}

pub(super) fn seeds_of(way: Way) -> impl Iterator<Item = u64> {
    let kept = KEPT_SEEDS.iter().filter(move |(of, _)| *of == way && !is_red(way));
    let usual = if is_red(way) { SHOWN } else { 0..seeds::usual(SEEDS) };
    kept.map(|(_, seed)| *seed).chain(usual).chain(seeds::apart())
}
