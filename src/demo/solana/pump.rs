//! Pump.fun: the bonding curve, coin creation, and `PumpSwap`.

use crate::domain::Side;

use super::history::TradeSpec;
use super::keys::{KnownAccount, Role, account};
use super::maker::Maker;
use super::pools::{self, BUY, PoolProgram, PoolState, SELL};
use super::tokens::DemoToken;
use super::tx::{Acc, Tx};
use super::{COIN_URI, borsh_text, le};

const CREATE_V2: [u8; 8] = [0xd6, 0x90, 0x4c, 0xec, 0x5f, 0x8b, 0x31, 0xb4];
const CREATE_EVENT: [u8; 8] = [0x1b, 0x72, 0xa9, 0x4d, 0xde, 0xeb, 0x63, 0x76];
const TRADE_EVENT: [u8; 8] = [0xbd, 0xdb, 0x7f, 0xd3, 0x4e, 0xe6, 0x61, 0xee];
const BUY_EVENT: [u8; 8] = [0x67, 0xf4, 0x52, 0x1f, 0x2c, 0xf5, 0x77, 0x77];
const SELL_EVENT: [u8; 8] = [0x3e, 0x2f, 0x37, 0x0a, 0xa5, 0x03, 0xdc, 0x2a];
const GET_FEES: [u8; 8] = [0x9a, 0xed, 0x8a, 0x5c, 0xa2, 0x02, 0xa2, 0xbb];

/// Rents in lamports of the accounts that a creation opens.
const MINT_RENT: u64 = 3_487_440;
const CURVE_RENT: u64 = 2_046_240;
/// A new curve holds the whole supply.
const CURVE_SUPPLY: u64 = 1_000_000_000_000_000;

#[derive(Clone, Copy)]
struct Curve {
    state: Acc,
    vault: Acc,
    mint: Acc,
    creator_vault: Acc,
    fee_receiver: Acc,
    global: Acc,
    events: Acc,
}

impl Curve {
    fn open(maker: &mut Maker<'_>, token: DemoToken, held: Option<u64>) -> Self {
        let seed = maker.script.seed;
        let number = [u64::from(token.code()), token.owner_tag()];
        let tx = &mut maker.tx;
        let state_key = account(seed, Role::Pool, number);
        let lamports = if held.is_some() { 85_000_000_000 } else { 0 };
        let state = tx.writable(state_key, lamports);
        let vault_key = account(seed, Role::VaultBase, number);
        let vault = tx.token_account(vault_key, state_key, token, held);
        Self {
            state,
            vault,
            mint: tx.mint(token),
            creator_vault: tx.writable(account(seed, Role::CreatorVault, number), 11_066_909),
            fee_receiver: tx.writable(account(seed, Role::FeeReceiver, [1, 0]), 16_116_612_543_359),
            global: tx.account(account(seed, Role::GlobalState, [1, 0]), 454_657_808),
            events: tx.account(account(seed, Role::EventAuthority, [1, 0]), 168_186_849),
        }
    }
}

/// `create_v2` with its inner calls; returns the wallet's new account of the coin.
pub(super) fn create(maker: &mut Maker<'_>, wallet: Acc, trade: &TradeSpec) -> Acc {
    let token = trade.token;
    let (mint_key, symbol) = (token.mint(), token.symbol());
    let mint = maker.tx.signer(mint_key, 0);
    let curve = Curve::open(maker, token, None);
    let tx = &mut maker.tx;
    let (system, coins) = (tx.known(KnownAccount::System), tx.known(KnownAccount::Token2022));
    let associated = tx.known(KnownAccount::AssociatedToken);
    let program = tx.known(KnownAccount::PumpFun);
    let owner = tx.key(wallet);
    let names = [symbol.as_str(), &symbol, COIN_URI].map(borsh_text).concat();
    let data = [&CREATE_V2[..], &names, &owner, &[0]].concat();
    let first = [mint, curve.global, curve.state, curve.vault, curve.global, wallet];
    let accounts = [&first[..], &[system, coins, associated, curve.events, program]].concat();
    tx.enter(KnownAccount::PumpFun, &accounts, &data, "CreateV2");
    tx.create_account([wallet, mint], [MINT_RENT, 234], KnownAccount::Token2022);
    let pointer = [&[39, 0][..], &[0; 32], &mint_key].concat();
    tx.call(KnownAccount::Token2022, &[mint], &pointer, "", 1_331);
    let init = [&[20, 6][..], &tx.key(curve.global), &[0]].concat();
    tx.call(KnownAccount::Token2022, &[mint], &init, "InitializeMint2", 2_094);
    tx.create_account([wallet, curve.state], [CURVE_RENT, 166], KnownAccount::PumpFun);
    tx.create_associated(wallet, curve.vault, curve.state);
    tx.mint_to(mint, curve.vault, curve.global, CURVE_SUPPLY);
    let state = tx.key(curve.state);
    let event = [&CREATE_EVENT[..], &names, &mint_key, &state, &owner, &owner].concat();
    tx.event(KnownAccount::PumpFun, curve.events, &event);
    tx.leave(98_000);
    let coin = maker.token(token, None);
    maker.tx.create_associated(wallet, coin, wallet);
    coin
}

