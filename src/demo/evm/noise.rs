//! Transactions that are not trades: transfers, approvals, wraps, liquidity, spam, failures.

use super::coins::Coin;
use super::places::Made;
use super::pools::SWAP_V2;
use super::script::{DUST, NoiseKind, Script};
use super::tx::{Arg, Stage, TRANSFER, Tx};
use crate::demo::mix;
use crate::domain::Account;

/// Base units of a spam token that look like a large value.
const SPAM_UNITS: u128 = 9_999_000_000_000_000_000_000;

struct Scene<'a> {
    script: Script<'a>,
    wallet: Account,
    round: u64,
}

pub(super) fn funding(script: Script<'_>, amount: u128) -> Tx {
    let exchange = script.places.made(Made::Exchange, script.wallet.tag % 20);
    let stage = Stage::new(script.places, exchange, script.wallet.address, amount);
    stage.end(script.noise_gas(NoiseKind::NativeIn))
}

pub(super) fn failed(script: Script<'_>, n: u64) -> Tx {
    let places = script.places;
    let router = places.v2.unwrap_or(places.v3).router;
    let value = script.noise_amount(NoiseKind::NativeIn, n) / 7;
    let mut stage = Stage::new(places, script.wallet.address, router, value);
    let signature = "swapExactETHForTokens(uint256,address[],address,uint256)";
    stage.input(signature, &[Arg::Int(1), Arg::Int(128), Arg::Of(script.wallet.address)]);
    stage.wrap(value);
    stage.fail(script.failed_gas(n))
}

pub(super) fn build(script: Script<'_>, kind: NoiseKind, round: u64) -> Tx {
    let (wallet, amount) = (script.wallet.address, script.noise_amount(kind, round));
    let scene = Scene { script, wallet, round };
    let made = |what| scene.made(what);
    let stage = match kind {
        NoiseKind::NativeIn => scene.stage(made(Made::Exchange), wallet, amount),
        NoiseKind::Dust => scene.stage(made(Made::Spammer), wallet, DUST),
        NoiseKind::NativeOut => scene.stage(wallet, made(Made::Exchange), amount),
        NoiseKind::Approve => scene.approve(),
        NoiseKind::SpamToken => scene.spam_token(),
        NoiseKind::ZeroOut => scene.zero(true),
        NoiseKind::ZeroIn => scene.zero(false),
        NoiseKind::TokenIn => scene.token(made(Made::Stranger), wallet),
        NoiseKind::TokenOut => scene.token(wallet, made(Made::Stranger)),
        NoiseKind::SpamSwap => scene.spam_swap(),
        NoiseKind::Wrap => scene.wrap(amount),
        NoiseKind::Unwrap => scene.unwrap(amount),
        NoiseKind::AddLiquidity => scene.liquidity(true, amount),
        NoiseKind::RemoveLiquidity => scene.liquidity(false, amount),
        NoiseKind::SpamNft => scene.spam_nft(),
        NoiseKind::SpamMulti => scene.spam_multi(),
    };
    stage.end(script.noise_gas(kind))
}

impl<'a> Scene<'a> {
    fn chance(&self, purpose: u64) -> u64 {
        mix::hash(self.script.places.seed, &[self.script.wallet.tag, self.round, purpose])
    }

    fn made(&self, what: Made) -> Account {
        self.script.places.made(what, self.chance(20) % 40)
    }

