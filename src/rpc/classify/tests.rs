use proptest::prelude::*;

use super::super::policy::Failure;
use super::super::policy::RetryDecision::{
    self, Fatal, ReduceBatch, ReduceRange, Refused, Retry, RetryElsewhere, SlowDown, Unknown,
    Unsupported,
};
use super::{classify, is_pruned, is_revert, may_be_behind};
use crate::rpc::transport::TransportError;

#[track_caller]
fn of(method: &str, status: u16, code: i64, message: &str, expected: RetryDecision) {
    let failure = Failure::Rpc { status, code, message: message.to_owned() };
    assert_eq!(classify(&failure, method, false), expected, "{method} {status} {code} {message}");
}

#[track_caller]
fn in_batch(method: &str, code: i64, message: &str, expected: RetryDecision) {
    let failure = Failure::Rpc { status: 200, code, message: message.to_owned() };
    assert_eq!(classify(&failure, method, true), expected, "{method} {code} {message}");
}

/// A body that is no JSON-RPC.
#[track_caller]
fn http(method: &str, status: u16, text: &str, expected: RetryDecision) {
    let failure = Failure::Http { status, text: text.to_owned() };
    assert_eq!(classify(&failure, method, false), expected, "{method} {status} {text}");
}

const EVM: [&str; 4] = ["eth_chainId", "eth_getLogs", "eth_getBalance", "debug_traceTransaction"];
const SOLANA: [&str; 3] = ["getSlot", "getTransaction", "getTokenAccountsByOwner"];

fn all() -> impl Iterator<Item = &'static str> {
    EVM.into_iter().chain(SOLANA)
}

#[test]
fn a_missing_key_plan_or_quota_is_a_refusal_whatever_status_and_code() {
    let cases = [
        (200, -32000, "Unauthorized: You must authenticate your request with an API key."),
        (200, -32429, "max usage reached"),
        (400, 35, "chain is not available on free plan, please upgrade to paid plan"),
        (400, 35, "method is not available on free plan, please upgrade to paid plan"),
        (403, 403, "Your IP or provider is blocked from this endpoint"),
        (403, -32602, "Request blocked"),
        (403, -32602, "Indexed requests require a personal token"),
        (401, -32000, ""),
        (402, 0, "no words"),
        (429, -32003, "daily request limit reached - upgrade your account"),
        (200, -32005, "daily request count exceeded, request rate limited"),
        (200, -32000, "Monthly capacity limit exceeded. Visit our pricing page"),
        (200, -32000, "key (hidden) is over its quota"),
    ];
    for (status, code, message) in cases {
        for method in all() {
            of(method, status, code, message, Refused);
        }
    }
    for method in all() {
        http(method, 401, "invalid project id", Refused);
        http(method, 403, "<html>this address is not allowed</html>", Refused);
        http(method, 200, "max usage reached", Refused);
    }
}

#[test]
fn a_call_that_fails_on_every_node_is_a_revert_by_any_clients_text() {
    for fault in super::evm::FAULTS {
        assert!(is_revert(-32000, &format!("err: {fault} (supplied gas 50000000)")), "{fault}");
    }
    assert!(is_revert(-32000, "stack underflow (0 <=> 4)") && is_revert(3, "no words"));
    for other in ["execution aborted (timeout = 5s)", "header not found", "internal error"] {
        assert!(!is_revert(-32000, other), "{other}");
    }
}

#[test]
fn rates_are_rates_though_they_advise_to_pay() {
    let cases = [
        (-32005, "project ID request rate exceeded"),
        (-32029, "Too Many Requests"),
        (-32016, "over rate limit"),
        (-32090, "Too many requests, reason: call rate limit exhausted, retry in 10s"),
        (429, "Your app has exceeded its compute units per second capacity. Please upgrade."),
        (-32007, "50/second request limit reached"),
        (-32602, "Too many requests for a specific RPC call"),
        (429, "The requests per second (RPS) of your requests are higher"),
    ];
    for (code, message) in cases {
        for method in all() {
            of(method, 200, code, message, SlowDown);
        }
    }
    of("eth_chainId", 200, -32005, "", SlowDown);
    of("eth_call", 200, -32005, "limit exceeded", SlowDown);
    for method in all() {
        of(method, 429, 1, "no words", SlowDown);
        http(method, 429, "error code: 1015", SlowDown);
        http(method, 529, "", SlowDown);
    }
}

