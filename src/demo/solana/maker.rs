//! A transaction under construction, and the parts that several kinds share.

use super::SOL;
use super::history::{Script, Spec, TradeSpec};
use super::keys::{KnownAccount, ModelKey, Role, account};
use super::pools::{self, Hop, Party, PoolProgram};
use super::tokens::{self, DemoToken};
use super::tx::{Acc, Tx};
use crate::demo::mix;
use crate::domain::Side;

const ACCOUNT_TAG: u64 = u64::from_le_bytes(*b"demoatas");

/// Address of a wallet's own account of a token.
pub(super) fn token_account(seed: u64, wallet_tag: u64, token: DemoToken) -> ModelKey {
    mix::seal(seed ^ ACCOUNT_TAG, &tokens::body(token.code(), wallet_tag))
}

/// Wallet tag and token of a token account of the model.
pub(super) fn open_token_account(seed: u64, key: &ModelKey) -> Option<(u64, DemoToken)> {
    let (code, tag) = tokens::parts(&mix::open(seed ^ ACCOUNT_TAG, key)?)?;
    Some((tag, DemoToken::from_code(code, tag)?))
}

/// A transaction under construction, with its wallet.
pub(super) struct Maker<'a> {
    pub(super) script: Script<'a>,
    pub(super) spec: &'a Spec,
    pub(super) time: u64,
    pub(super) tx: Tx,
    pub(super) dice: mix::Dice,
}

impl Maker<'_> {
    pub(super) fn address(&self) -> ModelKey {
        self.script.wallet.address
    }

    /// An address that belongs to this transaction alone.
    pub(super) fn own_key(&self, role: Role, n: u64) -> ModelKey {
        let wallet = self.script.wallet.tag;
        let fork = u64::from(self.spec.fork);
        account(self.script.seed, role, [wallet, mix::hash(fork, &[self.spec.number, n])])
    }

    /// The wallet as the one that signs and pays.
    pub(super) fn wallet(&mut self) -> Acc {
        let lamports = 20 * SOL + self.dice.range(0, 30 * SOL);
        let address = self.address();
        self.tx.signer(address, lamports)
    }

    pub(super) fn stranger(&mut self, n: u64) -> Acc {
        let (key, lamports) = (self.own_key(Role::Stranger, n), self.dice.range(SOL, 900 * SOL));
        self.tx.writable(key, lamports)
    }

    pub(super) fn token(&mut self, token: DemoToken, amount: Option<u64>) -> Acc {
        let key = token_account(self.script.seed, self.script.wallet.tag, token);
        let owner = self.address();
        self.tx.token_account(key, owner, token, amount)
    }

    pub(super) fn pay_with_priority(&mut self) {
        let priority = self.dice.range(0, 300_000);
        self.tx.pay_fee(priority);
    }

    pub(super) fn bot_fee(&mut self, wallet: Acc, trade: &TradeSpec) {
        if trade.bot_fee > 0 {
            let receiver = account(self.script.seed, Role::BotFee, [self.dice.range(0, 5), 0]);
            let receiver = self.tx.writable(receiver, 40 * SOL);
            self.tx.transfer(wallet, receiver, trade.bot_fee);
        }
    }

    pub(super) fn tip(&mut self, wallet: Acc, trade: &TradeSpec) {
        if trade.tip > 0 {
            let others = [KnownAccount::JitoTip2, KnownAccount::JitoTip3];
            let known = self.dice.pick(KnownAccount::JitoTip1, &others);
            let receiver = self.tx.writable(known.key(), 3_906_617_008);
            self.tx.transfer(wallet, receiver, trade.tip);
        }
    }

    /// Wrapped SOL for one swap: `lamports` to spend, or none to receive.
    pub(super) fn wrap(&mut self, wallet: Acc, lamports: u64) -> Acc {
        let account = self.token(DemoToken::WrappedSol, None);
        self.tx.create_associated(wallet, account, wallet);
        if lamports > 0 {
            self.tx.transfer(wallet, account, lamports);
            self.tx.sync_native(account);
        }
        account
    }

    /// Wraps lamports through a temporary account with a seed, as Raydium's website did.
    fn wrap_with_seed(&mut self, wallet: Acc, lamports: u64) -> Acc {
        let key = self.own_key(Role::TemporaryAccount, 0);
        let owner = self.address();
        let account = self.tx.token_account(key, owner, DemoToken::WrappedSol, None);
        let rent = DemoToken::WrappedSol.account_rent();
        self.tx.create_with_seed([wallet, account], [rent + lamports, 165], KnownAccount::Token);
        self.tx.initialize(account, wallet);
        account
    }

    /// A direct swap against SOL in one pool.
    pub(super) fn direct(&mut self, wallet: Acc, coin: Acc, trade: &TradeSpec, venue: PoolProgram) {
        let (base, sol) = ((trade.token, trade.units), (DemoToken::WrappedSol, trade.gross));
        let buys = trade.side == Side::Buy;
        let spend = if buys { trade.gross } else { 0 };
        // Buyers wrap a little more than they spend; closing the account returns the rest.
        let wrapped = if venue == PoolProgram::RaydiumV4 {
            self.wrap_with_seed(wallet, spend)
        } else {
            self.wrap(wallet, spend + spend / 100)
        };
        let (give, get) = if buys { (sol, base) } else { (base, sol) };
        let (from, to) = if buys { (wrapped, coin) } else { (coin, wrapped) };
        let party = Party { authority: wallet, from, to };
        pools::swap(&mut self.tx, &Hop { venue, give, get }, party);
        self.tx.close(wrapped, wallet, wallet);
    }
}
