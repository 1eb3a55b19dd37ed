//! The endpoints of a list, and whose transactions it lists.

use std::sync::Arc;

use super::abilities::Abilities;
use super::descent::ListFault;
use super::sent_witness::SentWitness;
use super::subject::Subject;
use crate::domain::Height;
use crate::rpc::{CallOptions, EndpointId, Lane, Pool, UpstreamError};

#[derive(Debug, Clone)]
pub(super) struct ListClient {
    pub(super) pool: Pool,
    pub(super) subject: Subject,
    pub(super) lane: Lane,
    pub(super) abilities: Arc<Abilities>,
    /// Nodes that return the sent count, if the chain has one.
    pub(super) counting: Option<Pool>,
    /// Nodes, which show what must be listed.
    pub(super) nodes: Option<Pool>,
}

impl ListClient {
    pub(super) fn options(&self) -> CallOptions {
        CallOptions::new(self.lane.clone())
    }

    pub(super) fn on(&self, endpoint: EndpointId) -> CallOptions {
        CallOptions { on: Some(endpoint), ..self.options() }
    }

    /// A witness that compares the list with the sent count, if nodes return it.
    pub(super) fn witness(&self, range: (Height, Height)) -> Option<SentWitness> {
        let nodes = self.counting.clone()?;
        Some(SentWitness::new(nodes, &self.subject, self.lane.clone(), range))
    }

    pub(super) fn unreadable(&self, by: EndpointId, list: &str, fault: ListFault) -> UpstreamError {
        let message = format!("{list}: {fault}");
        UpstreamError::Rpc { endpoint: self.pool.label(by), code: 0, message }
    }
}