    fn stage(&self, from: Account, to: Account, value: u128) -> Stage<'a> {
        Stage::new(self.script.places, from, to, value)
    }

    fn by_spammer(&self, to: Account) -> Stage<'a> {
        self.stage(self.made(Made::Spammer), to, 0)
    }

    /// A coin that the wallet holds between two noise transactions, and its amount.
    fn held(&self) -> (Account, u128) {
        let number = u32::try_from(self.chance(21) % 400).unwrap_or(0) + 1_000;
        let coin = Coin::Plain(number);
        let units = u128::from(1 + self.chance(22) % 900) * coin.per_milli(self.script.places);
        (coin.address(self.script.places), units)
    }

    fn approve(&self) -> Stage<'a> {
        let (coin, _) = self.held();
        let router = self.script.places.v3.router;
        let mut stage = self.stage(self.wallet, coin, 0);
        let all = Arg::Raw([0xff; 32]);
        stage.input("approve(address,uint256)", &[Arg::Of(router), all]);
        let ends = [self.wallet, router].map(Arg::Of);
        stage.log("Approval(address,address,uint256)", &ends, &[all]);
        stage
    }

    fn token(&self, from: Account, to: Account) -> Stage<'a> {
        let (coin, units) = self.held();
        let mut stage = self.stage(from, coin, 0);
        stage.input("transfer(address,uint256)", &[Arg::Of(to), Arg::Int(units)]);
        stage.log_transfer(from, to, units);
        stage
    }

    fn wrap(&self, amount: u128) -> Stage<'a> {
        let mut stage = self.stage(self.wallet, self.script.places.wrapped, amount);
        stage.input("deposit()", &[]);
        stage.log("Deposit(address,uint256)", &[Arg::Of(self.wallet)], &[Arg::Int(amount)]);
        stage
    }

    fn unwrap(&self, amount: u128) -> Stage<'a> {
        let mut stage = self.stage(self.wallet, self.script.places.wrapped, 0);
        stage.input("withdraw(uint256)", &[Arg::Int(amount)]);
        stage.pay(self.wallet, amount);
        stage.log("Withdrawal(address,uint256)", &[Arg::Of(self.wallet)], &[Arg::Int(amount)]);
        stage
    }

    fn liquidity(&self, adds: bool, native: u128) -> Stage<'a> {
        let places = self.script.places;
        let (coin, units) = self.held();
        let amm = places.v2.unwrap_or(places.v3);
        let pair = amm.pool(places.seed, [coin, places.wrapped], None);
        let share = native / 3;
        let (zero_address, router) = ([0; 20], amm.router);
        let mut stage = self.stage(self.wallet, router, if adds { native } else { 0 });
        let ordered = if coin < places.wrapped { [units, native] } else { [native, units] };
        let amounts = ordered.map(Arg::Int);
        if adds {
            let add = "addLiquidityETH(address,uint256,uint256,uint256,address,uint256)";
            stage.input(add, &[Arg::Of(coin)]);
            stage.pull(coin, self.wallet, pair, units);
            stage.wrap(native);
            stage.transfer(places.wrapped, pair, native);
            stage.enter(pair, 0, "mint(address)", &[Arg::Of(self.wallet)]);
            stage.log_transfer(zero_address, self.wallet, share);
            stage.log("Mint(address,uint256,uint256)", &[Arg::Of(router)], &amounts);
            stage.leave();
            return stage;
        }
        let remove = "removeLiquidityETH(address,uint256,uint256,uint256,address,uint256)";
        stage.input(remove, &[Arg::Of(coin)]);
        stage.pull(pair, self.wallet, pair, share);
        stage.enter(pair, 0, "burn(address)", &[Arg::Of(router)]);
        stage.log_transfer(pair, zero_address, share);
        stage.transfer(coin, router, units);
        stage.transfer(places.wrapped, router, native);
        let ends = [Arg::Of(router), Arg::Of(router)];
        stage.log("Burn(address,uint256,uint256,address)", &ends, &amounts);
        stage.leave();
        stage.transfer(coin, self.wallet, units);
        stage.unwrap(native);
        stage.pay(self.wallet, native);
        stage
    }

    fn spam(&self) -> Account {
        let number = u32::try_from(self.chance(23) % 500).unwrap_or(0);
        Coin::Spam(number).address(self.script.places)
    }

    fn spam_token(&self) -> Stage<'a> {
        let mut stage = self.by_spammer(self.made(Made::SpamContract));
        stage.input("airdrop(address[],uint256)", &[Arg::Int(64), Arg::Int(SPAM_UNITS)]);
        let places = self.script.places;
        let strangers = (0..3).map(|n| places.made(Made::Stranger, self.chance(24 + n)));
        for to in strangers.chain([self.wallet]) {
            stage.transfer(self.spam(), to, SPAM_UNITS);
        }
        stage
    }

    /// A transfer of nothing, which any account may make for any other, from or to a lookalike.
    fn zero(&self, out: bool) -> Stage<'a> {
        let dollar = self.script.places.dollar.token;
        let mut stage = self.by_spammer(self.made(Made::SpamContract));
        stage.input("fakeTransfer(address[])", &[Arg::Int(32)]);
        let lookalike = self.script.places.made(Made::Stranger, self.chance(28));
        let (from, to) = if out { (self.wallet, lookalike) } else { (lookalike, self.wallet) };
        stage.pull(dollar, from, to, 0);
        stage
    }

    /// A fake swap: a contract of the spammer emits a pair's event.
    fn spam_swap(&self) -> Stage<'a> {
        let contract = self.made(Made::SpamContract);
        let mut stage = self.by_spammer(contract);
        stage.input("swap(uint256)", &[Arg::Int(1)]);
        stage.transfer(self.spam(), self.wallet, SPAM_UNITS);
        let ends = [contract, self.wallet].map(Arg::Of);
        stage.log(SWAP_V2, &ends, &[1_000, 0, 0, SPAM_UNITS].map(Arg::Int));
        stage
    }

    fn spam_mint(&self) -> Stage<'a> {
        let mut stage = self.by_spammer(self.made(Made::Collection));
        stage.input("mint(address[])", &[Arg::Int(32)]);
        stage
    }

    fn spam_nft(&self) -> Stage<'a> {
        let mut stage = self.spam_mint();
        let piece = Arg::Int(u128::from(self.chance(29) % 100_000));
        let ends = [Arg::Of([0; 20]), Arg::Of(self.wallet), piece];
        stage.log(TRANSFER, &ends, &[]);
        stage
    }

    fn spam_multi(&self) -> Stage<'a> {
        let mut stage = self.spam_mint();
        let ends = [self.made(Made::Spammer), [0; 20], self.wallet].map(Arg::Of);
        let piece = [Arg::Int(u128::from(self.chance(30) % 100)), Arg::Int(1)];
        stage.log("TransferSingle(address,address,address,uint256,uint256)", &ends, &piece);
        stage
    }
}
