//! Derives from a call's input how much TRX a router took of its value, and whom it paid what it
//! unwrapped. Nodes without internal transactions report this nowhere else.
//!
//! A router is recognized by its address, or by its selector together with events of the pools that
//! it called.

use crate::decode::abi::{account, word};
use crate::decode::evm::{self, Account, Log, Word, topic};
use crate::decode::universal_router::{CoinReceivers, EXECUTE};
use crate::domain::Units;

const SELECTOR: usize = 4;
const BIPS: u64 = 10_000;

/// `Swap` of Uniswap V2's pairs and of V3's pools; the first indexed word is the caller.
const V2_SWAP: Word = topic("d78ad95fa46c994b6551d0da85fc275fe613ce37657fb8d5e3d130840159d822");
const V3_SWAP: Word = topic("c42079f94a6350d7e6235f29174924f928cc2ac818eb64fed8004e115fbcca67");

/// `swapExactTokensForETH`, `swapTokensForExactETH` and the form for fee-on-transfer tokens
/// (Uniswap V2 `Router02`): the fourth word is the receiver.
const V2_SELL: [[u8; 4]; 3] =
    [[0x18, 0xcb, 0xaf, 0xe5], [0x4a, 0x25, 0xd9, 0x4a], [0x79, 0x1a, 0xc9, 0x47]];
const V2_TO: usize = 3;
/// `swapExactETHForTokens`, `swapETHForExactTokens`, which refunds what it does not need, and the
/// form for fee-on-transfer tokens.
const V2_BUY: [[u8; 4]; 3] =
    [[0x7f, 0xf3, 0x6a, 0xb5], [0xfb, 0x3b, 0xdb, 0x41], [0xb6, 0xf9, 0xde, 0x95]];
/// `swapExactInput(address[],string[],uint256[],uint24[],(uint256,uint256,address,uint256))` of
/// SUN's Smart Exchange Router: the seventh word is the receiver.
const SMART: [u8; 4] = [0xce, 0xf9, 0x52, 0x29];
const SMART_TO: usize = 6;
/// Uniswap V3 periphery: `multicall` in its three forms, then `exactInputSingle`, `exactInput`,
/// `exactOutputSingle` and `exactOutput`, of `SwapRouter` and of `SwapRouter02`.
const V3_CALLS: [[u8; 4]; 11] = [
    [0xac, 0x96, 0x50, 0xd8],
    [0x5a, 0xe4, 0x01, 0xdc],
    [0x1f, 0x04, 0x64, 0xd1],
    [0x41, 0x4b, 0xf3, 0x89],
    [0x04, 0xe4, 0x5a, 0xaf],
    [0xc0, 0x4b, 0x8d, 0x59],
    [0xb8, 0x58, 0x18, 0x3f],
    [0xdb, 0x3e, 0x21, 0x98],
    [0x50, 0x23, 0xb4, 0xdf],
    [0xf2, 0x8c, 0x04, 0x98],
    [0x09, 0xb8, 0x13, 0x46],
];
/// Called inside `multicall`: minimum amount, receiver; with a fee also its hundredths of a percent
/// and its receiver.
const UNWRAP: [u8; 4] = [0x49, 0x40, 0x4b, 0x7c];
const UNWRAP_WITH_FEE: [u8; 4] = [0x9b, 0x2c, 0x0a, 0x37];
/// `refundETH()`: returns the unused value to the sender.
const REFUND: [u8; 4] = [0x12, 0x21, 0x0e, 0x8a];
/// A call of a router, with the amounts that it wrapped and unwrapped by WTRX's events.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouterCall<'a> {
    pub(super) call: &'a evm::Transaction,
    pub(super) input: &'a [u8],
    pub(super) wrapped: Units,
    pub(super) unwrapped: Units,
    pub(super) last_unwrapped: Units,
    /// The router is known by its address.
    pub(super) is_known: bool,
}

