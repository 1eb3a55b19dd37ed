//! Nodes in this process that answer each call as a test says.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::lists_model::{Epoch, subject};
use super::{Discovery, EvmLimits, EvmParts, EvmSource};
use crate::rpc::endpoint::EndpointConfig;
use crate::rpc::limits::PoolLimits;
use crate::rpc::pool::Pool;
use crate::rpc::transport::{Request, Response, Transport, TransportError};

/// An error in place of a result.
#[derive(Debug, Clone, Copy)]
pub(super) enum NodeFault {
    Rpc(i64, &'static str),
    /// No answer to the whole request.
    Broken,
}

pub(super) const NO_METHOD: NodeFault = NodeFault::Rpc(-32601, "the method does not exist");
pub(super) const PRUNED: NodeFault = NodeFault::Rpc(-32000, "missing trie node: state is pruned");

/// By host, method and parameters.
type Answer = dyn Fn(&str, &str, &Value) -> Result<Value, NodeFault> + Send + Sync;

pub(super) struct ScriptedNodes {
    answer: Box<Answer>,
    /// Methods that were asked for.
    asked: Mutex<Vec<String>>,
}

impl fmt::Debug for ScriptedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedNodes").finish_non_exhaustive()
    }
}

impl ScriptedNodes {
    pub(super) fn new(
        answer: impl Fn(&str, &str, &Value) -> Result<Value, NodeFault> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { answer: Box::new(answer), asked: Mutex::default() })
    }

    pub(super) fn asked(&self, method: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == method).count()
    }

    pub(super) fn pool(self: &Arc<Self>, hosts: &[&str]) -> Pool {
        self.pool_with(hosts, PoolLimits::default())
    }

    /// One call a request, one after another.
    pub(super) fn pool_of_single_calls(self: &Arc<Self>, hosts: &[&str]) -> Pool {
        let limits =
            PoolLimits { batch_default: 1, concurrency_default: 1, ..PoolLimits::default() };
        self.pool_with(hosts, limits)
    }

    fn pool_with(self: &Arc<Self>, hosts: &[&str], limits: PoolLimits) -> Pool {
        let transport: Arc<dyn Transport> = self.clone();
        let config = |host: &&str| EndpointConfig::new(format!("http://{host}/"));
        let endpoints = hosts.iter().map(config).collect();
        Pool::new(endpoints, transport, limits, Arc::new(Epoch), 1)
    }

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

    fn result(&self, host: &str, call: &Value) -> Result<Value, TransportError> {
        let method = call["method"].as_str().unwrap();
        self.asked.lock().unwrap().push(method.to_owned());
        let id = &call["id"];
        match (self.answer)(host, method, &call["params"]) {
            Ok(result) => Ok(json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Err(NodeFault::Rpc(code, message)) => {
                Ok(json!({"id": id, "error": {"code": code, "message": message}}))
            }
            Err(NodeFault::Broken) => Err(TransportError::Broken("reset".to_owned())),
        }
    }
}

impl Transport for ScriptedNodes {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let url = request.url.expose().trim_start_matches("http://");
            let host = url.trim_end_matches('/');
            let call: Value = serde_json::from_slice(&request.body).unwrap();
            let body = match call.as_array() {
                Some(calls) => {
                    let all = calls.iter().map(|call| self.result(host, call));
                    json!(all.collect::<Result<Vec<Value>, _>>()?)
                }
                None => self.result(host, &call)?,
            };
            Ok(Response { status: 200, retry_after: None, body: body.to_string().into() })
        })
    }
}
