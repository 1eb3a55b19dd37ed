//! Whether transactions failed that a list marks so: a node's own record of each signature, of many
//! in one call.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::SolanaSource;
use super::list::Entry;
use crate::domain::{Height, TxId};
use crate::rpc::{Call, CallOptions, CallResponse};

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
    /// Which of these transactions did not fail. None where no node answers: that a list marks them
    /// as failed is all that is known then.
    pub(super) async fn not_failed(
        &self,
        entries: &[Entry],
        options: &CallOptions,
    ) -> HashSet<TxId> {
        let ids: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
        let calls: Vec<Call> = ids.chunks(STATUSES_MAX).map(statuses_call).collect();
        let options = CallOptions { fails_soon: true, ..options.clone() };
        let answers = self.inner.pool.batch(&calls, &options).await;
        let groups = entries.chunks(STATUSES_MAX).zip(answers);
        let cleared = |(group, answer): (&[Entry], _)| {
            let Ok(CallResponse { result, .. }) = answer else { return HashSet::new() };
            cleared(group, &result)
        };
        groups.flat_map(cleared).collect()
    }
}

fn statuses_call(ids: &[String]) -> Call {
    let how = json!({"searchTransactionHistory": true});
    Call { method: "getSignatureStatuses", params: json!([ids, how]) }
}

/// An answer is in the order of its question; that its slots are those of the list shows that it
/// answers this one.
fn cleared(asked: &[Entry], raw: &RawValue) -> HashSet<TxId> {
    let Ok(Statuses { value }) = serde_json::from_str(raw.get()) else { return HashSet::new() };
    let pairs = || asked.iter().zip(&value).filter_map(|(entry, it)| Some((entry, it.as_ref()?)));
    if value.len() != asked.len() || pairs().any(|(entry, status)| status.slot != entry.slot) {
        return HashSet::new();
    }
    let succeeded = pairs().filter(|(_, status)| status.err.is_none());
    succeeded.map(|(entry, _)| entry.id).collect()
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
            cleared(&[entry(9), entry(8), entry(7)], &raw)
        };
        let right = format!("{},{failed},null", passed(9));
        assert_eq!(answer(&right), HashSet::from([entry(9).id]));
        // An answer to another question, of another length, or none.
        assert_eq!(answer(&format!("{},{failed},{}", passed(9), passed(6))), HashSet::new());
        assert_eq!(answer(&passed(9)), HashSet::new());
        assert_eq!(answer("7"), HashSet::new());
    }
}
