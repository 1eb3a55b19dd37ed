//! The process environment as a value, so that tests can pass their own.

use std::collections::BTreeMap;

const PREFIX: &str = "BLOTTER_";

/// The variables that begin with `BLOTTER_`, and `NO_COLOR`.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Ignores variables whose name or value is not UTF-8.
    pub(in crate::cli) fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// A variable's value; an empty one counts as not set.
    pub(in crate::cli) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(in crate::cli) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(_, value)| !value.is_empty())
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        let ours = |name: &str| name.starts_with(PREFIX) || name == "NO_COLOR";
        Self(variables.into_iter().filter(|(name, _)| ours(name)).collect())
    }
}
