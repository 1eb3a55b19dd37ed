//! The EVM decoder on standards that log movements in their own way: one rule per test.

use blotter::decode::evm::{Account, Log, Word};

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, ROUTER, WALLET, ZERO, account, buy, call, case, log, number,
    sell, transfer, v2_swap, weth, word, wrap,
};

/// What a chain with EIP-7708 logs of native coin that moves.
fn coin(from: Account, to: Account, amount: u64) -> Log {
    transfer(account("fffffffffffffffffffffffffffffffffffffffe"), from, to, amount)
}

fn first(logs: &[Log], mut base: Case) -> Case {
    base.tx.logs.splice(0..0, logs.iter().cloned());
    base
}

#[test]
fn what_a_chain_logs_of_its_own_coin_is_no_token() {
    let bought = first(&[coin(WALLET, ROUTER, 130), coin(ROUTER, weth(), 100)], buy().value(130));
    let back = coin(ROUTER, WALLET, 30);
    let with_calls = bought.clone().calls(&[call(ROUTER, weth(), 100), call(ROUTER, WALLET, 30)]);
    first(std::slice::from_ref(&back), with_calls).gives(&[('b', AAA, 500, Some(100))]);
    // The logs are complete: nothing else is needed.
    let mut logged = bought.unknown();
    logged.tx.logs.push(back);
    logged.gives(&[('b', AAA, 500, Some(100))]);
    let mut sold = sell().unknown();
    sold.tx.logs.extend([coin(weth(), ROUTER, 100), coin(ROUTER, WALLET, 97)]);
    sold.gives(&[('s', AAA, 500, Some(97))]);
    // A wallet with code of its own that calls itself: its own value is not logged.
    let to_itself = sold.to(WALLET).value(7);
    to_itself.gives(&[('s', AAA, 500, Some(97))]);
}

#[test]
fn logs_of_coin_without_that_of_the_value_are_not_all() {
    let bought = first(&[coin(ROUTER, weth(), 100)], buy().value(130).unknown());
    bought.gives(&[('b', AAA, 500, None)]);
}

/// An early ERC-404 token logs its amounts by an event of its own, and ids by the usual one.
fn of_both_kinds(amount: Log) -> Case {
    let sides = [word(ZERO), word(WALLET), number(1)];
    let id = log(AAA, "Transfer(address,address,uint256)", &sides, &[]);
    let mut logs = vec![wrap(ROUTER, 100), transfer(weth(), ROUTER, POOL, 100), id, amount];
    logs.push(v2_swap(POOL, [100, 0, 0, 500]));
    case(logs).value(100).calls(&[call(ROUTER, weth(), 100)])
}

#[test]
fn a_token_that_logs_ids_as_transfers_has_amounts_too() {
    let signature = "ERC20Transfer(address,address,uint256)";
    let amount = log(AAA, signature, &[word(POOL), word(WALLET)], &[number(500)]);
    of_both_kinds(amount.clone()).gives(&[('b', AAA, 500, Some(100))]);
    // A token that logs both states each amount twice.
    let mut twice = of_both_kinds(amount);
    twice.tx.logs.push(transfer(AAA, POOL, WALLET, 500));
    twice.gives(&[('b', AAA, 500, Some(100))]);
}

/// The log of a token that is its own pool against native coin.
fn own_pool(amounts: [u64; 4]) -> Log {
    let signature = "Swap(address,uint256,uint256,uint256,uint256)";
    log(AAA, signature, &[word(WALLET)], &amounts.map(number))
}

