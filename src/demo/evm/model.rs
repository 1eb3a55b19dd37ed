//! The chain: its transactions and blocks, and the rows that they must give.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use super::coins::Coin;
use super::deal::{self, Deal, larger_v2};
use super::places::{Made, Reference, TxPlaces};
use super::script::{self, Against, Holdings, Script, TradeSpec, WalletHistory, WalletPlan};
use super::tx::{LogFilter, Tx};
use super::{TradeKind, noise, references, tron_trades};
use crate::demo::mix;
use crate::demo::state::ChainState;
use crate::demo::timeline::{Class, Spot};
use crate::domain::{
    Account, Address, Family, Height, Price, Side, TxId, Units, UnixSeconds, Word, lock,
};
use crate::registry::Chain;

const HASH_TAG: u64 = u64::from_le_bytes(*b"demohash");
const BLOCK_TAG: u64 = u64::from_le_bytes(*b"demoblok");
/// One in this many blocks has a swap of another user.
const STRANGER_BLOCKS: u64 = 2_000;

/// A deterministic EVM chain, or Tron. Cheap to clone; clones share the chain.
#[derive(Debug, Clone)]
pub struct EvmModel {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    slug: String,
    places: TxPlaces,
    state: ChainState<20, TradeKind>,
    /// Transactions that nodes do not return, though lists name them.
    withheld: Mutex<HashSet<Word>>,
}

impl Deref for EvmModel {
    type Target = ChainState<20, TradeKind>;

    fn deref(&self) -> &Self::Target {
        &self.inner.state
    }
}

/// One row that the wallet's history must have, by construction of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrueTrade {
    pub hash: TxId,
    pub height: Height,
    pub index: u32,
    pub time: UnixSeconds,
    pub side: Side,
    pub token: Address,
    pub units: Units,
    /// Wei (Tron: sun); `None` where the transaction does not contain the value.
    pub native: Option<Units>,
    pub venue: &'static str,
    /// Sells before buys within a transaction.
    pub leg: u16,
    pub kind: TradeKind,
}

/// One transaction of a wallet, with its current place on the chain.
#[derive(Debug, Clone)]
pub(super) struct PlacedTx {
    pub(super) tx: Tx,
    pub(super) hash: Word,
    pub(super) spot: Spot,
    /// Transactions that its sender sent before, where that is the wallet.
    pub(super) nonce: u64,
}

impl EvmModel {
    /// A chain of the table; its head is the first day of 2026 until it is set.
    pub fn new(seed: u64, chain: &Chain) -> Self {
        Self::with_head(seed, chain, None)
    }

    /// The head at the beginning of 2026; `None`: roughly the real chain's.
    pub fn with_head(seed: u64, chain: &Chain, head: Option<Height>) -> Self {
        let places = TxPlaces::new(seed, chain, head);
        let state = ChainState::new(places.seed, places.anchor, script::making(&places));
        let (slug, withheld) = (chain.slug.clone(), Mutex::default());
        Self { inner: Arc::new(Inner { slug, places, state, withheld }) }
    }

    /// Whether the model has a chain's own contracts.
    pub fn knows(chain: &Chain) -> bool {
        TxPlaces::knows(chain)
    }

    pub(super) fn places(&self) -> &TxPlaces {
        &self.inner.places
    }

    pub fn slug(&self) -> &str {
        &self.inner.slug
    }

    pub fn family(&self) -> Family {
        self.inner.places.family
    }

    pub fn chain_id(&self) -> u64 {
        self.inner.places.chain_id
    }

    /// The newest block, which a reorg may still replace.
    pub fn newest(&self) -> Height {
        self.head().saturating_add(self.inner.places.unfinal)
    }

    pub fn height_at(&self, time: UnixSeconds) -> Height {
        self.inner.places.at_time(u64::from(time.0))
    }

    pub fn time_of(&self, height: Height) -> UnixSeconds {
        let time = self.inner.places.time(height);
        UnixSeconds(u32::try_from(time).unwrap_or(u32::MAX))
    }

