//! Reads how a call of 0x's Settler divides the native coin that it unwraps, from the actions in
//! its input.
//!
//! Source: 0xProject/0x-settler, `ISettlerActions.sol`; recorded transactions on six chains.

use super::abi::{WORD, account, bytes, number, word};
use super::universal_router::CoinSale;
use crate::domain::{Account, Units};

/// `exec(address,address,uint256,address,bytes)` of `AllowanceHolder`; the 4th is the Settler.
const EXEC: [u8; 4] = [0x22, 0x13, 0xbc, 0x0b];
/// `execute((address,address,uint256),bytes[],bytes32)`: receiver, bought token, minimum amount.
const EXECUTE: [u8; 4] = [0x1f, 0xff, 0x99, 0x1f];
/// `BASIC(address,uint256,address,uint256,bytes)`: sends hundredths of a percent to a call.
const BASIC: [u8; 4] = [0x38, 0xc9, 0xc1, 0x47];
/// `POSITIVE_SLIPPAGE(address,address,uint256)`, also with a cap, takes a balance above an amount.
const SURPLUS: [[u8; 4]; 2] = [[0xc8, 0x76, 0xd2, 0x1d], [0x34, 0xee, 0x90, 0xca]];
/// `TRANSFER_FROM`, `UNISWAPV2`, `UNISWAPV3` and two that pay by a permit, `VELODROME`,
/// `MAVERICKV2`, `BALANCERV3`, `RFQ`, `RFQ_VIP`: they move no native coin.
const TOKENS_ONLY: [[u8; 4]; 10] = [
    [0xc1, 0xfb, 0x42, 0x5e],
    [0x10, 0x3b, 0x48, 0xbe],
    [0x8d, 0x68, 0xa1, 0x56],
    [0x30, 0x36, 0xd6, 0xa6],
    [0x22, 0xce, 0x6e, 0xde],
    [0xf5, 0xb9, 0x91, 0x89],
    [0x9b, 0x59, 0x75, 0x6f],
    [0xfd, 0x8c, 0x38, 0xe1],
    [0xd9, 0x2a, 0xad, 0xfb],
    [0x6d, 0x42, 0xea, 0x47],
];
/// `withdraw(uint256)` and `transfer(address,uint256)`.
const WITHDRAW: [u8; 4] = [0x2e, 0x1a, 0x7d, 0x4d];
const TRANSFER: [u8; 4] = [0xa9, 0x05, 0x9c, 0xbb];
const COIN: Account = [0xee; 20];
/// Limit of actions in one call; no call has more.
const ACTIONS_MAX: usize = 64;

/// The receiver of a call's native coin; and its division, if all of the call's actions are known.
pub(super) struct Settled {
    pub(super) receiver: Account,
    pub(super) sale: Option<CoinSale>,
}

impl Settled {
    /// `None` if the input is another call, or the call does not buy native coin.
    pub(super) fn read(input: &[u8], called: Account) -> Option<Self> {
        let (by, input) = match input.strip_prefix(&EXEC) {
            Some(words) => (account(words, 3)?, bytes(words, number(words, 4)?)?),
            None => (called, input),
        };
        let words = input.strip_prefix(&EXECUTE)?;
        let (receiver, bought) = (account(words, 0)?, account(words, 1)?);
        let is_sale = bought == COIN && receiver != Account::default();
        is_sale.then(|| Self { receiver, sale: sale(words, receiver, by) })
    }
}

