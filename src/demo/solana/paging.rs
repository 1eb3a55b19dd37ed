//! The lists of a node: the transactions that name an address, as pages of signatures and of full
//! transactions.

use std::sync::Arc;

use super::history::{self, Content, LANES, NoiseKind, STEPS, WalletHistory, noise_number};
use super::keys::{KnownAccount, ModelKey};
use super::model::{ListEntry, ListSubject, SolanaModel, build};
use super::rpc::{NodeContext, ParamOptions, at_least_confirmed, key, signature};
use super::tokens::DemoToken;
use super::wire::{self, member, quoted};
use super::{TradeKind, maker, noise, number, slots};
use crate::demo::faults::{Lie, reordered};
use crate::demo::mix;
use crate::demo::rpc::{CallReply, DemoError};
use crate::demo::timeline::{Class, Spot};
use crate::domain::Height;

const LIST_MAX: u64 = 1_000;

impl NodeContext<'_> {
    /// What both lists are asked for: an address, options, and the head that these select.
    fn listed(&self) -> Result<(ModelKey, ParamOptions<'_>, Height), DemoError> {
        let key = key(self.params, 0)?;
        let options = ParamOptions(self.params.get(1));
        let head = self.head.saturating_add(at_least_confirmed(options)?);
        options.min_context_slot(head)?;
        Ok((key, options, head))
    }

    pub(super) fn signatures(&self) -> CallReply {
        let (key, options, head) = self.listed()?;
        let listed = head.saturating_sub(self.node.list_lag);
        let limit = options.number("limit").unwrap_or(LIST_MAX);
        if !(1..=LIST_MAX).contains(&limit) {
            return Err(DemoError::invalid("Invalid limit; max 1000"));
        }
        let limit = usize::try_from(limit.min(self.node.list_page_max)).unwrap_or(0);
        let before = options.text("before").map(signature).transpose()?;
        let until = options.text("until").map(signature).transpose()?;
        let page = match self.model.subject(&key) {
            _ if self.answer_faults.empty => Vec::new(),
            _ if is_busy(&key) => self.busy_page(listed, before, limit),
            Some(subject) => self.page(&subject, listed, before, until, limit),
            None => Vec::new(),
        };
        let mut out = Vec::with_capacity(page.len() * 240);
        wire::list(&mut out, &page, |out, entry| self.write_entry(out, entry, None));
        Ok(out)
    }

    /// A page of the account that every block names, newest first.
    fn busy_page(&self, head: Height, before: Option<[u8; 64]>, limit: usize) -> Vec<ListEntry> {
        let from = before.and_then(|before| self.model.filler_place(&before));
        if before.is_some() && from.is_none() {
            return Vec::new();
        }
        let (top, below) = from.unwrap_or((head, u32::MAX));
        let blocks = (0..=top).rev().filter(|slot| slots::has_block(*slot));
        let entries = blocks.flat_map(move |slot| {
            let most = if slot == top { below.min(OF_A_BLOCK) } else { OF_A_BLOCK };
            (0..most).rev().map(move |index| ListEntry {
                signature: self.model.filler(slot, index),
                number: 0,
                spot: Spot { height: slot, index },
                failed: false,
            })
        });
        let mut page = entries.take(limit).collect();
        self.answer_faults.end_early(&mut page);
        page
    }

    fn page(
        &self,
        subject: &ListSubject,
        head: Height,
        before: Option<[u8; 64]>,
        until: Option<[u8; 64]>,
        limit: usize,
    ) -> Vec<ListEntry> {
        let wallet = subject.wallet();
        let mut edge = None;
        let mut below = wallet.count_at(head);
        if let Some(before) = before {
            let found = self.model.find(&before);
            let slot = found.as_ref().map(|(_, _, spot, _)| spot.height);
            // A cursor that the node does not have gets an empty page; one that is only above what its
            // lists have come to is found in its blocks, and the page begins with what they have.
            let slot = slot.or_else(|| self.model.filler_place(&before).map(|place| place.0));
            let kept = self.node.first_available..=head.saturating_add(self.node.list_lag);
            let Some(slot) = slot.filter(|slot| kept.contains(slot)) else { return Vec::new() };
            edge = Some((before, slot));
            let own = found.filter(|(_, number, spot, _)| wallet.spot(*number) == Some(*spot));
            let behind = match own.filter(|_| self.answer_faults.flip.is_none()) {
                Some((_, number, ..)) => number,
                None => wallet.count_at(slot),
            };
            below = below.min(behind);
        }
        let floor = until.and_then(|until| self.model.find(&until)).map(|found| found.2);
        let entries = self.ordered(subject, below, edge);
        let kept = entries.take_while(|entry| {
            let above = floor.is_none_or(|floor| {
                (entry.spot.height, entry.spot.index) > (floor.height, floor.index)
            });
            above
                && Some(entry.signature) != until
                && entry.spot.height >= self.node.first_available
        });
        let lost = usize::from(self.answer_faults.lose);
        let mut page: Vec<ListEntry> = kept.take(limit + lost).collect();
        // Nodes lose siblings of the cursor's slot, not whole slots.
        let is_edge = |first: &ListEntry| edge.is_some_and(|(_, slot)| slot == first.spot.height);
        self.answer_faults.lose_first(&mut page, is_edge);
        page.truncate(limit);
        self.answer_faults.end_early(&mut page);
        // What two lists of a token account lack is believed (docs/reliability.md).
        if let ListSubject::Wallet(_) = subject {
            self.answer_faults.lie.reduce(&mut page, |entry| entry.spot.height);
        }
        let marked = self.answer_faults.lie.marked(page.len());
        if let Some(entry) = marked.and_then(|at| page.get_mut(at)) {
            entry.failed = true;
        }
        self.answer_faults.repeat_first(&mut page);
        page.truncate(limit);
        page
    }

    /// Entries below a number, with the transactions of a slot in this node's current order.
    fn ordered(
        &self,
        subject: &ListSubject,
        below: u64,
        edge: Option<([u8; 64], Height)>,
    ) -> Box<dyn Iterator<Item = ListEntry>> {
        let entries = self.model.entries(subject, below);
        let Some(salt) = self.answer_faults.flip else {
            let skip = edge.map(|(signature, slot)| {
                let wallet = subject.wallet();
                let spot = self.model.find(&signature).map(|found| found.2);
                (slot, spot.filter(|spot| wallet.spot(below) != Some(*spot)))
            });
            return Box::new(entries.skip_while(move |entry| match skip {
                // A cursor of another wallet: entries above it in its slot are skipped.
                Some((slot, Some(spot))) => {
                    entry.spot.height == slot && entry.spot.index >= spot.index
                }
                _ => false,
            }));
        };
        let height = |entry: &ListEntry| entry.spot.height;
        let rank = move |entry: &ListEntry| mix::hash(salt, &[entry.number]);
        let is_cursor = move |first: &ListEntry, entry: &ListEntry| {
            edge.is_some_and(|edge| edge == (entry.signature, first.spot.height))
        };
        Box::new(reordered(entries, height, rank, is_cursor))
    }

    fn write_entry(&self, out: &mut Vec<u8>, entry: &ListEntry, index: Option<u32>) {
        out.push(b'{');
        number(member(out, "blockTime"), slots::time(entry.spot.height));
        let status = if entry.spot.height <= self.head { "finalized" } else { "confirmed" };
        quoted(member(out, "confirmationStatus"), status);
        wire::error(member(out, "err"), entry.failed.then_some(noise::FAILURE));
        member(out, "memo").extend_from_slice(b"null");
        wire::quoted_base58(member(out, "signature"), &entry.signature);
        number(member(out, "slot"), entry.spot.height);
        if let Some(index) = index {
            number(member(out, "transactionIndex"), u64::from(index));
        }
        out.push(b'}');
    }

    /// `getTransactionsForAddress`, newest or oldest first, signatures or full transactions.
    pub(super) fn transactions_for_address(&self) -> CallReply {
        let (key, options, head) = self.listed()?;
        let full = options.text("transactionDetails") == Some("full");
        let most = if full { self.node.full_page_max } else { LIST_MAX };
        let limit = options.number("limit").unwrap_or(most);
        if !(1..=most).contains(&limit) {
            return Err(DemoError::invalid(format!("limit must be between 1 and {most}")));
        }
        let limit = usize::try_from(limit).unwrap_or(0);
        let filters = ParamOptions(options.get("filters"));
        let range = ParamOptions(filters.get("slot"));
        let first = self.node.first_available.max(self.node.full_pages_from);
        let lag = self.node.list_lag.max(self.node.full_pages_lag);
        let low = range.number("gte").unwrap_or(0).max(first);
        let high = range.number("lte").unwrap_or(Height::MAX).min(head.saturating_sub(lag));
        let succeeded = filters.text("status") == Some("succeeded");
        let with_accounts = self.node.full_pages_by_owner
            && matches!(filters.text("tokenAccounts"), Some("balanceChanged" | "all"));
        let ascending = options.text("sortOrder") == Some("asc");
        let from = options.text("paginationToken").map(token_position).transpose()?;
        if is_busy(&key) && !full {
            let page = self.busy_page(high, None, limit);
            return Ok(write_page(&page, false, |out, entry| self.write_row(out, entry)));
        }
        let Some(ListSubject::Wallet(wallet)) = self.model.subject(&key) else {
            return Ok(b"{\"data\":[],\"paginationToken\":null}".to_vec());
        };
        let count = wallet.count_at(high);
        let numbers: Box<dyn Iterator<Item = u64>> =
            if ascending { Box::new(0..count) } else { Box::new((0..count).rev()) };
        let fits = |entry: &ListEntry| {
            let place = (entry.spot.height, entry.spot.index);
            let behind =
                from.is_none_or(|from| if ascending { place > from } else { place < from });
            let named = with_accounts || self.model.names_wallet(&wallet, entry.number);
            behind && named && !(succeeded && entry.failed)
        };
        let found = numbers
            .filter_map(|number| self.model.entry(&wallet, number))
            .skip_while(|entry| ascending && entry.spot.height < low)
            .take_while(|entry| entry.spot.height >= low)
            .filter(fits);
        let mut page: Vec<ListEntry> = found.take(limit + 1).collect();
        let more = page.len() > limit;
        page.truncate(limit);
        let more = !self.answer_faults.end_early(&mut page) && more;
        let more = !self.ends_falsely(&mut page) && more;
        for entry in page.iter().filter(|_| full) {
            Self::check_version(&self.model.spec(&wallet, entry.number, entry.spot), options)?;
        }
        Ok(write_page(&page, more, |out, entry| {
            if full {
                self.model.write_transaction(out, &wallet, entry.number, true);
            } else {
                self.write_row(out, entry);
            }
        }))
    }

    /// Ends a page, at its first slots or before them. What it lacks in the middle is believed where
    /// balances do not show it (docs/reliability.md).
    fn ends_falsely(&self, page: &mut Vec<ListEntry>) -> bool {
        let lie = Lie { hole: None, ..self.answer_faults.lie };
        lie.reduce(page, |entry| entry.spot.height);
        if lie.hollow.is_some() {
            page.clear();
        }
        lie.of_list()
    }

    fn write_row(&self, out: &mut Vec<u8>, entry: &ListEntry) {
        self.write_entry(out, entry, Some(entry.spot.index));
    }
}

