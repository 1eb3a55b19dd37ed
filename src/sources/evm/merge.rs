//! Pure: merges an account's lists (its transactions, its token transfers, calls that gave it
//! native coin) by transaction.

use std::collections::{BTreeMap, HashMap};

use super::descent::{Descent, DescentOutcome, ListFault, PageAsk};
use super::discovery::{Candidate, Window};
use super::list_row::{ListRow, What};
use super::receipts::TokenTransfer;
use super::sent::{self, Follows, SentCount, SentNonce, SentTotals};
use super::subject::Subject;
use crate::decode::evm::{Account, NativeMove, Word};
use crate::domain::{Doubts, Height, Units, UnixSeconds};

/// `approve` and `setApprovalForAll`, which most transactions without any movement call.
const APPROVALS: [[u8; 4]; 2] = [[0x09, 0x5e, 0xa7, 0xb3], [0xa2, 0x2c, 0xb4, 0x65]];

/// The most rows held back for the next transaction that the wallet sent.
const HELD_BACK_MAX: usize = 5_000;

/// Of two answers to one query, the one that contains all rows of the other. If neither does, or
/// one repeats a row that the other has once, returns the second's endpoint: a repeated row would
/// double an amount.
pub(super) fn more_complete<T: Copy>(
    one: (T, Vec<ListRow>),
    two: (T, Vec<ListRow>),
) -> Result<(T, Vec<ListRow>), T> {
    let [of_one, of_two] = [&one.1, &two.1].map(|page| by_hash(page));
    if contains_all(&of_one, &of_two) {
        Ok(one)
    } else if contains_all(&of_two, &of_one) {
        Ok(two)
    } else {
        Err(two.0)
    }
}

type ByHash<'a> = HashMap<Word, Vec<&'a ListRow>>;

fn by_hash(page: &[ListRow]) -> ByHash<'_> {
    let mut rows = ByHash::new();
    for row in page {
        rows.entry(row.hash).or_default().push(row);
    }
    rows
}

/// Whether a page contains each row of `part` exactly as often: a repeated row would double an
/// amount.
fn contains_all(all: &ByHash<'_>, part: &ByHash<'_>) -> bool {
    let times =
        |rows: &[&ListRow], row: &ListRow| rows.iter().filter(|other| ***other == *row).count();
    part.iter().all(|(hash, rows)| {
        let Some(all) = all.get(hash) else { return false };
        all.len() >= rows.len() && rows.iter().all(|row| times(all, row) == times(rows, row))
    })
}

/// Whether a page has several transactions of the wallet and marks each as failed.
pub(super) fn are_all_failed(page: &[ListRow]) -> bool {
    let failed = page.iter().filter(|row| row.what == What::Failed).count();
    failed > 1 && !page.iter().any(|row| matches!(row.what, What::Outer { .. }))
}

/// Leaves open which transactions failed.
pub(super) fn doubt_failures(page: &mut [ListRow]) {
    for row in page.iter_mut().filter(|row| row.what == What::Failed) {
        row.what = What::MarkedFailed;
    }
}

/// All rows of one transaction.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five things that were seen or not")]
struct TxRows {
    index: Option<u32>,
    time: Option<UnixSeconds>,
    sent: bool,
    failed: bool,
    /// The outermost call as a movement.
    outer: Option<NativeMove>,
    /// The wallet gave something, or was itself called.
    gave: bool,
    has_token: bool,
    /// It may move something although no token transfer is listed.
    may_move: bool,
    /// Accounts that may be a known contract: recipient and counterparties.
    others: Vec<Account>,
    calls: Vec<NativeMove>,
}

/// Classification of a transaction.
enum TxClass {
    Candidate,
    /// It only received something, from an unknown sender.
    Spam,
    /// It cannot be a trade.
    Nothing,
}

