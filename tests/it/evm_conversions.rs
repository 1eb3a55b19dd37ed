//! Conversions at a fixed price: part of a trade only if a market takes part in the transaction.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, Log, Word};

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, ZERO, account, call, case, log,
    number, swap, transfer, unwrap, v2_swap, weth, word, wrap,
};

/// A peg module, and the account that holds its tokens for it.
const MODULE: Account = POOL_2;
const JOIN: Account = OTHER;

/// 50 units of AAA, as many of BBB in twelve more decimals, and a fee of 7 units of BBB.
const HELD: u64 = 50;
const MINTED: u64 = 49_999_999_999_993;
const BURNT: u64 = 50_000_000_000_007;

fn says(event: &str) -> Log {
    let signature = format!("{event}(address,uint256,uint256)");
    log(MODULE, &signature, &[word(ROUTER)], &[number(HELD), number(7)])
}

/// AAA of the router becomes BBB of the router.
fn minting(minted: u64) -> Vec<Log> {
    vec![transfer(AAA, ROUTER, JOIN, HELD), transfer(BBB, ZERO, ROUTER, minted), says("SellGem")]
}

/// BBB of the router becomes AAA of the router.
fn burning() -> Vec<Log> {
    vec![
        transfer(BBB, ROUTER, MODULE, BURNT),
        transfer(BBB, MODULE, ZERO, BURNT),
        transfer(AAA, JOIN, ROUTER, HELD),
        says("BuyGem"),
    ]
}

/// The wallet sells CCC for AAA at a pool, and the router has it converted to BBB.
fn bought(converted: Vec<Log>, got: u64) -> Vec<Log> {
    let swapped = swap(POOL, (CCC, 500, WALLET), (AAA, HELD, ROUTER));
    [swapped, converted, vec![transfer(BBB, ROUTER, WALLET, got)]].concat()
}

#[test]
fn a_peg_module_on_a_route_is_part_of_the_trade() {
    case(bought(minting(MINTED), MINTED)).gives(&[('s', CCC, 500, None), ('b', BBB, MINTED, None)]);
    // Both rows have the name of the only pool, which no factory derives.
    case(bought(minting(MINTED), MINTED))
        .venues(&["0x2020202020202020202020202020202020202020"; 2]);
    let swapped = swap(POOL, (AAA, HELD, ROUTER), (CCC, 500, WALLET));
    let sold = [vec![transfer(BBB, WALLET, ROUTER, BURNT)], burning(), swapped].concat();
    case(sold).gives(&[('s', BBB, BURNT, None), ('b', CCC, 500, None)]);
    // From the token that the module holds through the one that it mints.
    let onward = swap(POOL, (BBB, MINTED, ROUTER), (CCC, 500, WALLET));
    let first = [vec![transfer(AAA, WALLET, ROUTER, HELD)], minting(MINTED), onward].concat();
    case(first).gives(&[('s', AAA, HELD, None), ('b', CCC, 500, None)]);
}

#[test]
fn a_peg_module_may_hand_out_what_it_has_minted_before() {
    let handed = vec![
        transfer(AAA, ROUTER, JOIN, HELD),
        transfer(BBB, MODULE, ROUTER, MINTED),
        says("SellGem"),
    ];
    case(bought(handed, MINTED)).gives(&[('s', CCC, 500, None), ('b', BBB, MINTED, None)]);
}

#[test]
fn what_a_conversion_does_not_state_is_a_share() {
    // One unit less than remains after the fee.
    let other = bought(minting(MINTED - 1), MINTED - 1);
    case(other).gives_none(Some(NoteKind::Liquidity));
    // A token that reports its own deposits.
    let mut share = bought(minting(MINTED), MINTED);
    share.push(log(BBB, "Mint(address,uint256,uint256)", &[word(ROUTER)], &[[9; 32]; 2]));
    case(share).gives_none(Some(NoteKind::Liquidity));
}