    pub fn blocks_in(&self, seconds: u64) -> u64 {
        let places = &self.inner.places;
        places.at_time(places.time(places.anchor) + seconds) - places.anchor
    }

    fn fork(&self, height: Height) -> u8 {
        u8::try_from(self.inner.state.fork(height)).unwrap_or(u8::MAX)
    }

    /// The price of a whole native coin, by which trades against dollars are made.
    pub fn price_at(&self, height: Height) -> Price {
        Price(self.inner.places.price(height))
    }

    pub fn block_hash(&self, height: Height) -> Word {
        let fork = u64::from(self.fork(height));
        mix::key(self.inner.places.seed ^ BLOCK_TAG, &[height, fork])
    }

    /// Registers a wallet whose address is derived from a name; returns the address.
    pub fn add_named(&self, name: &str, plan: WalletPlan) -> Address {
        let number = mix::digest(self.inner.places.seed, name.as_bytes());
        let account = self.inner.places.made(Made::Named, number);
        let address = self.inner.places.address(account);
        self.add_wallet(address, plan);
        address
    }

    /// The wallet at an address; contracts are none.
    pub(super) fn wallet(&self, account: &Account) -> Option<Arc<WalletHistory>> {
        let places = &self.inner.places;
        let is_contract = places.is_public(account)
            || account.starts_with(&[0; 18])
            || Coin::of(places, account).is_some();
        (!is_contract).then(|| self.history(account))
    }

    fn script<'a>(&'a self, wallet: &'a WalletHistory) -> Script<'a> {
        Script { places: &self.inner.places, wallet }
    }

    fn hash(&self, wallet: &Account, number: u64, height: Height) -> Word {
        // No history needs more than five bytes.
        let [_, _, _, number @ ..] = number.to_be_bytes();
        let body: [u8; 26] = mix::joined(&[wallet, &number, &[self.fork(height)]]);
        mix::seal(self.inner.places.seed ^ HASH_TAG, &body)
    }

    /// From now on no node returns these transactions, and these alone, though lists name them.
    pub fn withhold(&self, ids: &[TxId]) {
        let word = |id: &TxId| match id {
            TxId::Evm(hash) | TxId::Tron(hash) => Some(*hash),
            TxId::Solana(_) => None,
        };
        *lock(&self.inner.withheld) = ids.iter().filter_map(word).collect();
    }

    pub(super) fn is_withheld(&self, hash: &Word) -> bool {
        lock(&self.inner.withheld).contains(hash)
    }

    /// The transaction with a hash, if it is on the current chain and nodes return it.
    pub(super) fn find(&self, hash: &Word) -> Option<PlacedTx> {
        self.listed(hash).filter(|found| !self.is_withheld(&found.hash))
    }

    /// The same, including withheld transactions.
    pub(super) fn listed(&self, hash: &Word) -> Option<PlacedTx> {
        let body: [u8; 26] = mix::open(self.inner.places.seed ^ HASH_TAG, hash)?;
        let (account, rest) = body.split_first_chunk::<20>()?;
        let (number, rest) = rest.split_first_chunk::<5>()?;
        let fork = rest.first()?;
        let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let wallet = self.wallet(account)?;
        let spot = wallet.spot(number)?;
        (self.fork(spot.height) == *fork).then(|| self.found(&wallet, number, spot))
    }

    fn found(&self, wallet: &WalletHistory, number: u64, spot: Spot) -> PlacedTx {
        let script = self.script(wallet);
        let tx = match wallet.class(number) {
            Class::Funding => noise::funding(script, script.funds()),
            Class::Trade(trade) => {
                let spec = script.trade(trade, self.inner.places.price(spot.height));
                built(script, trade, spec)
            }
            Class::Failed(n) => noise::failed(script, n),
            Class::Noise(n) => {
                let (kind, round) = script::noise(n);
                noise::build(script, kind, round)
            }
        };
        // Tron has no nonces.
        let nonce = if self.inner.places.is_tron() { 0 } else { script.state(number).sent };
        PlacedTx { tx, hash: self.hash(&wallet.address, number, spot.height), spot, nonce }
    }

