//! Reads to which accounts the commands of Uniswap's Universal Router give native coin.
//!
//! Source: Uniswap/universal-router, `Dispatcher.sol` and `Commands.sol`.

use super::abi::{WORD, account, bytes, number, word};
use super::v4_commands::{CoinRoute, Take, V4Command};
use crate::domain::{Account, Units};

const SELECTOR: usize = 4;
/// `execute(bytes,bytes[],uint256)`, the same without a deadline, `executeSigned` of a signed
/// route, and `execute` of the `SwapProxy`.
pub(super) const EXECUTE: [[u8; 4]; 4] =
    [[0x35, 0x93, 0x56, 0x4c], [0x24, 0x85, 0x6b, 0xc3], [0x44, 0x68, 0x4d, 0xc3], BY_PROXY];
const BY_PROXY: [u8; 4] = [0x28, 0x94, 0xad, 0xf9];
/// Arguments of a proxy before the commands: a router, a token, an amount.
const PROXY_HEAD: usize = 3;
/// Commands that move native coin to others, or unwrap; the upper bit is a flag.
const COMMAND_BITS: u8 = 0x7f;
const SWEEP: u8 = 0x04;
const TRANSFER: u8 = 0x05;
const PAY_PORTION: u8 = 0x06;
const PAY_PORTION_FULL_PRECISION: u8 = 0x07;
const WRAP_ETH: u8 = 0x0b;
const UNWRAP_WETH: u8 = 0x0c;
const UNWRAP_WETH_EXACT: u8 = 0x0f;
const V4_SWAP: u8 = 0x10;
/// Commands above this one call contracts whose native coin is not read: positions, bridges, nested
/// commands.
const READ_MAX: u8 = 0x0e;
/// Limit of Uniswap V4 commands in one call; no call has more.
const ROUTES_MAX: usize = 16;
/// Placeholders in the inputs for the sender and the router.
const SENDER: Account = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const ROUTER: Account = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Receivers of native coin, in the order of the commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CoinReceivers {
    /// The receivers of what is unwrapped.
    pub(super) unwraps: Vec<Account>,
    /// The receivers of native coin that the router holds.
    pub(super) gifts: Vec<Account>,
    /// Whether no command may pay out native coin in another way.
    pub(super) are_all: bool,
    /// Whether one part may be unwrapped while another comes from Uniswap V4 without unwrapping.
    pub(super) is_split: bool,
    /// How all of the native coin is divided, if known.
    pub(super) sale: Option<CoinSale>,
}

/// A sale for native coin, which its seller receives except for the given shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoinSale {
    /// The only exchange in Uniswap V4 if nothing is unwrapped; `None` if all is unwrapped.
    pub route: Option<CoinRoute>,
    /// Shares of other accounts in hundredths of a percent, the second one of what the first left.
    pub parts: [Units; 2],
    /// The account that unwraps it, if not the called contract.
    pub by: Option<Account>,
    /// The token that it unwraps, if the actions name it.
    pub unwraps: Option<Account>,
    /// If the sale brings more than this, another account receives a share.
    pub most: Option<Units>,
}

