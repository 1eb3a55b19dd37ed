//! Native coin of pools that a route wraps or exchanges again before its output goes to a bridge or
//! another account, and launchpads that wrap their fee: which of them are sales if inner calls are
//! unknown.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, Log, Word};

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, ZERO, account, call, case,
    entry_point, log, number, operation, swap, transfer, uniswap_v2_router, weth, word, wrap,
};

const V4_SWAP: &str = "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)";
const V3_SWAP: &str = "Swap(address,address,int256,int256,uint160,uint128,int24,uint128,uint128)";
const SETTLER: Account = [0x5e; 20];
const DEPOSITORY: Account = [0x4c; 20];

fn manager() -> Account {
    account("8366a39cc670b4001a1121b8f6a443a643e40951")
}

/// The wrapped coin of Robinhood Chain, which logs wraps as transfers from zero.
fn coin() -> Account {
    account("0bd7d308f8e1639fab988df18a8011f41eacad73")
}

fn signed(amount: i128) -> Word {
    let mut word = if amount < 0 { [0xff; 32] } else { [0; 32] };
    word[16..].copy_from_slice(&amount.to_be_bytes());
    word
}

fn moved(token: Account, from: Account, to: Account, amount: i128) -> Log {
    let signature = "Transfer(address,address,uint256)";
    log(token, signature, &[word(from), word(to)], &[signed(amount)])
}

/// The log of Uniswap V4's manager for a pool that gave and took these amounts.
fn v4(given: i128, taken: i128) -> Log {
    let state = [number(1 << 60), number(1 << 50), number(1_000), number(3_000)];
    let data = [[signed(given), signed(-taken)].as_slice(), &state].concat();
    log(manager(), V4_SWAP, &[[9; 32], word(SETTLER)], &data)
}

fn deposit(depositor: Account) -> Log {
    let data = [word(depositor), word(BBB), number(7), [3; 32]];
    log(DEPOSITORY, "RelayErc20Deposit(address,address,uint256,bytes32)", &[], &data)
}

/// Robinhood Chain, 0x741e1dbaa446f42e65ca6714d60df667958e35c5e558db702c16c58b3f199689: `AAA` for dollars
/// (`BBB`), in part by `CCC` and by the coin, all of which was wrapped. A hook kept 1.4 % of what the
/// second pool gave.
fn routed(receiver: Account) -> Vec<Log> {
    let by = [SETTLER, manager()];
    let pools: [(i128, i128); 9] = [
        (0x00bc_40fc_cd3a_1178, 0x1e64_c439_9b1c_8a36_43fc),
        (0x1af3_0771_56e8_e37e, 0x4_0945_45b5_70be_316d_b64c),
        (0x2028_aeed, 0x79aa_18da_8d48_b0ab_b765),
        (0x07d7_2e52, 0x1e6a_8636_a352_2c2a_edda),
        (0x0753_615b_26e9_345a, 0x0706_90da_f380_2a21),
        (0x2d59_9b50, 0x0464_5f01_e478_b0d2),
        (0x3270_8c43, 0x04d4_c952_b06c_daf9),
        (0x1027_5973, 0x0189_803b_1449_c993),
        (0x5b6f_5991, 0x08c9_37e7_f4e9_5486),
    ];
    let all = 0x4_bfbe_a900_3c75_987a_9f87;
    let mut logs = vec![moved(AAA, WALLET, ROUTER, all), moved(AAA, ROUTER, SETTLER, all)];
    for (at, (given, taken)) in pools.into_iter().enumerate() {
        let paid = if at < 4 { AAA } else { CCC };
        logs.extend([v4(given, taken), moved(paid, by[0], by[1], taken)]);
        logs.push(match at {
            0 | 4 => moved(coin(), ZERO, SETTLER, given),
            1 => moved(CCC, by[1], by[0], 0x1a92_7152_9198_d405),
            _ => moved(BBB, by[1], by[0], given),
        });
    }
    let (wrapped, dollars) = (0x080f_a257_f423_45d2, 0x54f4_a178);
    let state = [number(1 << 60), number(1 << 50), number(2_000), number(1), number(0)];
    let data = [[signed(wrapped), signed(-dollars)].as_slice(), &state].concat();
    logs.extend([
        moved(BBB, POOL, SETTLER, dollars),
        moved(coin(), SETTLER, POOL, wrapped),
        log(POOL, V3_SWAP, &[word(SETTLER), word(SETTLER)], &data),
        moved(BBB, SETTLER, ROUTER, 0x1_4855_594e),
        moved(BBB, ROUTER, receiver, 0x1_4855_594e),
    ]);
    logs
}

