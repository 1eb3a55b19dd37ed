//! Pure: what lists and events show of a transaction before it is fetched. Several answers show it, and
//! what one of them says is not the whole truth.

/// Answers that say of a transaction that it failed after which it did.
pub(super) const FAILED_ANSWERS: u32 = 2;

/// A transaction's fields in lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SeenTx {
    /// Tokens left the wallet.
    pub(super) gave: bool,
    /// Tokens came to the wallet.
    pub(super) got: bool,
    /// An inner call names the wallet.
    pub(super) inner: bool,
    pub(super) sent: Option<SentTx>,
}

/// A transaction itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentTx {
    pub(super) json: String,
    pub(super) kind: TxPurpose,
    /// The wallet sent it, or is the contract that it calls.
    pub(super) is_wallets: bool,
    /// Answers that say that it failed, while none says that it did not.
    pub(super) failures: u32,
}

impl SentTx {
    pub(super) fn has_failed(&self) -> bool {
        self.failures >= FAILED_ANSWERS
    }

    fn join(&mut self, other: Self) {
        match (self.failures, other.failures) {
            (0, _) => {}
            (_, 0) => *self = other,
            (failures, more) => self.failures = failures.saturating_add(more),
        }
    }
}

/// What a transaction may be, by what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TxPurpose {
    /// A payment, a vote, a freeze: no contract runs.
    Plain,
    /// A contract is asked to move or release one token.
    TokenCall,
    Call,
    /// A trade that the protocol itself makes.
    NativeTrade,
}

/// Whether a transaction was shown on each side of the wallet, in an inner call and by itself.
pub(super) type Sides = [bool; 4];

impl SeenTx {
    pub(super) fn sides(&self) -> Sides {
        [self.gave, self.got, self.inner, self.sent.is_some()]
    }

    pub(super) fn join(&mut self, other: Self) {
        self.gave |= other.gave;
        self.got |= other.got;
        self.inner |= other.inner;
        match (&mut self.sent, other.sent) {
            (Some(sent), Some(other)) => sent.join(other),
            (sent @ None, other) => *sent = other,
            (Some(_), None) => {}
        }
    }
}