#[test]
fn a_token_that_is_its_own_pool_is_traded() {
    let bought = case(vec![transfer(AAA, AAA, WALLET, 500), own_pool([100, 0, 0, 500])]);
    let bought = bought.to(AAA).value(100).on("bsc");
    bought.gives(&[('b', AAA, 500, Some(100))]);
    bought.venues(&["ERC-314"]);
    bought.unknown().gives(&[('b', AAA, 500, Some(100))]);
    // A plain transfer to it is a sale, of which it burns a part.
    let mut sold = vec![transfer(AAA, WALLET, AAA, 490), transfer(AAA, WALLET, ZERO, 10)];
    sold.push(own_pool([0, 490, 100, 0]));
    let mut sold = case(sold).to(AAA).calls(&[call(AAA, WALLET, 100)]);
    sold.tx.selector = Some([0xa9, 0x05, 0x9c, 0xbb]);
    sold.gives(&[('s', AAA, 500, Some(100))]);
    // A transfer to others is none.
    case(vec![transfer(AAA, WALLET, OTHER, 500)]).to(AAA).gives_none(None);
}

#[test]
fn what_a_pool_gives_out_of_a_vault_is_exchanged() {
    let (vaults, lender) = ([[0xd1; 20], [0xd2; 20]], [0xd3; 20]);
    // 500 of what is sold are 499 without the fee, which the second version states.
    let versions: [(&str, &[u64]); 2] = [
        (
            "Swap(address,uint256,uint256,uint256,uint256,uint112,uint112,address)",
            &[499, 0, 0, 7, 1, 1],
        ),
        (
            "Swap(address,uint256,uint256,uint256,uint256,uint256,uint256,uint112,uint112,address)",
            &[499, 0, 0, 7, 1, 0, 1, 1],
        ),
    ];
    for (signature, data) in versions {
        let data: Vec<Word> = data.iter().map(|amount| number(*amount)).collect();
        let logs = vec![
            transfer(AAA, WALLET, POOL, 500),
            transfer(vaults[1], lender, ZERO, 6),
            transfer(BBB, vaults[1], WALLET, 7),
            transfer(AAA, POOL, vaults[0], 500),
            transfer(vaults[0], ZERO, lender, 480),
            log(POOL, signature, &[word(ROUTER), word(WALLET)], &data),
        ];
        let swapped = case(logs);
        swapped.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        swapped.venues(&["EulerSwap", "EulerSwap"]);
        let mut other = swapped;
        other.tx.logs.push(transfer(CCC, OTHER, WALLET, 6));
        other.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    }
}

#[test]
fn venues_with_quotes_of_their_own_are_known() {
    let (zero, one) = (number(0), number(1));
    let tokens = [word(AAA), word(BBB)];
    let hop = log(
        ROUTER,
        "RouteActionExecuted(uint256,uint8,address,address,address,uint256,uint256)",
        &[zero, word(POOL)],
        &[&[zero][..], &tokens, &[number(500), number(7)]].concat(),
    );
    let names = "SwapExecuted(address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,\
                 uint256,address,bytes32,bool,string)";
    let sides = [&[word(WALLET)][..], &tokens].concat();
    let shell = log(ROUTER, names, &sides, &[[number(7); 7].as_slice(), &[one; 4]].concat());
    let names = "Swap(address,address,address,address,uint256,uint256,uint256,uint256,uint256,bytes32,\
                 address[],address[],uint256[])";
    let data = [&[word(WALLET); 2][..], &tokens, &[number(500), number(7)], &[zero; 10]].concat();
    let fly = log(ROUTER, names, &[], &data);
    let names = "Trade(address,address,bytes,int256,address,uint256,uint256,uint256)";
    let data = [word(WALLET), number(224), number(7), word(AAA), number(500), zero, one, zero];
    let shares = log(POOL, names, &[word(BBB)], &data);
    for (said, name) in [(hop, "Rialto"), (shell, "Arcus"), (fly, "Fly"), (shares, "Aktionariat")] {
        let logs = vec![transfer(AAA, WALLET, POOL, 500), transfer(BBB, POOL, WALLET, 7), said];
        let swapped = case(logs).on("robinhood");
        swapped.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
        swapped.venues(&[name, name]);
    }
}

