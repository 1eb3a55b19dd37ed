//! The kinds of trades of each lane. A sale for dollars is followed by a purchase for dollars.

use super::TradeKind as K;

/// How a lane trades an ordinary coin: the first and the second of every two coins.
pub(super) const KINDS: [[[K; 8]; 2]; 4] = [
    [
        [K::V2, K::V3, K::V2Hop, K::Cow, K::Aggregator, K::V2, K::Cow, K::V3],
        [K::V3, K::UserOp, K::V2, K::V3, K::V3Dollar, K::V2Hop, K::UserOp, K::V2],
    ],
    [
        [K::V4, K::Aggregator, K::V3Dollar, K::V3Dollar, K::V4, K::UserOp, K::Aggregator, K::V4],
        [K::V4, K::V4, K::UserOp, K::Aggregator, K::V2Hop, K::Cow, K::V3, K::Aggregator],
    ],
    [[K::V3, K::V4, K::V2Hop, K::V3Dollar, K::V2, K::V4, K::V3, K::Cow], [K::Taxed; 8]],
    [
        [K::Launchpad; 8],
        [K::Aggregator, K::V2, K::Cow, K::V2Hop, K::V4, K::V3, K::V2, K::Aggregator],
    ],
];

/// The same on Tron.
pub(super) const TRON_KINDS: [[[K; 8]; 2]; 4] = [
    [
        [K::V2, K::V3, K::V2Hop, K::V3Dollar, K::Aggregator, K::V2, K::Cow, K::V3],
        [K::V3, K::V1, K::V2, K::V3, K::V3Dollar, K::V2Hop, K::V1, K::V2],
    ],
    [
        [K::V4, K::Aggregator, K::V3Dollar, K::V3Dollar, K::V4, K::V1, K::Aggregator, K::V4],
        [K::Exchange; 8],
    ],
    [[K::V3, K::V4, K::V2Hop, K::V3Dollar, K::V2, K::V4, K::V1, K::Cow], [K::Taxed; 8]],
    [
        [K::Launchpad; 8],
        [K::Aggregator, K::V2, K::Cow, K::V2Hop, K::V4, K::V3, K::V2, K::Aggregator],
    ],
];
