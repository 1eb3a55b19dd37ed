//! The EVM decoder on old and unknown venues, on movements that only accompany an exchange, and on
//! native coin that no trace shows: one rule per test.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, CoinTo, Log, Terms, Word};
use blotter::domain::Units;

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, ZERO, account, buy, call, case,
    entry_point, log, number, operation, sell, swap, transfer, uniswap_v2_router, unwrap, v2_swap,
    weth, word, wrap,
};

const TRADED: &str = "Traded(address,uint256,uint256)";
const ROUTER_NAME: &str = "0x1010101010101010101010101010101010101010";

fn metamask() -> Account {
    account("881d40237659c251811cec9c364ef91dc08d300c")
}

fn one_inch_v5() -> Account {
    account("1111111254eeb25477b68fb85ed929f73a960582")
}

fn oasis() -> Account {
    account("14fbca95be7e99c15cc2996c6c9d841e54b79425")
}

/// 500 AAA to a counterparty and 7 BBB from it, with an event.
fn dealt(said: Log) -> Case {
    case(vec![transfer(AAA, WALLET, POOL, 500), transfer(BBB, POOL, WALLET, 7), said])
}

fn said(words: &[Word]) -> Log {
    log(ROUTER, TRADED, &[], words)
}

fn amounts() -> Log {
    said(&[word(WALLET), number(500), number(7)])
}

fn with(mut base: Case, more: &[Log]) -> Case {
    base.tx.logs.extend_from_slice(more);
    base
}

/// A venue, the signature of its event, and what follows the first topic.
type Said<'a> = (&'a str, &'a str, Vec<Word>, Vec<Word>);

