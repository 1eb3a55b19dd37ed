//! The EVM decoder on rows of the venue tables: events that name only the pool's side, that several
//! contracts share, or that have no topic.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, CoinTo, Log, NativeFlows, Word};
use blotter::domain::Units;

use crate::evm_decode::{
    AAA, BBB, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, ZERO, account, call, case, log, number,
    swap, transfer, unwrap, v2_swap, weth, word, wrap,
};

/// What Ekubo's core logs of a swap: the locker, the pool, both amounts and the pool's state.
fn ekubo_swap(emitter: Account, data_bytes: usize) -> Log {
    Log { address: emitter, topics: Vec::new().into(), data: vec![0xee; data_bytes] }
}

/// 100 of native coin by a router to a holder of pools, and 500 AAA from it.
fn bought_of(holder: Account, said: Log) -> Case {
    let base = case(vec![transfer(AAA, holder, WALLET, 500), said]).value(100);
    base.calls(&[call(ROUTER, holder, 100)])
}

#[test]
fn a_swap_that_its_core_logs_without_a_topic_is_a_trade() {
    let core = account("e0e0e08a6a4b9dc7bd67bcb7aade5cf48157d444");
    let bought = bought_of(core, ekubo_swap(core, 116));
    bought.gives(&[('b', AAA, 500, Some(100))]);
    bought.venues(&["Ekubo"]);
    bought_of(core, ekubo_swap(core, 115)).gives_none(None);
    bought_of(POOL, ekubo_swap(POOL, 116)).gives_none(None);
}

#[test]
fn an_event_that_others_may_log_counts_at_its_venue_alone() {
    let curve = account("9f3832732923252a21044f21ee6bd87f09514ae4");
    let zap = account("693f12e9e6b35b34458793546065e8b08e0299d6");
    let topics = [word(AAA), word(WALLET)];
    let bought = |by: Account| {
        let amounts = [number(100), number(500)];
        let said = log(by, "Buy(address,address,uint256,uint256)", &topics, &amounts);
        bought_of(by, said)
    };
    for (by, chain, name) in [(curve, "monad", "nad.fun"), (zap, "hyperevm", "alt.fun")] {
        let bought = bought(by).on(chain);
        bought.gives(&[('b', AAA, 500, Some(100))]);
        bought.venues(&[name]);
    }
    bought(POOL).on("monad").gives_none(None);
    bought(zap).on("monad").gives_none(None);
}

/// One event states purchases and sales. The purchase that fills the curve gets the rest back.
#[test]
fn a_curve_at_hood_fun_sells_and_buys() {
    let curve = account("8c529f0a77c07ce0e6796f153d292501ee6f66f6");
    let signature = "Trade(address,address,bool,uint256,uint256,uint256,uint256,uint256)";
    let said = |is_buy: u64, coin: u64| {
        let data = [is_buy, coin, 500, 1, 0, 0].map(number);
        log(curve, signature, &[word(AAA), word(WALLET)], &data)
    };
    let traded = |logs| case(logs).on("robinhood").to(curve);
    let bought = traded(vec![said(1, 100), transfer(AAA, curve, WALLET, 500)]);
    let bought = bought.value(120).calls(&[call(curve, WALLET, 20)]);
    bought.gives(&[('b', AAA, 500, Some(100))]);
    bought.venues(&["hood.fun"]);
    let sold = traded(vec![said(0, 99), transfer(AAA, WALLET, curve, 500)]);
    let sold = sold.calls(&[call(curve, WALLET, 99)]);
    sold.gives(&[('s', AAA, 500, Some(99))]);
    sold.venues(&["hood.fun"]);
}

/// Stable pools of `PancakeSwap` log an event of Curve's that Curve's own pools on that chain do not.
#[test]
fn a_pool_is_named_after_the_protocol_that_logs_its_event_on_its_chain() {
    let signature = "TokenExchange(address,uint256,uint256,uint256,uint256)";
    let said = log(POOL, signature, &[word(WALLET)], &[0, 500, 1, 7].map(number));
    let sides = [transfer(AAA, WALLET, POOL, 500), transfer(BBB, POOL, WALLET, 7)];
    let traded = case([&sides[..], &[said]].concat());
    traded.venues(&["Curve", "Curve"]);
    traded.on("bsc").venues(&["PancakeSwap StableSwap"; 2]);
}