#[test]
fn a_conversion_alone_is_no_trade_of_a_router() {
    let converted = [
        vec![transfer(AAA, WALLET, ROUTER, HELD)],
        minting(MINTED),
        vec![transfer(BBB, ROUTER, WALLET, MINTED)],
    ];
    let one_inch = account("1111111254eeb25477b68fb85ed929f73a960582");
    let alone = case(converted.concat());
    alone.gives_none(None);
    alone.clone().to(one_inch).gives_none(Some(NoteKind::Conversion));
    // In the other direction.
    let back = [
        vec![transfer(BBB, WALLET, ROUTER, BURNT)],
        burning(),
        vec![transfer(AAA, ROUTER, WALLET, HELD)],
    ];
    case(back.concat()).to(one_inch).gives_none(Some(NoteKind::Conversion));
    // The router calls it an exchange.
    let mut named = alone;
    let words = [word(WALLET), word(AAA), word(BBB), word(WALLET), number(HELD), number(MINTED)];
    let signature = "Swapped(address,address,address,address,uint256,uint256)";
    named.tx.logs.push(log(ROUTER, signature, &[], &words));
    named.gives_none(Some(NoteKind::Conversion));
}

#[test]
fn a_conversion_next_to_a_quote_is_part_of_a_trade() {
    // A market maker pays for CCC by a transfer alone, and the module converts that.
    let logs = vec![
        transfer(CCC, WALLET, POOL, 500),
        transfer(AAA, POOL, ROUTER, HELD),
        transfer(AAA, ROUTER, JOIN, HELD),
        transfer(BBB, MODULE, WALLET, MINTED),
        says("SellGem"),
    ];
    let one_inch = account("1111111254eeb25477b68fb85ed929f73a960582");
    case(logs).to(one_inch).gives(&[('s', CCC, 500, None), ('b', BBB, MINTED, None)]);
}

/// The wallet's own conversion of AAA to BBB, and a swap of another account in the same bundle, or of
/// the wallet's own.
#[test]
fn a_conversion_of_the_wallets_own_is_no_part_of_a_trade_next_to_it() {
    const DDD: Account = [0xc4; 20];
    let converted = || {
        let mut logs =
            vec![transfer(AAA, WALLET, JOIN, HELD), transfer(BBB, MODULE, WALLET, MINTED)];
        logs.push(says("SellGem"));
        logs
    };
    // Another account swaps other tokens, or the one that the wallet converts.
    for (token, note) in [(CCC, None), (AAA, Some(NoteKind::OneSided))] {
        let others = swap(POOL, (token, 500, ROUTER), (DDD, 100, ROUTER));
        case([converted(), others].concat()).gives_none(note);
    }
    let own = swap(POOL, (CCC, 500, WALLET), (DDD, 100, WALLET));
    let rows = [('s', CCC, 500, None), ('b', DDD, 100, None)];
    case([converted(), own].concat()).gives(&rows);
}

/// Another account converts more than the wallet exchanged, and others swap other tokens.
#[test]
fn a_conversion_of_another_account_is_no_part_of_a_trade() {
    const DEALER: Account = [0xc4; 20];
    let own = vec![transfer(AAA, WALLET, DEALER, 10), transfer(BBB, DEALER, WALLET, 9)];
    let converted = vec![
        transfer(AAA, ROUTER, JOIN, HELD),
        transfer(BBB, MODULE, ROUTER, MINTED),
        says("SellGem"),
    ];
    let others = swap(POOL, (CCC, 500, ROUTER), ([0xc5; 20], 100, ROUTER));
    case([own, converted, others].concat()).gives_none(None);
}

/// An aggregator that takes a fee of what it has converted, and an event that names both tokens
/// (Spark's PSM3: `Swap(assetIn, assetOut, sender, receiver, amountIn, amountOut, referral)`).
#[test]
fn a_conversion_for_a_fee_is_no_trade_of_a_router() {
    let one_inch = account("1111111254eeb25477b68fb85ed929f73a960582");
    let kept = vec![transfer(AAA, WALLET, ROUTER, HELD + 2), transfer(AAA, ROUTER, POOL, 2)];
    let logs = [kept, minting(MINTED), vec![transfer(BBB, ROUTER, WALLET, MINTED)]];
    case(logs.concat()).to(one_inch).gives_none(Some(NoteKind::Conversion));
    let signature = "Swap(address,address,address,address,uint256,uint256,uint256)";
    let sides = [word(AAA), word(BBB), word(ROUTER)];
    let amounts = [word(WALLET), number(HELD), number(MINTED), number(0)];
    let logs = vec![
        transfer(AAA, WALLET, MODULE, HELD),
        transfer(BBB, MODULE, WALLET, MINTED),
        log(MODULE, signature, &sides, &amounts),
    ];
    case(logs).to(one_inch).on("base").gives_none(Some(NoteKind::Conversion));
}

