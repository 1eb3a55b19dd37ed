//! Transactions of others for a wallet: fills of its orders, and calls in which it acts as a
//! contract.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, Log, NativeFlows};
use blotter::domain::Units;

use crate::evm_decode::{
    AAA, BBB, CCC, Case, OTHER, POOL, POOL_2, ROUTER, WALLET, ZERO, account, buy, call, case,
    entry_point, log, number, operation, sell, swap, transfer, unwrap, weth, word,
};

/// Argent's module, which relays transactions of its wallets.
fn argent() -> Account {
    account("f956e02c306893793522f86417e7c897cfcf9b7a")
}

fn filled() -> Log {
    let exchange = account("111111125421ca6dc452d289314280a0f8842a65");
    log(exchange, "OrderFilled(bytes32,uint256)", &[], &[[9; 32], number(0)])
}

/// The wallet gives 31 AAA for 158 BBB, which their issuer mints for an account.
fn issued_to(holder: Account) -> Case {
    let mut logs = vec![transfer(AAA, WALLET, ROUTER, 31), transfer(BBB, ZERO, holder, 158)];
    if holder != WALLET {
        logs.push(transfer(BBB, holder, WALLET, 158));
    }
    logs.push(filled());
    case(logs)
}

#[test]
fn tokens_minted_to_the_filler_of_an_order_are_no_share() {
    let filled = issued_to(ROUTER).from(OTHER);
    filled.gives(&[('s', AAA, 31, None), ('b', BBB, 158, None)]);
    issued_to(WALLET).from(OTHER).gives_none(Some(NoteKind::Liquidity));
    // The wallet itself had it minted through a contract that filled an order of others.
    issued_to(ROUTER).gives_none(Some(NoteKind::Liquidity));
}

/// The filler deposits what it bought, or redeems what the wallet sold, in the same transaction.
#[test]
fn a_vaults_share_that_the_filler_of_an_order_made_or_redeemed_is_exchanged() {
    let mut bought = vec![transfer(AAA, WALLET, ROUTER, 500)];
    bought.extend(swap(POOL, (AAA, 500, ROUTER), (BBB, 70, ROUTER)));
    bought.extend([transfer(BBB, ROUTER, CCC, 70), transfer(CCC, ZERO, ROUTER, 60)]);
    let sides = [word(ROUTER), word(ROUTER)];
    let amounts = [number(70), number(60)];
    bought.push(log(CCC, "Deposit(address,address,uint256,uint256)", &sides, &amounts));
    bought.extend([transfer(CCC, ROUTER, WALLET, 59), filled()]);
    let bought = case(bought);
    bought.clone().from(OTHER).gives(&[('s', AAA, 500, None), ('b', CCC, 59, None)]);
    bought.gives_none(Some(NoteKind::Liquidity));
    let mut sold = vec![transfer(CCC, WALLET, ROUTER, 60), transfer(CCC, ROUTER, ZERO, 60)];
    let sides = [word(ROUTER); 3];
    let redeemed = "Withdraw(address,address,address,uint256,uint256)";
    sold.extend([transfer(BBB, CCC, ROUTER, 70), log(CCC, redeemed, &sides, &amounts)]);
    sold.extend(swap(POOL, (BBB, 70, ROUTER), (AAA, 500, ROUTER)));
    sold.extend([transfer(AAA, ROUTER, WALLET, 499), filled()]);
    case(sold).from(OTHER).gives(&[('s', CCC, 60, None), ('b', AAA, 499, None)]);
    // The wallet's own share is burnt next to an order.
    let mut own = vec![transfer(CCC, WALLET, ZERO, 60), transfer(BBB, CCC, WALLET, 70)];
    own.extend([log(CCC, redeemed, &sides, &amounts), filled()]);
    case(own).from(OTHER).gives_none(Some(NoteKind::Liquidity));
}