fn each_is_known(events: &[Said<'_>]) {
    for (name, signature, topics, data) in events {
        let traded = dealt(log(POOL, signature, topics, data));
        traded.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        traded.venues(&[name, name]);
    }
}

#[test]
fn venues_of_the_first_years_are_known() {
    let (taker, maker, hash) = (word(WALLET), word(POOL), [9; 32]);
    let pair = [word(AAA), word(BBB)];
    let events: [Said<'_>; 6] = [
        (
            "Tokenlon",
            "FillOrder(string,bytes32,bytes32,address,address,uint256,address,address,uint256,address,uint256,uint16)",
            vec![hash, hash, taker],
            vec![
                number(288),
                pair[0],
                number(500),
                maker,
                pair[1],
                number(8),
                taker,
                number(7),
                number(30),
            ],
        ),
        (
            "0x",
            "Fill(address,address,address,address,uint256,uint256,uint256,uint256,bytes32,bytes,bytes)",
            vec![maker, taker, hash],
            vec![taker, taker, number(7), number(500)],
        ),
        (
            "Bancor",
            "Conversion(address,address,address,uint256,uint256,int256)",
            vec![pair[0], pair[1], taker],
            vec![number(500), number(7), number(0)],
        ),
        (
            "Shell",
            "Trade(address,address,address,uint256,uint256)",
            vec![taker, pair[0], pair[1]],
            vec![number(500), number(7)],
        ),
        (
            "Hashflow",
            "Trade(address,address,bytes32,address,address,uint256,uint256,uint256)",
            vec![],
            vec![maker, taker, hash, pair[0], pair[1], number(500), number(7), number(0)],
        ),
        (
            "OasisDEX",
            "LogTrade(uint256,address,uint256,address)",
            vec![pair[0], pair[1]],
            vec![number(500), number(7)],
        ),
    ];
    each_is_known(&events);
}

/// Venues of the first years: order books, quotes and curves with their own events.
#[test]
fn venues_with_events_of_their_own_are_known() {
    let (taker, maker, hash) = (word(WALLET), word(POOL), [9; 32]);
    let (gave, got) = (word(AAA), word(BBB));
    let amounts = [number(500), number(7)];
    let events: [Said<'_>; 8] = [
        (
            "Tokenlon",
            "FilledRFQ(bytes32,address,address,address,uint256,address,uint256,address,uint256,uint256)",
            vec![hash, taker, maker],
            vec![gave, amounts[0], got, amounts[1], taker, amounts[1], number(0)],
        ),
        (
            "Tokenlon",
            "Swapped(string,bytes32,address,bool,address,uint256,address,address,uint256,address,uint256,uint16)",
            vec![hash, taker],
            vec![
                number(320),
                number(1),
                gave,
                amounts[0],
                maker,
                got,
                amounts[1],
                taker,
                amounts[1],
                number(0),
            ],
        ),
        (
            "0x",
            "LogFill(address,address,address,address,address,uint256,uint256,uint256,uint256,bytes32,bytes32)",
            vec![maker, maker, hash],
            vec![taker, got, gave, amounts[1], amounts[0], number(0), number(0), hash],
        ),
        (
            "Bancor",
            "Conversion(address,address,address,uint256,uint256,int256,uint256,uint256)",
            vec![gave, got, taker],
            vec![amounts[0], amounts[1], number(0), number(1), number(1)],
        ),
        (
            "FEGex",
            "LOG_SMARTSWAP(address,address,address,uint256,uint256)",
            vec![taker, gave, got],
            vec![amounts[0], amounts[1]],
        ),
        (
            "ParaSwap",
            "OrderFilled(bytes32,address,address,uint256,address,address,uint256)",
            vec![hash, maker, got],
            vec![amounts[1], taker, gave, amounts[0]],
        ),
        (
            "AirSwap",
            "Filled(address,uint256,address,address,uint256,address,uint256,uint256)",
            vec![maker, taker],
            vec![amounts[1], got, amounts[0], gave, number(1), number(0)],
        ),
        (
            "PancakeSwap MM",
            "Swap(uint256,address,address,address,address,address,uint256,uint256)",
            vec![taker, maker],
            vec![number(3), maker, gave, got, amounts[0], amounts[1]],
        ),
    ];
    each_is_known(&events);
}

#[test]
fn quotes_and_pools_that_recorded_transactions_named_are_known() {
    let (taker, maker, hash) = (word(WALLET), word(POOL), [9; 32]);
    let (gave, got) = (word(AAA), word(BBB));
    let amounts = [number(500), number(7)];
    let events: [Said<'_>; 3] = [
        (
            "KyberSwap",
            "OrderFilledRFQ(bytes32,address,address,address,address,uint256,uint256)",
            vec![maker, taker],
            vec![hash, got, gave, amounts[1], amounts[0]],
        ),
        (
            "Native",
            "Swap(address,address,address,address,int256,int256,uint256,bytes16)",
            vec![taker, taker],
            vec![gave, got, amounts[0], amounts[1], number(0), hash],
        ),
        (
            "Ambient",
            "CrocSwap(address,address,uint256,bool,bool,uint128,uint16,uint128,uint128,uint8,int128,int128)",
            vec![gave, got],
            [420, 1, 1, 500, 0, 0, 0, 0].map(number).into_iter().chain(amounts).collect(),
        ),
    ];
    each_is_known(&events);
}

#[test]
fn venues_with_few_trades_are_known() {
    let (taker, maker, hash) = (word(WALLET), word(POOL), [9; 32]);
    let (gave, got) = (word(AAA), word(BBB));
    let amounts = [number(500), number(7)];
    let paid = vec![taker, gave, amounts[0], got, amounts[1]];
    let rest = |more: &[Word]| [paid.as_slice(), more].concat();
    let events: [Said<'_>; 9] = [
        (
            "1inch SwapVM",
            "Swapped(bytes32,address,address,address,address,uint256,uint256)",
            vec![],
            vec![hash, maker, taker, gave, got, amounts[0], amounts[1]],
        ),
        (
            "WOOFi",
            "WooSwap(address,address,uint256,uint256,address,address,address)",
            vec![gave, got, taker],
            vec![amounts[0], amounts[1], taker, maker],
        ),
        (
            "WOOFi",
            "WooSwap(address,address,uint256,uint256,address,address)",
            vec![gave, got, taker],
            vec![amounts[0], amounts[1], taker],
        ),
        (
            "Tokenlon",
            "FilledRFQ(bytes32,address,address,address,uint256,address,uint256,address,uint256)",
            vec![hash, taker, maker],
            vec![gave, amounts[0], got, amounts[1], taker, number(0)],
        ),
        (
            "Tokenlon",
            "Swap(bytes32,address,address,address,address,uint256,address,uint256)",
            vec![hash, maker, taker],
            paid.clone(),
        ),
        (
            "Tokenlon",
            "Swap(bytes32,address,address,address,address,uint256,address,uint256,uint256)",
            vec![hash, maker, taker],
            rest(&[number(1)]),
        ),
        (
            "BlackHoleSwap",
            "Purchases(address,address,uint256,address,uint256)",
            vec![taker, gave, got],
            amounts.to_vec(),
        ),
        (
            "Meshswap",
            "ExchangePos(address,uint256,address,uint256)",
            vec![],
            vec![gave, amounts[0], got, amounts[1]],
        ),
        (
            "Meshswap",
            "ExchangeNeg(address,uint256,address,uint256)",
            vec![],
            vec![gave, amounts[0], got, amounts[1]],
        ),
    ];
    each_is_known(&events);
}

/// Aggregators, and pools, whose events name both tokens: what else they state is of no use here.
#[test]
fn events_that_volume_is_counted_by_are_known() {
    const FEE: &str = "(address,uint256)";
    let ryze = format!("({FEE},{FEE},{FEE},{FEE},{FEE})");
    let swapped = "(address,address,address,uint256,uint256,address,address,uint256,uint256)";
    let events = [
        ("GlueX", "Routed(bytes,address,address,address,uint256,address,uint256,uint256,uint256,uint256)".to_owned()),
        ("MerryForge", "BoughtAmmExactIn(address,address,address,address,address,uint256,uint256,uint256,uint256)".to_owned()),
        ("MerryForge", "SoldAmmExactIn(address,address,address,address,uint256,uint256,uint256,uint256,bool)".to_owned()),
        ("LFJ", "SwapExactIn(address,address,address,address,uint256,uint256)".to_owned()),
        ("LFJ", "SwapExactOut(address,address,address,address,uint256,uint256)".to_owned()),
        ("Tokenlon", "Swapped(string,bytes32,address,address,uint256,address,address,uint256,address,uint256,uint256,uint16,uint16)".to_owned()),
        ("Tokenlon", format!("Swapped((string,bytes32,uint256,uint256,uint16,uint16),{swapped})")),
        ("Ooga Booga", "Swap(address,uint256,address,uint256,address,int256,uint32,address)".to_owned()),
        ("BlazePhoenix", "Swap(address,address,address,uint256,uint256,uint256)".to_owned()),
        ("Ryze", format!("Swap(address,address,address,uint256,uint256,{ryze})")),
        ("Eisen", "EisenSwapCompleted(address,address,address,address,uint256,uint256,uint256,uint256)".to_owned()),
        ("Deluthium", "QuoteSettled(address,address,address,bytes32,address,address,address,uint256,uint256,address,uint256,uint256)".to_owned()),
        ("Diggers", "Swapped(address,address,bool,uint256,uint256,uint160,int24,uint128,uint256,uint256)".to_owned()),
        ("HookOS", "Bought(address,address,bytes32,uint256,uint256,uint256)".to_owned()),
        ("HookOS", "Sold(address,address,bytes32,uint256,uint256,uint256)".to_owned()),
        ("TermMax", "SwapExactTokenToToken(address,address,address,address,uint128,uint128,uint128)".to_owned()),
        ("TermMax", "SwapTokenToExactToken(address,address,address,address,uint128,uint128,uint128)".to_owned()),
        ("Metronome", "SyntheticTokenSwapped(address,address,address,uint256,uint256,uint256)".to_owned()),
        ("EchoDEX", "Swap(address,uint256,uint256,uint256,uint256,address,uint256,uint256)".to_owned()),
        ("Bellum", "BellumSwap(address,address,uint256,uint256,uint256,uint256)".to_owned()),
    ];
    let words = vec![word(WALLET), word(AAA), word(BBB), number(500), number(7)];
    for (name, signature) in &events {
        each_is_known(&[(*name, signature.as_str(), vec![], words.clone())]);
    }
}

/// `TermMax` sells the borrower's debt for the token that is lent, and mints a token that is one of
/// its kind for the collateral.
#[test]
fn a_loan_that_mints_its_own_token_is_no_trade() {
    const SWAPPED: &str =
        "SwapExactTokenToToken(address,address,address,address,uint128,uint128,uint128)";
    let (loans, debt) = (CCC, account("00000000000000000000000000000000000deb70"));
    let swapped = |token, amount| {
        let accounts = [token, BBB, ROUTER, WALLET].map(word);
        let amounts = [amount, 7, 0].map(number);
        log(POOL, SWAPPED, &[], &[&accounts[..], &amounts[..]].concat())
    };
    let minted = log(
        loans,
        "Transfer(address,address,uint256)",
        &[word(ZERO), word(WALLET), number(31)],
        &[],
    );
    let sold = dealt(swapped(AAA, 500));
    sold.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    with(sold, std::slice::from_ref(&minted)).gives_none(Some(NoteKind::OneSided));
    let loan = vec![
        transfer(AAA, WALLET, loans, 500),
        minted,
        transfer(debt, ZERO, ROUTER, 8),
        transfer(debt, ROUTER, POOL, 8),
        swapped(debt, 8),
        transfer(BBB, POOL, WALLET, 7),
    ];
    case(loan).gives_none(Some(NoteKind::OneSided));
}

/// Ambient holds unwrapped native coin, and names both tokens in the command that it logs.
#[test]
fn coin_that_ambient_pays_is_the_pay_of_a_sale() {
    let command = [word(ZERO), word(AAA), number(420), number(0)];
    let flows = [number(96), number(100), number(500), number(128)];
    let said = log(POOL, "CrocHotCmd(bytes,int128,int128)", &[], &[flows, command].concat());
    let sold = case(vec![transfer(AAA, WALLET, POOL, 500), said]);
    let sold = sold.calls(&[call(POOL, WALLET, 100)]);
    sold.gives(&[('s', AAA, 500, Some(100))]);
    sold.venues(&["Ambient"]);
}

/// The command states the requested amount, which is more than was exchanged.
#[test]
fn what_a_command_asked_for_is_not_what_was_spent() {
    let bought = |spent| {
        let command = [word(ZERO), word(AAA), number(420), number(1), number(1), number(100)];
        let flows = [number(96), number(spent), number(500), number(192)];
        let said = log(
            POOL,
            "CrocHotCmd(bytes,int128,int128)",
            &[],
            &[flows.to_vec(), command.to_vec()].concat(),
        );
        case(vec![transfer(AAA, POOL, WALLET, 500), said]).value(100).unknown()
    };
    bought(100).gives(&[('b', AAA, 500, Some(100))]);
    bought(60).gives(&[('b', AAA, 500, None)]);
}

#[test]
fn what_a_market_maker_states_is_of_it_where_its_tokens_lie_elsewhere() {
    const QUOTE: &str = "RFQTrade(address,address,address,uint256,uint256,bytes16,address)";
    let said = [word(WALLET), word(AAA), word(BBB), number(500), number(7), [3; 32], word(OTHER)];
    let quoted = log(CCC, QUOTE, &[], &said);
    // The next pool of a route may move as much, or more.
    let pool = |moved| [transfer(AAA, POOL_2, ROUTER, moved), v2_swap(POOL_2, [1, 0, 0, moved])];
    with(dealt(quoted.clone()), &pool(500)).venues(&["Native", "Native"]);
    with(dealt(quoted), &pool(900)).venues(&["Native", "Native"]);
    // It states other amounts, or sums up what pools exchanged.
    let said = [word(WALLET), word(AAA), word(BBB), number(501), number(8), [3; 32], word(OTHER)];
    let other = log(CCC, QUOTE, &[], &said);
    let summed = [word(WALLET), word(AAA), word(BBB), number(500), number(7)];
    let summed = log(CCC, "Swapped(address,address,address,uint256,uint256)", &[], &summed);
    for (said, name) in [(other, "Native"), (summed, "DeFi Plaza")] {
        let rows = with(dealt(said), &pool(500)).decode().trades;
        assert!(rows.len() == 2 && &*rows[0].venue != name, "{rows:?}");
    }
}

/// 0x Settler logs an order without a topic: its hash, and what the maker gave. The taker need not have
/// sent the transaction.
#[test]
fn an_order_that_is_logged_without_a_topic_is_filled() {
    let filled = |data: Vec<u8>| dealt(Log { address: ROUTER, topics: Vec::new().into(), data });
    let stated = |amount: u128| [[9; 32].as_slice(), &amount.to_be_bytes()].concat();
    for taken in [filled(stated(7)), filled(stated(7)).from(OTHER)] {
        taken.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        taken.venues(&["0x", "0x"]);
    }
    filled(stated(8)).gives_none(None);
    filled([stated(7), vec![0]].concat()).gives_none(None);
}

/// Pendle's router swaps at a market, and mints what the market does not hold.
#[test]
fn principal_and_yield_tokens_are_bought_at_their_market() {
    let (market, yields) = ([0x3d; 20], [0x3e; 20]);
    let sides = [word(WALLET), word(market), word(WALLET)];
    let swapped = log(
        market,
        "Swap(address,address,int256,int256,uint256,uint256)",
        &[word(WALLET), word(WALLET)],
        &[number(510), number(490), number(1), number(1)],
    );
    let said = |signature: &str| log(ROUTER, signature, &sides, &[number(510), number(490)]);
    let pendle = account("888888888889758f76e7103c6cbf23abbf58f946");
    let principal = case(vec![
        transfer(AAA, WALLET, market, 490),
        transfer(BBB, market, WALLET, 510),
        swapped.clone(),
        said("SwapPtAndSy(address,address,address,int256,int256)"),
    ]);
    let principal = principal.to(pendle);
    principal.gives(&[('s', AAA, 490, None), ('b', BBB, 510, None)]);
    principal.venues(&["Pendle", "Pendle"]);
    let yielding = case(vec![
        transfer(AAA, WALLET, yields, 20),
        transfer(AAA, market, yields, 490),
        transfer(CCC, ZERO, market, 510),
        transfer(BBB, ZERO, WALLET, 510),
        swapped,
        said("SwapYtAndSy(address,address,address,int256,int256)"),
    ]);
    let yielding = yielding.to(pendle);
    yielding.gives(&[('s', AAA, 20, None), ('b', BBB, 510, None)]);
    // Sold: the yield's own contract takes and burns it; its amount is negative in the event.
    let negative = |amount: u64| (!Units::from(amount - 1)).to_be_bytes::<32>();
    let sold = case(vec![
        transfer(BBB, WALLET, BBB, 510),
        transfer(BBB, BBB, ZERO, 510),
        transfer(AAA, yields, WALLET, 20),
        log(
            ROUTER,
            "SwapYtAndToken(address,address,address,address,int256,int256,uint256)",
            &[word(WALLET), word(market), word(AAA)],
            &[word(WALLET), negative(510), number(20), number(20)],
        ),
    ]);
    sold.to(pendle).gives(&[('s', BBB, 510, None), ('b', AAA, 20, None)]);
}

/// The curve burns what it takes. Of its event the hash alone is known.
#[test]
fn a_curve_may_burn_what_is_sold() {
    let topic = "9ed992203b5a631f0a9d0b8341fde3c68a998a2ac413d72a34213bd77d4b1814";
    let topic = hex::decode(topic).unwrap().try_into().unwrap();
    let said =
        Log { address: POOL, topics: vec![topic].into(), data: [number(500), number(7)].concat() };
    let sold = case(vec![transfer(AAA, WALLET, ZERO, 500), transfer(BBB, POOL, WALLET, 7), said]);
    sold.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    sold.venues(&["Swarm", "Swarm"]);
}

#[test]
fn curves_of_launchpads_are_venues() {
    let (token, trader, referrer) = (word(AAA), word(WALLET), word(OTHER));
    let events: [(&str, &str, Vec<Word>); 4] = [
        ("HyperPie", "MemeTokenBuy(address,address,uint256,uint256)", vec![token, trader]),
        (
            "Printr",
            "TokenTrade(address,address,bool,uint256,uint256,uint256,uint256,uint256)",
            vec![token, trader],
        ),
        ("Holoworld", "ReserveUpdated(bool,uint256,uint256,uint256,uint256)", vec![]),
        ("Dott", "Buy(address,uint256,uint256,uint256,address)", vec![trader, referrer]),
    ];
    for (name, signature, topics) in events {
        let data = [number(100), number(500), number(1), number(1), number(1), number(1)];
        let said = log(POOL, signature, &topics, &data);
        let bought = case(vec![transfer(AAA, POOL, WALLET, 500), said]).value(100).to(POOL);
        let bought = bought.calls(&[]);
        bought.gives(&[('b', AAA, 500, Some(100))]);
        bought.venues(&[name]);
    }
}

#[test]
fn a_trade_by_an_unknown_contract_is_found_by_its_shape() {
    let by_amounts = dealt(amounts());
    by_amounts.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    by_amounts.venues(&[ROUTER_NAME, ROUTER_NAME]);
    assert_eq!(by_amounts.decode().notes[0].kind, NoteKind::UnknownVenue);
    // A fee went off before the event was written: it names the assets.
    let by_assets = dealt(said(&[word(AAA), word(BBB), number(480), number(8)]));
    by_assets.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    // Wrapped native coin, where the event names the token and both amounts.
    let wrapped = |words: &[Word]| {
        let paid = vec![transfer(weth(), WALLET, POOL, 100), transfer(AAA, POOL, WALLET, 500)];
        with(case(paid), &[said(words)])
    };
    wrapped(&[word(AAA), number(100), number(500)]).gives(&[('b', AAA, 500, Some(100))]);
    wrapped(&[number(100), number(500)]).gives_none(None);
    // Unwrapped coin may have paid for goods.
    let goods =
        vec![transfer(AAA, ROUTER, WALLET, 500), said(&[word(AAA), number(100), number(500)])];
    case(goods).value(100).gives_none(None);
}

#[test]
fn only_a_plain_exchange_is_a_trade_of_an_unknown_contract() {
    let nothing = |unlike: Case| unlike.gives_none(None);
    // No event confirms it, or one that names half of it.
    nothing(dealt(said(&[word(WALLET)])));
    nothing(dealt(said(&[number(500), word(BBB)])));
    // Another account sent it; or the called contract is the wallet itself.
    nothing(dealt(amounts()).from(OTHER));
    nothing(dealt(amounts()).to(WALLET));
    // A share, a debt or a receipt was minted or burnt.
    nothing(with(dealt(amounts()), &[transfer(CCC, ZERO, OTHER, 3)]));
    nothing(with(dealt(amounts()), &[transfer(CCC, WALLET, ZERO, 3)]));
    // The token's own contract deals in it.
    nothing(dealt(amounts()).to(BBB));
    nothing(with(dealt(amounts()), &[transfer(BBB, BBB, OTHER, 1)]));
    // At one to one: a migration.
    let migrated = vec![
        transfer(AAA, WALLET, ROUTER, 500),
        transfer(BBB, ROUTER, WALLET, 500),
        said(&[word(AAA), word(BBB), number(500)]),
    ];
    nothing(case(migrated));
    // The receivers and the payers are unrelated.
    let apart = vec![transfer(AAA, WALLET, POOL, 500), transfer(BBB, OTHER, WALLET, 7), amounts()];
    nothing(case(apart));
    // An NFT was part of the payment.
    let nft =
        log(CCC, "Transfer(address,address,uint256)", &[word(WALLET), word(OTHER), number(1)], &[]);
    nothing(with(dealt(amounts()), &[nft]));
}

#[test]
fn a_dividend_tracker_is_no_row() {
    let sold = with(sell(), &[transfer(CCC, WALLET, ZERO, 500)]);
    sold.gives(&[('s', AAA, 500, Some(100))]);
    // The tracker drops balances below its minimum.
    with(sell(), &[transfer(CCC, WALLET, ZERO, 600)]).gives(&[('s', AAA, 500, Some(100))]);
    with(buy(), &[transfer(CCC, ZERO, WALLET, 500)]).gives(&[('b', AAA, 500, Some(100))]);
    // A share does not move in step: the coin did not buy all of it, or was not redeemed in full.
    with(sell(), &[transfer(CCC, WALLET, ZERO, 20)]).gives_none(Some(NoteKind::Liquidity));
    let share = |amount| [transfer(CCC, ZERO, WALLET, amount)];
    with(buy().value(150), &share(20)).gives_none(Some(NoteKind::Liquidity));
    let part = sell().calls(&[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 10)]);
    with(part, &share(500)).gives_none(Some(NoteKind::Liquidity));
}

