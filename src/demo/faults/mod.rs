//! Faults of an endpoint, at configurable rates. The seed and the request's number select the
//! requests that they hit, so that a run can be repeated.

use std::time::Duration;

mod answer_faults;
mod lie;
mod memory;
mod refusal;
mod request;

use serde_json::Value;

use super::mix::Dice;
use crate::domain::{TxId, defaults};

pub(super) use answer_faults::{
    AnswerFaults, CallFaults, RpcCall, reordered, without_logs, without_members,
};
pub(super) use lie::{Lie, LieMemory};
pub(super) use memory::FaultMemory;
pub use refusal::Refusal;
pub(super) use refusal::tron_too_often;
pub(super) use request::{RequestFault, TOO_MANY};

/// A rate, in thousandths of requests (or of calls, where stated).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Rate(pub u16);

impl Rate {
    pub const NEVER: Self = Self(0);
    pub const ALWAYS: Self = Self(1000);

    fn hits(self, dice: &mut Dice) -> bool {
        dice.range(0, 999) < u64::from(self.0)
    }
}

defaults! {
    /// The faults of one endpoint. All are off by default.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Faults {
        /// Status 429 without and with `Retry-After`.
        pub too_many: Rate = Rate::NEVER,
        pub too_many_with_wait: Rate = Rate::NEVER,
        /// The delay in `Retry-After`, in whole seconds.
        pub retry_after: Duration = Duration::from_secs(1),
        /// Status 503.
        pub unavailable: Rate = Rate::NEVER,
        /// No answer at all.
        pub silence: Rate = Rate::NEVER,
        /// The body takes `slow_for` longer than the head of the answer.
        pub slow_body: Rate = Rate::NEVER,
        pub slow_for: Duration = Duration::from_secs(5),
        /// The connection ends in the middle of the body.
        pub cut_body: Rate = Rate::NEVER,
        /// A body that is not JSON, or an HTML page.
        pub garbage: Rate = Rate::NEVER,
        pub html: Rate = Rate::NEVER,
        /// Entries of a batch in another order.
        pub reordered: Rate = Rate::NEVER,
        /// An answer with the id of another call (per call).
        pub wrong_id: Rate = Rate::NEVER,
        /// `null` in place of the result (per call).
        pub null_result: Rate = Rate::NEVER,
        /// A JSON-RPC error that asks for a retry (per call).
        pub busy: Rate = Rate::NEVER,
        /// A page that repeats an entry at its edge, or lacks one of the slot in which the page begins.
        pub duplicate: Rate = Rate::NEVER,
        pub lost: Rate = Rate::NEVER,
        /// An empty page in place of a full one.
        pub empty_page: Rate = Rate::NEVER,
        /// A page of signatures, or of whole transactions, that ends early though more follows, after
        /// its fifth entry or later.
        pub short_page: Rate = Rate::NEVER,
        /// Transactions of one slot in another order than in the previous answer.
        pub flipped_order: Rate = Rate::NEVER,
        /// A head that is behind once, and by how many slots.
        pub head_back: Rate = Rate::NEVER,
        pub head_back_slots: u64 = 50,
        /// Time to the answer, and the maximum of additional random time.
        pub latency: Duration = Duration::ZERO,
        pub latency_jitter: Duration = Duration::ZERO,
        /// Requests in one second beyond which status 429 is returned.
        pub requests_per_second: Option<u32> = None,
        /// A list page that ends early without a cursor, on lists with cursors.
        pub lost_cursor: Rate = Rate::NEVER,
        /// No request is served for `suspended_for`, like Tron's index after too many requests.
        pub suspended: Rate = Rate::NEVER,
        pub suspended_for: Duration = Duration::from_secs(30),
        /// Events of a range omitted silently: all of them, or those after the first ones; and all of
        /// them in another order.
        pub empty_logs: Rate = Rate::NEVER,
        pub short_logs: Rate = Rate::NEVER,
        pub flipped_logs: Rate = Rate::NEVER,
        /// A page of account lists that ends early without a sign.
        pub short_list: Rate = Rate::NEVER,
        /// `null` in place of a token's metadata.
        pub null_tokens: Rate = Rate::NEVER,
        /// A receipt, or Tron's info, without its events.
        pub bare_receipts: Rate = Rate::NEVER,
        /// A list, the events of a range or a gateway's answer that ends within its first three heights:
        /// at what a page that overlaps the one before holds already.
        pub cut_at_edge: Rate = Rate::NEVER,
        /// One to five entries left out in the middle of such an answer.
        pub hole: Rate = Rate::NEVER,
        /// A false list comes twice in a row, as a cache gives it.
        pub lies_twice: bool = false,
        /// A page, empty or cut, that names the cursor of the whole page.
        pub hollow: Rate = Rate::NEVER,
        /// A trace without what is below its second level; Tron's info without internal transactions.
        pub shallow: Rate = Rate::NEVER,
        /// A transaction marked as failed, with nothing moved.
        pub marked_failed: Rate = Rate::NEVER,
        /// A transaction of which each look-up by its id ends with an error.
        pub fails_on: Option<TxId> = None,
        /// Members that are null in each transaction and trace that the endpoint gives.
        pub nulled: &'static [&'static str] = &[],
        /// Silently false answers do not repeat for the same question.
        pub transient: bool = false,
        /// Refused methods, lists or paths, each with its refusal.
        pub refused: Vec<(&'static str, Refusal)> = Vec::new(),
    }
}

