//! Pure: one range of slots that is read by full-transaction pages, downwards.
//!
//! A page's lowest slot is held back until the next page shows what lies below it. The next page is
//! requested from this slot, and must hold something of it: a token alone proves nothing, as an
//! index that lags begins with the newest entry that it has. So tokens are followed only inside one
//! slot, and far below the heads of all indexes. A page without a token may have ended early; so a
//! range ends with a page that holds the anchor, a known entry of the range below: between two
//! known entries, pages that overlap leave nothing out. Below the last known entry there is no
//! anchor, and the end takes a quorum of answers.

use std::collections::BTreeSet;

use super::full_pages::{FullPage, PageQuery};
use super::hint::Mark;
use super::timeline::{ReadyTxs, Timed};
use crate::domain::{Height, TxId};
use crate::rpc::EndpointId;
use crate::sources::pager::{Overlap, PageOutcome, PageView, Pager, PagerRules, Quorum};
use crate::sources::prefetch::Ready;

/// Pages in a row without progress, after which lists take over.
const MISSES_MAX: u32 = 4;
const END: Quorum = Quorum { from_several: 2, from_one: 2 };
const RULES: PagerRules = PagerRules {
    quorum: END,
    quorum_without_entries: END,
    short_page_votes: true,
    misses_max: MISSES_MAX,
    pages_inside_max: u32::MAX,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentAnchor {
    /// The segment below has not answered yet.
    Pending,
    /// The newest entry known below.
    Entry(Mark),
    /// There is none below.
    None,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) low: Height,
    /// Everything above this slot is delivered.
    pub(super) next_high: Height,
    /// Pages are requested at or below this slot.
    top: Height,
    /// The range of the pages that are linked by a token.
    chain: Option<(Height, Height, String)>,
    /// The token was given far below the heads of all indexes.
    is_deep: bool,
    /// Received and not delivered, newest first.
    pub(super) held: Vec<Timed>,
    pager: Pager<Height, TxId>,
    pub(super) newest: Option<Mark>,
    /// The lowest slot of any entry.
    pub(super) oldest: Option<Height>,
    last_by: Option<EndpointId>,
    answered_by: BTreeSet<EndpointId>,
    read: usize,
    /// Pages in a row without progress.
    fruitless: u32,
    phase: SegmentPhase,
    pub(super) is_in_flight: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SegmentPhase {
    New,
    Reading,
    /// The last page had no token.
    Stopped,
    Ended,
    Lost,
}

impl Segment {
    pub(super) fn new(low: Height, high: Height) -> Self {
        Self {
            number: 0,
            low,
            next_high: high,
            top: high,
            chain: None,
            is_deep: false,
            held: Vec::new(),
            pager: Pager::new(RULES, high),
            newest: None,
            oldest: None,
            last_by: None,
            answered_by: BTreeSet::new(),
            read: 0,
            fruitless: 0,
            phase: SegmentPhase::New,
            is_in_flight: false,
        }
    }

    /// The oldest transactions of a wallet, from a page in ascending order: all but those of its
    /// newest slot, which may continue. `None` for a page of a single slot.
    pub(super) fn of_oldest(low: Height, page: FullPage) -> Option<(Self, Mark)> {
        let top = page.entries().max_by_key(|(slot, _)| *slot)?;
        let mut segment = Self::new(low, top.0.checked_sub(1)?);
        segment.answered_by.insert(page.by);
        segment.hold(page.txs);
        segment.newest = segment.held.first().and_then(|(tx, _)| Some((tx.slot(), tx.id()?)));
        segment.newest?;
        segment.phase = SegmentPhase::Ended;
        Some((segment, top))
    }

    pub(super) fn is_started(&self) -> bool {
        self.phase != SegmentPhase::New
    }

    /// Whether its pages are being read: it neither waits for the anchor nor has ended.
    pub(super) fn is_active(&self) -> bool {
        self.phase == SegmentPhase::Reading
    }

    pub(super) fn has_ended(&self) -> bool {
        self.phase == SegmentPhase::Ended
    }

    pub(super) fn is_lost(&self) -> bool {
        self.phase == SegmentPhase::Lost
    }

    pub(super) fn answered_by(&self) -> Vec<EndpointId> {
        self.answered_by.iter().copied().collect()
    }

    pub(super) fn left(&self) -> u64 {
        self.oldest.unwrap_or(self.top).saturating_sub(self.low)
    }

    /// Transactions read, and the number of slots that they span.
    pub(super) fn density(&self) -> Option<(usize, u64)> {
        let (newest, oldest) = (self.newest?, self.oldest?);
        Some((self.read, newest.0 - oldest + 1))
    }

    /// Keeps the part from this slot up; returns the part below as another segment.
    pub(super) fn split_off(&mut self, low: Height) -> Option<Self> {
        let is_inside = low > self.low && low <= self.oldest.unwrap_or(self.top);
        let below = is_inside.then(|| Self::new(self.low, low - 1))?;
        self.low = low;
        if self.phase == SegmentPhase::Stopped {
            self.phase = SegmentPhase::Reading;
        }
        Some(below)
    }

    pub(super) fn wants_page(&self, anchor: SegmentAnchor) -> bool {
        let may_go_on = match self.phase {
            SegmentPhase::New | SegmentPhase::Reading => true,
            SegmentPhase::Stopped => anchor != SegmentAnchor::Pending,
            SegmentPhase::Ended | SegmentPhase::Lost => false,
        };
        may_go_on && !self.is_in_flight
    }

    /// The endpoint to avoid: one whose page did not prove the end, or was a miss.
    pub(super) fn avoid(&self) -> Option<EndpointId> {
        let is_doubted = self.phase == SegmentPhase::Stopped || self.pager.misses() > 0;
        self.last_by.filter(|_| is_doubted)
    }

    /// The next page, down to the anchor where there is one.
    pub(super) fn query(
        &mut self,
        anchor: SegmentAnchor,
        limit: usize,
        known_to: Height,
    ) -> PageQuery {
        self.is_in_flight = true;
        if self.phase == SegmentPhase::New {
            self.phase = SegmentPhase::Reading;
        }
        let low = match anchor {
            SegmentAnchor::Entry((slot, _)) => self.low.min(slot),
            SegmentAnchor::Pending | SegmentAnchor::None => self.low,
        };
        if self.chain.as_ref().is_some_and(|(of, ..)| *of != low) {
            self.chain = None;
        }
        let (high, token) = match &self.chain {
            Some((_, high, token)) => (*high, Some(token.clone())),
            None => (self.top, None),
        };
        if token.is_none() {
            self.chain = Some((low, high, String::new()));
        }
        PageQuery { low, high, limit, ascending: false, token, known_to: Some(known_to) }
    }

    pub(super) fn fail(&mut self) {
        self.is_in_flight = false;
        self.chain = None;
        self.count_fruitless();
    }

    fn count_fruitless(&mut self) {
        self.fruitless += 1;
        if self.fruitless > MISSES_MAX {
            self.phase = SegmentPhase::Lost;
        }
    }

    /// The end that this segment reported proved false.
    pub(super) fn reopen(&mut self) {
        (self.phase, self.chain) = (SegmentPhase::Stopped, None);
        self.pager.reopen();
        self.count_fruitless();
    }

    pub(super) fn absorb(&mut self, page: FullPage, anchor: SegmentAnchor) {
        (self.is_in_flight, self.last_by) = (false, Some(page.by));
        if self.shows_more_below(&page, anchor) {
            self.phase = SegmentPhase::Lost;
            return;
        }
        let own = self.low..=self.next_high;
        let entries: Vec<Mark> = page.entries().filter(|(at, _)| own.contains(at)).collect();
        let has_new = entries.iter().any(|(_, id)| !self.holds(*id));
        if has_new {
            self.pager.clear_votes();
        }
        let step = self.step(entries, &page);
        let has_stopped = page.token.is_none();
        self.phase = if has_stopped { SegmentPhase::Stopped } else { SegmentPhase::Reading };
        if matches!(step, PageOutcome::Miss | PageOutcome::Lost) {
            self.chain = None;
            return self.count_fruitless();
        }
        let is_anchored = match anchor {
            SegmentAnchor::Entry(mark) => page.entries().any(|entry| entry == mark),
            SegmentAnchor::Pending | SegmentAnchor::None => false,
        };
        if has_new {
            self.fruitless = 0;
        } else {
            self.count_fruitless();
        }
        self.answered_by.insert(page.by);
        let leads_on = page.is_deep || !matches!(step, PageOutcome::Lower(_));
        self.is_deep = page.is_deep;
        self.link(page.token.filter(|_| leads_on));
        self.hold(page.txs);
        let has_ended = match anchor {
            SegmentAnchor::Entry(_) => has_stopped && is_anchored,
            SegmentAnchor::Pending => false,
            SegmentAnchor::None => self.pager.has_ended(),
        };
        if has_ended {
            self.phase = SegmentPhase::Ended;
        }
    }

    fn step(&mut self, entries: Vec<Mark>, page: &FullPage) -> PageOutcome<Height> {
        let is_linked = self.chain.as_ref().is_some_and(|(.., token)| !token.is_empty());
        // The page must go on in the slot of the token; an index that has not reached that slot has
        // nothing of it. A slot that ended exactly with the page before counts as a miss too, and
        // is then read by lists.
        let has_edge = entries.iter().any(|(at, _)| *at == self.pager.edge());
        if is_linked && !has_edge && !self.is_deep {
            return self.pager.miss();
        }
        self.pager.absorb(&PageView {
            entries,
            // A page that begins at the lowest slot must hold some entry of it.
            overlap: if is_linked { Overlap::Nothing } else { Overlap::Any },
            has_more: page.token.is_some(),
            by: Some(page.by),
        })
    }

    /// Whether the page holds an entry of the range below that is newer than the newest one known
    /// there: then that range began with a page that lacked it, and pages do not read it again.
    fn shows_more_below(&self, page: &FullPage, anchor: SegmentAnchor) -> bool {
        let SegmentAnchor::Entry((mark, _)) = anchor else { return false };
        page.entries().any(|(at, _)| mark < at && at < self.low)
    }

    /// Continues by the page's token, or from its lowest slot.
    fn link(&mut self, next: Option<String>) {
        self.chain = self.chain.take().zip(next).map(|((low, high, _), token)| (low, high, token));
    }

    fn holds(&self, id: TxId) -> bool {
        self.held.iter().any(|(held, _)| held.id() == Some(id))
    }

    fn hold(&mut self, txs: Vec<Timed>) {
        let own = self.low..=self.next_high;
        for (tx, time) in txs {
            let is_known = tx.id().is_some_and(|id| self.holds(id));
            if own.contains(&tx.slot()) && !is_known {
                self.read += 1;
                self.held.push((tx, time));
            }
        }
        self.held.sort_by_key(|(tx, _)| std::cmp::Reverse(tx.slot()));
        let mark = |(tx, _): &Timed| Some((tx.slot(), tx.id()?));
        self.newest = self.newest.or_else(|| self.held.first().and_then(mark));
        if let Some((lowest, _)) = self.held.last() {
            // From this slot itself: the page may have ended in the middle of it.
            self.top = self.top.min(lowest.slot());
            self.oldest = Some(self.oldest.map_or(lowest.slot(), |at| at.min(lowest.slot())));
        }
    }

    /// Delivers all but the lowest slot, or everything where the end counts; about `most`
    /// transactions at most.
    pub(super) fn deliver(&mut self, end_counts: bool, most: usize) -> Option<ReadyTxs> {
        if self.next_high < self.low {
            return None;
        }
        let mut low = if self.has_ended() && end_counts {
            self.low
        } else {
            let lowest = self.held.last()?.0.slot();
            self.held.first().filter(|(tx, _)| tx.slot() > lowest)?;
            lowest + 1
        };
        if let Some((cut, _)) = self.held.get(most.saturating_sub(1)) {
            low = low.max(cut.slot());
        }
        let kept = self.held.iter().position(|(tx, _)| tx.slot() < low);
        let rest = self.held.split_off(kept.unwrap_or(self.held.len()));
        let txs = std::mem::replace(&mut self.held, rest);
        let high = std::mem::replace(&mut self.next_high, low.saturating_sub(1));
        Some(Ready { low, high, txs, missing: Vec::new() })
    }

    pub(super) fn is_done(&self) -> bool {
        self.next_high < self.low
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof_tests::transaction;
    use super::*;
    use crate::decode::solana as decoder;
    use crate::domain::UnixSeconds;

    const LIMIT: usize = 4;

    /// The index of one of the servers behind an endpoint; it holds the slots up to its head.
    #[derive(Clone, Copy)]
    struct Index<'a> {
        entries: &'a [Mark],
        head: Height,
        is_deep: bool,
    }

    fn mark(slot: Height, number: u8) -> Mark {
        let mut id = [number; 64];
        id[..8].copy_from_slice(&slot.to_be_bytes());
        (slot, TxId::solana(&id))
    }

    fn tx((slot, id): Mark) -> Timed {
        let raw = transaction(slot, &id.to_string());
        let tx = decoder::parse(raw.to_string().as_bytes()).unwrap();
        (Box::new(tx), UnixSeconds(0))
    }

    impl Index<'_> {
        /// Continues behind the position of a token, even one above its head.
        fn page(self, query: &PageQuery) -> FullPage {
            let from = query.token.as_ref().map_or(0, |token| token.parse().unwrap());
            let all = self.entries.iter().enumerate().skip(from);
            let wanted = query.low..=query.high.min(self.head);
            let mut found: Vec<(usize, Mark)> = all.map(|(at, entry)| (at + 1, *entry)).collect();
            found.retain(|(_, (slot, _))| wanted.contains(slot));
            let has_more = found.len() > LIMIT;
            found.truncate(LIMIT);
            let token = found.last().filter(|_| has_more).map(|(next, _)| next.to_string());
            let txs = found.into_iter().map(|(_, entry)| tx(entry)).collect();
            FullPage { txs, token, by: EndpointId(0), is_deep: self.is_deep }
        }

        fn give(self, segment: &mut Segment, anchor: SegmentAnchor) {
            let query = segment.query(anchor, LIMIT, 100);
            segment.absorb(self.page(&query), anchor);
        }
    }

    /// Reads everything down to slot 0. `behind`: the number of the page that a lagging server
    /// gives, and the slot up to which it has indexed. `is_deep`: the range is far below the heads
    /// of all indexes. Returns the entries that are held and the number of pages.
    fn read(
        entries: &[Mark],
        behind: Option<(usize, Height)>,
        is_deep: bool,
    ) -> (Vec<Mark>, usize) {
        let mut segment = Segment::new(0, 100);
        let mut pages = 0;
        while segment.wants_page(SegmentAnchor::None) {
            pages += 1;
            let head = behind.filter(|(at, _)| *at == pages).map_or(100, |(_, head)| head);
            Index { entries, head, is_deep }.give(&mut segment, SegmentAnchor::None);
        }
        assert!(segment.has_ended(), "lists read the rest");
        let mut held: Vec<Mark> =
            segment.held.iter().map(|(tx, _)| (tx.slot(), tx.id().unwrap())).collect();
        held.sort_by_key(|(slot, id)| (std::cmp::Reverse(*slot), *id));
        (held, pages)
    }

    /// Ten slots are read in pages of four entries, each from the lowest slot of the page before:
    /// 100 to 97, 97 to 94, 94 to 91, and 91 once more to confirm the end.
    #[test]
    fn a_page_of_a_lagging_server_is_not_continued() {
        let entries: Vec<Mark> = (91..=100).rev().map(|slot| mark(slot, 0)).collect();
        assert_eq!(read(&entries, None, false), (entries.clone(), 4));
        // The second page would begin with 95: its server lacks the slots above.
        assert_eq!(read(&entries, Some((2, 95)), false), (entries, 5));
    }

    /// Twelve slots: 100 to 97, 96 to 93, 92 to 89, and 89 once more for the end. Near the head 97, 94
    /// and 91 come twice.
    #[test]
    fn far_below_the_head_no_slot_is_asked_for_twice() {
        let entries: Vec<Mark> = (89..=100).rev().map(|slot| mark(slot, 0)).collect();
        assert_eq!(read(&entries, None, true), (entries.clone(), 4));
        assert_eq!(read(&entries, None, false), (entries, 5));
    }

    /// Slot 50 fills a page. The pages hold 51 and three entries of slot 50; four of slot 50; by
    /// the token, the other two and 49; and 49 once more to confirm the end.
    #[test]
    fn a_token_leads_on_inside_a_slot_and_not_past_it() {
        let inside = (1..=6).map(|number| mark(50, number));
        let entries: Vec<Mark> =
            [mark(51, 0)].into_iter().chain(inside).chain([mark(49, 0)]).collect();
        assert_eq!(read(&entries, None, false), (entries.clone(), 4));
        // The third page, requested by the token, begins with 49 and lacks two entries of slot 50.
        // So the second page is requested again, and then the third.
        assert_eq!(read(&entries, Some((3, 49)), false), (entries, 6));
    }

    #[test]
    fn an_entry_above_where_the_segment_below_began_is_not_passed_over() {
        let entries = [90, 70, 55, 50, 40].map(|slot| mark(slot, 0));
        for (head, newest) in [(100, 55), (52, 50)] {
            let whole = Index { entries: &entries, head: 100, is_deep: false };
            let (mut upper, mut lower) = (Segment::new(60, 100), Segment::new(0, 59));
            whole.give(&mut upper, SegmentAnchor::Pending);
            Index { head, ..whole }.give(&mut lower, SegmentAnchor::None);
            assert_eq!(lower.newest, Some(mark(newest, 0)));
            whole.give(&mut upper, SegmentAnchor::Entry(mark(newest, 0)));
            // Where the page begins with 50, the upper segment also receives 55.
            let is_whole = newest == 55;
            assert_eq!((upper.has_ended(), upper.is_lost()), (is_whole, !is_whole));
        }
    }

    /// A server whose index reaches less far down ends the range; the page with the oldest
    /// transactions comes afterwards, from a server whose index reaches further.
    #[test]
    fn oldest_transactions_that_arrive_after_an_end_replace_no_segment() {
        use super::super::segments::{PageRoom, Segments};
        let entries = [mark(90, 1), mark(80, 2), mark(30, 3), mark(20, 4)];
        let shallow = Index { entries: &entries[..2], head: 100, is_deep: false };
        let mut segments = Segments::new(0, 100);
        let room = PageRoom { segments: 4, held: 100, limit: LIMIT };
        for _ in 0..3 {
            for request in segments.requests(room) {
                segments.absorb(request.number, shallow.page(&request.query));
            }
        }
        assert_eq!(segments.end().and_then(|end| end.oldest), Some(80), "as it seems");
        let oldest = entries[2..].iter().rev().copied().map(tx).collect();
        segments.set_oldest(FullPage {
            txs: oldest,
            token: None,
            by: EndpointId(0),
            is_deep: false,
        });
        assert_eq!(segments.end().and_then(|end| end.oldest), Some(80), "it is what is checked");
        let delivered = segments.deliver(false, 100).map(|(chunk, _)| chunk.low);
        assert!(delivered.is_none_or(|low| low > 30), "{delivered:?}");
    }
}
