//! Transactions that are not trades: transfers, spam, liquidity, staking, orders, failures.

use super::history::NoiseKind;
use super::keys::{KnownAccount, Role, account};
use super::maker::Maker;
use super::pools::BUY;
use super::tokens::DemoToken;
use super::tx::Acc;
use super::{SOL, le};

/// Units of each spam transfer and of a liquidity position.
pub(super) const SPAM_UNITS: u64 = 777_000_000;
pub(super) const POSITION_UNITS: u64 = 250_000_000;
pub(super) const SHARE_UNITS: u64 = 90_000_000_000;
const DEPOSIT: [u8; 8] = [0xf2, 0x23, 0xc6, 0x89, 0x52, 0xe1, 0xf2, 0xb6];
const WITHDRAW: [u8; 8] = [0xb7, 0x12, 0x46, 0x9c, 0x94, 0x6d, 0xa1, 0x22];
const INITIALIZE_ORDER: [u8; 8] = [0x85, 0x6e, 0x4a, 0xaf, 0x70, 0x9f, 0xf5, 0x9f];
const CREATE_ORDER_EVENT: [u8; 8] = [0x31, 0x8e, 0x48, 0xa6, 0xe6, 0x1d, 0x54, 0x54];
/// A program's error code for slippage.
const TOO_MUCH_SOL: u32 = 6_002;
/// How a failed swap fails: the instruction after the compute budget, and the code.
pub(super) const FAILURE: (u8, u32) = (2, TOO_MUCH_SOL);

pub(super) fn make(maker: &mut Maker<'_>, kind: NoiseKind, n: u64) {
    match kind {
        NoiseKind::SolIn => {
            let lamports = maker.dice.range(SOL / 100, 20 * SOL);
            receive(maker, lamports, 3 * SOL);
        }
        NoiseKind::Dust => receive(maker, 1, 3 * SOL),
        NoiseKind::SolOut => send(maker),
        NoiseKind::Spam => spam(maker, n),
        NoiseKind::TokenAccount => token_account(maker, n),
        NoiseKind::Liquidity => liquidity(maker, n),
        NoiseKind::Stake => stake(maker),
        NoiseKind::LimitOpen => limit_open(maker),
    }
}

pub(super) fn funding(maker: &mut Maker<'_>) {
    let lamports = maker.dice.range(30 * SOL, 60 * SOL);
    receive(maker, lamports, 0);
}

fn receive(maker: &mut Maker<'_>, lamports: u64, before: u64) {
    let key = maker.own_key(Role::Stranger, 0);
    let sender = maker.tx.signer(key, 2_000 * SOL);
    let address = maker.address();
    let wallet = maker.tx.writable(address, before);
    maker.tx.transfer(sender, wallet, lamports);
    maker.tx.pay_fee(0);
}

fn send(maker: &mut Maker<'_>) {
    let wallet = maker.wallet();
    let receiver = maker.stranger(0);
    let lamports = maker.dice.range(SOL / 50, 4 * SOL);
    maker.tx.budget(1_000);
    maker.tx.transfer(wallet, receiver, lamports);
    maker.tx.pay_fee(200);
}

/// The first one opens the wallet's account; later ones name that account only.
fn spam(maker: &mut Maker<'_>, n: u64) {
    let (token, round) = spam_token(n, maker.script.wallet.plan.spam_accounts);
    let owner = account(maker.script.seed, Role::Stranger, [u64::from(token.code()), 0]);
    let sender = maker.tx.signer(owner, 50 * SOL);
    let source = account(maker.script.seed, Role::KeeperAccount, [u64::from(token.code()), 1]);
    let source = maker.tx.token_account(source, owner, token, Some(SPAM_UNITS * 1_000_000));
    let held = (round > 0).then(|| SPAM_UNITS.saturating_mul(round));
    let target = maker.token(token, held);
    if round == 0 {
        let address = maker.address();
        let wallet = maker.tx.account(address, 3 * SOL);
        maker.tx.create_associated(sender, target, wallet);
    }
    maker.tx.send(source, target, sender, SPAM_UNITS, true);
    maker.tx.pay_fee(0);
}

/// Token of the n-th spam, and how often it came before.
pub(super) fn spam_token(n: u64, accounts: u32) -> (DemoToken, u64) {
    let accounts = u64::from(accounts.max(1));
    (DemoToken::Spam(u32::try_from(n % accounts).unwrap_or(0)), n / accounts)
}

