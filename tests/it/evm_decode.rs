//! The EVM decoder on hand-written transactions, one rule per test.

use std::sync::LazyLock;

use blotter::decode::evm::{
    Account, Log, NativeFlows, NativeMove, Terms, Transaction, Word, decode, parse,
    parse_flat_trace, parse_trace,
};
use blotter::decode::{Decoded, NoteKind};
use blotter::domain::{Address, Side, Units};
use blotter::registry::{Chain, Registry};
use proptest::prelude::*;
use sha3::{Digest as _, Keccak256};

pub(crate) const ZERO: Account = [0; 20];
pub(crate) const WALLET: Account = [0xa1; 20];
pub(crate) const OTHER: Account = [0xa2; 20];
pub(crate) const ROUTER: Account = [0x10; 20];
pub(crate) const POOL: Account = [0x20; 20];
pub(crate) const POOL_2: Account = [0x21; 20];
pub(crate) const AAA: Account = [0xc1; 20];
pub(crate) const BBB: Account = [0xc2; 20];
pub(crate) const CCC: Account = [0xc3; 20];

const V2_SWAP: &str = "Swap(address,uint256,uint256,uint256,uint256,address)";

pub(crate) fn account(text: &str) -> Account {
    hex::decode(text.trim_start_matches("0x")).unwrap().try_into().unwrap()
}

pub(crate) fn weth() -> Account {
    account("c02aaa39b223fe8d0a0e5c4f27ead9083c756cc2")
}

/// Wrapped coin of the chains made of OP Stack.
fn optimism() -> Account {
    account("4200000000000000000000000000000000000006")
}

pub(crate) fn uniswap_v2_router() -> Account {
    account("7a250d5630b4cf539739df2c5dacb4c659f2488d")
}

/// The contract that runs operations of smart accounts (EIP-4337), version 0.7.
pub(crate) fn entry_point() -> Account {
    account("0000000071727de22e5e9d8baf0edac6f37da032")
}

/// A smart account's operation; the zero address means no sponsor.
pub(crate) fn operation(sender: Account, sponsor: Account) -> Log {
    log(
        entry_point(),
        "UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)",
        &[[1; 32], word(sender), word(sponsor)],
        &[number(0), number(1), number(9), number(9)],
    )
}

pub(crate) fn word(account: Account) -> Word {
    let mut word = Word::default();
    word[12..].copy_from_slice(&account);
    word
}

pub(crate) fn number(value: u64) -> Word {
    Units::from(value).to_be_bytes()
}

pub(crate) fn log(address: Account, signature: &str, topics: &[Word], data: &[Word]) -> Log {
    let first = Keccak256::digest(signature).into();
    let topics = [&[first], topics].concat().into();
    Log { address, topics, data: data.concat() }
}

pub(crate) fn transfer(token: Account, from: Account, to: Account, amount: u64) -> Log {
    let sides = [word(from), word(to)];
    log(token, "Transfer(address,address,uint256)", &sides, &[number(amount)])
}

pub(crate) fn wrap(who: Account, amount: u64) -> Log {
    log(weth(), "Deposit(address,uint256)", &[word(who)], &[number(amount)])
}

pub(crate) fn unwrap(who: Account, amount: u64) -> Log {
    log(weth(), "Withdrawal(address,uint256)", &[word(who)], &[number(amount)])
}

pub(crate) fn v2_swap(pool: Account, amounts: [u64; 4]) -> Log {
    log(pool, V2_SWAP, &[word(ROUTER), word(ROUTER)], &amounts.map(number))
}

/// A swap of a pool: it takes from `from` and gives to `to`.
pub(crate) fn swap(
    pool: Account,
    (sold, sold_units, from): (Account, u64, Account),
    (bought, bought_units, to): (Account, u64, Account),
) -> Vec<Log> {
    vec![
        transfer(sold, from, pool, sold_units),
        transfer(bought, pool, to, bought_units),
        v2_swap(pool, [sold_units, 0, 0, bought_units]),
    ]
}

pub(crate) fn call(from: Account, to: Account, value: u64) -> NativeMove {
    NativeMove { from, to, value: Units::from(value) }
}

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) tx: Transaction,
    pub(crate) chain: &'static str,
    pub(crate) wallet: Account,
}

/// A transaction that the wallet sends to an unknown router.
pub(crate) fn case(logs: Vec<Log>) -> Case {
    let tx = Transaction {
        hash: [7; 32],
        block: 1,
        index: 0,
        producer: None,
        from: WALLET,
        to: Some(ROUTER),
        value: Units::ZERO,
        selector: None,
        terms: Terms::default(),
        succeeded: true,
        logs,
        native: NativeFlows::Calls(Vec::new()),
    };
    Case { tx, chain: "eth", wallet: WALLET }
}

impl Case {
    pub(crate) fn from(mut self, from: Account) -> Self {
        self.tx.from = from;
        self
    }

    pub(crate) fn to(mut self, to: Account) -> Self {
        self.tx.to = Some(to);
        self
    }

    pub(crate) fn value(mut self, value: u64) -> Self {
        self.tx.value = Units::from(value);
        self
    }

    pub(crate) fn calls(mut self, calls: &[NativeMove]) -> Self {
        self.tx.native = NativeFlows::Calls(calls.to_vec());
        self
    }

    pub(crate) fn native(mut self, native: NativeFlows) -> Self {
        self.tx.native = native;
        self
    }

    pub(crate) fn unknown(self) -> Self {
        self.native(NativeFlows::Unknown)
    }

    pub(crate) fn on(mut self, chain: &'static str) -> Self {
        self.chain = chain;
        self
    }

    pub(crate) fn of(mut self, wallet: Account) -> Self {
        self.wallet = wallet;
        self
    }