impl TxRows {
    fn add(&mut self, row: &ListRow, wallet: &Account) {
        self.index = self.index.or(row.index);
        self.time = self.time.or(row.time);
        match row.what {
            What::Outer { from, to, value, selector } => {
                self.outer = to.map(|to| NativeMove { from, to, value });
                self.sent |= from == *wallet;
                self.gave |= to.as_ref() == Some(wallet) && selector.is_some();
                let calls = selector.is_some_and(|selector| !APPROVALS.contains(&selector));
                self.may_move |= calls && value != Units::ZERO;
                self.others.extend(to);
            }
            What::Failed | What::MarkedFailed => {
                self.failed = true;
                self.sent |= row.sent != SentNonce::No;
                self.may_move |= row.what == What::MarkedFailed;
            }
            What::Token { from, to } => {
                self.has_token = true;
                self.gave |= from == *wallet;
                self.others.extend([from, to]);
            }
            What::Call(call) => {
                self.gave |= call.from == *wallet;
                self.calls.push(call);
            }
            What::Nothing => {}
        }
    }

    /// Calls below the outermost one. Some indexes list that too: only contracts make inner calls,
    /// so a call from the sender to the recipient is the outermost one.
    fn inner_calls(&self) -> Vec<NativeMove> {
        self.calls.iter().filter(|call| Some(*call) != self.outer.as_ref()).copied().collect()
    }

    fn comes_from_known(&self, subject: &Subject) -> bool {
        let mut others = self.others.iter().filter(|other| **other != subject.wallet);
        others.any(|other| subject.knows(other))
    }

    /// Whether the wallet sent the transaction, or it came through a known contract.
    fn is_sent(&self, subject: &Subject) -> Option<bool> {
        (self.sent || self.gave || self.comes_from_known(subject)).then_some(true)
    }

    /// Classifies the transaction; `hides`: outgoing movements may be missing from the lists.
    fn classify(&self, subject: &Subject, hides: bool) -> TxClass {
        // What failed moves no token: indexes mark as failed what they have not finished.
        if self.failed && !self.has_token && !self.may_move {
            return TxClass::Nothing;
        }
        let known = || self.comes_from_known(subject);
        if self.sent && (self.has_token || self.may_move || !self.inner_calls().is_empty()) {
            return TxClass::Candidate;
        }
        match (self.has_token, self.gave || self.sent) {
            (true, true) => TxClass::Candidate,
            (true, false) if hides || known() => TxClass::Candidate,
            (true, false) => TxClass::Spam,
            // Without a token there is no trade, unless a known contract may hold tokens for the
            // wallet.
            (false, _) if self.sent && known() => TxClass::Candidate,
            (false, _) => TxClass::Nothing,
        }
    }
}

/// The lists of one wallet by kind, each at its own height. The first one contains what the wallet
/// sent.
#[derive(Debug, Clone)]
pub(super) struct Merge<L> {
    low: Height,
    /// Top of the next window; `None` below the lowest height.
    top: Option<Height>,
    lists: Vec<(L, Descent)>,
    /// The wallet was seen to send transactions itself, so it is no contract.
    sends: bool,
    /// The sent count, if the first list contains everything that the wallet sent.
    sent: Option<SentCount>,
}

impl<L: Copy + Eq> Merge<L> {
    pub(super) fn new(lists: &[L], low: Height, high: Height) -> Self {
        let lists = lists.iter().map(|list| (*list, Descent::new(low, high))).collect();
        Self { low, top: (low <= high).then_some(high), lists, sends: false, sent: None }
    }

    /// Lowers the top of the lists before anything is listed.
    pub(super) fn set_high(&mut self, high: Height) {
        let lists: Vec<L> = self.lists.iter().map(|(list, _)| *list).collect();
        *self = Self { sent: self.sent, ..Self::new(&lists, self.low, high) };
    }

    /// Nothing is left to deliver.
    pub(super) fn is_done(&self) -> bool {
        self.top.is_none()
    }

    /// The pages that the next window needs, by list.
    pub(super) fn wanted(&self) -> Vec<(L, PageAsk)> {
        let known = |list: &Descent| list.known_from().unwrap_or(Height::MAX);
        let highest = self.descents().filter(|list| !list.is_ended()).map(known).max();
        let behind = self.lists.iter().filter(|(_, list)| Some(known(list)) == highest);
        behind.filter_map(|(kind, list)| Some((*kind, list.ask()?))).collect()
    }

    pub(super) fn absorb(
        &mut self,
        subject: &Subject,
        list: L,
        page: Vec<ListRow>,
        is_whole: bool,
    ) -> Result<DescentOutcome, ListFault> {
        let sends =
            |row: &ListRow| matches!(row.what, What::Outer { from, .. } if from == subject.wallet);
        self.sends |= page.iter().any(sends);
        self.on_list(list, |list| list.absorb(page, is_whole)).unwrap_or(Ok(DescentOutcome::Taken))
    }

