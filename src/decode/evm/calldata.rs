//! Reads from a call's input which fees it pays and who receives its output. Inputs are long and
//! mostly irrelevant, so only the needed words are decoded, and only for selectors that are known
//! to have them. The commands of a Universal Router and the calls of a multicall are all decoded.

use super::transaction::{Account, CoinTo, Terms, Word};
use super::words::{ZERO, units};
use crate::decode::abi::{WORD, account, bytes, number};
use crate::decode::settler::Settled;
use crate::decode::universal_router::{CoinReceivers, EXECUTE};
use crate::domain::Units;

/// `swap(string aggregatorId, address tokenFrom, uint256 amount, bytes data)` of `MetaMask` Swap.
const METAMASK_SWAP: u32 = 0x5f57_5529;
/// No known layout has its fee after this many words.
const WORDS_MAX: usize = 20;
/// `MetaMask` adapters for `AirSwap` have names with this prefix.
const AIRSWAP: &[u8] = b"airswap";

/// Word offsets in the data of a `MetaMask` adapter: the bought token (the zero address is native
/// coin), the fee, and the flag that the fee is taken from the output.
struct Layout {
    bought: usize,
    fee: usize,
    of_bought: usize,
}

/// `tokenFrom, tokenTo, amountFrom, amountTo, bytes, fee, feeWallet, feeOnTo`.
const COMMON: Layout = Layout { bought: 8, fee: 12, of_bought: 14 };
/// An order of `AirSwap` (`nonce, expiry, signer, signerToken, …`), then the same three words.
const ORDER: Layout = Layout { bought: 10, fee: 17, of_bought: 19 };

/// For each selector, the offset of the word whose last 20 bytes are the receiver of the output.
/// The bytes before them may be flags or an order's number.
const RECEIVERS: [(u32, usize); 57] = [
    // `swapExactTokensForETH`, `swapTokensForExactETH` and their variants for fee-on-transfer tokens:
    // of the V2 routers, of Velodrome V2 and Aerodrome, and of Solidly's form.
    (0x18cb_afe5, 3),
    (0x4a25_d94a, 3),
    (0x791a_c947, 3),
    (0xc6b7_f1b6, 3),
    (0x12bc_3aca, 3),
    (0x18a1_3086, 3),
    (0x7af7_28c8, 3),
    // The same on Avalanche's routers, Camelot's (with a referrer), and LFJ's for native coin.
    (0x6765_28d1, 3),
    (0x7a42_416a, 3),
    (0x762b_1562, 3),
    (0x52aa_4c22, 3),
    (0x9ab6_156b, 3),
    (0x3dc8_f8ec, 3),
    (0x1a24_f9a9, 3),
    // 1inch: `swap` of v4 (its description is at an offset), of v5 and of v6.
    (0x7c02_5200, 6),
    (0x12aa_3caf, 4),
    (0x07ed_2379, 4),
    // 1inch v4 and v5: `unoswapTo`, `uniswapV3SwapTo` and `clipperSwapTo`, also with a permit.
    (0xf78d_c253, 0),
    (0x3c15_fd91, 0),
    (0xbc80_f1a8, 0),
    (0x2521_b930, 0),
    (0x093d_4fa5, 1),
    (0xc805_a666, 1),
    // 1inch v6: `unoswapTo` by one, two and three pools, `clipperSwapTo`.
    (0xe2c9_5c82, 0),
    (0xea76_dddf, 0),
    (0xf7a7_0056, 0),
    (0xc4d6_52af, 1),
    // 1inch's orders: `fillOrderTo` of v5, `fillOrderRFQTo` of v4 and v5, and with a permit.
    (0xe5d7_bde6, 6),
    (0xbaba_5855, 10),
    (0x5a09_9843, 9),
    (0x70cc_bd31, 9),
    // Balancer V2: `swap` and `batchSwap`.
    (0x52bb_be29, 3),
    (0x945b_cec9, 5),
    // 0x: `sellTokenForEthToUniswapV3`, `sellToLiquidityProvider`.
    (0x803b_a26d, 3),
    (0xf7fc_d384, 3),
    // Curve: `exchange` with a receiver.
    (0xddc1_f59d, 4),
    (0xce7d_6503, 5),
    // Uniswap V1: `tokenToEthTransferInput`, `tokenToEthTransferOutput`.
    (0x7237_e031, 3),
    (0xd4e4_841d, 3),
    // KyberSwap Classic: `trade`, with a hint, and with a fee.
    (0xcb3c_28c7, 3),
    (0x2958_9f61, 3),
    (0xae59_1d54, 3),
    // Odos: `swap`, `swapPermit2`.
    (0x3b63_5ce4, 6),
    (0x87b6_21b5, 7),
    // OKX: `smartSwapTo`, `dagSwapTo`, `unxswapTo`, `uniswapV3SwapTo`.
    (0x03b8_7e5f, 1),
    (0x0c30_7f76, 1),
    (0x0829_8b5a, 3),
    (0x0d5f_0e3b, 0),
    // OKX: `uniswapV3SwapToWithBaseRequest`, `unxswapToWithBaseRequest`, `uniswapV3SwapToWithPermit`,
    // `smartSwapByInvest`, `smartSwapByInvestWithRefund`.
    (0x4401_4e98, 1),
    (0xb881_5477, 1),
    (0xf3e1_44b6, 0),
    (0xe99b_fa95, 8),
    (0x591b_3d08, 8),
    // SushiSwap: `snwap`.
    (0x5f3b_d1c8, 2),
    // OKX: `smartSwapByOrderId`, `dagSwapByOrderId`, `unxswapByOrderId` pay their caller.
    (0xb80c_2f09, CALLER),
    (0xf2c4_2696, CALLER),
    (0x9871_efa4, CALLER),
];
/// Used in place of an offset for calls that name no receiver and pay their caller.
const CALLER: usize = usize::MAX;

