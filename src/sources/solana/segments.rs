//! Pure: divides a range of slots into segments that are read in parallel by full-transaction pages
//! and delivered in order, newest first.
//!
//! A segment is a few pages long, by the density of the transactions above it, so that read-ahead
//! stays bounded.

use std::collections::VecDeque;

use super::full_pages::{FullPage, PAGE_FIRST, PageQuery};
use super::hint::Mark;
use super::segment::{Segment, SegmentAnchor};
use super::timeline::{ReadyTxs, Timed};
use crate::domain::Height;
use crate::rpc::EndpointId;

#[derive(Debug, Clone, Copy)]
pub(super) struct PageRoom {
    pub(super) segments: usize,
    pub(super) held: usize,
    pub(super) limit: usize,
}

#[derive(Debug)]
pub(super) struct SegmentRequest {
    pub(super) number: u64,
    pub(super) query: PageQuery,
    pub(super) avoid: Option<EndpointId>,
}

#[derive(Debug)]
pub(super) struct Segments {
    /// Newest first.
    all: VecDeque<Segment>,
    next_number: u64,
    known_to: Height,
    /// The newest entry of the page with the oldest transactions, once that page has come.
    bottom: Option<Mark>,
    /// Lowest slot of the last segment that was delivered to its end.
    last: Option<Height>,
}

impl Segments {
    pub(super) fn new(low: Height, high: Height) -> Self {
        let all = VecDeque::from([Segment::new(low, high)]);
        Self { all, next_number: 1, known_to: high, bottom: None, last: None }
    }

    /// Takes the page with the oldest transactions: the range between may then be read in parallel.
    /// It is ignored once the lowest segment has ended: its own end would replace the one that is
    /// being checked.
    pub(super) fn set_oldest(&mut self, page: FullPage) {
        let Some(last) = self.all.back_mut().filter(|last| !last.has_ended()) else { return };
        let Some((mut oldest, mark)) = Segment::of_oldest(last.low, page) else { return };
        if last.split_off(mark.0).is_some() {
            self.bottom = Some(mark);
            oldest.number = self.next_number;
            self.next_number += 1;
            self.all.push_back(oldest);
        }
    }

    /// Whether the first segment shows that more than one page lies below what was read.
    pub(super) fn is_long(&self) -> bool {
        let is_open = |one: &Segment| one.newest.is_some() && one.is_active();
        self.all.front().is_some_and(is_open)
    }

    pub(super) fn next_high(&self) -> Option<Height> {
        self.all.front().map(|one| one.next_high)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.all.iter().any(Segment::is_lost)
    }

    /// The lowest segment, once its pages have ended.
    pub(super) fn end(&self) -> Option<&Segment> {
        self.all.back().filter(|segment| segment.has_ended())
    }

    /// Transactions of the lowest segments, oldest first.
    pub(super) fn oldest_held(&self) -> impl Iterator<Item = &Timed> {
        self.all.iter().rev().flat_map(|one| one.held.iter().rev())
    }

    pub(super) fn oldest(&self) -> Option<Height> {
        let here = self.all.iter().filter_map(|one| one.oldest).min();
        here.or(self.last)
    }

    pub(super) fn answered_by(&self) -> Vec<EndpointId> {
        self.all.iter().flat_map(Segment::answered_by).collect()
    }

    /// The end of the lowest segment proved false: reopens it.
    pub(super) fn reopen_end(&mut self) {
        if let Some(last) = self.all.back_mut() {
            last.reopen();
        }
    }

    fn anchor(&self, at: usize) -> SegmentAnchor {
        for segment in self.all.iter().skip(at + 1) {
            match segment.newest {
                // The entries of the last segment begin below a known entry, which is the anchor.
                Some(_) if at + 2 == self.all.len() && self.bottom.is_some() => break,
                Some(mark) => return SegmentAnchor::Entry(mark),
                None if segment.has_ended() => {}
                None => return SegmentAnchor::Pending,
            }
        }
        self.bottom
            .filter(|_| at + 1 < self.all.len())
            .map_or(SegmentAnchor::None, SegmentAnchor::Entry)
    }

