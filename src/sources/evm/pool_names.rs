//! The name that a pool's own contract has: pairs of Uniswap V2's kind are tokens of their shares.

use std::collections::HashMap;
use std::sync::Arc;

use super::abi;
use super::tokens::{Data, Given, call, data};
use crate::domain::Address;
use crate::rpc::error::UpstreamError;
use crate::rpc::pool::{CallOptions, Pool};
use crate::rpc::scheduler::Lane;

/// Names by pool; a pool without a name, or of which none is answered, is left out.
pub(super) async fn names(
    pool: &Pool,
    pools: &[Address],
    lane: &Lane,
) -> Result<HashMap<Address, Arc<str>>, UpstreamError> {
    let options = CallOptions::new(lane.clone());
    let calls: Vec<_> = pools.iter().map(|pool| call(pool.bytes(), &abi::NAME)).collect();
    let mut names = HashMap::new();
    for (of, answer) in pools.iter().zip(pool.batch(&calls, &options).await) {
        let answered: Data = match answer {
            Ok(answer) => data(&answer),
            // It reverts: it has none.
            Err(UpstreamError::Rpc { .. }) => Given::Nothing,
            Err(error) => return Err(error),
        };
        if let Given::Value(name) = Given::read(&answered, abi::symbol) {
            names.insert(*of, name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use serde_json::{Value, json};

    use super::super::lists_model::{Epoch, lane};
    use super::*;
    use crate::rpc::endpoint::EndpointConfig;
    use crate::rpc::limits::PoolLimits;
    use crate::rpc::transport::{Request, Response, Transport, TransportError};

    /// The pool 1 has a name, the pool 2 reverts, the pool 3 has no code.
    #[derive(Debug)]
    struct Pools;

    impl Transport for Pools {
        fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
            let asked: Value = serde_json::from_slice(&request.body).unwrap();
            let answer = |call: &Value| {
                let target = call["params"][0]["to"].as_str().unwrap();
                assert_eq!(call["params"][0]["data"], "0x06fdde03");
                let id = &call["id"];
                match &target[..4] {
                    "0x01" => {
                        let word = |number: u8| format!("{number:064x}");
                        let text = format!("{:0<64}", hex::encode("Thena LPs"));
                        json!({"id": id, "result": format!("0x{}{}{text}", word(32), word(9))})
                    }
                    "0x02" => json!({
                        "id": id, "error": {"code": 3, "message": "execution reverted"},
                    }),
                    _ => json!({"id": id, "result": "0x"}),
                }
            };
            let body = match asked.as_array() {
                Some(calls) => Value::from(calls.iter().map(answer).collect::<Vec<_>>()),
                None => answer(&asked),
            };
            let body = body.to_string().into();
            Box::pin(async { Ok(Response { status: 200, retry_after: None, body }) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pools_without_a_name_are_left_out() {
        let endpoints = vec![EndpointConfig::new("http://one/")];
        let pool = Pool::new(endpoints, Arc::new(Pools), PoolLimits::default(), Arc::new(Epoch), 1);
        let pools: Vec<Address> = (1..=3).map(|byte| Address::Evm([byte; 20])).collect();
        let named = names(&pool, &pools, &lane()).await.unwrap();
        assert_eq!(named, HashMap::from([(pools[0], Arc::from("Thena LPs"))]));
    }
}