/// `exec` of 0x's `AllowanceHolder`, and `execute` of its Settlers.
const SETTLERS: [u32; 2] = [0x2213_bc0b, 0x1fff_991f];
/// `swapCompact()` of Odos.
const ODOS_COMPACT: u32 = 0x83bd_37f9;
/// The receiver is within this many hex digits: five addresses of up to 22 bytes, two amounts of up
/// to 33, and 3 bytes of slippage.
const COMPACT_DIGITS_MAX: usize = 2 * (5 * 22 + 2 * 33 + 3);

/// `multicall(bytes[])` of the V3 routers, alone, with a deadline, and with a block hash before the
/// calls; each with the word that holds the offset of the calls.
const MULTICALLS: [(u32, usize); 3] = [(0xac96_50d8, 0), (0x5ae4_01dc, 1), (0x1f04_64d1, 1)];
/// `unwrapWETH9(uint256,address)`, and `unwrapWNativeToken` of Algebra: minimum, receiver.
const UNWRAP: [u32; 2] = [0x4940_4b7c, 0x69bc_35b2];
/// The same with a fee: after these, the fee in hundredths of a percent and its receiver.
const UNWRAP_WITH_FEE: [u32; 2] = [0x9b2c_0a37, 0xc606_96ec];
/// `unwrapWETH9(uint256)` of `SwapRouter02`, without and with a fee: it pays the caller.
const UNWRAP_FOR_CALLER: u32 = 0x4961_6997;
const UNWRAP_FOR_CALLER_WITH_FEE: u32 = 0xd4ef_38de;
/// `refundETH()` and `refundNativeToken()` return the unused call value to the caller.
const REFUND: [u32; 2] = [0x1221_0e8a, 0x4186_5270];

