//! Whether a block still has its stored hash, by the answers of several endpoints.

use std::time::Duration;

use crate::rpc::{CallOptions, EndpointId, Pool};

pub(super) type BlockHash = [u8; 32];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashCheck {
    Same,
    /// Two answers agree on another hash.
    Differs,
    /// The answers contradict each other.
    Unknown,
    /// No endpoint returns the block.
    Gone,
    /// No endpoint offers blocks.
    NotOffered,
}

/// The block's hash, if the endpoint returned one, and the endpoint, if it is known.
pub(super) type HashAnswer = (Option<BlockHash>, Option<EndpointId>);

/// Decides from answers none of which has the expected hash; `None` while one more answer is
/// needed. Two equal answers of one endpoint count only if no other endpoint has answered.
fn decide(answers: &[HashAnswer]) -> Option<HashCheck> {
    let mut hashes = answers.iter().filter_map(|(hash, by)| hash.map(|hash| (hash, *by)));
    match (answers.len(), hashes.next(), hashes.next()) {
        // An endpoint without the block does not confirm another hash.
        (0 | 1, _, _) | (2, Some(_), None) => None,
        (_, None, _) => Some(HashCheck::Gone),
        (_, Some((one, by)), Some((other, also))) if one == other => {
            let is_alone = answers.iter().all(|(_, answered)| *answered == by);
            Some(if by != also || is_alone { HashCheck::Differs } else { HashCheck::Unknown })
        }
        (_, Some(_), _) => Some(HashCheck::Unknown),
    }
}

/// Collects the answers for one block hash; each query avoids the endpoint of the last answer if
/// there is another.
pub(super) struct HashQuestion {
    expected: BlockHash,
    answers: Vec<HashAnswer>,
    /// The last endpoint that returned another hash.
    other: Option<EndpointId>,
    /// An endpoint that returned the expected hash while another endpoint did not.
    same: Option<EndpointId>,
    avoid: Option<EndpointId>,
}

impl HashQuestion {
    pub(super) fn new(expected: BlockHash) -> Self {
        Self { expected, answers: Vec::new(), other: None, same: None, avoid: None }
    }

    pub(super) fn options(&self, options: &CallOptions) -> CallOptions {
        let mut without = options.without;
        if self.same.is_some() {
            self.queried().for_each(|id| without.insert(id));
        }
        CallOptions { avoid: self.avoid, without, ..options.clone() }
    }

    pub(super) fn is_new(&self) -> bool {
        self.answers.is_empty()
    }

    fn queried(&self) -> impl Iterator<Item = EndpointId> {
        self.answers.iter().filter_map(|(_, by)| *by).chain(self.same)
    }

    /// Records an answer; returns the outcome once it is decided. Where two endpoints disagree a
    /// third one decides, if there is one. An endpoint that is alone with its hash goes on cooldown
    /// for `cooldown`.
    pub(super) fn add(
        &mut self,
        (hash, by): HashAnswer,
        pool: &Pool,
        cooldown: Duration,
    ) -> Option<HashCheck> {
        if self.same.is_some() && self.queried().any(|id| by.is_none_or(|by| by == id)) {
            return Some(HashCheck::Unknown);
        }
        if hash == Some(self.expected) {
            let differs = |(hash, other): &HashAnswer| hash.is_some() && *other != by;
            if self.same.is_none() && self.answers.iter().any(differs) {
                self.same = by;
                return (!self.has_unqueried_endpoint(pool)).then_some(HashCheck::Unknown);
            }
            if let Some(alone) = self.other {
                tracing::warn!(endpoint = %pool.label(alone), "other endpoints agree on another block hash; this one is on cooldown");
                pool.cool_down(alone, cooldown);
            }
            return Some(HashCheck::Same);
        }
        self.answers.push((hash, by));
        self.other = by.filter(|_| hash.is_some()).or(self.other);
        self.avoid = self.other.or(by);
        decide(&self.answers).or(self.same.map(|_| HashCheck::Unknown))
    }

