//! What the EVM decoder makes of tokens that move next to a trade and are no part of it: one rule a
//! test.

use blotter::decode::evm::Log;

use crate::evm_decode::{
    AAA, BBB, CCC, OTHER, POOL, POOL_2, WALLET, account, case, log, number, swap, transfer, word,
};

#[test]
fn what_is_collected_for_a_gas_sponsor_is_no_part_of_the_trade() {
    let entry_point = account("0000000071727de22e5e9d8baf0edac6f37da032");
    let operation = log(
        entry_point,
        "UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)",
        &[[9; 32], word(WALLET), word(CCC)],
        &[number(1), number(1), number(1), number(1)],
    );
    let traded = |sponsored: Log| {
        let mut logs = vec![transfer(AAA, WALLET, POOL_2, 30)];
        logs.extend(swap(POOL, (AAA, 500, WALLET), (BBB, 7, WALLET)));
        logs.extend([transfer(AAA, POOL_2, WALLET, 10), sponsored, operation.clone()]);
        case(logs).from(OTHER).to(entry_point)
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
