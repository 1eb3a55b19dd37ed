//! Continuation and end of lists of asset transfers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::alchemy::{AlchemyLister, METHOD};
use super::lists_model::{client, subject};
use super::node_model::nodes;
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
