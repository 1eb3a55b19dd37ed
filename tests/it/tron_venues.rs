//! The table rows of Tron's venues, on hand-written transactions.

use std::sync::LazyLock;

use blotter::decode::evm::{Account, Log};
use blotter::decode::tron::{Transaction, decode};
use blotter::decode::{Decoded, NoteKind};
use blotter::domain::{Units, UnixSeconds};
use blotter::registry::Registry;
use sha3::{Digest as _, Keccak256};

use crate::evm_decode::{
    AAA, BBB, Case, OTHER, POOL, ROUTER, WALLET, account, case, log, number, swap, transfer, word,
};

/// SUN's Universal Router, the one before the present one.
const UNIVERSAL: &str = "a31d689a84244bc01be56e07aeafb7686f56bb89";

/// The wallet calls a contract of Tron.
fn called(to: Account, logs: Vec<Log>) -> Decoded {
    called_with(case(logs).to(to), Vec::new())
}

fn called_with(case: Case, input: Vec<u8>) -> Decoded {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::embedded().unwrap());
    let time = UnixSeconds(1_770_000_000);
    let tx = Transaction { call: case.tx, time, input, assets: Vec::new(), native_trade: None };
    decode(REGISTRY.tron(), REGISTRY.chain_named("tron").unwrap(), &WALLET, &tx)
}

#[test]
fn a_router_of_pools_alone_trades_nothing_without_their_events() {
    // A module with a fixed price and no event: 500 AAA for 50 BBB.
    let converted = vec![transfer(AAA, WALLET, OTHER, 500), transfer(BBB, OTHER, WALLET, 50)];
    assert_eq!(called(account(UNIVERSAL), converted.clone()).trades, []);
    // The same on the way to a pool.
    let onward = swap(POOL, (BBB, 50, ROUTER), ([0xc3; 20], 7, WALLET));
    let route = [vec![converted[0].clone(), transfer(BBB, OTHER, ROUTER, 50)], onward].concat();
    assert_eq!(called(account(UNIVERSAL), route).trades.len(), 2);
}

#[test]
fn change_of_a_position_that_grew_is_no_trade() {
    // 250 of 500 AAA are swapped, and what is left of 25 BBB comes back.
    let zapped = |event: Log, kept: u64| {
        let swapped = swap(POOL, (AAA, 250, WALLET), (BBB, 25, ROUTER));
        let added = vec![transfer(AAA, WALLET, OTHER, 250), transfer(BBB, ROUTER, OTHER, kept)];
        let back = vec![event, transfer(BBB, ROUTER, WALLET, 25 - kept)];
        called(ROUTER, [swapped, added, back].concat())
    };
    let positions = account("72db65b2e023e4783d46023e7135c692e527f6cb");
    let amounts = [9, 250, 20].map(number);
    let event = "IncreaseLiquidity(uint256,uint128,uint256,uint256)";
    let grown = zapped(log(positions, event, &[number(77)], &amounts), 20);
    assert_eq!((grown.trades.len(), grown.notes[0].kind), (0, NoteKind::Liquidity));
    // V4's pool manager names the manager of positions; what shrinks is a part of a trade.
    let (manager, positions) = (
        account("d8de75898a30b097da826464e932934a512c7be3"),
        account("17c83bf75833eefba06fb3ebae0730c6ae68bbe9"),
    );
    let forms = [
        "ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32,int256)",
        "ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32)",
    ];
    for event in forms {
        let by = |delta, kept| {
            let words = [number(1), number(2), delta, [0; 32], [0; 32]];
            zapped(log(manager, event, &[[9; 32], word(positions)], &words), kept)
        };
        assert_eq!(by(number(9), 20).notes[0].kind, NoteKind::Liquidity);
        assert_eq!(by(number(9), 0).notes[0].kind, NoteKind::Liquidity);
        assert_eq!(by([0xff; 32], 0).trades.len(), 2);
    }
}

/// `SunSwap` V1 names the seller in its event alone, also where it pays another account.
#[test]
fn what_an_exchange_of_v1_pays_to_another_account_is_no_sale() {
    let sold = |text: &str, to: Account| {
        let words = [number(500), number(90)];
        let event = "TrxPurchase(address,uint256,uint256)";
        let paid = log(POOL, event, &[word(WALLET), words[0], words[1]], &[]);
        let logs = vec![transfer(AAA, WALLET, POOL, 500), paid];
        let selector = &Keccak256::digest(text)[..4];
        let arguments = [number(500), number(1), number(9), word(to)].concat();
        let decoded = called_with(case(logs).to(POOL).unknown(), [selector, &arguments].concat());
        decoded.trades.iter().map(|row| row.native).collect::<Vec<_>>()
    };
    for text in ["tokenToTrxTransferInput", "tokenToTrxTransferOutput"] {
        let text = format!("{text}(uint256,uint256,uint256,address)");
        assert_eq!(sold(&text, OTHER), []);
        assert_eq!(sold(&text, WALLET), [Some(Units::from(90))]);
    }
    // A call without a receiver pays its caller.
    let text = "tokenToTrxSwapInput(uint256,uint256,uint256)";
    assert_eq!(sold(text, OTHER), [Some(Units::from(90))]);
}
