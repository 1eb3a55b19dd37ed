//! The basis of a span of heights: the way by which its transactions were found, and what that read
//! did not establish.

use std::fmt;

use super::named;

named! {
    /// The way by which a source found a wallet's transactions. Files store its place in this list:
    /// a new way goes to the end.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
    pub enum Way {
        /// Stored before ways were recorded.
        #[default]
        Unknown = "unknown",
        /// Solana: lists of signatures, then each transaction.
        Signatures = "signatures",
        /// Solana: pages of full transactions.
        FullPages = "full_pages",
        /// EVM: an open data gateway.
        Portal = "portal",
        /// EVM: account lists of an index.
        Explorer = "explorer",
        /// EVM: `alchemy_getAssetTransfers`.
        Transfers = "alchemy",
        /// EVM: `eth_getLogs`.
        Logs = "logs",
        /// Tron: account lists.
        Lists = "lists",
        /// Tron: events by block range.
        Events = "events",
    }
}

impl Way {
    pub fn number(self) -> u8 {
        Self::ALL.iter().zip(0..).find(|(way, _)| **way == self).map_or(0, |(_, number)| number)
    }

    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// What a read did not establish, out of a closed list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Doubts(u16);

/// Declares each doubt once: its bit, its name, and its meaning, as in README.md.
macro_rules! doubts {
    ($($doubt:ident = $bit:literal, $name:literal, $meaning:literal;)*) => {
        impl Doubts {
            $(#[doc = $meaning]
            pub const $doubt: Self = Self(1 << $bit);)*

            const NAMES: [(Self, &'static str, &'static str); [$($bit),*].len()] =
                [$((Self::$doubt, $name, $meaning)),*];
        }
    };
}

doubts! {
    UNCONFIRMED = 1, "unconfirmed",
        "an empty or short answer that neither a sentinel in the same call nor a second answer \
         confirmed";
    DEPTH = 2, "depth", "the endpoint is not known to keep entries that are this old";
    INDEXED = 3, "indexed", "the list is not known to have indexed these heights";
    INNER_CALLS = 4, "inner_calls",
        "native coin that inner calls moved to or from the wallet in transactions of other senders";
    TRC10 = 5, "trc10", "TRC-10 tokens, which leave no events";
    MISSING = 6, "missing_transaction", "a listed transaction that no endpoint gives";
    SENT_COUNT = 7, "sent_count",
        "the chain counts another number of sent transactions than the list holds";
    TOKEN_ACCOUNTS = 8, "token_accounts",
        "Solana: transactions that name only token accounts of the wallet, as no endpoint lists \
         those";
    UNRECORDED = 0, "unrecorded", "stored by a version that recorded no proof";
}

impl Doubts {
    pub const NONE: Self = Self(0);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Stored in files: a bit is never reused.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// `None` for a bit that this version does not know.
    pub fn from_bits(bits: u16) -> Option<Self> {
        let known = Self::NAMES.iter().fold(0, |all, (doubt, ..)| all | doubt.0);
        (bits & !known == 0).then_some(Self(bits))
    }

    /// In the order of the list above.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.meanings().map(|(name, _)| name)
    }

    /// Names with what they mean, in the order of the list above.
    pub fn meanings(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let contained = Self::NAMES.iter().filter(move |(doubt, ..)| self.contains(*doubt));
        contained.map(|(_, name, meaning)| (*name, *meaning))
    }
}

impl fmt::Display for Doubts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().collect();
        f.write_str(&names.join(", "))
    }
}

/// The basis of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Proof {
    pub way: Way,
    pub doubts: Doubts,
}

impl Proof {
    /// The proof of spans that an earlier version stored.
    pub const UNRECORDED: Self = Self { way: Way::Unknown, doubts: Doubts::UNRECORDED };

    pub fn of(way: Way) -> Self {
        Self { way, doubts: Doubts::NONE }
    }

    /// The proof of heights that were read by both ways.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let way = if self.way == other.way { self.way } else { Way::Unknown };
        Self { way, doubts: self.doubts.union(other.doubts) }
    }

    #[must_use]
    pub fn with(self, doubts: Doubts) -> Self {
        Self { doubts: self.doubts.union(doubts), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = include_str!("../../README.md");

    #[test]
    fn numbers_and_names_are_distinct_and_come_back() {
        let stored = "unknown signatures full_pages portal explorer alchemy logs lists events";
        assert_eq!(Way::ALL.map(Way::name).join(" "), stored, "no number of a file changes");
        for (number, way) in (0..).zip(Way::ALL) {
            assert_eq!((way.number(), Way::from_number(number)), (number, Some(way)));
        }
        assert_eq!(Way::from_number(9), None);
        for (doubt, name, meaning) in Doubts::NAMES {
            assert_eq!(Doubts::from_bits(doubt.bits()), Some(doubt));
            assert_eq!(doubt.names().collect::<Vec<_>>(), [name]);
            let row = format!("| `{name}` | {meaning} |");
            assert!(README.contains(&row), "{name} has no such row in README.md");
        }
        assert_eq!(Doubts::from_bits(1 << 15), None);
    }

    #[test]
    fn doubts_are_a_set() {
        let two = Doubts::TRC10.union(Doubts::MISSING);
        assert!(two.contains(Doubts::TRC10) && !Doubts::TRC10.contains(two));
        assert_eq!(two.without(Doubts::TRC10), Doubts::MISSING);
        assert_eq!(two.intersection(Doubts::TRC10), Doubts::TRC10);
        assert_eq!(two.names().collect::<Vec<_>>(), ["trc10", "missing_transaction"]);
        assert!(Doubts::NONE.is_empty() && two.contains(Doubts::NONE));
    }
}