#[test]
fn the_mirror_of_a_token_is_a_part_of_its_transfer() {
    let nft = |from, to| {
        log(CCC, "Transfer(address,address,uint256)", &[word(from), word(to), number(7)], &[])
    };
    let mirrored = |mirror: &[Log]| {
        let mut logs = vec![wrap(ROUTER, 100), transfer(weth(), ROUTER, POOL, 100)];
        logs.extend_from_slice(mirror);
        logs.push(transfer(AAA, POOL, WALLET, 500));
        logs.push(v2_swap(POOL, [100, 0, 0, 500]));
        case(logs).value(100).calls(&[call(ROUTER, weth(), 100)])
    };
    mirrored(&[nft(ZERO, WALLET), nft(ZERO, WALLET)]).gives(&[('b', AAA, 500, Some(100))]);
    // It was burnt, or changed hands, or its events are elsewhere.
    mirrored(&[nft(WALLET, ZERO)]).gives_none(Some(NoteKind::OneSided));
    mirrored(&[nft(OTHER, WALLET)]).gives_none(Some(NoteKind::OneSided));
    with(mirrored(&[]), &[nft(ZERO, WALLET)]).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn what_an_order_had_put_at_a_venue_is_sold_as_it_fills() {
    const TAKE: &str =
        "LogTake(bytes32,bytes32,address,address,address,address,uint128,uint128,uint64)";
    let take = |maker, bought, got| {
        let named = [[3; 32], word(maker), word(OTHER)];
        let said = [[4; 32], word(AAA), word(bought), number(500), number(got), number(1)];
        log(oasis(), TAKE, &named, &said)
    };
    let filled = |bought, given, fills: &[Log]| {
        let mut logs =
            vec![transfer(bought, OTHER, WALLET, 7), transfer(AAA, oasis(), OTHER, given)];
        logs.extend_from_slice(fills);
        case(logs).from(OTHER)
    };
    let one = take(WALLET, BBB, 7);
    let rows = [('s', AAA, 500, None), ('b', BBB, 7, None)];
    filled(BBB, 500, std::slice::from_ref(&one)).gives(&rows);
    filled(weth(), 500, &[take(WALLET, weth(), 7)]).calls(&[]).gives(&[('s', AAA, 500, Some(7))]);
    let two = [take(WALLET, BBB, 3), take(WALLET, BBB, 4)];
    filled(BBB, 1000, &two).gives(&[('s', AAA, 1000, None), ('b', BBB, 7, None)]);
    // The venue gave less than its event states, or the order is another account's.
    filled(BBB, 499, std::slice::from_ref(&one)).gives_none(Some(NoteKind::OneSided));
    filled(BBB, 999, &two).gives_none(Some(NoteKind::OneSided));
    filled(BBB, 500, &[take(POOL_2, BBB, 7)]).gives_none(Some(NoteKind::OneSided));
    // What the wallet gives here is not escrow, and counts once.
    let mut direct = filled(BBB, 500, &[one]);
    direct.tx.logs.insert(0, transfer(AAA, WALLET, oasis(), 500));
    direct.gives(&rows);
    // Any contract could log such an event.
    let mut other = filled(BBB, 500, &[take(WALLET, BBB, 7)]);
    for log in other.tx.logs.iter_mut().filter(|log| log.address == oasis()) {
        log.address = POOL;
    }
    other.tx.logs[1] = transfer(AAA, POOL, OTHER, 500);
    other.gives_none(Some(NoteKind::OneSided));
}

/// An ERC-1155 contract may also have an ERC-20 contract for each token, whose address is the id.
#[test]
fn what_another_contract_repeats_of_a_transfer_is_no_token_of_its_kind() {
    let single = |from, to, token, amount| {
        let sides = [word(OTHER), word(from), word(to)];
        let signature = "TransferSingle(address,address,address,uint256,uint256)";
        log(CCC, signature, &sides, &[word(token), number(amount)])
    };
    let rows = [('b', AAA, 500, Some(100))];
    let repeated = single(POOL, WALLET, AAA, 500);
    with(buy(), std::slice::from_ref(&repeated)).gives(&rows);
    let others = [
        single(POOL, WALLET, AAA, 499),
        single(POOL, WALLET, BBB, 500),
        single(OTHER, WALLET, AAA, 500),
    ];
    for other in others {
        let more = [repeated.clone(), other];
        with(buy(), &more).gives_none(Some(NoteKind::OneSided));
    }
}

#[test]
fn a_rest_that_came_back_is_no_trade() {
    let routed = |to_wallet, onward| {
        let mut logs = vec![wrap(ROUTER, 100)];
        logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 500, ROUTER)));
        logs.push(transfer(AAA, ROUTER, WALLET, to_wallet));
        logs.push(transfer(AAA, ROUTER, OTHER, onward));
        case(logs).value(100).calls(&[call(ROUTER, weth(), 100)])
    };
    routed(20, 480).gives_none(Some(NoteKind::OneSided));
    // A fee of the route.
    routed(480, 20).gives(&[('b', AAA, 480, Some(100))]);
    // A token that keeps most of each transfer.
    let mut logs = vec![wrap(ROUTER, 100)];
    logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 200, WALLET)));
    logs.push(transfer(AAA, POOL, AAA, 300));
    let taxed = case(logs).value(100).calls(&[call(ROUTER, weth(), 100)]);
    taxed.gives(&[('b', AAA, 200, Some(100))]);
    // Of native coin.
    let paid = |to_wallet, onward| {
        sell().calls(&[
            call(weth(), ROUTER, 100),
            call(ROUTER, WALLET, to_wallet),
            call(ROUTER, OTHER, onward),
        ])
    };
    paid(10, 90).gives_none(Some(NoteKind::OneSided));
    paid(99, 1).gives(&[('s', AAA, 500, Some(99))]);
}