#[test]
fn launchpads_that_name_no_token_are_known() {
    let each = "(address,uint256,uint256,uint256,uint256,uint256,uint256,uint256)";
    let fairy = |kind: &str, amounts: [u64; 6]| {
        log(POOL, &format!("{kind}{each}"), &[word(WALLET), number(1)], &amounts.map(number))
    };
    let apex = |amounts: [u64; 4]| {
        let words = [&amounts.map(number)[..], &[number(0)]].concat();
        let signature = "Swap(address,uint256,uint256,uint256,uint256,bool)";
        log(AAA, signature, &[word(WALLET)], &words)
    };
    let burst = |amounts: [u64; 4]| {
        let signature = "BurstSwap(address,address,uint256,uint256,uint256,uint256)";
        log(POOL, signature, &[word(AAA), word(WALLET)], &amounts.map(number))
    };
    let cases = [
        (
            "FairyLaunch",
            POOL,
            fairy("Buy", [100, 500, 1, 9, 9, 9]),
            fairy("Sell", [500, 100, 1, 9, 9, 9]),
        ),
        ("ApexDeFi", AAA, apex([0, 100, 500, 0]), apex([500, 0, 0, 100])),
        ("ApexDeFi", POOL, burst([0, 500, 100, 0]), burst([500, 0, 0, 100])),
    ];
    for (name, holder, buys, sells) in cases {
        let bought = case(vec![transfer(AAA, holder, WALLET, 500), buys]).to(holder).value(100);
        bought.gives(&[('b', AAA, 500, Some(100))]);
        bought.venues(&[name]);
        let sold = case(vec![transfer(AAA, WALLET, holder, 500), sells]).to(holder);
        let sold = sold.calls(&[call(holder, WALLET, 100)]);
        sold.gives(&[('s', AAA, 500, Some(100))]);
        sold.venues(&[name]);
    }
}

/// `stHYPE` and `wstHYPE` are interfaces to one balance: a transfer of the second is logged by both,
/// the first one's amount in another unit.
#[test]
fn a_balance_with_two_interfaces_moves_once() {
    let (first, second) = (
        account("ffaa4a3d97fe9107cef8a3f48c069f577ff76cc1"),
        account("94e8396e0869c9f2200760af0621afd240e1cf38"),
    );
    let bought = |moved: &[Log]| {
        let paid = [transfer([0x55; 20], WALLET, POOL, 100), v2_swap(POOL, [100, 0, 0, 430])];
        case([moved, &paid].concat()).on("hyperevm")
    };
    let of = |token, to, amount| transfer(token, POOL, to, amount);
    let both = [of(first, WALLET, 500), of(second, WALLET, 430)];
    bought(&both).gives(&[('b', second, 430, Some(100))]);
    bought(&both[..1]).gives(&[('b', first, 500, Some(100))]);
    // Movements of their own: in the other order, and to another account.
    let rows = [('b', second, 430, None), ('b', first, 500, None)];
    bought(&[of(second, WALLET, 430), of(first, WALLET, 500)]).gives(&rows);
    let others = [of(first, WALLET, 500), of(second, OTHER, 9), of(second, WALLET, 430)];
    bought(&others).gives(&rows);
}

/// The first contract of Monerium's euro moves balances of the second one, as on Gnosis.
#[test]
fn the_first_contract_of_a_token_repeats_the_second() {
    let tokens = [
        ("eth", "3231cb76718cdef2155fc47b5286d82e6eda273f", weth()),
        (
            "polygon",
            "18ec0a6e18e5bc3784fdd3a3634b31245ab704f6",
            account("0d500b1d8e8ef31e21c99d1db9a6444d3adf1270"),
        ),
    ];
    for (chain, first, coin) in tokens {
        let first = account(first);
        let sold = vec![
            transfer(AAA, WALLET, POOL, 500),
            transfer(first, WALLET, POOL, 500),
            transfer(coin, POOL, WALLET, 100),
            v2_swap(POOL, [500, 0, 0, 100]),
        ];
        case(sold[1..].to_vec()).on(chain).gives(&[('s', first, 500, Some(100))]);
        case(sold).on(chain).gives(&[('s', AAA, 500, Some(100))]);
    }
}
