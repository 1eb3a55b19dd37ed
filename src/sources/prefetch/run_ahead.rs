//! Prefetch depth: how far a reader may run ahead of delivery.

/// The number of transactions that the client will want next. Beyond it, the prefetched amount
/// grows with what is delivered, within the source's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunAhead {
    /// It is not known what is wanted after the next chunk.
    #[default]
    Unknown,
    /// This many transactions.
    Transactions(usize),
    /// Everything down to the end of the range.
    All,
}

impl RunAhead {
    /// Nothing after what is delivered.
    pub const NOTHING: Self = Self::Transactions(0);

    /// For a number of rows: most transactions of a wallet have one or two.
    pub fn rows(rows: u64) -> Self {
        Self::Transactions(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    pub(in crate::sources) fn after_delivery(self, count: usize) -> Self {
        match self {
            Self::Transactions(wanted) => Self::Transactions(wanted.saturating_sub(count)),
            Self::Unknown | Self::All => self,
        }
    }

    pub(in crate::sources) fn transactions(self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::Transactions(wanted) => wanted,
            Self::All => usize::MAX,
        }
    }
}
