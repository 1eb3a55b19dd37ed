//! The conditions of a log query.

use super::hash::{Account, Word};
use super::tx::EventLog;

/// One position of a filter: any of these values; `None` matches all.
pub(super) type Choice<T> = Option<Vec<T>>;

#[derive(Debug, Default)]
pub(super) struct LogFilter {
    pub(super) addresses: Choice<Account>,
    pub(super) topics: Vec<Choice<Word>>,
}

impl LogFilter {
    pub(super) fn fits(&self, log: &EventLog) -> bool {
        let any = |choice: &Choice<Word>, at: usize| {
            let topic = log.topics.get(at);
            choice.as_ref().is_none_or(|choice| topic.is_some_and(|topic| choice.contains(topic)))
        };
        self.addresses.as_ref().is_none_or(|choice| choice.contains(&log.address))
            && self.topics.len() <= log.topics.len()
            && self.topics.iter().enumerate().all(|(at, choice)| any(choice, at))
    }
}