fn sale(words: &[u8], receiver: Account, by: Account) -> Option<CoinSale> {
    let actions = words.get(number(words, 3)?..)?;
    let count = Some(number(actions, 0)?).filter(|count| *count <= ACTIONS_MAX)?;
    let list = actions.get(WORD..)?;
    let mut sale = CoinSale { by: Some(by), ..CoinSale::default() };
    for at in 0..count {
        let (action, words) = bytes(list, number(list, at)?)?.split_first_chunk::<4>()?;
        if *action == BASIC {
            let data = bytes(words, number(words, 4)?)?;
            let (token, to) = (account(words, 0)?, account(words, 2)?);
            let is_own = token == to;
            if token == COIN {
                let is_gift = data.is_empty() && to != receiver;
                *sale.parts.iter_mut().find(|part| part.is_zero()).filter(|_| is_gift)? =
                    word(words, 1)?;
            } else if is_own && data.starts_with(&WITHDRAW) {
                (*sale.unwraps.get_or_insert(token) == token).then_some(())?;
                // Coin that is unwrapped after a share was paid was not divided.
                (sale.parts == [Units::ZERO; 2]).then_some(())?;
            } else if !(is_own && data.starts_with(&TRANSFER)) {
                return None;
            }
        } else if SURPLUS.contains(action) {
            if account(words, 1)? == COIN {
                (sale.parts == [Units::ZERO; 2]).then_some(())?;
                let most = word(words, 2)?;
                sale.most = Some(sale.most.map_or(most, |other| other.min(most)));
            }
        } else if !TOKENS_ONLY.contains(action) {
            return None;
        }
    }
    Some(sale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::abi::written::{at, bytes, of, words};

    const SELLER: Account = [7; 20];
    const SETTLER: Account = [8; 20];
    const FEES: Account = [9; 20];
    const WRAPPED: Account = [6; 20];

    fn basic(token: Account, part: usize, to: Account, data: &[u8]) -> Vec<u8> {
        let head = words(&[of(token), at(part), of(to), at(4), at(5 * WORD)]);
        [BASIC.to_vec(), head, bytes(data)].concat()
    }

    fn surplus(selector: [u8; 4], token: Account, most: usize) -> Vec<u8> {
        [selector.to_vec(), words(&[of(FEES), of(token), at(most), at(9)])].concat()
    }

    fn execute(bought: Account, actions: &[Vec<u8>]) -> Vec<u8> {
        let actions: Vec<_> = actions.iter().map(|action| bytes(action)).collect();
        let mut offset = actions.len() * WORD;
        let mut offsets = Vec::new();
        for one in &actions {
            offsets.push(at(offset));
            offset += one.len();
        }
        let head = words(&[of(SELLER), of(bought), at(1), at(5 * WORD), at(0)]);
        let list = [words(&[at(actions.len())]), words(&offsets), actions.concat()].concat();
        [EXECUTE.to_vec(), head, list].concat()
    }

    fn sale(actions: &[Vec<u8>]) -> Option<CoinSale> {
        let settled = Settled::read(&execute(COIN, actions), SETTLER)?;
        assert_eq!(settled.receiver, SELLER);
        settled.sale
    }

    fn unwrap_of(token: Account) -> Vec<u8> {
        basic(token, 10_000, token, &[WITHDRAW.as_slice(), &[0; 32]].concat())
    }

    fn unwrap() -> Vec<u8> {
        unwrap_of(WRAPPED)
    }

    /// As in Ethereum transaction 0xd34d7393…, which kept 15 hundredths of a percent.
    #[test]
    fn the_actions_say_how_coin_is_shared() {
        let fee = |part| basic(COIN, part, FEES, &[]);
        let unwraps = Some(WRAPPED);
        let whole = CoinSale { by: Some(SETTLER), unwraps, ..CoinSale::default() };
        let pool = [TOKENS_ONLY[1].to_vec(), words(&[at(1); 6])].concat();
        let swap = [pool, unwrap()];
        assert_eq!(sale(&swap), Some(whole));
        let other = CoinSale { unwraps: Some(FEES), ..whole };
        assert_eq!(sale(&[unwrap_of(FEES)]), Some(other));
        let with = |more: &[Vec<u8>]| sale(&[swap.as_slice(), more].concat());
        let most = Some(at(500));
        let parts = [at(15), at(0)];
        let kept = CoinSale { parts, most, ..whole };
        assert_eq!(with(&[surplus(SURPLUS[0], COIN, 500), fee(15)]), Some(kept));
        let two = CoinSale { parts: [at(70), at(15)], ..whole };
        assert_eq!(with(&[fee(70), fee(15)]), Some(two));
        let of_token = basic(FEES, 15, FEES, &[TRANSFER.as_slice(), &[0; 64]].concat());
        let above = surplus(SURPLUS[1], WRAPPED, 500);
        assert_eq!(with(&[of_token, above]), Some(whole));
        for more in [
            vec![fee(1), fee(1), fee(1)],
            vec![fee(1), unwrap()],
            vec![unwrap_of(FEES)],
            vec![fee(1), surplus(SURPLUS[0], COIN, 500)],
            vec![basic(COIN, 15, SELLER, &[])],
            vec![basic(COIN, 15, FEES, &[1, 2, 3, 4])],
            vec![basic(WRAPPED, 15, FEES, &WITHDRAW)],
            vec![vec![1, 2, 3, 4]],
            vec![vec![0x89, 0xd4, 0xad, 0xe1]],
            vec![vec![]],
        ] {
            assert_eq!(with(&more), None, "{more:?}");
        }
    }

    #[test]
    fn a_holder_of_allowances_names_the_settler() {
        let inner = execute(COIN, &[unwrap()]);
        let head = words(&[of(FEES), of(WRAPPED), at(5), of(FEES), at(5 * WORD)]);
        let input = [EXEC.to_vec(), head, bytes(&inner)].concat();
        let settled = Settled::read(&input, SETTLER).unwrap();
        assert_eq!(settled.sale.unwrap().by, Some(FEES));
        // Another bought token; another call.
        assert!(Settled::read(&execute(WRAPPED, &[unwrap()]), SETTLER).is_none());
        assert!(Settled::read(&[1; 300], SETTLER).is_none());
        assert!(Settled::read(&EXEC, SETTLER).is_none());
    }
}