pub(super) fn curve(maker: &mut Maker<'_>, wallet: Acc, coin: Acc, trade: &TradeSpec) {
    let held = trade.units.saturating_mul(20).saturating_add(CURVE_SUPPLY / 4);
    let c = Curve::open(maker, trade.token, Some(held));
    let (buys, tag) = (trade.side == Side::Buy, maker.script.wallet.tag);
    let (tx, fee) = (&mut maker.tx, pools::pump_fees(trade.gross));
    let (system, coins) = (tx.known(KnownAccount::System), tx.known(trade.token.program()));
    let (program, fees) = (tx.known(KnownAccount::PumpFun), tx.known(KnownAccount::PumpFees));
    let config = tx.account(account(tx.seed, Role::FeeConfig, [1, 0]), 20_373_807);
    let first = [c.global, c.fee_receiver, c.mint, c.state, c.vault, coin, wallet, system];
    if buys {
        let volume = tx.account(account(tx.seed, Role::Volume, [0, 0]), 11_066_909);
        let own_volume = tx.writable(account(tx.seed, Role::Volume, [1, tag]), 1_346_200);
        let then = [coins, c.creator_vault, c.events, program, volume, own_volume, config, fees];
        let data = [&BUY[..], &le([trade.units, trade.gross + trade.gross / 20]), &[1]].concat();
        tx.enter(KnownAccount::PumpFun, &[first, then].concat(), &data, "Buy");
        get_fees(tx, config, program, trade.gross);
        tx.send(c.vault, coin, c.state, trade.units, false);
        tx.transfer(wallet, c.state, trade.gross);
        tx.transfer(wallet, c.creator_vault, fee.creator);
        tx.transfer(wallet, c.fee_receiver, fee.protocol);
    } else {
        let then = [c.creator_vault, coins, c.events, program, config, fees];
        let data = [&SELL[..], &le([trade.units, trade.gross / 20 * 19])].concat();
        tx.enter(KnownAccount::PumpFun, &[&first[..], &then].concat(), &data, "Sell");
        get_fees(tx, config, program, trade.gross);
        tx.send(coin, c.vault, wallet, trade.units, false);
        // The program owns the curve and moves its lamports without a transfer.
        tx.move_lamports(c.state, wallet, trade.gross - fee.creator - fee.protocol);
        tx.move_lamports(c.state, c.creator_vault, fee.creator);
        tx.move_lamports(c.state, c.fee_receiver, fee.protocol);
    }
    let event = trade_event(maker, wallet, c, trade);
    maker.tx.say_data(&event);
    maker.tx.event(KnownAccount::PumpFun, c.events, &event);
    maker.tx.leave(75_105);
}

fn get_fees(tx: &mut Tx, config: Acc, program: Acc, lamports: u64) {
    let data = [&GET_FEES[..], &[1], &le([lamports]), &[0; 40]].concat();
    tx.call(KnownAccount::PumpFees, &[config, program], &data, "GetFees", 3_360);
}

fn trade_event(maker: &Maker<'_>, wallet: Acc, curve: Curve, trade: &TradeSpec) -> Vec<u8> {
    let (tx, fee) = (&maker.tx, pools::pump_fees(trade.gross));
    let buys = trade.side == Side::Buy;
    let (flag, name) = ([u8::from(buys)], borsh_text(if buys { "buy" } else { "sell" }));
    let (mint, user) = (tx.key(curve.mint), tx.key(wallet));
    let (receiver, creator) = (tx.key(curve.fee_receiver), tx.key(curve.creator_vault));
    let held = tx.amount(curve.vault);
    let (sol, coins) = (30_000_000_000 + trade.gross, held.saturating_add(73_000_000_000_000));
    let state = le([maker.time, sol, coins, trade.gross, held]);
    let sums = le([trade.gross, trade.units]);
    let head = [&TRADE_EVENT[..], &mint, &sums, &flag, &user, &state].concat();
    let (protocol, own) = (le([95, fee.protocol]), le([30, fee.creator]));
    let fees = [&receiver[..], &protocol, &creator, &own].concat();
    let end = le([trade.gross, maker.time]);
    [&head[..], &fees, &flag, &[0; 16], &end, &name, &[0]].concat()
}

/// The protocol's fee receiver and the coin's creator, each followed by its wrapped SOL account.
fn fee_accounts(tx: &mut Tx, pool: PoolState) -> [Acc; 4] {
    let seed = tx.seed;
    let receiver = tx.account(account(seed, Role::FeeReceiver, [2, 0]), 18_848_766_410_934);
    let creator = pool.part(tx, Role::CreatorVault, 0);
    let (fee_owner, creator_owner) = (tx.key(receiver), tx.key(creator));
    let sol = DemoToken::WrappedSol;
    let fee_key = account(seed, Role::FeeVault, [2, 0]);
    let fee_vault = tx.token_account(fee_key, fee_owner, sol, Some(1_300_844_159_680));
    let creator_key = account(seed, Role::CreatorVaultAccount, [pool.pair, 0]);
    let creator_vault = tx.token_account(creator_key, creator_owner, sol, Some(2_997_445_724));
    [receiver, fee_vault, creator, creator_vault]
}