    /// Runs `work` on one of the lists; `None` if there is no such list.
    pub(super) fn on_list<T>(
        &mut self,
        list: L,
        work: impl FnOnce(&mut Descent) -> T,
    ) -> Option<T> {
        let of = self.lists.iter_mut().find(|(kind, _)| *kind == list);
        of.map(|(_, list)| work(list))
    }

    fn descents(&self) -> impl Iterator<Item = &Descent> {
        self.lists.iter().map(|(_, list)| list)
    }

    /// Compares the sent transactions with these counts from here on.
    pub(super) fn set_counts(&mut self, counts: SentTotals) {
        self.sent.get_or_insert_default().set_counts(counts);
    }

    /// Stops comparing: the first list has no nonces, or nonces do not count the wallet's
    /// transactions.
    pub(super) fn forget_counts(&mut self) {
        self.sent = None;
    }

    /// Whether the count at the top is unknown.
    pub(super) fn lacks_counts(&self) -> bool {
        self.sent.is_some_and(|sent| !sent.is_counted())
    }

    /// Whether the list itself shows more sent transactions than the count: the count then proves
    /// nothing.
    pub(super) fn refutes_counts(&self) -> bool {
        self.sent.is_some_and(|sent| sent.is_refuted_by(&self.nonces(|_| true)))
    }

    /// Whether nonces and counts show that the next window lacks sent transactions.
    pub(super) fn sent_differs(&self) -> bool {
        let (Some(sent), Some((low, _))) = (self.sent, self.next_range()) else { return false };
        let follows = match self.nonces(|height| height < low).into_iter().max() {
            Some(nonce) => Follows::Nonce(nonce),
            None if self.is_first_ended() => Follows::Nothing,
            None => Follows::Unknown,
        };
        !self.is_unnumbered() && !sent.fits(&self.nonces(|height| height >= low), follows)
    }

    fn is_first_ended(&self) -> bool {
        self.descents().next().is_none_or(Descent::is_ended)
    }

    fn sent_rows(&self) -> impl Iterator<Item = &ListRow> {
        let rows = self.descents().next().map_or(&[][..], Descent::rows);
        rows.iter().filter(|row| row.sent != SentNonce::No)
    }

    fn is_unnumbered(&self) -> bool {
        self.sent_rows().any(|row| row.sent == SentNonce::Unnumbered)
    }

    fn nonces(&self, is_wanted: impl Fn(Height) -> bool) -> Vec<u64> {
        let wanted = self.sent_rows().filter(|row| is_wanted(row.block));
        let nonces = wanted.filter_map(|row| match row.sent {
            SentNonce::Nonce(nonce) => Some(nonce),
            SentNonce::No | SentNonce::Unnumbered => None,
        });
        nonces.collect()
    }

    /// Whether a window can be taken.
    pub(super) fn is_ready(&self) -> bool {
        self.next_range().is_some()
    }

    /// The heights of the next window.
    fn next_range(&self) -> Option<(Height, Height)> {
        let top = self.top?;
        let known = self.descents().map(|list| list.known_from().unwrap_or(Height::MAX));
        let low = known.max().unwrap_or(self.low).max(self.low);
        let waits = |sent: SentCount| {
            let held = self.descents().map(|list| list.rows().len()).max();
            let is_long = held.is_some_and(|held| held >= HELD_BACK_MAX);
            let has_next = sent.has_next() || self.sent_rows().next().is_some();
            let is_open = !self.is_first_ended() && !sent.is_exhausted() && has_next;
            is_open && !self.is_unnumbered() && !is_long
        };
        if self.sent.is_some_and(waits) {
            let low = sent::proved_low(low, top, self.sent_rows().map(|row| row.block).min())?;
            return Some((low, top));
        }
        (low <= top).then_some((low, top))
    }

