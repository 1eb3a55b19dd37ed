//! Sales for native coin in Uniswap V4 if inner calls are unknown: the call's commands name the
//! pools and the receivers, and the last pool's event states the amount.

use std::slice;

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, CoinRoute, CoinSale, CoinTo, Log, Terms, Word};
use blotter::domain::Units;

use crate::evm_decode::{
    AAA, BBB, Case, OTHER, POOL, ROUTER, WALLET, account, call, case, log, number, swap, transfer,
    unwrap, weth, word,
};

const SWAP: &str = "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)";
const COIN_POOL: Word = [0x41; 32];
const OTHER_POOL: Word = [0x42; 32];

fn manager() -> Account {
    account("000000000004444c5dc75cb358380d2e3de08a90")
}

fn universal_router() -> Account {
    account("66a9893cc07d91d95644aedd05d03f95e1dba8af")
}

/// What a pool gave, and as a negative number took, of its lower and its upper currency.
fn swapped(pool: Word, by: Account, [lower, upper]: [i64; 2]) -> Log {
    let signed = |amount: i64| -> Word {
        let units = Units::from(amount.unsigned_abs());
        let units = if amount < 0 { units.wrapping_neg() } else { units };
        units.to_be_bytes()
    };
    let rest = [0; 4].map(number);
    let data = [[signed(lower), signed(upper)].as_slice(), &rest].concat();
    log(manager(), SWAP, &[pool, word(by)], &data)
}

fn by(hops: usize, part: u64) -> Terms {
    let route = Some(CoinRoute { pool: COIN_POOL, hops });
    let parts = [Units::from(part), Units::ZERO];
    let sale = CoinSale { route, parts, ..CoinSale::default() };
    Terms { sale: Some(sale), ..Terms::default() }
}

/// 500 AAA for native coin by the commands of a Universal Router.
fn sale(terms: &Terms, swaps: &[Log]) -> Case {
    let mut logs = swaps.to_vec();
    logs.push(transfer(AAA, WALLET, manager(), 500));
    let mut case = case(logs).to(universal_router()).unknown();
    case.tx.terms = *terms;
    case
}

/// Two tokens against coin of pools of one vault, which hold no wrapped coin.
#[test]
fn several_tokens_against_the_coin_of_one_vault_each_have_their_own_part() {
    let hops = |sign: i64| {
        let first = swapped(COIN_POOL, ROUTER, [-60 * sign, 500 * sign]);
        [first, swapped(OTHER_POOL, ROUTER, [-40 * sign, 7 * sign])]
    };
    let sides =
        |from: Account, to: Account| [transfer(AAA, from, to, 500), transfer(BBB, from, to, 7)];
    let bought = case([hops(1), sides(manager(), WALLET)].concat()).value(100);
    let bought = bought.calls(&[call(ROUTER, manager(), 100)]);
    bought.gives(&[('b', AAA, 500, Some(60)), ('b', BBB, 7, Some(40))]);
    let null = [('b', AAA, 500, None), ('b', BBB, 7, None)];
    // With a fee in between, the parts do not add up to what the wallet gave.
    bought.clone().value(101).gives(&null);
    // Two pools state the amount of a token.
    let mut again = bought;
    again.tx.logs.push(swapped(OTHER_POOL, ROUTER, [-40, 7]));
    again.gives(&null);
    let sold = case([hops(-1), sides(WALLET, manager())].concat());
    let sold = sold.calls(&[call(manager(), ROUTER, 100), call(ROUTER, WALLET, 100)]);
    sold.gives(&[('s', AAA, 500, Some(60)), ('s', BBB, 7, Some(40))]);
}

fn sold(case: &Case, native: Option<u64>) {
    case.gives(&[('s', AAA, 500, native)]);
}

/// As transaction 0x40060956… on Arbitrum: of 270113488716386 wei a quarter of a percent went to
/// another account.
#[test]
fn a_sale_is_valued_by_the_event_of_its_last_pool() {
    let router = universal_router();
    let last = swapped(COIN_POOL, router, [270_113_488_716_386, -500]);
    sold(&sale(&by(1, 0), slice::from_ref(&last)), Some(270_113_488_716_386));
    sold(&sale(&by(1, 25), slice::from_ref(&last)), Some(269_438_204_994_596));
    let shared = Terms { coin: CoinTo::Shared, ..by(1, 25) };
    sold(&sale(&shared, slice::from_ref(&last)), Some(269_438_204_994_596));
    // Through another pool first.
    let first = swapped(OTHER_POOL, router, [-500, 9]);
    sold(&sale(&by(2, 0), &[first, last.clone()]), Some(270_113_488_716_386));
    // Commands that name no such route, and to another account.
    sold(&sale(&Terms::default(), slice::from_ref(&last)), None);
    let others = Terms { coin: CoinTo::Others, ..Terms::default() };
    sale(&others, &[last]).gives_none(Some(NoteKind::OneSided));
}

/// Hooks of several projects log a `Trade` of their own next to the manager's swap.
#[test]
fn the_event_of_a_hook_is_no_venue() {
    let mut sale = sale(&by(1, 0), &[swapped(COIN_POOL, universal_router(), [700, -500])]);
    let hook = log(POOL, "Trade(uint160,int128,int128)", &[], &[1, 700, 500].map(number));
    sale.tx.logs.push(hook);
    sold(&sale, Some(700));
    sale.venues(&["Uniswap V4"]);
}

#[test]
fn a_pool_that_the_commands_do_not_name_leaves_the_value_unknown() {
    let router = universal_router();
    let last = swapped(COIN_POOL, router, [700, -500]);
    let other = swapped(OTHER_POOL, router, [-500, 9]);
    sold(&sale(&by(1, 0), &[other.clone(), last.clone()]), None);
    sold(&sale(&by(2, 0), &[last.clone(), other]), None);
    sold(&sale(&by(1, 0), &[swapped(COIN_POOL, OTHER, [700, -500])]), None);
    sold(&sale(&by(1, 0), &[swapped(COIN_POOL, router, [-700, 500])]), None);
    // The same commands to a contract that no table knows.
    sold(&sale(&by(1, 0), slice::from_ref(&last)).to(ROUTER), None);
    // A token that the seller's own contract sold elsewhere does not count.
    let mut taxed = sale(&by(1, 0), &[last]);
    taxed.tx.logs.extend(swap(POOL, (BBB, 7, OTHER), (weth(), 40, OTHER)));
    taxed.tx.logs.push(unwrap(OTHER, 40));
    sold(&taxed, Some(700));
}
