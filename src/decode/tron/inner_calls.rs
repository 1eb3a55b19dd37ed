//! Pure: whether the internal transactions of an info can be all of its calls. java-tron records
//! each call of a contract, with the coin that it moves; an answer may lack the last of them.

use super::Transaction;
use crate::decode::abi::word;
use crate::decode::evm::{Account, DEPOSIT, Log, NativeFlows, NativeMove, TRANSFER, WITHDRAWAL};
use crate::domain::Units;

/// Whether calls are missing for certain: of a contract with an event, or of WTRX with what it
/// wrapped or paid back.
pub(crate) fn lacks_calls(info: &[u8], tx: &Transaction, wrapped: &[u8]) -> bool {
    let NativeFlows::Calls(moves) = &tx.call.native else { return false };
    let mut wraps = wraps(tx, wrapped);
    let shows_wraps = wraps.all(|one| moves.contains(&one) || is_outermost(tx, &one));
    !shows_wraps || !names_all(info, tx)
}

/// Whether inner calls name each contract with an event: one that they do not name ran in a call
/// that they lack. Nodes write the address of an event without its first byte.
fn names_all(info: &[u8], tx: &Transaction) -> bool {
    let Some(called) = tx.call.to else { return true };
    let text = String::from_utf8_lossy(info).to_ascii_lowercase();
    let mut others = tx.call.logs.iter().map(|log| log.address).filter(|by| *by != called);
    others.all(|by| text.contains(&format!("\"41{}\"", hex::encode(by))))
}

/// The coin that WTRX states to have received and paid back.
fn wraps<'a>(tx: &'a Transaction, wrapped: &'a [u8]) -> impl Iterator<Item = NativeMove> + use<'a> {
    let logs = tx.call.logs.iter().filter(move |log| log.address == wrapped);
    let wrap = |log: &Log| {
        let (kind, by) = (log.topics.first()?, *log.topics.get(1)?.last_chunk()?);
        let value = word(&log.data, 0).filter(|value| !value.is_zero())?;
        match *kind {
            DEPOSIT => Some(NativeMove { from: by, to: log.address, value }),
            WITHDRAWAL => Some(NativeMove { from: log.address, to: by, value }),
            _ => None,
        }
    };
    logs.filter_map(wrap)
}

fn is_outermost(tx: &Transaction, one: &NativeMove) -> bool {
    let call = &tx.call;
    (one.from, Some(one.to), one.value) == (call.from, call.to, call.value)
}

/// Whether an answer may lack the last calls: the wallet gave tokens and got nothing, or the called
/// contract wrapped a part of the coin that it got and keeps the rest. Either may be true.
pub(crate) fn may_lack_calls(tx: &Transaction, wallet: &Account, wrapped: &[u8]) -> bool {
    let NativeFlows::Calls(moves) = &tx.call.native else { return false };
    let is_at = |log: &Log, at: usize| {
        log.topics.first() == Some(&TRANSFER)
            && log.topics.get(at).is_some_and(|word| word.last_chunk() == Some(wallet))
    };
    let moves_token = |at| tx.call.logs.iter().any(|log| is_at(log, at));
    let got_coin = moves.iter().any(|one| one.to == *wallet);
    let got_asset = tx.assets.iter().any(|one| one.to == *wallet);
    let is_unpaid = moves_token(1) && !moves_token(2) && !got_coin && !got_asset;
    let Some(called) = tx.call.to.filter(|_| tx.call.from == *wallet) else { return is_unpaid };
    let sum = |of: fn(&NativeMove) -> Account| -> Units {
        moves.iter().filter(|one| of(one) == called).map(|one| one.value).sum()
    };
    let keeps = tx.call.value + sum(|one| one.to) > sum(|one| one.from);
    is_unpaid || keeps && wraps(tx, wrapped).any(|one| one.from == called)
}

#[cfg(test)]
mod tests {
    use super::super::{account, parse};
    use super::*;
    use crate::decode::evm::Word;