/// The logs as an operation of the wallet, which another account sends.
fn operated(mut logs: Vec<Log>) -> Case {
    logs.push(operation(WALLET, ZERO));
    case(logs).from(OTHER).to(entry_point()).on("robinhood")
}

#[test]
fn a_route_to_a_bridge_whose_coin_was_wrapped_again_is_no_sale() {
    let given = [0x00bc_40fc_cd3a_1178, 0x0753_615b_26e9_345a];
    let calls =
        given.map(|amount| [call(manager(), SETTLER, amount), call(SETTLER, coin(), amount)]);
    let mut bridged = routed(DEPOSITORY);
    bridged.push(deposit(WALLET));
    for logs in [bridged, routed(DEPOSITORY), routed(POOL_2)] {
        let by_operation = operated(logs.clone());
        by_operation.clone().calls(calls.as_flattened()).gives_none(Some(NoteKind::OneSided));
        by_operation.unknown().gives_none(Some(NoteKind::OneSided));
        let sent = case(logs).on("robinhood");
        sent.clone().calls(calls.as_flattened()).gives_none(Some(NoteKind::OneSided));
        sent.unknown().gives_none(Some(NoteKind::OneSided));
    }
}

/// 500 AAA to pools of Uniswap V4, with what else is logged.
fn sold(more: &[Log]) -> Vec<Log> {
    [&[transfer(AAA, WALLET, manager(), 500)], more].concat()
}

#[test]
fn coin_of_pools_that_is_not_exchanged_again_leaves_a_sale() {
    let row = [('s', AAA, 500, None)];
    let wrapped = |amount: u64| transfer(coin(), ZERO, SETTLER, amount);
    let sent = |more: &[Log]| case(sold(more)).on("robinhood").unknown();
    sent(&[v4(100, 500)]).gives(&row);
    sent(&[v4(100, 500), wrapped(70)]).gives(&row);
    // Through a token that stays in the manager.
    sent(&[v4(50, 500), v4(100, 50)]).gives(&row);
    let none = |more: &[Log]| sent(more).gives_none(Some(NoteKind::OneSided));
    none(&[v4(100, 500), wrapped(100), wrapped(30)]);
    none(&[v4(50, 500), v4(100, 50), wrapped(100)]);
    // Wrapped at once for two pools, or taken by another pool.
    let halves = [transfer(AAA, WALLET, manager(), 300), transfer(AAA, WALLET, manager(), 200)];
    let logs = [halves.as_slice(), &[v4(60, 300), v4(40, 200), wrapped(100)]].concat();
    case(logs).on("robinhood").unknown().gives_none(Some(NoteKind::OneSided));
    none(&[v4(100, 500), v4(7, 100), transfer(BBB, manager(), OTHER, 7)]);
}