    /// Transactions of a wallet in a range of blocks, oldest first or newest first.
    pub(super) fn transactions<'a>(
        &'a self,
        wallet: &'a WalletHistory,
        (low, high): (Height, Height),
    ) -> impl DoubleEndedIterator<Item = PlacedTx> + 'a {
        let first = low.checked_sub(1).map_or(0, |below| wallet.count_at(below));
        let end = wallet.count_at(high);
        (first..end.max(first))
            .filter_map(|number| Some(self.found(wallet, number, wallet.spot(number)?)))
    }

    /// Rows of these transactions, oldest first or newest first.
    pub(super) fn rows_of<'a, R>(
        &'a self,
        wallet: &'a WalletHistory,
        range: (Height, Height),
        newest_first: bool,
        of: impl Fn(&PlacedTx) -> Vec<R> + 'a,
    ) -> impl Iterator<Item = R> {
        let mut all = self.transactions(wallet, range);
        let next = move || if newest_first { all.next_back() } else { all.next() };
        std::iter::from_fn(next).flat_map(move |found| {
            let mut rows = of(&found);
            if newest_first {
                rows.reverse();
            }
            rows
        })
    }

    /// Swaps in reference pools that a filter may match; `None` where it concerns no such pool.
    pub(super) fn reference_swaps(
        &self,
        filter: &LogFilter,
        (low, high): (Height, Height),
    ) -> Option<impl Iterator<Item = PlacedTx>> {
        let pools = references::touched(&self.inner.places, filter);
        let touched = !pools.is_empty();
        let swaps = move |height| self.swaps_in(&pools, height);
        touched.then(|| (low..=high).flat_map(swaps))
    }

    /// The swaps of one block, in all of the pools.
    pub(super) fn strangers_in(&self, height: Height) -> Vec<PlacedTx> {
        let pools: Vec<_> = (0..).zip(self.inner.places.references.iter().copied()).collect();
        self.swaps_in(&pools, height)
    }

    /// Swaps of other users in a range, the newest first, one of each block.
    pub(super) fn strangers_down(
        &self,
        (low, high): (Height, Height),
    ) -> impl Iterator<Item = PlacedTx> {
        let mut next = Some(high);
        std::iter::from_fn(move || {
            let high = next.filter(|high| *high >= low)?;
            let blocks = high.saturating_sub(STRANGER_BLOCKS).max(low)..=high;
            let found = blocks.rev().find_map(|height| self.strangers_in(height).pop())?;
            next = found.spot.height.checked_sub(1);
            Some(found)
        })
    }

    fn swaps_in(&self, pools: &[(u32, Reference)], height: Height) -> Vec<PlacedTx> {
        let places = &self.inner.places;
        let swap = |(at, pool): &(u32, Reference)| {
            let tx = references::swap(pool, places, *at, height)?;
            let index = references::INDEX + at;
            let parts = [height, u64::from(*at), u64::from(self.fork(height)), 23];
            let hash = mix::key(places.seed ^ HASH_TAG, &parts);
            Some(PlacedTx { tx, hash, spot: Spot { height, index }, nonce: 0 })
        };
        pools.iter().filter_map(swap).collect()
    }

    pub(super) fn holding(&self, wallet: &WalletHistory, height: Height) -> Holdings {
        self.script(wallet).state(wallet.count_at(height))
    }

    /// Every transaction up to the final head, newest first, and whether it is a trade.
    pub fn transactions_of(&self, address: Address) -> impl Iterator<Item = (TxId, bool)> + use<> {
        let (model, (wallet, end)) = (self.clone(), self.to_head(address));
        (0..end).rev().filter_map(move |number| {
            let spot = wallet.spot(number)?;
            let hash = model.hash(&wallet.address, number, spot.height);
            Some((model.inner.places.tx_id(hash), matches!(wallet.class(number), Class::Trade(_))))
        })
    }

    /// The rows that the wallet's history must have, newest first.
    pub fn truth(&self, address: Address) -> impl Iterator<Item = TrueTrade> + use<> {
        let (model, (wallet, end)) = (self.clone(), self.to_head(address));
        (0..end).rev().flat_map(move |number| model.rows(&wallet, number))
    }

    fn rows(&self, wallet: &WalletHistory, number: u64) -> Vec<TrueTrade> {
        let Some(spot) = wallet.spot(number) else { return Vec::new() };
        if !matches!(wallet.class(number), Class::Trade(_)) {
            return Vec::new();
        }
        let places = &self.inner.places;
        let trade = wallet.trades_below(number);
        let spec = self.script(wallet).trade(trade, places.price(spot.height));
        let venue = venue(places, &spec);
        let row = |leg, side, coin: Coin, units: u128, native: Option<u128>| TrueTrade {
            hash: places.tx_id(self.hash(&wallet.address, number, spot.height)),
            height: spot.height,
            index: spot.index,
            time: self.time_of(spot.height),
            side,
            token: places.address(coin.address(places)),
            units: Units::from(units),
            native: native.map(Units::from),
            venue,
            leg,
            kind: spec.kind,
        };
        let (dollars, hop) = match spec.against {
            Against::Native(native) => {
                return vec![row(0, spec.side, spec.coin, spec.units, Some(native))];
            }
            Against::Dollar { units, hop } => ((Coin::Dollar, units), hop),
        };
        let coins = (spec.coin, spec.units);
        let (sold, bought) =
            if spec.side == Side::Sell { (coins, dollars) } else { (dollars, coins) };
        vec![row(0, Side::Sell, sold.0, sold.1, hop), row(1, Side::Buy, bought.0, bought.1, hop)]
    }
}