    pub(crate) fn decode(&self) -> Decoded {
        static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::embedded().unwrap());
        let chain: &Chain = REGISTRY.chain_named(self.chain).unwrap();
        decode(REGISTRY.evm(), chain, &self.wallet, &self.tx)
    }

    /// Rows as (side, token, units, native value).
    #[track_caller]
    pub(crate) fn gives(&self, expected: &[(char, Account, u64, Option<u64>)]) {
        let rows: Vec<_> = self.decode().trades.iter().map(row).collect();
        assert_eq!(rows, expected);
    }

    #[track_caller]
    pub(crate) fn gives_none(&self, kind: Option<NoteKind>) {
        let decoded = self.decode();
        assert_eq!(decoded.trades, []);
        assert_eq!(decoded.notes.first().map(|note| note.kind), kind);
    }

    #[track_caller]
    pub(crate) fn venues(&self, expected: &[&str]) {
        let decoded = self.decode();
        let venues: Vec<&str> = decoded.trades.iter().map(|trade| &*trade.venue).collect();
        assert_eq!(venues, expected);
    }
}

fn row(trade: &blotter::decode::DecodedTrade) -> (char, Account, u64, Option<u64>) {
    let side = if trade.side == Side::Buy { 'b' } else { 's' };
    let Address::Evm(token) = trade.mint else { panic!("a token of another family") };
    (side, token, trade.units.unwrap().to(), trade.native.map(|units| units.to()))
}

/// The wallet sends 100 of native coin and gets 500 AAA.
pub(crate) fn buy() -> Case {
    let mut logs = vec![wrap(ROUTER, 100)];
    logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 500, WALLET)));
    case(logs).value(100).calls(&[call(ROUTER, weth(), 100)])
}

/// The wallet gives 500 AAA and gets 100 of native coin.
pub(crate) fn sell() -> Case {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
    logs.push(unwrap(ROUTER, 100));
    case(logs).calls(&[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100)])
}

#[test]
fn native_coin_against_a_token_is_one_row() {
    buy().gives(&[('b', AAA, 500, Some(100))]);
    sell().gives(&[('s', AAA, 500, Some(100))]);
}

#[test]
fn wrapped_coin_counts_as_native() {
    case(swap(POOL, (weth(), 100, WALLET), (AAA, 500, WALLET))).gives(&[(
        'b',
        AAA,
        500,
        Some(100),
    )]);
    // Half of it wrapped, half of it loose.
    let mut logs = vec![wrap(ROUTER, 50)];
    logs.extend(swap(POOL, (weth(), 100, WALLET), (AAA, 500, WALLET)));
    case(logs).value(50).gives(&[('b', AAA, 500, Some(150))]);
}

#[test]
fn two_tokens_are_two_rows_and_a_hop_values_them() {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, POOL_2));
    logs.extend(swap(POOL_2, (weth(), 100, POOL), (BBB, 7, WALLET)).into_iter().skip(1));
    case(logs.clone()).gives(&[('s', AAA, 500, Some(100)), ('b', BBB, 7, Some(100))]);
    // A fee on what was sold: the other token's cost is still known.
    logs.push(transfer(AAA, WALLET, OTHER, 5));
    case(logs.clone()).gives(&[('s', AAA, 505, Some(100)), ('b', BBB, 7, Some(100))]);
    // Fees on both tokens: no pool exchanged the whole amount.
    logs.push(transfer(BBB, WALLET, OTHER, 1));
    case(logs).gives(&[('s', AAA, 505, None), ('b', BBB, 6, None)]);
    case(swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET)))
        .gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
}

#[test]
fn several_tokens_against_native_coin_each_have_their_own_part() {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 60, ROUTER));
    logs.extend(swap(POOL_2, (BBB, 7, WALLET), (weth(), 40, ROUTER)));
    logs.push(unwrap(ROUTER, 100));
    let whole = case(logs).calls(&[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100)]);
    whole.gives(&[('s', AAA, 500, Some(60)), ('s', BBB, 7, Some(40))]);
    // With a fee in between, the parts do not add up to what the wallet got.
    let with_fee = whole.calls(&[call(ROUTER, WALLET, 99), call(ROUTER, OTHER, 1)]);
    with_fee.gives(&[('s', AAA, 500, None), ('s', BBB, 7, None)]);
}

#[test]
fn a_sale_and_a_purchase_against_native_coin_have_values_of_their_own() {
    let mut logs = vec![wrap(ROUTER, 100)];
    logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 500, WALLET)));
    logs.extend(swap(POOL_2, (BBB, 7, WALLET), (weth(), 60, ROUTER)));
    logs.push(unwrap(ROUTER, 60));
    let calls = [call(ROUTER, weth(), 100), call(weth(), ROUTER, 60), call(ROUTER, WALLET, 60)];
    let both = case(logs).value(100).calls(&calls);
    both.gives(&[('s', BBB, 7, Some(60)), ('b', AAA, 500, Some(100))]);
    // With a fee in between, one of them is unknown.
    both.value(101).gives(&[('s', BBB, 7, None), ('b', AAA, 500, None)]);
}

#[test]
fn what_came_back_is_netted() {
    let mut refunded = buy().value(130);
    refunded.tx.native =
        NativeFlows::Calls(vec![call(ROUTER, weth(), 100), call(ROUTER, WALLET, 30)]);
    refunded.gives(&[('b', AAA, 500, Some(100))]);
    let mut logs = swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET));
    logs.push(transfer(AAA, ROUTER, WALLET, 20));
    case(logs).gives(&[('s', AAA, 480, None), ('b', BBB, 7, None)]);
}

#[test]
fn a_fee_on_transfer_is_part_of_what_was_paid() {
    let logs = vec![
        transfer(AAA, WALLET, AAA, 5),
        transfer(AAA, WALLET, POOL, 95),
        transfer(weth(), POOL, WALLET, 10),
        v2_swap(POOL, [95, 0, 0, 10]),
    ];
    case(logs).gives(&[('s', AAA, 100, Some(10))]);
}

