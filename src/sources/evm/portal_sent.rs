//! Compares a wallet's sent transactions in a gateway's windows with its nonces and the sent count:
//! a block that is missing from an answer shows as a hole.

use super::portal_window::PortalWindow;
use super::sent::{self, Follows, SentCount, SentTotals};
use super::sent_witness::SentWitness;
use crate::domain::{Doubts, Height};

/// The most transactions held back for the next one below that the wallet sent.
const HELD_BACK_MAX: usize = 5_000;

#[derive(Debug)]
pub(super) enum Checked {
    Deliver(PortalWindow, Doubts),
    /// Held back until the windows below it arrive.
    Held,
    /// Read again from this height down, as a second answer.
    Again(Height),
}

/// The sent transactions of one reader's windows, from the newest down.
#[derive(Debug)]
pub(super) struct SentCheck {
    witness: SentWitness,
    low: Height,
    /// `None` if nonces do not count the wallet's transactions.
    count: Option<SentCount>,
    is_counted: bool,
    is_confirmed: bool,
    /// Windows that are read but not compared with what follows below.
    held: Option<PortalWindow>,
    /// Top of the part that was read again.
    reread: Option<Height>,
}

impl SentCheck {
    pub(super) fn new(witness: SentWitness, low: Height) -> Self {
        let count = Some(SentCount::default());
        Self {
            witness,
            low,
            count,
            is_counted: false,
            is_confirmed: false,
            held: None,
            reread: None,
        }
    }

    pub(super) fn set_high(&mut self, high: Height) {
        self.witness.set_high(high);
    }

    /// Queries the sent count once. If that fails, nonces are compared only with each other.
    pub(super) async fn count(&mut self) {
        if !self.is_counted {
            let counts = self.witness.counts().await.unwrap_or_default();
            self.set_counts(counts);
            self.is_counted = true;
        }
    }

    fn set_counts(&mut self, counts: SentTotals) {
        if let Some(count) = &mut self.count {
            count.set_counts(counts);
        }
    }

    /// If nonces and count differ: checks whether the count is one of transactions (that of a
    /// contract is not), and gets a second answer about it.
    pub(super) async fn check_counts(&mut self, window: &PortalWindow, is_last: bool) {
        self.count().await;
        let is_uncounted = self.count.is_some_and(|count| !count.is_counted());
        let is_doubtful = is_uncounted || self.is_refuted(window);
        if is_doubtful && self.confirm().await && self.is_refuted(window) {
            self.count = None;
        }
        // Without this, a wallet that sends nothing, such as a contract, would hold back everything
        // it received.
        let is_silent = !is_last && self.count.is_some() && self.sent(window).next().is_none();
        if !is_silent && !self.differs(window, is_last) {
            return;
        }
        match self.witness.has_code().await {
            Ok(true) => self.count = None,
            Ok(false) | Err(_) if is_silent => {}
            Ok(false) | Err(_) => drop(self.confirm().await),
        }
    }

    /// Confirms the count by a second answer; whether that was possible.
    async fn confirm(&mut self) -> bool {
        if !self.witness.is_confirmed()
            && let Ok(counts) = self.witness.confirm().await
        {
            self.set_counts(counts);
            self.is_confirmed = true;
        }
        self.is_confirmed
    }

    /// Whether the window itself shows more sent transactions than the count.
    fn is_refuted(&self, window: &PortalWindow) -> bool {
        let nonces: Vec<u64> = self.sent(window).map(|(_, nonce)| nonce).collect();
        self.count.is_some_and(|count| count.is_refuted_by(&nonces))
    }

    /// Height and nonce of everything sent in the window and in those held back above it.
    fn sent<'a>(&'a self, window: &'a PortalWindow) -> impl Iterator<Item = (Height, u64)> + 'a {
        let all = self.held.iter().chain([window]);
        all.flat_map(|window| window.sent.iter().flatten()).copied()
    }

    fn top(&self, window: &PortalWindow) -> Height {
        self.held.as_ref().map_or(window.high, |held| held.high)
    }

    /// The height down to which nonces show that nothing is missing; `None`: nothing can be
    /// delivered yet.
    fn proved_low(&self, window: &PortalWindow, is_last: bool) -> Option<Height> {
        let held = self.held.as_ref().map_or(0, |held| held.found.len());
        let has_next = |count: SentCount| count.has_next() || self.sent(window).next().is_some();
        let waits =
            |count: SentCount| !count.is_exhausted() && has_next(count) && window.sent.is_some();
        if is_last || held > HELD_BACK_MAX || !self.count.is_some_and(waits) {
            return Some(window.low);
        }
        let lowest = self.sent(window).map(|(height, _)| height).min();
        sent::proved_low(window.low, self.top(window), lowest)
    }

    fn differs(&self, window: &PortalWindow, is_last: bool) -> bool {
        let low = self.proved_low(window, is_last);
        let (Some(count), Some(low)) = (self.count, low.filter(|_| window.sent.is_some())) else {
            return false;
        };
        let (above, below): (Vec<_>, Vec<_>) =
            self.sent(window).partition(|(height, _)| *height >= low);
        let follows = match below.iter().map(|(_, nonce)| *nonce).max() {
            Some(nonce) => Follows::Nonce(nonce),
            None if is_last && window.low <= self.low => Follows::Nothing,
            None => Follows::Unknown,
        };
        let nonces: Vec<u64> = above.into_iter().map(|(_, nonce)| nonce).collect();
        !count.fits(&nonces, follows)
    }

    /// Takes a window; `is_last`: nothing lies below it.
    pub(super) fn take(&mut self, window: PortalWindow, is_last: bool) -> Checked {
        let top = self.top(&window);
        let Some(low) = self.proved_low(&window, is_last) else {
            self.held = Some(self.joined(window));
            return Checked::Held;
        };
        let differs = self.differs(&window, is_last);
        if differs && self.reread != Some(top) {
            (self.reread, self.held) = (Some(top), None);
            return Checked::Again(top);
        }
        let (given, held) = self.joined(window).split(low);
        self.held = held;
        if let Some(count) = &mut self.count {
            let nonces: Vec<u64> = given.sent.iter().flatten().map(|(_, nonce)| *nonce).collect();
            count.pass(&nonces);
        }
        Checked::Deliver(given, if differs { Doubts::SENT_COUNT } else { Doubts::NONE })
    }

    fn joined(&mut self, window: PortalWindow) -> PortalWindow {
        match self.held.take() {
            Some(held) => window.below(held),
            None => window,
        }
    }
}