/// The protocol whose pool exchanged the coin, or most of it.
fn venue(places: &TxPlaces, spec: &TradeSpec) -> &'static str {
    use TradeKind as K;
    if places.is_tron() {
        return tron_trades::venue(spec);
    }
    let v2 = places.v2.map_or(places.v3.name, |v2| v2.name);
    match spec.kind {
        K::V2 | K::V2Hop | K::Taxed | K::V1 | K::Exchange => v2,
        K::V3 | K::V3Dollar | K::Cow | K::UserOp => places.v3.name,
        K::V4 => "Uniswap V4",
        K::Launchpad => "Flap",
        K::Aggregator if larger_v2(spec) => places.v2.map_or(places.v3.pool_name(), |v2| v2.name),
        K::Aggregator => places.v3.pool_name(),
    }
}

/// Builds the transaction of a trade.
fn built(script: Script<'_>, trade: u64, spec: TradeSpec) -> Tx {
    let (wallet, coin) = (script.wallet.address, spec.coin.address(script.places));
    let deal = Deal { script, trade, spec, wallet, coin };
    let on_tron = script.places.is_tron().then(|| tron_trades::build(&deal)).flatten();
    on_tron.unwrap_or_else(|| on_ethereum(&deal))
}

/// The trade on chains with Ethereum's contracts.
fn on_ethereum(deal: &Deal<'_>) -> Tx {
    use TradeKind as K;
    match (deal.spec.kind, deal.spec.against) {
        (K::Cow, _) => deal::cow(deal),
        (K::UserOp, Against::Native(native)) => deal::user_op(deal, native),
        (K::V2Hop, Against::Dollar { units, hop: Some(hop) }) => deal.v2_hop(units, hop),
        (_, Against::Dollar { units, .. }) => deal.v3_dollar(units),
        (K::V4, Against::Native(native)) => deal.v4(native),
        (K::Aggregator, Against::Native(native)) => deal.aggregator(native),
        (K::Taxed, Against::Native(native)) => deal.v2(native, true),
        (K::Launchpad, Against::Native(native)) => deal.launchpad(native),
        (K::V2 | K::V2Hop, Against::Native(native)) => deal.v2(native, false),
        (_, Against::Native(native)) => deal.v3(native),
    }
}