/// Reads the receiver and the fee of the output from the input of a call.
pub(crate) fn terms(input: &[u8], sender: Account, called: Option<Account>) -> Terms {
    let input = input.strip_prefix(b"0x").unwrap_or(input);
    let Some((selector, words)) = input.split_at_checked(8) else { return Terms::default() };
    let Ok(selector) = const_hex::decode_to_array(selector) else { return Terms::default() };
    if EXECUTE.contains(&selector) {
        return by_commands(input, sender, called).unwrap_or_default();
    }
    let selector = u32::from_be_bytes(selector);
    if SETTLERS.contains(&selector) {
        let settled = |called| Settled::read(&const_hex::decode(input).ok()?, called);
        let Some(settled) = called.and_then(settled) else { return Terms::default() };
        let sale = settled.sale.filter(|_| settled.receiver == sender);
        return Terms { sale, ..by_receiver(Some(settled.receiver), sender) };
    }
    if selector == METAMASK_SWAP {
        return Terms { charged: charged(&head(words, WORDS_MAX)), ..Terms::default() };
    }
    if let Some((_, list)) = MULTICALLS.iter().find(|(known, _)| *known == selector) {
        let shared = Terms { coin: CoinTo::Shared, ..Terms::default() };
        return by_multicall(words, *list, sender).unwrap_or(shared);
    }
    if selector == ODOS_COMPACT {
        return by_receiver(compact_receiver(words), sender);
    }
    let receiver = match RECEIVERS.iter().find(|(known, _)| *known == selector) {
        None => None,
        Some((_, CALLER)) => Some(ZERO),
        Some((_, place)) => {
            head(words, place + 1).get(*place).and_then(|word| word.last_chunk().copied())
        }
    };
    by_receiver(receiver, sender)
}

/// The terms of a call with a single receiver; the zero address denotes the caller.
fn by_receiver(receiver: Option<Account>, sender: Account) -> Terms {
    let to_sender = receiver.is_some_and(|to| to == ZERO || to == sender);
    let coin = if to_sender { CoinTo::Sender } else { CoinTo::Unstated };
    Terms { receiver: receiver.filter(|to| *to != ZERO), coin, ..Terms::default() }
}

/// The accounts to which the calls inside a multicall pay native coin.
#[derive(Debug, Default)]
struct Payees {
    to_sender: bool,
    to_other: Option<Account>,
    refunds: bool,
}

/// The terms of a V3 router's multicall. `None` if its calls cannot be decoded.
fn by_multicall(words: &[u8], list_at: usize, sender: Account) -> Option<Terms> {
    let words = const_hex::decode(words).ok()?;
    let list = words.get(number(&words, list_at)?..)?;
    let calls = list.get(WORD..)?;
    let mut given = Payees::default();
    for at in 0..number(list, 0)? {
        given.add(bytes(calls, number(calls, at)?)?, sender)?;
    }
    Some(match (given.to_other, given.to_sender || given.refunds) {
        (None, _) => Terms::default(),
        (Some(_), true) if given.to_sender => Terms { coin: CoinTo::Shared, ..Terms::default() },
        (receiver, true) => Terms { receiver, coin: CoinTo::Shared, ..Terms::default() },
        (receiver, false) => Terms { receiver, coin: CoinTo::Others, ..Terms::default() },
    })
}

impl Payees {
    fn add(&mut self, call: &[u8], sender: Account) -> Option<()> {
        let Some((selector, arguments)) = call.split_first_chunk() else { return Some(()) };
        let selector = u32::from_be_bytes(*selector);
        let receivers = if UNWRAP.contains(&selector) {
            [account(arguments, 1)?; 2]
        } else if UNWRAP_WITH_FEE.contains(&selector) {
            [account(arguments, 1)?, account(arguments, 3)?]
        } else if selector == UNWRAP_FOR_CALLER {
            [sender; 2]
        } else if selector == UNWRAP_FOR_CALLER_WITH_FEE {
            [sender, account(arguments, 2)?]
        } else {
            self.refunds |= REFUND.contains(&selector);
            let nests = MULTICALLS.iter().any(|(known, _)| *known == selector);
            return (!nests).then_some(());
        };
        for to in receivers {
            if to == sender {
                self.to_sender = true;
            } else {
                self.to_other = self.to_other.or(Some(to));
            }
        }
        Some(())
    }
}