/// Texts that providers of EVM nodes document, or that their clients' sources hold.
#[test]
fn a_range_that_is_too_large_is_for_the_caller() {
    let cases = [
        (
            -32602,
            "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0xd043b8]",
        ),
        (
            -32600,
            "You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x1, 0x2]",
        ),
        (-32005, "query returned more than 10000 results. Try with this block range [0x1, 0x2]."),
        (-32602, "range 1000000 exceeds limit of 10000"),
        (-32614, "eth_getLogs is limited to a 10,000 range"),
        (-32062, "Block range is too large"),
        (-32600, "block range is too wide"),
        (-32000, "exceed maximum block range: 50000"),
        (35, "ranges over 10000 blocks are not supported on freetier"),
        (-32000, "query exceeds max results 20000, retry with the range 1-2"),
        (-32000, "query exceeds max block range 100000"),
        (-32603, "eth_getLogs range is too large, max is 1k blocks"),
        (-32000, "Requested range is too wide. Max range: 800"),
        (-32000, "Invalid. Max range: 800"),
        (-32005, "Maximum allowed number of requested blocks is 1000"),
        (-32000, "eth_getLogs is limited to 1024 block range"),
        (-32005, "eth_getLogs is limited to 1024 block"),
        (-32005, "Block range limit exceeded."),
        (-32000, "please limit the query to at most 1000 blocks"),
        (-32000, "block range too large"),
        (-32020, "backend response too large"),
        (-32000, "logs matched by query exceeds limit of 10000"),
        (-32005, "range 5000 is bigger than range limit 2000"),
        (-32000, "requested too many blocks from 1 to 5000, maximum is set to 2048"),
        (-32005, "query returned more than 10000 results"),
        (-32000, "response size should not greater than 10000000 bytes"),
        (-32000, "block range is too wide (maximum 1024)"),
        (-32000, "block range is larger than max block range"),
        (-32000, "the range 5000 exceeds the range allowed for your plan (5000 > 1000)"),
        (-32012, "getLogs request exceeded max allowed range"),
        (-32012, "range threshold exceeded"),
        (-32602, "exceed max block range: 5000"),
        (-32000, "context deadline exceeded"),
        (-32002, "query timeout exceeded"),
    ];
    for (code, message) in cases {
        for status in [200, 400, 403, 413, 500] {
            of("eth_getLogs", status, code, message, ReduceRange);
        }
    }
    let whole = "You can make eth_getLogs requests with up to a 10 block range.";
    in_batch("eth_blockNumber", -32600, whole, Unknown);
    let large = "backend response too large";
    in_batch("eth_getTransactionReceipt", -32020, large, ReduceBatch);
}

#[test]
fn a_log_query_that_takes_too_long_is_halved_and_other_calls_are_repeated() {
    let timeout = "Request timeout on the free plan, please upgrade to paid plan";
    of("eth_getLogs", 408, 30, timeout, ReduceRange);
    of("eth_getBalance", 408, 30, timeout, Retry);
    for status in [408, 504, 524] {
        http("eth_getLogs", status, "<html>", ReduceRange);
        http("eth_getBalance", status, "<html>", Retry);
    }
    let failure = Failure::Transport(TransportError::Timeout);
    assert_eq!(classify(&failure, "eth_getLogs", true), ReduceRange);
    assert_eq!(classify(&failure, "eth_call", true), Retry);
}

#[test]
fn history_that_one_node_lacks_another_may_have() {
    let cases = [
        (-32000, "missing trie node 0123 (path ) state 0x0123 is not available"),
        (-32000, "state is pruned"),
        (-32000, "header not found"),
        (-32000, "historical state 0123 is not available"),
        (-32000, "required historical state unavailable (reexec=128)"),
        (-32061, "No archive nodes available"),
        (4444, "pruned history unavailable"),
        (-32701, "History has been pruned for this block"),
        (-32002, "No state available for block 36600 (0x98)"),
        (-32801, ""),
        (27, "Unknown state. First available state is 1"),
        (-32000, "old data not available due to pruning: requested block 6134861"),
        (-32602, "Archive requests require a personal token. Get one at: https://x.example"),
        (-32000, "distance to target block exceeds maximum proof window"),
    ];
    for (code, message) in cases {
        for method in ["eth_getBalance", "debug_traceTransaction", "eth_getLogs"] {
            of(method, 200, code, message, RetryElsewhere);
            of(method, 403, code, message, RetryElsewhere);
        }
        assert!(is_pruned(code, message), "{message}");
    }
    of("eth_getLogs", 200, -32000, "invalid block range", RetryElsewhere);
    assert!(!is_pruned(-32000, "invalid block range"), "of a node that is behind");
    let plan = "Archive, Debug and Trace requests are not available on your current plan.";
    of("debug_traceTransaction", 200, -32002, plan, Refused);
    of("eth_getBalance", 200, -32002, plan, RetryElsewhere);
}