#[test]
fn a_constructor_that_buys_spends_its_value() {
    let mut created = buy();
    created.tx.to = None;
    created.gives(&[('b', AAA, 500, Some(100))]);
    created.clone().unknown().gives(&[('b', AAA, 500, Some(100))]);
    // A part came back.
    let kept = created.value(130);
    kept.clone().calls(&[call(ROUTER, weth(), 100), call(ROUTER, WALLET, 30)]).gives(&[(
        'b',
        AAA,
        500,
        Some(100),
    )]);
    kept.unknown().gives(&[('b', AAA, 500, None)]);
}

#[test]
fn a_failed_transaction_holds_no_trade() {
    let mut failed = buy();
    failed.tx.succeeded = false;
    failed.gives_none(None);
}

#[test]
fn transfers_wraps_and_approvals_are_no_trades() {
    case(vec![transfer(AAA, WALLET, OTHER, 5), transfer(BBB, OTHER, WALLET, 6)]).gives_none(None);
    case(vec![wrap(WALLET, 100)]).to(weth()).value(100).gives_none(None);
    case(vec![unwrap(WALLET, 100)]).to(weth()).calls(&[call(weth(), WALLET, 100)]).gives_none(None);
    // Through an aggregator too, with any event.
    let named = [word(WALLET), word(weth()), word([0xee; 20]), word(WALLET), number(9), number(9)];
    let signature = "Swapped(address,address,address,address,uint256,uint256)";
    let logs = vec![
        transfer(weth(), WALLET, ROUTER, 100),
        unwrap(ROUTER, 100),
        log(ROUTER, signature, &[], &named),
    ];
    case(logs).calls(&[call(ROUTER, WALLET, 100)]).gives_none(None);
}