/// Half of what the wallet sells is converted, and a market maker that logs nothing takes the rest.
#[test]
fn a_conversion_of_a_part_hides_no_quote() {
    let logs = vec![
        transfer(AAA, WALLET, ROUTER, 2 * HELD),
        transfer(AAA, ROUTER, JOIN, HELD),
        transfer(BBB, MODULE, ROUTER, MINTED),
        says("SellGem"),
        transfer(AAA, ROUTER, POOL, HELD),
        transfer(BBB, POOL, ROUTER, MINTED + 3),
        transfer(BBB, ROUTER, WALLET, 2 * MINTED + 3),
    ];
    let one_inch = account("1111111254eeb25477b68fb85ed929f73a960582");
    let rows = [('s', AAA, 2 * HELD, None), ('b', BBB, 2 * MINTED + 3, None)];
    case(logs).to(one_inch).gives(&rows);
}

/// The tokens that a module converted are searched among the last transfers before its event, and
/// only for a few events: any contract may log thousands in a transaction that names a victim.
#[test]
fn thousands_of_events_cost_little() {
    let logs = (0..4_000_u32).flat_map(|place| {
        let mut token = AAA;
        token[..4].copy_from_slice(&place.to_be_bytes());
        [transfer(token, ROUTER, WALLET, HELD), says("SellGem")]
    });
    case(logs.collect()).gives_none(None);
}

const WRAPPED_A: Account = [0xd1; 20];
const WRAPPED_B: Account = [0xd2; 20];

/// A contract takes `amount` of a token from `from`, and mints as much of its own to `to`.
fn wrapped(
    outer: Account,
    inner: Account,
    (from, to): (Account, Account),
    amount: u64,
) -> [Log; 2] {
    [transfer(inner, from, outer, amount), transfer(outer, ZERO, to, amount)]
}

/// The reverse: burns what `from` holds and pays `to`.
fn unwrapped(
    outer: Account,
    inner: Account,
    (from, to): (Account, Account),
    amount: u64,
) -> [Log; 2] {
    [transfer(outer, from, ZERO, amount), transfer(inner, outer, to, amount)]
}

#[test]
fn tokens_that_pools_hold_wrapped_are_exchanged() {
    let rows = [('s', AAA, 500, None), ('b', BBB, 7, None)];
    // Both wrapped by the route, as pairs of Ring hold them.
    let mut logs = wrapped(WRAPPED_A, AAA, (WALLET, POOL), 500).to_vec();
    logs.extend([transfer(WRAPPED_B, POOL, ROUTER, 7), v2_swap(POOL, [500, 0, 0, 7])]);
    logs.extend(unwrapped(WRAPPED_B, BBB, (ROUTER, WALLET), 7));
    case(logs).gives(&rows);
    // By the vault of Balancer V3, whose event names the wrapped tokens.
    let vault = account("ba1333333333a1ba1108e8412f11850a5c319ba9");
    let signature = "Swap(address,address,address,uint256,uint256,uint256,uint256)";
    let sides = [word(POOL), word(WRAPPED_A), word(WRAPPED_B)];
    let mut logs = vec![transfer(AAA, WALLET, vault, 500)];
    logs.extend(wrapped(WRAPPED_A, AAA, (vault, vault), 500));
    logs.push(log(vault, signature, &sides, &[number(500), number(7), number(1), number(1)]));
    logs.extend(unwrapped(WRAPPED_B, BBB, (vault, vault), 7));
    logs.push(transfer(BBB, vault, WALLET, 7));
    let boosted = case(logs);
    boosted.gives(&rows);
    boosted.venues(&["Balancer V3", "Balancer V3"]);
    // Only one of them is wrapped.
    let mut logs = wrapped(WRAPPED_A, AAA, (WALLET, ROUTER), 500).to_vec();
    logs.extend(swap(POOL, (WRAPPED_A, 500, ROUTER), (BBB, 7, WALLET)));
    case(logs).gives(&rows);
}