#[test]
fn a_round_trip_says_so() {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (BBB, 7, POOL_2));
    logs.extend(swap(POOL_2, (BBB, 7, POOL), (AAA, 510, WALLET)).into_iter().skip(1));
    case(logs).gives_none(Some(NoteKind::RoundTrip));
}

/// A sale of a taxed token, which sells its collected fees during the wallet's transfer.
fn sells_meanwhile(to: Account) -> Vec<Log> {
    let mut logs = swap(POOL, (AAA, 90, AAA), (weth(), 18, to));
    logs.push(unwrap(to, 18));
    logs.extend(swap(POOL, (AAA, 500, WALLET), (weth(), 100, to)));
    logs.push(unwrap(to, 100));
    logs
}

#[test]
fn what_was_unwrapped_after_the_wallet_gave_is_its_pay() {
    let router = uniswap_v2_router();
    let sold = case(sells_meanwhile(router)).to(router).unknown();
    sold.gives(&[('s', AAA, 500, Some(100))]);
    // A second unwrap that no sale of the coin itself explains, and one that comes later.
    let mut twice = vec![unwrap(router, 18)];
    twice.extend(swap(POOL, (AAA, 500, WALLET), (weth(), 100, router)));
    twice.push(unwrap(router, 100));
    case(twice).to(router).unknown().gives(&[('s', AAA, 500, None)]);
    let mut later = swap(POOL, (AAA, 500, WALLET), (weth(), 100, router));
    later.push(transfer(AAA, AAA, POOL, 90));
    later.push(unwrap(router, 118));
    case(later).to(router).unknown().gives(&[('s', AAA, 500, None)]);
}