    fn has_unqueried_endpoint(&self, pool: &Pool) -> bool {
        let has_answered = |id| self.queried().any(|one| one == id);
        self.same.is_some()
            && pool.endpoints().iter().any(|one| !one.resting && !has_answered(one.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::scripted::{ScriptedNodes, options};

    /// Endpoints that are never queried.
    fn pool(endpoints: usize) -> Pool {
        let hosts = &["one", "other", "third"][..endpoints];
        ScriptedNodes::new(|_| unreachable!()).pool(hosts)
    }

    /// The results of a question to a pool of this many endpoints after each answer, and the
    /// endpoints that are resting then. The expected hash consists of ones.
    fn checked(endpoints: usize, answers: &[HashAnswer]) -> (Vec<Option<HashCheck>>, Vec<usize>) {
        let pool = pool(endpoints);
        let mut question = HashQuestion::new([1; 32]);
        let rest = Duration::from_secs(600);
        let checks = answers.iter().map(|answer| question.add(*answer, &pool, rest)).collect();
        let resting = pool.endpoints().into_iter().filter(|one| one.resting);
        (checks, resting.map(|one| one.id.0).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn one_endpoint_overrules_no_other_one() {
        let by = |hash: u8, at| (Some([hash; 32]), Some(EndpointId(at)));
        let (same, unknown) = (Some(HashCheck::Same), Some(HashCheck::Unknown));
        assert_eq!(checked(2, &[by(1, 0)]), (vec![same], vec![]), "in one answer");
        assert_eq!(checked(2, &[by(2, 0), by(1, 1)]), (vec![None, unknown], vec![]));
        let none = (None, Some(EndpointId(1)));
        assert_eq!(checked(2, &[none, by(1, 0)]), (vec![None, same], vec![]));
        let apart = [by(2, 0), by(1, 1)];
        for (third, check, resting) in [
            (by(1, 2), same, vec![0]),
            (by(2, 2), Some(HashCheck::Differs), vec![]),
            (by(3, 2), unknown, vec![]),
            ((None, Some(EndpointId(2))), unknown, vec![]),
            ((None, None), unknown, vec![]),
            (by(1, 1), unknown, vec![]),
            (by(2, 0), unknown, vec![]),
        ] {
            let answers = [apart[0], apart[1], third];
            assert_eq!(checked(3, &answers), (vec![None, None, check], resting), "{third:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_third_answer_is_of_neither_of_the_two() {
        let pool = pool(3);
        let mut question = HashQuestion::new([1; 32]);
        for (hash, at, excluded) in [([2; 32], 0, [false; 3]), ([1; 32], 1, [true, true, false])] {
            let answer = (Some(hash), Some(EndpointId(at)));
            assert_eq!(question.add(answer, &pool, Duration::from_secs(600)), None);
            let without = question.options(&options()).without;
            assert_eq!([0, 1, 2].map(|at| without.contains(EndpointId(at))), excluded);
        }
    }

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
            // An endpoint without the block does not confirm another hash.
            (&[by(one, 0), none], None),
            (&[none, by(one, 0)], None),
            (&[by(one, 0), none, by(one, 1)], Some(HashCheck::Differs)),
            (&[none, by(one, 0), by(other, 1)], Some(HashCheck::Unknown)),
            (&[by(one, 0), none, none], Some(HashCheck::Unknown)),
        ] {
            assert_eq!(decide(answers), check, "{answers:?}");
        }
    }

    #[test]
    fn an_endpoint_agrees_with_itself_only_where_it_is_the_only_one() {
        let by = |at| (Some([1; 32]), Some(EndpointId(at)));
        assert_eq!(decide(&[by(0), by(0)]), Some(HashCheck::Differs));
        for none in [(None, None), (None, Some(EndpointId(1)))] {
            assert_eq!(decide(&[by(0), none, by(0)]), Some(HashCheck::Unknown));
            assert_eq!(decide(&[none, by(0), by(0)]), Some(HashCheck::Unknown));
        }
    }
}