/// A maker or a solver, perhaps unnamed, fills what the wallet signed; another account sent it.
#[test]
fn orders_that_others_fill_are_trades_of_their_signers() {
    let (by, id, zero) = (word(WALLET), [9; 32], number(0));
    let sides = [word(AAA), word(BBB), number(500), number(7)];
    let events: [(&str, &str, Vec<Word>, Vec<Word>); 4] = [
        (
            "Bebop",
            "BebopJamOrderFilled(uint256,address,address[],address[],uint256[],uint256[])",
            vec![id, by],
            vec![zero; 4],
        ),
        (
            "Bebop",
            "BebopBlendSingleOrderFilled(uint128,address,address,address,uint256,uint256)",
            vec![id, by],
            sides.to_vec(),
        ),
        (
            "ParaSwap Delta",
            "OrderSettled(address,address,address,address,uint256,uint256,uint256,uint256,uint256,bytes32)",
            vec![by, by, id],
            [sides.as_slice(), &[zero; 3]].concat(),
        ),
        (
            "Pendle",
            "OrderFilledV2(bytes32,uint8,address,address,uint256,uint256,uint256,uint256,address,address)",
            vec![id, number(1), word(OTHER)],
            [&[word(AAA), number(500), number(7), zero, zero], [by, word(OTHER)].as_slice()]
                .concat(),
        ),
    ];
    for (name, signature, topics, data) in events {
        let filled = case(vec![
            transfer(AAA, WALLET, OTHER, 500),
            transfer(BBB, POOL_2, WALLET, 7),
            log(ROUTER, signature, &topics, &data),
        ]);
        let filled = filled.from(OTHER);
        filled.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        filled.venues(&[name, name]);
    }
}

/// Events of fills that name no account, or not who signed: another sent it, no pool took part.
#[test]
fn orders_whose_events_name_no_account_are_trades_of_who_gave_and_got() {
    const RECEIPT: &str = "(address,address,uint256,uint256,uint256,uint256,uint256)";
    const SIDES: &str = "(address,address,address)";
    const AMOUNTS: &str = "address,uint256,uint256,uint256,uint256,uint256,uint256,uint256";
    let jam = account("bebebeb035351f58602e0c1c8b59ecbff5d5f47b");
    let filled = |by: Account, signature: &str| {
        let logs = vec![
            transfer(AAA, WALLET, OTHER, 500),
            transfer(BBB, POOL_2, WALLET, 7),
            log(by, signature, &[[9; 32]], &[]),
        ];
        case(logs).from(OTHER)
    };
    let events = [
        ("Odos", "LimitOrderFilled(bytes32,address,address,address,uint256,uint256,uint256,uint64,uint64,address,uint256)".to_owned()),
        ("Odos", "MultiLimitOrderFilled(bytes32,address,address[],address[],uint256[],uint256[],uint256[],uint64,uint64,address,uint256)".to_owned()),
        ("Bebop", "AggregateOrderExecuted(bytes32)".to_owned()),
        ("KyberSwap", "OrderFilled(address,bytes32,uint256,uint256,uint256)".to_owned()),
        ("KyberSwap", "OrderFilledRFQ(address,bytes32,uint256,uint256)".to_owned()),
        ("DODO", "LimitOrderFilled(address,address,bytes32,uint256,uint256)".to_owned()),
        ("Tokenlon", format!("LimitOrderFilledByTrader(bytes32,address,address,bytes32,address,{RECEIPT})")),
        ("Tokenlon", format!("LimitOrderFilledByProtocol(bytes32,address,address,bytes32,address,address,{RECEIPT},uint256,uint256)")),
        ("Tokenlon", "LimitOrderFilled(bytes32,address,address,address,uint256,address,uint256,uint256,address)".to_owned()),
        ("Loopring", "RingMined(uint256,bytes32,address,address,bool,bytes32[],uint256[6][])".to_owned()),
        ("Loopring", "RingMined(uint256,bytes32,address,bytes32[])".to_owned()),
        ("DDEX", format!("Match({SIDES},(address,address,{AMOUNTS}))")),
        ("DDEX", format!("Match(address,address,address,address,{AMOUNTS})")),
        ("OwlOrder", "OrderExecuted(bytes32,address,address,address,address,uint256,uint256,uint256,uint8)".to_owned()),
        ("Epsilon", "OrderFilled(bytes32,address,address,uint256,uint256,uint256)".to_owned()),
        ("Mangrove", "OfferSuccess(bytes32,address,uint256,uint256,uint256)".to_owned()),
        ("Mangrove", "OfferSuccessWithPosthookData(bytes32,address,uint256,uint256,uint256,bytes32)".to_owned()),
        ("Aktionariat", "Trade(address,address,address,uint256,address,uint256,uint256)".to_owned()),
        ("Aktionariat", "Trade(address,address,bytes32,bytes32,address,uint256,address,uint256,uint256)".to_owned()),
    ];
    let rows = [('s', AAA, 500, None), ('b', BBB, 7, None)];
    for (name, signature) in &events {
        let one = filled(ROUTER, signature);
        one.gives(&rows);
        one.venues(&[name, name]);
    }
    let settled = filled(jam, "Settlement(uint256)");
    settled.gives(&rows);
    settled.venues(&["Bebop", "Bebop"]);
    filled(ROUTER, "Settlement(uint256)").gives_none(None);
}