/// A single unwrap by the called contract is the payment only for calls that pay out everything.
#[test]
fn one_unwrap_is_the_pay_of_the_calls_that_pay_out_whole() {
    let maestro = account("80a64c6d7f12c47b7c66c5b4e20e72bc1fcd5d9e");
    let sold = |selector, more: &[Log]| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, maestro));
        logs.push(unwrap(maestro, 100));
        logs.extend_from_slice(more);
        let mut sold = case(logs).to(maestro).unknown();
        sold.tx.selector = Some(selector);
        sold
    };
    let by_interface = [0x79, 0x1a, 0xc9, 0x47];
    sold(by_interface, &[]).gives(&[('s', AAA, 500, Some(100))]);
    sold([1, 2, 3, 4], &[]).gives(&[('s', AAA, 500, None)]);
    // Another contract unwrapped too: which of the two paid is unknown.
    sold(by_interface, &[unwrap(OTHER, 7)]).gives(&[('s', AAA, 500, None)]);
    // A commission out of what was bought.
    let commission = log(
        maestro,
        "CommissionToTokenRecord(address,uint256,address)",
        &[],
        &[word(weth()), number(1), word(OTHER)],
    );
    sold(by_interface, &[commission]).gives(&[('s', AAA, 500, None)]);
}

#[test]
fn a_contract_that_pays_out_whole_may_leave_unwrapping_to_others() {
    let through = |to| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, OTHER));
        logs.push(unwrap(OTHER, 60));
        logs.push(unwrap(OTHER, 40));
        case(logs).to(to).unknown()
    };
    through(one_inch_v5()).gives(&[('s', AAA, 500, Some(100))]);
    through(uniswap_v2_router()).gives(&[('s', AAA, 500, None)]);
    // MetaMask keeps the fee that the input names; without one the payment is unknown.
    let mut charged = through(metamask());
    charged.gives(&[('s', AAA, 500, None)]);
    charged.tx.terms.charged = Some(Units::from(3_u64));
    charged.gives(&[('s', AAA, 500, Some(97))]);
}

