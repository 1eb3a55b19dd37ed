//! Pools: fees, routes, and the calls that swap in them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::keys::{KnownAccount, Role, account};
use super::tokens::DemoToken;
use super::tx::{Acc, Tx};
use super::{TradeKind, le, references};
use crate::demo::mix::Dice;
use crate::domain::Side;

/// Programs whose pools routes go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum PoolProgram {
    RaydiumV4 = 1,
    Whirlpool,
    Dlmm,
    PumpSwap,
}

impl PoolProgram {
    pub(super) fn program(self) -> KnownAccount {
        match self {
            Self::RaydiumV4 => KnownAccount::RaydiumV4,
            Self::Whirlpool => KnownAccount::Whirlpool,
            Self::Dlmm => KnownAccount::Dlmm,
            Self::PumpSwap => KnownAccount::PumpSwap,
        }
    }

    #[expect(clippy::as_conversions, reason = "the discriminant of a unit enum; no value is cut")]
    fn number(self) -> u64 {
        self as u64
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Hop {
    pub(super) venue: PoolProgram,
    pub(super) give: (DemoToken, u64),
    pub(super) get: (DemoToken, u64),
}

/// Lamports of the protocol, the coin's creator and the liquidity providers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fees {
    pub(super) protocol: u64,
    pub(super) creator: u64,
    pub(super) providers: u64,
}

impl Fees {
    pub(super) fn total(self) -> u64 {
        self.protocol + self.creator + self.providers
    }
}

fn share(amount: u64, basis_points: u64) -> u64 {
    let part = (u128::from(amount) * u128::from(basis_points)).div_ceil(10_000);
    u64::try_from(part).unwrap_or(amount)
}

/// Pump.fun takes 0.95 % for itself and 0.3 % for the creator.
pub(super) fn pump_fees(amount: u64) -> Fees {
    Fees { protocol: share(amount, 95), creator: share(amount, 30), providers: 0 }
}

/// `PumpSwap` takes 0.05 % for itself, 0.05 % for the creator and 0.2 % for the pool.
pub(super) fn swap_fees(amount: u64) -> Fees {
    Fees { protocol: share(amount, 5), creator: share(amount, 5), providers: share(amount, 20) }
}

/// The amounts of a planned trade.
pub(super) struct Sums {
    pub(super) base: (DemoToken, u64),
    pub(super) gross: u64,
    pub(super) usdc: Option<u64>,
}

/// The pools of an aggregated trade, from input to output; none for a direct one.
pub(super) fn route(
    kind: TradeKind,
    side: Side,
    Sums { base, gross, usdc }: Sums,
    dice: &mut Dice,
    (seed, price): (u64, u128),
) -> Vec<Hop> {
    let sol = (DemoToken::WrappedSol, gross);
    let mut path = match kind {
        TradeKind::JupiterSol => {
            let middle = (DemoToken::Usdc, references::usdc(gross, price).max(1));
            let other = DemoToken::Coin(dice.pick(0, &[1, 2, 3, 4, 5, 6, 7]) * 2 + 1);
            let shorter = other == base.0 || base.0.is_2022();
            match dice.range(1, if shorter { 2 } else { 3 }) {
                1 => vec![base, sol],
                2 => vec![base, middle, sol],
                _ => {
                    let units = (gross / 1000).max(1) * other.rate(seed);
                    vec![base, (other, units), middle, sol]
                }
            }
        }
        TradeKind::JupiterUsdc | TradeKind::Settlement => {
            let usdc = (DemoToken::Usdc, usdc.unwrap_or(1));
            if dice.percent(60) { vec![base, sol, usdc] } else { vec![base, usdc] }
        }
        TradeKind::PumpFun
        | TradeKind::PumpCreate
        | TradeKind::PumpSwap
        | TradeKind::RaydiumV4
        | TradeKind::Whirlpool
        | TradeKind::LimitFill => return Vec::new(),
    };
    if side == Side::Buy {
        path.reverse();
    }
    let ends = path.windows(2).filter_map(|pair| <[_; 2]>::try_from(pair).ok());
    ends.map(|[give, get]| Hop { venue: venue(give.0, get.0, dice), give, get }).collect()
}

fn venue(give: DemoToken, get: DemoToken, dice: &mut Dice) -> PoolProgram {
    let newer = give.is_2022() || get.is_2022();
    let native = give == DemoToken::WrappedSol || get == DemoToken::WrappedSol;
    match (newer, native) {
        (true, true) => dice.pick(PoolProgram::PumpSwap, &[PoolProgram::Dlmm]),
        (true, false) => PoolProgram::Dlmm,
        (false, _) => {
            dice.pick(PoolProgram::RaydiumV4, &[PoolProgram::Whirlpool, PoolProgram::Dlmm])
        }
    }
}

/// A pool of two tokens with its balances; the token order is the same in both directions.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolState {
    pub(super) state: Acc,
    pub(super) authority: Acc,
    pub(super) give_vault: Acc,
    pub(super) get_vault: Acc,
    /// Number of the pair, from which its other accounts are derived.
    pub(super) pair: u64,
    /// The given token is the pool's first.
    pub(super) forward: bool,
}