impl Faults {
    pub fn none() -> Self {
        Self::default()
    }

    /// All faults, each at `rate`, except suspensions, which affect many requests.
    pub fn storm(rate: Rate) -> Self {
        Self {
            too_many: rate,
            too_many_with_wait: rate,
            unavailable: rate,
            silence: rate,
            slow_body: rate,
            cut_body: rate,
            garbage: rate,
            html: rate,
            reordered: rate,
            wrong_id: rate,
            null_result: rate,
            busy: rate,
            duplicate: rate,
            lost: rate,
            empty_page: rate,
            short_page: rate,
            flipped_order: rate,
            head_back: rate,
            lost_cursor: rate,
            ..Self::default()
        }
    }

    /// Whether any answer may be a [`Lie`].
    fn lie(&self) -> bool {
        let rates = [self.cut_at_edge, self.hole, self.hollow, self.shallow, self.marked_failed];
        rates.iter().any(|rate| *rate != Rate::NEVER)
    }

    /// A correct endpoint with the latency of the internet.
    pub fn latency(latency: Duration) -> Self {
        Self { latency, ..Self::default() }
    }

    pub(super) fn delay(&self, dice: &mut Dice) -> Duration {
        let jitter = u64::try_from(self.latency_jitter.as_micros()).unwrap_or(u64::MAX);
        self.latency.saturating_add(Duration::from_micros(dice.range(0, jitter)))
    }

    /// The fault of a whole request, if any, with its name.
    pub(super) fn request(&self, dice: &mut Dice) -> Option<(RequestFault, &'static str)> {
        let rates = [
            (self.too_many, RequestFault::TooMany, "too_many"),
            (self.too_many_with_wait, RequestFault::TooManyWithWait, "too_many_with_wait"),
            (self.unavailable, RequestFault::Unavailable, "unavailable"),
            (self.silence, RequestFault::Silence, "silence"),
            (self.slow_body, RequestFault::SlowBody, "slow_body"),
            (self.cut_body, RequestFault::CutBody, "cut_body"),
            (self.garbage, RequestFault::Garbage, "garbage"),
            (self.html, RequestFault::Html, "html"),
            (self.reordered, RequestFault::Reordered, "reordered"),
            (self.suspended, RequestFault::Suspended, "suspended"),
        ];
        rates.into_iter().find(|(rate, ..)| rate.hits(dice)).map(|(_, fault, name)| (fault, name))
    }

    /// The refusal of a method, list or path, if any.
    pub(super) fn refusal(&self, name: &str) -> Option<Refusal> {
        self.refused.iter().find(|(refused, _)| *refused == name).map(|(_, how)| *how)
    }

    /// Whether a look-up by an id is of the transaction that the endpoint fails on.
    pub(super) fn fails(&self, method: &str, id: Option<&Value>) -> bool {
        const LOOK_UPS: [&str; 5] = [
            "getTransaction",
            "eth_getTransactionByHash",
            "eth_getTransactionReceipt",
            "gettransactionbyid",
            "gettransactioninfobyid",
        ];
        let is_of = |tx: TxId| id.and_then(Value::as_str) == Some(tx.to_string().as_str());
        self.fails_on.is_some_and(is_of) && LOOK_UPS.contains(&method)
    }

    /// The faults of one call of a request.
    pub(super) fn call(&self, dice: &mut Dice) -> CallFaults {
        let salt = dice.next();
        let mut call = CallFaults {
            wrong_id: self.wrong_id.hits(dice),
            null_result: self.null_result.hits(dice),
            busy: self.busy.hits(dice),
            answer_faults: AnswerFaults {
                duplicate: self.duplicate.hits(dice),
                lose: self.lost.hits(dice),
                empty: self.empty_page.hits(dice),
                flip: self.flipped_order.hits(dice).then_some(salt),
                head_back: if self.head_back.hits(dice) { self.head_back_slots } else { 0 },
                cut: self.lost_cursor.hits(dice),
                short: self.short_page.hits(dice).then_some(salt),
                empty_logs: self.empty_logs.hits(dice),
                short_logs: self.short_logs.hits(dice).then_some(salt),
                flip_logs: self.flipped_logs.hits(dice).then_some(salt),
                short_list: self.short_list.hits(dice).then_some(salt),
                lie: Lie::default(),
            },
            null_tokens: self.null_tokens.hits(dice),
            bare_receipts: self.bare_receipts.hits(dice),
        };
        // Drawn after all others, which these leave as they were.
        let mut salted = |rate: Rate| rate.hits(dice).then_some(salt);
        call.answer_faults.lie = Lie {
            edge: salted(self.cut_at_edge),
            hole: salted(self.hole),
            hollow: salted(self.hollow),
            shallow: salted(self.shallow),
            failed: salted(self.marked_failed),
        };
        call
    }
}
