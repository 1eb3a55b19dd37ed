//! Native coin moved by inner calls, read from traces: the call tree of `debug_traceTransaction`
//! and the flat list of `trace_transaction`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::raw::{RawError, bytes, quantity, read};
use super::transaction::{Account, NativeMove, Transaction};
use crate::domain::Units;

/// Limits of one trace. A call tree is scanned once per level, and the EVM allows 1,024 levels.
struct Limits {
    scanned: usize,
    calls: usize,
}

const LIMITS: Limits = Limits { scanned: 256 << 20, calls: 1 << 20 };

/// One call of the tree.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    from: Option<&'a str>,
    to: Option<&'a str>,
    value: Option<&'a str>,
    /// Only its presence counts: the text may contain escapes.
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Parsed later: a tree may be deeper than a recursive parser's stack.
    #[serde(borrow)]
    calls: Option<&'a RawValue>,
}

/// Whether an instruction transfers native coin to another account.
fn moves(kind: &str) -> Result<bool, RawError> {
    match kind.to_ascii_lowercase().as_str() {
        "call" | "create" | "create2" | "selfdestruct" | "suicide" => Ok(true),
        "delegatecall" | "staticcall" | "callcode" => Ok(false),
        _ => Err(RawError::Broken("type of call")),
    }
}

fn native_move(
    from: Option<&str>,
    to: Option<&str>,
    value: Option<&str>,
) -> Result<Option<NativeMove>, RawError> {
    let value = quantity(value.unwrap_or_default(), "value")?;
    if value == Units::ZERO {
        return Ok(None);
    }
    let from = bytes(from.ok_or(RawError::Missing("caller"))?, "caller")?;
    let to = bytes(to.ok_or(RawError::Missing("callee"))?, "callee")?;
    Ok(Some(NativeMove { from, to, value }))
}

/// What a call gives to its own caller does not move.
fn between_two(mut paid: Vec<NativeMove>) -> Vec<NativeMove> {
    paid.retain(|one| one.from != one.to);
    paid
}

/// What calls below the outermost that were not reverted did.
#[derive(Default)]
struct Inner {
    /// Those that gave native coin, also to their own caller.
    paid: Vec<NativeMove>,
    /// Number of contracts created without any.
    created: usize,
}

impl Inner {
    fn add(&mut self, moved: Option<NativeMove>, creates: bool) {
        self.created += usize::from(creates && moved.is_none());
        self.paid.extend(moved);
    }
}

/// Number of calls below the outermost that gave native coin, also to their own caller, or created
/// a contract, and were not reverted: what a list of payments alone shows.
pub fn count_payments(text: &[u8]) -> usize {
    let inner = inner_of_tree(text).or_else(|_| inner_of_list(text));
    inner.map_or(0, |inner| inner.paid.len() + inner.created)
}

/// Parses an answer of `debug_traceTransaction` with the `callTracer` to the value transfers of
/// calls below the outermost that were not reverted, callers before callees. The transaction is
/// known to have succeeded: a trace whose outermost call failed is an error.
pub fn parse_trace(text: &[u8]) -> Result<Vec<NativeMove>, RawError> {
    inner_of_tree(text).map(|inner| between_two(inner.paid))
}

fn inner_of_tree(text: &[u8]) -> Result<Inner, RawError> {
    let outermost: Frame<'_> = read(text, "trace")?;
    moves(outermost.kind)?;
    let mut found = Inner::default();
    if outermost.error.is_some() {
        return Err(RawError::Broken("a trace that failed"));
    }
    let mut scanned = text.len();
    let mut waiting = children(outermost.calls, &mut scanned)?;
    while let Some(frame) = waiting.pop() {
        if frame.error.is_some() {
            continue;
        }
        if moves(frame.kind)? {
            // Some lists of payments name a creation as a call of no account.
            let creates = frame.kind.to_ascii_lowercase().starts_with("create")
                || frame.to.is_some_and(str::is_empty);
            found.add(native_move(frame.from, frame.to, frame.value)?, creates);
        }
        waiting.extend(children(frame.calls, &mut scanned)?);
        if waiting.len().max(found.paid.len()) > LIMITS.calls {
            return Err(RawError::TooMany("calls"));
        }
    }
    Ok(found)
}

/// The calls below one, in reverse order.
fn children<'a>(
    calls: Option<&'a RawValue>,
    scanned: &mut usize,
) -> Result<Vec<Frame<'a>>, RawError> {
    let Some(calls) = calls else { return Ok(Vec::new()) };
    *scanned = scanned.saturating_add(calls.get().len());
    if *scanned > LIMITS.scanned {
        return Err(RawError::TooMany("levels of calls"));
    }
    let calls: Option<Vec<Frame<'a>>> =
        serde_json::from_str(calls.get()).map_err(|e| RawError::Json(e.to_string()))?;
    let mut calls = calls.unwrap_or_default();
    calls.reverse();
    Ok(calls)
}

