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

/// A block's hash, where there was one, and the endpoint, where it is known.
type HashAnswer = (Option<BlockHash>, Option<EndpointId>);

/// What comes of the answers so far, none of which is the expected hash. `None`: one more is needed.
/// One endpoint agrees with itself only where no other one has answered.
fn judge(answers: &[HashAnswer]) -> Option<HashCheck> {
    let mut hashes = answers.iter().filter_map(|(hash, by)| hash.map(|hash| (hash, *by)));
    match (answers.len(), hashes.next(), hashes.next()) {
        // One that has no block cannot agree with one that has another hash.
        (0 | 1, _, _) | (2, Some(_), None) => None,
        (_, None, _) => Some(HashCheck::Gone),
        (_, Some((one, by)), Some((other, also))) if one == other => {
            let is_alone = answers.iter().all(|(_, answered)| *answered == by);
            Some(if by != also || is_alone { HashCheck::Differs } else { HashCheck::Unknown })
        }
        (_, Some(_), _) => Some(HashCheck::Unknown),
    }
}

/// The answers on a block's hash, each of another endpoint than the one before where there is one.
pub(super) struct HashQuestion {
    expected: BlockHash,
    answers: Vec<HashAnswer>,
    /// The last one with another hash.
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
        (hash, by): HashAnswer,
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
        self.answers.push((hash, by));
        self.other = by.filter(|_| hash.is_some()).or(self.other);
        self.avoid = self.other.or(by);
        judge(&self.answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_decide_and_one_never_does() {
        let id = |at| Some(EndpointId(at));
        let (one, other, none) = ([1; 32], [2; 32], (None, None));
        let by = |hash, at| (Some(hash), id(at));
        for (answers, check) in [
            (&[by(one, 0)][..], None),
            (&[none], None),
            (&[by(one, 0), by(one, 1)], Some(HashCheck::Differs)),
            (&[by(one, 0), by(other, 1)], Some(HashCheck::Unknown)),
            (&[none, (None, id(1))], Some(HashCheck::Gone)),
            // One that has no block cannot agree with one that has another hash.
            (&[by(one, 0), none], None),
            (&[none, by(one, 0)], None),
            (&[by(one, 0), none, by(one, 1)], Some(HashCheck::Differs)),
            (&[none, by(one, 0), by(other, 1)], Some(HashCheck::Unknown)),
            (&[by(one, 0), none, none], Some(HashCheck::Unknown)),
        ] {
            assert_eq!(judge(answers), check, "{answers:?}");
        }
    }

    #[test]
    fn an_endpoint_agrees_with_itself_only_where_it_is_the_only_one() {
        let by = |at| (Some([1; 32]), Some(EndpointId(at)));
        assert_eq!(judge(&[by(0), by(0)]), Some(HashCheck::Differs));
        for none in [(None, None), (None, Some(EndpointId(1)))] {
            assert_eq!(judge(&[by(0), none, by(0)]), Some(HashCheck::Unknown));
            assert_eq!(judge(&[none, by(0), by(0)]), Some(HashCheck::Unknown));
        }
    }
}