/// `buy` or `sell` in a `PumpSwap` pool, with SOL wrapped before and unwrapped after.
pub(super) fn swap(maker: &mut Maker<'_>, wallet: Acc, coin: Acc, trade: &TradeSpec) {
    let (fee, buys) = (pools::swap_fees(trade.gross), trade.side == Side::Buy);
    let most = trade.gross + fee.total() + trade.gross / 50;
    let wrapped = maker.wrap(wallet, if buys { most } else { 0 });
    let (base, quote) = ((trade.token, trade.units), (DemoToken::WrappedSol, trade.gross));
    let tx = &mut maker.tx;
    let (pool, vault, sol_vault) = if buys {
        let pool = PoolState::open(tx, PoolProgram::PumpSwap, quote.0, base);
        (pool, pool.get_vault, pool.give_vault)
    } else {
        let pool = PoolState::open(tx, PoolProgram::PumpSwap, base.0, quote);
        (pool, pool.give_vault, pool.get_vault)
    };
    let seed = tx.seed;
    let global = tx.account(account(seed, Role::GlobalState, [4, 0]), 9_272_823);
    let events = tx.account(account(seed, Role::EventAuthority, [4, 0]), 4_641_093);
    let [receiver, fee_vault, creator, creator_vault] = fee_accounts(tx, pool);
    let (mint, quote_mint) = (tx.mint(trade.token), tx.mint(DemoToken::WrappedSol));
    let (coins, token) = (tx.known(trade.token.program()), tx.known(KnownAccount::Token));
    let (system, associated) =
        (tx.known(KnownAccount::System), tx.known(KnownAccount::AssociatedToken));
    let (program, fees) = (tx.known(KnownAccount::PumpSwap), tx.known(KnownAccount::PumpFees));
    let config = tx.account(account(seed, Role::FeeConfig, [2, 0]), 33_103_977);
    let first = [pool.state, wallet, global, mint, quote_mint, coin, wrapped, vault, sol_vault];
    let then = [receiver, fee_vault, coins, token, system, associated, events, program];
    let accounts = [&first[..], &then, &[creator_vault, creator, config, fees]].concat();
    let (tag, limit) = if buys { (BUY, most) } else { (SELL, trade.gross / 20 * 19) };
    let data = [&tag[..], &le([trade.units, limit])].concat();
    tx.enter(KnownAccount::PumpSwap, &accounts, &data, if buys { "Buy" } else { "Sell" });
    get_fees(tx, config, program, trade.gross);
    // The liquidity providers' fee stays in the pool.
    if buys {
        tx.send(vault, coin, pool.state, trade.units, true);
        tx.send(wrapped, sol_vault, wallet, trade.gross + fee.providers, true);
        tx.send(wrapped, fee_vault, wallet, fee.protocol, true);
        tx.send(wrapped, creator_vault, wallet, fee.creator, true);
    } else {
        tx.send(coin, vault, wallet, trade.units, true);
        tx.send(sol_vault, wrapped, pool.state, trade.gross - fee.total(), true);
        tx.send(sol_vault, fee_vault, pool.state, fee.protocol, true);
        tx.send(sol_vault, creator_vault, pool.state, fee.creator, true);
    }
    let accounts = [pool.state, wallet, coin, wrapped, receiver, fee_vault, creator];
    let event = swap_event(maker, accounts, trade, (vault, sol_vault), limit);
    maker.tx.say_data(&event);
    maker.tx.event(KnownAccount::PumpSwap, events, &event);
    maker.tx.leave(71_777);
    maker.tx.close(wrapped, wallet, wallet);
}

fn swap_event(
    maker: &Maker<'_>,
    accounts: [Acc; 7],
    trade: &TradeSpec,
    (vault, sol_vault): (Acc, Acc),
    limit: u64,
) -> Vec<u8> {
    let (tx, fee) = (&maker.tx, pools::swap_fees(trade.gross));
    let buys = trade.side == Side::Buy;
    let [_, _, own_base, own_quote, ..] = accounts;
    let with = |part| if buys { trade.gross + part } else { trade.gross - part };
    let (with_providers, own) = (with(fee.providers), with(fee.total()));
    let head = if buys { BUY_EVENT } else { SELL_EVENT };
    let order = le([maker.time, trade.units, limit]);
    let amounts = le([own_base, own_quote, vault, sol_vault].map(|at| tx.amount(at)));
    let fees = le([trade.gross, 20, fee.providers, 5, fee.protocol, with_providers, own]);
    let keys = accounts.map(|at| tx.key(at)).concat();
    [&head[..], &order, &amounts, &fees, &keys, &le([5, fee.creator])].concat()
}