impl SolanaModel {
    /// Entries of a subject with numbers below `below`, newest first. The caller stops.
    pub(super) fn entries(
        &self,
        subject: &ListSubject,
        below: u64,
    ) -> impl Iterator<Item = ListEntry> + use<> {
        let (model, subject) = (self.clone(), subject.clone());
        let mut below = below;
        std::iter::from_fn(move || {
            let number = model.before(&subject, below)?;
            below = number;
            model.entry(subject.wallet(), number)
        })
    }

    pub(super) fn entry(&self, wallet: &WalletHistory, number: u64) -> Option<ListEntry> {
        let spot = wallet.spot(number)?;
        let signature = self.signature(&wallet.address, number, self.fork(spot.height));
        let failed = matches!(wallet.class(number), Class::Failed(_));
        Some(ListEntry { signature, number, spot, failed })
    }

    /// The newest transaction below a number that names the subject.
    fn before(&self, subject: &ListSubject, below: u64) -> Option<u64> {
        match subject {
            ListSubject::Wallet(wallet) => {
                (0..below).rev().find(|number| self.names_wallet(wallet, *number))
            }
            ListSubject::TokenAccount(wallet, token) => self.before_of(wallet, *token, below),
        }
    }

    /// Whether the wallet's own address is among the keys of the transaction.
    pub(super) fn names_wallet(&self, wallet: &WalletHistory, number: u64) -> bool {
        match wallet.class(number) {
            Class::Funding | Class::Failed(_) => true,
            // Only trades against USDC can be a keeper's settlement.
            Class::Trade(trade) if !self.script(wallet).is_usdc(trade) => true,
            Class::Trade(_) => {
                let Some(spot) = wallet.spot(number) else { return false };
                let content = self.spec(wallet, number, spot).content;
                let Content::Trade(trade) = content else { return true };
                let opens = trade.usdc.is_some_and(|usdc| usdc.before.is_none());
                trade.kind != TradeKind::Settlement || opens || trade.before.is_none()
            }
            Class::Noise(n) => {
                let (kind, n) = history::noise(n);
                kind != NoiseKind::Spam || noise::spam_token(n, wallet.plan.spam_accounts).1 == 0
            }
        }
    }

