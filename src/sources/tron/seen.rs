//! Pure: what lists and events show of a transaction before it is fetched. It is merged from
//! several answers, because one may be incomplete.

/// Answers that report a transaction as failed, after which it counts as failed.
pub(super) const FAILED_ANSWERS: u32 = 2;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentTx {
    pub(super) json: String,
    pub(super) kind: TxPurpose,
    /// The wallet sent it, or is the called contract.
    pub(super) is_wallets: bool,
    /// Answers that report it as failed, while none reports success.
    pub(super) failures: u32,
    /// It states that it succeeded; early transactions, and those without code, state nothing.
    pub(super) is_good: bool,
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

/// What a transaction may be, by its contract type and call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TxPurpose {
    /// A payment, vote or freeze: no contract runs.
    Plain,
    /// A call that moves or releases one token.
    TokenCall,
    Call,
    /// A trade on the protocol's own exchange.
    NativeTrade,
}

/// What was shown of a transaction: tokens out, tokens in, an inner call, the transaction itself.
pub(super) type Sides = [bool; 4];

impl SeenTx {
    /// A list, or events, show tokens that it moved.
    pub(super) fn moved(&self) -> bool {
        self.gave || self.got
    }

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