/// Balancer's third vault and GMX's share an event, and GMX's is in many forks.
#[test]
fn an_event_that_two_protocols_share_has_the_name_of_its_emitters() {
    let signature = "Swap(address,address,address,uint256,uint256,uint256,uint256)";
    let amounts = [500, 7, 7, 30].map(number);
    let sides = [word(WALLET), word(AAA), word(BBB)];
    let swapped = |by: Account| {
        let (gave, got) = (transfer(AAA, WALLET, by, 500), transfer(BBB, by, WALLET, 7));
        case(vec![gave, got, log(by, signature, &[], &[&sides[..], &amounts].concat())])
    };
    let balancer = account("ba1333333333a1ba1108e8412f11850a5c319ba9");
    for (by, chain, name) in [(balancer, "base", "Balancer V3"), (POOL, "base", "GMX")] {
        let swapped = swapped(by).on(chain);
        swapped.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        swapped.venues(&[name, name]);
    }
}

/// Pools of Infinity's code lie at a vault that their event does not name: a fork has its own.
#[test]
fn a_forks_pools_are_at_a_vault_of_its_own() {
    let signature = "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24,uint16)";
    let orvex = account("d01c774d4a66408326bc65728ac5ae5aaf004032");
    let taken = Units::from(500_u64).wrapping_neg().to_be_bytes();
    let rest = [1, 1, 1, 1, 0].map(number);
    for (manager, name) in [(POOL, "PancakeSwap Infinity"), (orvex, "Orvex")] {
        let data = [[taken, number(7)].as_slice(), &rest].concat();
        let said = log(manager, signature, &[[9; 32], word(ROUTER)], &data);
        let (gave, got) = (transfer(AAA, WALLET, OTHER, 500), transfer(BBB, OTHER, WALLET, 7));
        let swapped = case(vec![gave, got, said]).on("robinhood");
        swapped.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        swapped.venues(&[name, name]);
    }
}

/// Origin's ARM logs transfers alone: who calls it to swap has traded, who lays in gets a share.
#[test]
fn a_call_of_an_exchange_without_events_is_a_trade() {
    let arm = account("ceda2d856238aa0d12f6329de20b9115f07c366d");
    let swapped = vec![transfer(AAA, WALLET, arm, 500), transfer(BBB, arm, WALLET, 7)];
    let swapped = case(swapped).to(arm);
    swapped.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    swapped.venues(&["Origin ARM", "Origin ARM"]);
    let laid = vec![transfer(AAA, WALLET, arm, 500), transfer(arm, ZERO, WALLET, 490)];
    case(laid).to(arm).gives_none(Some(NoteKind::Liquidity));
}