    fn before_of(&self, wallet: &Arc<WalletHistory>, token: DemoToken, below: u64) -> Option<u64> {
        let noise = |kind, wanted: &dyn Fn(u64) -> bool| {
            let (count, first) = (wallet.noises_below(below), noise_number(kind, 0));
            let rounds = (count + 7).saturating_sub(first) / 8;
            let n = (0..rounds).rev().find(|n| wanted(*n))?;
            wallet.number_of_noise(noise_number(kind, n))
        };
        match token {
            DemoToken::Coin(_) | DemoToken::Created(..) => {
                let (lane, first, period) = self.script(wallet).cycles_of(token)?;
                let trades = wallet.trades_below(below);
                // The newest cycle of the coin that has begun, then its newest step below.
                let begun = trades.checked_sub(lane + 1)? / LANES / STEPS;
                let cycle = begun - begun.checked_sub(first)? % period;
                let trades_of = (0..STEPS).map(|step| (cycle * STEPS + step) * LANES + lane);
                let newest = trades_of.rev().find(|trade| *trade < trades);
                newest.map(|trade| wallet.number_of_trade(trade))
            }
            DemoToken::Usdc => {
                let script = self.script(wallet);
                let trades = wallet.trades_below(below);
                let span = trades.saturating_sub(2 * LANES * STEPS)..trades;
                let trade = span.rev().find(|trade| script.is_usdc(*trade))?;
                Some(wallet.number_of_trade(trade))
            }
            DemoToken::Spam(number) => noise(NoiseKind::Spam, &|n| {
                noise::spam_token(n, wallet.plan.spam_accounts).0 == DemoToken::Spam(number)
            }),
            DemoToken::Position => noise(NoiseKind::Liquidity, &|_| true),
            DemoToken::PositionShare => noise(NoiseKind::Liquidity, &|n| matches!(n % 4, 1 | 2)),
            DemoToken::Idle => noise(NoiseKind::TokenAccount, &|_| true),
            DemoToken::WrappedSol => (0..below).rev().find(|number| self.wraps(wallet, *number)),
        }
    }