impl PoolState {
    /// Adds the pool's accounts. Its balances are many times the output.
    pub(super) fn open(
        tx: &mut Tx,
        venue: PoolProgram,
        give: DemoToken,
        get: (DemoToken, u64),
    ) -> Self {
        let seed = tx.seed;
        let (first, second) = (give.code().min(get.0.code()), give.code().max(get.0.code()));
        let pair = u64::from(first) << 32 | u64::from(second);
        let number = venue.number();
        let state = account(seed, Role::Pool, [number, pair]);
        let owner = match venue {
            PoolProgram::RaydiumV4 => KnownAccount::RaydiumV4Authority.key(),
            PoolProgram::Whirlpool | PoolProgram::Dlmm | PoolProgram::PumpSwap => state,
        };
        let pool = tx.writable(state, 6_124_800);
        let authority = tx.account(owner, 13_532_449_905);
        let forward = give.code() == first;
        let (base, quote) = (Role::VaultBase, Role::VaultQuote);
        let roles = if forward { (base, quote) } else { (quote, base) };
        let (get, out) = get;
        let mut vault = |role, token: DemoToken, least: u64| {
            let key = account(seed, role, [number, pair]);
            let held = least.saturating_mul(40).saturating_add(7_000_000_000);
            tx.token_account(key, owner, token, Some(held))
        };
        let (give_vault, get_vault) = (vault(roles.0, give, 0), vault(roles.1, get, out));
        Self { state: pool, authority, give_vault, get_vault, pair, forward }
    }

    /// The parts of the pool's first and second token.
    fn ordered<T>(&self, give: T, get: T) -> (T, T) {
        if self.forward { (give, get) } else { (get, give) }
    }