/// One entry of the flat list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    action: Action<'a>,
    #[serde(borrow)]
    result: Option<Created<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    trace_address: Vec<u32>,
}

/// The action of a call, a creation or a self-destruct; their fields have different names.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Action<'a> {
    call_type: Option<&'a str>,
    from: Option<&'a str>,
    to: Option<&'a str>,
    value: Option<&'a str>,
    address: Option<&'a str>,
    refund_address: Option<&'a str>,
    balance: Option<&'a str>,
}

#[derive(Deserialize)]
struct Created<'a> {
    address: Option<&'a str>,
}

/// Parses an answer of `trace_transaction`, like [`parse_trace`].
pub fn parse_flat_trace(text: &[u8]) -> Result<Vec<NativeMove>, RawError> {
    inner_of_list(text).map(|inner| between_two(inner.paid))
}

fn inner_of_list(text: &[u8]) -> Result<Inner, RawError> {
    let entries: Vec<Entry<'_>> = read(text, "trace")?;
    if entries.is_empty() {
        return Err(RawError::Missing("trace"));
    }
    let mut undone: Option<&[u32]> = None;
    let mut found = Inner::default();
    // Callers precede their callees, so only the last reverted one matters.
    for entry in &entries {
        if undone.is_some_and(|above| entry.trace_address.starts_with(above)) {
            continue;
        }
        undone = None;
        if entry.error.is_some() {
            if entry.trace_address.is_empty() {
                return Err(RawError::Broken("a trace that failed"));
            }
            undone = Some(&entry.trace_address);
        } else if !entry.trace_address.is_empty() {
            found.add(flat_move(entry)?, entry.kind == "create");
        }
    }
    Ok(found)
}

/// An outermost call.
#[derive(Deserialize)]
struct Outermost<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
    value: Option<&'a str>,
    input: Option<&'a str>,
}

#[derive(Deserialize)]
struct FlatOutermost<'a> {
    #[serde(borrow)]
    action: Outermost<'a>,
}

/// Whether a trace is that of another transaction of the same sender: with another recipient, amount
/// or method. Chains whose outermost call is not the sender's show no difference.
pub fn is_trace_of_another(text: &[u8], tx: &Transaction) -> bool {
    let flat = || serde_json::from_slice::<Vec<FlatOutermost<'_>>>(text).ok()?.into_iter().next();
    let outermost = serde_json::from_slice::<Outermost<'_>>(text).ok();
    let Some(call) = outermost.or_else(|| flat().map(|one| one.action)) else { return false };
    let account = |text: Option<&str>| text.and_then(|text| bytes(text, "account").ok());
    let differs = |to: Account| account(call.to).is_some_and(|called| called != to);
    let has_other_method = |selector: [u8; 4]| {
        let called = call.input.and_then(|input| input.get(2..10));
        called.is_some_and(|called| !called.eq_ignore_ascii_case(&hex::encode(selector)))
    };
    let value = quantity(call.value.unwrap_or_default(), "value");
    account(call.from) == Some(tx.from)
        && (tx.to.is_some_and(differs)
            || value.is_ok_and(|value| value != tx.value)
            || tx.selector.is_some_and(has_other_method))
}

#[derive(Deserialize)]
struct CallCount {
    subtraces: Option<usize>,
}

