//! Which accounts the commands of Uniswap's Universal Router give native coin to.
//!
//! Source: Uniswap/universal-router, `Dispatcher.sol` and `Commands.sol`.

use super::abi::{WORD, account, bytes, number};

type Account = [u8; 20];

const SELECTOR: usize = 4;
/// `execute(bytes,bytes[],uint256)`, without the time, `executeSigned` of a signed route, and `execute`
/// of the `SwapProxy`.
pub(super) const EXECUTE: [[u8; 4]; 4] =
    [[0x35, 0x93, 0x56, 0x4c], [0x24, 0x85, 0x6b, 0xc3], [0x44, 0x68, 0x4d, 0xc3], BY_PROXY];
const BY_PROXY: [u8; 4] = [0x28, 0x94, 0xad, 0xf9];
/// The arguments of a proxy before the commands: a router, a token, an amount.
const PROXY_HEAD: usize = 3;
/// Commands that move native coin to others, or unwrap; the upper bit is a flag.
const COMMAND_BITS: u8 = 0x7f;
const SWEEP: u8 = 0x04;
const TRANSFER: u8 = 0x05;
const PAY_PORTION: u8 = 0x06;
const PAY_PORTION_FULL_PRECISION: u8 = 0x07;
const UNWRAP_WETH: u8 = 0x0c;
const UNWRAP_WETH_EXACT: u8 = 0x0f;
/// From the next one on commands call contracts whose coin is not read: swaps in Uniswap V4, positions,
/// bridges, commands inside a command.
const READ_MAX: u8 = 0x0e;
/// Placeholders in its inputs.
const SENDER: Account = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const ROUTER: Account = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Receivers of native coin, in the order of the commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CoinReceivers {
    /// Of what is unwrapped.
    pub(super) unwraps: Vec<Account>,
    /// Of native coin that the router holds.
    pub(super) gifts: Vec<Account>,
    /// No command may give some in another way.
    pub(super) are_all: bool,
}

impl CoinReceivers {
    /// Reads the input of a call, whose sender stands for the placeholder. `None` where it is another
    /// call, or broken.
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
        let (mut unwraps, mut gifts, mut are_all) = (Vec::new(), Vec::new(), true);
        // A proxy is the sender of the router's call.
        let resolved = |to: Account| if to == SENDER && !is_proxied { sender } else { to };
        for (at, command) in commands.iter().enumerate() {
            let input = bytes(list, number(list, at)?)?;
            match command & COMMAND_BITS {
                UNWRAP_WETH | UNWRAP_WETH_EXACT => unwraps.push(resolved(account(input, 0)?)),
                SWEEP | TRANSFER | PAY_PORTION | PAY_PORTION_FULL_PRECISION => {
                    if account(input, 0)? == Account::default() {
                        gifts.push(resolved(account(input, 1)?));
                    }
                }
                other => are_all &= other <= READ_MAX,
            }
        }
        Some(Self { unwraps, gifts, are_all })
    }

    /// All that are not the router.
    pub(super) fn all(&self) -> impl Iterator<Item = &Account> + Clone {
        self.unwraps.iter().chain(&self.gifts).filter(|to| **to != ROUTER)
    }
}