/// Reads the receiver of Odos' `swapCompact()`, which follows two tokens, two amounts, the
/// slippage, the executor and the receiver of the input. `None` if it is an index into the router's
/// address list.
fn compact_receiver(digits: &[u8]) -> Option<Account> {
    let data = const_hex::decode(digits.get(..COMPACT_DIGITS_MAX).unwrap_or(digits)).ok()?;
    let mut rest = data.as_slice();
    for _ in 0..2 {
        skip_address(&mut rest)?;
    }
    for _ in 0..2 {
        let [length] = take(&mut rest, 1)? else { return None };
        take(&mut rest, usize::from(*length))?;
    }
    take(&mut rest, 3)?;
    for _ in 0..2 {
        skip_address(&mut rest)?;
    }
    match take(&mut rest, 2)? {
        [0, 0] => Some(ZERO),
        [0, 1] => take(&mut rest, 20)?.try_into().ok(),
        _ => None,
    }
}

/// Skips an address: either the code `0001` and 20 bytes, or an index into the router's list.
fn skip_address(rest: &mut &[u8]) -> Option<()> {
    if take(rest, 2)? == [0, 1] {
        take(rest, 20)?;
    }
    Some(())
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, more) = rest.split_at_checked(count)?;
    *rest = more;
    Some(taken)
}

/// The first words of an input.
fn head(digits: &[u8], most: usize) -> Vec<Word> {
    let words = digits.as_chunks::<64>().0.iter().take(most);
    words.map_while(|word| const_hex::decode_to_array(word).ok()).collect()
}

/// The terms of a Universal Router's call.
fn by_commands(input: &[u8], sender: Account, called: Option<Account>) -> Option<Terms> {
    let coin = CoinReceivers::read(&const_hex::decode(input).ok()?, sender)?;
    let mut all = coin.all().filter(|to| Some(**to) != called);
    let other = all.clone().find(|to| **to != sender).copied();
    let terms = match (all.any(|to| *to == sender), other) {
        // Events state how much was unwrapped, but not how much V4 paid without unwrapping.
        (true, None) if coin.is_split => Terms { coin: CoinTo::Shared, ..Terms::default() },
        (true, None) => Terms::default(),
        (true, Some(_)) => Terms { coin: CoinTo::Shared, ..Terms::default() },
        (false, Some(_)) if !coin.are_all => Terms { coin: CoinTo::Shared, ..Terms::default() },
        (false, None) if !coin.are_all => Terms::default(),
        (false, receiver) => Terms { receiver, coin: CoinTo::Others, ..Terms::default() },
    };
    Some(Terms { sale: coin.sale, ..terms })
}

