//! Trades through an aggregator, and trades that a keeper executes for the wallet.

use crate::domain::Side;

use super::history::TradeSpec;
use super::keys::{KnownAccount, Role, account};
use super::maker::Maker;
use super::pools::{self, Hop, Party};
use super::tokens::DemoToken;
use super::tx::{Acc, Tx};
use super::{SOL, le};

const ROUTE: [u8; 8] = [0xe5, 0x17, 0xcb, 0x97, 0x7a, 0xe3, 0xad, 0x2a];
const SHARED_ROUTE: [u8; 8] = [0xc1, 0x20, 0x9b, 0x33, 0x41, 0xd6, 0x9c, 0x81];
const SWAP_EVENT: [u8; 8] = [0x40, 0xc6, 0xcd, 0xe8, 0x26, 0x08, 0x71, 0xe2];
const PRE_FLASH_FILL: [u8; 8] = [0xf0, 0x2f, 0x99, 0x44, 0x0d, 0xbe, 0xe1, 0x2a];
const FLASH_FILL: [u8; 8] = [0xfc, 0x68, 0x12, 0x86, 0xa4, 0x4e, 0x12, 0x8c];
const LIMIT_TRADE_EVENT: [u8; 8] = [0xbd, 0xdb, 0x7f, 0xd3, 0x4e, 0xe6, 0x61, 0xee];

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
    tx.say_data(&[&LIMIT_TRADE_EVENT[..], &order_key, &keeper_key, &numbers].concat());
    tx.leave(50_373);
    tx.pay_fee(10_000);
}