#[test]
fn a_wallet_that_only_gives_or_only_receives_does_not_trade() {
    let mut out = buy();
    out.tx.logs = swap(POOL, (weth(), 100, ROUTER), (AAA, 500, OTHER));
    out.clone().of(OTHER).gives_none(Some(NoteKind::OneSided));
    out.gives_none(None);
    case(swap(POOL, (AAA, 500, WALLET), (BBB, 7, OTHER))).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn shares_of_pools_and_vaults_are_no_trades() {
    // Liquidity added by one token: half is swapped, the pool mints its share.
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
    logs.push(transfer(POOL, ZERO, WALLET, 3));
    case(logs).gives_none(Some(NoteKind::Liquidity));
    // During the deposit the vault sells its rewards, and pays the caller for it.
    let mut logs = vec![transfer(AAA, WALLET, ROUTER, 500)];
    logs.extend(swap(POOL, (BBB, 9, ROUTER), (AAA, 5, ROUTER)));
    logs.extend([transfer(weth(), ROUTER, WALLET, 1), transfer(CCC, ZERO, WALLET, 480)]);
    case(logs).gives_none(Some(NoteKind::Liquidity));
    // A withdrawal whose proceeds are swapped.
    let mut logs = vec![transfer(CCC, WALLET, ZERO, 480)];
    logs.extend(swap(POOL, (AAA, 500, ROUTER), (weth(), 100, WALLET)));
    case(logs).gives_none(Some(NoteKind::Liquidity));
    // A Balancer pool id begins with the pool's address; its share is bought by adding liquidity.
    let vault = account("ba12222222228d8ba445958a75a0704d566bf2c8");
    let mut pool = Word::default();
    pool[..20].copy_from_slice(&CCC);
    let signature = "Swap(bytes32,address,address,uint256,uint256)";
    let logs = vec![
        transfer(AAA, WALLET, vault, 500),
        transfer(CCC, vault, WALLET, 480),
        log(vault, signature, &[pool, word(AAA), word(CCC)], &[number(500), number(480)]),
    ];
    case(logs).to(vault).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn tokens_of_one_kind_and_positions_are_no_trades() {
    let nft = Log {
        address: CCC,
        topics: vec![
            Keccak256::digest("Transfer(address,address,uint256)").into(),
            word(OTHER),
            word(WALLET),
            number(1),
        ]
        .into(),
        data: Vec::new(),
    };
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
    logs.extend([transfer(weth(), ROUTER, WALLET, 1), nft]);
    case(logs).gives_none(Some(NoteKind::OneSided));
    let signature = "IncreaseLiquidity(uint256,uint128,uint256,uint256)";
    let algebra = "IncreaseLiquidity(uint256,uint128,uint128,uint256,uint256,address)";
    let pool = [[number(1); 4].as_slice(), &[word(POOL)]].concat();
    for grown in
        [log(CCC, signature, &[number(1)], &[number(1); 3]), log(CCC, algebra, &[number(1)], &pool)]
    {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
        logs.extend([grown, transfer(weth(), ROUTER, WALLET, 1)]);
        case(logs).gives_none(Some(NoteKind::Liquidity));
    }
}

/// Uniswap V4's event: liquidity that a contract adds or removes.
fn v4_liquidity(by: Account, removed: bool) -> Log {
    let signature = "ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32)";
    let delta = if removed { Units::from(5).wrapping_neg() } else { Units::from(5) };
    let data = [number(0), number(60), delta.to_be_bytes(), number(1)];
    log(account("000000000004444c5dc75cb358380d2e3de08a90"), signature, &[[9; 32], word(by)], &data)
}

#[test]
fn change_of_a_position_that_its_contract_adds_to_is_no_trade() {
    let positions = account("bd216513d74c8cf14cf4747e6aaa6420ff64ee9e");
    let with = |liquidity: Log| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
        logs.extend([liquidity, transfer(weth(), ROUTER, WALLET, 1)]);
        case(logs)
    };
    with(v4_liquidity(positions, false)).gives_none(Some(NoteKind::Liquidity));
    with(v4_liquidity(positions, true)).gives(&[('s', AAA, 500, Some(1))]);
    // A hook moves liquidity of its own while others swap.
    with(v4_liquidity(OTHER, false)).gives(&[('s', AAA, 500, Some(1))]);
}

/// A zap swaps a half, adds both halves to the pair for a farm, and gives the rest back.
#[test]
fn change_of_liquidity_that_is_held_elsewhere_is_no_trade() {
    let zapped = |bought: Account, given: u64, added: u64| {
        let minted = [number(250), number(added)];
        let mut logs = vec![transfer(AAA, WALLET, ROUTER, 500)];
        logs.extend(swap(POOL, (AAA, 240, ROUTER), (bought, given, ROUTER)));
        logs.extend([
            transfer(AAA, ROUTER, POOL, 250),
            transfer(bought, ROUTER, POOL, 23),
            log(POOL, "Mint(address,uint256,uint256)", &[word(ROUTER)], &minted),
            transfer(POOL, ZERO, OTHER, 70),
            transfer(AAA, ROUTER, WALLET, 10),
        ]);
        logs
    };
    let in_token = |given: u64, added: u64| {
        let mut logs = zapped(BBB, given, added);
        logs.push(transfer(BBB, ROUTER, WALLET, given - 23));
        case(logs)
    };
    in_token(24, 23).gives_none(Some(NoteKind::OneSided));
    // More came back than was added; another amount was added.
    in_token(47, 23).gives(&[('s', AAA, 490, None), ('b', BBB, 24, None)]);
    in_token(24, 22).gives(&[('s', AAA, 490, None), ('b', BBB, 1, None)]);
    let in_coin = |given: u64| {
        let mut logs = zapped(weth(), given, 23);
        logs.push(unwrap(ROUTER, given - 23));
        case(logs).calls(&[call(weth(), ROUTER, given - 23), call(ROUTER, WALLET, given - 23)])
    };
    in_coin(24).gives_none(Some(NoteKind::OneSided));
    in_coin(47).gives(&[('s', AAA, 490, Some(24))]);
    // Into a pair of two other assets: change of both.
    let mut logs = swap(POOL_2, (AAA, 240, WALLET), (BBB, 24, ROUTER));
    logs.extend(swap(CCC, (AAA, 260, WALLET), (weth(), 25, ROUTER)));
    logs.extend([
        transfer(BBB, ROUTER, POOL, 23),
        transfer(weth(), ROUTER, POOL, 23),
        log(POOL, "Mint(address,uint256,uint256)", &[word(ROUTER)], &[number(23); 2]),
        transfer(POOL, ZERO, OTHER, 23),
        transfer(BBB, ROUTER, WALLET, 1),
        unwrap(ROUTER, 2),
    ]);
    let both = case(logs).calls(&[call(weth(), ROUTER, 2), call(ROUTER, WALLET, 2)]);
    both.gives_none(Some(NoteKind::OneSided));
}

/// During a sale another account sells the token too, or adds it to the pool with coin.
#[test]
fn what_the_router_pays_or_adds_for_another_seller_hides_no_sale() {
    let sold = |others: Vec<Log>, calls: &[NativeMove]| {
        let own = swap(POOL, (AAA, 500, WALLET), (weth(), 5, ROUTER));
        let paid = [calls, &[call(weth(), ROUTER, 5), call(ROUTER, WALLET, 5)]].concat();
        case([others, own, vec![unwrap(ROUTER, 5)]].concat()).calls(&paid)
    };
    let row = [('s', AAA, 500, Some(5))];
    let mut fees = swap(POOL, (AAA, 800, OTHER), (weth(), 8, ROUTER));
    fees.push(unwrap(ROUTER, 8));
    let paid = [call(weth(), ROUTER, 8), call(ROUTER, OTHER, 8)];
    sold(fees, &paid).gives(&row);
    let minted = [number(800), number(8)];
    let added = vec![
        transfer(AAA, OTHER, POOL, 800),
        wrap(ROUTER, 8),
        transfer(weth(), ROUTER, POOL, 8),
        log(POOL, "Mint(address,uint256,uint256)", &[word(ROUTER)], &minted),
    ];
    sold(added, &[call(OTHER, ROUTER, 8), call(ROUTER, weth(), 8)]).gives(&row);
    // What the router pays on is the wallet's where it alone sold, but for what a route had left.
    for rest in [Vec::new(), vec![transfer(AAA, ROUTER, POOL, 250)]] {
        sold(rest, &[call(ROUTER, OTHER, 8)]).gives_none(Some(NoteKind::OneSided));
    }
}

#[test]
fn the_first_purchase_of_a_token_that_is_launched_into_a_position_is_a_trade() {
    let signature = "IncreaseLiquidity(uint256,uint128,uint256,uint256)";
    let launch = |amounts: [u64; 2], minted: Account| {
        let mut logs = vec![
            transfer(AAA, minted, OTHER, 1_000),
            transfer(AAA, OTHER, POOL, 1_000),
            log(CCC, signature, &[number(1)], &[number(7), number(amounts[0]), number(amounts[1])]),
            wrap(ROUTER, 100),
        ];
        logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 40, WALLET)));
        case(logs).value(100)
    };
    launch([0, 1_000], ZERO).gives(&[('b', AAA, 40, Some(100))]);
    // Coin that went into the position is not the price of the rest.
    launch([9, 1_000], ZERO).gives_none(Some(NoteKind::Liquidity));
    launch([0, 1_000], OTHER).gives_none(Some(NoteKind::Liquidity));
}

