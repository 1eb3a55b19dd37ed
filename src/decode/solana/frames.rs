//! Builds the call tree. Nodes since late 2022 report each inner instruction's stack height.
//! Before, the log states it; if the log is truncated, the height is guessed from the accounts that
//! each call was given.

use super::action::Action;
use super::call_log::CallLog;
use super::keys::AccountKeys;
use super::transaction::Instruction;

/// Fills missing heights from the `Program … invoke [n]` log lines, as far as they match the
/// instructions.
pub(super) fn heights_from_logs(
    keys: &AccountKeys<'_>,
    instructions: &mut [Instruction],
    log: CallLog<'_>,
) {
    let mut calls = Vec::with_capacity(32);
    log.calls(|program, height| calls.extend(keys.find(program).map(|key| (key, height))));
    let mut at = 0;
    let mut from = 0;
    while from < instructions.len() {
        let rest = instructions.get_mut(from..).unwrap_or_default();
        let len = 1 + rest.iter().skip(1).take_while(|i| i.height != 1).count();
        let Some(group) = rest.get_mut(..len) else { return };
        from += len;
        let program = group.first().map(|outer| outer.program);
        // Precompiles log nothing, so this line may belong to a later outer instruction.
        if calls.get(at).map(|(program, _)| *program) != program {
            continue;
        }
        let behind = calls.get(at..).unwrap_or_default();
        let end = 1 + behind.iter().skip(1).take_while(|(_, height)| *height > 1).count();
        let logged = behind.get(..end).unwrap_or_default();
        at += end;
        let agrees = logged.len() == group.len()
            && logged.iter().zip(&*group).all(|((program, _), call)| *program == call.program);
        if agrees {
            for (instruction, (_, height)) in group.iter_mut().zip(logged) {
                instruction.height = *height;
            }
        }
    }
}

/// Sets each instruction's parent; returns whether some heights had to be guessed.
pub(super) fn link(instructions: &mut [Instruction], accounts: &[u8]) -> bool {
    let is_guessed = guess_heights(instructions, accounts);
    let mut open: Vec<(u8, usize)> = Vec::with_capacity(8);
    for (at, instruction) in instructions.iter_mut().enumerate() {
        while open.last().is_some_and(|(height, _)| *height >= instruction.height) {
            open.pop();
        }
        instruction.parent = open.last().map(|(_, parent)| *parent);
        open.push((instruction.height, at));
    }
    is_guessed
}

/// The runtime nests calls up to this height.
const HEIGHT_MAX: u8 = 9;

/// Guesses heights if none are known. The caller of a call or transfer is the nearest open call
/// before it that was given all of its accounts and the called program, else the outer instruction;
/// the open calls between the two are closed. A program calls itself only to log events, which list
/// one account: any other call of itself is a sibling. Returns whether any height was guessed.
fn guess_heights(instructions: &mut [Instruction], accounts: &[u8]) -> bool {
    // Each open call: its height, its program, and its accounts, the program included.
    let mut open: Vec<(u8, u8, [bool; 256])> = Vec::new();
    let mut is_guessed = false;
    for instruction in instructions {
        if instruction.height != 0 {
            open.clear();
            continue;
        }
        is_guessed = true;
        let is_call = matches!(instruction.action, Action::Call);
        let listed = accounts.get(instruction.accounts.clone()).unwrap_or_default();
        // `jsonParsed` lists no accounts for transfers, so those of the action are used.
        let named = instruction.action.accounts();
        let program = is_call.then_some(instruction.program);
        let needed = || listed.iter().chain(named.iter().flatten()).chain(&program);
        let is_outside = |(_, open, given): &(u8, u8, [bool; 256])| {
            (program == Some(*open) && listed.len() > 1)
                || !needed().all(|account| is_set(given, *account))
        };
        while open.last().is_some_and(is_outside) {
            open.pop();
        }
        let height = open.last().map_or(2, |(height, ..)| height + 1);
        if is_call && height < HEIGHT_MAX {
            let mut given = [false; 256];
            for account in needed() {
                if let Some(given) = given.get_mut(usize::from(*account)) {
                    *given = true;
                }
            }
            open.push((height, instruction.program, given));
        }
        instruction.height = height;
    }
    is_guessed
}

fn is_set(given: &[bool; 256], account: u8) -> bool {
    given.get(usize::from(account)) == Some(&true)
}
