//! The services of an endpoint: a chain behind one of its interfaces.

use std::collections::HashMap;

use http::Method;
use percent_encoding::percent_decode_str;

use super::evm::{self, EvmModel, ExplorerOptions, PortalOptions, tron};
use super::faults::{CallFaults, RpcCall};
use super::rpc::{CallReply, DemoError, HttpAnswer};
use super::solana::{self, NodeOptions, SolanaModel};

/// A chain and the interface to it.
#[derive(Debug)]
pub(super) enum Service {
    Solana(SolanaModel),
    Evm(EvmModel),
    Explorer(EvmModel),
    Portal(EvmModel),
    SolanaPortal(SolanaModel),
    Tron(EvmModel),
}

macro_rules! options {
    ($($variant:ident($kind:ty),)*) => {
        /// Options of each kind of endpoint.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Options { $($variant($kind),)* }

        $(impl From<$kind> for Options {
            fn from(options: $kind) -> Self {
                Self::$variant(options)
            }
        })*
    };
}

options! {
    Solana(NodeOptions),
    Evm(evm::NodeOptions),
    Explorer(ExplorerOptions),
    Portal(PortalOptions),
    Tron(tron::NodeOptions),
}

impl Options {
    /// Calls that one batch may hold.
    pub(super) fn batch_max(&self) -> usize {
        match self {
            Self::Solana(options) => options.batch_max,
            Self::Evm(options) => options.batch_max,
            Self::Tron(options) => options.node.batch_max,
            Self::Explorer(_) | Self::Portal(_) => 0,
        }
    }
}

/// One HTTP request, as far as answers depend on it.
#[derive(Debug, Clone)]
pub(super) struct DemoRequest<'a> {
    pub(super) method: Method,
    /// The path below the endpoint's own.
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
}

impl Service {
    pub(super) fn options(&self) -> Options {
        match self {
            Self::Solana(_) => NodeOptions::default().into(),
            Self::Evm(_) => evm::NodeOptions::default().into(),
            Self::Explorer(_) => ExplorerOptions::default().into(),
            Self::Portal(_) | Self::SolanaPortal(_) => PortalOptions::default().into(),
            Self::Tron(_) => tron::NodeOptions::default().into(),
        }
    }

    pub(super) fn is_rpc(&self, options: &Options, request: &DemoRequest<'_>) -> bool {
        let offered = self.is_tron() && matches!(options, Options::Tron(node) if node.json_rpc);
        matches!(self, Self::Solana(_) | Self::Evm(_))
            || offered && request.path.trim_matches('/') == "jsonrpc"
    }

    /// A node's error that asks for a retry.
    pub(super) fn busy(&self) -> DemoError {
        match self {
            Self::Solana(_) => DemoError {
                code: -32005,
                message: "Node is behind by 112 slots".to_owned(),
                data: Some("{\"numSlotsBehind\":112}".to_owned()),
            },
            Self::Tron(_) => DemoError::new(-32603, "Internal error"),
            Self::Evm(_) | Self::Explorer(_) | Self::Portal(_) | Self::SolanaPortal(_) => {
                DemoError::new(-32011, "no backend is currently healthy to serve traffic")
            }
        }
    }

    pub(super) fn call(&self, options: &Options, call: RpcCall<'_>) -> CallReply {
        match (self, options) {
            (Self::Solana(model), Options::Solana(node)) => solana::answer(model, node, call),
            (Self::Evm(model), Options::Evm(node)) => evm::answer(model, node, call),
            (Self::Tron(model), Options::Tron(node)) => tron::call(model, node, call),
            (_, _) => Err(DemoError::new(-32601, "Method not found")),
        }
    }

    pub(super) fn is_tron(&self) -> bool {
        matches!(self, Self::Tron(_))
    }

    /// The name under which a plain request is counted.
    pub(super) fn name(&self, request: &DemoRequest<'_>) -> String {
        if let Self::Explorer(_) = self {
            return parameters(request.query).remove("action").unwrap_or_default();
        }
        request.path.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// What a plain request is about: its account, where its query contains one, or a gateway's query.
    pub(super) fn subject(&self, request: &DemoRequest<'_>) -> String {
        match self {
            Self::Explorer(_) => parameters(request.query).remove("address").unwrap_or_default(),
            Self::Portal(_) => String::from_utf8_lossy(request.body).into_owned(),
            Self::Solana(_) | Self::Evm(_) | Self::SolanaPortal(_) | Self::Tron(_) => String::new(),
        }
    }

    pub(super) fn plain(
        &self,
        options: &Options,
        request: &DemoRequest<'_>,
        fault: CallFaults,
    ) -> HttpAnswer {
        let CallFaults { busy, answer_faults, .. } = fault;
        let &DemoRequest { path, query, body, .. } = request;
        match (self, options) {
            (Self::Explorer(_), Options::Explorer(_)) if busy => {
                let text = "Unexpected error, timeout or server too busy. Please try again later";
                HttpAnswer::json(200, &evm::refused(text))
            }
            (Self::Explorer(model), Options::Explorer(options)) => HttpAnswer::json(
                200,
                &evm::explorer(model, options, &parameters(query), answer_faults),
            ),
            (Self::Portal(_) | Self::SolanaPortal(_), _) if busy => {
                HttpAnswer::new(503, "text/plain", "try again later")
            }
            (Self::Portal(model), Options::Portal(options)) => {
                evm::portal(model, options, path, body, answer_faults)
            }
            (Self::SolanaPortal(model), Options::Portal(options)) => {
                solana::portal(model, options, path, body, answer_faults)
            }
            (Self::Tron(model), Options::Tron(options)) => {
                let body = serde_json::from_slice(body).unwrap_or_default();
                let asked = (parameters(query), body);
                let (status, answer) = tron::answer(model, options, path, asked, fault);
                HttpAnswer::json(status, &answer)
            }
            (_, _) => HttpAnswer::new(404, "text/plain", "Not found"),
        }
    }
}

/// The parameters of a query, decoded; invalid codes are kept.
fn parameters(query: &str) -> HashMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
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