/// A sale that a lagging node cannot trace yet could be taken for one that is too old to be traced.
#[test]
fn what_is_not_found_may_be_too_new_and_what_was_dropped_is_not() {
    let behind = [
        (-32000, "transaction not found"),
        (-32000, "transaction 0x5c not found"),
        (-32000, "header not found"),
        (-32000, "block not found: 0x5c"),
        (-32000, "Could not find block"),
        (-32001, "Cannot find transaction 0x5c"),
        (26, "Unknown block"),
    ];
    for (code, message) in behind {
        assert!(is_pruned(code, message) && may_be_behind(code, message), "{message}");
    }
    let dropped = [
        (-32000, "missing trie node 0123 (path ) state 0x0123 is not available"),
        (-32000, "required historical state unavailable (reexec=128)"),
        (-32000, "old data not available due to pruning: requested block 6134861"),
        (-32000, "block not found: its state is pruned"),
        (-32001, "pruned history unavailable"),
        (4444, "pruned history unavailable"),
        (-32701, "History has been pruned for this block"),
        (-32002, "No state available for block 36600 (0x98)"),
        (27, "Unknown state. First available state is 1"),
    ];
    for (code, message) in dropped {
        assert!(is_pruned(code, message) && !may_be_behind(code, message), "{message}");
    }
}

#[test]
fn a_method_is_absent_by_its_own_name_only() {
    let absent = "the method trace_block does not exist/is not available";
    of("trace_block", 200, -32601, absent, Unsupported);
    of("eth_getLogs", 200, -32075, "method disabled", Unsupported);
    of("getSlot", 410, 410, "The RPC call or parameters have been disabled.", Unsupported);
    for method in all() {
        of(method, 200, -32601, "Method not found", Unsupported);
        of(method, 200, -32602, "encoding base58 is not supported", Unknown);
        http(method, 404, "404 page not found", Retry);
        http(method, 405, "<html><h1>405 Not Allowed</h1></html>", Retry);
    }
    let unknown = "transaction 0x5c not found";
    of("debug_traceTransaction", 200, -32000, unknown, RetryElsewhere);
    of("eth_chainId", 503, -32000, "the service is not available", Retry);
    // An error about a range or a depth does not make a method unsupported.
    of("eth_getLogs", 200, -32005, "limit exceeded", ReduceRange);
}

#[test]
fn codes_of_solana_are_read_by_its_own_table() {
    let elsewhere = [
        (-32001, "Block 5 cleaned up, does not exist on node. First available block: 9"),
        (-32007, "Slot 5 was skipped, or missing due to ledger jump"),
        (-32009, "Slot 5 was skipped, or missing in long-term storage"),
        (-32015, "Transaction version (1) is not supported by the requesting client."),
        (-32020, "Transaction 5h6x not found"),
        (
            -32600,
            "Request deprioritized due to number of accounts requested. Slow down requests or add filters to narrow down results",
        ),
    ];
    for (code, message) in elsewhere {
        of("getTransaction", 200, code, message, RetryElsewhere);
    }
    let kept = "Transaction history is not available from this node";
    of("getTransaction", 200, -32011, kept, Unsupported);
    of("getBlock", 200, -32004, "Block not available for slot 5", RetryElsewhere);
    of("getBlockTime", 200, -32004, "Block not available for slot 5", Retry);
    of("getSlot", 200, -32005, "Node is behind by 42 slots", Retry);
    of("getSlot", 200, -32016, "Minimum context slot has not been reached", Retry);
    of("getSlot", 200, -32019, "long-term storage cannot be reached", Retry);
    of("getSlot", 200, -32602, "Invalid limit; max 1000", Unknown);
}

#[test]
fn what_reverts_is_final_and_what_no_table_knows_is_not() {
    of("eth_call", 200, 3, "execution reverted", Fatal);
    of("eth_call", 200, -32000, "execution reverted: over capacity, try again", Fatal);
    of("eth_call", 200, -32000, "invalid opcode: INVALID", Fatal);
    of("eth_chainId", 503, -32011, "no backends available for method", Retry);
    of("eth_chainId", 500, -32013, "backend returned an invalid response", Retry);
    of("eth_getLogs", 200, -32000, "no backend is currently healthy to serve traffic", Retry);
    of("eth_chainId", 200, -32000, "words that no table has", Unknown);
    of("eth_chainId", 500, -32000, "words that no table has", Retry);
    http("eth_chainId", 521, "error code: 521", Retry);
    http("eth_chainId", 200, "", Retry);
    in_batch("eth_chainId", -32600, "batch too large, max 100", ReduceBatch);
    in_batch("getSlot", -32600, "Batch requests are only for paid plans", ReduceBatch);
}

proptest! {
    /// No status or code, and no text without a known word, ends a call at once.
    #[test]
    fn what_is_not_known_is_asked_elsewhere(
        status in 200_u16..600,
        code in -40_000_i64..6_000,
        message in "[bcdfghjklmnpqrstvwxz ]{0,40}",
        at in 0_usize..7,
    ) {
        let method = all().nth(at).unwrap();
        let failure = Failure::Rpc { status, code, message };
        let decision = classify(&failure, method, false);
        let is_revert = EVM.contains(&method) && code == 3;
        let is_query = method == "eth_getLogs";
        prop_assert!(decision != Fatal || is_revert);
        prop_assert!(decision != ReduceRange || is_query);
    }
}