    pub(super) fn requests(&mut self, room: PageRoom) -> Vec<SegmentRequest> {
        let mut requests = Vec::new();
        let (mut active, mut held, mut at) = (0, 0, 0);
        let mut density = None;
        while let Some(segment) = self.all.get(at) {
            density = segment.density().or(density);
            held += segment.held.len();
            active += usize::from(segment.is_active());
            let has_room = held + room.limit <= room.held;
            let may_begin = segment.is_started() || active < room.segments;
            if segment.wants_page(self.anchor(at)) && (at == 0 || has_room && may_begin) {
                self.cut(at, density, room);
                requests.extend(self.request(at, room));
            }
            let is_in_flight = self.all.get(at).is_some_and(|one| one.is_in_flight);
            held += if is_in_flight { room.limit } else { 0 };
            at += 1;
        }
        requests
    }

    fn request(&mut self, at: usize, room: PageRoom) -> Option<SegmentRequest> {
        let anchor = self.anchor(at);
        let known_to = self.known_to;
        let segment = self.all.get_mut(at)?;
        let is_first = at == 0 && segment.newest.is_none();
        let limit = if is_first { PAGE_FIRST.min(room.limit) } else { room.limit };
        let (number, avoid) = (segment.number, segment.avoid());
        Some(SegmentRequest { number, query: segment.query(anchor, limit, known_to), avoid })
    }

    /// Cuts a segment to its share of the pages; what is below becomes another one. Only where the
    /// oldest transaction is known: else most segments would be empty.
    fn cut(&mut self, at: usize, density: Option<(usize, u64)>, room: PageRoom) {
        let (Some((read, slots)), Some(_)) = (density, self.bottom) else { return };
        let (read, share) = (wide(read).max(1), wide(room.held / room.segments.max(1)));
        let share = share.max(wide(room.limit));
        let number = self.next_number;
        let Some(segment) = self.all.get_mut(at) else { return };
        let left = u128::from(segment.left());
        if left * read / u128::from(slots) <= share * 2 {
            return;
        }
        let share_slots = u64::try_from(share * u128::from(slots) / read).unwrap_or(u64::MAX);
        let keeps = segment.left().saturating_sub(share_slots.max(1));
        if let Some(mut below) = segment.split_off(segment.low + keeps) {
            below.number = number;
            self.next_number += 1;
            self.all.insert(at + 1, below);
        }
    }

    pub(super) fn absorb(&mut self, number: u64, page: FullPage) {
        let Some(at) = self.position(number) else { return };
        let anchor = self.anchor(at);
        if let Some(one) = self.all.get_mut(at) {
            one.absorb(page, anchor);
        }
    }

    pub(super) fn fail(&mut self, number: u64) {
        if let Some(one) = self.position(number).and_then(|at| self.all.get_mut(at)) {
            one.fail();
        }
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.all.iter().position(|one| one.number == number)
    }

    /// The next chunk of about `most` transactions, with the endpoints that its proof depends on.
    /// The end of the lowest segment counts only where it is confirmed.
    pub(super) fn deliver(
        &mut self,
        is_confirmed: bool,
        most: usize,
    ) -> Option<(ReadyTxs, Vec<EndpointId>)> {
        let is_lowest = self.all.len() == 1;
        let segment = self.all.front_mut()?;
        let chunk = segment.deliver(is_confirmed || !is_lowest, most)?;
        let by = segment.answered_by();
        if segment.is_done() {
            self.last = segment.oldest.or(self.last);
            self.all.pop_front();
        }
        Some((chunk, by))
    }
}

fn wide(count: usize) -> u128 {
    u128::try_from(count).unwrap_or(u128::MAX)
}