impl RouterCall<'_> {
    /// The value of the call less its refund.
    pub(super) fn spent(&self) -> Option<Units> {
        let (value, none_back) = (self.call.value, self.unwrapped.is_zero());
        let selector = self.input.first_chunk()?;
        if V2_BUY.contains(selector) && self.called(V2_SWAP) && none_back {
            return (self.wrapped <= value).then_some(self.wrapped);
        }
        if EXECUTE.contains(selector) && (self.called(V2_SWAP) || self.called(V3_SWAP)) {
            let back = if none_back { Units::ZERO } else { self.by_commands()? };
            return if self.wrapped == value { value.checked_sub(back) } else { None };
        }
        let refunds = self.input.windows(SELECTOR).any(|window| window == REFUND.as_slice());
        let is_v3 = V3_CALLS.contains(selector) && self.called(V3_SWAP);
        let fits = is_v3 && none_back && !self.wrapped.is_zero() && self.wrapped <= value;
        fits.then_some(if refunds { self.wrapped } else { value })
    }

    /// The part of the unwrapped TRX that the sender received.
    pub(super) fn paid(&self) -> Option<Units> {
        let (selector, words) = self.input.split_first_chunk::<SELECTOR>()?;
        if V2_SELL.contains(selector) && self.called(V2_SWAP) {
            // The call ends with the unwrap; an earlier one may be a token's sale of its fees.
            return Some(self.pay(account(words, V2_TO)?, self.last_unwrapped));
        }
        if self.last_unwrapped != self.unwrapped {
            return None;
        }
        if *selector == SMART && self.is_known {
            return Some(self.pay(account(words, SMART_TO)?, self.unwrapped));
        }
        if EXECUTE.contains(selector) && (self.called(V2_SWAP) || self.called(V3_SWAP)) {
            return self.by_commands();
        }
        let is_v3 = V3_CALLS.contains(selector) && self.called(V3_SWAP);
        if is_v3 { self.by_unwraps() } else { None }
    }

    fn pay(&self, to: Account, amount: Units) -> Units {
        if to == self.call.from { amount } else { Units::ZERO }
    }

    fn by_unwraps(&self) -> Option<Units> {
        let mut unwraps = self.input.windows(SELECTOR).enumerate().filter(|(_, window)| {
            *window == UNWRAP.as_slice() || *window == UNWRAP_WITH_FEE.as_slice()
        });
        let ((at, kind), None) = (unwraps.next()?, unwraps.next()) else { return None };
        let arguments = self.input.get(at + SELECTOR..)?;
        let to = account(arguments, 1)?;
        if kind == UNWRAP.as_slice() {
            return Some(self.pay(to, self.unwrapped));
        }
        let bips = word(arguments, 2).filter(|bips| *bips <= Units::from(BIPS))?;
        let fee = self.unwrapped.checked_mul(bips)?.checked_div(Units::from(BIPS))?;
        Some(self.pay(to, self.unwrapped.checked_sub(fee)?))
    }

    /// Reads a Universal Router's commands: exactly one unwraps, and none gives native coin to
    /// others.
    fn by_commands(&self) -> Option<Units> {
        let coin = CoinReceivers::read(self.input, self.call.from)?;
        let ([to], []) = (coin.unwraps.as_slice(), coin.gifts.as_slice()) else { return None };
        Some(self.pay(*to, self.unwrapped))
    }

    /// Whether the router called a pool that emits this event.
    fn called(&self, swap: Word) -> bool {
        let is_its = |log: &Log| {
            let caller = log.topics.get(1).and_then(|topic| topic.last_chunk());
            log.topics.first() == Some(&swap) && caller == self.call.to.as_ref()
        };
        self.call.logs.iter().any(is_its)
    }
}

#[cfg(test)]
mod tests {
    use sha3::{Digest as _, Keccak256};

    use super::*;
    use crate::decode::abi::WORD;
    use crate::decode::evm::NativeFlows;

    const ROUTER: Account = [9; 20];
    const UNWRAP_WETH: u8 = 0x0c;
    const PAY_PORTION: u8 = 0x06;
    const VALUE: u64 = 10_000;

    fn who(number: u8) -> Account {
        let mut account = [0; 20];
        account[19] = number;
        account
    }