/// Whether an answer of `trace_transaction` has all calls, by the number of subcalls that its
/// entries state. An answer without these numbers counts as complete.
pub fn is_flat_trace_whole(text: &[u8]) -> bool {
    let Ok(entries) = serde_json::from_slice::<Vec<CallCount>>(text) else { return true };
    let made = entries.iter().map(|entry| entry.subtraces);
    made.sum::<Option<usize>>().is_none_or(|made| made + 1 == entries.len())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallPlace {
    subtraces: usize,
    trace_address: Vec<usize>,
}

/// Whether all calls that a flat list lacks may be of precompiled contracts: older versions of reth
/// leave these out, but count and number them (paradigmxyz/reth, issue 3140). They call nothing,
/// so a list that ends early or below some level lacks others.
pub fn may_lack_precompiles_alone(text: &[u8]) -> bool {
    let Ok(entries) = serde_json::from_slice::<Vec<CallPlace>>(text) else { return false };
    let mut shown: HashMap<&[usize], Vec<usize>> = HashMap::new();
    for entry in &entries {
        if let Some((at, caller)) = entry.trace_address.split_last() {
            shown.entry(caller).or_default().push(*at);
        }
    }
    let Some(end) = entries.last().map(|last| &last.trace_address) else { return false };
    let deepest = entries.iter().map(|entry| entry.trace_address.len()).max();
    let (mut found, mut are_precompiles) = (1, true);
    for CallPlace { subtraces, trace_address } in &entries {
        let calls = shown.get(trace_address.as_slice()).map_or(&[][..], Vec::as_slice);
        found += calls.len();
        // Calls may follow the last one of these.
        let may_go_on =
            end.starts_with(trace_address) && calls.last() != subtraces.checked_sub(1).as_ref();
        let is_bottom = calls.is_empty() && Some(trace_address.len()) == deepest;
        are_precompiles &=
            *subtraces == calls.len() || *subtraces > calls.len() && !may_go_on && !is_bottom;
    }
    are_precompiles && found == entries.len()
}

fn flat_move(entry: &Entry<'_>) -> Result<Option<NativeMove>, RawError> {
    let action = &entry.action;
    match entry.kind {
        "call" if moves(action.call_type.unwrap_or("call"))? => {
            native_move(action.from, action.to, action.value)
        }
        "call" => Ok(None),
        "create" => {
            let created = entry.result.as_ref().and_then(|result| result.address);
            native_move(action.from, created, action.value)
        }
        "suicide" | "selfdestruct" => {
            native_move(action.address, action.refund_address, action.balance)
        }
        _ => Err(RawError::Broken("type of call")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(byte: u8) -> String {
        format!("0x{}", hex::encode([byte; 20]))
    }

    fn frame(kind: &str, from: u8, to: u8, value: &str, more: &str) -> String {
        let (from, to) = (text(from), text(to));
        format!(r#"{{"type":"{kind}","from":"{from}","to":"{to}","value":"{value}"{more}}}"#)
    }

    fn summary(moves: &[NativeMove]) -> Vec<(u8, u8, u64)> {
        moves.iter().map(|m| (m.from[0], m.to[0], m.value.to())).collect()
    }

    #[track_caller]
    fn check(trace: &str, expected: &[(u8, u8, u64)]) {
        assert_eq!(summary(&parse_trace(trace.as_bytes()).unwrap()), expected);
    }

    fn tree(calls: &[String]) -> String {
        frame("CALL", 1, 2, "0x64", &format!(r#","calls":[{}]"#, calls.join(",")))
    }

    #[test]
    fn the_outermost_call_is_not_repeated() {
        check(&frame("CALL", 1, 2, "0x64", ""), &[]);
        check(&tree(&[frame("CALL", 2, 3, "0x5", "")]), &[(2, 3, 5)]);
    }

    #[test]
    fn only_what_gives_to_another_moves() {
        check(
            &tree(&[
                frame("DELEGATECALL", 2, 3, "0x64", ""),
                frame("STATICCALL", 2, 3, "0x64", ""),
                frame("CALLCODE", 2, 3, "0x64", ""),
                frame("CALL", 2, 2, "0x64", ""),
                frame("CALL", 2, 3, "0x0", ""),
                r#"{"type":"STATICCALL"}"#.to_owned(),
                frame("CREATE2", 2, 4, "0x1", ""),
                frame("SELFDESTRUCT", 4, 5, "0x2", ""),
            ]),
            &[(2, 4, 1), (4, 5, 2)],
        );
    }

    #[test]
    fn what_was_taken_back_moved_nothing() {
        let inner = format!(r#","calls":[{}]"#, frame("CALL", 3, 4, "0x7", ""));
        let failed = format!(r#","error":"execution \"reverted\""{inner}"#);
        check(
            &tree(&[frame("CALL", 2, 3, "0x9", &failed), frame("CALL", 2, 3, "0x8", &inner)]),
            &[(2, 3, 8), (3, 4, 7)],
        );
    }

    /// The transaction succeeded, so a node whose replay fails shows nothing of it.
    #[test]
    fn a_trace_whose_outermost_call_failed_is_refused() {
        let all = frame("CALL", 1, 2, "0x64", r#","error":"out of gas""#);
        assert_eq!(parse_trace(all.as_bytes()), Err(RawError::Broken("a trace that failed")));
        let flat = format!(
            r#"[{{"type":"call","action":{{"from":"{}","to":"{}","value":"0x1"}},
            "traceAddress":[],"error":"Out of gas"}}]"#,
            text(1),
            text(2)
        );
        assert_eq!(parse_flat_trace(flat.as_bytes()), Err(RawError::Broken("a trace that failed")));
    }

    #[test]
    fn a_flat_list_that_lacks_calls_is_not_whole() {
        let whole = |counts: &[&str]| {
            let entries: Vec<String> =
                counts.iter().map(|count| format!(r#"{{"subtraces":{count}}}"#)).collect();
            is_flat_trace_whole(format!("[{}]", entries.join(",")).as_bytes())
        };
        assert!(whole(&["2", "1", "0", "0"]) && whole(&["0"]));
        assert!(!whole(&["2", "1", "0"]) && !whole(&["1"]));
        assert!(whole(&["2", "null"]), "not all name it");
        assert!(is_flat_trace_whole(br#"{"type":"CALL"}"#), "no list");
    }

    /// Older reth: `[0]` runs a precompiled contract, whose call `[0,0]` is not shown.
    #[test]
    fn only_calls_in_the_middle_may_be_precompiles() {
        let may = |calls: &[(usize, &[usize])]| {
            let entry = |(subtraces, at): &(usize, &[usize])| {
                format!(r#"{{"subtraces":{subtraces},"traceAddress":{at:?}}}"#)
            };
            let entries: Vec<String> = calls.iter().map(entry).collect();
            may_lack_precompiles_alone(format!("[{}]", entries.join(",")).as_bytes())
        };
        let [root, one, two] = [&[][..], &[1], &[2]];
        let below = &[2, 0][..];
        assert!(may(&[(3, root), (1, &[0]), (0, one), (1, two), (0, below)]));
        assert!(may(&[(3, root), (0, one), (1, two), (0, below)]), "the first one is not shown");
        assert!(!may(&[(4, root), (1, &[0]), (0, one), (1, two), (0, below)]), "it ends early");
        assert!(!may(&[(3, root), (0, &[0]), (1, one), (1, two)]), "it ends below a level");
        assert!(!may(&[(2, root), (0, &[0]), (0, one), (0, &[1, 5, 0])]), "without its caller");
        assert!(!may(&[(1, root), (0, &[0]), (0, one)]) && !may(&[]));
        assert!(!may_lack_precompiles_alone(br#"[{"subtraces":1}]"#), "no places");
    }

    #[test]
    fn a_deep_tree_is_read_to_its_end() {
        let mut trace = frame("CALL", 1, 2, "0x1", "");
        for _ in 0..1_024 {
            trace = frame("CALL", 2, 3, "0x1", &format!(r#","calls":[{trace}]"#));
        }
        assert_eq!(parse_trace(trace.as_bytes()).unwrap().len(), 1_024);
    }

    #[test]
    fn unknown_shapes_are_refused() {
        let check = |text: &str| parse_trace(text.as_bytes()).unwrap_err();
        assert_eq!(check("null"), RawError::Missing("trace"));
        assert!(matches!(check("{}"), RawError::Json(_)));
        let odd = tree(&[frame("TELEPORT", 2, 3, "0x1", "")]);
        assert_eq!(check(&odd), RawError::Broken("type of call"));
        assert!(parse_flat_trace(b"[]").is_err());
        assert!(parse_flat_trace(b"null").is_err());
    }

    #[test]
    fn reads_the_flat_list() {
        let [a, b, c, d] = [1, 2, 3, 4].map(text);
        let call = |how: &str, from: &str, to: &str, value: u8, at: &str, more: &str| {
            format!(
                r#"{{"type":"call","action":{{"callType":"{how}","from":"{from}","to":"{to}",
                "value":"{value:#x}","gas":"0x1","input":"0x"}},"traceAddress":{at}{more}}}"#
            )
        };
        let list = [
            call("call", &a, &b, 100, "[]", ""),
            call("call", &b, &c, 5, "[0]", r#","error":"Reverted""#),
            call("call", &c, &d, 5, "[0,0]", ""),
            call("delegatecall", &b, &c, 100, "[1]", ""),
            call("call", &b, &c, 6, "[2]", r#","error":null"#),
            format!(
                r#"{{"type":"create","action":{{"from":"{c}","value":"0x3"}},
                "result":{{"address":"{d}"}},"traceAddress":[2,0]}}"#
            ),
            format!(
                r#"{{"type":"suicide","action":{{"address":"{d}","refundAddress":"{a}",
                "balance":"0x3"}},"result":null,"traceAddress":[3]}}"#
            ),
        ];
        let moves = parse_flat_trace(format!("[{}]", list.join(",")).as_bytes()).unwrap();
        assert_eq!(summary(&moves), [(2, 3, 6), (3, 4, 3), (4, 1, 3)]);
    }
}
