//! Dividends that a token's contracts pay during a trade, gas tokens that are burnt, and tokens
//! that were only sent: none is part of an exchange in the same transaction.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Log, NativeFlows};
use blotter::domain::Units;

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, ZERO, account, buy, call, case, log,
    number, sell, swap, transfer, uniswap_v2_router, unwrap, v2_swap, weth, word,
};

/// A tracker logs a dividend before it pays it.
fn dividend(tracker: [u8; 20], amount: u64) -> Log {
    log(tracker, "DividendWithdrawn(address,uint256)", &[word(WALLET)], &[number(amount)])
}

fn after(first: &[Log], mut base: Case) -> Case {
    base.tx.logs.splice(0..0, first.iter().cloned());
    base
}

#[test]
fn a_token_that_a_tracker_paid_is_no_row() {
    let paid = [dividend(CCC, 9), transfer(BBB, CCC, WALLET, 9)];
    let sold = [('s', AAA, 500, Some(100))];
    after(&paid, sell()).gives(&sold);
    after(&paid, sell().to(uniswap_v2_router())).gives(&sold);
    after(&paid, buy()).gives(&[('b', AAA, 500, Some(100))]);
    // The sale is recognized without traces too.
    let to_wallet = swap(POOL, (AAA, 500, WALLET), (weth(), 100, WALLET));
    after(&paid, case(to_wallet).unknown()).gives(&sold);
    // A payment that no such event states is a purchase through the known router.
    let more = [dividend(CCC, 8), transfer(BBB, CCC, WALLET, 9)];
    let both = after(&more, sell().to(uniswap_v2_router())).decode();
    assert_eq!(both.trades.len(), 2);
}

#[test]
fn coin_that_a_tracker_paid_is_not_in_the_value() {
    let paid = [dividend(CCC, 9)];
    let mut sold = after(&paid, sell());
    let calls = [call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100), call(CCC, WALLET, 9)];
    sold = sold.calls(&calls);
    sold.gives(&[('s', AAA, 500, Some(100))]);
    let bought = after(&paid, buy()).calls(&[call(ROUTER, weth(), 100), call(CCC, WALLET, 9)]);
    bought.gives(&[('b', AAA, 500, Some(100))]);
    // A balance change does not show whether the dividend arrived.
    let gained = |units: u64| NativeFlows::Net { gained: Units::from(units), lost: Units::ZERO };
    sold.native(gained(109)).gives(&[('s', AAA, 500, None)]);
    // The event is from another contract, or names another holder.
    let calls = &[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100), call(CCC, WALLET, 9)];
    after(&[dividend(OTHER, 9)], sell()).calls(calls).gives(&[('s', AAA, 500, Some(109))]);
}

/// Zora's reward event to a creator, from the pool of a coin or of a creator's coin.
fn creator_rewards(currency: [u8; 20], creator: [u8; 20], amount: u64) -> [Log; 2] {
    let amounts = |count| std::iter::once(number(amount)).chain(vec![number(3); count]);
    let places = [AAA, currency, creator, OTHER, OTHER, OTHER, OTHER].map(word);
    let data: Vec<_> = places.into_iter().chain(amounts(9)).collect();
    let name = "CoinMarketRewardsV4(address,address,address,address,address,address,address,\
                (uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256))";
    let market = log(CCC, name, &[], &data);
    let places = [currency, creator, OTHER].map(word);
    let data: Vec<_> = places.into_iter().chain(amounts(1)).collect();
    let name = "CreatorCoinRewards(address,address,address,address,uint256,uint256)";
    [market, log(CCC, name, &[word(AAA)], &data)]
}

#[test]
fn what_a_coin_pays_its_creator_is_no_row() {
    let sold = [('s', AAA, 500, Some(100))];
    for said in creator_rewards(BBB, WALLET, 9) {
        let paid = [transfer(BBB, CCC, WALLET, 9), said];
        after(&paid, sell().to(uniswap_v2_router())).gives(&sold);
        after(&paid, buy().to(uniswap_v2_router())).gives(&[('b', AAA, 500, Some(100))]);
        // A reward in a token is not native coin.
        let gained = NativeFlows::Net { gained: Units::from(100_u64), lost: Units::ZERO };
        after(&paid, sell()).native(gained).gives(&sold);
    }
    for said in creator_rewards(ZERO, WALLET, 9) {
        let calls = [call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100), call(CCC, WALLET, 9)];
        after(&[said], sell()).calls(&calls).gives(&sold);
    }
    // Nothing was paid.
    let gained = NativeFlows::Net { gained: Units::from(100_u64), lost: Units::ZERO };
    let [nothing, _] = creator_rewards(ZERO, WALLET, 0);
    after(&[nothing], sell()).native(gained).gives(&sold);
    // Another token than the one that the event names, or another creator's reward.
    for said in [creator_rewards(AAA, WALLET, 9), creator_rewards(BBB, OTHER, 9)].concat() {
        let paid = [transfer(BBB, CCC, WALLET, 9), said];
        let both = after(&paid, sell().to(uniswap_v2_router())).decode();
        assert_eq!(both.trades.len(), 2);
    }
}

