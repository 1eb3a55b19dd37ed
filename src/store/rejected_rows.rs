//! Skips rows that a filter rejects by their stored bytes: no key, amount or name is decoded.

use std::sync::Arc;

use crate::domain::{Filter, Height, Position, TradeKey, Wallet};

use super::file_view::{FileView, row_key};
use super::key::{height_of, id_of, time_of};
use super::reader_cache::Slots;
use super::trade_codec::head_of;
use super::{LIMITS, Result, WalletId};

/// The token of a filter, by its stored number.
enum TokenTest {
    Any,
    Number(u32),
    /// No row has the token.
    NotStored,
}

/// A filter with stored numbers.
struct Test<'a> {
    filter: &'a Filter,
    token: TokenTest,
    /// Whether a venue matches, by its stored number.
    venues: Slots<bool>,
}

impl FileView {
    /// Skips up to `limit` rows behind a position that certainly do not match, and returns the last
    /// of them and their number. Stops at a row that may match, at one below the floor and at one
    /// that is too old for the filter.
    pub(super) fn pass_over(
        &self,
        id: WalletId,
        (after, floor): (Position, Height),
        filter: &Filter,
        limit: usize,
    ) -> Result<Option<(TradeKey, usize)>> {
        let wallet = self.known_wallet(id)?;
        let mut test = self.test(&wallet, filter)?;
        let mut behind = self.behind(id, after)?;
        let (mut last, mut passed) = (None, 0);
        while passed < limit
            && let Some((key, value)) = behind.next()?
        {
            let is_below = floor > 0 && height_of(key.value()).is_some_and(|height| height < floor);
            // The reader ends at a row that is too old: nothing below it matches.
            let is_old = |from| time_of(key.value()).is_some_and(|time| time < from);
            if id_of(key.value()) != Some(id)
                || is_below
                || filter.from.is_some_and(is_old)
                || !self.fails(&mut test, value.value())?
            {
                break;
            }
            last = Some(key);
            passed += 1;
        }
        let Some(last) = last else { return Ok(None) };
        Ok(Some((row_key(last.value(), wallet.address.family())?, passed)))
    }

    fn test<'a>(&self, wallet: &Wallet, filter: &'a Filter) -> Result<Test<'a>> {
        let token = match &filter.token {
            Some(mint) => self
                .token_number(wallet.chain, mint)?
                .map_or(TokenTest::NotStored, TokenTest::Number),
            None => TokenTest::Any,
        };
        Ok(Test { filter, token, venues: Slots::new(LIMITS.slice_names) })
    }

    /// Whether a row fails the filter by its first bytes.
    #[inline]
    fn fails(&self, test: &mut Test<'_>, value: &[u8]) -> Result<bool> {
        let Some((side, token, venue)) = head_of(value) else { return Ok(false) };
        let Test { filter, token: wanted, venues } = test;
        let is_other = match wanted {
            TokenTest::Any => false,
            TokenTest::Number(wanted) => *wanted != token,
            TokenTest::NotStored => true,
        };
        if is_other || filter.side.is_some_and(|wanted| wanted != side) {
            return Ok(true);
        }
        if filter.venue.is_none() {
            return Ok(false);
        }
        let matches = |name: Arc<str>| filter.matches_venue(&name);
        Ok(!venues.get_or(venue, || self.shared_venue(venue).map(matches))?)
    }
}