/// A vault that lends its assets: they come from the market's contract, whose own token it burns for
/// them, or is minted where the interest since its last use is more.
#[test]
fn what_a_vault_states_of_its_share_is_exchanged_too() {
    const LENT: Account = [0xd3; 20];
    let vault = account("ba1333333333a1ba1108e8412f11850a5c319ba9");
    let signature = "Swap(address,address,address,uint256,uint256,uint256,uint256)";
    let sides = [word(POOL), word(WRAPPED_A), word(WRAPPED_B)];
    let swapped = log(vault, signature, &sides, &[number(500), number(7), number(1), number(1)]);
    let bought = |taken: Log, stated: &[Log]| {
        let mut logs = vec![transfer(AAA, WALLET, vault, 500)];
        logs.extend(wrapped(WRAPPED_A, AAA, (vault, vault), 500));
        logs.push(swapped.clone());
        logs.extend([transfer(WRAPPED_B, vault, ZERO, 6), taken, transfer(BBB, LENT, vault, 7)]);
        logs.extend(stated.iter().cloned());
        logs.push(transfer(BBB, vault, WALLET, 7));
        case(logs)
    };
    let withdrawn = |receiver: Account, amounts: [u64; 2]| {
        let signature = "Withdraw(address,address,address,uint256,uint256)";
        let sides = [vault, receiver, vault].map(word);
        log(WRAPPED_B, signature, &sides, &amounts.map(number))
    };
    let rows = [('s', AAA, 500, None), ('b', BBB, 7, None)];
    for taken in [transfer(LENT, WRAPPED_B, ZERO, 7), transfer(LENT, ZERO, WRAPPED_B, 2)] {
        bought(taken.clone(), &[withdrawn(vault, [7, 6])]).gives(&rows);
        // Income, not exchanged: another amount, account or share, or no event at all.
        let others = [withdrawn(vault, [8, 6]), withdrawn(OTHER, [7, 6]), withdrawn(vault, [7, 5])];
        for other in others {
            bought(taken.clone(), &[other]).gives_none(Some(NoteKind::OneSided));
        }
        bought(taken, &[]).gives_none(Some(NoteKind::OneSided));
    }
}

/// The same for a deposit: what the vault lends goes directly to the market.
#[test]
fn what_a_vault_lends_on_at_once_is_exchanged_too() {
    const LENT: Account = [0xd3; 20];
    let deposited = |assets: u64| {
        let signature = "Deposit(address,address,uint256,uint256)";
        let sides = [word(ROUTER), word(ROUTER)];
        log(WRAPPED_A, signature, &sides, &[number(assets), number(490)])
    };
    let sold = |assets: u64| {
        let mut logs = vec![transfer(AAA, WALLET, ROUTER, 500), transfer(AAA, ROUTER, LENT, 500)];
        logs.extend([transfer(LENT, ZERO, WRAPPED_A, 500), transfer(WRAPPED_A, ZERO, ROUTER, 490)]);
        logs.push(deposited(assets));
        logs.extend(swap(POOL, (WRAPPED_A, 490, ROUTER), (BBB, 7, WALLET)));
        case(logs)
    };
    sold(500).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    sold(501).gives_none(Some(NoteKind::OneSided));
}

/// Metapools of Curve trade the share of a pool, a token of its own: a zap lays the token in, or takes it out.
#[test]
fn what_a_pool_takes_for_a_share_that_another_pool_trades_is_exchanged_too() {
    let changed = |event: &str, provider: Account, words: &[u64]| {
        let words: Vec<Word> = words.iter().map(|word| number(*word)).collect();
        log(POOL_2, event, &[word(provider)], &words)
    };
    let added = |provider: Account, amount: u64| {
        let event = "AddLiquidity(address,uint256[3],uint256[3],uint256,uint256)";
        let mut logs = vec![transfer(AAA, WALLET, ROUTER, 500), transfer(AAA, ROUTER, POOL_2, 500)];
        logs.push(transfer(WRAPPED_A, ZERO, ROUTER, 490));
        logs.push(changed(event, provider, &[0, amount, 0, 1, 2, 1, 9_000, 8_000]));
        logs.extend(swap(POOL, (WRAPPED_A, 490, ROUTER), (BBB, 7, WALLET)));
        case(logs)
    };
    added(ROUTER, 500).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    // Of another provider, or amount.
    added(OTHER, 500).gives_none(Some(NoteKind::OneSided));
    added(ROUTER, 501).gives_none(Some(NoteKind::OneSided));
    for (event, rest) in [
        ("RemoveLiquidityOne(address,uint256,uint256)", &[][..]),
        ("RemoveLiquidityOne(address,uint256,uint256,uint256)", &[8_000][..]),
    ] {
        let mut logs = swap(POOL, (BBB, 7, WALLET), (WRAPPED_A, 490, ROUTER));
        logs.extend([transfer(WRAPPED_A, ROUTER, ZERO, 490), transfer(AAA, POOL_2, ROUTER, 499)]);
        logs.push(changed(event, ROUTER, &[&[490, 499][..], rest].concat()));
        logs.push(transfer(AAA, ROUTER, WALLET, 499));
        case(logs).gives(&[('s', BBB, 7, None), ('b', AAA, 499, None)]);
    }
    // A share at the wallet itself is liquidity.
    let mut logs = swap(POOL, (BBB, 7, WALLET), (AAA, 500, ROUTER));
    let event = "AddLiquidity(address,uint256[3],uint256[3],uint256,uint256)";
    logs.extend([transfer(AAA, ROUTER, POOL_2, 500), transfer(WRAPPED_A, ZERO, ROUTER, 490)]);
    logs.push(changed(event, ROUTER, &[0, 500, 0, 1, 2, 1, 9_000, 8_000]));
    logs.push(transfer(WRAPPED_A, ROUTER, WALLET, 490));
    case(logs).gives_none(Some(NoteKind::Liquidity));
}