impl CoinReceivers {
    /// Reads the input of a call by `sender`, which replaces the placeholder. `None` if it is
    /// another call or malformed.
    pub(super) fn read(input: &[u8], sender: Account) -> Option<Self> {
        let (selector, arguments) = input.split_first_chunk::<SELECTOR>()?;
        if !EXECUTE.contains(selector) {
            return None;
        }
        let is_proxied = *selector == BY_PROXY;
        let first = if is_proxied { PROXY_HEAD } else { 0 };
        let commands = bytes(arguments, number(arguments, first)?)?;
        let inputs = arguments.get(number(arguments, first + 1)?..)?;
        let list = inputs.get(WORD..)?;
        let (mut unwraps, mut takes, mut are_all) = (Vec::new(), Vec::new(), true);
        let (mut routes, mut is_mixed, mut is_split) = (Vec::new(), is_proxied, false);
        for (at, command) in commands.iter().enumerate() {
            let input = bytes(list, number(list, at)?)?;
            match command & COMMAND_BITS {
                UNWRAP_WETH | UNWRAP_WETH_EXACT => {
                    is_mixed |= !takes.is_empty();
                    unwraps.push(account(input, 0)?);
                }
                command @ (SWEEP | TRANSFER | PAY_PORTION | PAY_PORTION_FULL_PRECISION) => {
                    if account(input, 0)? == Account::default() {
                        let to = account(input, 1)?;
                        takes.push(match command {
                            SWEEP => Take::Rest(to),
                            PAY_PORTION => Take::Part(to, word(input, 2)?),
                            _ => Take::Amount(to),
                        });
                    }
                }
                V4_SWAP if routes.len() == ROUTES_MAX => (are_all, is_split) = (false, true),
                V4_SWAP => {
                    let read = V4Command::read(input, SENDER);
                    are_all &= read.is_some();
                    let read = read.unwrap_or_default();
                    is_split |= !read.takes.is_empty();
                    takes.extend(read.takes);
                    routes.push(read.route);
                }
                other => {
                    is_mixed |= other == WRAP_ETH;
                    are_all &= other <= READ_MAX;
                }
            }
        }
        is_split &= !unwraps.is_empty();
        let is_one = are_all && !is_mixed && has_one_origin(&routes, &unwraps);
        let route = routes.first().copied().flatten();
        let sale = if is_one { sold(route, &takes, sender) } else { None };
        // A proxy is the sender of the router's call.
        let resolved = |to: Account| if to == SENDER && !is_proxied { sender } else { to };
        let gifts = takes.iter().map(|(Take::Rest(to) | Take::Part(to, _) | Take::Amount(to))| *to);
        let gifts = gifts.map(resolved).collect();
        let unwraps = unwraps.into_iter().map(resolved).collect();
        Some(Self { unwraps, gifts, are_all, is_split, sale })
    }

    /// All receivers except the router.
    pub(super) fn all(&self) -> impl Iterator<Item = &Account> + Clone {
        self.unwraps.iter().chain(&self.gifts).filter(|to| **to != ROUTER)
    }
}

/// Whether all coin comes from one exchange in Uniswap V4, or all is unwrapped to the router.
fn has_one_origin(routes: &[Option<CoinRoute>], unwraps: &[Account]) -> bool {
    match (routes, unwraps) {
        ([Some(_)], []) => true,
        ([], [ROUTER, more @ ..]) => more.iter().all(|to| *to == ROUTER),
        _ => false,
    }
}

