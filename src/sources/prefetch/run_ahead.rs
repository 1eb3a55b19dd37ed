//! How far a reader may run ahead of the chunks that are taken.

/// Transactions that are known to be wanted next. Further ones are requested as more is delivered,
/// as far as the limits of the source allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunAhead {
    /// What is wanted behind the next chunk is not known yet.
    #[default]
    Unknown,
    /// As many.
    Transactions(usize),
    /// Everything below.
    All,
}

impl RunAhead {
    /// Nothing behind what is delivered.
    pub const NOTHING: Self = Self::Transactions(0);

    /// For so many rows: most transactions of a wallet have one or two.
    pub fn rows(rows: u64) -> Self {
        Self::Transactions(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    /// What is left of it behind so many.
    pub(in crate::sources) fn less(self, count: usize) -> Self {
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
