//! A plain reading of what moved in a transaction of contracts, to compare rows with: it adds up
//! all amounts in any event or call, and shares no code with the decoder.

use blotter::decode::Decoded;
use blotter::decode::evm::{Account, NativeFlows, Transaction, Word};
use blotter::domain::{Address, Units};
use blotter::registry::Chain;

/// The accounts that a transaction names, the sender first.
pub fn accounts(tx: &Transaction) -> Vec<Account> {
    let topics = tx.logs.iter().flat_map(|log| &log.topics).filter_map(|topic| tail(topic));
    let ends = match &tx.native {
        NativeFlows::Calls(calls) => calls.iter().flat_map(|call| [call.from, call.to]).collect(),
        NativeFlows::Net { .. }
        | NativeFlows::Unknown
        | NativeFlows::Gone
        | NativeFlows::Refused => Vec::new(),
    };
    [tx.from].into_iter().chain(tx.to).chain(topics).chain(ends).collect()
}

fn tail(word: &Word) -> Option<Account> {
    word.last_chunk().copied()
}

/// Every whole word of the data of a contract's events.
fn mentioned(tx: &Transaction, contract: &[u8]) -> Units {
    let logs = tx.logs.iter().filter(|log| log.address == contract);
    let words = logs.flat_map(|log| log.data.chunks_exact(32)).map(Units::from_be_slice);
    words.fold(Units::ZERO, Units::saturating_add)
}

/// The first row that exceeds the movements of the transaction, in words. `assets` are moves of
/// tokens that have no contract.
pub fn beyond(
    chain: &Chain,
    tx: &Transaction,
    decoded: &Decoded,
    asset: impl Fn(&Address) -> Option<Units>,
) -> Option<String> {
    let calls = match &tx.native {
        NativeFlows::Calls(calls) => {
            calls.iter().fold(Units::ZERO, |sum, call| sum.saturating_add(call.value))
        }
        NativeFlows::Net { gained, lost } => gained.saturating_add(*lost),
        NativeFlows::Unknown | NativeFlows::Gone | NativeFlows::Refused => Units::ZERO,
    };
    // Where the calls are unknown, a venue's own event may state the payment.
    let events = tx.logs.iter().fold(Units::ZERO, |sum, log| {
        let words = log.data.chunks_exact(32).map(Units::from_be_slice);
        words.fold(sum, Units::saturating_add)
    });
    let known = matches!(tx.native, NativeFlows::Calls(_));
    let wrapped = mentioned(tx, chain.wrapped_native.bytes());
    let native =
        tx.value.saturating_add(calls).saturating_add(if known { wrapped } else { events });
    decoded.trades.iter().find_map(|row| {
        let limit = asset(&row.mint).unwrap_or_else(|| mentioned(tx, row.mint.bytes()));
        if row.units.is_some_and(|units| units > limit) {
            return Some(format!("{row:?}, and events show {limit}"));
        }
        let more = row.native.is_some_and(|value| value > native);
        more.then(|| format!("{row:?}, and {native} of the native coin moved at most"))
    })
}
