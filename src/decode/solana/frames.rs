//! The call tree. Nodes since late 2022 tell each inner instruction's stack height; before, the
//! log tells it; where that is cut too, accounts tell which transfers a call made.

use std::borrow::Cow;

use super::action::Action;
use super::raw::Key;
use super::transaction::Instruction;

/// Fills heights that are not told from the `Program … invoke [n]` lines, as far as they agree
/// with the instructions.
pub(super) fn heights_from_logs(
    keys: &[Key],
    instructions: &mut [Instruction],
    lines: &[Cow<'_, str>],
) {
    let calls: Vec<(Key, u8)> = lines.iter().filter_map(|line| invoke(line)).collect();
    let mut at = 0;
    let mut from = 0;
    while from < instructions.len() {
        let rest = instructions.get_mut(from..).unwrap_or_default();
        let len = 1 + rest.iter().skip(1).take_while(|i| i.height != 1).count();
        let Some(group) = rest.get_mut(..len) else { return };
        from += len;
        let program = group.first().and_then(|outer| keys.get(usize::from(outer.program)));
        // Precompiles leave no line, so the next outer call may be a later instruction's.
        if calls.get(at).map(|(key, _)| Some(key)) != Some(program) {
            continue;
        }
        let behind = calls.get(at..).unwrap_or_default();
        let end = 1 + behind.iter().skip(1).take_while(|(_, height)| *height > 1).count();
        let told = behind.get(..end).unwrap_or_default();
        at += end;
        let agrees = told.len() == group.len()
            && told.iter().zip(&*group).all(|((key, _), instruction)| {
                keys.get(usize::from(instruction.program)) == Some(key)
            });
        if agrees {
            for (instruction, (_, height)) in group.iter_mut().zip(told) {
                instruction.height = *height;
            }
        }
    }
}

/// `Program <id> invoke [<height>]`.
fn invoke(line: &str) -> Option<(Key, u8)> {
    let (program, height) = line.strip_prefix("Program ")?.split_once(" invoke [")?;
    let mut key = [0; 32];
    five8::decode_32(program, &mut key).ok()?;
    Some((key, height.strip_suffix(']')?.parse().ok()?))
}

/// Sets each instruction's parent.
pub(super) fn link(instructions: &mut [Instruction], accounts: &[u8]) {
    guess_heights(instructions, accounts);
    let mut open: Vec<(u8, usize)> = Vec::with_capacity(8);
    for (at, instruction) in instructions.iter_mut().enumerate() {
        while open.last().is_some_and(|(height, _)| *height >= instruction.height) {
            open.pop();
        }
        instruction.parent = open.last().map(|(_, parent)| *parent);
        open.push((instruction.height, at));
    }
}

/// Where nothing tells a height: a transfer belongs to the call before it when that call was given
/// all of its accounts, else to the outer instruction.
fn guess_heights(instructions: &mut [Instruction], accounts: &[u8]) {
    let mut call: Option<std::ops::Range<usize>> = None;
    for instruction in instructions {
        if instruction.height != 0 {
            call = None;
            continue;
        }
        let own = accounts.get(instruction.accounts.clone()).unwrap_or_default();
        if matches!(instruction.action, Action::Call) {
            instruction.height = 2;
            call = Some(instruction.accounts.clone());
            continue;
        }
        let given = call.clone().and_then(|range| accounts.get(range)).unwrap_or_default();
        // `jsonParsed` lists no accounts here; the action names them.
        let within = if own.is_empty() {
            let named = instruction.action.accounts();
            named.iter().flatten().all(|account| given.contains(account))
        } else {
            own.iter().all(|account| given.contains(account))
        };
        instruction.height = if within { 3 } else { 2 };
    }
}