#[test]
fn coin_that_the_input_gives_to_another_is_not_the_wallets() {
    let sold = |receiver| {
        let mut sold = sell().to(uniswap_v2_router()).unknown();
        sold.tx.logs.pop();
        sold.tx.logs.push(unwrap(uniswap_v2_router(), 100));
        sold.tx.terms = Terms { receiver: Some(receiver), ..Terms::default() };
        sold
    };
    sold(WALLET).gives(&[('s', AAA, 500, Some(100))]);
    sold(OTHER).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn a_call_for_an_exact_amount_of_coin_spends_it() {
    let bought = |selector| {
        let mut logs = vec![wrap(ROUTER, 99)];
        logs.extend(swap(POOL, (weth(), 99, ROUTER), (AAA, 500, WALLET)));
        let mut bought = case(logs).value(100).unknown();
        bought.tx.selector = Some(selector);
        bought
    };
    // `swapExactETHForTokens`; `swapETHForExactTokens` refunds the rest.
    bought([0x7f, 0xf3, 0x6a, 0xb5]).gives(&[('b', AAA, 500, Some(100))]);
    bought([0xfb, 0x3b, 0xdb, 0x41]).gives(&[('b', AAA, 500, None)]);
}

#[test]
fn a_fee_that_an_event_announces_leaves_the_pay_open() {
    let okx = account("3b3ae790df4f312e745d270119c6052904fb6790");
    let placeholder = word([0xee; 20]);
    let record = log(
        okx,
        "OrderRecord(address,address,address,uint256,uint256)",
        &[],
        &[word(AAA), placeholder, word(WALLET), number(500), number(100)],
    );
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, okx));
    logs.extend([unwrap(OTHER, 100), record]);
    let mut sold = case(logs).to(okx).unknown();
    sold.tx.terms.coin = CoinTo::Sender;
    sold.gives(&[('s', AAA, 500, Some(100))]);
    let mut fee = log(okx, "", &[], &[number(1), word(OTHER)]);
    fee.topics = vec![
        hex::decode("ffc60ee157a42f4d8edbd1897e6581a96d9ed04e44fb2ab53a47ce1eb8f2775b")
            .unwrap()
            .try_into()
            .unwrap(),
    ]
    .into();
    with(sold, &[fee]).gives(&[('s', AAA, 500, None)]);
}