/// The creator gives 150: 50 for the pool and the rest for its first purchase, less what the launch
/// costs.
#[test]
fn coin_of_the_pool_of_a_launched_token_is_not_its_price() {
    let launched = |minted: Account, added: u64| {
        let minted_share = [number(900), number(added)];
        let mut logs = vec![
            transfer(AAA, minted, ROUTER, 900),
            wrap(ROUTER, 150),
            transfer(AAA, ROUTER, POOL, 900),
            transfer(weth(), ROUTER, POOL, 50),
            log(POOL, "Mint(address,uint256,uint256)", &[word(ROUTER)], &minted_share),
            transfer(POOL, ZERO, OTHER, 30),
        ];
        logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 40, WALLET)));
        case(logs).value(150).calls(&[call(ROUTER, weth(), 150)])
    };
    launched(ZERO, 50).gives(&[('b', AAA, 40, None)]);
    // The token existed; no liquidity of that amount was added.
    let row = [('b', AAA, 40, Some(150))];
    launched(OTHER, 50).gives(&row);
    launched(ZERO, 51).gives(&row);
    // A route that adds coin to a pool of another token on the way.
    let mut routed = launched(ZERO, 51);
    let added =
        log(POOL_2, "Mint(address,uint256,uint256)", &[word(ROUTER)], &[number(1), number(30)]);
    routed.tx.logs.extend([transfer(weth(), ROUTER, POOL_2, 30), added]);
    routed.gives(&row);
}

#[test]
fn a_token_of_its_kind_for_the_creator_leaves_the_first_purchase_one() {
    let launch = |minted: Account, from: Account, token: Account| {
        let nft = [word(from), word(WALLET), number(1)];
        let mut logs = vec![
            transfer(AAA, minted, POOL, 1_000),
            log(token, "Transfer(address,address,uint256)", &nft, &[]),
            wrap(ROUTER, 100),
        ];
        logs.extend(swap(POOL, (weth(), 100, ROUTER), (AAA, 40, WALLET)));
        case(logs).value(100).calls(&[call(ROUTER, weth(), 100)])
    };
    launch(ZERO, ZERO, CCC).gives(&[('b', AAA, 40, Some(100))]);
    // The token existed; it was another's; it is a position.
    launch(OTHER, ZERO, CCC).gives_none(Some(NoteKind::OneSided));
    launch(ZERO, OTHER, CCC).gives_none(Some(NoteKind::OneSided));
    let positions = account("c36442b4a4522e871399cd717abdd847ab11fe88");
    launch(ZERO, ZERO, positions).gives_none(Some(NoteKind::Liquidity));
}

#[test]
fn native_coin_next_to_an_unknown_token_is_a_fee() {
    let mut logs = swap(POOL, (BBB, 9, ROUTER), (AAA, 500, WALLET));
    logs.push(transfer(CCC, WALLET, ROUTER, 4));
    case(logs).value(1).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn a_pool_is_no_trader() {
    buy().of(POOL).gives_none(None);
}

#[test]
fn mirrors_are_no_tokens() {
    let old = account("cb444e90d8198415266c6a2724b7900fb12fc56e");
    let new = account("420ca0f9b9b604ce0fd9c18ef134c705e5fa3430");
    let wxdai = account("e91d153e0b41518a2ce8dd3d7944fa863463a97d");
    let repeated = vec![
        transfer(new, WALLET, POOL, 500),
        transfer(old, WALLET, POOL, 500),
        transfer(wxdai, POOL, WALLET, 100),
        v2_swap(POOL, [500, 0, 0, 100]),
    ];
    case(repeated.clone()).on("gnosis").gives(&[('s', new, 500, Some(100))]);
    // Before the new contract existed, the old one was the token.
    let alone: Vec<Log> = repeated.into_iter().skip(1).collect();
    case(alone).on("gnosis").gives(&[('s', old, 500, Some(100))]);
}

#[test]
fn polygon_logs_its_native_coin() {
    let matic = account("0000000000000000000000000000000000001010");
    let wpol = account("0d500b1d8e8ef31e21c99d1db9a6444d3adf1270");
    let native = |kind: &str, from: Account, to: Account, amount: u64| {
        let signature = format!("{kind}(address,address,address,{})", ["uint256"; 5].join(","));
        let topics = [word(matic), word(from), word(to)];
        log(matic, &signature, &topics, &[number(amount); 5])
    };
    let mut logs = swap(POOL, (AAA, 500, WALLET), (wpol, 100, ROUTER));
    logs.push(native("LogTransfer", wpol, ROUTER, 100));
    logs.push(native("LogTransfer", ROUTER, WALLET, 97));
    let without_fee = case(logs.clone()).on("polygon").unknown();
    logs.push(native("LogFeeTransfer", WALLET, OTHER, 1));
    case(logs).on("polygon").unknown().gives(&[('s', AAA, 500, Some(97))]);
    // Without the last log, nothing shows that the list is complete.
    without_fee.gives_none(Some(NoteKind::OneSided));
}

#[test]
fn a_balance_difference_is_the_native_value() {
    let net = NativeFlows::Net { gained: Units::from(97), lost: Units::ZERO };
    sell().native(net).gives(&[('s', AAA, 500, Some(97))]);
    let net = NativeFlows::Net { gained: Units::ZERO, lost: Units::from(88) };
    buy().value(100).native(net).gives(&[('b', AAA, 500, Some(88))]);
}

#[test]
fn without_calls_a_buy_is_valued_only_where_nothing_can_have_come_back() {
    // All of the value was wrapped.
    buy().unknown().gives(&[('b', AAA, 500, Some(100))]);
    // Only part was wrapped: the rest may be a fee or a refund.
    buy().value(130).unknown().gives(&[('b', AAA, 500, None)]);
    // The Uniswap router always refunds the rest.
    let mut logs = vec![wrap(uniswap_v2_router(), 100)];
    logs.extend(swap(POOL, (weth(), 100, uniswap_v2_router()), (AAA, 500, WALLET)));
    let router = case(logs).to(uniswap_v2_router()).value(130).unknown();
    router.gives(&[('b', AAA, 500, Some(100))]);
}

#[test]
fn without_calls_a_sell_is_valued_only_where_the_protocol_guarantees_it() {
    sell().unknown().gives(&[('s', AAA, 500, None)]);
    let router = uniswap_v2_router();
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, router));
    logs.push(unwrap(router, 100));
    case(logs.clone()).to(router).unknown().gives(&[('s', AAA, 500, Some(100))]);
    // Another account unwrapped too: the shares are unknown.
    logs.push(unwrap(OTHER, 5));
    case(logs).to(router).unknown().gives(&[('s', AAA, 500, None)]);
}