    const ID: &str = "1111111111111111111111111111111111111111111111111111111111111111";
    const WALLET: &str = "41aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const ROUTER: &str = "41cccccccccccccccccccccccccccccccccccccccc";
    const TOKEN: &str = "41dddddddddddddddddddddddddddddddddddddddd";
    const WTRX: &str = "41891cdb91d149f23b1a45d9c5ca78a88d0cb44c18";
    /// Sender, recipient and coin.
    type Inner = (&'static str, &'static str, u64);
    /// Contract, event, the accounts that it names, and an amount.
    type Event = (&'static str, Word, &'static [&'static str], u64);

    /// A call of a contract with its answer.
    fn called(to: &str, value: u64, events: &[Event], inner: &[Inner]) -> (Transaction, Vec<u8>) {
        let tx = format!(
            r#"{{"txID":"{ID}","ret":[{{"contractRet":"SUCCESS"}}],"raw_data":{{"contract":[{{
            "type":"TriggerSmartContract","parameter":{{"value":{{"owner_address":"{WALLET}","data":"",
            "contract_address":"{to}","call_value":{value}}}}}}}]}}}}"#
        );
        let log = |(by, kind, names, amount): &Event| {
            let named = names.iter().map(|name| format!(r#","{:0>64}""#, &name[2..]));
            let (by, kind) = (&by[2..], hex::encode(kind));
            let topics: String = std::iter::once(format!("\"{kind}\"")).chain(named).collect();
            format!(r#"{{"address":"{by}","topics":[{topics}],"data":"{amount:064x}"}}"#)
        };
        let call = |(from, to, value): &Inner| {
            format!(
                r#"{{"caller_address":"{from}","transferTo_address":"{to}",
                "callValueInfo":[{{"callValue":{value}}}]}}"#
            )
        };
        let logs: Vec<String> = events.iter().map(log).collect();
        let calls: Vec<String> = inner.iter().map(call).collect();
        let info = format!(
            r#"{{"id":"{ID}","blockNumber":9,"blockTimeStamp":1000,"log":[{}],
            "internal_transactions":[{}]}}"#,
            logs.join(","),
            calls.join(",")
        );
        (parse(tx.as_bytes(), info.as_bytes()).unwrap(), info.into_bytes())
    }

    const SALE: [Event; 2] =
        [(TOKEN, TRANSFER, &[WALLET, ROUTER], 5), (WTRX, WITHDRAWAL, &[ROUTER], 9)];
    const PURCHASE: [Event; 2] =
        [(TOKEN, TRANSFER, &[ROUTER, WALLET], 5), (WTRX, DEPOSIT, &[ROUTER], 6)];

    /// WTRX pays by a call what its event states, to the one that it names.
    #[test]
    fn what_wtrx_states_to_have_paid_is_among_the_calls() {
        let wtrx = account(WTRX).unwrap();
        let whole = [(ROUTER, TOKEN, 0), (WTRX, ROUTER, 9), (ROUTER, WALLET, 9)];
        let lacks = |inner: &[Inner]| {
            let (tx, info) = called(ROUTER, 0, &SALE, inner);
            lacks_calls(&info, &tx, &wtrx)
        };
        assert!(!lacks(&whole) && !lacks(&whole[..2]));
        // A contract with an event that no call names, a payment of none and of another amount.
        assert!(lacks(&whole[1..]) && lacks(&[whole[0], (ROUTER, WTRX, 0)]));
        assert!(lacks(&[whole[0], (WTRX, ROUTER, 8)]) && lacks(&[whole[0], (WTRX, WALLET, 9)]));
        // The call itself is no inner one.
        let wrap = [(WTRX, DEPOSIT, &[WALLET][..], 6)];
        for (value, lacks) in [(6, false), (7, true)] {
            let (tx, info) = called(WTRX, value, &wrap, &[]);
            assert_eq!(lacks_calls(&info, &tx, &wtrx), lacks, "{value}");
        }
    }

    #[test]
    fn tokens_for_nothing_and_coin_that_a_router_keeps_may_lack_the_last_call() {
        let (wtrx, wallet) = (account(WTRX).unwrap(), account(WALLET).unwrap());
        let may_lack = |value, events: &[Event], inner: &[Inner]| {
            may_lack_calls(&called(ROUTER, value, events, inner).0, &wallet, &wtrx)
        };
        let sale = [(ROUTER, TOKEN, 0), (WTRX, ROUTER, 9), (ROUTER, WALLET, 8)];
        assert!(!may_lack(0, &SALE, &sale) && may_lack(0, &SALE, &sale[..2]));
        let swap = [SALE[0], (TOKEN, TRANSFER, &[ROUTER, WALLET][..], 7)];
        assert!(!may_lack(0, &swap, &sale[..1]));
        let purchase = [(ROUTER, WTRX, 6), (ROUTER, WALLET, 4)];
        assert!(!may_lack(10, &PURCHASE, &purchase) && may_lack(10, &PURCHASE, &purchase[..1]));
        // A curve keeps what it is paid, without wrapping it.
        assert!(!may_lack(10, &PURCHASE[..1], &[(ROUTER, TOKEN, 0)]));
    }
}
