//! Which rows of a history a reader wants.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::{Address, Family, FilterTag, RowRef, Side, TradeKey, TxId, UnixSeconds};

/// Seconds by which a lower block's time may be above a higher one's: old blocks of Solana have
/// estimated times.
const TIMES_RUN_BACK_MAX: u32 = 60;

/// All that is set has to hold; nothing set is every row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Filter {
    pub token: Option<Address>,
    pub side: Option<Side>,
    /// A venue's name in lower case, or its first words, as in `raydium` for all of that family:
    /// rows are compared without regard to case.
    pub venue: Option<Arc<str>>,
    /// Rows of this time and later ones.
    pub from: Option<UnixSeconds>,
    /// Rows before this time.
    pub to: Option<UnixSeconds>,
}

impl Filter {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub fn matches(&self, row: RowRef<'_>) -> bool {
        let RowRef { bare, token, venue } = row;
        self.token.is_none_or(|wanted| wanted == token.mint)
            && self.side.is_none_or(|side| side == bare.side)
            && self.from.is_none_or(|from| bare.key.time >= from)
            && self.to.is_none_or(|to| bare.key.time < to)
            && self.matches_venue(venue)
    }

    /// Whether a row of this venue can match.
    pub fn matches_venue(&self, name: &str) -> bool {
        self.venue.as_deref().is_none_or(|wanted| is_venue(name, wanted))
    }