#[test]
fn an_event_that_states_the_payout_values_a_sell() {
    let kyber = account("6131b5fae19ea4f9d964eac0408e4408b66337b5");
    let paid_to = |receiver: Account| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, kyber));
        logs.push(unwrap(kyber, 100));
        let native = word([0xee; 20]);
        let stated = [word(WALLET), word(AAA), native, word(receiver), number(500), number(99)];
        logs.push(log(
            kyber,
            "Swapped(address,address,address,address,uint256,uint256)",
            &[],
            &stated,
        ));
        case(logs).to(kyber).unknown()
    };
    paid_to(WALLET).gives(&[('s', AAA, 500, Some(99))]);
    paid_to(OTHER).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn coin_that_went_on_to_a_bridge_is_no_sale() {
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
    logs.push(unwrap(ROUTER, 100));
    logs.push(log(OTHER, "Deposited(uint256)", &[], &[number(100)]));
    case(logs).unknown().gives_none(Some(NoteKind::OneSided));
}

fn cow_trade(owner: Account, sold: (Account, u64), bought: (Account, u64)) -> Log {
    let settlement = account("9008d19f58aabd9ed0d60971565aa8510560ab41");
    let (sell, buy) = (word(sold.0), word(bought.0));
    let data = [sell, buy, number(sold.1), number(bought.1), number(0), number(192), number(0)];
    let signature = "Trade(address,address,address,uint256,uint256,uint256,bytes)";
    log(settlement, signature, &[word(owner)], &data)
}

#[test]
fn a_batch_holds_the_trades_of_several_wallets() {
    let settlement = account("9008d19f58aabd9ed0d60971565aa8510560ab41");
    let logs = vec![
        cow_trade(WALLET, (AAA, 500), (BBB, 7)),
        cow_trade(OTHER, (BBB, 8), ([0xee; 20], 100)),
        transfer(AAA, WALLET, settlement, 500),
        transfer(BBB, OTHER, settlement, 8),
        unwrap(settlement, 300),
        transfer(BBB, settlement, WALLET, 7),
    ];
    let batch = case(logs).from(ROUTER).to(settlement);
    let paid = batch.clone().calls(&[call(settlement, OTHER, 100)]);
    paid.gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
    paid.clone().of(OTHER).gives(&[('s', BBB, 8, Some(100))]);
    // The event states the payout if calls are unknown.
    batch.unknown().of(OTHER).gives(&[('s', BBB, 8, Some(100))]);
    paid.venues(&["CoW Swap", "CoW Swap"]);
}

#[test]
fn an_order_may_have_been_paid_in_an_earlier_transaction() {
    let settlement = account("9008d19f58aabd9ed0d60971565aa8510560ab41");
    let eth_flow = account("40a50cf069e992aa4536211b23f286ef88752187");
    let settled = |owner: Account, bought: u64| {
        let logs = vec![
            cow_trade(owner, (weth(), 100), (AAA, bought)),
            transfer(AAA, settlement, WALLET, 500),
        ];
        case(logs).from(ROUTER).to(settlement)
    };
    settled(eth_flow, 500).gives(&[('b', AAA, 500, Some(100))]);
    settled(eth_flow, 500).unknown().gives(&[('b', AAA, 500, Some(100))]);
    settled(eth_flow, 499).gives_none(Some(NoteKind::OneSided));
    settled(OTHER, 500).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn a_filled_order_trades_for_both_its_sides() {
    let exchange = account("1111111254eeb25477b68fb85ed929f73a960582");
    let logs = vec![
        transfer(AAA, OTHER, WALLET, 500),
        transfer(BBB, WALLET, OTHER, 7),
        log(
            exchange,
            "OrderFilled(address,bytes32,uint256)",
            &[word(OTHER)],
            &[[9; 32], number(0)],
        ),
    ];
    let filled = case(logs).to(exchange);
    filled.gives(&[('s', BBB, 7, None), ('b', AAA, 500, None)]);
    filled.of(OTHER).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
}

#[test]
fn a_known_router_needs_no_event() {
    let paraswap = account("6a000f20005980200259b80c5102003040001068");
    let logs = vec![transfer(AAA, WALLET, OTHER, 500), transfer(BBB, OTHER, WALLET, 7)];
    case(logs.clone()).gives_none(None);
    case(logs).to(paraswap).gives(&[('s', AAA, 500, None), ('b', BBB, 7, None)]);
}

#[test]
fn a_smart_account_pays_by_inner_calls() {
    let mut operated = buy().from(OTHER).to(entry_point()).value(3);
    operated.tx.logs.push(operation(WALLET, ZERO));
    let traced = operated.clone().calls(&[call(WALLET, ROUTER, 100), call(ROUTER, weth(), 100)]);
    traced.gives(&[('b', AAA, 500, Some(100))]);
    // The payment for the network fee is not part of the trade.
    let paid =
        [call(WALLET, entry_point(), 7), call(WALLET, ROUTER, 100), call(ROUTER, weth(), 100)];
    operated.clone().calls(&paid).gives(&[('b', AAA, 500, Some(100))]);
    // The value that the bundler sent is not the wallet's.
    traced.of(OTHER).gives_none(None);
    operated.unknown().gives(&[('b', AAA, 500, None)]);
}

/// An operation without a sponsor names the zero address, to which tokens are burnt and from which they
/// are minted.
#[test]
fn the_zero_address_sponsors_nothing() {
    let operated = |mut logs: Vec<Log>| {
        logs.push(operation(WALLET, ZERO));
        case(logs).from(OTHER).to(entry_point()).calls(&[])
    };
    // Liquidity added by one token, with what is left over.
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, ROUTER));
    logs.extend([transfer(POOL, ZERO, WALLET, 3), transfer(weth(), ROUTER, WALLET, 1)]);
    operated(logs).gives_none(Some(NoteKind::Liquidity));
    // A token that burns a part of what is sold.
    let mut logs = swap(POOL, (AAA, 98, WALLET), (weth(), 100, WALLET));
    logs.push(transfer(AAA, WALLET, ZERO, 2));
    operated(logs).gives(&[('s', AAA, 100, Some(100))]);
}