/// The filler of a `UniswapX` order, whose maker sold for native coin, pays out of its own coin:
/// nothing is unwrapped, and only a trace shows the payment.
#[test]
fn an_order_that_its_filler_pays_out_of_its_own_coin_is_a_sale() {
    let settlement = account("6000da47483062a0d734ba3dc7576ce6a0b645c4");
    let sold = |by: Account, names: [Account; 2], more: &[Log]| {
        let sides = [[9; 32], word(names[0]), word(names[1])];
        let said = log(by, "Fill(bytes32,address,address,uint256)", &sides, &[number(3)]);
        let gave = transfer(AAA, WALLET, ROUTER, 500);
        let logs = [[gave].as_slice(), more, &[said]].concat();
        case(logs).from(OTHER).to(by).unknown()
    };
    let row = [('s', AAA, 500, None)];
    sold(settlement, [ROUTER, WALLET], &[]).gives(&row);
    // The filler sells what it took.
    let sells_on = [transfer(AAA, ROUTER, POOL, 500), transfer(weth(), POOL, ROUTER, 90)];
    sold(settlement, [ROUTER, WALLET], &sells_on).gives(&row);
    // The filler or the settlement pays a third account, possibly for the wallet's order.
    for payer in [ROUTER, settlement] {
        let pays = [transfer(BBB, payer, OTHER, 7)];
        sold(settlement, [ROUTER, WALLET], &pays).gives_none(Some(NoteKind::OneSided));
    }
    // The order of another maker, another filler, a part for another account, an unknown contract.
    sold(settlement, [ROUTER, OTHER], &[]).gives_none(Some(NoteKind::OneSided));
    sold(settlement, [POOL, WALLET], &[]).gives_none(Some(NoteKind::OneSided));
    let part = [transfer(AAA, WALLET, POOL, 5)];
    sold(settlement, [ROUTER, WALLET], &part).gives_none(Some(NoteKind::OneSided));
    sold(POOL, [ROUTER, WALLET], &[]).gives_none(Some(NoteKind::OneSided));
}

#[test]
fn recipients_of_a_takers_call_do_not_count_for_the_order_that_it_fills() {
    let logs = vec![transfer(AAA, WALLET, ROUTER, 800), unwrap(ROUTER, 15), filled()];
    let mut sold = case(logs).from(OTHER).unknown();
    sold.tx.terms.receiver = Some(OTHER);
    sold.gives(&[('s', AAA, 800, None)]);
}

/// An order of the wallet sells 800 AAA, of which `taken` goes to another account than the buyer.
fn sold_less(taken: u64, to: Account) -> Case {
    let logs = vec![
        transfer(AAA, WALLET, to, taken),
        transfer(AAA, WALLET, ROUTER, 800 - taken),
        transfer(weth(), ROUTER, WALLET, 15),
        filled(),
    ];
    case(logs).from(OTHER)
}

#[test]
fn a_tax_or_a_burn_on_a_sale_by_an_order_is_no_withdrawal() {
    for to in [AAA, ZERO] {
        sold_less(8, to).gives(&[('s', AAA, 800, Some(15))]);
        sold_less(400, to).gives(&[('s', AAA, 800, Some(15))]);
        sold_less(401, to).gives_none(Some(NoteKind::Liquidity));
    }
}

/// A relayer sends a purchase of a smart wallet that pays 100 for 500 AAA and 7 for the network.
fn relayed(said: Log) -> Case {
    let mut bought = buy().from(OTHER).to(argent()).value(0);
    bought.tx.logs.push(said);
    bought.calls(&[call(WALLET, ROUTER, 100), call(ROUTER, weth(), 100), call(WALLET, OTHER, 7)])
}

fn executed() -> Log {
    let signature = "TransactionExecuted(address,bool,bytes,bytes32)";
    let data = [number(64), [5; 32], number(0)];
    log(argent(), signature, &[word(WALLET), number(1)], &data)
}

fn safe_paid(payment: u64) -> Log {
    log(WALLET, "ExecutionSuccess(bytes32,uint256)", &[], &[[5; 32], number(payment)])
}

fn from_module() -> Log {
    log(WALLET, "ExecutionFromModuleSuccess(address)", &[word(ROUTER)], &[])
}

fn invoked(by: Account, target: Account) -> Log {
    let signature = "Invoked(address,address,uint256,bytes)";
    log(by, signature, &[word(argent()), word(target), number(0)], &[number(32), number(0)])
}