#[test]
fn a_token_that_was_wrapped_next_to_anothers_swap_is_not_exchanged() {
    let others = swap(POOL, (WRAPPED_A, 9, OTHER), (BBB, 7, WALLET));
    let own = wrapped(WRAPPED_A, AAA, (WALLET, WALLET), 500).to_vec();
    case([own, others].concat()).gives_none(Some(NoteKind::OneSided));
    // Another token's contract took it.
    let mut logs =
        vec![transfer(AAA, WALLET, WRAPPED_B, 500), transfer(WRAPPED_A, ZERO, ROUTER, 500)];
    logs.extend(swap(POOL, (WRAPPED_A, 500, ROUTER), (BBB, 7, WALLET)));
    case(logs).gives_none(Some(NoteKind::OneSided));
}

/// Wrapping is no trade, even after a swap in a known router's call: a share of a pool's liquidity
/// would look the same.
#[test]
fn a_share_at_the_end_of_a_known_routers_route_is_no_purchase() {
    let router = account("111111125421ca6dc452d289314280a0f8842a65");
    let mut bought = swap(POOL, (AAA, 500, WALLET), (BBB, 7, router));
    bought.extend(wrapped(WRAPPED_B, BBB, (router, WALLET), 7));
    // The deposit event of vaults (ERC-4626).
    let signature = "Deposit(address,address,uint256,uint256)";
    let sides = [word(router), word(WALLET)];
    bought.push(log(WRAPPED_B, signature, &sides, &[number(7), number(7)]));
    case(bought.clone()).to(router).gives_none(Some(NoteKind::Liquidity));
    case(bought).gives_none(Some(NoteKind::Liquidity));
}

/// `wstETH` is `stETH` in another form: an aggregator wraps it at the end of a route.
#[test]
fn a_token_that_only_wraps_what_was_exchanged_ends_a_route() {
    let wsteth = account("7f39c581f595b53c5cb19bd0b3f8da6c935e2ca0");
    let bought = |outer: Account| {
        let mut logs = vec![wrap(ROUTER, 100)];
        logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 500, ROUTER)));
        logs.extend([transfer(AAA, ROUTER, outer, 500), transfer(outer, ZERO, ROUTER, 430)]);
        logs.push(transfer(outer, ROUTER, WALLET, 430));
        case(logs).value(100).calls(&[call(ROUTER, weth(), 100)])
    };
    let sold = |outer: Account| {
        let mut logs =
            vec![transfer(outer, WALLET, ROUTER, 430), transfer(outer, ROUTER, ZERO, 430)];
        logs.push(transfer(AAA, outer, ROUTER, 500));
        logs.extend(swap(POOL, (AAA, 500, ROUTER), (weth(), 100, ROUTER)));
        logs.push(unwrap(ROUTER, 100));
        case(logs).calls(&[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100)])
    };
    bought(wsteth).gives(&[('b', wsteth, 430, Some(100))]);
    for outer in [
        "dcee70654261af21c44c093c300ed3bb97b78192",
        "b45ad160634c528cc3d2926d9807104fa3157305",
        "1202f5c7b4b9e47a1a484e8b270be34dbbc75055",
        "9ba021b0a9b958b5e75ce9f6dff97c7ee52cb3e6",
    ] {
        bought(account(outer)).gives(&[('b', account(outer), 430, Some(100))]);
    }
    sold(wsteth).gives(&[('s', wsteth, 430, Some(100))]);
    // sUSDS is a vault too, and its event says what came in or went out.
    let susds = account("a3931d71877c0e7a3148cb7eb4463524fec27fbd");
    let with = |mut base: Case, event: &str, sides: &[Word]| {
        let signature = format!("{event},uint256,uint256)");
        base.tx.logs.push(log(susds, &signature, sides, &[number(500), number(430)]));
        base
    };
    let sides = [word(ROUTER); 3];
    let deposited = with(bought(susds), "Deposit(address,address", &sides[1..]);
    deposited.gives(&[('b', susds, 430, Some(100))]);
    let redeemed = with(sold(susds), "Withdraw(address,address,address", &sides);
    redeemed.gives(&[('s', susds, 430, Some(100))]);
    // Any other contract's token is a share.
    bought(WRAPPED_A).gives_none(Some(NoteKind::Liquidity));
    sold(WRAPPED_A).gives_none(Some(NoteKind::OneSided));
    // The wallet wraps what it has, next to a swap of another token or without one.
    let own = wrapped(wsteth, AAA, (WALLET, WALLET), 500).to_vec();
    case(own.clone()).to(wsteth).gives_none(None);
    let others = swap(POOL, (AAA, 9, OTHER), (BBB, 7, OTHER));
    case([own, others].concat()).gives_none(Some(NoteKind::Liquidity));
}

