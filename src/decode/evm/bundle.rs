//! Leaves out of a bundle (ERC-4337) what the operations of other accounts did.

use std::ops::Range;

use super::ledger::USER_OPERATION;
use super::transaction::{Account, Transaction, Word};
use super::words::{address, topic};
use crate::registry::{Chain, ContractKind, EvmTables};

/// `BeforeExecution()`: an entry point has validated a bundle and now runs its operations one after
/// the other. The event of an operation follows all that this operation logged.
const BEFORE_EXECUTION: Word =
    topic("bb47ee3e183a558b1a2ff0874b079f3fc5478b7454eacf2bfc5af2ff5878f972");

/// The transaction without what other accounts' operations logged, where an entry point ran some
/// next to the wallet's. The logs of the validation stay, as gas sponsors may be paid in it.
pub(super) fn of_wallet(
    (tables, chain): (&EvmTables, &Chain),
    wallet: &Account,
    tx: &Transaction,
) -> Option<Transaction> {
    let runs = |account: &Account| {
        tables.contract(chain, account).is_some_and(|known| known.kind == ContractKind::EntryPoint)
    };
    let (mut running, mut acts, mut others) = (None, false, Vec::<Range<usize>>::new());
    for (at, log) in tx.logs.iter().enumerate() {
        match log.topics.as_slice() {
            [BEFORE_EXECUTION] if runs(&log.address) => running = Some((log.address, at + 1)),
            [USER_OPERATION, _, actor, _] => {
                let Some((by, start)) = running.filter(|(by, _)| *by == log.address) else {
                    continue;
                };
                let end = at + 1;
                if address(actor).as_ref() == Some(wallet) {
                    acts = true;
                } else {
                    others.push(start..end);
                }
                running = Some((by, end));
            }
            _ => {}
        }
    }
    if !acts || others.is_empty() {
        return None;
    }
    let (mut logs, mut done) = (Vec::new(), 0);
    for Range { start, end } in others {
        logs.extend_from_slice(tx.logs.get(done..start)?);
        done = end;
    }
    logs.extend_from_slice(tx.logs.get(done..)?);
    let mut own = tx.clone();
    own.logs = logs;
    Some(own)
}
