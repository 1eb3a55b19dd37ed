//! Continuation and end of lists of asset transfers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::alchemy::{AlchemyLister, METHOD};
use super::explorer_wire::ExplorerList;
use super::lists_model::{client, subject};
use super::node_model::{NodeFault, nodes};
use super::texts::hex_text;
use crate::domain::Height;

fn sent(id: u16, block: Height) -> Value {
    json!({
        "blockNum": format!("{block:#x}"), "hash": hex_text(&[id.to_be_bytes(); 16].concat()),
        "category": "erc20", "from": hex_text(&subject().wallet), "to": hex_text(&[9; 20]),
    })
}

async fn found(mut lister: AlchemyLister) -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    while let Some(window) = lister.next().await.unwrap() {
        let id = |hash: &[u8; 32]| u16::from_be_bytes([hash[0], hash[1]]);
        found.extend(window.found.iter().map(|one| id(&one.hash)));
    }
    found
}

/// The provider returns pages of `most` transfers without a key.
#[tokio::test(start_paused = true)]
async fn pages_of_many_transfers_alike_end_no_list_by_themselves() {
    for most in [100, 150] {
        let nodes = nodes(move |_, method, params| {
            let filter = &params[0];
            let end = filter["toBlock"].as_str().unwrap_or("0x0");
            let end = u64::from_str_radix(end.trim_start_matches("0x"), 16).unwrap();
            let all = (1..=300_u16).rev().map(|id| (id, u64::from(id)));
            let all = all.filter(|(_, block)| *block <= end && !filter["fromAddress"].is_null());
            Ok(match method {
                METHOD => {
                    let page: Vec<_> = all.take(most).map(|(id, block)| sent(id, block)).collect();
                    json!({"transfers": page})
                }
                _ => "0x1388".into(),
            })
        });
        let pool = nodes.pool(&["one"]);
        let lister = AlchemyLister::new(client(pool), (0, 5_000));
        assert_eq!(found(lister).await, (1..=300).collect(), "{most}");
    }
}

/// Every second answer lacks its key, and the pages end within a block.
#[tokio::test(start_paused = true)]
async fn a_page_without_a_key_is_cut_where_another_answer_has_one() {
    let asked = AtomicUsize::new(0);
    let nodes = nodes(move |_, method, params| {
        let filter = &params[0];
        let has_block = filter["toBlock"] == "0x1388" && !filter["fromAddress"].is_null();
        Ok(match method {
            METHOD if !has_block => json!({"transfers": []}),
            METHOD if !filter["pageKey"].is_null() => json!({"transfers": [sent(3, 5_000)]}),
            METHOD if asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => {
                json!({"transfers": [sent(1, 5_000), sent(2, 5_000)]})
            }
            METHOD => json!({"transfers": [sent(1, 5_000), sent(2, 5_000)], "pageKey": "next"}),
            _ => "0x186a0".into(),
        })
    });
    let pool = nodes.pool(&["one"]);
    let lister = AlchemyLister::new(client(pool), (0, 5_000));
    assert_eq!(found(lister).await, [1, 2, 3].into());
}

/// Every answer is empty and names a next page, or the first ones alone.
#[tokio::test(start_paused = true)]
async fn an_empty_page_that_names_a_next_one_ends_no_list() {
    for (empty, is_read) in [(2, true), (usize::MAX, false)] {
        let asked = AtomicUsize::new(0);
        let nodes = nodes(move |_, method, params| {
            Ok(match method {
                METHOD if asked.fetch_add(1, Ordering::Relaxed) < empty => {
                    json!({"transfers": [], "pageKey": "next"})
                }
                METHOD if params[0]["fromAddress"].is_null() => json!({"transfers": []}),
                METHOD => json!({"transfers": [sent(1, 9)]}),
                _ => "0x186a0".into(),
            })
        });
        let mut lister = AlchemyLister::new(client(nodes.pool(&["one"])), (0, 5_000));
        let mut count = 0;
        let end = loop {
            match lister.next().await {
                Ok(Some(window)) => count += window.found.len(),
                end => break end,
            }
        };
        assert_eq!((end.is_ok(), count), (is_read, usize::from(is_read)), "{end:?}");
    }
}

/// A category that an endpoint refuses is none that is empty.
#[tokio::test(start_paused = true)]
async fn a_kind_of_transfers_that_was_shown_or_refused_is_not_owed() {
    for refuses in [false, true] {
        let nodes = nodes(move |_, method, params| {
            let filter = &params[0];
            let categories = filter["category"].as_array();
            let has_calls = categories.is_some_and(|all| all.contains(&json!("internal")));
            match method {
                METHOD if refuses && has_calls => {
                    let text = "The internal category is only for some networks";
                    Err(NodeFault::Rpc(-32602, text))
                }
                METHOD if filter["fromAddress"].is_null() => Ok(json!({"transfers": []})),
                METHOD => Ok(json!({"transfers": [sent(1, 9)]})),
                _ => Ok("0x186a0".into()),
            }
        });
        let client = client(nodes.pool(&["one"]));
        let abilities = Arc::clone(&client.abilities);
        assert_eq!(found(AlchemyLister::new(client, (0, 5_000))).await, [1].into());
        let owed = ExplorerList::ALL.map(|kind| abilities.owes_transfers(kind, true));
        assert_eq!(owed, [true, false, !refuses], "{refuses}");
    }
}