/// `stETH` is minted for coin, also for `wstETH`: an aggregator stakes at the end of a route.
#[test]
fn coin_that_a_route_stakes_behind_a_market_is_exchanged() {
    let steth = account("ae7ab96520de3a18e5e111b5eaab095312d7fe84");
    let wsteth = account("7f39c581f595b53c5cb19bd0b3f8da6c935e2ca0");
    let staked = |made: &[Log]| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
        logs.push(unwrap(ROUTER, 100));
        logs.extend_from_slice(made);
        case(logs).calls(&[call(weth(), ROUTER, 100), call(ROUTER, steth, 100)])
    };
    let minted =
        |token: Account| [transfer(token, ZERO, ROUTER, 100), transfer(token, ROUTER, WALLET, 99)];
    let rows = |token, units| [('s', AAA, 500, Some(100)), ('b', token, units, Some(100))];
    staked(&minted(steth)).gives(&rows(steth, 99));
    let within = [
        transfer(steth, ZERO, wsteth, 100),
        transfer(wsteth, ZERO, ROUTER, 85),
        transfer(wsteth, ROUTER, WALLET, 85),
    ];
    staked(&within).gives(&rows(wsteth, 85));
    // The pool's event names the route, which gave it the wallet's tokens.
    let mut passed = vec![transfer(AAA, WALLET, ROUTER, 500)];
    passed.extend(swap(POOL, (AAA, 500, ROUTER), (weth(), 100, ROUTER)));
    passed.push(unwrap(ROUTER, 100));
    passed.extend(minted(steth));
    let passed = case(passed).calls(&[call(weth(), ROUTER, 100), call(ROUTER, steth, 100)]);
    passed.gives(&rows(steth, 99));
    // A token that is in no table.
    staked(&minted(CCC)).gives_none(Some(NoteKind::Liquidity));
    // The wallet itself stakes what it has sold for.
    let mut own = swap(POOL, (AAA, 500, WALLET), (weth(), 100, WALLET));
    own.extend([unwrap(WALLET, 100), transfer(steth, ZERO, WALLET, 100)]);
    let own = case(own).calls(&[call(weth(), WALLET, 100), call(WALLET, steth, 100)]);
    own.gives_none(Some(NoteKind::Liquidity));
    // Without a market, though through an aggregator.
    let oneinch = account("111111125421ca6dc452d289314280a0f8842a65");
    let alone = case(minted(steth).to_vec()).to(oneinch).value(100);
    alone.calls(&[call(oneinch, steth, 100)]).gives_none(Some(NoteKind::Liquidity));
    // The wallet wraps what it has next to a swap of another account's for coin.
    let mut own = vec![transfer(steth, WALLET, ROUTER, 500)];
    own.extend(wrapped(wsteth, steth, (ROUTER, ROUTER), 500));
    own.push(transfer(wsteth, ROUTER, WALLET, 500));
    own.extend(swap(POOL, (BBB, 9, OTHER), (weth(), 7, OTHER)));
    case(own).gives_none(Some(NoteKind::Liquidity));
}