/// A route through unknown pools is recognized by its aggregator's event.
#[test]
fn an_aggregators_event_names_what_was_exchanged() {
    let (by, zero) = (word(WALLET), number(0));
    let events: [(&str, &str, Vec<Word>, Vec<Word>); 5] = [
        (
            "Odos",
            "Swap(address,uint256,address,uint256,address,int256,uint64,uint64,address)",
            vec![],
            vec![by, number(500), word(AAA), number(7), word(BBB), zero, zero, zero, zero],
        ),
        (
            "SushiSwap",
            "Route(address,address,address,address,uint256,uint256,int256,uint32,bytes32)",
            vec![by, word(AAA), zero],
            vec![by, word(BBB), number(500), number(7), zero, zero],
        ),
        (
            "Kuru",
            "KuruRouterSwap(address,address,address,uint256,uint256)",
            vec![],
            vec![by, word(AAA), word(BBB), number(500), number(7)],
        ),
        (
            "LiquidSwap",
            "SwapExecuted(address,address,uint256,address,uint256,uint256)",
            vec![by],
            vec![word(AAA), number(500), word(BBB), number(7), number(1)],
        ),
        (
            "Carbon",
            "TokensTraded(address,address,address,uint256,uint256,uint128,bool)",
            vec![by, word(AAA), word(BBB)],
            vec![number(500), number(7), zero, zero],
        ),
    ];
    for (name, signature, topics, data) in events {
        let said = log(ROUTER, signature, &topics, &data);
        let moves = vec![transfer(AAA, WALLET, POOL, 500), transfer(BBB, POOL_2, WALLET, 7), said];
        let swapped = case(moves).to(OTHER);
        swapped.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        swapped.venues(&[name, name]);
    }
}

/// A synth is burnt and another one minted, less a fee; the event stands at a contract that holds none.
#[test]
fn synths_are_exchanged_by_burning_and_minting() {
    let exchanged = log(
        POOL,
        "SynthExchange(address,bytes32,uint256,bytes32,uint256,address)",
        &[word(WALLET)],
        &[[0x61; 32], number(500), [0x62; 32], number(7), word(WALLET)],
    );
    let fee = transfer(BBB, ZERO, account("feefeefeefeefeefeefeefeefeefeefeefeefeef"), 1);
    let logs =
        vec![transfer(AAA, WALLET, ZERO, 500), transfer(BBB, ZERO, WALLET, 7), exchanged, fee];
    let swapped = case(logs).to(POOL);
    swapped.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    swapped.venues(&["Synthetix", "Synthetix"]);
}

#[test]
fn swarms_curve_mints_and_burns_what_it_sells() {
    let said = |name: &str| {
        let signature = format!("{name}(address,uint256,uint256,uint256)");
        log(POOL, &signature, &[word(WALLET)], &[number(40), number(500), number(900)])
    };
    let (given, minted) = (transfer(AAA, WALLET, POOL, 500), transfer(BBB, ZERO, WALLET, 40));
    let bought = case(vec![given, minted, said("mintTokens")]).to(POOL);
    bought.gives(&[('s', AAA, 500, None), ('b', BBB, 40, None)]);
    bought.venues(&["Swarm", "Swarm"]);
    let (burnt, paid) = (transfer(BBB, WALLET, ZERO, 40), transfer(AAA, POOL, WALLET, 500));
    let sold = case(vec![burnt, paid, said("burnTokens")]).to(POOL);
    sold.gives(&[('s', BBB, 40, None), ('b', AAA, 500, None)]);
}

/// Pools of the first Uniswap hold loose coin: a route from one to the next passes it on by a call.
#[test]
fn loose_coin_between_two_pools_values_both_tokens() {
    let logs = vec![
        transfer(AAA, WALLET, POOL, 500),
        log(
            POOL,
            "EthPurchase(address,uint256,uint256)",
            &[word(WALLET), number(500), number(90)],
            &[],
        ),
        transfer(BBB, POOL_2, WALLET, 7),
        log(
            POOL_2,
            "TokenPurchase(address,uint256,uint256)",
            &[word(POOL), number(90), number(7)],
            &[],
        ),
    ];
    let traced = case(logs.clone()).to(POOL).calls(&[call(POOL, POOL_2, 90)]);
    traced.gives(&[('s', AAA, 500, Some(90)), ('b', BBB, 7, Some(90))]);
    case(logs).to(POOL).unknown().gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
}

