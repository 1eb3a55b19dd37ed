//! Trades on Pump.fun (its curves, their creation, `PumpSwap`), through an aggregator, and by a
//! keeper for the wallet.

use super::history::TradeSpec;
use super::keys::{KnownAccount, Role, account};
use super::maker::Maker;
use super::pools::{self, BUY, Hop, Party, PoolProgram, PoolState, SELL};
use super::tokens::DemoToken;
use super::tx::{Acc, Tx};
use super::{COIN_URI, SOL, borsh_text, le};
use crate::domain::Side;

const CREATE_V2: [u8; 8] = [0xd6, 0x90, 0x4c, 0xec, 0x5f, 0x8b, 0x31, 0xb4];
const CREATE_EVENT: [u8; 8] = [0x1b, 0x72, 0xa9, 0x4d, 0xde, 0xeb, 0x63, 0x76];
/// Of Pump.fun's curves and of limit orders, whose events have the same name.
const TRADE_EVENT: [u8; 8] = [0xbd, 0xdb, 0x7f, 0xd3, 0x4e, 0xe6, 0x61, 0xee];
const BUY_EVENT: [u8; 8] = [0x67, 0xf4, 0x52, 0x1f, 0x2c, 0xf5, 0x77, 0x77];
const SELL_EVENT: [u8; 8] = [0x3e, 0x2f, 0x37, 0x0a, 0xa5, 0x03, 0xdc, 0x2a];
const GET_FEES: [u8; 8] = [0x9a, 0xed, 0x8a, 0x5c, 0xa2, 0x02, 0xa2, 0xbb];
const ROUTE: [u8; 8] = [0xe5, 0x17, 0xcb, 0x97, 0x7a, 0xe3, 0xad, 0x2a];
const SHARED_ROUTE: [u8; 8] = [0xc1, 0x20, 0x9b, 0x33, 0x41, 0xd6, 0x9c, 0x81];
const SWAP_EVENT: [u8; 8] = [0x40, 0xc6, 0xcd, 0xe8, 0x26, 0x08, 0x71, 0xe2];
const PRE_FLASH_FILL: [u8; 8] = [0xf0, 0x2f, 0x99, 0x44, 0x0d, 0xbe, 0xe1, 0x2a];
const FLASH_FILL: [u8; 8] = [0xfc, 0x68, 0x12, 0x86, 0xa4, 0x4e, 0x12, 0x8c];

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
pub(super) fn create_coin(maker: &mut Maker<'_>, wallet: Acc, trade: &TradeSpec) -> Acc {
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
pub(super) fn pump_swap(maker: &mut Maker<'_>, wallet: Acc, coin: Acc, trade: &TradeSpec) {
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

/// A trade through Jupiter that the wallet signs.
pub(super) fn jupiter(maker: &mut Maker<'_>, wallet: Acc, coin: Acc, trade: &TradeSpec) {
    let other = match trade.usdc {
        Some(usdc) => {
            let account = maker.token(DemoToken::Usdc, usdc.before);
            if usdc.before.is_none() {
                maker.tx.create_associated(wallet, account, wallet);
            }
            account
        }
        None => maker.wrap(wallet, if trade.side == Side::Buy { trade.gross } else { 0 }),
    };
    let (from, to) = if trade.side == Side::Buy { (other, coin) } else { (coin, other) };
    let party = Party { authority: wallet, from, to };
    match trade.route.as_slice() {
        [hop] => route(&mut maker.tx, hop, party),
        hops => shared_route(&mut maker.tx, hops, party),
    }
    if trade.usdc.is_none() {
        maker.tx.close(other, wallet, wallet);
    }
}

/// A keeper spends from the wallet's token account as its delegate and fills its USDC account, or
/// the reverse. The message names only the accounts, never the wallet.
pub(super) fn settlement(maker: &mut Maker<'_>, trade: &TradeSpec) {
    let keeper_key = account(maker.script.seed, Role::Keeper, [maker.dice.range(0, 3), 0]);
    let keeper = maker.tx.signer(keeper_key, 700 * SOL);
    maker.tx.budget(50_000);
    let coin = maker.token(trade.token, trade.before);
    let held = trade.usdc.and_then(|usdc| usdc.before);
    let usdc = maker.token(DemoToken::Usdc, held);
    // The keeper opens missing accounts; the wallet is then named as the owner.
    for (account, state) in [(coin, trade.before), (usdc, held)] {
        if state.is_none() {
            let owner = maker.address();
            let owner = maker.tx.account(owner, 0);
            maker.tx.create_associated(keeper, account, owner);
        }
    }
    let (from, to) = if trade.side == Side::Buy { (usdc, coin) } else { (coin, usdc) };
    shared_route(&mut maker.tx, &trade.route, Party { authority: keeper, from, to });
    maker.tx.pay_fee(20_000);
}

fn plan(hops: usize) -> Vec<u8> {
    let count = u32::try_from(hops).unwrap_or(0);
    let mut plan = count.to_le_bytes().to_vec();
    for at in 0..u8::try_from(hops).unwrap_or(0) {
        // Kind of swap, percent, indices of the input and the output.
        plan.extend([7, 100, at, at + 1]);
    }
    plan
}

fn tail(give: u64, get: u64) -> Vec<u8> {
    let (slippage, fee) = (50_u16.to_le_bytes(), [0]);
    [&le([give, get])[..], &slippage, &fee].concat()
}

fn leg(tx: &mut Tx, hop: &Hop, party: Party, events: Acc) {
    pools::swap(tx, hop, party);
    let sum = |(token, units): (DemoToken, u64)| [&token.mint()[..], &le([units])].concat();
    let venue = hop.venue.program().key();
    let event = [&SWAP_EVENT[..], &venue, &sum(hop.give), &sum(hop.get)].concat();
    tx.event(KnownAccount::Jupiter, events, &event);
}

/// One pool, between the user's own accounts.
fn route(tx: &mut Tx, hop: &Hop, party: Party) {
    let token = tx.known(hop.give.0.program());
    let program = tx.known(KnownAccount::Jupiter);
    let events = tx.known(KnownAccount::JupiterEvents);
    let mint = tx.mint(hop.get.0);
    let inner = tx.known(hop.venue.program());
    for at in [events, mint, inner] {
        tx.lookup(at);
    }
    let first = [token, party.authority, party.from, party.to];
    let accounts = [&first[..], &[program, mint, program, events, program, inner]].concat();
    let data = [&ROUTE[..], &plan(1), &tail(hop.give.1, hop.get.1)].concat();
    tx.enter(KnownAccount::Jupiter, &accounts, &data, "Route");
    leg(tx, hop, party, events);
    tx.leave(64_372);
    tx.return_data = Some((KnownAccount::Jupiter, hop.get.1.to_le_bytes()));
}

/// Several pools, through accounts of the aggregator's own.
fn shared_route(tx: &mut Tx, hops: &[Hop], party: Party) {
    let (Some(first), Some(last)) = (hops.first(), hops.last()) else { return };
    let seed = tx.seed;
    let authority_key = account(seed, Role::AggregatorAuthority, [0, 0]);
    let authority = tx.account(authority_key, 2_103_217_742);
    let shared = |tx: &mut Tx, token: DemoToken| {
        let parts = [u64::from(token.code()), token.rate(seed)];
        let key = account(seed, Role::AggregatorAccount, parts);
        let account = tx.token_account(key, authority_key, token, Some(276_186_969));
        tx.lookup(account)
    };
    let source = shared(tx, first.give.0);
    let target = shared(tx, last.get.0);
    let (token, program) = (tx.known(KnownAccount::Token), tx.known(KnownAccount::Jupiter));
    let (newer, events) =
        (tx.known(KnownAccount::Token2022), tx.known(KnownAccount::JupiterEvents));
    let (give_mint, get_mint) = (tx.mint(first.give.0), tx.mint(last.get.0));
    for at in [authority, events, give_mint, get_mint, newer] {
        tx.lookup(at);
    }
    let ends = [token, authority, party.authority, party.from, source, target, party.to];
    let rest = [give_mint, get_mint, program, newer, events, program];
    let accounts = [&ends[..], &rest].concat();
    let body = tail(first.give.1, last.get.1);
    let data = [&SHARED_ROUTE[..], &[3], &plan(hops.len()), &body].concat();
    tx.enter(KnownAccount::Jupiter, &accounts, &data, "SharedAccountsRoute");
    tx.send(party.from, source, party.authority, first.give.1, true);
    let mut from = source;
    for hop in hops {
        let to = shared(tx, hop.get.0);
        leg(tx, hop, Party { authority, from, to }, events);
        from = to;
    }
    tx.send(target, party.to, authority, last.get.1, true);
    tx.leave(184_399);
    tx.return_data = Some((KnownAccount::Jupiter, last.get.1.to_le_bytes()));
}

/// A keeper fills a limit order: wrapped SOL leaves the escrow, the coin arrives at the maker.
pub(super) fn limit_fill(maker: &mut Maker<'_>, trade: &TradeSpec) {
    let seed = maker.script.seed;
    let number = maker.dice.range(0, 3);
    let keeper_key = account(seed, Role::Keeper, [number, 1]);
    let keeper = maker.tx.signer(keeper_key, 900 * SOL);
    maker.tx.budget(20_000);
    let order_key = maker.own_key(Role::Order, 0);
    let escrow_key = maker.own_key(Role::Escrow, 0);
    let address = maker.address();
    let lamports = maker.dice.range(SOL, 9 * SOL);
    let wallet = maker.tx.writable(address, lamports);
    let coin = maker.token(trade.token, trade.before);
    let tx = &mut maker.tx;
    let order = tx.writable(order_key, 3_083_280);
    let remaining = trade.gross / 3;
    let held = Some(trade.gross + remaining);
    let escrow = tx.token_account(escrow_key, order_key, DemoToken::WrappedSol, held);
    let own = |tx: &mut Tx, token: DemoToken, amount: u64| {
        let key = account(seed, Role::KeeperAccount, [number, u64::from(token.code())]);
        tx.token_account(key, keeper_key, token, Some(amount))
    };
    let inventory = trade.units.saturating_mul(3).saturating_add(1_000_000);
    let (wrapped, stock) =
        (own(tx, DemoToken::WrappedSol, 12_345), own(tx, trade.token, inventory));
    let fee_owner = account(seed, Role::LimitFee, [0, 0]);
    let fee_authority = tx.account(fee_owner, 5_000_000);
    let fee_key = account(seed, Role::LimitFee, [1, u64::from(trade.token.code())]);
    let fee_account = tx.token_account(fee_key, fee_owner, trade.token, Some(4_444));
    let (token, system) = (tx.known(KnownAccount::Token), tx.known(KnownAccount::System));
    let (calls, program) =
        (tx.known(KnownAccount::Instructions), tx.known(KnownAccount::JupiterLimit));
    let (give_mint, get_mint) = (tx.mint(DemoToken::WrappedSol), tx.mint(trade.token));
    let data = [&PRE_FLASH_FILL[..], &le([trade.gross])].concat();
    let accounts = [order, escrow, keeper, wrapped, give_mint, token, calls, system];
    tx.enter(KnownAccount::JupiterLimit, &accounts, &data, "PreFlashFillOrder");
    tx.send(escrow, wrapped, order, trade.gross, true);
    tx.leave(41_403);
    // The event contains the amount before the fee of 0.1 %.
    let fee = trade.units / 999;
    let first = [order, escrow, wallet, keeper, coin, stock, fee_authority, fee_account];
    let accounts = [&first[..], &[program, give_mint, token, get_mint, token, system]].concat();
    let data = [&FLASH_FILL[..], &le([trade.units.saturating_add(fee)])].concat();
    tx.enter(KnownAccount::JupiterLimit, &accounts, &data, "FlashFillOrder");
    tx.send(stock, coin, keeper, trade.units, true);
    tx.send(stock, fee_account, keeper, fee, true);
    let numbers = le([remaining, trade.units / 3, trade.gross, trade.units + fee]);
    tx.say_data(&[&TRADE_EVENT[..], &order_key, &keeper_key, &numbers].concat());
    tx.leave(50_373);
    tx.pay_fee(10_000);
}
