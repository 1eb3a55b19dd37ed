//! An endpoint of a world, and what it is for.

use blotter::demo::DemoNode;
use blotter::demo::evm::{ExplorerOptions, NodeOptions, PortalOptions, tron};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Solana,
    /// An EVM node, as it is when nothing is wrong with it.
    Rpc(NodeOptions),
    Explorer(ExplorerOptions),
    Portal(PortalOptions),
    Tron(tron::NodeOptions),
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) role: Role,
    pub(super) node: DemoNode,
}

impl Peer {
    pub(super) fn new(role: Role, node: DemoNode) -> Self {
        let peer = Self { role, node };
        peer.make_well();
        peer
    }

    /// Its options are those of an endpoint that works. A Solana node's are set elsewhere.
    pub(super) fn make_well(&self) {
        match &self.role {
            Role::Solana => {}
            Role::Rpc(options) => self.node.set_options(options.clone()),
            Role::Explorer(options) => self.node.set_options(options.clone()),
            Role::Portal(options) => self.node.set_options(options.clone()),
            Role::Tron(options) => self.node.set_options(options.clone()),
        }
    }

    pub(super) fn url(&self, at: usize) -> String {
        let host = self.host(at);
        match self.role {
            Role::Solana | Role::Rpc(_) => format!("http://{host}/planted-secret"),
            Role::Explorer(_) => format!("http://{host}?apikey=planted-secret"),
            Role::Portal(_) | Role::Tron(_) => format!("http://{host}"),
        }
    }

    pub(super) fn host(&self, at: usize) -> String {
        match self.role {
            Role::Explorer(_) => format!("node{at}/api"),
            Role::Solana | Role::Rpc(_) | Role::Portal(_) | Role::Tron(_) => format!("node{at}"),
        }
    }
}