#[test]
fn coin_that_a_pool_without_signs_gave_and_the_route_wrapped_is_no_sale() {
    let signature = "TokenExchange(address,int128,uint256,int128,uint256)";
    let amounts = [number(1), number(500), number(0), number(100)];
    let given = log(POOL, signature, &[word(ROUTER)], &amounts);
    // A wrap of 1 does not match an amount of the pool: the word is a token's index.
    let dust = vec![transfer(AAA, WALLET, POOL, 500), given.clone(), wrap(ROUTER, 1)];
    case(dust).unknown().gives(&[('s', AAA, 500, None)]);
    let mut logs = vec![transfer(AAA, WALLET, POOL, 500), given, wrap(ROUTER, 100)];
    logs.extend(swap(POOL_2, (weth(), 100, ROUTER), (BBB, 7, OTHER)));
    case(logs.clone()).unknown().gives_none(Some(NoteKind::OneSided));
    case(logs).to(uniswap_v2_router()).unknown().gives_none(Some(NoteKind::OneSided));
}

#[test]
fn a_deposit_of_another_account_in_a_bundle_leaves_a_sale() {
    let with = |depositor: Account| {
        let logs = sold(&[v4(100, 500), deposit(depositor), operation(OTHER, ZERO)]);
        operated(logs).unknown()
    };
    with(OTHER).gives(&[('s', AAA, 500, None)]);
    with(WALLET).gives_none(Some(NoteKind::OneSided));
    // In a transaction that the wallet sends, every deposit counts as its own.
    let sent = case(sold(&[v4(100, 500), deposit(OTHER)])).on("robinhood").unknown();
    sent.gives_none(Some(NoteKind::OneSided));
}

/// What a curve of Bags logs: it wraps 1 of its fee for the token's creator.
fn bags(signature: &str, receiver: Account, amounts: &[u64]) -> [Log; 3] {
    let data: Vec<Word> = amounts.iter().copied().map(number).collect();
    [
        transfer(coin(), ZERO, POOL, 1),
        transfer(coin(), POOL, OTHER, 1),
        log(POOL, signature, &[word(receiver), word(receiver)], &data),
    ]
}

#[test]
fn a_purchase_at_bags_costs_what_was_sent_less_what_came_back() {
    let bought = |back: u64| {
        let signature = "TokensBought(address,address,uint256,uint256,uint256,uint256,uint256,uint256,\
                         uint256,uint256,uint256,uint256)";
        let amounts = [100, 98 - back, 500, 2, 1, 1, back, 9, 9, 9];
        let mut logs = vec![transfer(AAA, POOL, WALLET, 500)];
        logs.extend(bags(signature, WALLET, &amounts));
        case(logs).to(POOL).value(100).on("robinhood")
    };
    let row = |native| [('b', AAA, 500, native)];
    for back in [0, 10] {
        let paid = Some(100 - back);
        let calls = [call(POOL, coin(), 1), call(POOL, CCC, 1), call(POOL, WALLET, back)];
        bought(back).calls(&calls).gives(&row(paid));
        bought(back).unknown().gives(&row(paid));
    }
    bought(0).venues(&["Bags"]);
    bought(0).to(ROUTER).unknown().gives(&row(Some(100)));
    bought(10).to(ROUTER).unknown().gives(&row(None));
}

#[test]
fn a_sale_at_bags_has_the_amount_that_its_event_states() {
    let sold_by = |receiver: Account| {
        let signature = "TokensSold(address,address,uint256,uint256,uint256,uint256,uint256,uint256,\
                         uint256,uint256,uint256)";
        let mut logs = vec![transfer(AAA, receiver, POOL, 500)];
        logs.extend(bags(signature, receiver, &[500, 100, 98, 2, 1, 1, 9, 9, 9]));
        logs
    };
    let direct = case(sold_by(WALLET)).to(POOL).on("robinhood");
    let calls = [call(POOL, coin(), 1), call(POOL, CCC, 1), call(POOL, WALLET, 98)];
    direct.clone().calls(&calls).gives(&[('s', AAA, 500, Some(98))]);
    direct.unknown().gives(&[('s', AAA, 500, Some(98))]);
    let mut through = sold_by(ROUTER);
    through.insert(0, transfer(AAA, WALLET, ROUTER, 500));
    case(through).on("robinhood").unknown().gives(&[('s', AAA, 500, None)]);
}