    pub(super) fn part(&self, tx: &mut Tx, role: Role, lamports: u64) -> Acc {
        let key = account(tx.seed, role, [self.pair, 0]);
        tx.account(key, lamports)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Party {
    pub(super) authority: Acc,
    pub(super) from: Acc,
    pub(super) to: Acc,
}

/// Calls a venue to exchange one amount for another.
pub(super) fn swap(tx: &mut Tx, hop: &Hop, party: Party) {
    let pool = PoolState::open(tx, hop.venue, hop.give.0, hop.get);
    for at in [pool.state, pool.give_vault, pool.get_vault] {
        tx.lookup(at);
    }
    match hop.venue {
        PoolProgram::RaydiumV4 => raydium(tx, hop, pool, party),
        PoolProgram::Whirlpool => whirlpool(tx, hop, pool, party),
        PoolProgram::Dlmm => dlmm(tx, hop, pool, party),
        PoolProgram::PumpSwap => pump_swap_hop(tx, hop, pool, party),
    }
}

fn raydium(tx: &mut Tx, hop: &Hop, pool: PoolState, party: Party) {
    let token = tx.known(KnownAccount::Token);
    let (coin, pc) = pool.ordered(pool.give_vault, pool.get_vault);
    let (s, user) = (pool.state, [party.from, party.to, party.authority]);
    let accounts = [&[token, s, pool.authority, s, coin, pc][..], &[s; 8], &user].concat();
    let (give, get) = (hop.give.1, hop.get.1);
    let least = get / 100 * 99;
    let data = [&[9][..], &le([give, least])].concat();
    tx.enter(KnownAccount::RaydiumV4, &accounts, &data, "");
    let direction = if pool.forward { 2 } else { 1 };
    let (base, quote) = pool.ordered(tx.amount(pool.get_vault), tx.amount(pool.give_vault));
    let log = [&[3][..], &le([give, least, direction, give, base, quote, get])].concat();
    tx.say(&format!("ray_log: {}", STANDARD.encode(log)));
    tx.send(party.from, pool.give_vault, party.authority, give, false);
    tx.send(pool.get_vault, party.to, pool.authority, get, false);
    tx.leave(31_846);
}

fn whirlpool(tx: &mut Tx, hop: &Hop, pool: PoolState, party: Party) {
    let token = tx.known(KnownAccount::Token);
    let ticks = pool.part(tx, Role::TickArray, 70_407_360);
    let oracle = pool.part(tx, Role::Oracle, 0);
    tx.touch(ticks);
    let (own_a, own_b) = pool.ordered(party.from, party.to);
    let (vault_a, vault_b) = pool.ordered(pool.give_vault, pool.get_vault);
    let first = [token, party.authority, pool.state, own_a, vault_a, own_b, vault_b];
    let accounts = [&first[..], &[ticks, ticks, ticks, oracle]].concat();
    let (give, get) = (hop.give.1, hop.get.1);
    let forward = u8::from(pool.forward);
    let data = [&SWAP[..], &le([give, get / 100 * 99]), &[0; 16], &[1, forward]].concat();
    tx.enter(KnownAccount::Whirlpool, &accounts, &data, "Swap");
    tx.send(party.from, pool.give_vault, party.authority, give, false);
    tx.send(pool.get_vault, party.to, pool.state, get, false);
    let roots = [1_u128 << 64, (1_u128 << 64) + 5].map(u128::to_le_bytes).concat();
    let fees = le([give / 400, give / 4000]);
    let traded: [&[u8]; 7] =
        [&TRADED, &tx.key(pool.state), &[forward], &roots, &le([give, get]), &[0; 16], &fees];
    tx.say_data(&traded.concat());
    tx.leave(48_700);
}

fn dlmm(tx: &mut Tx, hop: &Hop, pool: PoolState, party: Party) {
    let program = tx.known(KnownAccount::Dlmm);
    let bins = pool.part(tx, Role::TickArray, 71_437_440);
    let oracle = pool.part(tx, Role::Oracle, 23_385_600);
    let events = account(tx.seed, Role::EventAuthority, [3, 0]);
    let events = tx.account(events, 0);
    tx.touch(bins);
    let (x, y) = pool.ordered(hop.give.0, hop.get.0);
    let (mint_x, mint_y) = (tx.mint(x), tx.mint(y));
    let (vault_x, vault_y) = pool.ordered(pool.give_vault, pool.get_vault);
    let (token_x, token_y) = (tx.known(x.program()), tx.known(y.program()));
    let first = [pool.state, program, vault_x, vault_y, party.from, party.to, mint_x, mint_y];
    let then = [oracle, program, party.authority, token_x, token_y, events, program, bins];
    let (give, get) = (hop.give.1, hop.get.1);
    let data = [&SWAP[..], &le([give, get / 100 * 99])].concat();
    tx.enter(KnownAccount::Dlmm, &[first, then].concat(), &data, "Swap");
    tx.send(party.from, pool.give_vault, party.authority, give, true);
    tx.send(pool.get_vault, party.to, pool.state, get, true);
    let (state, user) = (tx.key(pool.state), tx.key(party.authority));
    // Swap { lb_pair, from, start_bin, end_bin, amount_in, amount_out, swap_for_y, fee, .. }
    let (amounts, forward) = (le([give, get]), [u8::from(pool.forward)]);
    let numbers = [&[0; 8][..], &amounts, &forward, &le([give / 500]), &[0; 32]].concat();
    let event = [&BINS_SWAPPED[..], &state, &user, &numbers].concat();
    tx.event(KnownAccount::Dlmm, events, &event);
    tx.leave(44_100);
}

/// `PumpSwap` inside a route: the net amounts, with the fees already taken by the pool.
fn pump_swap_hop(tx: &mut Tx, hop: &Hop, pool: PoolState, party: Party) {
    let selling = hop.get.0 == DemoToken::WrappedSol;
    let coin = if selling { hop.give.0 } else { hop.get.0 };
    let (mint, quote) = (tx.mint(coin), tx.mint(DemoToken::WrappedSol));
    let global = account(tx.seed, Role::GlobalState, [4, 0]);
    let global = tx.account(global, 9_272_823);
    let (own, vaults) = ([party.from, party.to], [pool.give_vault, pool.get_vault]);
    let in_order = |[give, get]: [Acc; 2]| if selling { [give, get] } else { [get, give] };
    let ends = [in_order(own), in_order(vaults)].concat();
    let programs = [tx.known(coin.program()), tx.known(KnownAccount::Token)];
    let first = [pool.state, party.authority, global, mint, quote];
    let accounts = [&first[..], &ends, &programs].concat();
    let (give, get) = (hop.give.1, hop.get.1);
    let (tag, amounts) = if selling { (SELL, [give, get]) } else { (BUY, [get, give]) };
    let data = [&tag[..], &le(amounts)].concat();
    let name = if selling { "Sell" } else { "Buy" };
    tx.enter(KnownAccount::PumpSwap, &accounts, &data, name);
    tx.send(party.from, pool.give_vault, party.authority, give, true);
    tx.send(pool.get_vault, party.to, pool.state, get, true);
    tx.leave(52_300);
}

/// Tags of `swap` (the same for Whirlpool and DLMM) and of the events of both.
const SWAP: [u8; 8] = [0xf8, 0xc6, 0x9e, 0x91, 0xe1, 0x75, 0x87, 0xc8];
const TRADED: [u8; 8] = [0xe1, 0xca, 0x49, 0xaf, 0x93, 0x2b, 0xa0, 0x96];
const BINS_SWAPPED: [u8; 8] = [0x51, 0x6c, 0xe3, 0xbe, 0xcd, 0xd0, 0x0a, 0xc4];
/// Tags of `buy` and `sell`, the same for Pump.fun and `PumpSwap`.
pub(super) const BUY: [u8; 8] = [0x66, 0x06, 0x3d, 0x12, 0x01, 0xda, 0xeb, 0xea];
pub(super) const SELL: [u8; 8] = [0x33, 0xe6, 0x85, 0xa4, 0x01, 0x7f, 0x83, 0xad];