    /// Takes the next window: heights that all lists have passed. `calls_until`: the height up to
    /// which the lists contain all calls; `None`: they contain none.
    pub(super) fn take(
        &mut self,
        subject: &Subject,
        calls_until: Option<Height>,
    ) -> Option<Window> {
        let (low, top) = self.next_range()?;
        let doubts = if self.sent_differs() { Doubts::SENT_COUNT } else { Doubts::NONE };
        let nonces = self.nonces(|height| height >= low);
        if let Some(sent) = &mut self.sent {
            sent.pass(&nonces);
        }
        self.top = low.checked_sub(1).filter(|below| *below >= self.low);
        let mut sights: BTreeMap<(Height, Word), TxRows> = BTreeMap::new();
        for row in self.lists.iter_mut().flat_map(|(_, list)| list.take_from(low)) {
            sights.entry((row.block, row.hash)).or_default().add(&row, &subject.wallet);
        }
        let mut window = Window { low, high: top, found: Vec::new(), skipped: 0, doubts };
        let shown = TokenTransfer { wallet: subject.wallet, is_logged: false };
        for ((block, hash), sight) in sights {
            match sight.classify(subject, calls_until.is_none() && !self.sends) {
                TxClass::Candidate => window.found.push(Candidate {
                    hash,
                    block,
                    index: sight.index,
                    time: sight.time,
                    whole: None,
                    listed: (sight.outer.is_some(), sight.has_token),
                    sent: sight.is_sent(subject),
                    transfer: (sight.has_token && !sight.failed).then_some(shown),
                    calls: calls_until
                        .is_some_and(|until| block <= until && !sight.failed)
                        .then(|| sight.inner_calls()),
                }),
                TxClass::Spam => window.skipped += 1,
                TxClass::Nothing => {}
            }
        }
        window.found.sort_by_key(|found| std::cmp::Reverse((found.block, found.index)));
        Some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::super::list_row::{bare_page as page, bare_row};
    use super::super::lists_model::{POOL, subject};
    use super::*;

    #[test]
    fn of_two_pages_the_one_with_all_rows_of_the_other_counts() {
        let (short, long) = (page(&[1, 2]), page(&[1, 2, 3]));
        for (one, two, by) in [(&short, &long, 2), (&long, &short, 1), (&long, &long, 1)] {
            let taken = more_complete((1, one.clone()), (2, two.clone()));
            let longer = if one.len() < two.len() { two } else { one };
            assert_eq!(taken, Ok((by, longer.clone())));
        }
        assert_eq!(more_complete((1, page(&[])), (2, short.clone())), Ok((2, short)));
    }

    /// The receipt decides: an index that has not finished a transaction may list it as failed, or
    /// lack its calls too.
    #[test]
    fn what_moved_a_token_is_asked_for_though_it_is_listed_as_failed() {
        let (subject, row) = (subject(), |sent, what| ListRow { sent, what, ..bare_row(50, 1) });
        let token = What::Token { from: POOL, to: subject.wallet };
        let (one, none) = (vec![row(SentNonce::No, token)], vec![]);
        let cases = [
            (What::Failed, one, 1),
            (What::Failed, none.clone(), 0),
            // An index that marks all transactions may list no token movements either.
            (What::MarkedFailed, none, 1),
        ];
        for (what, tokens, count) in cases {
            let mut merge = Merge::new(&[0, 1, 2], 50, 100);
            let failed = vec![row(SentNonce::Nonce(0), what)];
            for (list, page) in [(0, failed), (1, tokens), (2, vec![])] {
                for _ in 0..2 {
                    let taken = merge.absorb(&subject, list, page.clone(), true);
                    assert_eq!(taken, Ok(DescentOutcome::Taken));
                }
            }
            let window = merge.take(&subject, Some(100)).unwrap();
            assert_eq!((window.found.len(), window.skipped), (count, 0));
            let mut found = window.found.iter();
            let is_open = |found: &Candidate| found.calls.is_none() && found.transfer.is_none();
            assert!(found.all(|found| found.sent == Some(true) && is_open(found)));
        }
    }

    #[test]
    fn of_two_pages_that_each_lack_a_row_of_the_other_none_counts() {
        assert_eq!(more_complete((1, page(&[1, 2])), (2, page(&[1, 3]))), Err(2));
        assert_eq!(more_complete((1, page(&[1])), (2, page(&[2, 3]))), Err(2));
        // A row that one of them repeats would count twice.
        assert_eq!(more_complete((1, page(&[1, 2])), (2, page(&[1, 2, 2]))), Err(2));
    }
}
