//! Pure: which windows of blocks are searched for events, downwards, and their size.

use std::collections::BTreeMap;

use super::wire::HeightRange;
use crate::domain::Height;

/// Factor by which a window shrinks that is too large.
const SHRINK: u64 = 2;
/// Answered windows before one of twice the size is tried: at first, and at most, as the number
/// doubles with each refused try.
const TRY_AFTER: u32 = 16;
const TRY_AFTER_MAX: u32 = 1_024;

/// The size of windows: smaller after a refusal, larger again after answers, because a size that
/// one endpoint refused, or answered too late once, may work for the next window.
#[derive(Debug)]
struct WindowSize {
    blocks: u64,
    blocks_max: u64,
    /// Windows to be answered before a larger one is tried, now and after the next refusal.
    left: u32,
    rest: u32,
    /// The larger size, until it is answered.
    tried: Option<HeightRange>,
}

impl WindowSize {
    fn new(blocks: u64) -> Self {
        let blocks = blocks.max(1);
        Self { blocks, blocks_max: blocks, left: TRY_AFTER, rest: TRY_AFTER, tried: None }
    }

    /// The larger size, if it is to be tried now.
    fn to_try(&self) -> Option<u64> {
        let is_due = self.left == 0 && self.tried.is_none() && self.blocks < self.blocks_max;
        is_due.then(|| (self.blocks * SHRINK).min(self.blocks_max))
    }