#[test]
fn what_a_distributor_pays_within_an_exchange_leaves_its_value() {
    let income = [transfer(BBB, CCC, WALLET, 9)];
    let sold = [('s', AAA, 500, Some(100)), ('b', BBB, 9, None)];
    let bought = [('b', AAA, 500, Some(100)), ('b', BBB, 9, None)];
    let router = uniswap_v2_router();
    after(&income, sell().to(router)).gives(&sold);
    // Neither row values the other.
    assert_eq!(after(&income, sell().to(router)).decode().side_payment, Units::MAX);
    after(&income, buy().to(router)).gives(&bought);
    after(&income, buy().to(router)).unknown().gives(&bought);
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, router));
    logs.push(unwrap(router, 100));
    after(&income, case(logs).to(router)).unknown().gives(&sold);
    let to_wallet = case(swap(POOL, (AAA, 500, WALLET), (weth(), 100, WALLET))).to(router);
    after(&income, to_wallet.clone()).gives(&sold);
    after(&income, to_wallet).unknown().gives(&sold);
}

#[test]
fn what_a_taxed_token_buys_for_its_holders_leaves_the_value() {
    const DDD: [u8; 20] = [0xc4; 20];
    const POOL_3: [u8; 20] = [0x22; 20];
    // AAA's contract sells what it collected for BBB, and its distributor pays the wallet.
    let mut logs = swap(POOL, (AAA, 40, AAA), (weth(), 9, POOL_2));
    logs.extend([
        transfer(BBB, POOL_2, AAA, 90),
        v2_swap(POOL_2, [9, 0, 0, 90]),
        transfer(BBB, AAA, CCC, 90),
        transfer(AAA, WALLET, AAA, 5),
        transfer(BBB, CCC, WALLET, 2),
        transfer(AAA, WALLET, POOL, 495),
        transfer(weth(), POOL, POOL_3, 50),
        v2_swap(POOL, [495, 0, 0, 50]),
        transfer(DDD, POOL_3, WALLET, 7),
        v2_swap(POOL_3, [50, 0, 0, 7]),
    ]);
    let rows = [('s', AAA, 500, Some(50)), ('b', BBB, 2, None), ('b', DDD, 7, Some(50))];
    for sold in [case(logs.clone()), case(logs).to(uniswap_v2_router())] {
        sold.gives(&rows);
        sold.unknown().gives(&rows);
    }
}

#[test]
fn what_a_taxed_token_sells_meanwhile_is_none_of_what_the_wallet_got() {
    let router = uniswap_v2_router();
    let mut logs = swap(POOL, (AAA, 40, AAA), (weth(), 9, router));
    logs.extend([
        unwrap(router, 9),
        transfer(AAA, WALLET, AAA, 5),
        transfer(BBB, CCC, WALLET, 2),
        transfer(AAA, WALLET, POOL, 495),
        transfer(weth(), POOL, router, 50),
        v2_swap(POOL, [495, 0, 0, 50]),
        unwrap(router, 50),
    ]);
    let rows = [('s', AAA, 500, Some(50)), ('b', BBB, 2, None)];
    case(logs).to(router).unknown().gives(&rows);
}

#[test]
fn what_the_route_pays_is_part_of_its_value() {
    let router = uniswap_v2_router();
    let paid = transfer(BBB, CCC, WALLET, 9);
    let open = [('b', AAA, 500, None), ('b', BBB, 9, None)];
    // From the called router, from an account that got another token, or that got it from a pool.
    after(&[transfer(BBB, router, WALLET, 9)], buy().to(router)).gives(&open);
    after(&[transfer(AAA, OTHER, CCC, 1), paid.clone()], buy().to(router)).gives(&open);
    let passed = [transfer(BBB, POOL_2, CCC, 9), v2_swap(POOL_2, [5, 0, 0, 9]), paid.clone()];
    after(&passed, buy().to(router)).gives(&open);
    // Paid after all markets: it may be bought with their output.
    let mut behind = buy().to(router);
    behind.tx.logs.push(paid);
    behind.gives(&open);
}

#[test]
fn a_gas_token_that_is_burnt_is_no_leg() {
    let chi = account("0000000000004946c0e9f43f4dee607b0ef1fa1c");
    let gst = account("0000000000b3f879cb30fe243b4dfee438691c04");
    let burnt = |token| [transfer(token, WALLET, ZERO, 3)];
    for token in [chi, gst] {
        after(&burnt(token), sell()).gives(&[('s', AAA, 500, Some(100))]);
        after(&burnt(token), buy().to(uniswap_v2_router())).gives(&[('b', AAA, 500, Some(100))]);
    }
    let pair = || case(swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET)));
    let rows = [('s', AAA, 500, None), ('b', BBB, 7, None)];
    after(&burnt(chi), pair()).on("bsc").gives(&rows);
    // On another chain it is an ordinary token.
    after(&burnt(chi), pair()).on("polygon").gives_none(Some(NoteKind::Liquidity));
    // A gas token that is sold is a sale.
    let sold = case(swap(POOL, (chi, 500, WALLET), (weth(), 100, WALLET)));
    sold.gives(&[('s', chi, 500, Some(100))]);
}

