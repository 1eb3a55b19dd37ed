//! Names of pool contracts: pairs of the Uniswap V2 kind are tokens of their own shares.

use std::collections::HashMap;
use std::sync::Arc;

use super::tokens::{Given, data};
use super::wire::eth_call;
use super::{EvmSource, abi};
use crate::domain::Address;
use crate::rpc::{CallOptions, Result, unless_refused};

impl EvmSource {
    /// Names by pool; pools without a name, or without an answer, are left out.
    pub(crate) async fn pool_names(
        &self,
        pools: &[Address],
        options: &CallOptions,
    ) -> Result<HashMap<Address, Arc<str>>> {
        let calls: Vec<_> = pools.iter().map(|pool| eth_call(pool.bytes(), &abi::NAME)).collect();
        let mut names = HashMap::new();
        for (of, answer) in pools.iter().zip(self.inner.pool.batch(&calls, options).await) {
            // A contract that reverts has no name.
            let answered = unless_refused(answer)?.map_or(Given::Nothing, |answer| data(&answer));
            if let Given::Value(name) = Given::read(&answered, abi::symbol) {
                names.insert(*of, name);
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::super::node_model::{NodeFault, nodes};
    use super::*;
    use crate::rpc::scripted::options;

    /// The pool 1 has a name, the pool 2 reverts, the pool 3 has no code.
    #[tokio::test(start_paused = true)]
    async fn pools_without_a_name_are_left_out() {
        let nodes = nodes(|_, _, params| {
            assert_eq!(params[0]["data"], "0x06fdde03");
            match &params[0]["to"].as_str().unwrap()[..4] {
                "0x01" => {
                    let word = |number: u8| format!("{number:064x}");
                    let text = format!("{:0<64}", hex::encode("Thena LPs"));
                    Ok(format!("0x{}{}{text}", word(32), word(9)).into())
                }
                "0x02" => Err(NodeFault::Rpc(3, "execution reverted")),
                _ => Ok("0x".into()),
            }
        });
        let pools: Vec<Address> = (1..=3).map(|byte| Address::Evm([byte; 20])).collect();
        let named = nodes.source(&["one"]).pool_names(&pools, &options()).await.unwrap();
        assert_eq!(named, HashMap::from([(pools[0], Arc::from("Thena LPs"))]));
    }
}