/// The event of an aggregator names both tokens, also where it stakes, deposits or redeems one.
#[test]
fn a_deposit_that_an_aggregator_calls_an_exchange_is_no_trade() {
    let kyber = account("6131b5fae19ea4f9d964eac0408e4408b66337b5");
    let traded = |mut logs: Vec<Log>, sold: Account, bought: Account| {
        let sides = [WALLET, sold, bought, WALLET].map(word);
        let signature = "Swapped(address,address,address,address,uint256,uint256)";
        let said = [&sides[..], &[number(500), number(100)]].concat();
        logs.push(log(kyber, signature, &[], &said));
        case(logs).to(kyber)
    };
    let liquidity = Some(NoteKind::Liquidity);
    // Native coin that is staked.
    let steth = account("ae7ab96520de3a18e5e111b5eaab095312d7fe84");
    let wsteth = account("7f39c581f595b53c5cb19bd0b3f8da6c935e2ca0");
    for token in [AAA, steth, wsteth] {
        let mut minted =
            vec![transfer(token, ZERO, kyber, 430), transfer(token, kyber, WALLET, 430)];
        if token == wsteth {
            minted.insert(0, transfer(steth, ZERO, wsteth, 500));
        }
        let staked = traded(minted, [0xee; 20], token).value(500);
        staked.calls(&[call(kyber, token, 500)]).gives_none(liquidity);
    }
    // A deposit of what a pool gave.
    let mut logs = swap(POOL, (CCC, 500, WALLET), (AAA, 100, kyber));
    logs.extend(wrapped(WRAPPED_A, AAA, (kyber, kyber), 100));
    logs.push(transfer(WRAPPED_A, kyber, WALLET, 100));
    traded(logs, CCC, WRAPPED_A).gives_none(liquidity);
    // A venue that no table knows mints what it sells: nothing was laid into it.
    let mut logs = swap(POOL, (CCC, 500, WALLET), (AAA, 100, kyber));
    logs.extend([transfer(AAA, kyber, OTHER, 100), transfer(WRAPPED_B, ZERO, WALLET, 90)]);
    traded(logs, CCC, WRAPPED_B).gives(&[('s', CCC, 500, None), ('b', WRAPPED_B, 90, None)]);
    // A redemption: alone it has the price of the share.
    let mut logs = vec![transfer(WRAPPED_A, WALLET, kyber, 100)];
    logs.extend(unwrapped(WRAPPED_A, AAA, (kyber, kyber), 100));
    let alone = [logs.clone(), vec![transfer(AAA, kyber, WALLET, 100)]].concat();
    traded(alone, WRAPPED_A, AAA).gives_none(liquidity);
    logs.extend(swap(POOL, (AAA, 100, kyber), (CCC, 500, WALLET)));
    let rows = [('s', WRAPPED_A, 100, None), ('b', CCC, 500, None)];
    traded(logs, WRAPPED_A, CCC).gives(&rows);
}

/// Aave's peg module states the dollars (`AAA`), the GHO (`BBB`) with the fee, and the fee in GHO.
#[test]
fn a_peg_module_that_states_both_amounts_is_part_of_the_trade() {
    let said = |event: &str, stated: u64| {
        let signature = format!("{event}(address,address,uint256,uint256,uint256)");
        log(MODULE, &signature, &[word(ROUTER); 2], &[HELD, stated, 7].map(number))
    };
    let minted = |event: &str, who: Account| {
        vec![
            transfer(AAA, who, MODULE, HELD),
            transfer(BBB, ZERO, who, MINTED),
            said(event, MINTED + 7),
        ]
    };
    let rows = [('s', CCC, 500, None), ('b', BBB, MINTED, None)];
    case(bought(minted("SellAsset", ROUTER), MINTED)).gives(&rows);
    case(bought(minted("SoldAsset", ROUTER), MINTED)).gives_none(Some(NoteKind::Liquidity));
    // The wallet itself, without a market.
    case(minted("SellAsset", WALLET)).to(MODULE).gives_none(None);
    let mut sold = vec![
        transfer(BBB, WALLET, ROUTER, BURNT),
        transfer(BBB, ROUTER, MODULE, BURNT),
        transfer(BBB, MODULE, ZERO, BURNT - 7),
        transfer(AAA, MODULE, ROUTER, HELD),
        said("BuyAsset", BURNT),
    ];
    sold.extend(swap(POOL, (AAA, HELD, ROUTER), (CCC, 500, WALLET)));
    case(sold).gives(&[('s', BBB, BURNT, None), ('b', CCC, 500, None)]);
}