/// The log of a permission contract: the wallet let another account act for it (EIP-7702).
fn delegated() -> Log {
    let signature = "RedeemedDelegation(address,address,\
                     (address,address,bytes32,(address,bytes,bytes)[],uint256,bytes))";
    let delegation = [number(32), word(OTHER), word(WALLET), [5; 32], number(192), number(1)];
    log(ROUTER, signature, &[word(WALLET), word(OTHER)], &delegation)
}

fn intended() -> Log {
    let signature = "IntentExecuted(address,uint256,bool,bytes4)";
    log(ROUTER, signature, &[word(WALLET), number(1)], &[number(1), number(0)])
}

fn refund(token: Account, amount: u64) -> Log {
    let signature = "Refund(address,address,address,uint256)";
    log(argent(), signature, &[word(WALLET), word(OTHER)], &[word(token), number(amount)])
}

#[test]
fn what_a_relayer_is_paid_back_is_outside() {
    let safe = [safe_paid(7), from_module()];
    for said in
        [executed(), invoked(WALLET, ROUTER), delegated(), intended()].into_iter().chain(safe)
    {
        relayed(said.clone()).gives(&[('b', AAA, 500, Some(100))]);
        relayed(said).unknown().gives(&[('b', AAA, 500, None)]);
    }
    // A wallet that does not act by itself pays for what it gets.
    let target = relayed(invoked(POOL, WALLET));
    target.gives(&[('b', AAA, 500, Some(107))]);
    target.unknown().gives_none(Some(NoteKind::OneSided));
}

#[test]
fn a_sender_that_gives_anything_is_paid_for_it() {
    let mut owned = relayed(executed());
    owned.tx.logs.push(transfer(BBB, OTHER, ROUTER, 3));
    owned.gives(&[('b', AAA, 500, Some(107))]);
    // The owner's own coin, of which a part goes back.
    relayed(executed()).to(WALLET).value(50).gives(&[('b', AAA, 500, Some(57))]);
}

#[test]
fn a_balance_that_paid_for_the_network_is_no_price() {
    let balance = |said: Log, lost: u64| {
        let lost = Units::from(lost);
        relayed(said).native(NativeFlows::Net { gained: Units::ZERO, lost })
    };
    balance(safe_paid(0), 100).gives(&[('b', AAA, 500, Some(100))]);
    balance(safe_paid(7), 107).gives(&[('b', AAA, 500, None)]);
    balance(refund(ZERO, 7), 107).gives(&[('b', AAA, 500, None)]);
    // From an unknown contract, since escrows log such an event too.
    let mut escrow = refund(ZERO, 7);
    escrow.address = POOL;
    balance(escrow, 107).gives(&[('b', AAA, 500, Some(107))]);
}

#[test]
fn a_refund_in_tokens_is_outside_of_what_was_sold() {
    let mut sold = sell().from(OTHER).to(argent());
    sold.tx.logs.extend([transfer(AAA, WALLET, OTHER, 9), executed(), refund(AAA, 9)]);
    sold.gives(&[('s', AAA, 500, Some(100))]);
}

/// A bundle, after its validation: an operation of another account and one of the wallet, in each
/// order.
fn bundled(validated: &[Log], others: &[Log], own: &[Log], sponsor: Account) -> [Case; 2] {
    let begins = log(entry_point(), "BeforeExecution()", &[], &[]);
    let others = [others, &[operation(OTHER, ZERO)]].concat();
    let own = [own, &[operation(WALLET, sponsor)]].concat();
    let (others, own) = (&others[..], &own[..]);
    [[others, own], [own, others]].map(|[first, second]| {
        let logs = [validated, std::slice::from_ref(&begins), first, second].concat();
        case(logs).from(OTHER).to(entry_point())
    })
}

#[test]
fn what_other_accounts_of_a_bundle_do_is_not_the_wallets() {
    // Another account adds to a position.
    let signature = "IncreaseLiquidity(uint256,uint128,uint256,uint256)";
    let grown = [log(POOL_2, signature, &[number(7)], &[1, 2, 3].map(number))];
    for bought in bundled(&[], &grown, &buy().tx.logs, ZERO) {
        let bought = bought.calls(&[call(WALLET, ROUTER, 100), call(ROUTER, weth(), 100)]);
        bought.gives(&[('b', AAA, 500, Some(100))]);
    }
    // It swaps what the wallet only sent and received.
    let swapped = swap(POOL, (AAA, 500, OTHER), (BBB, 70, OTHER));
    let passed = [transfer(AAA, WALLET, POOL_2, 5), transfer(BBB, POOL_2, WALLET, 1)];
    for sent in bundled(&[], &swapped, &passed, ZERO) {
        sent.gives_none(None);
    }
}

