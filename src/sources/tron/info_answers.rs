//! Pure: combines the infos of one transaction. An info may be cut, and java-tron keeps no internal
//! transactions by default, so a second answer may have more.

use std::collections::HashMap;

use tokio::time::Instant;

use super::TronLimits;
use super::offer::show_absence;
use super::seen::{SeenTx, TxPurpose};
use crate::decode::evm::{Account, Log, NativeFlows, NativeMove};
use crate::decode::tron::{Transaction, may_lack_calls};
use crate::domain::Height;
use crate::rpc::EndpointId;
use crate::sources::spaced::SpacedAnswers;

/// Infos without a transfer that the list shows, after which the transaction counts as having none.
const CUT_ANSWERS: u32 = 2;
/// Infos whose last inner calls may be missing, after which they count as whole.
const UNENDED_ANSWERS: u32 = 3;
/// More answers of an endpoint that has returned internal transactions, where one lacks them: other
/// servers behind its address may keep them.
const MORE_ANSWERS: u32 = 7;
/// Transactions in a row for which these have none, after which one more answer is enough: none of
/// its servers keeps those of the blocks that are being read.
const BARE_MAX: u32 = 8;
/// Which endpoints return internal transactions. Servers behind one address differ, so an endpoint
/// that returned some may return more; one that never did counts as without them only after several
/// answers over time.
#[derive(Debug, Default)]
pub(super) struct InternalGivers {
    by: HashMap<EndpointId, Giver>,
}

#[derive(Debug, Default)]
struct Giver {
    has_given: bool,
    /// Answers without internal transactions although there are some.
    lacked: SpacedAnswers,
    /// Transactions for which all answers lacked them since one of their blocks or an older one had
    /// some, and the highest block of them.
    bare: u32,
    bare_top: Height,
    /// Up to this block none of its servers keeps any.
    none_to: Option<Height>,
}

impl Giver {
    /// Whether it gives internal transactions of this block's age.
    fn keeps(&self, block: Height) -> bool {
        self.has_given && self.none_to.is_none_or(|top| block > top)
    }
}

impl InternalGivers {
    /// `given`: the block of the transaction whose internal ones it returned.
    pub(super) fn note(&mut self, id: EndpointId, given: Option<Height>, limits: &TronLimits) {
        let giver = self.by.entry(id).or_default();
        giver.has_given |= given.is_some();
        if let Some(block) = given {
            // What a newer one has shows nothing of those.
            if block <= giver.bare_top {
                (giver.bare, giver.bare_top) = (0, 0);
            }
            giver.none_to = giver.none_to.filter(|top| block > *top);
        } else {
            giver.lacked.note(Instant::now(), limits.lists_refusal_spacing);
        }
    }

    pub(super) fn more_answers(&self, id: EndpointId, block: Height) -> u32 {
        let may_differ = |giver: &Giver| giver.keeps(block);
        if self.by.get(&id).is_some_and(may_differ) { MORE_ANSWERS } else { 1 }
    }

    /// Whether some endpoint keeps those of this block, so that answers without them are false.
    pub(super) fn keep(&self, block: Height) -> bool {
        self.by.values().any(|giver| giver.keeps(block))
    }

    pub(super) fn note_bare(&mut self, id: EndpointId, block: Height) {
        let giver = self.by.entry(id).or_default();
        (giver.bare, giver.bare_top) = (giver.bare + 1, giver.bare_top.max(block));
        if giver.bare >= BARE_MAX {
            giver.none_to = giver.none_to.max(Some(giver.bare_top));
        }
    }

    pub(super) fn may_give(&self, id: EndpointId, limits: &TronLimits) -> bool {
        let gives_none = |giver: &Giver| !giver.has_given && show_absence(&giver.lacked, limits);
        !self.by.get(&id).is_some_and(gives_none)
    }

    pub(super) fn has_any(&self) -> bool {
        self.by.values().any(|giver| giver.has_given)
    }
}

/// What one info shows; greater is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct InfoQuality {
    /// The info has every side of the wallet that the list shows.
    sides: bool,
    /// The info has inner calls, or none are proved to exist.
    calls: bool,
    /// Nothing suggests that its last calls are missing.
    ending: bool,
}

#[derive(Debug)]
pub(super) struct InfoAnswers<'a> {
    wallet: &'a Account,
    seen: &'a SeenTx,
    kind: TxPurpose,
    /// The contract of wrapped TRX.
    wrapped: Account,
    best: Option<(InfoQuality, Box<Transaction>)>,
    cut: u32,
    /// Answers with inner calls of which the last ones may be missing.
    unended: u32,
    /// An endpoint that may have inner calls failed.
    pub(super) is_refused: bool,
}