#[test]
fn an_account_with_code_calls_itself() {
    // EIP-7702: the wallet is sender and recipient, and pays in inner calls.
    let itself = buy().to(WALLET).value(0);
    let traced = itself.clone().calls(&[call(WALLET, ROUTER, 100), call(ROUTER, weth(), 100)]);
    traced.gives(&[('b', AAA, 500, Some(100))]);
    itself.unknown().gives(&[('b', AAA, 500, None)]);
}

#[test]
fn a_pool_is_named_by_its_factory_or_its_router() {
    let usdc = account("a0b86991c6218b36c1d19d4a2e9eb0ce3606eb48");
    // The well-known pair of USDC and WETH.
    let pair = account("b4e16d0168e52d35cacd2c6185b44281ec28c9dc");
    case(swap(pair, (weth(), 100, WALLET), (usdc, 500, WALLET))).venues(&["Uniswap V2"]);
    case(swap(POOL, (weth(), 100, WALLET), (AAA, 500, WALLET)))
        .venues(&["0x2020202020202020202020202020202020202020"]);
    // 0.05 % pool of the same pair.
    let v3 = account("88e6a0c2ddd26feeb64f039a2c41296fcb3f5640");
    let signature = "Swap(address,address,int256,int256,uint160,uint128,int24)";
    let logs = vec![
        transfer(weth(), WALLET, v3, 100),
        transfer(usdc, v3, WALLET, 500),
        log(v3, signature, &[word(ROUTER); 2], &[number(1); 5]),
    ];
    case(logs).venues(&["Uniswap V3"]);
    // Aerodrome's own pool of WETH and USDC, volatile: a clone.
    let (base, usdbc) = (optimism(), account("833589fcd6edb6e08f4c7c32d4f71b54bda02913"));
    let pool = account("cdac0d6c6c59727a65f871236188350531885c43");
    let logs = vec![
        transfer(base, WALLET, pool, 100),
        transfer(usdbc, pool, WALLET, 500),
        log(
            pool,
            "Swap(address,address,uint256,uint256,uint256,uint256)",
            &[word(ROUTER); 2],
            &[number(1); 4],
        ),
    ];
    case(logs).on("base").venues(&["Aerodrome"]);
    let velodrome = account("9c12939390052919af3155f41bf4160fd3666a6f");
    let optimism = optimism();
    let logs = vec![
        transfer(optimism, WALLET, POOL, 100),
        transfer(AAA, POOL, WALLET, 500),
        log(POOL, V2_SWAP, &[word(velodrome), word(WALLET)], &[100, 0, 0, 500].map(number)),
    ];
    case(logs).on("optimism").venues(&["Velodrome V1"]);
}

#[test]
fn a_pool_is_not_named_after_a_protocol_that_its_chain_lacks() {
    let pool = "0x2020202020202020202020202020202020202020";
    let swapped = || case(swap(POOL, (AAA, 100, WALLET), (BBB, 500, WALLET)));
    swapped().on("berachain").venues(&[pool; 2]);
    // The tables have no factory for this chain, so the protocol's name is used.
    swapped().on("sei").venues(&["Uniswap V2"; 2]);
}

#[test]
fn the_largest_share_names_a_split_route() {
    let curve = "TokenExchange(address,int128,uint256,int128,uint256)";
    let mut logs = swap(POOL, (AAA, 300, WALLET), (BBB, 3, WALLET));
    logs.extend([
        transfer(AAA, WALLET, POOL_2, 500),
        transfer(BBB, POOL_2, WALLET, 5),
        log(POOL_2, curve, &[word(ROUTER)], &[number(0), number(500), number(1), number(5)]),
    ]);
    case(logs).venues(&["Curve", "Curve"]);
}

#[test]
fn a_launchpad_may_mint_what_it_sells() {
    let four = account("5c952063c7fc8610ffdb798152d69f0b9550762b");
    let signature =
        "TokenPurchase(address,address,uint256,uint256,uint256,uint256,uint256,uint256)";
    let stated = [word(AAA), word(WALLET), number(1), number(500), number(99), number(1)];
    let logs = vec![
        transfer(AAA, four, WALLET, 500),
        log(four, signature, &[], &[&stated[..], &[number(0); 2]].concat()),
    ];
    let bought = case(logs).on("bsc").to(four).value(120).calls(&[call(four, WALLET, 20)]);
    bought.gives(&[('b', AAA, 500, Some(100))]);
    bought.venues(&["Four.meme"]);
    // Its creator pays for the launch too.
    let launched = |creator| {
        let words = [word(creator), word(AAA), number(3), number(256), number(320)];
        let stated = [&words[..], &[number(900), number(4), number(10)]].concat();
        let signature =
            "TokenCreate(address,address,uint256,string,string,uint256,uint256,uint256)";
        let mut launched = bought.clone().value(130);
        launched.tx.logs.insert(0, log(four, signature, &[], &stated));
        launched
    };
    launched(WALLET).gives(&[('b', AAA, 500, Some(100))]);
    launched(OTHER).gives(&[('b', AAA, 500, Some(110))]);
}

#[test]
fn a_topic_that_others_share_counts_only_from_known_contracts() {
    let psm = "Swap(address,address,address,address,uint256,uint256,uint256)";
    let topics = [word(AAA), word(BBB), word(OTHER)];
    let logs = |emitter: Account| {
        vec![
            transfer(AAA, WALLET, emitter, 500),
            transfer(BBB, emitter, WALLET, 500),
            log(emitter, psm, &topics, &[word(WALLET), number(500), number(500), number(0)]),
        ]
    };
    // A conversion at a fixed price, by any account.
    case(logs(OTHER)).gives_none(None);
}

