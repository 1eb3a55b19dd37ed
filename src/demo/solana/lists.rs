//! The transactions that name an address, newest first.

use std::sync::Arc;

use super::TradeKind;
use super::history::{self, Content, LANES, NoiseKind, STEPS, WalletHistory, noise_number};
use super::keys::{KnownAccount, ModelKey};
use super::maker;
use super::model::{ListEntry, ListSubject, SolanaModel, build};
use super::tokens::DemoToken;
use super::{noise, slots};
use crate::demo::timeline::{Class, Spot};
use crate::domain::Height;

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
                self.before_in_cycles(wallet, token, below)
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

    fn before_in_cycles(
        &self,
        wallet: &WalletHistory,
        token: DemoToken,
        below: u64,
    ) -> Option<u64> {
        let (lane, first, period) = self.script(wallet).cycles_of(token)?;
        let trades = wallet.trades_below(below);
        // The newest cycle of the coin that has begun, then its newest step below the bound.
        let begun = trades.checked_sub(lane + 1)? / LANES / STEPS;
        let cycle = begun - begun.checked_sub(first)? % period;
        (0..STEPS)
            .rev()
            .map(|step| (cycle * STEPS + step) * LANES + lane)
            .find(|trade| *trade < trades)
            .map(|trade| wallet.number_of_trade(trade))
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
pub(super) fn is_busy(key: &ModelKey) -> bool {
    KnownAccount::of(key) == Some(KnownAccount::WrappedSol)
}

/// The entries of that account below a place, newest first.
pub(super) fn busy_entries(
    model: &SolanaModel,
    (top, below): (Height, u32),
) -> impl Iterator<Item = ListEntry> {
    let blocks = (0..=top).rev().filter(|slot| slots::has_block(*slot));
    blocks.flat_map(move |slot| {
        let most = if slot == top { below.min(OF_A_BLOCK) } else { OF_A_BLOCK };
        (0..most).rev().map(move |index| ListEntry {
            signature: model.filler(slot, index),
            number: 0,
            spot: Spot { height: slot, index },
            failed: false,
        })
    })
}