/// Opens an empty token account; the next time closes it.
fn token_account(maker: &mut Maker<'_>, n: u64) {
    let wallet = maker.wallet();
    if n.is_multiple_of(2) {
        let account = maker.token(DemoToken::Idle, None);
        maker.tx.create_associated(wallet, account, wallet);
    } else {
        let account = maker.token(DemoToken::Idle, Some(0));
        maker.tx.close(account, wallet, wallet);
    }
    maker.tx.pay_fee(0);
}

/// A round of four: the token arrives, is added to a pool, is removed again, and leaves.
fn liquidity(maker: &mut Maker<'_>, n: u64) {
    let first = n < 2;
    match n % 4 {
        0 => move_position(maker, first, true),
        1 => pool_position(maker, first, true),
        2 => pool_position(maker, false, false),
        _ => move_position(maker, false, false),
    }
}

fn move_position(maker: &mut Maker<'_>, opens: bool, comes: bool) {
    let wallet = maker.wallet();
    let held = if comes { 0 } else { POSITION_UNITS };
    let own = maker.token(DemoToken::Position, (!opens).then_some(held));
    let other = maker.own_key(Role::Stranger, 1);
    let sender = maker.tx.signer(other, SOL);
    let key = maker.own_key(Role::KeeperAccount, 1);
    let away = maker.tx.token_account(key, other, DemoToken::Position, Some(POSITION_UNITS * 9));
    if opens {
        maker.tx.create_associated(wallet, own, wallet);
    }
    let (from, to, authority) = if comes { (away, own, sender) } else { (own, away, wallet) };
    maker.tx.send(from, to, authority, POSITION_UNITS, true);
    maker.tx.pay_fee(0);
}

/// Deposit into or withdrawal from a Raydium CPMM pool of the token with SOL.
fn pool_position(maker: &mut Maker<'_>, opens: bool, deposit: bool) {
    let seed = maker.script.seed;
    let wallet = maker.wallet();
    maker.tx.budget(10_000);
    let lamports = 2 * SOL;
    let (held, shares) = if deposit { (POSITION_UNITS, 0) } else { (0, SHARE_UNITS) };
    let own = maker.token(DemoToken::Position, Some(held));
    let share = maker.token(DemoToken::PositionShare, (!opens).then_some(shares));
    if opens {
        maker.tx.create_associated(wallet, share, wallet);
    }
    let wrapped = maker.wrap(wallet, if deposit { lamports } else { 0 });
    let tx = &mut maker.tx;
    let authority_key = account(seed, Role::PoolAuthority, [5, 0]);
    let authority = tx.account(authority_key, SOL);
    let pool = tx.writable(account(seed, Role::Pool, [5, 0]), 5_324_400);
    let vault = account(seed, Role::VaultBase, [5, 0]);
    let vault =
        tx.token_account(vault, authority_key, DemoToken::Position, Some(POSITION_UNITS * 800));
    let sol_vault = account(seed, Role::VaultQuote, [5, 0]);
    let sol_vault =
        tx.token_account(sol_vault, authority_key, DemoToken::WrappedSol, Some(lamports * 800));
    let (token, newer) = (tx.known(KnownAccount::Token), tx.known(KnownAccount::Token2022));
    let (mint, quote) = (tx.mint(DemoToken::Position), tx.mint(DemoToken::WrappedSol));
    let share_mint = tx.mint(DemoToken::PositionShare);
    let accounts: [Acc; 13] = [
        wallet, authority, pool, share, own, wrapped, vault, sol_vault, token, newer, mint, quote,
        share_mint,
    ];
    let (tag, name) = if deposit { (DEPOSIT, "Deposit") } else { (WITHDRAW, "Withdraw") };
    let amounts = le([SHARE_UNITS, POSITION_UNITS, lamports]);
    tx.enter(KnownAccount::RaydiumCpmm, &accounts, &[&tag[..], &amounts].concat(), name);
    if deposit {
        tx.send(own, vault, wallet, POSITION_UNITS, true);
        tx.send(wrapped, sol_vault, wallet, lamports, true);
        tx.mint_to(share_mint, share, authority, SHARE_UNITS);
    } else {
        tx.burn(share, share_mint, wallet, SHARE_UNITS);
        tx.send(vault, own, authority, POSITION_UNITS, true);
        tx.send(sol_vault, wrapped, authority, lamports, true);
    }
    tx.leave(53_000);
    tx.close(wrapped, wallet, wallet);
    maker.pay_with_priority();
}