fn arbitrary_account() -> impl Strategy<Value = Account> {
    let known = [ZERO, WALLET, OTHER, ROUTER, POOL, POOL_2, AAA, BBB, weth(), uniswap_v2_router()];
    let settlement = account("9008d19f58aabd9ed0d60971565aa8510560ab41");
    let eth_flow = account("40a50cf069e992aa4536211b23f286ef88752187");
    prop::sample::select([&known[..], &[settlement, eth_flow, [0xee; 20]]].concat())
}

fn arbitrary_word() -> impl Strategy<Value = Word> {
    prop_oneof![
        4 => arbitrary_account().prop_map(word),
        4 => (0_u64..1_000).prop_map(number),
        1 => any::<Word>(),
        1 => Just([0xff; 32]),
    ]
}

fn arbitrary_log() -> impl Strategy<Value = Log> {
    let signatures = vec![
        "Transfer(address,address,uint256)",
        "Deposit(address,uint256)",
        "Withdrawal(address,uint256)",
        V2_SWAP,
        "Swap(bytes32,address,address,uint256,uint256)",
        "Swapped(address,address,address,address,uint256,uint256)",
        "Trade(address,address,address,uint256,uint256,uint256,bytes)",
        "OrderFilled(bytes32,uint256)",
        "Mint(address,uint256,uint256)",
        "UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)",
    ];
    let transfers = (arbitrary_account(), arbitrary_account(), arbitrary_account(), 0_u64..1_000)
        .prop_map(|(token, from, to, amount)| transfer(token, from, to, amount));
    let events = (
        arbitrary_account(),
        prop::sample::select(signatures),
        prop::collection::vec(arbitrary_word(), 0..4),
        prop::collection::vec(arbitrary_word(), 0..9),
        0_usize..40,
    )
        .prop_map(|(address, signature, topics, data, cut)| {
            let mut event = log(address, signature, &topics, &data);
            event.data.truncate(event.data.len().saturating_sub(cut));
            event
        });
    prop_oneof![transfers, events]
}

fn arbitrary_native() -> impl Strategy<Value = NativeFlows> {
    let moved = (arbitrary_account(), arbitrary_account(), 1_u64..1_000)
        .prop_map(|(from, to, value)| call(from, to, value));
    prop_oneof![
        Just(NativeFlows::Unknown),
        prop::collection::vec(moved, 0..6).prop_map(NativeFlows::Calls),
        (0_u64..1_000, 0_u64..1_000).prop_map(|(gained, lost)| NativeFlows::Net {
            gained: Units::from(gained),
            lost: Units::from(lost),
        }),
    ]
}

/// The sum of a token's transfers from and to the wallet.
fn gross(tx: &Transaction, token: &Account) -> Units {
    let topic: Word = Keccak256::digest("Transfer(address,address,uint256)").into();
    let mut sum = Units::ZERO;
    for log in tx.logs.iter().filter(|log| log.address == *token) {
        let sides: Vec<&Word> = match log.topics.as_slice() {
            [first, from, to] if *first == topic => vec![from, to],
            _ => log.data.as_chunks::<32>().0.iter().take(2).collect(),
        };
        let amount = if log.topics.len() == 3 { 0 } else { 2 };
        let Some(amount) = log.data.as_chunks::<32>().0.get(amount) else { continue };
        if sides.iter().any(|side| **side == word(WALLET)) {
            sum = sum.saturating_add(Units::from_be_bytes(*amount));
        }
    }
    sum
}

proptest! {
    /// Any answer of a node is parsed or rejected.
    #[test]
    fn hostile_answers_are_refused(
        cut in 0_usize..400,
        put in any::<Vec<u8>>(),
        at in 0_usize..400,
    ) {
        let tx = format!(
            r#"{{"hash":"0x{0}","blockNumber":"0x1","transactionIndex":"0x0","from":"0x{1}","to":null}}"#,
            hex::encode([7; 32]),
            hex::encode(WALLET),
        );
        let topic = hex::encode([9; 32]);
        let receipt = format!(
            r#"{{"transactionHash":"0x{0}","logs":[{{"address":"0x{1}","topics":["0x{topic}"],"data":"0x"}}]}}"#,
            hex::encode([7; 32]),
            hex::encode(AAA),
        );
        let trace = r#"{"type":"CALL","calls":[{"type":"CREATE","value":"0x1","calls":[]}]}"#;
        prop_assert!(parse(tx.as_bytes(), receipt.as_bytes()).is_ok());
        let broken = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.min(bytes.len());
            bytes.splice(at..(at + cut.min(9)).min(bytes.len()), put.iter().copied());
            bytes
        };
        let _ = parse(&broken(&tx), receipt.as_bytes());
        let _ = parse(tx.as_bytes(), &broken(&receipt));
        let _ = parse_trace(&broken(trace));
        let _ = parse_flat_trace(&broken(trace));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// For any events, nothing panics and no row exceeds the wallet's movements.
    #[test]
    fn hostile_logs_never_break_it_nor_blow_up_a_row(
        logs in prop::collection::vec(arbitrary_log(), 0..14),
        native in arbitrary_native(),
        from in arbitrary_account(),
        to in prop::option::of(arbitrary_account()),
        value in 0_u64..1_000,
    ) {
        let mut given = case(logs).from(from).value(value).native(native);
        given.tx.to = to;
        let decoded = given.decode();
        prop_assert_eq!(&decoded, &given.decode());
        let sides = decoded.trades.iter().map(|trade| (trade.side == Side::Buy, trade.mint));
        let sides: Vec<_> = sides.collect();
        prop_assert!(sides.is_sorted() && sides.windows(2).all(|pair| pair[0] != pair[1]));
        for trade in &decoded.trades {
            let Address::Evm(token) = trade.mint else { panic!("a token of another family") };
            prop_assert!(token != weth());
            prop_assert!(trade.units.unwrap() <= gross(&given.tx, &token));
            prop_assert!(!trade.venue.is_empty());
        }
    }
}