impl<'a> InfoAnswers<'a> {
    pub(super) fn new(
        (wallet, seen): (&'a Account, &'a SeenTx),
        kind: TxPurpose,
        wrapped: Account,
    ) -> Self {
        let (best, cut, unended, is_refused) = (None, 0, 0, false);
        Self { wallet, seen, kind, wrapped, best, cut, unended, is_refused }
    }

    pub(super) fn add(&mut self, tx: Box<Transaction>) {
        let calls = has_internal(&tx) || !self.is_inner_call_proven(&tx);
        let ending = !(self.lacks_listed(&tx) || may_lack_calls(&tx, self.wallet, &self.wrapped));
        let shown = InfoQuality { sides: self.shows_sides(&tx), calls, ending };
        self.cut += u32::from(!shown.sides);
        self.unended += u32::from(!shown.ending);
        if self.best.as_ref().is_none_or(|(best, _)| shown > *best) {
            self.best = Some((shown, tx));
        }
    }

    /// Whether both sides are shown, or enough answers lack them.
    pub(super) fn is_settled(&self) -> bool {
        let is_whole = self.best.as_ref().is_some_and(|(shown, _)| shown.sides);
        is_whole || self.cut >= CUT_ANSWERS
    }

    /// The best answer; if it lacks inner calls, marked with the reason.
    pub(super) fn into_best(self) -> Option<Box<Transaction>> {
        let ((shown, mut tx), is_refused) = (self.best?, self.is_refused);
        if !shown.calls {
            tx.call.native = if is_refused { NativeFlows::Refused } else { NativeFlows::Gone };
        }
        Some(tx)
    }

    pub(super) fn block(&self) -> Option<Height> {
        self.best.as_ref().map(|(_, tx)| tx.call.block)
    }

    pub(super) fn lacks_calls(&self) -> bool {
        let lacks =
            |shown: &InfoQuality| !shown.calls || !shown.ending && self.unended < UNENDED_ANSWERS;
        self.best.as_ref().is_some_and(|(shown, _)| lacks(shown))
    }

    /// Whether no inner call names the wallet, as its list does.
    fn lacks_listed(&self, tx: &Transaction) -> bool {
        let NativeFlows::Calls(moves) = &tx.call.native else { return false };
        let names = |one: &NativeMove| [one.from, one.to].contains(self.wallet);
        self.is_listed_inside() && !moves.iter().any(names)
    }

    /// The recipient's list shows a plain payment without any inner call.
    fn is_listed_inside(&self) -> bool {
        self.seen.inner && self.kind != TxPurpose::Plain
    }

    /// In a standard transfer, topic 1 is the sender and topic 2 the recipient.
    fn shows_sides(&self, tx: &Transaction) -> bool {
        let is_at = |log: &Log, topic: usize| match log.topics.len() {
            3.. => log.topics.get(topic).is_some_and(|word| word.last_chunk() == Some(self.wallet)),
            _ => log.mentions(self.wallet),
        };
        let shows = |topic| tx.call.logs.iter().any(|log| is_at(log, topic));
        (!self.seen.gave || shows(1)) && (!self.seen.got || shows(2))
    }

    /// Whether the list, or an event of another contract than the called one, proves an inner call.
    pub(super) fn is_inner_call_proven(&self, tx: &Transaction) -> bool {
        let by_list = self.is_listed_inside();
        let is_others = |called| tx.call.logs.iter().any(|log| log.address != called);
        by_list || tx.call.to.is_some_and(is_others)
    }
}

pub(super) fn has_internal(tx: &Transaction) -> bool {
    matches!(tx.call.native, NativeFlows::Calls(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of blocks before its servers kept any, a wallet may have only a few transactions: reads again
    /// and again show it, though each shows newer ones that have some.
    #[test]
    fn a_few_old_transactions_without_inner_calls_are_not_in_doubt_for_good() {
        let (mut givers, limits, id) =
            (InternalGivers::default(), TronLimits::default(), EndpointId(0));
        for read in 1..=3 {
            givers.note(id, Some(100), &limits);
            for block in [9, 8, 7] {
                givers.note_bare(id, block);
            }
            assert_eq!(givers.keep(9), read < 3, "{read}");
        }
        assert!(givers.keep(100));
        // One as old as the newest of them shows that they were kept.
        givers.note(id, Some(9), &limits);
        assert!(givers.keep(9));
    }
}