    fn wraps(&self, wallet: &WalletHistory, number: u64) -> bool {
        let Some(spot) = wallet.spot(number) else { return false };
        let spec = self.spec(wallet, number, spot);
        if matches!(wallet.class(number), Class::Funding | Class::Failed(_)) {
            return false;
        }
        let key = maker::token_account(self.seed(), wallet.tag, DemoToken::WrappedSol);
        let tx = build(self.script(wallet), &spec, 0);
        tx.accounts.iter().any(|account| account.key == key)
    }
}

impl ListSubject {
    pub(super) fn wallet(&self) -> &WalletHistory {
        match self {
            Self::Wallet(wallet) | Self::TokenAccount(wallet, _) => wallet,
        }
    }
}

/// Transactions of a block that name such an account.
const OF_A_BLOCK: u32 = 3;

/// Whether transactions of other users name an account in every block: the mint of wrapped SOL.
fn is_busy(key: &ModelKey) -> bool {
    KnownAccount::of(key) == Some(KnownAccount::WrappedSol)
}

/// A page with a token for the next one, if there are more.
fn write_page(
    page: &[ListEntry],
    more: bool,
    write: impl FnMut(&mut Vec<u8>, &ListEntry),
) -> Vec<u8> {
    let mut out = b"{".to_vec();
    wire::list(member(&mut out, "data"), page, write);
    let next = page.last().filter(|_| more).map(|last| last.spot);
    let token = next.map(|spot| format!("\"{}:{}\"", spot.height, spot.index));
    let token = token.as_deref().unwrap_or("null");
    member(&mut out, "paginationToken").extend_from_slice(token.as_bytes());
    out.push(b'}');
    out
}

/// `slot:position`.
fn token_position(text: &str) -> Result<(Height, u32), DemoError> {
    let parts = text.split_once(':');
    parts
        .and_then(|(slot, index)| Some((slot.parse().ok()?, index.parse().ok()?)))
        .ok_or_else(|| DemoError::invalid("Invalid paginationToken"))
}