    /// Whether it has a bound in time.
    pub fn is_timed(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// True for a row behind which none can match. Lower heights that are not stored may match.
    pub fn ends_at(&self, key: &TradeKey) -> bool {
        self.from.is_some_and(|from| key.time < from)
    }

    /// Whether a transaction of this time shows that none at a lower height matches.
    pub fn ends_below(&self, time: UnixSeconds) -> bool {
        self.ends_at_last().is_some_and(|last| time < last)
    }

    /// The last time at which a transaction does not show that.
    fn ends_at_last(&self) -> Option<UnixSeconds> {
        self.from.map(|from| UnixSeconds(from.0.saturating_sub(TIMES_RUN_BACK_MAX)))
    }

    /// The last place of a history whose time does not show that no lower height matches.
    pub fn ends_behind(&self, family: Family) -> Option<TradeKey> {
        Some(last_of(self.ends_at_last()?, family))
    }

    /// The last place of a history at which a row is still too new to match.
    pub fn begins_behind(&self, family: Family) -> Option<TradeKey> {
        Some(last_of(self.to?, family))
    }

    /// The tag in a cursor, by which a cursor of another filter is refused.
    pub fn tag(&self) -> FilterTag {
        if self.is_none() {
            return FilterTag::default();
        }
        let mut hash = Sha256::new();
        let mut part = |name: u8, bytes: &[u8]| {
            // Each part begins with its name and its length, so that no two filters look alike.
            hash.update([name]);
            hash.update(bytes.len().to_be_bytes());
            hash.update(bytes);
        };
        if let Some(token) = &self.token {
            part(1, token.bytes());
        }
        match self.side {
            Some(Side::Buy) => part(2, b"buy"),
            Some(Side::Sell) => part(2, b"sell"),
            None => {}
        }
        if let Some(venue) = &self.venue {
            part(3, venue.as_bytes());
        }
        if let Some(UnixSeconds(from)) = self.from {
            part(4, &from.to_be_bytes());
        }
        if let Some(UnixSeconds(to)) = self.to {
            part(5, &to.to_be_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        let tag = digest.first_chunk().map_or(1, |first| u32::from_be_bytes(*first));
        FilterTag(tag.max(1))
    }
}

/// The last place that a history can have at a time.
fn last_of(time: UnixSeconds, family: Family) -> TradeKey {
    let tx = match family {
        Family::Solana => TxId::solana(&[u8::MAX; 64]),
        Family::Evm => TxId::Evm([u8::MAX; 32]),
        Family::Tron => TxId::Tron([u8::MAX; 32]),
    };
    TradeKey { time, height: 0, index: 0, tx, leg: u16::MAX }
}

/// Whether a name, without regard to case, is `lower` or begins with its words.
fn is_venue(name: &str, lower: &str) -> bool {
    let ends_word = |rest: &[u8]| matches!(rest.first(), None | Some(b' '));
    if !name.is_ascii() {
        let name = name.to_lowercase();
        return name.strip_prefix(lower).is_some_and(|rest| ends_word(rest.as_bytes()));
    }
    name.as_bytes().split_at_checked(lower.len()).is_some_and(|(first, rest)| {
        first.eq_ignore_ascii_case(lower.as_bytes()) && ends_word(rest)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::domain::{Row, Rows, Token, Trade, Units, ValueSource};

    fn trade(time: u32, side: Side, venue: &str) -> Trade {
        let tx = TxId::solana(&[7; 64]);
        Trade {
            key: TradeKey { time: UnixSeconds(time), height: 5, index: 0, tx, leg: 0 },
            side,
            mint: Address::Solana([1; 32]),
            units: Some(Units::from(1_u64)),
            native: None,
            valued: ValueSource::Direct,
            venue: venue.into(),
        }
    }

    fn filters() -> Vec<Filter> {
        let none = Filter::default();
        vec![
            none.clone(),
            Filter { token: Some(Address::Solana([1; 32])), ..none.clone() },
            Filter { token: Some(Address::Solana([2; 32])), ..none.clone() },
            Filter { side: Some(Side::Buy), ..none.clone() },
            Filter { side: Some(Side::Sell), ..none.clone() },
            Filter { venue: Some("pumpswap".into()), ..none.clone() },
            Filter { venue: Some("öl".into()), ..none.clone() },
            Filter { from: Some(UnixSeconds(100)), ..none.clone() },
            Filter { to: Some(UnixSeconds(100)), ..none.clone() },
            Filter { from: Some(UnixSeconds(99)), to: Some(UnixSeconds(101)), ..none },
        ]
    }

    #[test]
    fn each_part_decides() {
        let at = |time, side, venue| {
            let trade = trade(time, side, venue);
            let token = Arc::new(Token::new(trade.mint, None, None));
            let rows: Rows = [Row { trade, token }].into_iter().collect();
            let row = rows.iter().next().unwrap();
            filters().iter().map(|filter| u8::from(filter.matches(row))).collect::<Vec<_>>()
        };
        assert_eq!(at(100, Side::Buy, "PumpSwap"), [1, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(at(99, Side::Sell, "ÖL"), [1, 1, 0, 0, 1, 0, 1, 0, 1, 1]);
        assert_eq!(at(101, Side::Sell, "Orca"), [1, 1, 0, 0, 1, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_familys_name_is_that_of_its_venues() {
        for (name, wanted, expected) in [
            ("Raydium CLMM", "raydium", true),
            ("Raydium", "raydium", true),
            ("Raydium CLMM", "raydium clmm", true),
            ("Raydium CLMM", "raydium c", false),
            ("Raydiumx", "raydium", false),
            ("Raydium", "raydium clmm", false),
            ("Öl Börse", "öl", true),
            ("Öl Börse", "ö", false),
            ("Orca", "", false),
        ] {
            assert_eq!(is_venue(name, wanted), expected, "{name} {wanted}");
        }
    }

    #[test]
    fn tags_distinguish_filters() {
        let tags: HashSet<u32> = filters().iter().map(|filter| filter.tag().0).collect();
        assert_eq!(tags.len(), filters().len());
        assert_eq!(Filter::default().tag(), FilterTag::default());
    }

    #[test]
    fn rows_at_or_after_to_are_above_the_start_of_the_walk() {
        let filter = Filter { to: Some(UnixSeconds(100)), ..Filter::default() };
        let begin = filter.begins_behind(Family::Solana).unwrap();
        assert!(trade(100, Side::Buy, "").key < begin);
        assert!(trade(99, Side::Buy, "").key > begin);
    }
}