    fn input(selector: [u8; 4], words: &[u64]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| Units::from(*word).to_be_bytes::<32>());
        selector.into_iter().chain(words).collect()
    }

    /// A call by account 7 of a router that called pools with this event.
    fn call(value: u64, swap: Word) -> evm::Transaction {
        let mut caller = [0; 32];
        caller[12..].copy_from_slice(&ROUTER);
        let log = Log {
            address: [5; 20],
            topics: [swap, caller].into_iter().collect(),
            data: Vec::new(),
        };
        evm::Transaction {
            hash: [0; 32],
            block: 1,
            index: 0,
            producer: None,
            from: who(7),
            to: Some(ROUTER),
            value: Units::from(value),
            selector: None,
            terms: evm::Terms::default(),
            succeeded: true,
            logs: vec![log],
            native: NativeFlows::Unknown,
        }
    }

    /// `moved`: what was wrapped, and unwrapped at once.
    fn routed<'a>(
        call: &'a evm::Transaction,
        input: &'a [u8],
        moved: (u64, u64),
    ) -> RouterCall<'a> {
        let (wrapped, unwrapped) = (Units::from(moved.0), Units::from(moved.1));
        RouterCall { call, input, wrapped, unwrapped, last_unwrapped: unwrapped, is_known: true }
    }

    #[track_caller]
    fn paid(swap: Word, input: &[u8], expected: Option<u64>) {
        let call = call(0, swap);
        assert_eq!(routed(&call, input, (0, VALUE)).paid(), expected.map(Units::from));
    }

    #[track_caller]
    fn spent(swap: Word, input: &[u8], moved: (u64, u64), expected: Option<u64>) {
        let call = call(VALUE, swap);
        assert_eq!(routed(&call, input, moved).spent(), expected.map(Units::from));
    }

    /// Commands with one input of words each.
    fn execute(commands: &[(u8, &[u64])]) -> Vec<u8> {
        let mut list = Vec::new();
        let mut tail = Vec::new();
        for (_, words) in commands {
            list.push(u64::try_from(commands.len() * WORD + tail.len()).unwrap());
            let data = input([0; 4], words)[4..].to_vec();
            tail.extend(Units::from(data.len()).to_be_bytes::<32>());
            tail.extend(data);
        }
        let count = u64::try_from(commands.len()).unwrap();
        let mut padded = [0; 32];
        for (at, (command, _)) in commands.iter().enumerate() {
            padded[at] = *command;
        }
        let mut whole = input(EXECUTE[0], &[96, 160, 0, count]);
        whole.extend(padded);
        whole.extend(Units::from(count).to_be_bytes::<32>());
        whole.extend(&input([0; 4], &list)[4..]);
        whole.extend(tail);
        whole
    }

    #[test]
    fn selectors_are_those_of_their_signatures() {
        let path = "(uint256,uint256,address[],address,uint256)";
        let buy = "(uint256,address[],address,uint256)";
        let fee = "SupportingFeeOnTransferTokens";
        let tuple = "(uint256,uint256,address,uint256)";
        let single = "(address,address,uint24,address";
        let texts = [
            (format!("swapExactTokensForETH{path}"), V2_SELL[0]),
            (format!("swapTokensForExactETH{path}"), V2_SELL[1]),
            (format!("swapExactTokensForETH{fee}{path}"), V2_SELL[2]),
            (format!("swapExactETHForTokens{buy}"), V2_BUY[0]),
            (format!("swapETHForExactTokens{buy}"), V2_BUY[1]),
            (format!("swapExactETHForTokens{fee}{buy}"), V2_BUY[2]),
            (format!("swapExactInput(address[],string[],uint256[],uint24[],{tuple})"), SMART),
            ("unwrapWETH9(uint256,address)".to_owned(), UNWRAP),
            ("unwrapWETH9WithFee(uint256,address,uint256,address)".to_owned(), UNWRAP_WITH_FEE),
            ("refundETH()".to_owned(), REFUND),
            ("multicall(bytes[])".to_owned(), V3_CALLS[0]),
            ("multicall(uint256,bytes[])".to_owned(), V3_CALLS[1]),
            ("multicall(bytes32,bytes[])".to_owned(), V3_CALLS[2]),
            (format!("exactInputSingle({single},uint256,uint256,uint256,uint160))"), V3_CALLS[3]),
            (format!("exactInputSingle({single},uint256,uint256,uint160))"), V3_CALLS[4]),
            ("exactInput((bytes,address,uint256,uint256,uint256))".to_owned(), V3_CALLS[5]),
            ("exactInput((bytes,address,uint256,uint256))".to_owned(), V3_CALLS[6]),
            (format!("exactOutputSingle({single},uint256,uint256,uint256,uint160))"), V3_CALLS[7]),
            (format!("exactOutputSingle({single},uint256,uint256,uint160))"), V3_CALLS[8]),
            ("exactOutput((bytes,address,uint256,uint256,uint256))".to_owned(), V3_CALLS[9]),
            ("exactOutput((bytes,address,uint256,uint256))".to_owned(), V3_CALLS[10]),
            ("execute(bytes,bytes[],uint256)".to_owned(), EXECUTE[0]),
            ("execute(bytes,bytes[])".to_owned(), EXECUTE[1]),
        ];
        for (text, selector) in texts {
            assert_eq!(Keccak256::digest(&text)[..4], selector, "{text}");
        }
    }

    #[test]
    fn finds_what_the_sender_was_paid() {
        paid(V2_SWAP, &input(V2_SELL[0], &[100, 1, 160, 7, 99]), Some(10_000));
        paid(V2_SWAP, &input(V2_SELL[0], &[100, 1, 160, 8, 99]), Some(0));
        paid(V3_SWAP, &input(SMART, &[1, 2, 3, 4, 100, 1, 7, 99]), Some(10_000));
        let outer = input(V3_CALLS[0], &[32]);
        let multicall = |inner: &[u8]| [&outer, inner].concat();
        paid(V3_SWAP, &multicall(&input(UNWRAP, &[1, 7])), Some(10_000));
        paid(V3_SWAP, &multicall(&input(UNWRAP_WITH_FEE, &[1, 7, 30, 5])), Some(9_970));
        paid(V3_SWAP, &execute(&[(0x00, &[1]), (UNWRAP_WETH, &[1, 0])]), Some(10_000));
        paid(V3_SWAP, &execute(&[(0x80, &[1]), (UNWRAP_WETH, &[8, 0])]), Some(0));
        // A fee in another token, taken before.
        paid(
            V2_SWAP,
            &execute(&[(PAY_PORTION, &[4, 5, 10]), (UNWRAP_WETH, &[7, 0])]),
            Some(10_000),
        );
    }

    #[test]
    fn finds_nothing_where_the_input_does_not_say() {
        paid(V2_SWAP, &[], None);
        paid(V2_SWAP, &input(V2_SELL[0], &[100, 1]), None);
        // Another kind of contract with the same selector.
        paid([1; 32], &input(V2_SELL[0], &[100, 1, 160, 7, 99]), None);
        paid(V3_SWAP, &input([1, 2, 3, 4], &[1, 2, 3]), None);
        paid(V3_SWAP, &[input(UNWRAP, &[1, 7]), input(UNWRAP, &[1, 8])].concat(), None);
        paid(V3_SWAP, &input(UNWRAP_WITH_FEE, &[1, 7, 10_001, 5]), None);
        paid(V3_SWAP, &execute(&[(UNWRAP_WETH, &[2, 0]), (PAY_PORTION, &[0, 5, 10])]), None);
        paid(V3_SWAP, &input(EXECUTE[0], &[u64::MAX, u64::MAX]), None);
    }

    #[test]
    fn finds_what_was_spent() {
        spent(V2_SWAP, &input(V2_BUY[0], &[1]), (10_000, 0), Some(10_000));
        spent(V2_SWAP, &input(V2_BUY[1], &[1]), (9_000, 0), Some(9_000));
        spent(V3_SWAP, &input(V3_CALLS[0], &[32]), (9_000, 0), Some(10_000));
        let refund = [input(V3_CALLS[1], &[32]), input(REFUND, &[])].concat();
        spent(V3_SWAP, &refund, (9_000, 0), Some(9_000));
        spent(V3_SWAP, &execute(&[(0x0b, &[2, 1])]), (10_000, 0), Some(10_000));
        spent(V3_SWAP, &execute(&[(UNWRAP_WETH, &[1, 0])]), (10_000, 400), Some(9_600));
        spent(V3_SWAP, &execute(&[(UNWRAP_WETH, &[1, 0])]), (9_000, 400), None);
        spent([1; 32], &input(V2_BUY[1], &[1]), (9_000, 0), None);
        spent(V3_SWAP, &input([1, 2, 3, 4], &[32]), (9_000, 0), None);
    }
}
