//! A plain node's events: `eth_getLogs` of token transfers from and to the wallet, in windows of
//! blocks, downwards.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::TronSource;
use super::wire::{self, Row};
use crate::decode::evm::Account;
use crate::domain::Height;
use crate::upstream::error::UpstreamError;
use crate::upstream::jsonrpc::RpcError;
use crate::upstream::pool::CallOptions;

/// keccak256 of `Transfer(address,address,uint256)`.
pub(super) const TRANSFER: &str =
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// What a window is shrunk by when it holds too much.
const SHRINK: u64 = 2;

/// Inclusive heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) low: Height,
    pub(super) high: Height,
}

/// What a search gave.
#[derive(Debug)]
pub(super) enum Found {
    Rows(Vec<Row>),
    /// The node wants a smaller window, of so many blocks where it says so.
    TooMuch(Option<u64>),
}

/// Pure: which windows are searched, and down to where all is known.
#[derive(Debug)]
pub(super) struct Windows {
    low: Height,
    /// The highest height that no window holds yet.
    next: Option<Height>,
    range: u64,
    /// Windows of the next request: few at first, so that the first rows come early.
    batch: usize,
    batch_max: usize,
    /// By their upper ends.
    asked: BTreeMap<Height, Window>,
    again: Vec<Window>,
}

impl Windows {
    pub(super) fn new(low: Height, high: Height, range: u64, batch_max: usize) -> Self {
        let (asked, again) = (BTreeMap::new(), Vec::new());
        let range = range.max(1);
        Self { low, next: Some(high), range, batch: 1, batch_max, asked, again }
    }

    /// The windows of the next request.
    pub(super) fn plan(&mut self) -> Vec<Window> {
        let mut windows = Vec::new();
        while windows.len() < self.batch {
            let Some(window) = self.again.pop().or_else(|| self.below()) else { break };
            self.asked.insert(window.high, window);
            windows.push(window);
        }
        self.batch = (self.batch * 2).min(self.batch_max);
        windows
    }

    fn below(&mut self) -> Option<Window> {
        let high = self.next?;
        let low = high.saturating_sub(self.range - 1).max(self.low);
        self.next = low.checked_sub(1).filter(|next| *next >= self.low);
        Some(Window { low, high })
    }

    pub(super) fn known(&mut self, window: Window) {
        self.asked.remove(&window.high);
    }

    /// Splits a window that holds too much. False where it cannot be split.
    pub(super) fn shrink(&mut self, window: Window, range: Option<u64>) -> bool {
        self.asked.remove(&window.high);
        let length = window.high - window.low + 1;
        let range = range.filter(|range| *range < length).unwrap_or(length / SHRINK);
        if range == 0 {
            return false;
        }
        self.range = self.range.min(range);
        self.batch = 1;
        let mut high = window.high;
        let mut parts = Vec::new();
        loop {
            let low = high.saturating_sub(range - 1).max(window.low);
            parts.push(Window { low, high });
            match low.checked_sub(1).filter(|next| *next >= window.low) {
                Some(next) => high = next,
                None => break,
            }
        }
        // Taken from the end: the highest first.
        self.again.extend(parts.into_iter().rev());
        true
    }

    /// The height at and below which something may be unknown.
    pub(super) fn frontier(&self) -> Option<Height> {
        let asked = self.asked.keys().next_back().copied();
        let again = self.again.iter().map(|window| window.high).max();
        asked.max(again).max(self.next)
    }
}

impl TronSource {
    /// Searches windows in one request.
    pub(super) async fn search(
        &self,
        wallet: &Account,
        windows: &[Window],
        options: &CallOptions,
    ) -> Result<Vec<Found>, UpstreamError> {
        let filters = windows.iter().flat_map(|window| filters(wallet, *window));
        let calls: Vec<_> = filters.map(|filter| ("eth_getLogs", json!([filter]))).collect();
        let (answers, endpoint) = match self.rpc("eth_getLogs", &calls, options).await {
            Ok(answered) => answered,
            // What is said of all of them.
            Err(UpstreamError::Rpc { message, .. }) if wire::is_too_much(&message) => {
                let range = wire::range_named(&message);
                return Ok(windows.iter().map(|_| Found::TooMuch(range)).collect());
            }
            Err(error) => return Err(error),
        };
        let mut answers = answers.into_iter();
        let mut found = Vec::with_capacity(windows.len());
        for window in windows {
            let mut rows = Vec::new();
            let mut too_much = None;
            for answer in answers.by_ref().take(2) {
                match answer {
                    Ok(result) => {
                        let found = wire::logs(&result, wallet, *window);
                        let what = "eth_getLogs gave no events";
                        rows.extend(found.ok_or_else(|| self.malformed(endpoint, what))?);
                    }
                    Err(error) if wire::is_too_much(&error.message) => {
                        too_much = Some(wire::range_named(&error.message));
                    }
                    Err(RpcError { code, message }) => {
                        let endpoint = self.inner.pool.label(endpoint);
                        return Err(UpstreamError::Rpc { endpoint, code, message });
                    }
                }
            }
            found.push(too_much.map_or(Found::Rows(rows), Found::TooMuch));
        }
        Ok(found)
    }
}

/// Transfers from the wallet, and to it.
fn filters(wallet: &Account, Window { low, high }: Window) -> [Value; 2] {
    let topic = format!("0x{:0>64}", hex::encode(wallet));
    let filter = |topics: Value| {
        json!({
            "fromBlock": format!("{low:#x}"),
            "toBlock": format!("{high:#x}"),
            "topics": topics,
        })
    };
    [filter(json!([TRANSFER, topic])), filter(json!([TRANSFER, null, topic]))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(low: Height, high: Height) -> Window {
        Window { low, high }
    }

    #[test]
    fn goes_down_without_gaps_and_knows_how_far() {
        let mut windows = Windows::new(3, 25, 10, 4);
        assert_eq!(windows.frontier(), Some(25));
        assert_eq!(windows.plan(), [window(16, 25)]);
        assert_eq!(windows.plan(), [window(6, 15), window(3, 5)]);
        assert_eq!((windows.plan(), windows.frontier()), (Vec::new(), Some(25)));
        windows.known(window(6, 15));
        assert_eq!(windows.frontier(), Some(25));
        windows.known(window(16, 25));
        assert_eq!(windows.frontier(), Some(5));
        windows.known(window(3, 5));
        assert_eq!(windows.frontier(), None);
    }

    #[test]
    fn asks_again_for_less_where_a_window_holds_too_much() {
        let mut windows = Windows::new(0, 29, 10, 1);
        let first = windows.plan()[0];
        assert!(windows.shrink(first, Some(4)));
        assert_eq!(windows.frontier(), Some(29));
        let mut parts = Vec::new();
        for _ in 0..3 {
            parts.extend(windows.plan());
        }
        assert_eq!(parts, [window(26, 29), window(22, 25), window(20, 21)]);
        assert_eq!(windows.plan(), [window(16, 19)], "and for less from then on");
        assert!(windows.shrink(window(20, 21), None));
        assert_eq!(windows.plan(), [window(21, 21)]);
        assert!(!windows.shrink(window(21, 21), None));
    }
}