/// The Universal Router keeps no coin: the call's input states the receivers.
#[test]
fn coin_that_a_routers_commands_give_to_others_came_not_back() {
    let router = account("3fc91a3afd70395cd496c647d5a6cc9d4b2b7fad");
    let with = |mut case: Case, coin: CoinTo| {
        case.tx.terms.coin = coin;
        case.to(router).native(NativeFlows::Unknown)
    };
    let mut bought = vec![wrap(router, 99)];
    bought.extend(swap(POOL, (weth(), 99, router), (AAA, 500, WALLET)));
    let bought = case(bought).value(100);
    for (coin, spent) in
        [(CoinTo::Unstated, Some(99)), (CoinTo::Others, Some(100)), (CoinTo::Shared, None)]
    {
        with(bought.clone(), coin).gives(&[('b', AAA, 500, spent)]);
    }
    let sold = case(vec![
        transfer(AAA, WALLET, POOL, 500),
        transfer(weth(), POOL, router, 100),
        v2_swap(POOL, [500, 0, 0, 100]),
        unwrap(router, 100),
    ]);
    with(sold.clone(), CoinTo::Unstated).gives(&[('s', AAA, 500, Some(100))]);
    with(sold.clone(), CoinTo::Shared).gives(&[('s', AAA, 500, None)]);
    assert_eq!(with(sold, CoinTo::Others).decode().trades, []);
}

/// The books of one exchange hold no tokens: one account does it for all of them.
#[test]
fn a_book_whose_tokens_another_contract_holds_is_a_pool() {
    let margin = account("2a68ba1833cdf93fa9da1eebd7f46242ad8e90c5");
    let (by, zero) = (word(WALLET), number(0));
    let said = [number(3), word(OTHER), number(1), number(5), zero, by, by, number(7)];
    let signature = "Trade(uint40,address,bool,uint256,uint96,address,address,uint96)";
    let taken = case(vec![
        transfer(AAA, WALLET, margin, 500),
        transfer(BBB, margin, WALLET, 7),
        log(POOL, signature, &[], &said),
    ]);
    let taken = taken.on("monad");
    taken.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    taken.venues(&["Kuru", "Kuru"]);
}

/// Pools and aggregators whose event or whose own movements name both sides.
#[test]
fn newer_events_of_pools_and_aggregators_are_known() {
    let (by, zero, id) = (word(WALLET), number(0), [9; 32]);
    let (a, b) = (number(500), number(7));
    let v2_like = "Swap(address,uint256,uint256,uint256,uint256,address,uint256)";
    let bins = "Swap(address,address,uint24,bytes32,bytes32,uint24,bytes32,bytes32,\
                (uint256,uint256,uint256))";
    let weights =
        "LOG_SWAP(address,address,address,uint256,uint256,uint256,uint256,uint256,uint256)";
    let coins = "TokenExchange(address,uint256,uint256,uint256,uint256,uint256)";
    let broker = "Swap(address,bytes32,address,address,address,uint256,uint256)";
    let yak = "YakSwap(address,address,uint256,uint256)";
    let (aaa, bbb) = (word(AAA), word(BBB));
    let events = [
        ("KyberSwap Classic", "eth", v2_like, vec![by, by], vec![a, zero, zero, b, number(3)]),
        ("Bean Exchange", "monad", bins, vec![by, by], vec![zero; 9]),
        ("Swaap", "polygon", weights, vec![by, aaa, bbb], vec![a, b, zero, zero, zero, zero]),
        ("Kokonut Swap", "base", coins, vec![by], vec![zero, a, number(1), b, zero]),
        ("Mento", "celo", broker, vec![id, by, aaa], vec![word(OTHER), bbb, a, b]),
        ("Yield Yak", "avalanche", yak, vec![aaa, bbb], vec![a, b]),
    ];
    for (name, chain, signature, topics, data) in events {
        let logs = vec![
            transfer(AAA, WALLET, POOL, 500),
            transfer(BBB, POOL, WALLET, 7),
            log(POOL, signature, &topics, &data),
        ];
        let traded = case(logs).on(chain);
        traded.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        traded.venues(&[name, name]);
    }
    // The signer sent nothing, and is the only one whom the fifth version names.
    let swapped = log(ROUTER, "SwapERC20(uint256,address)", &[id, word(OTHER)], &[]);
    let logs = vec![transfer(AAA, WALLET, OTHER, 500), transfer(BBB, OTHER, WALLET, 7), swapped];
    let filled = case(logs);
    filled.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    filled.clone().of(OTHER).gives(&[('s', BBB, 7, None), ('b', AAA, 500, None)]);
    filled.venues(&["AirSwap", "AirSwap"]);
}

