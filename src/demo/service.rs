//! What an endpoint offers: a chain behind one of its interfaces.

use std::collections::HashMap;

use http::Method;
use serde_json::Value;

use super::evm::{self, EvmModel, ExplorerOptions, PortalOptions};
use super::faults::Twist;
use super::rpc::{Reply, RpcError};
use super::solana::{self, NodeOptions, SolanaModel};

/// A chain and the interface to it.
#[derive(Debug)]
pub(super) enum Service {
    Solana(SolanaModel),
    Evm(EvmModel),
    /// Account lists.
    Explorer(EvmModel),
    /// An open data gateway.
    Portal(EvmModel),
}

/// How an endpoint of each kind behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Options {
    Solana(NodeOptions),
    Evm(evm::NodeOptions),
    Explorer(ExplorerOptions),
    Portal(PortalOptions),
}

impl From<NodeOptions> for Options {
    fn from(options: NodeOptions) -> Self {
        Self::Solana(options)
    }
}

impl From<evm::NodeOptions> for Options {
    fn from(options: evm::NodeOptions) -> Self {
        Self::Evm(options)
    }
}

impl From<ExplorerOptions> for Options {
    fn from(options: ExplorerOptions) -> Self {
        Self::Explorer(options)
    }
}

impl From<PortalOptions> for Options {
    fn from(options: PortalOptions) -> Self {
        Self::Portal(options)
    }
}

impl Options {
    /// Calls that one batch may hold.
    pub(super) fn batch_max(&self) -> usize {
        match self {
            Self::Solana(options) => options.batch_max,
            Self::Evm(options) => options.batch_max,
            Self::Explorer(_) | Self::Portal(_) => 0,
        }
    }
}

/// One HTTP request, as far as answers depend on it.
#[derive(Debug, Clone)]
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    /// What stands behind the endpoint's own path.
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
}

/// An answer that is not JSON-RPC.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Service {
    pub(super) fn options(&self) -> Options {
        match self {
            Self::Solana(_) => NodeOptions::default().into(),
            Self::Evm(_) => evm::NodeOptions::default().into(),
            Self::Explorer(_) => ExplorerOptions::default().into(),
            Self::Portal(_) => PortalOptions::default().into(),
        }
    }

    pub(super) fn is_rpc(&self) -> bool {
        match self {
            Self::Solana(_) | Self::Evm(_) => true,
            Self::Explorer(_) | Self::Portal(_) => false,
        }
    }

    /// What a node says that wants to be asked again.
    pub(super) fn busy(&self) -> RpcError {
        match self {
            Self::Solana(_) => RpcError {
                code: -32005,
                message: "Node is behind by 112 slots".to_owned(),
                data: Some("{\"numSlotsBehind\":112}".to_owned()),
            },
            Self::Evm(_) | Self::Explorer(_) | Self::Portal(_) => {
                RpcError::new(-32011, "no backend is currently healthy to serve traffic")
            }
        }
    }

    pub(super) fn call(
        &self,
        options: &Options,
        method: &str,
        params: &[Value],
        twist: Twist,
    ) -> Reply {
        match (self, options) {
            (Self::Solana(model), Options::Solana(node)) => {
                solana::answer(model, node, solana::Call { method, params, twist })
            }
            (Self::Evm(model), Options::Evm(node)) => {
                evm::answer(model, node, method, params, twist)
            }
            (Self::Solana(_) | Self::Evm(_) | Self::Explorer(_) | Self::Portal(_), _) => {
                Err(RpcError::new(-32601, "Method not found"))
            }
        }
    }

    /// What a plain request is counted under.
    pub(super) fn name(&self, asked: &Asked<'_>) -> String {
        match self {
            Self::Explorer(_) => parameters(asked.query).remove("action").unwrap_or_default(),
            Self::Solana(_) | Self::Evm(_) | Self::Portal(_) => {
                asked.path.rsplit('/').next().unwrap_or_default().to_owned()
            }
        }
    }

    pub(super) fn plain(
        &self,
        options: &Options,
        asked: &Asked<'_>,
        busy: bool,
        twist: Twist,
    ) -> Plain {
        let plain = |status, content_type, body| Plain { status, content_type, body };
        match (self, options) {
            (Self::Explorer(model), Options::Explorer(options)) => {
                let answer = if busy {
                    evm::refused(
                        "Unexpected error, timeout or server too busy. Please try again later",
                    )
                } else {
                    evm::explorer(model, options, &parameters(asked.query), twist)
                };
                plain(200, "application/json", answer.to_string().into_bytes())
            }
            (Self::Portal(_), _) if busy => plain(503, "text/plain", b"try again later".to_vec()),
            (Self::Portal(model), Options::Portal(options)) => {
                let (status, body) = evm::portal(model, options, asked.path, asked.body, twist);
                plain(status, "application/x-ndjson", body)
            }
            (Self::Solana(_) | Self::Evm(_) | Self::Explorer(_) | Self::Portal(_), _) => {
                plain(404, "text/plain", b"Not found".to_vec())
            }
        }
    }
}

/// The parameters of a query, decoded.
fn parameters(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decoded = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    });
    decoded.collect()
}

/// Undoes percent-encoding (RFC 3986); what is no such code stays.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.first_chunk::<2>().filter(|_| *first == b'%');
        let mut byte = [*first];
        let coded = code.is_some_and(|code| hex::decode_to_slice(code, &mut byte).is_ok());
        bytes.extend(byte);
        rest = if coded { behind.get(2..).unwrap_or_default() } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let read = parameters("module=account&action=tx%6Cist&x=%zz&flag");
        let get = |name: &str| read.get(name).map(String::as_str);
        assert_eq!(get("action"), Some("txlist"));
        assert_eq!((get("x"), get("flag"), get("y")), (Some("%zz"), Some(""), None));
    }
}