#[test]
fn a_quote_for_native_coin_values_what_it_led_to() {
    let order = log(
        OTHER,
        "RfqOrderFilled(bytes32,address,address,address,address,uint128,uint128,bytes32)",
        &[],
        &[number(0), word(POOL), word(ROUTER), word(weth()), word(AAA), number(500), number(100)],
    );
    let mut logs = vec![
        transfer(AAA, WALLET, ROUTER, 500),
        transfer(AAA, ROUTER, POOL, 500),
        transfer(weth(), POOL, ROUTER, 100),
        order,
    ];
    // With a fee on what was bought, only the quote gives the value.
    logs.extend(swap(POOL_2, (weth(), 100, ROUTER), (BBB, 8, ROUTER)));
    logs.extend([transfer(BBB, ROUTER, OTHER, 1), transfer(BBB, ROUTER, WALLET, 7)]);
    case(logs.clone()).gives(&[('s', AAA, 500, Some(100)), ('b', BBB, 7, Some(100))]);
    // The maker was given another token too.
    logs.push(transfer(CCC, OTHER, POOL, 1));
    case(logs).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
}

/// AAA and BBB keep a part of each transfer; AAA's contract sells what it collected first.
pub(crate) fn taxed_route() -> Vec<Log> {
    let mut logs = swap(POOL, (AAA, 40, AAA), (weth(), 9, ROUTER));
    logs.extend([
        transfer(AAA, WALLET, AAA, 25),
        transfer(AAA, WALLET, POOL, 475),
        transfer(weth(), POOL, POOL_2, 100),
        v2_swap(POOL, [475, 0, 0, 100]),
        transfer(BBB, POOL_2, BBB, 1),
        transfer(BBB, POOL_2, WALLET, 7),
        v2_swap(POOL_2, [100, 0, 0, 8]),
    ]);
    logs
}

