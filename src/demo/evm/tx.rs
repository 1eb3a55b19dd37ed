//! A transaction under construction: a tree of calls, and the events in their order.

use super::places::TxPlaces;
use crate::demo::mix;
use crate::domain::{Account, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Op {
    #[default]
    Call,
    Delegate,
    Static,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Frame {
    pub(super) op: Op,
    pub(super) from: Account,
    pub(super) to: Account,
    pub(super) value: u128,
    pub(super) input: Vec<u8>,
    /// Reverted, with all that it did.
    pub(super) failed: bool,
    pub(super) calls: Vec<Frame>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EventLog {
    pub(super) address: Account,
    pub(super) topics: Vec<Word>,
    pub(super) data: Vec<u8>,
}

/// One position of a filter: any of these values; `None` matches all.
pub(super) type Choice<T> = Option<Vec<T>>;

#[derive(Debug, Default)]
pub(super) struct LogFilter {
    pub(super) addresses: Choice<Account>,
    pub(super) topics: Vec<Choice<Word>>,
}

impl LogFilter {
    pub(super) fn fits(&self, log: &EventLog) -> bool {
        let any = |choice: &Choice<Word>, at: usize| {
            let topic = log.topics.get(at);
            choice.as_ref().is_none_or(|choice| topic.is_some_and(|topic| choice.contains(topic)))
        };
        self.addresses.as_ref().is_none_or(|choice| choice.contains(&log.address))
            && self.topics.len() <= log.topics.len()
            && self.topics.iter().enumerate().all(|(at, choice)| any(choice, at))
    }
}

/// Fees that the sender pays for a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Gas {
    pub(super) used: u64,
    pub(super) price: u128,
    /// The fee for the chain below, on rollups.
    pub(super) l1_fee: u128,
}

impl Gas {
    pub(super) fn cost(self) -> u128 {
        u128::from(self.used) * self.price + self.l1_fee
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tx {
    pub(super) call: Frame,
    pub(super) logs: Vec<EventLog>,
    pub(super) gas: Gas,
    /// A trade of the protocol itself, without a contract: Tron's exchanges.
    pub(super) exchanged: Option<Exchanged>,
}

/// Amounts in base units; the native coin is one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchanged {
    /// The token's number, from which its exchange's follows.
    pub(super) token: u32,
    pub(super) buys: bool,
    pub(super) paid: u128,
    pub(super) got: u128,
}

const WORD: usize = 32;

/// One word of an event or input.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arg {
    Of(Account),
    Int(u128),
    Minus(u128),
    Raw(Word),
}

impl Arg {
    pub(super) fn word(self) -> Word {
        match self {
            Self::Of(account) => mix::joined(&[&[0; 12], &account]),
            Self::Int(number) => mix::joined(&[&[0; 16], &number.to_be_bytes()]),
            Self::Minus(0) => [0; 32],
            Self::Minus(number) => {
                mix::joined(&[&[0xff; 16], &(!number).wrapping_add(1).to_be_bytes()])
            }
            Self::Raw(raw) => raw,
        }
    }
}

pub(super) const TRANSFER: &str = "Transfer(address,address,uint256)";

/// Executes a transaction: the callee entered last is the current caller.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) places: &'a TxPlaces,
    open: Vec<Frame>,
    logs: Vec<EventLog>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(places: &'a TxPlaces, from: Account, to: Account, value: u128) -> Self {
        let call = Frame { from, to, value, ..Frame::default() };
        Self { places, open: vec![call], logs: Vec::new() }
    }

    /// Sets the input of the current call.
    pub(super) fn input(&mut self, signature: &'static str, args: &[Arg]) {
        let input = self.encoded(signature, args);
        if let Some(frame) = self.open.last_mut() {
            frame.input = input;
        }
    }

    fn encoded(&self, signature: &'static str, args: &[Arg]) -> Vec<u8> {
        let selector = self.places.signatures.selector(signature);
        selector.into_iter().chain(args.iter().flat_map(|arg| arg.word())).collect()
    }

    /// Sets the input of the current call to calls of itself (Uniswap's `multicall`).
    pub(super) fn input_calls(
        &mut self,
        signature: &'static str,
        head: &[Arg],
        calls: &[(&'static str, Vec<Arg>)],
    ) {
        let int = |number: usize| Arg::Int(u128::try_from(number).unwrap_or(0));
        let (mut offsets, mut texts) = (Vec::new(), Vec::new());
        for text in calls.iter().map(|(signature, args)| self.encoded(signature, args)) {
            offsets.extend(int(calls.len() * WORD + texts.len()).word());
            texts.extend(int(text.len()).word());
            let end = (texts.len() + text.len()).next_multiple_of(WORD);
            texts.extend(text);
            texts.resize(end, 0);
        }
        let list = int((head.len() + 1) * WORD);
        self.input(signature, &[head, &[list, int(calls.len())]].concat());
        if let Some(frame) = self.open.last_mut() {
            frame.input.extend(offsets.into_iter().chain(texts));
        }
    }

    pub(super) fn end(mut self, gas: Gas) -> Tx {
        while self.open.len() > 1 {
            self.leave();
        }
        let call = self.open.pop().unwrap_or_default();
        Tx { call, logs: self.logs, gas, exchanged: None }
    }

    pub(super) fn fail(self, gas: Gas) -> Tx {
        let mut tx = self.end(gas);
        tx.call.failed = true;
        tx.logs.clear();
        tx
    }

    pub(super) fn here(&self) -> Account {
        self.open.last().map_or([0; 20], |frame| frame.to)
    }

    pub(super) fn enter(
        &mut self,
        to: Account,
        value: u128,
        signature: &'static str,
        args: &[Arg],
    ) {
        self.open.push(Frame { from: self.here(), to, value, ..Frame::default() });
        if !signature.is_empty() {
            self.input(signature, args);
        }
    }

    pub(super) fn leave(&mut self) {
        if self.open.len() > 1
            && let Some(done) = self.open.pop()
            && let Some(outer) = self.open.last_mut()
        {
            outer.calls.push(done);
        }
    }

    /// Leaves a call that failed: its effects are reverted.
    pub(super) fn leave_failed(&mut self) {
        if let Some(frame) = self.open.last_mut() {
            frame.failed = true;
        }
        self.leave();
    }

    /// A static or delegate call: it moves nothing.
    pub(super) fn aside(&mut self, op: Op, to: Account, signature: &'static str) {
        let value = self.open.last().map_or(0, |frame| frame.value);
        let value = if op == Op::Delegate { value } else { 0 };
        let input = self.places.signatures.selector(signature).to_vec();
        self.open.push(Frame { op, from: self.here(), to, value, input, ..Frame::default() });
        self.leave();
    }

    pub(super) fn pay(&mut self, to: Account, value: u128) {
        self.call(to, value, "", &[]);
    }

    /// Returns unused native coin, if there is any.
    pub(super) fn refund(&mut self, to: Account, value: u128) {
        if value > 0 {
            self.pay(to, value);
        }
    }

    /// A call without inner calls or events.
    pub(super) fn call(&mut self, to: Account, value: u128, signature: &'static str, args: &[Arg]) {
        self.enter(to, value, signature, args);
        self.leave();
    }

    // Events. Whose address they have is who runs.

    pub(super) fn log(&mut self, signature: &'static str, indexed: &[Arg], data: &[Arg]) {
        let mut topics = vec![self.places.signatures.topic(signature)];
        topics.extend(indexed.iter().map(|arg| arg.word()));
        let data = data.iter().flat_map(|arg| arg.word()).collect();
        self.logs.push(EventLog { address: self.here(), topics, data });
    }

    /// Transfers a token of the current caller.
    pub(super) fn transfer(&mut self, token: Account, to: Account, amount: u128) {
        let from = self.here();
        let args = [Arg::Of(to), Arg::Int(amount)];
        self.enter(token, 0, "transfer(address,uint256)", &args);
        self.log_transfer(from, to, amount);
        self.leave();
    }

    /// Emits only the event, as the current token contract.
    pub(super) fn log_transfer(&mut self, from: Account, to: Account, amount: u128) {
        self.log(TRANSFER, &[Arg::Of(from), Arg::Of(to)], &[Arg::Int(amount)]);
    }

    /// Transfers a token of an account that approved it.
    pub(super) fn pull(&mut self, token: Account, from: Account, to: Account, amount: u128) {
        let args = [Arg::Of(from), Arg::Of(to), Arg::Int(amount)];
        self.enter(token, 0, "transferFrom(address,address,uint256)", &args);
        self.log_transfer(from, to, amount);
        self.leave();
    }

    /// Wraps native coin of the current caller (WETH9).
    pub(super) fn wrap(&mut self, amount: u128) {
        let who = self.here();
        self.enter(self.places.wrapped, amount, "deposit()", &[]);
        self.log("Deposit(address,uint256)", &[Arg::Of(who)], &[Arg::Int(amount)]);
        self.leave();
    }

    pub(super) fn unwrap(&mut self, amount: u128) {
        let who = self.here();
        self.enter(self.places.wrapped, 0, "withdraw(uint256)", &[Arg::Int(amount)]);
        self.pay(who, amount);
        self.log("Withdrawal(address,uint256)", &[Arg::Of(who)], &[Arg::Int(amount)]);
        self.leave();
    }
}