/// Curves mint what they sell and burn what they buy.
#[test]
fn newer_curves_are_known() {
    let (by, zero) = (word(WALLET), number(0));
    let bond = account("c5a076cad94176c2996b32d8466be1ce757faa27");
    let mint_club = |event: &str, by: Account, amounts: [u64; 2]| {
        let signature = format!("{event}(address,address,address,uint256,address,uint256)");
        let [token, reserve] = amounts.map(number);
        let topics = [word(AAA), word(WALLET), word(BBB)];
        log(by, &signature, &topics, &[word(WALLET), token, reserve])
    };
    let minted = |by: Account| {
        let paid = [transfer(BBB, WALLET, by, 7), transfer(AAA, ZERO, WALLET, 500)];
        case([paid.as_slice(), &[mint_club("Mint", by, [500, 7])]].concat()).on("base").to(ROUTER)
    };
    minted(bond).gives(&[('s', BBB, 7, None), ('b', AAA, 500, None)]);
    minted(POOL).gives_none(None);
    let burnt = vec![
        transfer(AAA, WALLET, ZERO, 500),
        transfer(BBB, bond, WALLET, 6),
        mint_club("Burn", bond, [500, 6]),
    ];
    let burnt = case(burnt).on("base").to(ROUTER);
    burnt.gives(&[('s', AAA, 500, None), ('b', BBB, 6, None)]);
    burnt.venues(&["Mint Club", "Mint Club"]);
    // Arena names a number in place of the token.
    let arena = account("8315f1eb449dd4b779495c3a0b05e5d194446c6e");
    let signature = "Buy(address,uint256,uint256,uint256,uint256,address,uint256,uint256,uint256)";
    let data = [by, number(645), number(500), number(100), number(900), zero, zero, zero, zero];
    let logs = vec![transfer(AAA, ZERO, WALLET, 500), log(arena, signature, &[], &data)];
    let bought = case(logs).on("avalanche").to(arena).value(100);
    bought.gives(&[('b', AAA, 500, Some(100))]);
    bought.venues(&["Arena"]);
    let bonding = account("b68811bcc0e4fcd825aa49f9453b065ddf752fcb");
    let signature = "Trade(address,address,bool,uint256,uint256,uint256,uint256)";
    let topics = [word(AAA), word(OTHER), number(1)];
    let data = [number(90), number(500), zero, zero];
    let curve = |by: Account| {
        let said = log(by, signature, &topics, &data);
        case(vec![transfer(BBB, WALLET, POOL, 90), transfer(AAA, POOL, WALLET, 500), said])
    };
    // The same event from an unknown contract is not a venue: only the shape shows a trade.
    let unknown = "0x1010101010101010101010101010101010101010";
    curve(POOL_2).on("hyperevm").venues(&[unknown, unknown]);
    let bought = curve(bonding).on("hyperevm").to(bonding);
    bought.gives(&[('s', BBB, 90, None), ('b', AAA, 500, None)]);
    bought.venues(&["alt.fun", "alt.fun"]);
}

/// A position at Infinity takes a part of what was swapped for it, and the rest comes back.
#[test]
fn change_of_a_position_at_infinity_is_no_trade() {
    let positions = account("55f4c8aba71a1e923edc303eb4feff14608cc226");
    let signature = "ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32,int256)";
    let zapped = |by: Account, grown: Word| {
        let mut logs = swap(POOL, (AAA, 250, WALLET), (BBB, 25, ROUTER));
        logs.extend([transfer(AAA, WALLET, OTHER, 250), transfer(BBB, ROUTER, OTHER, 10)]);
        let words = [number(1), number(2), grown, [0; 32], [0; 32]];
        logs.push(log(POOL_2, signature, &[[9; 32], word(by)], &words));
        logs.push(transfer(BBB, ROUTER, WALLET, 15));
        case(logs).on("bsc")
    };
    zapped(positions, number(9)).gives_none(Some(NoteKind::Liquidity));
    // Liquidity of a hook, and of a position that shrinks.
    let rows = [('s', AAA, 500, None), ('b', BBB, 15, None)];
    zapped(OTHER, number(9)).gives(&rows);
    zapped(positions, [0xff; 32]).gives(&rows);
}