/// A sale whose coin goes to the sender in the end, less at most one share.
fn sold(route: Option<CoinRoute>, takes: &[Take], sender: Account) -> Option<CoinSale> {
    let is_sender = |to: &Account| [SENDER, sender].contains(to);
    let (mut part, mut is_given) = (None, false);
    for take in takes {
        match take {
            // Later commands take from what the router holds.
            Take::Rest(ROUTER) if !is_given => {}
            Take::Rest(to) if is_sender(to) => is_given = true,
            Take::Part(to, hundredths)
                if !is_given && part.is_none() && *to != ROUTER && !is_sender(to) =>
            {
                part = Some(*hundredths);
            }
            Take::Rest(_) | Take::Part(..) | Take::Amount(_) => return None,
        }
    }
    let parts = [part.unwrap_or_default(), Units::ZERO];
    is_given.then(|| CoinSale { route, parts, ..CoinSale::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::abi::written::{at, of, words};
    use crate::decode::evm::{CoinTo, terms};

    const SELLER: Account = [7; 20];
    const FEES: Account = [8; 20];
    const TAKE: u8 = 0x0e;
    const TAKE_ALL: u8 = 0x0f;

    /// A call with at most 32 commands, each with its input.
    fn execute(commands: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut codes: Vec<u8> = commands.iter().map(|(code, _)| *code).collect();
        codes.resize(WORD, 0);
        let (mut offsets, mut inputs) = (Vec::new(), Vec::new());
        for (_, input) in commands {
            offsets.push(at(commands.len() * WORD + inputs.len()));
            inputs.extend(words(&[at(input.len())]));
            inputs.extend(input);
        }
        let count = at(commands.len());
        let head = words(&[at(2 * WORD), at(4 * WORD), count]);
        [EXECUTE[1].to_vec(), head, codes, words(&[count]), words(&offsets), inputs].concat()
    }

    /// A command for Uniswap V4 that exchanges something and takes a currency out.
    fn v4(take: u8, currency: Account, to: Account) -> (u8, Vec<u8>) {
        let mut actions = vec![0x08, take];
        actions.resize(WORD, 0);
        let head = words(&[at(2 * WORD), at(4 * WORD), at(2)]);
        let inputs = [at(2), at(2 * WORD), at(2 * WORD), at(3 * WORD), of(currency), of(to), at(0)];
        (V4_SWAP, [head, actions, words(&inputs)].concat())
    }

    #[test]
    fn of_too_many_commands_for_uniswap_v4_the_rest_is_not_read() {
        let read = |count| {
            let call = execute(&vec![v4(TAKE_ALL, Account::default(), SENDER); count]);
            let read = CoinReceivers::read(&call, SELLER).unwrap();
            (read.gifts.len(), read.are_all)
        };
        assert_eq!(read(ROUTES_MAX), (ROUTES_MAX, true));
        assert_eq!(read(ROUTES_MAX + 1), (ROUTES_MAX, false));
    }

    /// A route with a pool of wrapped coin, which the router unwraps, and one of native coin.
    #[test]
    fn what_is_unwrapped_is_not_all_of_a_sale_that_uniswap_v4_pays_too() {
        let coin = |commands: &[(u8, Vec<u8>)]| {
            let input = hex::encode(execute(commands));
            terms(input.as_bytes(), SELLER, Some([9; 20])).coin
        };
        let wrapped = || v4(TAKE, FEES, ROUTER);
        let unwrap = || (UNWRAP_WETH, words(&[of(SENDER), at(0)]));
        let native = || v4(TAKE_ALL, Account::default(), SENDER);
        assert_eq!(coin(&[wrapped(), unwrap(), native()]), CoinTo::Shared);
        assert_eq!(coin(&[native(), wrapped(), unwrap()]), CoinTo::Shared);
        assert_eq!(coin(&[wrapped(), unwrap()]), CoinTo::Unstated);
        assert_eq!(coin(&[native()]), CoinTo::Unstated);
    }

    #[test]
    fn a_sale_is_the_senders_but_for_one_part() {
        let route = Some(CoinRoute { pool: [1; 32], hops: 1 });
        let quarter = Units::from(25);
        let part = |to| Take::Part(to, quarter);
        let sold = |takes: &[Take]| sold(route, takes, SELLER).map(|sale| sale.parts[0]);
        let whole = Some(Units::ZERO);
        assert_eq!(sold(&[Take::Rest(SENDER)]), whole);
        assert_eq!(sold(&[Take::Rest(SELLER), Take::Rest(SENDER)]), whole);
        assert_eq!(sold(&[Take::Rest(ROUTER), Take::Rest(SELLER)]), whole);
        assert_eq!(sold(&[Take::Rest(ROUTER), part(FEES), Take::Rest(SELLER)]), Some(quarter));
        assert_eq!(sold(&[part(FEES), Take::Rest(SENDER)]), Some(quarter));
        for takes in [
            vec![],
            vec![Take::Rest(ROUTER)],
            vec![Take::Rest(FEES)],
            vec![part(FEES), part(FEES), Take::Rest(SELLER)],
            vec![part(SENDER), Take::Rest(SELLER)],
            vec![Take::Rest(SELLER), part(FEES)],
            vec![Take::Rest(SELLER), Take::Rest(ROUTER)],
            vec![Take::Amount(FEES), Take::Rest(SELLER)],
        ] {
            assert_eq!(sold(&takes), None, "{takes:?}");
        }
    }
}