fn stake(maker: &mut Maker<'_>) {
    let wallet = maker.wallet();
    let key = maker.own_key(Role::StakeAccount, 0);
    let validator = account(maker.script.seed, Role::Validator, [maker.dice.range(0, 9), 0]);
    let lamports = maker.dice.range(SOL, 5 * SOL);
    let tx = &mut maker.tx;
    let stake = tx.writable(key, 0);
    tx.create_with_seed([wallet, stake], [lamports + 2_282_880, 200], KnownAccount::Stake);
    let rent = tx.known(KnownAccount::Rent);
    let owner = tx.key(wallet);
    let data = [&[0; 4][..], &owner, &owner, &[0; 48]].concat();
    tx.call(KnownAccount::Stake, &[stake, rent], &data, "", 0);
    let vote = tx.account(validator, 8_675_185_727);
    let (clock, past) = (tx.known(KnownAccount::Clock), tx.known(KnownAccount::StakeHistory));
    let config = tx.known(KnownAccount::StakeConfig);
    let accounts = [stake, vote, clock, past, config, wallet];
    tx.call(KnownAccount::Stake, &accounts, &[2, 0, 0, 0], "", 0);
    tx.pay_fee(0);
}

/// Places a limit order: SOL goes to its escrow, nothing comes back yet.
fn limit_open(maker: &mut Maker<'_>) {
    let wallet = maker.wallet();
    maker.tx.budget(5_000);
    let lamports = maker.dice.range(SOL / 5, 3 * SOL);
    let wrapped = maker.wrap(wallet, lamports);
    let (order_key, base_key) = (maker.own_key(Role::Order, 1), maker.own_key(Role::Signer, 1));
    let escrow_key = maker.own_key(Role::Escrow, 1);
    let tx = &mut maker.tx;
    let base = tx.signer(base_key, 0);
    let order = tx.writable(order_key, 0);
    let escrow = tx.token_account(escrow_key, order_key, DemoToken::WrappedSol, None);
    let (token, system) = (tx.known(KnownAccount::Token), tx.known(KnownAccount::System));
    let (give, get) = (tx.mint(DemoToken::WrappedSol), tx.mint(DemoToken::Usdc));
    let accounts = [base, wallet, order, escrow, wrapped, give, token, get, token, system];
    let want = lamports / 1000 * 200;
    let data = [&INITIALIZE_ORDER[..], &le([lamports, want]), &[0]].concat();
    tx.enter(KnownAccount::JupiterLimit, &accounts, &data, "InitializeOrder");
    tx.create_account([wallet, order], [3_083_280, 315], KnownAccount::JupiterLimit);
    let rent = DemoToken::WrappedSol.account_rent();
    tx.create_account([wallet, escrow], [rent, 165], KnownAccount::Token);
    tx.initialize(escrow, order);
    tx.send(wrapped, escrow, wallet, lamports, true);
    let mints = [DemoToken::WrappedSol.mint(), DemoToken::Usdc.mint()].concat();
    let keys = [order_key, tx.key(wallet)].concat();
    let sums = le([lamports, want]);
    tx.say_data(&[&CREATE_ORDER_EVENT[..], &keys, &mints, &sums, &[0]].concat());
    tx.leave(61_000);
    tx.close(wrapped, wallet, wallet);
    maker.pay_with_priority();
}

/// A buy with too low a slippage: only the fee moves.
pub(super) fn failed(maker: &mut Maker<'_>, n: u64) {
    let wallet = maker.wallet();
    maker.tx.budget(1_000_000);
    let seed = maker.script.seed;
    let coin = DemoToken::Coin(u32::try_from(n % 200).unwrap_or(0));
    let key = maker.own_key(Role::FailedAccount, 0);
    let tx = &mut maker.tx;
    let mint = tx.mint(coin);
    let number = [u64::from(coin.code()), 0];
    let state_key = account(seed, Role::Pool, number);
    let state = tx.writable(state_key, 85 * SOL);
    let vault = account(seed, Role::VaultBase, number);
    let vault = tx.token_account(vault, state_key, coin, Some(400_000_000_000_000));
    let own = tx.writable(key, 0);
    let (system, token) = (tx.known(KnownAccount::System), tx.known(coin.program()));
    let global = tx.account(account(seed, Role::GlobalState, [1, 0]), 454_657_808);
    let program = tx.known(KnownAccount::PumpFun);
    let accounts = [global, mint, state, vault, own, wallet, system, token, program];
    let data = [&BUY[..], &le([1_000_000, SOL])].concat();
    tx.enter(KnownAccount::PumpFun, &accounts, &data, "Buy");
    tx.fail(TOO_MUCH_SOL);
    maker.pay_with_priority();
}
