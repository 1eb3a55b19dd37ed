//! What a read of lists claims while the index of the only endpoint is behind or gives nothing, with
//! its blocks, accounts and slots as they should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::fetch::Fetched;
use super::full_pages::PageQuery;
use super::list::Entry;
use super::open::TOKEN_PROGRAM;
use super::reader::SolanaReader;
use super::timeline::Timeline;
use super::wire::signatures;
use super::{SolanaLimits, SolanaSource};
use crate::domain::{Address, Doubts, Height, TxId, UnixSeconds};
use crate::registry::Registry;
use crate::rpc::scripted::{NO_METHOD, NodeFault, ScriptedNodes, lane, rpc};
use crate::rpc::{CallOptions, EndpointId, Pool, Result, UpstreamError};
use crate::sources::chunk::{GapRequest, RawTx};

const WALLET: [u8; 32] = [42; 32];
const HEAD: Height = 1_000;
/// Slots of the wallet's transactions, newest first.
const OWN: [Height; 3] = [900, 500, 100];
const SLOT: Height = 250_000_000;
/// The byte that fills a signature: of the wallet's transactions, and of all others.
const WALLETS: u8 = 1;
const FOREIGN: u8 = 2;

fn id(slot: Height, whose: u8) -> String {
    let mut id = [whose; 64];
    id[..8].copy_from_slice(&slot.to_be_bytes());
    TxId::solana(&id).to_string()
}

fn slot_of(id: &str) -> Height {
    let Some(TxId::Solana(id)) = TxId::parse_solana(id) else { unreachable!() };
    u64::from_be_bytes(id.to_bytes()[..8].try_into().unwrap())
}

/// A transaction that moves nothing.
pub(super) fn transaction(slot: Height, signature: &str) -> Value {
    json!({
        "slot": slot,
        "blockTime": 1,
        "transaction": {
            "signatures": [signature],
            "message": {
                "header": {"numRequiredSignatures": 1},
                "accountKeys": [Address::Solana(WALLET).to_string()],
                "instructions": [],
            },
        },
        "meta": {"err": null, "fee": 0, "preBalances": [0], "postBalances": [0],
                 "preTokenBalances": [], "postTokenBalances": [], "innerInstructions": []},
    })
}

/// A node that finds a cursor by its blocks, whether or not it is in the list.
#[derive(Debug)]
struct Node {
    /// The highest slot of its lists; 0: they are empty.
    listed: AtomicU64,
    exists: bool,
}

impl Node {
    fn new(listed: Height, exists: bool) -> Arc<Self> {
        Arc::new(Self { listed: AtomicU64::new(listed), exists })
    }

    fn signatures(&self, params: &Value) -> Value {
        let listed = self.listed.load(Ordering::Relaxed);
        let before = params[1]["before"].as_str().map_or(Height::MAX, slot_of);
        let is_wallets = params[0] == Address::Solana(WALLET).to_string();
        let (slots, whose): (Vec<Height>, u8) = if is_wallets {
            (OWN.to_vec(), WALLETS)
        } else {
            ((1..=HEAD).rev().collect(), FOREIGN)
        };
        let limit = usize::try_from(params[1]["limit"].as_u64().unwrap()).unwrap();
        let shown = slots.into_iter().filter(|slot| *slot < before && *slot <= listed).take(limit);
        let row =
            |slot| json!({"signature": id(slot, whose), "slot": slot, "blockTime": 1, "err": null});
        shown.map(row).collect()
    }

    fn result(&self, method: &str, params: &Value) -> Option<Value> {
        let context = json!({"slot": HEAD});
        let (first, hash) = (&params[0], Address::Solana([3; 32]).to_string());
        Some(match method {
            "getSlot" => json!(HEAD),
            "getFirstAvailableBlock" => json!(0),
            "getLatestBlockhash" => json!({"context": context, "value": {"blockhash": hash}}),
            "getTokenAccountsByOwner" => json!({"context": context, "value": []}),
            "getAccountInfo" => {
                let owner = Address::Solana([0; 32]).to_string();
                let account = json!({"data": ["", "base64"], "owner": owner, "executable": false});
                json!({"context": context, "value": self.exists.then_some(account)})
            }
            "getBlocksWithLimit" => json!([first]),
            "getBlock" => {
                json!({"blockhash": hash, "signatures": [id(first.as_u64().unwrap(), FOREIGN)]})
            }
            "getSignaturesForAddress" => self.signatures(params),
            "getTransaction" => {
                let signature = first.as_str().unwrap();
                transaction(slot_of(signature), signature)
            }
            _ => return None,
        })
    }
}

