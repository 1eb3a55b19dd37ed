//! What a decoder must never return for any answer of a node: an amount that no balance moved by.

use std::collections::BTreeSet;

use blotter::decode::Decoded;
use serde_json::Value;

use super::replies::Reply;

/// The first row that exceeds the balances of the reply, in words.
pub(crate) fn beyond_balances(json: &Value, wallet: &str, decoded: &Decoded) -> Option<String> {
    let reply = Reply::read(json)?;
    // Nodes of 2020 keep no lists of token balances.
    if !reply.held.values().any(|held| held.listed) {
        return None;
    }
    let lamports: i128 = reply.lamports.values().map(|(before, _)| *before).sum();
    decoded.trades.iter().find_map(|row| {
        let mint = row.mint.to_string();
        let native = row.native.map_or(0, |native| i128::try_from(native).unwrap_or(i128::MAX));
        if native > lamports {
            return Some(format!("{native} lamports of {lamports} that there were"));
        }
        let units = i128::try_from(row.units?).unwrap_or(i128::MAX);
        let limit = limit(&reply, wallet, &mint);
        (units > limit).then(|| format!("{units} of {mint}, and balances moved by {limit} at most"))
    })
}

fn limit(reply: &Reply, wallet: &str, mint: &str) -> i128 {
    let moving: Vec<_> =
        reply.groups.iter().filter(|group| reply.net(wallet, group).contains_key(mint)).collect();
    let signs = reply.keys.iter().take(reply.signers).any(|key| key == wallet);
    let keys: BTreeSet<&String> = reply.keys.iter().collect();
    // Nodes never send a key twice; which one counts would be undefined.
    let plain = !reply.strange && keys.len() == reply.keys.len();
    if plain && signs && moving.len() == 1 {
        reply.change(wallet, mint).abs()
    } else {
        reply.visible(mint)
    }
}
