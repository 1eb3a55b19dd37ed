//! Whether transactions failed that a list marks so: a node's own record of each signature, of many
//! in one call.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::SolanaSource;
use super::list::Entry;
use crate::domain::{Height, TxId};
use crate::rpc::{Call, CallOptions, CallResponse, EndpointSet};

/// Signatures in a call at most (solana.com, `getSignatureStatuses`).
pub(super) const STATUSES_MAX: usize = 256;

#[derive(Deserialize)]
struct Statuses<'a> {
    #[serde(borrow)]
    value: Vec<Option<Status<'a>>>,
}

#[derive(Deserialize)]
struct Status<'a> {
    slot: Height,
    #[serde(default, borrow)]
    err: Option<&'a RawValue>,
}

impl SolanaSource {
    /// Which of these transactions did not fail. One that the node which answers does not have is
    /// asked of the others, as one of them may keep more. None where no node answers: that a list
    /// marks them as failed is all that is known then.
    pub(super) async fn not_failed(&self, given: &[Entry], options: &CallOptions) -> HashSet<TxId> {
        let (mut open, mut asked) = (given.to_vec(), EndpointSet::default());
        let mut not_failed = HashSet::new();
        let mut next = Some(options.clone());
        let mut rounds = 0..=self.inner.pool.endpoints().len();
        while let Some(options) = next.filter(|_| !open.is_empty() && rounds.next().is_some()) {
            let ids: Vec<String> = open.iter().map(|entry| entry.id.to_string()).collect();
            let calls: Vec<Call> = ids.chunks(STATUSES_MAX).map(statuses_call).collect();
            let answers = self.inner.pool.batch(&calls, &options.failing_soon()).await;
            let mut unknown: Vec<Entry> = Vec::new();
            for (group, answer) in open.chunks(STATUSES_MAX).zip(answers) {
                let Ok(CallResponse { result, endpoint, .. }) = answer else {
                    // Another one may have what this one was asked for alone.
                    unknown.extend(group.iter().filter(|_| options.on.is_some()));
                    continue;
                };
                asked.insert(endpoint);
                for (entry, status) in group.iter().zip(statuses(group, &result)) {
                    match status {
                        Some(true) => {}
                        Some(false) => {
                            not_failed.insert(entry.id);
                        }
                        None => unknown.push(*entry),
                    }
                }
            }
            open = unknown;
            let all = self.inner.pool.endpoints();
            let other = all.iter().find(|one| !one.resting && !asked.contains(one.id));
            next = other.map(|other| {
                asked.insert(other.id);
                CallOptions { without: EndpointSet::default(), ..options.first_on(other.id) }
            });
        }
        not_failed
    }
}

fn statuses_call(ids: &[String]) -> Call {
    let how = json!({"searchTransactionHistory": true});
    Call { method: "getSignatureStatuses", params: json!([ids, how]) }
}

/// Whether each of these failed; `None` for one that the node does not have. An answer is in the
/// order of its question; that its slots are those of the list shows that it answers this one.
fn statuses(asked: &[Entry], raw: &RawValue) -> Vec<Option<bool>> {
    let of_others = vec![None; asked.len()];
    let Ok(Statuses { value }) = serde_json::from_str(raw.get()) else { return of_others };
    let mut pairs = asked.iter().zip(&value).filter_map(|(entry, it)| Some((entry, it.as_ref()?)));
    if value.len() != asked.len() || pairs.any(|(entry, status)| status.slot != entry.slot) {
        return of_others;
    }
    value.iter().map(|status| status.as_ref().map(|status| status.err.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(slot: Height) -> Entry {
        let id = TxId::solana(&[u8::try_from(slot).unwrap(); 64]);
        Entry { slot, id, time: None, failed: Some(true) }
    }

    #[test]
    fn statuses_of_the_same_slots_clear_what_did_not_fail() {
        let failed = r#"{"slot":8,"err":{"InstructionError":[0,"x"]},"confirmations":null}"#;
        let passed =
            |slot: Height| format!(r#"{{"slot":{slot},"err":null,"status":{{"Ok":null}}}}"#);
        let answer = |value: &str| {
            let text = format!(r#"{{"context":{{"slot":99}},"value":[{value}]}}"#);
            let raw = RawValue::from_string(text).unwrap();
            statuses(&[entry(9), entry(8), entry(7)], &raw)
        };
        let right = format!("{},{failed},null", passed(9));
        assert_eq!(answer(&right), [Some(false), Some(true), None]);
        // An answer to another question, of another length, or none.
        for other in [format!("{},{failed},{}", passed(9), passed(6)), passed(9), "7".to_owned()] {
            assert_eq!(answer(&other), [None; 3], "{other}");
        }
    }
}
