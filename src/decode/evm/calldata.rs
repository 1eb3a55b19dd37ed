//! What the input of a call says about fees. Inputs are long and little of them is of use: only the
//! words needed are read, and only of calls that are known to contain a fee; a Universal Router's
//! commands as a whole.

use super::transaction::{Account, CoinTo, Terms, Word};
use super::words::{ZERO, address, units};
use crate::decode::universal_router::{CoinReceivers, EXECUTE};
use crate::domain::Units;

/// `swap(string aggregatorId, address tokenFrom, uint256 amount, bytes data)` of `MetaMask` Swap.
const METAMASK_SWAP: &str = "5f575529";
/// No fee is behind so many words.
const WORDS_MAX: usize = 20;
/// The prefix of that adapter's names.
const AIRSWAP: &[u8] = b"airswap";

/// Offsets in the data of a `MetaMask` adapter: the token bought (native coin is the zero address),
/// the fee, and whether the fee is taken from the output.
struct Layout {
    bought: usize,
    fee: usize,
    of_bought: usize,
}

/// `tokenFrom, tokenTo, amountFrom, amountTo, bytes, fee, feeWallet, feeOnTo`.
const COMMON: Layout = Layout { bought: 8, fee: 12, of_bought: 14 };
/// An order of `AirSwap` (`nonce, expiry, signer, signerToken, …`), then the same three words.
const ORDER: Layout = Layout { bought: 10, fee: 17, of_bought: 19 };

/// Offsets of the receiver of the output: `swapExactTokensForETH`, `swapTokensForExactETH` and
/// their variants for fee-on-transfer tokens of the V2 routers; `swap` of 1inch v4, whose
/// description is behind an offset, and v5.
const RECEIVERS: [(&str, usize); 5] =
    [("18cbafe5", 3), ("4a25d94a", 3), ("791ac947", 3), ("7c025200", 6), ("12aa3caf", 4)];

/// Reads the receiver and the fee of the output from the input of a call.
pub(super) fn terms(input: &[u8], sender: Account, called: Option<Account>) -> Terms {
    let input = input.strip_prefix(b"0x").unwrap_or(input);
    let Some((selector, words)) = input.split_at_checked(8) else { return Terms::default() };
    let mut known = [0; 4];
    if const_hex::decode_to_slice(selector, &mut known).is_ok() && EXECUTE.contains(&known) {
        return by_commands(input, sender, called).unwrap_or_default();
    }
    if selector == METAMASK_SWAP.as_bytes() {
        return Terms { charged: charged(&head(words, WORDS_MAX)), ..Terms::default() };
    }
    let place = RECEIVERS.iter().find(|(known, _)| known.as_bytes() == selector);
    let receiver = place.and_then(|(_, place)| address(head(words, place + 1).get(*place)?));
    // The zero address denotes the caller.
    Terms { receiver: receiver.filter(|account| *account != ZERO), ..Terms::default() }
}

/// The first words of an input.
fn head(digits: &[u8], most: usize) -> Vec<Word> {
    let words = digits.as_chunks::<64>().0.iter().take(most);
    words.map_while(|word| const_hex::decode_to_array(word).ok()).collect()
}

/// Of a Universal Router's call.
fn by_commands(input: &[u8], sender: Account, called: Option<Account>) -> Option<Terms> {
    let coin = CoinReceivers::read(&const_hex::decode(input).ok()?, sender)?;
    let mut all = coin.all().filter(|to| Some(**to) != called);
    let other = all.clone().find(|to| **to != sender).copied();
    let terms = match (all.any(|to| *to == sender), other) {
        (true, None) => Terms::default(),
        (true, Some(_)) => Terms { coin: CoinTo::Shared, ..Terms::default() },
        (false, Some(_)) if !coin.are_all => Terms { coin: CoinTo::Shared, ..Terms::default() },
        (false, None) if !coin.are_all => Terms::default(),
        (false, receiver) => Terms { receiver, coin: CoinTo::Others, ..Terms::default() },
    };
    Some(terms)
}

