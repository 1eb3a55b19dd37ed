//! All demo chains of one seed, with the endpoints that serve them.

use crate::demo::evm::{self, EvmModel};
use crate::demo::node::DemoNode;
use crate::demo::solana::{self, SolanaModel};
use crate::domain::{Address, Family, UnixSeconds};
use crate::registry::Registry;

/// Paths of nodes.
const SOLANA: &str = "sol";
const TRON: &str = "tron";
/// A wallet on each chain, and one whose history is not a sample's.
const SMALL: (&str, u64) = ("sample", 2_500);
const LARGE_NAME: &str = "large";
/// Trades of the large wallet: more than the maximum would not fit its history on every chain.
pub const LARGE_TRADES: u64 = 200_000;
pub const LARGE_TRADES_MAX: u64 = 2_000_000;
/// The sample wallets continue to trade about once a day of the chain's time.
const SECONDS_BETWEEN: u64 = 86_400;
/// The wallet to follow: its first trades, the length of that history, and how often it goes on.
const LIVE: (&str, u64) = ("live", 60);
const LIVE_SECONDS: u64 = 30 * 86_400;
const LIVE_SECONDS_BETWEEN: u64 = 10;

/// Solana, Tron, and the EVM chains whose contracts the models know. Clones are the same chains.
#[derive(Debug, Clone)]
pub struct DemoChains {
    seed: u64,
    solana: SolanaModel,
    evm: Vec<EvmModel>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoWallet {
    pub chain: String,
    pub name: &'static str,
    /// Trades at the time it was registered.
    pub trades: u64,
    pub address: Address,
}

/// Paths of a chain's interfaces on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoPaths {
    pub rpc: String,
    /// Account lists and the open data gateway, which EVM chains have.
    pub explorer: Option<String>,
    pub portal: Option<String>,
}

impl DemoChains {
    pub fn new(seed: u64, registry: &Registry) -> Self {
        let evm = registry.chains().iter().filter(|chain| EvmModel::knows(chain));
        Self {
            seed,
            solana: SolanaModel::new(seed),
            evm: evm.map(|chain| EvmModel::new(seed, chain)).collect(),
        }
    }

    pub fn solana(&self) -> &SolanaModel {
        &self.solana
    }

    pub fn evm(&self, slug: &str) -> Option<&EvmModel> {
        self.evm.iter().find(|model| model.slug() == slug)
    }

    pub fn slugs(&self) -> impl Iterator<Item = &str> {
        std::iter::once(SOLANA).chain(self.evm.iter().map(EvmModel::slug))
    }

    pub fn paths(&self, slug: &str) -> Option<DemoPaths> {
        if slug == SOLANA {
            let portal = Some(format!("portal/{SOLANA}"));
            return Some(DemoPaths { rpc: SOLANA.to_owned(), explorer: None, portal });
        }
        let model = self.evm(slug)?;
        Some(match model.family() {
            Family::Tron => DemoPaths { rpc: TRON.to_owned(), explorer: None, portal: None },
            Family::Evm | Family::Solana => DemoPaths {
                rpc: format!("evm/{slug}"),
                explorer: Some(format!("explorer/{slug}/api")),
                portal: Some(format!("portal/{slug}")),
            },
        })
    }

    /// Every endpoint by its path, for a loopback server; with a host prefix, for a transport.
    pub fn nodes(&self) -> Vec<(String, DemoNode)> {
        let mut nodes = vec![(SOLANA.to_owned(), DemoNode::new(self.solana.clone(), self.seed))];
        let gateway = DemoNode::solana_portal(self.solana.clone(), self.seed);
        nodes.push((format!("portal/{SOLANA}"), gateway));
        for model in &self.evm {
            let Some(paths) = self.paths(model.slug()) else { continue };
            let DemoPaths { rpc, explorer, portal } = paths;
            let is_tron = model.family() == Family::Tron;
            let node = if is_tron { DemoNode::tron } else { DemoNode::evm };
            nodes.push((rpc, node(model.clone(), self.seed)));
            let lists = explorer.map(|path| (path, DemoNode::explorer(model.clone(), self.seed)));
            let gateway = portal.map(|path| (path, DemoNode::portal(model.clone(), self.seed)));
            nodes.extend(lists.into_iter().chain(gateway));
        }
        nodes
    }

    /// Moves the heads to a wall-clock time; never back.
    pub fn follow(&self, now: UnixSeconds) {
        let slot = SolanaModel::slot_at(now);
        self.solana.set_head(slot.max(self.solana.head()));
        for model in &self.evm {
            model.set_head(model.height_at(now).max(model.head()));
        }
    }

    /// Adds trades of a sample wallet right above its chain's head.
    pub fn arrive(&self, wallet: &DemoWallet, trades: u64) {
        if wallet.chain == SOLANA {
            self.solana.arrive(wallet.address, trades);
        } else if let Some(model) = self.evm(&wallet.chain) {
            model.arrive(wallet.address, trades);
        }
    }

    /// Registers a wallet on each chain whose history ends at the head and goes on as it moves.
    pub fn add_live(&self) -> Vec<DemoWallet> {
        let (name, trades) = LIVE;
        let head = self.solana.head();
        let plan = solana::WalletPlan {
            first: Some(head.saturating_sub(SolanaModel::slots_in(LIVE_SECONDS))),
            last: Some(head),
            live_every: Some(SolanaModel::slots_in(LIVE_SECONDS_BETWEEN)),
            ..solana::WalletPlan::trades(trades)
        };
        let address = self.solana.add_named(name, plan);
        let mut wallets = vec![DemoWallet { chain: SOLANA.to_owned(), name, trades, address }];
        for model in &self.evm {
            let head = model.head();
            let plan = evm::WalletPlan {
                first: Some(head.saturating_sub(model.blocks_in(LIVE_SECONDS))),
                last: Some(head),
                live_every: Some(model.blocks_in(LIVE_SECONDS_BETWEEN).max(1)),
                ..evm::WalletPlan::trades(trades)
            };
            let address = model.add_named(name, plan);
            wallets.push(DemoWallet { chain: model.slug().to_owned(), name, trades, address });
        }
        wallets
    }

    /// Registers a small and a large wallet on each chain; [`LARGE_TRADES_MAX`] bounds `large`.
    pub fn add_samples(&self, large: u64) -> Vec<DemoWallet> {
        let samples = [SMALL, (LARGE_NAME, large.min(LARGE_TRADES_MAX))];
        let mut wallets = Vec::new();
        for (name, trades) in samples {
            let live_every = (name == SMALL.0).then_some(SECONDS_BETWEEN * 20 / 9);
            let plan = solana::WalletPlan { live_every, ..solana::WalletPlan::trades(trades) };
            let address = self.solana.add_named(name, plan);
            wallets.push(DemoWallet { chain: SOLANA.to_owned(), name, trades, address });
        }
        for model in &self.evm {
            for (name, trades) in samples {
                let every = model.blocks_in(SECONDS_BETWEEN);
                let live_every = (name == SMALL.0).then_some(every);
                let plan = evm::WalletPlan { live_every, ..evm::WalletPlan::trades(trades) };
                let address = model.add_named(name, plan);
                wallets.push(DemoWallet { chain: model.slug().to_owned(), name, trades, address });
            }
        }
        wallets
    }
}
