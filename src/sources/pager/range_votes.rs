//! Pure: compares the answers to a search over a range of heights. The same for every family: the
//! range counts as answered by the answers that hold everything that any answer holds.

use std::collections::HashSet;
use std::hash::Hash;

/// `K` identifies an item that was found; `V` identifies the answer's endpoint.
#[derive(Debug)]
pub(in crate::sources) struct RangeVotes<K, V> {
    known: HashSet<K>,
    /// Number of known items that each answer held, and its endpoint.
    answers: Vec<(usize, V)>,
}

impl<K: Eq + Hash, V> RangeVotes<K, V> {
    pub(in crate::sources) fn new() -> Self {
        Self { known: HashSet::new(), answers: Vec::new() }
    }

    pub(in crate::sources) fn holds(&self, key: &K) -> bool {
        self.known.contains(key)
    }

    pub(in crate::sources) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(in crate::sources) fn is_answered(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Adds an answer; `false` if it differs from the answers before it.
    pub(in crate::sources) fn add(&mut self, answer: HashSet<K>, by: V) -> bool {
        let (known, held, is_first) = (self.known.len(), answer.len(), self.answers.is_empty());
        self.known.extend(answer);
        self.answers.push((held, by));
        is_first || (self.known.len() == known && held == known)
    }

    /// Endpoints whose answers hold all known items.
    pub(in crate::sources) fn agreeing(&self) -> impl Iterator<Item = &V> {
        self.answers.iter().filter(|(held, _)| *held == self.known.len()).map(|(_, by)| by)
    }

    /// Endpoints whose answers lack an item that another answer held.
    pub(in crate::sources) fn lacking(&self) -> impl Iterator<Item = &V> {
        self.answers.iter().filter(|(held, _)| *held < self.known.len()).map(|(_, by)| by)
    }

    pub(in crate::sources) fn into_known(self) -> HashSet<K> {
        self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(votes: &mut RangeVotes<u8, u8>, answer: &[u8], by: u8) -> bool {
        votes.add(answer.iter().copied().collect(), by)
    }

    fn is_contradicted(votes: &RangeVotes<u8, u8>) -> bool {
        votes.lacking().next().is_some()
    }

    fn agreeing(votes: &RangeVotes<u8, u8>) -> Vec<u8> {
        votes.agreeing().copied().collect()
    }

    #[test]
    fn answers_agree_if_they_hold_every_row_that_any_answer_holds() {
        let mut votes = RangeVotes::new();
        assert!(!votes.is_answered() && votes.is_empty());
        assert!(add(&mut votes, &[1], 1));
        assert_eq!((agreeing(&votes), is_contradicted(&votes)), (vec![1], false));
        assert!(!add(&mut votes, &[1, 2], 2), "the one before lacked something");
        assert_eq!((agreeing(&votes), is_contradicted(&votes)), (vec![2], true));
        assert!(!add(&mut votes, &[2], 3), "it lacks something");
        assert!(add(&mut votes, &[2, 1], 4));
        assert_eq!(agreeing(&votes), [2, 4]);
        assert!(votes.lacking().eq(&[1, 3]), "whichever came first");
        assert!(votes.holds(&1) && !votes.holds(&3));
        assert_eq!(votes.into_known(), HashSet::from([1, 2]));
    }

    #[test]
    fn as_many_things_are_not_the_same_things() {
        let mut votes = RangeVotes::new();
        add(&mut votes, &[1], 1);
        assert!(!add(&mut votes, &[2], 2));
        assert!(agreeing(&votes).is_empty() && is_contradicted(&votes));
    }

    #[test]
    fn empty_answers_agree_until_one_is_not() {
        let mut votes = RangeVotes::new();
        assert!(add(&mut votes, &[], 1) && add(&mut votes, &[], 2));
        assert_eq!((agreeing(&votes), votes.is_empty()), (vec![1, 2], true));
        assert!(!add(&mut votes, &[1], 3));
        assert_eq!(agreeing(&votes), [3]);
    }
}