/// Reads by a new source; returns the found slots and the doubts.
async fn read(
    node: &Arc<Node>,
    low: Height,
    high: Option<Height>,
) -> Result<(Vec<Height>, Doubts)> {
    let node = Arc::clone(node);
    let nodes = ScriptedNodes::new(move |(_, _, body)| {
        rpc(body, |method, params| node.result(method, params).ok_or(NO_METHOD))
    });
    read_by(nodes.pool(&["one"]), low, high).await
}

async fn read_by(pool: Pool, low: Height, high: Option<Height>) -> Result<(Vec<Height>, Doubts)> {
    let registry = Registry::embedded().unwrap();
    let source = SolanaSource::new(pool, None, SolanaLimits::default())
        .with_busy_account(registry.chain_named("solana").unwrap());
    read_from(source, low, high).await
}

async fn read_from(
    source: SolanaSource,
    low: Height,
    high: Option<Height>,
) -> Result<(Vec<Height>, Doubts)> {
    let request = GapRequest {
        wallet: Address::Solana(WALLET),
        low,
        high,
        resume: None,
        accounts: Vec::new(),
        knows_accounts: true,
        lane: lane(),
        first: false,
        another: None,
    };
    let mut reader = SolanaReader::new(source, request);
    let (mut found, mut doubts) = (Vec::new(), Doubts::NONE);
    while let Some(chunk) = reader.next_chunk().await? {
        found.extend(chunk.txs.iter().chain(&chunk.late).map(RawTx::height));
        doubts = doubts.union(chunk.proof.doubts);
    }
    Ok((found, doubts))
}

/// Slots are filled from a signature of the block above them. An index that has reached slot 800
/// would show slot 500 as the next entry below, which would seem to end the list.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_behind_the_signature_it_begins_at_fills_nothing() {
    for (low, high) in [(900, 900), (850, 950)] {
        let node = Node::new(800, true);
        let refused = read(&node, low, Some(high)).await;
        assert!(matches!(refused, Err(UpstreamError::Unavailable { .. })), "{refused:?}");
        node.listed.store(HEAD, Ordering::Relaxed);
        assert_eq!(read(&node, low, Some(high)).await, Ok((vec![900], Doubts::NONE)));
    }
    // Slots below 800 are listed in full.
    assert_eq!(read(&Node::new(800, true), 400, Some(600)).await, Ok((vec![500], Doubts::NONE)));
}

/// The list of a wallet that was read before shows at least what was read then. A refresh, or a
/// second read of the same heights, that receives an empty list proves nothing.
#[tokio::test(start_paused = true)]
async fn a_list_that_gives_nothing_of_an_account_that_exists_is_in_doubt_above_what_is_known() {
    for high in [None, Some(950)] {
        let read_again = async |listed, exists| read(&Node::new(listed, exists), 850, high).await;
        assert_eq!(read_again(0, true).await, Ok((vec![], Doubts::UNCONFIRMED)));
        assert_eq!(read_again(HEAD, true).await, Ok((vec![900], Doubts::NONE)));
        assert_eq!(read_again(0, false).await, Ok((vec![], Doubts::NONE)), "it was never used");
    }
}

/// One node lists and does not say what it keeps; the other one, which keeps all, is busy when lists
/// are asked for at first.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_list_is_asked_of_another_node_than_one_that_does_not_say_what_it_keeps() {
    let (node, busy_for) = (Node::new(HEAD, true), AtomicU64::new(6));
    let is_busy = move || {
        let left = busy_for.load(Ordering::Relaxed);
        busy_for.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    };
    let nodes = ScriptedNodes::new(move |(host, _, body)| {
        rpc(body, |method, params| match (host, method) {
            ("silent", "getFirstAvailableBlock") => Err(NodeFault::Broken),
            ("whole", "getSignaturesForAddress") if is_busy() => {
                Err(NodeFault::Rpc(-32005, "Node is behind by 200 slots"))
            }
            _ => node.result(method, params).ok_or(NO_METHOD),
        })
    });
    let pool = nodes.pool(&["silent", "whole"]);
    assert_eq!(read_by(pool, 0, None).await, Ok((OWN.to_vec(), Doubts::NONE)));
}

