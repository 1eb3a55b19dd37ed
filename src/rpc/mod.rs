//! Calls to nodes: a pool of endpoints per chain with limits, retries, failover and health.
//!
//! Never writes anything. URLs and keys of nodes never reach an error, a log or a metric.

mod ask;
mod batch;
mod chain_check;
mod chain_recheck;
pub(crate) mod classify;
mod endpoint;
mod endpoint_set;
mod error;
mod http;
pub(crate) mod jsonrpc;
mod limits;
mod named_rate;
mod own_failure;
mod policy;
mod pool;
mod priority;
mod rate;
mod refusals;
mod retry;
mod scheduler;
#[cfg(test)]
pub(crate) mod scripted;
mod secret;
pub(crate) mod selection;
mod send;
mod transport;

pub use ask::{Reply, ReplyClass};
pub(crate) use batch::CallAnswer;
pub use batch::CallResponse;
pub(crate) use chain_check::{ChainCheck, ChainChecks, CheckOutcome, checked};
pub use endpoint::{CallCounts, EndpointConfig, EndpointId, EndpointStatus};
pub(crate) use endpoint_set::EndpointSet;
pub use error::UpstreamError;
pub(crate) use error::{Result, unless_final, unless_refused};
pub use http::{HttpSetupError, HttpTransport};
pub use jsonrpc::Call;
pub(crate) use jsonrpc::{CallOutcome, RpcError};
pub use limits::PoolLimits;
pub(crate) use own_failure::{OwnFailure, is_answered};
pub use pool::{CallOptions, Pool};
pub use priority::Priority;
pub use rate::{RateAccount, RateShare};
pub use scheduler::Lane;
pub use secret::{SecretText, SecretUrl};
pub use transport::{Ask, HttpMethod, Request, Response, Transport, TransportError};
