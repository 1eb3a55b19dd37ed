//! Hides the hosts of nodes from clients: error texts contain numbers instead.

use super::App;
use super::error::ApiError;

impl App {
    pub(super) fn message(&self, error: &ApiError) -> String {
        let text = error.message();
        if error.of_history().is_none() {
            return text;
        }
        let mut labels = Vec::new();
        for (_, endpoints) in self.history.chains_status() {
            let of_chain = endpoints.into_iter().map(|endpoint| endpoint.label);
            labels.extend(of_chain.enumerate().map(|(at, label)| (label, at + 1)));
        }
        numbered(text, labels)
    }
}

/// Replaces labels, and the hosts in them, by numbers.
fn numbered(mut text: String, mut labels: Vec<(String, usize)>) -> String {
    // Longest first, since a label may be a prefix of another.
    labels.sort_by_key(|(label, _)| std::cmp::Reverse(label.len()));
    for (label, number) in &labels {
        text = text.replace(label, &format!("node {number}"));
    }
    for (label, number) in &labels {
        let host = label.split_once("://").map_or(label.as_str(), |(_, host)| host);
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        // A host without a dot may also be a word of the text.
        for host in [host, name].into_iter().filter(|host| host.contains(['.', ':'])) {
            text = text.replace(host, &format!("node {number}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_become_numbers() {
        let labels = [
            ("http://node", 1),
            ("http://node.example:8545", 2),
            ("https://h.example", 1),
            ("https://[2001:db8::1]:8545", 2),
        ];
        let labels: Vec<_> = labels.map(|(label, number)| (label.to_owned(), number)).into();
        let check = |text: &str, expected: &str| {
            assert_eq!(numbered(text.to_owned(), labels.clone()), expected);
        };
        check("no node: http://node: refused", "no node: node 1: refused");
        check("the last: http://node.example:8545: cut", "the last: node 2: cut");
        check("not valid for name \"h.example\"", "not valid for name \"node 1\"");
        check("node.example is unknown", "node 2 is unknown");
        check("[2001:db8::1]:8545 and [2001:db8::1]", "node 2 and node 2");
    }
}