#[test]
fn what_a_smart_account_swaps_for_a_bridge_is_no_purchase_of_the_rest() {
    let bridged = |away: u64| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (BBB, 70, ROUTER));
        logs.extend([
            transfer(BBB, ROUTER, POOL_2, away),
            transfer(BBB, ROUTER, WALLET, 70 - away),
        ]);
        logs.push(operation(WALLET, ZERO));
        case(logs).from(OTHER).to(entry_point())
    };
    bridged(36).gives_none(Some(NoteKind::OneSided));
    bridged(35).gives(&[('s', AAA, 500, None), ('b', BBB, 35, None)]);
    // The router may pay another account that acts, too.
    let mut shared = bridged(36);
    shared.tx.logs.push(operation(OTHER, ZERO));
    shared.gives(&[('s', AAA, 500, None), ('b', BBB, 34, None)]);
    // An account that does nothing itself: its order's filler may pay others by the same router.
    let mut relayed = bridged(36);
    relayed.tx.logs.pop();
    relayed.gives(&[('s', AAA, 500, None), ('b', BBB, 34, None)]);
}

/// A sponsor's collector takes 9 of the token while operations are validated, and gives 4 back.
#[test]
fn what_a_sponsor_takes_before_a_bundle_runs_is_outside() {
    let collector = [0x33; 20];
    let validated = [transfer(AAA, WALLET, collector, 9)];
    let mut own = sell().tx.logs;
    let charged = log(POOL_2, "Charged(address,uint256)", &[word(AAA)], &[number(5)]);
    own.extend([transfer(AAA, collector, WALLET, 4), charged]);
    let others = [transfer(BBB, OTHER, POOL, 3)];
    for sold in bundled(&validated, &others, &own, POOL_2) {
        let sold = sold.calls(&[call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100)]);
        sold.gives(&[('s', AAA, 500, Some(100))]);
    }
}

/// A Safe pays whom its owners name in the token that they choose, and its event states the amount.
#[test]
fn what_a_safe_pays_back_in_a_token_is_outside() {
    let sold = |payment: u64, receiver: Account| {
        let mut sold = sell().from(OTHER).to(WALLET);
        sold.tx.logs.extend([transfer(AAA, WALLET, receiver, 9), safe_paid(payment)]);
        sold
    };
    for receiver in [OTHER, ROUTER] {
        sold(9, receiver).gives(&[('s', AAA, 500, Some(100))]);
        sold(8, receiver).gives(&[('s', AAA, 509, Some(100))]);
        sold(0, receiver).gives(&[('s', AAA, 509, Some(100))]);
    }
}

/// `MetaMask`'s delegations state the fee for the relayer, which the wallet transfers after what it
/// does: packed in a caveat's terms, or as a call in a batch.
#[test]
fn a_fee_that_a_delegation_states_is_outside() {
    let manager = account("db9b1e94b5b69df7e401ddbede43491141047db3");
    let packed = |token: Account, amount| [&token[..], &POOL_2, &number(amount)].concat();
    let called = [&[0xa9, 0x05, 0x9c, 0xbb][..], &word(POOL_2), &number(3)].concat();
    let traded = |token: Account, by: Account, terms: &[u8]| {
        let mut said = delegated();
        said.address = by;
        said.data.extend_from_slice(terms);
        let mut logs = swap(POOL, (AAA, 500, WALLET), (BBB, 70, WALLET));
        logs.extend([transfer(token, WALLET, POOL_2, 3), said]);
        case(logs).from(OTHER).to(manager)
    };
    let rows = [('s', AAA, 500, None), ('b', BBB, 70, None)];
    for token in [AAA, BBB] {
        traded(token, manager, &packed(token, 3)).gives(&rows);
        traded(token, manager, &called).gives(&rows);
    }
    // Another amount, another token, a contract that is no manager of delegations.
    let less = [('s', AAA, 500, None), ('b', BBB, 67, None)];
    traded(BBB, manager, &packed(BBB, 4)).gives(&less);
    traded(BBB, manager, &packed(AAA, 3)).gives(&less);
    traded(BBB, ROUTER, &packed(BBB, 3)).gives(&less);
    // The receiver gives something: the transfer is a part of what the wallet does.
    let mut routed = traded(BBB, manager, &called);
    routed.tx.logs.push(transfer(CCC, POOL_2, OTHER, 1));
    routed.gives(&less);
}