#[test]
fn a_token_that_was_only_sent_is_not_sold() {
    // Its contract sells what it collected, and pays the wallet.
    let mut logs = swap(POOL, (AAA, 20, AAA), (weth(), 7, ROUTER));
    logs.extend([unwrap(ROUTER, 7), transfer(AAA, WALLET, OTHER, 500)]);
    let calls = [call(weth(), ROUTER, 7), call(ROUTER, AAA, 7), call(AAA, WALLET, 7)];
    let mut sent = case(logs).to(AAA).calls(&calls);
    sent.tx.selector = Some([0xa9, 0x05, 0x9c, 0xbb]);
    sent.gives_none(Some(NoteKind::OneSided));
    sent.unknown().gives_none(Some(NoteKind::OneSided));
    // To a contract that pays coin in return, or to the token's own pool.
    for (receiver, payer) in [(OTHER, OTHER), (POOL, ROUTER)] {
        let logs = vec![transfer(AAA, WALLET, receiver, 500), v2_swap(receiver, [500, 0, 0, 7])];
        let mut sold = case(logs).to(AAA).calls(&[call(payer, WALLET, 7)]);
        sold.tx.selector = Some([0xa9, 0x05, 0x9c, 0xbb]);
        sold.gives(&[('s', AAA, 500, Some(7))]);
    }
}

#[test]
fn a_reward_that_is_minted_next_to_a_whole_exchange_is_no_share() {
    let reward = [transfer(CCC, ZERO, WALLET, 9)];
    let (sold, bought) = ([('s', AAA, 500, Some(100))], [('b', AAA, 500, Some(100))]);
    after(&reward, sell()).gives(&sold);
    after(&reward, sell()).unknown().gives(&[('s', AAA, 500, None)]);
    let router = uniswap_v2_router();
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, router));
    logs.push(unwrap(router, 100));
    after(&reward, case(logs).to(router)).unknown().gives(&sold);
    after(&reward, buy()).gives(&bought);
    after(&reward, buy()).unknown().gives(&bought);
    let between = case(swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET)));
    after(&reward, between).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
}

#[test]
fn a_tax_leaves_an_exchange_whole() {
    let reward = [transfer(CCC, ZERO, WALLET, 9)];
    let sold = vec![
        transfer(AAA, WALLET, AAA, 5),
        transfer(AAA, WALLET, POOL, 495),
        transfer(weth(), POOL, WALLET, 100),
        v2_swap(POOL, [495, 0, 0, 100]),
    ];
    after(&reward, case(sold)).gives(&[('s', AAA, 500, Some(100))]);
    let bought = vec![
        transfer(weth(), WALLET, POOL, 100),
        transfer(AAA, POOL, AAA, 5),
        transfer(AAA, POOL, WALLET, 495),
        v2_swap(POOL, [100, 0, 0, 500]),
    ];
    after(&reward, case(bought)).gives(&[('b', AAA, 495, Some(100))]);
}

#[test]
fn what_is_minted_for_a_part_of_what_was_exchanged_is_a_share() {
    let share = [transfer(CCC, ZERO, WALLET, 9)];
    // Half of what was given went into the pool, or most of the output did.
    let mut half = sell();
    half.tx.logs.push(transfer(AAA, WALLET, OTHER, 500));
    after(&share, half).gives_none(Some(NoteKind::Liquidity));
    let calls = [call(weth(), ROUTER, 100), call(ROUTER, OTHER, 90), call(ROUTER, WALLET, 10)];
    after(&share, sell().calls(&calls)).gives_none(Some(NoteKind::Liquidity));
    // A token that the pool itself is.
    let own = [transfer(POOL, ZERO, WALLET, 9)];
    after(&own, sell()).gives_none(Some(NoteKind::Liquidity));
    // A deposit of what was not exchanged.
    let mut deposit = sell();
    deposit.tx.logs.push(transfer(BBB, WALLET, CCC, 9));
    after(&share, deposit).gives(&[('s', AAA, 500, Some(100))]);
}

#[test]
fn a_token_that_moved_next_to_a_whole_exchange_takes_no_row_away() {
    let reward = [transfer(CCC, POOL, WALLET, 9)];
    after(&[transfer(CCC, OTHER, WALLET, 9)], sell()).gives(&[('s', AAA, 500, Some(100))]);
    let fee = [transfer(CCC, WALLET, OTHER, 9)];
    after(&fee, buy()).gives(&[('b', AAA, 500, Some(100))]);
    // A pool's second token, or more coin than the pool states: the purpose is unknown.
    after(&reward, sell()).gives(&[('s', AAA, 500, None), ('b', CCC, 9, None)]);
    after(&fee, buy().value(130)).gives_none(Some(NoteKind::OneSided));
}