/// The native coin that `MetaMask` Swap deducts from its output.
fn charged(words: &[Word]) -> Option<Units> {
    let number = |at: usize| words.get(at).map(units);
    let holds = |at: usize, value: u64| number(at) == Some(Units::from(value));
    // The adapter's name takes one word, so the data begins at the seventh word.
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
    use sha3::{Digest as _, Keccak256};

    use super::*;

    fn input(words: &[&str]) -> String {
        let words = words.iter().map(|word| format!("{word:0>64}"));
        format!("0x{METAMASK_SWAP:08x}{}", words.collect::<String>())
    }

    /// The words of Ethereum transaction 0x395615fa37…, whose trace shows 416768566082016 wei paid
    /// to the fee wallet.
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
        // From transaction 0xbfe647f03c…, an order of AirSwap.
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
            (0..11).map(word).collect()
        };
        for (selector, place) in RECEIVERS {
            let read = |who: &str| {
                let input = format!("0x{selector:08x}{}", words(place, who));
                terms(input.as_bytes(), SENDER, None)
            };
            let of_caller = Terms { coin: CoinTo::Sender, ..Terms::default() };
            assert_eq!(read("0"), of_caller, "{selector:08x}");
            if place == CALLER {
                continue;
            }
            assert_eq!(read(to).receiver.map(hex::encode).as_deref(), Some(to), "{selector:08x}");
            assert_eq!(read(to).coin, CoinTo::Unstated, "{selector:08x}");
            let sender = hex::encode(SENDER);
            assert_eq!(read(&sender), Terms { receiver: Some(SENDER), ..of_caller });
            // An order's number in the bytes before the receiver.
            assert_eq!(read(&format!("186a0{to}")).receiver, read(to).receiver);
        }
    }

    #[test]
    fn selectors_are_those_of_their_signatures() {
        let pair = "(address,address,bool,address)[]";
        let base = "(uint256,address,uint256,uint256,uint256)";
        let token_info = "(address,uint256,address,address,uint256,uint256,address)";
        let (amounts, taxed) = ("uint256,uint256", "SupportingFeeOnTransferTokens");
        let bins = "(uint256[],uint8[],address[])";
        let four = "address,address,address,address";
        let order = format!("(uint256,address,{four},uint256,uint256,uint256,bytes)");
        let quote = format!("(uint256,{four},uint256,uint256)");
        let unwraps = [
            ("unwrapWETH9(uint256,address)".to_owned(), UNWRAP[0]),
            ("unwrapWNativeToken(uint256,address)".to_owned(), UNWRAP[1]),
            ("unwrapWETH9WithFee(uint256,address,uint256,address)".to_owned(), UNWRAP_WITH_FEE[0]),
            (
                "unwrapWNativeTokenWithFee(uint256,address,uint256,address)".to_owned(),
                UNWRAP_WITH_FEE[1],
            ),
            ("unwrapWETH9(uint256)".to_owned(), UNWRAP_FOR_CALLER),
            ("unwrapWETH9WithFee(uint256,uint256,address)".to_owned(), UNWRAP_FOR_CALLER_WITH_FEE),
            ("refundETH()".to_owned(), REFUND[0]),
            ("refundNativeToken()".to_owned(), REFUND[1]),
            ("swapCompact()".to_owned(), ODOS_COMPACT),
        ];
        let receivers = [
            format!("swapExactTokensForETH(uint256,uint256,{pair},address,uint256)"),
            "unoswapTo(address,address,uint256,uint256,uint256[])".to_owned(),
            "uniswapV3SwapTo(address,uint256,uint256,uint256[])".to_owned(),
            "unoswapTo(uint256,uint256,uint256,uint256,uint256)".to_owned(),
            "exchange(int128,int128,uint256,uint256,address)".to_owned(),
            "tokenToEthTransferInput(uint256,uint256,uint256,address)".to_owned(),
            "trade(address,uint256,address,address,uint256,uint256,address)".to_owned(),
            format!("swap({token_info},bytes,address,uint32)"),
            "unxswapTo(uint256,uint256,uint256,address,bytes32[])".to_owned(),
            "uniswapV3SwapTo(uint256,uint256,uint256,uint256[])".to_owned(),
            format!("uniswapV3SwapToWithBaseRequest(uint256,address,{base},uint256[])"),
            format!("unxswapToWithBaseRequest(uint256,address,{base},bytes32[])"),
            "uniswapV3SwapToWithPermit(uint256,address,uint256,uint256,uint256[],bytes)".to_owned(),
            "snwap(address,uint256,address,address,uint256,address,bytes)".to_owned(),
            format!("swapExactTokensForAVAX({amounts},address[],address,uint256)"),
            format!("swapTokensForExactAVAX({amounts},address[],address,uint256)"),
            format!("swapExactTokensForAVAX{taxed}({amounts},address[],address,uint256)"),
            format!("swapExactTokensForETH{taxed}({amounts},address[],address,address,uint256)"),
            format!("swapExactTokensForNATIVE({amounts},{bins},address,uint256)"),
            format!("swapTokensForExactNATIVE({amounts},{bins},address,uint256)"),
            format!("swapExactTokensForNATIVE{taxed}({amounts},{bins},address,uint256)"),
            format!("fillOrderTo({order},bytes,bytes,uint256,uint256,uint256,address)"),
            format!("fillOrderRFQTo({quote},bytes,uint256,uint256,address)"),
            format!("fillOrderRFQTo({quote},bytes,uint256,address)"),
            format!("fillOrderRFQToWithPermit({quote},bytes,uint256,address,bytes)"),
        ];
        let hash = |text: &String| {
            Keccak256::digest(text).first_chunk().map(|first| u32::from_be_bytes(*first))
        };
        for (text, selector) in unwraps {
            assert_eq!(hash(&text), Some(selector), "{text}");
        }
        for text in receivers {
            assert!(RECEIVERS.iter().any(|(known, _)| Some(*known) == hash(&text)), "{text}");
        }
    }

    /// A selector, and its words.
    type Call<'a> = (u32, &'a [Account]);

    /// A multicall with some calls.
    fn multicall((selector, list_at): (u32, usize), calls: &[Call<'_>]) -> String {
        let word = |number: usize| format!("{number:064x}");
        let call = |(selector, words): &Call<'_>| {
            let words = words.iter().map(|who| format!("{:0>64}", hex::encode(who)));
            format!("{selector:08x}{}", words.collect::<String>())
        };
        let (mut offsets, mut tail) = (String::new(), String::new());
        for one in calls {
            let data = call(one);
            offsets += &word(calls.len() * 32 + tail.len() / 2);
            tail += &(word(data.len() / 2) + &data + &"0".repeat((64 - data.len() % 64) % 64));
        }
        let head = word(9).repeat(list_at) + &word(32 * (list_at + 1));
        format!("0x{selector:08x}{head}{}{offsets}{tail}", word(calls.len()))
    }

    #[test]
    fn a_multicall_pays_coin_to_the_recipients_of_its_calls() {
        let swap: Call<'_> = (0x414b_f389, &[CALLED, FEES]);
        for multicall_at in MULTICALLS {
            let read = |calls: &[Call<'_>]| {
                terms(multicall(multicall_at, calls).as_bytes(), SENDER, Some(CALLED))
            };
            let shared = Terms { coin: CoinTo::Shared, ..Terms::default() };
            let other = Terms { receiver: Some(FEES), coin: CoinTo::Others, ..Terms::default() };
            for unwrap in UNWRAP {
                assert_eq!(read(&[swap, (unwrap, &[ZERO, SENDER])]), Terms::default());
                assert_eq!(read(&[swap, (unwrap, &[ZERO, FEES])]), other);
                assert_eq!(read(&[(unwrap, &[ZERO, FEES]), (unwrap, &[ZERO, SENDER])]), shared);
            }
            for unwrap in UNWRAP_WITH_FEE {
                assert_eq!(read(&[swap, (unwrap, &[ZERO, SENDER, ZERO, FEES])]), shared);
                assert_eq!(read(&[swap, (unwrap, &[ZERO, FEES, ZERO, FEES])]), other);
            }
            assert_eq!(read(&[swap, (UNWRAP_FOR_CALLER, &[ZERO])]), Terms::default());
            assert_eq!(read(&[swap, (UNWRAP_FOR_CALLER_WITH_FEE, &[ZERO, ZERO, FEES])]), shared);
            // The unused value is refunded to the sender, what was unwrapped goes elsewhere.
            let refunded = read(&[swap, (UNWRAP[0], &[ZERO, FEES]), (REFUND[0], &[])]);
            assert_eq!(refunded, Terms { receiver: Some(FEES), ..shared });
            assert_eq!(read(&[swap, (REFUND[0], &[])]), Terms::default());
            // A nested multicall is not decoded.
            assert_eq!(read(&[swap, (MULTICALLS[0].0, &[ZERO])]), shared);
        }
        assert_eq!(terms(b"0xac9650d8", SENDER, None).coin, CoinTo::Shared);
    }

    /// Odos calls that sell a token for native coin, as recorded on Ethereum and Polygon.
    #[test]
    fn the_receiver_of_a_compact_call_is_behind_what_it_exchanges() {
        let full = |who: &Account| format!("0001{}", hex::encode(who));
        let call = |receiver: &str| {
            let tokens = format!("{}0000", full(&CALLED));
            let amounts = "03aabbcc02ddee";
            let input = format!("0x83bd37f9{tokens}{amounts}00c49b{}0000{receiver}", full(&FEES));
            terms((input + "00000001").as_bytes(), SENDER, Some(CALLED))
        };
        let of_caller = Terms { coin: CoinTo::Sender, ..Terms::default() };
        assert_eq!(call("0000"), of_caller);
        assert_eq!(call(&full(&SENDER)), Terms { receiver: Some(SENDER), ..of_caller });
        assert_eq!(call(&full(&FEES)), Terms { receiver: Some(FEES), ..Terms::default() });
        // An index into the router's list, and input that is cut short.
        assert_eq!(call("0005"), Terms::default());
        assert_eq!(terms(b"0x83bd37f9000100", SENDER, None), Terms::default());
    }

    const SENDER: Account = [7; 20];
    const FEES: Account = [8; 20];
    const CALLED: Account = [9; 20];

    /// Commands, each with a token (zero: native coin) or a receiver, then a receiver, then a
    /// share.
    fn execute(commands: &[(u8, Account, Account)]) -> String {
        let word = |number: usize| format!("{number:064x}");
        let who = |account: &Account| format!("{:0>64}", hex::encode(account));
        let codes = hex::encode(commands.iter().map(|(code, ..)| *code).collect::<Vec<u8>>());
        let offsets: String =
            (0..commands.len()).map(|at| word(commands.len() * 32 + at * 128)).collect();
        let inputs =
            commands.iter().map(|(_, one, two)| word(96) + &who(one) + &who(two) + &word(25));
        let list = word(commands.len()) + &offsets + &inputs.collect::<String>();
        let head = word(64) + &word(128) + &word(commands.len());
        format!("0x24856bc3{head}{codes:0<64}{list}")
    }

    #[test]
    fn a_universal_router_pays_coin_to_the_recipients_of_its_commands() {
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
        // From Ethereum transaction 0xe4532a98…: the fee is swept to another account.
        assert_eq!(coin(&[wrap, (0x08, sender, ZERO), sweep(FEES)]), CoinTo::Others);
        assert_eq!(coin(&[wrap, unwrap(sender)]), CoinTo::Unstated);
        assert_eq!(coin(&[unwrap(SENDER)]), CoinTo::Unstated);
        for (held, part) in [(router, 0x06), (CALLED, 0x87)] {
            assert_eq!(coin(&[unwrap(held), (part, ZERO, FEES), sweep(sender)]), CoinTo::Shared);
            assert_eq!(coin(&[unwrap(held), sweep(sender)]), CoinTo::Unstated);
        }
        // A share of another token.
        assert_eq!(coin(&[(0x86, FEES, FEES), unwrap(sender)]), CoinTo::Unstated);
        // A swap in Uniswap V4, a bridge.
        assert_eq!(coin(&[(0x10, ZERO, ZERO)]), CoinTo::Unstated);
        assert_eq!(coin(&[(0x40, ZERO, ZERO)]), CoinTo::Unstated);
        assert_eq!(coin(&[(0x10, ZERO, ZERO), sweep(FEES)]), CoinTo::Shared);
        assert_eq!(terms(&[unwrap(FEES)]).receiver, Some(FEES));
        assert_eq!(terms(&[wrap]), Terms { coin: CoinTo::Others, ..Terms::default() });
        // A share of what is unwrapped.
        assert_eq!(coin(&[(0x0f, FEES, ZERO), unwrap(sender)]), CoinTo::Shared);
        assert_eq!(coin(&[(0x0f, sender, ZERO)]), CoinTo::Unstated);
    }

    #[test]
    fn commands_come_with_a_signature_or_by_a_proxy_too() {
        let of = |text: &str| terms(text.as_bytes(), SENDER, Some(CALLED));
        let plain = execute(&[(0x0c, FEES, ZERO)]);
        let signed = plain.replace("0x24856bc3", "0x44684dc3");
        assert_eq!(of(&signed).receiver, Some(FEES));
        // A router, a token and an amount stand before the commands.
        let proxied = |to: Account| {
            let plain = execute(&[(0x0c, to, ZERO)]);
            let (_, content) = plain.split_at(10 + 2 * 64);
            let words = [0, 0, 0, 160, 224].map(|word| format!("{word:064x}"));
            of(&format!("0x2894adf9{}{content}", words.concat()))
        };
        assert_eq!(proxied(SENDER), Terms::default());
        assert_eq!(proxied(FEES).receiver, Some(FEES));
        // The router's caller is the proxy.
        let mut caller = ZERO;
        caller[19] = 1;
        assert_eq!(proxied(caller).coin, CoinTo::Others);
    }
}
