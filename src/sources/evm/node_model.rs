//! Nodes in this process that answer each call as a test says.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::lists_model::subject;
use super::{Discovery, EvmLimits, EvmParts, EvmSource};
use crate::rpc::scripted::rpc;
pub(super) use crate::rpc::scripted::{NO_METHOD, NodeFault, ScriptedNodes};

pub(super) const PRUNED: NodeFault = NodeFault::Rpc(-32000, "missing trie node: state is pruned");

/// They answer by host, method and parameters.
pub(super) fn nodes(
    answer: impl Fn(&str, &str, &Value) -> Result<Value, NodeFault> + Send + Sync + 'static,
) -> Arc<ScriptedNodes> {
    ScriptedNodes::after(Duration::from_millis(20), move |(host, _, body)| {
        rpc(body, |method, params| answer(host, method, params))
    })
}

impl ScriptedNodes {
    /// Ethereum by these nodes alone.
    pub(super) fn source(self: &Arc<Self>, hosts: &[&str]) -> EvmSource {
        let subject = subject();
        EvmSource::new(EvmParts {
            chain: (*subject.chain).clone(),
            registry: subject.registry,
            rpc: self.pool(hosts),
            explorer: None,
            portal: None,
            discovery: vec![Discovery::Logs],
            limits: EvmLimits::default(),
        })
    }
}