/// A list from the top may begin far above the wanted heights: a temporary failure starts none.
#[tokio::test(start_paused = true)]
async fn blocks_above_that_are_not_given_for_a_moment_are_waited_for() {
    for (fails, code, waits) in [
        ("getBlocksWithLimit", -32603, true),
        ("getBlocksWithLimit", -32601, false),
        ("getBlock", -32603, true),
        ("getBlock", -32004, false),
    ] {
        let node = Node::new(HEAD, true);
        let nodes = ScriptedNodes::new(move |(_, _, body)| {
            rpc(body, |method, params| match node.result(method, params) {
                Some(result) if method != fails => Ok(result),
                Some(_) => Err(NodeFault::Rpc(code, "not here")),
                None => Err(NO_METHOD),
            })
        });
        let got = read_by(nodes.pool(&["one"]), 400, Some(600)).await;
        if waits {
            assert!(matches!(got, Err(UpstreamError::Unavailable { .. })), "{fails}: {got:?}");
        } else {
            assert_eq!(got, Ok((vec![500], Doubts::NONE)), "{fails}");
        }
    }
}

/// A node that stores no inner calls returns null for them, or an empty list next to a log that shows
/// them; a trade would not be recognized.
#[tokio::test(start_paused = true)]
async fn a_transaction_without_what_nodes_record_is_not_given() {
    let signature = id(SLOT, WALLETS);
    let lists = ["preTokenBalances", "postTokenBalances", "innerInstructions"];
    let lacks = lists.map(|name| (name, Value::Null));
    for (name, empty) in lacks.into_iter().chain([("innerInstructions", json!([]))]) {
        let given = signature.clone();
        let nodes = ScriptedNodes::new(move |(host, _, body)| {
            rpc(body, |method, _| {
                let mut tx = transaction(SLOT, &given);
                if host == "poor" {
                    tx["meta"][name] = empty.clone();
                    let line = format!("Program {} invoke [2]", Address::Solana(WALLET));
                    tx["meta"]["logMessages"] = json!([line]);
                }
                Ok(if method == "getTransaction" { tx } else { json!({"data": [tx]}) })
            })
        });
        for (hosts, is_given) in [(&["poor", "whole"][..], true), (&["poor"], false)] {
            let source = SolanaSource::new(nodes.pool(hosts), None, SolanaLimits::default());
            let id = TxId::parse_solana(&signature).unwrap();
            let entry = Entry { slot: SLOT, id, time: Some(1), failed: None };
            let options = CallOptions::new(lane());
            let given = source.transactions(vec![entry], options.clone()).await.unwrap();
            let given = given.iter().filter(|(_, tx)| matches!(tx, Fetched::Transaction(_)));
            assert_eq!(given.count() == 1, is_given);
            let (low, high, token, known_to) = (SLOT, SLOT, None, None);
            let query = PageQuery { low, high, limit: 1, ascending: true, token, known_to };
            let wallet = (WALLET, Address::Solana(WALLET));
            let page = source.full_page(wallet, &query, &options.first_on(EndpointId(0))).await;
            assert!(matches!(page, Err(UpstreamError::Malformed { .. })), "{name}: {page:?}");
        }
    }
}

