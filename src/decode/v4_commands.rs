//! Reads what a Universal Router's command for Uniswap V4 does with native coin.
//!
//! Source: Uniswap/v4-periphery, `Actions.sol` and `IV4Router.sol`; Uniswap/v4-core, `PoolId.sol`.

use sha3::{Digest as _, Keccak256};

use super::abi::{WORD, account, bytes, number, word};
use crate::domain::{Account, Units, Word};

const SWAP_EXACT_IN_SINGLE: u8 = 0x06;
const SWAP_EXACT_IN: u8 = 0x07;
const SWAP_EXACT_OUT_SINGLE: u8 = 0x08;
const SWAP_EXACT_OUT: u8 = 0x09;
const SETTLE: u8 = 0x0b;
const SETTLE_ALL: u8 = 0x0c;
const TAKE: u8 = 0x0e;
const TAKE_ALL: u8 = 0x0f;
const TAKE_PORTION: u8 = 0x10;
/// Limit of actions in one command.
const ACTIONS_MAX: usize = 64;
/// Limit of pools in one route.
const HOPS_MAX: usize = 16;
/// The zero address: native coin, always a pool's lower currency; as hooks, none.
const COIN: Account = [0; 20];

/// An exchange for native coin in pools without hooks, whose events therefore state all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoinRoute {
    /// The id of the last pool, whose lower currency is native coin.
    pub pool: Word,
    /// The number of pools.
    pub hops: usize,
}

/// One withdrawal of native coin by a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// All that is left.
    Rest(Account),
    /// Hundredths of a percent of what is left.
    Part(Account, Units),
    /// An amount.
    Amount(Account),
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct V4Command {
    pub(super) takes: Vec<Take>,
    /// Its only exchange, if that ends in native coin.
    pub(super) route: Option<CoinRoute>,
}

impl V4Command {
    /// Reads the input of a command; `caller` is the placeholder for the router's caller. `None` if
    /// the command exchanges nothing, has an unknown action or too many, or takes coin after the
    /// rest was taken.
    pub(super) fn read(input: &[u8], caller: Account) -> Option<Self> {
        let actions = bytes(input, number(input, 0)?).filter(|all| all.len() <= ACTIONS_MAX)?;
        let list = input.get(number(input, 1)?..)?.get(WORD..)?;
        let (mut takes, mut routes) = (Vec::new(), Vec::new());
        for (at, action) in actions.iter().enumerate() {
            let input = bytes(list, number(list, at)?)?;
            let open = !takes.iter().any(|take| matches!(take, Take::Rest(_)));
            let of_coin = || open.then(|| Some(account(input, 0)? == COIN))?;
            match *action {
                SWAP_EXACT_IN_SINGLE => routes.push(single(input)),
                SWAP_EXACT_IN => routes.push(along(input)),
                SWAP_EXACT_OUT_SINGLE | SWAP_EXACT_OUT => routes.push(None),
                TAKE if of_coin()? => {
                    let to = account(input, 1)?;
                    let all = word(input, 2)?.is_zero();
                    takes.push(if all { Take::Rest(to) } else { Take::Amount(to) });
                }
                TAKE_ALL if of_coin()? => takes.push(Take::Rest(caller)),
                TAKE_PORTION if of_coin()? => {
                    takes.push(Take::Part(account(input, 1)?, word(input, 2)?));
                }
                SETTLE | SETTLE_ALL | TAKE | TAKE_ALL | TAKE_PORTION => {}
                _ => return None,
            }
        }
        match routes.as_slice() {
            [] => None,
            [route] => Some(Self { takes, route: *route }),
            [_, _, ..] => Some(Self { takes, route: None }),
        }
    }
}

/// Reads a pool's key (two currencies, fee, spacing, hooks) and whether the lower one is sold.
fn single(input: &[u8]) -> Option<CoinRoute> {
    let input = input.get(number(input, 0)?..)?;
    let sells_lower = !word(input, 5)?.is_zero();
    let is_coin = account(input, 0)? == COIN && account(input, 4)? == COIN && !sells_lower;
    let key = input.get(..5 * WORD)?;
    is_coin.then(|| CoinRoute { pool: Keccak256::digest(key).into(), hops: 1 })
}

