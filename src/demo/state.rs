//! What all chains have in common: a head, replacements, and the addresses of wallets.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};

use super::mix;
use super::timeline::{Heights, HistoryShape, Plan};
use crate::domain::{Address, Height, lock};

/// Remembered addresses. Others have their history, but only queries that name them find it.
const WALLETS_MAX: usize = 100_000;
/// Maximum of trades of an address that was not registered.
const UNKNOWN_TRADES_MAX: u64 = 500;

/// A wallet of the demo chain: the parameters of its history, and the place of each transaction.
#[derive(Debug, Clone)]
pub(super) struct KnownWallet<const N: usize, K> {
    pub(super) address: [u8; N],
    /// Represents the address where its bytes do not fit.
    pub(super) tag: u64,
    pub(super) plan: Plan<K>,
    shape: HistoryShape,
}

impl<const N: usize, K> Deref for KnownWallet<N, K> {
    type Target = HistoryShape;

    fn deref(&self) -> &HistoryShape {
        &self.shape
    }
}

#[derive(Debug)]
pub(super) struct Making<K> {
    /// The plan of an address that was not registered, with so many trades.
    pub(super) plan: fn(u64) -> Plan<K>,
    pub(super) heights: Heights,
    /// Where histories begin and end by default.
    pub(super) bounds: (Height, Height),
}

#[derive(Debug)]
pub struct ChainState<const N: usize, K> {
    seed: u64,
    making: Making<K>,
    state: Mutex<State<N, K>>,
}

#[derive(Debug)]
struct State<const N: usize, K> {
    head: Height,
    /// In order, so that a query of all wallets gets the same answer in each process.
    wallets: BTreeMap<[u8; N], Arc<KnownWallet<N, K>>>,
    by_tag: HashMap<u64, [u8; N]>,
    /// Heights from which the chain was replaced, oldest replacement first.
    forks: Vec<Height>,
}

fn key<const N: usize>(address: Address) -> Option<[u8; N]> {
    address.bytes().try_into().ok()
}

impl<const N: usize, K: Copy> ChainState<N, K> {
    pub(super) fn new(seed: u64, head: Height, making: Making<K>) -> Self {
        let (wallets, by_tag, forks) = (BTreeMap::new(), HashMap::new(), Vec::new());
        Self { seed, making, state: Mutex::new(State { head, wallets, by_tag, forks }) }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    fn state(&self) -> MutexGuard<'_, State<N, K>> {
        lock(&self.state)
    }

    pub fn head(&self) -> Height {
        self.state().head
    }

    /// Sets the final head, forwards or back; trades above it are not final, or do not exist yet.
    pub fn set_head(&self, head: Height) {
        self.state().head = head;
    }

    pub fn advance(&self, by: u64) -> Height {
        let mut state = self.state();
        state.head = state.head.saturating_add(by);
        state.head
    }

    /// Replaces the chain from a height on: same heights and amounts of tokens, other hashes.
    pub fn reorg(&self, from: Height) {
        self.state().forks.push(from);
    }

    /// How often a height was replaced.
    pub(super) fn fork(&self, height: Height) -> u32 {
        let last = self.state().forks.iter().rposition(|from| *from <= height);
        u32::try_from(last.map_or(0, |at| at + 1)).unwrap_or(u32::MAX)
    }

    /// Registers a wallet under an address, or replaces its plan.
    pub fn add_wallet(&self, address: Address, plan: Plan<K>) {
        if let Some(key) = key(address) {
            self.state().insert(self.made(key, plan));
        }
    }

    fn made(&self, address: [u8; N], plan: Plan<K>) -> Arc<KnownWallet<N, K>> {
        let tag = mix::digest(self.seed, &address);
        let Making { heights, bounds, .. } = self.making;
        let shape = HistoryShape::new((self.seed, tag), &plan, heights, bounds);
        Arc::new(KnownWallet { address, tag, plan, shape })
    }

    /// Adds transactions above the head until `trades` are trades; moves the head, and returns it.
    pub fn arrive(&self, address: Address, trades: u64) -> Height {
        let Some(key) = key(address) else { return self.head() };
        let mut wallet = KnownWallet::clone(&self.history(&key));
        let mut state = self.state();
        state.head = wallet.shape.arrive(trades, state.head);
        state.wallets.insert(key, Arc::new(wallet));
        state.head
    }

    /// The wallet at an address; an unknown address has a history of 0 to 500 trades by its hash.
    pub(super) fn history(&self, key: &[u8; N]) -> Arc<KnownWallet<N, K>> {
        if let Some(wallet) = self.known_wallet(key) {
            return wallet;
        }
        let trades = mix::digest(mix::mix(self.seed), key) % (UNKNOWN_TRADES_MAX + 1);
        let wallet = self.made(*key, (self.making.plan)(trades));
        let mut state = self.state();
        if state.wallets.len() < WALLETS_MAX {
            state.insert(Arc::clone(&wallet));
        }
        wallet
    }

    pub(super) fn known_wallet(&self, key: &[u8; N]) -> Option<Arc<KnownWallet<N, K>>> {
        self.state().wallets.get(key).cloned()
    }

    /// The address of such a wallet, by its tag.
    pub(super) fn tagged(&self, tag: u64) -> Option<[u8; N]> {
        self.state().by_tag.get(&tag).copied()
    }

    pub(super) fn wallets(&self) -> Vec<Arc<KnownWallet<N, K>>> {
        self.state().wallets.values().cloned().collect()
    }

    /// Transactions of a wallet up to the final head, of every kind.
    pub fn transaction_count(&self, address: Address) -> u64 {
        key(address).map_or(0, |key| self.history(&key).count_at(self.head()))
    }

    pub(super) fn to_head(&self, address: Address) -> (Arc<KnownWallet<N, K>>, u64) {
        let wallet = self.history(&key(address).unwrap_or([0; N]));
        let count = wallet.count_at(self.head());
        (wallet, count)
    }
}

impl<const N: usize, K> State<N, K> {
    fn insert(&mut self, wallet: Arc<KnownWallet<N, K>>) {
        self.by_tag.insert(wallet.tag, wallet.address);
        self.wallets.insert(wallet.address, wallet);
    }
}