    fn answered(&mut self, window: HeightRange) {
        if self.tried == Some(window) {
            self.blocks = self.blocks.max(window.length());
            (self.tried, self.left) = (None, self.rest);
        } else if window.length() >= self.blocks {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Size of the parts of a refused window: a larger size that was tried returns to the answered
    /// one.
    fn smaller(&self, window: HeightRange) -> u64 {
        let length = window.length();
        let is_tried = self.tried == Some(window) && self.blocks < length;
        if is_tried { self.blocks } else { length / SHRINK }
    }

    /// Records a refused window, which is split into parts of this many blocks.
    fn refused(&mut self, window: HeightRange, blocks: u64) {
        if self.tried == Some(window) {
            self.rest = (self.rest * 2).min(TRY_AFTER_MAX);
            self.tried = None;
        }
        self.blocks = self.blocks.min(blocks);
        self.left = self.rest;
    }
}

#[derive(Debug)]
pub(super) struct Windows {
    low: Height,
    /// The highest height that is in no window yet.
    next: Option<Height>,
    size: WindowSize,
    /// Windows of the next request: few at first, for early first rows.
    batch: usize,
    batch_max: usize,
    /// Requested windows by their upper ends.
    asked: BTreeMap<Height, HeightRange>,
    again: Vec<HeightRange>,
}

impl Windows {
    pub(super) fn new(low: Height, high: Height, range: u64, batch_max: usize) -> Self {
        let (asked, again, size) = (BTreeMap::new(), Vec::new(), WindowSize::new(range));
        Self { low, next: Some(high), size, batch: 1, batch_max, asked, again }
    }

    /// The windows of the next request. A larger size is tried by a single window.
    pub(super) fn plan(&mut self) -> Vec<HeightRange> {
        let mut windows: Vec<HeightRange> = self.tried().into_iter().collect();
        let most = if windows.is_empty() { self.batch } else { 1 };
        while windows.len() < most {
            let next = self.again.pop().or_else(|| self.below(self.size.blocks));
            let Some(window) = next else { break };
            windows.push(window);
        }
        self.asked.extend(windows.iter().map(|window| (window.high, *window)));
        self.batch = (self.batch * 2).min(self.batch_max);
        windows
    }

    fn tried(&mut self) -> Option<HeightRange> {
        let blocks = self.size.to_try().filter(|_| self.again.is_empty())?;
        self.size.tried = self.below(blocks);
        self.size.tried
    }

    fn below(&mut self, blocks: u64) -> Option<HeightRange> {
        let high = self.next?;
        let low = high.saturating_sub(blocks - 1).max(self.low);
        self.next = low.checked_sub(1).filter(|next| *next >= self.low);
        Some(HeightRange { low, high })
    }

    pub(super) fn known(&mut self, window: HeightRange) {
        self.asked.remove(&window.high);
        self.size.answered(window);
    }

    /// Puts a window back that is to be searched again unchanged.
    pub(super) fn mark_for_retry(&mut self, window: HeightRange) {
        self.asked.remove(&window.high);
        self.again.push(window);
    }

    /// Splits a window that is too large; false if it cannot be split.
    pub(super) fn shrink(&mut self, window: HeightRange, range: Option<u64>) -> bool {
        self.asked.remove(&window.high);
        let length = window.length();
        let smaller = self.size.smaller(window);
        let range = range.filter(|range| *range < length).unwrap_or(smaller);
        if range == 0 {
            return false;
        }
        self.size.refused(window, range);
        self.batch = 1;
        let part = |at: u64| {
            let high = window.high - at * range;
            HeightRange { low: high.saturating_sub(range - 1).max(window.low), high }
        };
        // Taken from the end: the highest part comes last, so that it is searched first.
        self.again.extend((0..length.div_ceil(range)).rev().map(part));
        true
    }

    /// The height at and below which transactions may be unknown.
    pub(super) fn frontier(&self) -> Option<Height> {
        let asked = self.asked.keys().next_back().copied();
        let again = self.again.iter().map(|window| window.high).max();
        asked.max(again).max(self.next)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::wire::{is_too_wide, search_reading};
    use super::*;
    use crate::rpc::ReplyClass;

    fn window(low: Height, high: Height) -> HeightRange {
        HeightRange { low, high }
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
        windows.mark_for_retry(window(21, 21));
        assert_eq!(windows.plan(), [window(21, 21)]);
    }

    /// Blocks of each window of the next requests, all of which are answered.
    fn answered(windows: &mut Windows, requests: usize) -> Vec<u64> {
        let mut lengths = Vec::new();
        for _ in 0..requests {
            for window in windows.plan() {
                lengths.push(window.high - window.low + 1);
                windows.known(window);
            }
        }
        lengths
    }

    #[test]
    fn windows_grow_again_once_smaller_ones_are_answered() {
        let mut windows = Windows::new(0, 10_000_000, 1_000, 1);
        let first = windows.plan()[0];
        assert!(windows.shrink(first, Some(100)));
        let lengths = answered(&mut windows, 400);
        assert_eq!(lengths.iter().max(), Some(&1_000), "and no more than at first");
        assert_eq!((&lengths[..16], lengths[16]), (&[100; 16][..], 200), "one that is tried");
        assert_eq!(lengths[300..], [1_000; 100]);
    }

    /// A limit that stays costs fewer and fewer tries, each of which is one window.
    #[test]
    fn a_size_that_is_refused_again_and_again_is_tried_less_often() {
        let mut windows = Windows::new(0, 10_000_000, 1_000, 10);
        let (mut refused, mut sent) = (0, 0);
        while sent < 5_000 {
            for window in windows.plan() {
                sent += 1;
                if window.length() > 300 {
                    refused += 1;
                    assert!(windows.shrink(window, None));
                } else {
                    windows.known(window);
                }
            }
        }
        assert!((3..20).contains(&refused), "{refused}");
    }

    /// Texts of java-tron and of recorded services (../shared/corpus/refusals), some of which serve
    /// Tron too.
    #[test]
    fn a_search_that_may_be_answered_over_less_is_not_sent_again_unchanged() {
        let read = |status: u16, error: &Value| {
            let alone = json!({"jsonrpc": "2.0", "id": 1, "error": error});
            let of = |body: &Value| search_reading(status, body.to_string().as_bytes());
            (of(&alone), of(&json!([alone, {"jsonrpc": "2.0", "id": 2, "result": []}])))
        };
        for (status, code, text) in [
            (200, -32602, "exceed max block range: 5000"),
            (200, -32005, "query returned more than 10000 results"),
            (200, -32003, "Response exceeds the limit of 26214400 bytes"),
            (200, -32005, "Batch size 101 exceeds the limit of 100"),
            (413, -32614, "eth_getLogs is limited to a 10,000 range"),
            (200, -32000, "context deadline exceeded"),
            (500, -32000, "query timeout exceeded"),
            (504, -32000, "upstream error"),
            (598, -32000, ""),
        ] {
            let (alone, batch) = read(status, &json!({"code": code, "message": text}));
            let is_refused = |read: &ReplyClass| {
                let ReplyClass::Refused { code, message } = read else { return false };
                is_too_wide(*code, message)
            };
            assert!(is_refused(&alone), "{text}: {alone:?}");
            let is_split = status == 200 && matches!(batch, ReplyClass::Good);
            assert!(is_split || is_refused(&batch), "{text}: {batch:?}");
        }
        let page = "<html><head><title>timeout</title></head></html>";
        assert!(matches!(search_reading(504, page.as_bytes()), ReplyClass::Refused { .. }));
        assert!(matches!(search_reading(502, page.as_bytes()), ReplyClass::Again(_)));
        // Envoy, whose node is away.
        let away = "upstream connect error, reset reason: connection timeout";
        assert!(matches!(search_reading(503, away.as_bytes()), ReplyClass::Again(_)));
        let suspended = "request rate exceeded the allowed_rps(10), and the server is suspended";
        for (status, text) in [(200, suspended), (429, "limit exceeded")] {
            let (alone, batch) = read(status, &json!({"code": -32005, "message": text}));
            let is_slow = |read| matches!(read, ReplyClass::SlowDown(_));
            assert!(is_slow(alone) && is_slow(batch), "{text}");
        }
    }
}