/// Reads the sold currency, and each pool's next currency, fee, spacing and hooks.
fn along(input: &[u8]) -> Option<CoinRoute> {
    let input = input.get(number(input, 0)?..)?;
    let path = input.get(number(input, 1)?..)?;
    let hops = Some(number(path, 0)?).filter(|hops| (1..=HOPS_MAX).contains(hops))?;
    let list = path.get(WORD..)?;
    let hop = |at| list.get(number(list, at)?..);
    let sold = match hops {
        1 => word(input, 0)?,
        _ => word(hop(hops - 2)?, 0)?,
    };
    for at in 0..hops {
        if account(hop(at)?, 3)? != COIN {
            return None;
        }
    }
    let last = hop(hops - 1)?;
    let key = [Units::ZERO, sold, word(last, 1)?, word(last, 2)?, Units::ZERO];
    let key = key.map(|word| word.to_be_bytes::<WORD>()).concat();
    let ends = account(last, 0)? == COIN && !sold.is_zero();
    ends.then(|| CoinRoute { pool: Keccak256::digest(key).into(), hops })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::abi::written::{at, bytes, of, words};

    const CALLER: Account = [7; 20];
    const HOOK: Account = [5; 20];
    const TOKEN: &str = "af88d065e77c8cc2239327c5edb3a432268e5831";
    /// The pool of native coin and `TOKEN` with fee 500, spacing 10 and no hook, from Arbitrum
    /// transaction 0x40060956….
    const POOL: &str = "864abca0a6202dba5b8868772308da953ff125b0f95015adbf89aaf579e903a8";

    fn token() -> Account {
        hex::decode(TOKEN).unwrap().try_into().unwrap()
    }

    /// An ABI-encoded list: the offset of each element, then the elements.
    fn list(each: &[Vec<u8>]) -> Vec<u8> {
        let mut offset = each.len() * WORD;
        let mut offsets = Vec::new();
        for one in each {
            offsets.push(at(offset));
            offset += one.len();
        }
        [words(&offsets), each.concat()].concat()
    }

    fn read(actions: &[(u8, Vec<u8>)]) -> Option<V4Command> {
        let codes: Vec<u8> = actions.iter().map(|(code, _)| *code).collect();
        let inputs: Vec<_> = actions.iter().map(|(_, input)| bytes(input)).collect();
        let codes = bytes(&codes);
        let head = words(&[at(2 * WORD), at(2 * WORD + codes.len())]);
        let input = [head, codes, words(&[at(inputs.len())]), list(&inputs)].concat();
        V4Command::read(&input, CALLER)
    }

    /// The sold currency, and the next currency and hooks of each pool.
    fn along(sold: Account, hops: &[(Account, Account)]) -> Vec<u8> {
        let hop = |(next, hooks): &(Account, Account)| {
            words(&[of(*next), at(500), at(10), of(*hooks), at(5 * WORD), at(0)])
        };
        let hops: Vec<_> = hops.iter().map(hop).collect();
        let head = words(&[at(WORD), of(sold), at(4 * WORD), at(9), at(0)]);
        [head, words(&[at(hops.len())]), list(&hops)].concat()
    }

    fn single(hooks: Account, sells_lower: usize) -> Vec<u8> {
        let key = [at(0), of(token()), at(500), at(10), of(hooks)];
        let rest = [at(sells_lower), at(9), at(0), at(9 * WORD), at(0)];
        words(&[[at(WORD)].as_slice(), &key, &rest].concat())
    }

    fn route(exchange: (u8, Vec<u8>)) -> Option<String> {
        let route = read(&[exchange])?.route?;
        Some(format!("{}x{}", route.hops, hex::encode(route.pool)))
    }

    #[test]
    fn a_route_ends_in_the_pool_of_native_coin() {
        let [one, two] = [1, 2].map(|hops| Some(format!("{hops}x{POOL}")));
        assert_eq!(route((SWAP_EXACT_IN, along(token(), &[(COIN, COIN)]))), one);
        assert_eq!(route((SWAP_EXACT_IN_SINGLE, single(COIN, 0))), one);
        let through = [(token(), COIN), (COIN, COIN)];
        assert_eq!(route((SWAP_EXACT_IN, along([9; 20], &through))), two);
        // Not read: native coin is sold, the route passes through it, a hook may keep a part.
        for route in [
            route((SWAP_EXACT_IN_SINGLE, single(COIN, 1))),
            route((SWAP_EXACT_IN_SINGLE, single(HOOK, 0))),
            route((SWAP_EXACT_IN, along(COIN, &[(token(), COIN)]))),
            route((SWAP_EXACT_IN, along(token(), &[(COIN, COIN), (HOOK, COIN)]))),
            route((SWAP_EXACT_IN, along(token(), &[(COIN, HOOK)]))),
            route((SWAP_EXACT_IN, along([9; 20], &[(token(), HOOK), (COIN, COIN)]))),
            route((SWAP_EXACT_OUT_SINGLE, single(COIN, 0))),
            route((SWAP_EXACT_IN, along(token(), &[]))),
            route((SWAP_EXACT_IN, vec![])),
        ] {
            assert_eq!(route, None);
        }
        let exchange = || (SWAP_EXACT_IN_SINGLE, single(COIN, 0));
        assert_eq!(read(&[exchange(), exchange()]).unwrap().route, None);
        assert_eq!(read(&[]), None);
        // An unknown action.
        assert_eq!(read(&[exchange(), (0x14, words(&[at(0); 2]))]), None);
    }

    #[test]
    fn a_command_of_too_many_actions_is_not_read() {
        let with = |settles| {
            let mut actions = vec![(SETTLE, vec![]); settles];
            actions.push((SWAP_EXACT_IN_SINGLE, single(COIN, 0)));
            read(&actions)
        };
        assert!(with(ACTIONS_MAX - 1).is_some());
        assert_eq!(with(ACTIONS_MAX), None);
    }

    #[test]
    fn takes_are_those_of_native_coin_in_order() {
        let takes = |actions: &[(u8, Vec<u8>)]| {
            let settle = (SETTLE, words(&[of(token()), at(0), at(1)]));
            let first = [(SWAP_EXACT_IN_SINGLE, single(COIN, 0)), settle];
            let all = [first.as_slice(), actions].concat();
            read(&all).map(|read| read.takes)
        };
        let take = |amount| (TAKE, words(&[at(0), of([8; 20]), at(amount)]));
        let part = (TAKE_PORTION, words(&[at(0), of([8; 20]), at(25)]));
        let all = (TAKE_ALL, words(&[at(0); 2]));
        let of_token = (TAKE, words(&[of(token()), of([8; 20]), at(0)]));
        assert_eq!(takes(&[take(0)]), Some(vec![Take::Rest([8; 20])]));
        assert_eq!(takes(&[take(9)]), Some(vec![Take::Amount([8; 20])]));
        let both = vec![Take::Part([8; 20], at(25)), Take::Rest(CALLER)];
        assert_eq!(takes(&[of_token, part.clone(), all.clone()]), Some(both));
        assert_eq!(takes(&[all, part]), None);
    }
}
