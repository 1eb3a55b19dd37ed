//! Which endpoints list a wallet's transactions, and for whom they are asked.

use std::sync::Arc;

use super::abilities::Abilities;
use super::descent::Fault;
use super::sent_witness::SentWitness;
use super::subject::Subject;
use crate::domain::Height;
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::{CallOptions, Pool};
use crate::rpc::scheduler::Lane;

#[derive(Debug, Clone)]
pub(super) struct ListClient {
    pub(super) pool: Pool,
    pub(super) subject: Subject,
    pub(super) lane: Lane,
    pub(super) abilities: Arc<Abilities>,
    /// Nodes that count what the wallet sent, where the chain counts it.
    pub(super) counting: Option<Pool>,
}

impl ListClient {
    pub(super) fn options(&self) -> CallOptions {
        CallOptions::new(self.lane.clone())
    }

    pub(super) fn on(&self, endpoint: EndpointId) -> CallOptions {
        CallOptions { on: Some(endpoint), ..self.options() }
    }

    /// What the wallet sent is held against what nodes count, where there are such.
    pub(super) fn witness(&self, range: (Height, Height)) -> Option<SentWitness> {
        let nodes = self.counting.clone()?;
        Some(SentWitness::new(nodes, &self.subject, self.lane.clone(), range))
    }

    /// The error of a list that cannot be read on.
    pub(super) fn unreadable(&self, by: EndpointId, list: &str, fault: Fault) -> UpstreamError {
        let message = format!("{list}: {fault}");
        UpstreamError::Rpc { endpoint: self.pool.label(by), code: 0, message }
    }
}
