//! Calls to nodes: a pool of endpoints per chain with limits, retries, failover and health.
//!
//! Never writes anything. URLs and keys of nodes never reach an error, a log or a metric.

pub(crate) mod ask;
pub(crate) mod batch;
pub(crate) mod chain_check;
pub(crate) mod classify;
pub(crate) mod endpoint;
pub(crate) mod endpoint_set;
pub(crate) mod error;
pub(crate) mod exchange;
mod http;
pub(crate) mod jsonrpc;
pub(crate) mod limits;
mod named_rate;
pub(crate) mod own_failure;
mod policy;
pub(crate) mod pool;
pub(crate) mod priority;
mod rate;
mod refusals;
mod retry;
pub(crate) mod scheduler;
#[cfg(test)]
pub(crate) mod scripted;
mod secret;
pub(crate) mod selection;
mod send;
pub(crate) mod transport;

pub use ask::{Reply, ReplyClass};
pub(crate) use batch::CallAnswer;
pub use batch::{Call, CallResponse};
pub(crate) use chain_check::{ChainCheck, ChainChecks, CheckOutcome, checked};
pub use endpoint::{CallCounts, EndpointConfig, EndpointId, EndpointStatus};
pub(crate) use endpoint_set::EndpointSet;
pub use error::UpstreamError;
pub(crate) use error::{Result, unless_final, unless_refused};
pub use exchange::Ask;
pub use http::{HttpSetupError, HttpTransport};
pub(crate) use jsonrpc::{CallOutcome, RpcError};
pub use limits::PoolLimits;
pub use pool::{CallOptions, Pool};
pub use priority::Priority;
pub use rate::{RateAccount, RateShare};
pub use scheduler::Lane;
pub use secret::{SecretText, SecretUrl};
pub use transport::{HttpMethod, Request, Response, Transport, TransportError};