/// Native coin that `MetaMask` Swap keeps of its output.
fn charged(words: &[Word]) -> Option<Units> {
    let number = |at: usize| words.get(at).map(units);
    let holds = |at: usize, value: u64| number(at) == Some(Units::from(value));
    // The name takes one word, so that the data begins at the seventh.
    let one_word = number(4)? <= Units::from(32_u64);
    if !(one_word && holds(0, 0x80) && holds(3, 0xc0)) {
        return None;
    }
    let is_order = words.get(5)?.starts_with(AIRSWAP);
    let layout = if is_order { ORDER } else { COMMON };
    let fits = is_order || holds(11, 0x120);
    let of_native = holds(layout.bought, 0) && holds(layout.of_bought, 1);
    (fits && of_native).then(|| number(layout.fee))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(words: &[&str]) -> String {
        let words = words.iter().map(|word| format!("{word:0>64}"));
        format!("0x{METAMASK_SWAP}{}", words.collect::<String>())
    }

    /// The words of transaction 0x395615fa37… on Ethereum, of which the trace shows that
    /// 416768566082016 wei went to the fee wallet.
    fn common<'a>(bought: &'a str, of_bought: &'a str) -> [&'a str; 16] {
        [
            "80",
            "a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
            "b532b80",
            "c0",
            "c",
            "307846656544796e616d69630000000000000000000000000000000000000000",
            "260",
            "a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48",
            bought,
            "b532b80",
            "a2b49705ea2eab",
            "120",
            "17b0c7e55b9e0",
            "11ededebf63bef0ea2d2d071bdf88f71543ec6fb",
            of_bought,
            "128",
        ]
    }

    #[test]
    fn the_fee_of_metamask_is_read_from_the_input() {
        let fee = Some(Units::from(416_768_566_082_016_u64));
        assert_eq!(terms(input(&common("0", "1")).as_bytes(), ZERO, None).charged, fee);
        // Of transaction 0xbfe647f03c…: an order of AirSwap.
        let mut order = vec!["80", "3845badade8e6dff049820680d1f14bd3903a5d0", "1", "c0", "17"];
        order.push("616972737761704c696768743346656544796e616d6963000000000000000000");
        order.extend(["1a0", "1846655a640", "63892d66", "af0b", "0", "781ccf86befbf0", "3845"]);
        order.extend(["410d586a20a4c0000", "1c", "23dd", "374c", "e476b2a0738a", "f326", "1"]);
        assert_eq!(
            terms(input(&order).as_bytes(), ZERO, None).charged,
            Some(Units::from(0xe476_b2a0_738a_u64))
        );
    }

    #[test]
    fn a_fee_of_what_is_given_or_of_another_token_is_none() {
        let usdt = "dac17f958d2ee523a2206206994597c13d831ec7";
        for input in [input(&common("0", "0")), input(&common(usdt, "1")), "0x5f575529".to_owned()]
        {
            assert_eq!(terms(input.as_bytes(), ZERO, None), Terms::default());
        }
        assert_eq!(terms(b"0xa9059cbb", ZERO, None), Terms::default());
        assert_eq!(terms(b"", ZERO, None), Terms::default());
    }

    #[test]
    fn the_receiver_is_read_where_the_call_is_known() {
        let to = "28f4070ecaff436aaa74a5371ba581aae1a1f3ef";
        let words = |place: usize, who: &str| -> String {
            let word = |at| if at == place { format!("{who:0>64}") } else { "0".repeat(64) };
            (0..10).map(word).collect()
        };
        for (selector, place) in RECEIVERS {
            let receiver = |who| {
                terms(format!("0x{selector}{}", words(place, who)).as_bytes(), ZERO, None).receiver
            };
            assert_eq!(receiver(to).map(hex::encode).as_deref(), Some(to), "{selector}");
            assert_eq!(receiver("0"), None, "{selector}");
        }
    }

    const SENDER: Account = [7; 20];
    const FEES: Account = [8; 20];
    const CALLED: Account = [9; 20];

    /// Each command with one input of a token (zero: native coin) or a receiver, and a receiver.
    fn execute(commands: &[(u8, Account, Account)]) -> String {
        let word = |number: usize| format!("{number:064x}");
        let who = |account: &Account| format!("{:0>64}", hex::encode(account));
        let codes = hex::encode(commands.iter().map(|(code, ..)| *code).collect::<Vec<u8>>());
        let offsets: String =
            (0..commands.len()).map(|at| word(commands.len() * 32 + at * 96)).collect();
        let inputs = commands.iter().map(|(_, one, two)| word(64) + &who(one) + &who(two));
        let list = word(commands.len()) + &offsets + &inputs.collect::<String>();
        let head = word(64) + &word(128) + &word(commands.len());
        format!("0x24856bc3{head}{codes:0<64}{list}")
    }

    #[test]
    fn a_universal_router_gives_coin_to_whom_its_commands_name() {
        let placeholder = |last: u8| {
            let mut account = ZERO;
            account[19] = last;
            account
        };
        let (sender, router) = (placeholder(1), placeholder(2));
        let wrap = (0x0b, router, ZERO);
        let unwrap = |to: Account| (0x0c, to, ZERO);
        let sweep = |to: Account| (0x04, ZERO, to);
        let terms = |commands: &[_]| terms(execute(commands).as_bytes(), SENDER, Some(CALLED));
        let coin = |commands: &[_]| terms(commands).coin;
        // Of transaction 0xe4532a98… on Ethereum: the fee is swept to another account.
        assert_eq!(coin(&[wrap, (0x08, sender, ZERO), sweep(FEES)]), CoinTo::Others);
        assert_eq!(coin(&[wrap, unwrap(sender)]), CoinTo::Unsaid);
        assert_eq!(coin(&[unwrap(SENDER)]), CoinTo::Unsaid);
        for (held, part) in [(router, 0x06), (CALLED, 0x87)] {
            assert_eq!(coin(&[unwrap(held), (part, ZERO, FEES), sweep(sender)]), CoinTo::Shared);
            assert_eq!(coin(&[unwrap(held), sweep(sender)]), CoinTo::Unsaid);
        }
        // A part of another token.
        assert_eq!(coin(&[(0x86, FEES, FEES), unwrap(sender)]), CoinTo::Unsaid);
        // A swap in Uniswap V4, a bridge.
        assert_eq!(coin(&[(0x10, ZERO, ZERO)]), CoinTo::Unsaid);
        assert_eq!(coin(&[(0x40, ZERO, ZERO)]), CoinTo::Unsaid);
        assert_eq!(coin(&[(0x10, ZERO, ZERO), sweep(FEES)]), CoinTo::Shared);
        assert_eq!(terms(&[unwrap(FEES)]).receiver, Some(FEES));
        assert_eq!(terms(&[wrap]), Terms { coin: CoinTo::Others, ..Terms::default() });
    }
}