/// Lists of old nodes may lack the field: then the transaction itself decides, by two answers.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_its_list_shows_as_good_is_not_a_failed_one() {
    let signature = id(SLOT, WALLETS);
    let given = signature.clone();
    let nodes = ScriptedNodes::new(move |(_, _, body)| {
        rpc(body, |_, _| {
            let mut tx = transaction(SLOT, &given);
            tx["meta"]["err"] = json!({"InstructionError": [0, {"Custom": 1}]});
            Ok(tx)
        })
    });
    let source = SolanaSource::new(nodes.pool(&["one"]), None, SolanaLimits::default());
    for (listed, is_believed) in [(r#","err":null"#, false), ("", true)] {
        let listed = format!(r#"[{{"signature":"{signature}","slot":{SLOT}{listed}}}]"#);
        let entries = signatures(&RawValue::from_string(listed.clone()).unwrap()).unwrap();
        let mut timeline = Timeline::new(0, SLOT);
        timeline.add(&entries, true);
        let options = CallOptions::new(lane());
        let given = source.transactions(timeline.take(1).0, options).await.unwrap();
        assert_eq!(matches!(given[0].1, Fetched::Transaction(_)), is_believed, "{listed:?}");
    }
}

/// Two answers of a list mark it; the node's record of the transaction itself decides.
#[tokio::test(start_paused = true)]
async fn a_transaction_that_its_list_marks_as_failed_is_looked_up() {
    const MARKED: Height = 500;
    let error = json!({"InstructionError": [0, "x"]});
    let of = |slot: Height, err: Value| json!([{"slot": slot, "err": err}]);
    for (statuses, expected) in [
        (Some(of(MARKED, Value::Null)), &[900, MARKED, 100][..]),
        (Some(of(MARKED, error.clone())), &[900, 100]),
        // Of another transaction, of one that the node does not have, and of none.
        (Some(of(MARKED + 1, Value::Null)), &[900, 100]),
        (Some(json!([null])), &[900, 100]),
        (None, &[900, 100]),
    ] {
        let (node, error, is_offered) = (Node::new(HEAD, true), error.clone(), statuses.is_some());
        let nodes = ScriptedNodes::new(move |(_, _, body)| {
            rpc(body, |method, params| {
                if method == "getSignatureStatuses" {
                    let context = json!({"slot": HEAD});
                    let value = statuses.clone().ok_or(NO_METHOD)?;
                    return Ok(json!({"context": context, "value": value}));
                }
                let mut result = node.result(method, params).ok_or(NO_METHOD)?;
                for row in result.as_array_mut().into_iter().flatten() {
                    if row["slot"] == MARKED {
                        row["err"] = error.clone();
                    }
                }
                Ok(result)
            })
        });
        let (found, doubts) = read_by(nodes.pool(&["one"]), 0, None).await.unwrap();
        assert_eq!((found.as_slice(), doubts), (expected, Doubts::NONE));
        // That a method is not offered takes more than one answer.
        assert!(!is_offered || nodes.count("getSignatureStatuses") == 1);
    }
}

/// A node that keeps no blocks so old does not have it; another one may.
#[tokio::test(start_paused = true)]
async fn a_mark_of_failure_is_looked_up_by_each_node_until_one_has_the_transaction() {
    let error = json!({"InstructionError": [0, "x"]});
    for (err, failed) in [(Value::Null, false), (error, true)] {
        let nodes = ScriptedNodes::new(move |(host, _, body)| {
            rpc(body, |_, params| {
                let known = host == "whole" && params[0] == json!([id(SLOT, WALLETS)]);
                let value = if known { json!([{"slot": SLOT, "err": err}]) } else { json!([null]) };
                Ok(json!({"context": {"slot": SLOT}, "value": value}))
            })
        });
        let pool = nodes.pool(&["pruned", "older", "whole", "unasked"]);
        let source = SolanaSource::new(pool, None, SolanaLimits::default());
        let id = TxId::parse_solana(&id(SLOT, WALLETS)).unwrap();
        let entry = Entry { slot: SLOT, id, time: None, failed: Some(true) };
        let pruned = CallOptions::new(lane()).first_on(EndpointId(0));
        let found = source.not_failed(&[entry], &pruned).await;
        assert_eq!((found.contains(&id), nodes.count("getSignatureStatuses")), (!failed, 3));
    }
}

/// What one answer gives as failed, and its list does not, is asked for again, also where another
/// answer has lacked it.
#[tokio::test(start_paused = true)]
async fn one_answer_that_gives_a_transaction_as_failed_is_not_believed() {
    let cases: [(&[&str], Option<bool>); 4] = [
        (&["failed", "right"], Some(false)),
        (&["null", "failed", "right"], Some(false)),
        (&["null", "failed", "failed"], Some(true)),
        (&["null", "failed", "null"], None),
    ];
    for (answers, expected) in cases {
        let asked = AtomicU64::new(0);
        let nodes = ScriptedNodes::new(move |(_, _, body)| {
            rpc(body, |_, params| {
                let signature = params[0].as_str().unwrap();
                let number = usize::try_from(asked.fetch_add(1, Ordering::Relaxed)).unwrap();
                let mut tx = transaction(slot_of(signature), signature);
                match answers[number] {
                    "null" => return Ok(Value::Null),
                    "failed" => tx["meta"]["err"] = json!("AccountNotFound"),
                    _ => {}
                }
                Ok(tx)
            })
        });
        let source = SolanaSource::new(nodes.pool(&["one"]), None, SolanaLimits::default());
        let own = TxId::parse_solana(&id(OWN[0], WALLETS)).unwrap();
        let entry = Entry { slot: OWN[0], id: own, time: Some(1), failed: None };
        let given = source.transactions(vec![entry], CallOptions::new(lane())).await.unwrap();
        let failed = match &given[0].1 {
            Fetched::Transaction((tx, _)) => Some(tx.failed()),
            Fetched::Missing | Fetched::Failing => None,
        };
        assert_eq!(failed, expected, "{answers:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_time_of_zero_is_none() {
    let nodes = ScriptedNodes::new(|(_, _, body)| {
        rpc(body, |_, params| Ok(json!(if params[0] == 8 { 1_700_000_000 } else { 0 })))
    });
    let source = SolanaSource::new(nodes.pool(&["one"]), None, SolanaLimits::default());
    let time = source.time_of(9, Some(0), &CallOptions::new(lane())).await;
    assert_eq!(time, Ok(Some(UnixSeconds(1_700_000_000))));
}

/// A call of the token program for the wallet's account, which holds these amounts before and after.
fn moved(signature: &str, account: &str, [before, after]: [Option<u64>; 2]) -> Value {
    let (owner, mint) = (Address::Solana(WALLET).to_string(), Address::Solana([8; 32]).to_string());
    let held = |amount: Option<u64>| -> Value {
        let row = |amount: u64| {
            json!({"accountIndex": 2, "mint": mint, "owner": owner,
                   "uiTokenAmount": {"amount": amount.to_string(), "decimals": 6}})
        };
        amount.map(row).into_iter().collect()
    };
    let mut tx = transaction(slot_of(signature), signature);
    // Instruction 17 is SyncNative.
    let call = json!({"programIdIndex": 1, "accounts": [2],
                      "data": bs58::encode([17]).into_string()});
    tx["transaction"]["message"]["accountKeys"] = json!([owner, TOKEN_PROGRAM, account]);
    tx["transaction"]["message"]["instructions"] = json!([call]);
    for (of, amount) in [("pre", before), ("post", after)] {
        tx["meta"][format!("{of}Balances")] = json!([0, 0, 0]);
        tx["meta"][format!("{of}TokenBalances")] = held(amount);
    }
    tx
}

/// The list of a token account leaves out its second transaction, in two answers or in all: what the
/// second list lacks too is believed. Nothing else is asked for when its balances show that.
#[tokio::test(start_paused = true)]
async fn an_account_whose_balances_do_not_meet_is_listed_again() {
    let [low, middle, top] = [SLOT + 1, SLOT + 5, SLOT + 9];
    let whole = (vec![top, middle, low], Doubts::NONE);
    for (cut, expected) in [(2, whole), (99, (vec![top, low], Doubts::NONE))] {
        let (account, asked) = (Address::Solana([7; 32]).to_string(), AtomicU64::new(0));
        let nodes = ScriptedNodes::new(move |(_, _, body)| {
            rpc(body, |method, params| {
                let context = json!({"slot": SLOT + 20});
                Ok(match method {
                    "getSlot" => json!(SLOT + 20),
                    "getFirstAvailableBlock" => json!(0),
                    "getTokenAccountsByOwner" if params[1]["programId"] == TOKEN_PROGRAM => {
                        // Two, as eight bytes.
                        let held = json!({"data": ["AgAAAAAAAAA=", "base64"], "executable": false,
                                          "owner": TOKEN_PROGRAM});
                        let held = json!({"pubkey": account, "account": held});
                        json!({"context": context, "value": [held]})
                    }
                    "getTokenAccountsByOwner" => json!({"context": context, "value": []}),
                    "getSignaturesForAddress" => {
                        let is_whole = params[0] == account.as_str()
                            && asked.fetch_add(1, Ordering::Relaxed) >= cut;
                        let before = params[1]["before"].as_str().map_or(Height::MAX, slot_of);
                        let shown = [top, middle, low].into_iter().filter(|slot| *slot < before);
                        let shown = shown.filter(|slot| is_whole || *slot != middle);
                        let row = |slot| {
                            json!({"signature": id(slot, WALLETS), "slot": slot,
                                                "blockTime": 1, "err": null})
                        };
                        shown.map(row).collect()
                    }
                    "getTransaction" => {
                        let signature = params[0].as_str().unwrap();
                        let held = match slot_of(signature) {
                            slot if slot == top => [Some(5), Some(2)],
                            slot if slot == middle => [Some(4), Some(5)],
                            _ => [None, Some(4)],
                        };
                        moved(signature, &account, held)
                    }
                    _ => return Err(NO_METHOD),
                })
            })
        });
        let source = SolanaSource::new(nodes.pool(&["one"]), None, SolanaLimits::default());
        let (mut found, doubts) = read_from(source, 0, None).await.unwrap();
        found.sort_unstable_by_key(|slot| std::cmp::Reverse(*slot));
        found.dedup();
        assert_eq!((found, doubts), expected, "{cut}");
    }
}