/// Ondo's tokens are minted at a signed price, to the contract that trades for the wallet.
#[test]
fn tokens_issued_at_a_quoted_price_are_bought() {
    let ondo = account("2c158bc456e027b2affccadf1bdbd9f5fc4c5c8c");
    let signature = "TradeExecuted(uint256,uint256,uint256,bytes32,uint8,address,uint256,uint256,\
                     uint256,bytes32)";
    let said = |by: Account| {
        let data = [number(5), number(6), number(1), [7; 32], number(0), word(BBB), number(195)];
        let rest = [number(158), number(9), [0; 32]];
        log(by, signature, &[], &[data.as_slice(), &rest].concat())
    };
    let bought = |by: Account| {
        let logs = vec![
            transfer(AAA, WALLET, by, 31),
            transfer(AAA, by, ZERO, 31),
            transfer(BBB, ZERO, WALLET, 158),
            said(by),
        ];
        case(logs).to(by)
    };
    bought(ondo).gives(&[('s', AAA, 31, None), ('b', BBB, 158, None)]);
    bought(ondo).venues(&["Ondo Global Markets", "Ondo Global Markets"]);
    bought(POOL).gives_none(None);
}

/// WOW's tokens mint what their curve sells, and state what the seller was paid.
#[test]
fn a_token_that_is_its_own_curve_is_traded() {
    let said = |event: &str, amounts: [u64; 4]| {
        let signature = format!(
            "{event}(address,address,address,uint256,uint256,uint256,uint256,uint256,string,\
             uint256,uint8)"
        );
        let amounts = amounts.map(number);
        let rest = [number(500), number(256), number(9000), number(0), number(0)];
        let sides = [word(WALLET), word(WALLET), word(ZERO)];
        log(AAA, &signature, &sides, &[amounts.as_slice(), &rest].concat())
    };
    let bought = vec![transfer(AAA, ZERO, WALLET, 500), said("WowTokenBuy", [100, 1, 100, 500])];
    let bought = case(bought).to(AAA).on("base").value(100);
    bought.gives(&[('b', AAA, 500, Some(100))]);
    bought.unknown().gives(&[('b', AAA, 500, Some(100))]);
    // The curve is complete, and the excess was refunded.
    let last = vec![transfer(AAA, ZERO, WALLET, 500), said("WowTokenBuy", [100, 1, 80, 500])];
    let last = case(last).to(AAA).on("base").value(100);
    last.clone().calls(&[call(AAA, WALLET, 20)]).gives(&[('b', AAA, 500, Some(80))]);
    last.unknown().gives(&[('b', AAA, 500, None)]);
    let sold = vec![transfer(AAA, WALLET, ZERO, 500), said("WowTokenSell", [100, 1, 99, 500])];
    let sold = case(sold).to(AAA).on("base");
    sold.clone().unknown().gives(&[('s', AAA, 500, Some(99))]);
    let paid = sold.calls(&[call(AAA, WALLET, 99)]);
    paid.gives(&[('s', AAA, 500, Some(99))]);
    paid.venues(&["WOW"]);
}

#[test]
fn what_runs_operations_of_others_is_read_for_wallets_that_sent_nothing() {
    let registry = blotter::registry::Registry::embedded().unwrap();
    let runs = [
        "433709009b8330fda32311df1c2afa402ed8d009",
        "4337084d9e255ff0702461cf8895ce9e3b5ff108",
        "db9b1e94b5b69df7e401ddbede43491141047db3",
    ];
    for chain in ["eth", "base", "monad"].map(|slug| registry.chain_named(slug).unwrap()) {
        assert!(runs.iter().all(|runs| registry.evm().is_settlement(chain, &account(runs))));
    }
}
