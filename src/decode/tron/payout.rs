//! Who a router pays the TRX that it unwraps, and how much, by what it was asked to do: nodes that
//! keep no inner calls tell it nowhere else.

use crate::decode::evm::{Account, NativeMove};
use crate::domain::Units;

const WORD: usize = 32;
const SELECTOR: usize = 4;
const BIPS: u64 = 10_000;

/// `swapExactTokensForETH`, `swapTokensForExactETH` and the form for tokens that take a fee
/// (Uniswap V2 `Router02`): the fourth word is who is paid.
const V2: [[u8; 4]; 3] =
    [[0x18, 0xcb, 0xaf, 0xe5], [0x4a, 0x25, 0xd9, 0x4a], [0x79, 0x1a, 0xc9, 0x47]];
const V2_TO: usize = 3;
/// `swapExactInput(address[],string[],uint256[],uint24[],(uint256,uint256,address,uint256))` of
/// SUN's Smart Exchange Router: the seventh word is who is paid.
const SMART: [u8; 4] = [0xce, 0xf9, 0x52, 0x29];
const SMART_TO: usize = 6;
/// Uniswap V3 periphery, called inside of `multicall`: least amount, who is paid, and with a fee
/// its hundredths of a percent and who gets it.
const UNWRAP: [u8; 4] = [0x49, 0x40, 0x4b, 0x7c];
const UNWRAP_WITH_FEE: [u8; 4] = [0x9b, 0x2c, 0x0a, 0x37];

/// What a router that unwrapped `amount` in one piece paid from that; `None` where its input does
/// not tell.
pub(super) fn payouts(router: Account, input: &[u8], amount: Units) -> Option<Vec<NativeMove>> {
    let pay = |to: Account, value: Units| NativeMove { from: router, to, value };
    let (selector, words) = input.split_first_chunk::<SELECTOR>()?;
    if V2.contains(selector) {
        return Some(vec![pay(account(words, V2_TO)?, amount)]);
    }
    if *selector == SMART {
        return Some(vec![pay(account(words, SMART_TO)?, amount)]);
    }
    let mut unwraps = input.windows(SELECTOR).enumerate().filter(|(_, window)| {
        *window == UNWRAP.as_slice() || *window == UNWRAP_WITH_FEE.as_slice()
    });
    let ((at, kind), None) = (unwraps.next()?, unwraps.next()) else { return None };
    let arguments = input.get(at + SELECTOR..)?;
    let to = account(arguments, 1)?;
    if kind == UNWRAP.as_slice() {
        return Some(vec![pay(to, amount)]);
    }
    let bips = word(arguments, 2).filter(|bips| *bips <= Units::from(BIPS))?;
    let fee = amount.checked_mul(bips)?.checked_div(Units::from(BIPS))?;
    Some(vec![pay(to, amount.checked_sub(fee)?), pay(account(arguments, 3)?, fee)])
}

fn word(words: &[u8], at: usize) -> Option<Units> {
    let bytes: &[u8; WORD] = words.get(at * WORD..)?.first_chunk()?;
    Some(Units::from_be_bytes(*bytes))
}

/// The last 20 bytes of a word: what stands before them is not looked at by contracts.
fn account(words: &[u8], at: usize) -> Option<Account> {
    let bytes: &[u8; WORD] = words.get(at * WORD..)?.first_chunk()?;
    bytes.last_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha3::{Digest as _, Keccak256};

    const ROUTER: Account = [9; 20];

    fn input(selector: [u8; 4], words: &[u64]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| Units::from(*word).to_be_bytes::<32>());
        selector.into_iter().chain(words).collect()
    }

    fn who(number: u8) -> Account {
        let mut account = [0; 20];
        account[19] = number;
        account
    }

    #[track_caller]
    fn pays(input: &[u8], expected: &[(u8, u64)]) {
        let pay = |(to, value): &(u8, u64)| NativeMove {
            from: ROUTER,
            to: who(*to),
            value: Units::from(*value),
        };
        let expected: Vec<NativeMove> = expected.iter().map(pay).collect();
        assert_eq!(payouts(ROUTER, input, Units::from(10_000)), Some(expected));
    }

    #[test]
    fn selectors_are_those_of_their_signatures() {
        let tuple = "(uint256,uint256,address,uint256)";
        let texts = [
            ("swapExactTokensForETH(uint256,uint256,address[],address,uint256)".into(), V2[0]),
            ("swapTokensForExactETH(uint256,uint256,address[],address,uint256)".into(), V2[1]),
            (
                "swapExactTokensForETHSupportingFeeOnTransferTokens(uint256,uint256,address[],\
                 address,uint256)"
                    .into(),
                V2[2],
            ),
            (format!("swapExactInput(address[],string[],uint256[],uint24[],{tuple})"), SMART),
            ("unwrapWETH9(uint256,address)".into(), UNWRAP),
            ("unwrapWETH9WithFee(uint256,address,uint256,address)".into(), UNWRAP_WITH_FEE),
        ];
        for (text, selector) in texts {
            assert_eq!(Keccak256::digest(&text)[..4], selector, "{text}");
        }
    }

    #[test]
    fn tells_who_is_paid() {
        pays(&input(V2[0], &[100, 1, 160, 7, 99]), &[(7, 10_000)]);
        pays(&input(SMART, &[1, 2, 3, 4, 100, 1, 8, 99]), &[(8, 10_000)]);
        let inner = input(UNWRAP, &[1, 7]);
        pays(&[&input([1, 2, 3, 4], &[32])[..], &inner].concat(), &[(7, 10_000)]);
        let inner = input(UNWRAP_WITH_FEE, &[1, 7, 30, 5]);
        pays(&[&input([1, 2, 3, 4], &[32])[..], &inner].concat(), &[(7, 9_970), (5, 30)]);
    }

    #[test]
    fn tells_nothing_where_the_input_does_not() {
        let none = |input: &[u8]| assert_eq!(payouts(ROUTER, input, Units::from(1)), None);
        none(&[]);
        none(&input(V2[0], &[100, 1]));
        none(&input([1, 2, 3, 4], &[1, 2, 3]));
        none(&[input(UNWRAP, &[1, 7]), input(UNWRAP, &[1, 8])].concat());
        none(&input(UNWRAP_WITH_FEE, &[1, 7, 10_001, 5]));
    }
}
