//! The number of transactions that a wallet sent, as nodes count it at both ends of a read.
//!
//! One answer is a hint; only counts that two answers agree on are compared with a list. Accounts
//! with code are excluded, because other transactions than their own raise their count.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::sent::SentTotals;
use super::subject::Subject;
use super::wire;
use crate::domain::Height;
use crate::rpc::{Call, CallOptions, EndpointId, Lane, Pool, Result, UpstreamError, unless_final};

/// Answers that must agree.
const ANSWERS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// At both ends of the read.
    OfRange,
    /// Only the present count.
    OfToday,
    All,
}

/// Queries counts of one wallet at given heights.
#[derive(Debug)]
pub(super) struct SentWitness {
    nodes: Pool,
    wallet: String,
    lane: Lane,
    range: (Height, Height),
    /// Two answers agree on the counts, or no more are available.
    is_confirmed: bool,
    /// No endpoint keeps the count at the top of the read, so it is not queried again.
    lacks_range: AtomicBool,
    has_code: Option<bool>,
}

impl SentWitness {
    pub(super) fn new(nodes: Pool, subject: &Subject, lane: Lane, range: (Height, Height)) -> Self {
        Self {
            nodes,
            wallet: wire::hex(&subject.wallet),
            lane,
            range,
            is_confirmed: false,
            lacks_range: AtomicBool::new(false),
            has_code: None,
        }
    }

    pub(super) fn set_high(&mut self, high: Height) {
        self.range.1 = high;
        *self.lacks_range.get_mut() = false;
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// The first answer: of any endpoint, else of one after the other.
    pub(super) async fn counts(&self) -> Result<SentTotals> {
        let mut last = None;
        for endpoint in [None].into_iter().chain(self.nodes.ids().into_iter().map(Some)) {
            match self.ask(endpoint, Counts::OfRange).await {
                Ok(counts) if counts.top.is_some() => return Ok(self.with_start(counts)),
                Ok(_) => {}
                Err(error) => last = Some(error),
            }
        }
        let none = none_or(last)?;
        self.lacks_range.store(true, Ordering::Relaxed);
        Ok(self.with_start(none))
    }

    /// The counts that two answers agree on, from two endpoints if possible.
    pub(super) async fn confirm(&mut self) -> Result<SentTotals> {
        self.is_confirmed = true;
        let lacks_range = *self.lacks_range.get_mut();
        let asked = if lacks_range { Counts::OfToday } else { Counts::All };
        let (mut seen, mut last) = (Vec::new(), None);
        for endpoint in self.nodes.ids() {
            match self.ask(Some(endpoint), asked).await {
                Ok(counts) => seen.push((endpoint, counts)),
                Err(error) => last = Some(error),
            }
        }
        // An endpoint that alone keeps the counts answers twice.
        let each: [fn(&SentTotals) -> Option<u64>; 3] =
            [|counts| counts.top, |counts| counts.bottom, |counts| counts.latest];
        let alone = each.map(|of| {
            let mut known = seen.iter().filter(|(_, counts)| of(counts).is_some());
            known.next().filter(|_| known.next().is_none()).map(|(endpoint, _)| *endpoint)
        });
        if let Some(endpoint) = alone.into_iter().flatten().next() {
            seen.push((endpoint, self.ask(Some(endpoint), asked).await?));
        }
        if seen.is_empty() {
            return none_or(last);
        }
        let [tops, bottoms, latest] =
            each.map(|of| seen.iter().filter_map(|(_, counts)| of(counts)).collect::<Vec<_>>());
        Ok(self.with_start(SentTotals {
            top: agreed(&tops),
            bottom: agreed(&bottoms),
            latest: latest.iter().copied().max().filter(|_| latest.len() >= ANSWERS),
        }))
    }

    /// Whether two answers show code at the address.
    pub(super) async fn has_code(&mut self) -> Result<bool> {
        if let Some(known) = self.has_code {
            return Ok(known);
        }
        let (mut options, mut shown) = (CallOptions::new(self.lane.clone()), 0);
        for _ in 0..ANSWERS {
            let params = json!([self.wallet, "latest"]);
            let answer = self.nodes.call("eth_getCode", params, &options).await?;
            shown += usize::from(!["\"0x\"", "null"].contains(&answer.result.get().trim()));
            options.avoid = Some(answer.endpoint);
        }
        self.has_code = Some(shown == ANSWERS);
        Ok(shown == ANSWERS)
    }

    /// Below the first block nothing was sent.
    fn with_start(&self, counts: SentTotals) -> SentTotals {
        if self.range.0 == 0 { SentTotals { bottom: Some(0), ..counts } } else { counts }
    }

    /// The counts of one endpoint, by one request; those that it does not keep are unknown.
    async fn ask(&self, on: Option<EndpointId>, counts: Counts) -> Result<SentTotals> {
        let (low, high) = self.range;
        let (range, today) = (counts != Counts::OfToday, counts != Counts::OfRange);
        let heights = [Some(high), low.checked_sub(1)].map(|height| height.filter(|_| range));
        let [top, bottom] = heights.map(|height| height.map(|height| format!("{height:#x}")));
        let places = [top, bottom, today.then(|| "latest".to_owned())];
        let call = |at: &String| Call {
            method: "eth_getTransactionCount",
            params: json!([self.wallet, at]),
        };
        let calls: Vec<Call> = places.iter().flatten().map(call).collect();
        let options = CallOptions { on, ..CallOptions::new(self.lane.clone()) };
        let mut given = Vec::new();
        for answer in self.nodes.batch(&calls, &options).await {
            given.push(unless_final(answer)?.and_then(|answer| wire::number(&answer.result)));
        }
        let mut given = given.into_iter();
        let [top, bottom, latest] = places.map(|place| place.and_then(|_| given.next()).flatten());
        Ok(SentTotals { top, bottom, latest })
    }
}

/// The result if no endpoint returned counts; an error if one may do so later.
fn none_or(last: Option<UpstreamError>) -> Result<SentTotals> {
    match last {
        Some(error) if !error.is_final() => Err(error),
        Some(_) | None => Ok(SentTotals::default()),
    }
}

/// The count that most endpoints return, at least two.
fn agreed(seen: &[u64]) -> Option<u64> {
    let votes = |count: u64| seen.iter().filter(|other| **other == count).count();
    let best = seen.iter().copied().max_by_key(|count| votes(*count))?;
    let is_alone = seen.iter().all(|other| *other == best || votes(*other) < votes(best));
    (votes(best) >= ANSWERS && is_alone).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_takes_two_answers_and_a_majority() {
        assert_eq!(agreed(&[]), None);
        assert_eq!(agreed(&[7]), None);
        assert_eq!(agreed(&[7, 7]), Some(7));
        assert_eq!(agreed(&[7, 9]), None);
        assert_eq!(agreed(&[9, 7, 7]), Some(7));
        assert_eq!(agreed(&[9, 7, 7, 9]), None);
    }
}
