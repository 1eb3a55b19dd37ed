//! Whether a block still has the hash that it had, by the answers of several endpoints.

use std::time::Duration;

use crate::rpc::endpoint::EndpointId;
use crate::rpc::pool::{CallOptions, Pool};

pub(super) type BlockHash = [u8; 32];

/// Whether a block still has the hash that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashCheck {
    Same,
    /// Two answers agree that it differs.
    Differs,
    /// The answers contradict each other.
    Unknown,
    /// No endpoint returns the block.
    Gone,
}

/// What comes of the answers so far, none of which is the expected hash. `None`: one more is needed.
fn judge(answers: &[Option<BlockHash>]) -> Option<HashCheck> {
    let mut hashes = answers.iter().flatten();
    match (answers.len(), hashes.next(), hashes.next()) {
        // One that has no block cannot agree with one that has another hash.
        (0 | 1, _, _) | (2, Some(_), None) => None,
        (_, None, _) => Some(HashCheck::Gone),
        (_, Some(one), Some(other)) if one == other => Some(HashCheck::Differs),
        (_, Some(_), _) => Some(HashCheck::Unknown),
    }
}

/// The answers on a block's hash, each of another endpoint than the one before where there is one.
pub(super) struct HashQuestion {
    expected: BlockHash,
    answers: Vec<Option<BlockHash>>,
    other: Option<EndpointId>,
    avoid: Option<EndpointId>,
}

impl HashQuestion {
    pub(super) fn new(expected: BlockHash) -> Self {
        Self { expected, answers: Vec::new(), other: None, avoid: None }
    }

    pub(super) fn options(&self, options: &CallOptions) -> CallOptions {
        CallOptions { avoid: self.avoid, ..options.clone() }
    }

    /// Takes in what an endpoint, where it is known, returned. An endpoint that is alone with its hash
    /// rests for a while.
    pub(super) fn add(
        &mut self,
        (hash, by): (Option<BlockHash>, Option<EndpointId>),
        pool: &Pool,
        rest: Duration,
    ) -> Option<HashCheck> {
        if hash == Some(self.expected) {
            if let Some(alone) = self.other {
                tracing::warn!(endpoint = %pool.label(alone), "alone with its block hash");
                pool.cool_down(alone, rest);
            }
            return Some(HashCheck::Same);
        }
        self.answers.push(hash);
        self.other = by.filter(|_| hash.is_some()).or(self.other);
        self.avoid = by.or(self.avoid);
        judge(&self.answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_decide_and_one_never_does() {
        let (one, other) = (Some([1; 32]), Some([2; 32]));
        assert_eq!(judge(&[one]), None);
        assert_eq!(judge(&[None]), None);
        assert_eq!(judge(&[one, one]), Some(HashCheck::Differs));
        assert_eq!(judge(&[one, other]), Some(HashCheck::Unknown));
        assert_eq!(judge(&[None, None]), Some(HashCheck::Gone));
        assert_eq!(judge(&[one, None]), None, "one that has no block cannot agree");
        assert_eq!(judge(&[None, one]), None);
        assert_eq!(judge(&[one, None, one]), Some(HashCheck::Differs));
        assert_eq!(judge(&[None, one, other]), Some(HashCheck::Unknown));
        assert_eq!(judge(&[one, None, None]), Some(HashCheck::Unknown));
    }
}