#[test]
fn what_one_pool_gave_to_the_next_values_tokens_with_a_tax() {
    let null = [('s', AAA, 500, None), ('b', BBB, 7, None)];
    case(taxed_route()).gives(&[('s', AAA, 500, Some(100)), ('b', BBB, 7, Some(100))]);
    // Another seller or another buyer shares a pool.
    let others = [
        transfer(AAA, OTHER, POOL, 26),
        transfer(weth(), OTHER, POOL_2, 1),
        transfer(CCC, OTHER, POOL_2, 1),
    ];
    for other in others {
        case([taxed_route(), vec![other]].concat()).gives(&null);
    }
}

#[test]
fn what_a_gas_sponsor_takes_is_no_part_of_the_trade() {
    let traded = |sender| {
        let mut logs = vec![transfer(AAA, WALLET, CCC, 30)];
        logs.extend(swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET)));
        logs.extend([transfer(AAA, CCC, WALLET, 10), operation(sender, CCC)]);
        case(logs).from(OTHER).to(entry_point())
    };
    traded(WALLET).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    traded(OTHER).gives(&[('s', AAA, 520, None), ('b', BBB, 7, None)]);
}

#[test]
fn what_is_collected_for_a_gas_sponsor_is_no_part_of_the_trade() {
    let traded = |sponsored: Log| {
        let mut logs = vec![transfer(AAA, WALLET, POOL_2, 30)];
        logs.extend(swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET)));
        logs.extend([transfer(AAA, POOL_2, WALLET, 10), sponsored, operation(WALLET, CCC)]);
        case(logs).from(OTHER).to(entry_point())
    };
    let stated = |emitter, token, amount| {
        log(emitter, "Sponsored(address,uint256)", &[word(token)], &[number(amount)])
    };
    for named in [AAA, POOL_2] {
        traded(stated(CCC, named, 20)).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    }
    // Another amount, another token, another emitter.
    for other in [stated(CCC, AAA, 21), stated(CCC, BBB, 20), stated(OTHER, AAA, 20)] {
        traded(other).gives(&[('s', AAA, 520, None), ('b', BBB, 7, None)]);
    }
}