const USDS: Account = [0xd4; 20];

/// Dollars become DAI (`BBB`) at the peg module, and a join mints USDS for DAI that another burns.
#[test]
fn a_token_that_a_join_mints_behind_a_peg_module_is_exchanged() {
    let bought = |join: Account| {
        let mut logs = swap(POOL, (CCC, 500, WALLET), (AAA, HELD, ROUTER));
        logs.extend([
            transfer(AAA, ROUTER, JOIN, HELD),
            transfer(BBB, MODULE, ROUTER, MINTED),
            says("SellGem"),
            transfer(BBB, ROUTER, ZERO, MINTED),
            transfer(USDS, ZERO, ROUTER, MINTED),
            log(join, "Exit(address,address,uint256)", &[word(ROUTER); 2], &[number(MINTED)]),
            transfer(USDS, ROUTER, WALLET, MINTED),
        ]);
        case(logs)
    };
    let join = account("3c0f895007ca717aa01c8693e59df1e8c3777feb");
    bought(join).gives(&[('s', CCC, 500, None), ('b', USDS, MINTED, None)]);
    bought(OTHER).gives_none(Some(NoteKind::Liquidity));
    // By both alone, at an aggregator whose event names what came in and went out.
    let kyber = account("6131b5fae19ea4f9d964eac0408e4408b66337b5");
    let signature = "Swapped(address,address,address,address,uint256,uint256)";
    let sides = [WALLET, AAA, USDS, WALLET].map(word);
    let mut logs = vec![transfer(AAA, WALLET, ROUTER, HELD)];
    logs.extend(bought(join).tx.logs.into_iter().skip(3));
    logs.push(log(kyber, signature, &[], &[&sides[..], &[HELD, MINTED].map(number)].concat()));
    case(logs).to(kyber).gives_none(Some(NoteKind::Conversion));
}

/// The reverse at the converter of USDS, whose event states one amount of both.
#[test]
fn a_token_that_becomes_another_one_before_a_pool_is_exchanged() {
    let sold = |stated: u64| {
        let said = "UsdsToDai(address,address,uint256)";
        let mut logs = vec![
            transfer(USDS, WALLET, ROUTER, 500),
            transfer(USDS, ROUTER, OTHER, 500),
            transfer(USDS, OTHER, ZERO, 500),
            transfer(BBB, ZERO, ROUTER, 500),
            log(OTHER, said, &[word(ROUTER); 2], &[number(stated)]),
        ];
        logs.extend(swap(POOL, (BBB, 500, ROUTER), (CCC, 7, WALLET)));
        case(logs)
    };
    sold(500).gives(&[('s', USDS, 500, None), ('b', CCC, 7, None)]);
    sold(499).gives_none(Some(NoteKind::OneSided));
}

/// The zap of a farm into one of Curve's later pools, or into a pool of Balancer's.
#[test]
fn change_of_liquidity_of_any_form_is_no_trade() {
    let forms = [
        "AddLiquidity(address,uint256[],uint256[],uint256,uint256)",
        "AddLiquidity(address,uint256[2],uint256,uint256,uint256)",
        "AddLiquidity(address,uint256[3],uint256,uint256,uint256)",
        "AddLiquidity(address,uint256[2],uint256,uint256)",
        "AddLiquidity(address,uint256[3],uint256,uint256)",
        "PoolBalanceChanged(bytes32,address,address[],int256[],uint256[])",
        "LiquidityAdded(address,address,uint8,uint256,uint256[],uint256[])",
    ];
    for form in forms {
        let zapped = |added: u64| {
            let mut logs = vec![transfer(AAA, WALLET, ROUTER, 500)];
            logs.extend(swap(POOL, (AAA, 240, ROUTER), (BBB, 24, ROUTER)));
            logs.extend([transfer(AAA, ROUTER, POOL, 250), transfer(BBB, ROUTER, POOL, 23)]);
            logs.push(log(POOL, form, &[word(ROUTER)], &[2, 250, added].map(number)));
            logs.extend([transfer(AAA, ROUTER, WALLET, 10), transfer(BBB, ROUTER, WALLET, 1)]);
            case(logs)
        };
        zapped(23).gives_none(Some(NoteKind::OneSided));
        // It states another amount.
        zapped(22).gives(&[('s', AAA, 490, None), ('b', BBB, 1, None)]);
    }
}
