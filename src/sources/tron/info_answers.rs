//! Pure: what the infos of one transaction show together. One answer may end early, and java-tron
//! keeps no internal transactions by default, so that a second answer may show more.

use super::seen::{SeenTx, TxPurpose};
use crate::decode::evm::{Account, Log, NativeFlows};
use crate::decode::tron::Transaction;

/// Infos without a transfer that the list shows after which the transaction has none.
const CUT_ANSWERS: u32 = 2;
/// Second questions in a row without internal transactions after which there are no more, where no
/// endpoint ever gave any.
const FRUITLESS_MAX: u32 = 8;

/// Whether endpoints give internal transactions. Servers behind one address differ too, so that one
/// that gave some stands for all.
#[derive(Debug, Default)]
pub(super) struct InternalGivers {
    has_any: bool,
    fruitless: u32,
}

impl InternalGivers {
    pub(super) fn gave(&mut self) {
        self.has_any = true;
    }

    /// A second answer had no internal transactions.
    pub(super) fn gave_none(&mut self) {
        self.fruitless = self.fruitless.saturating_add(1);
    }

    /// Whether a second answer may have what one lacks: of one address too, before one has shown any.
    pub(super) fn may_give(&self) -> bool {
        self.has_any || self.fruitless < FRUITLESS_MAX
    }
}

/// What one info shows; the greater, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    /// Every side of the wallet that the list shows.
    sides: bool,
    /// Inner calls, or none is proven.
    calls: bool,
}

#[derive(Debug)]
pub(super) struct InfoAnswers<'a> {
    wallet: &'a Account,
    seen: &'a SeenTx,
    kind: TxPurpose,
    best: Option<(Shown, Box<Transaction>)>,
    cut: u32,
    asked_for_calls: bool,
    /// An answer that was asked for them came without.
    is_fruitless: bool,
}

impl<'a> InfoAnswers<'a> {
    pub(super) fn new(wallet: &'a Account, seen: &'a SeenTx, kind: TxPurpose) -> Self {
        Self { wallet, seen, kind, best: None, cut: 0, asked_for_calls: false, is_fruitless: false }
    }

    pub(super) fn add(&mut self, tx: Box<Transaction>) {
        let calls = has_internal(&tx) || !self.is_inner_call_proven(&tx);
        let shown = Shown { sides: self.shows_sides(&tx), calls };
        self.cut += u32::from(!shown.sides);
        self.is_fruitless |= self.asked_for_calls && !calls;
        if self.best.as_ref().is_none_or(|(best, _)| shown > *best) {
            self.best = Some((shown, tx));
        }
    }

    /// Whether both sides are shown, or are not shown by enough answers.
    pub(super) fn is_settled(&self) -> bool {
        let is_whole = self.best.as_ref().is_some_and(|(shown, _)| shown.sides);
        is_whole || self.cut >= CUT_ANSWERS
    }

    /// Whether the info is asked for once more, for a side or, where that may help, for inner calls.
    pub(super) fn asks_again(&mut self, may_give: impl FnOnce() -> bool) -> bool {
        let for_calls = self.lacks_calls() && !self.asked_for_calls && may_give();
        self.asked_for_calls |= for_calls;
        for_calls || !self.is_settled()
    }

    /// The second answer about inner calls was for nothing; one that did not come shows nothing.
    pub(super) fn is_fruitless(&self) -> bool {
        self.is_fruitless && self.lacks_calls()
    }

    pub(super) fn into_best(self) -> Option<Box<Transaction>> {
        self.best.map(|(_, tx)| tx)
    }

    fn lacks_calls(&self) -> bool {
        self.best.as_ref().is_some_and(|(shown, _)| !shown.calls)
    }

    /// Of a transfer of standard shape, topic 1 is where it came from, and topic 2 where it went.
    fn shows_sides(&self, tx: &Transaction) -> bool {
        let is_at = |log: &Log, topic: usize| match log.topics.len() {
            3.. => log.topics.get(topic).is_some_and(|word| word.last_chunk() == Some(self.wallet)),
            _ => log.mentions(self.wallet),
        };
        let shows = |topic| tx.call.logs.iter().any(|log| is_at(log, topic));
        (!self.seen.gave || shows(1)) && (!self.seen.got || shows(2))
    }

    /// By the list, or by an event of another contract than the called one.
    fn is_inner_call_proven(&self, tx: &Transaction) -> bool {
        // A payment is listed at whom it is paid to without any inner call.
        let by_list = self.seen.inner && self.kind != TxPurpose::Plain;
        let is_others = |called| tx.call.logs.iter().any(|log| log.address != called);
        by_list || tx.call.to.is_some_and(is_others)
    }
}

pub(super) fn has_internal(tx: &Transaction) -> bool {
    !matches!(tx.call.native, NativeFlows::Unknown)
}
