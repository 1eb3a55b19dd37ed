//! Pure: empty answers, which count only once a second answer is empty too.

/// Indexes of the calls of a request whose empty answers are not confirmed yet.
#[derive(Debug)]
pub(super) struct Unconfirmed(Vec<usize>);

impl Unconfirmed {
    pub(super) fn of<T, E>(answers: &[Result<T, E>], is_nothing: impl Fn(&T) -> bool) -> Self {
        let all = answers.iter().enumerate();
        let nothing = all.filter(|(_, answer)| answer.as_ref().is_ok_and(&is_nothing));
        Self(nothing.map(|(at, _)| at).collect())
    }

    /// The calls to send again.
    pub(super) fn calls<C: Clone>(&self, all: &[C]) -> Vec<C> {
        self.0.iter().filter_map(|at| all.get(*at).cloned()).collect()
    }

    /// Replaces the first answers by the second ones. A call whose second answer failed keeps that
    /// error and stays unconfirmed: one empty answer proves nothing.
    pub(super) fn take<T, E>(
        &mut self,
        answers: &mut [Result<T, E>],
        found: impl IntoIterator<Item = Result<T, E>>,
    ) {
        let mut failed = Vec::new();
        for (at, answer) in std::mem::take(&mut self.0).into_iter().zip(found) {
            failed.extend(answer.is_err().then_some(at));
            if let Some(place) = answers.get_mut(at) {
                *place = answer;
            }
        }
        self.0 = failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_nothing_counts_once_a_second_answer_came() {
        let mut answers: Vec<Result<u32, ()>> = vec![Ok(0), Ok(7), Ok(0), Err(()), Ok(0)];
        let mut open = Unconfirmed::of(&answers, |found| *found == 0);
        assert_eq!(open.calls(&['a', 'b', 'c', 'd', 'e']), ['a', 'c', 'e']);
        open.take(&mut answers, [Ok(0), Err(()), Ok(5)]);
        assert_eq!(answers, [Ok(0), Ok(7), Err(()), Err(()), Ok(5)]);
        assert_eq!(open.calls(&['a', 'b', 'c', 'd', 'e']), ['c']);
        open.take(&mut answers, [Ok(0)]);
        assert_eq!(answers[2], Ok(0));
        assert!(open.calls(&['a', 'b', 'c', 'd', 'e']).is_empty());
    }
}
