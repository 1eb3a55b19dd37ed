//! The JSON-RPC methods of a node, and their parameters. Answers are written directly into bytes.

use serde_json::{Value, json};

use super::history::Spec;
use super::keys::ModelKey;
use super::model::{ListSubject, SolanaModel};
use super::tokens::DemoToken;
use super::{base58_text, references, slots, wire};
use crate::demo::faults::{AnswerFaults, RpcCall};
use crate::demo::rpc::{CallReply, DemoError, set};
use crate::demo::timeline::Class;
use crate::domain::{Height, defaults};

const ACCOUNTS_MAX: usize = 100;
const STATUSES_MAX: usize = 256;
/// Slots whose transactions a node knows without a search of its history.
const RECENT_SLOTS: u64 = 150;
const BLOCKS_MAX: u64 = 500_000;
/// At most so many transactions of a block are generated next to those of the model's wallets.
const FILLERS_MAX: u32 = 8_192;

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct NodeOptions {
        /// Slots by which this node's head lags behind the model's.
        pub lag: u64 = 0,
        /// Slots by which its lists lag behind its own head, also where `minContextSlot` demands more.
        pub list_lag: u64 = 0,
        /// Signatures in a page at most, also where more are asked for.
        pub list_page_max: u64 = 1_000,
        /// First block that the node keeps; 0 keeps all.
        pub first_available: Height = 0,
        /// Maximum size of a batch; a larger one gets one error object.
        pub batch_max: usize = 100,
        /// Whether `getTransactionsForAddress` is available.
        pub transactions_for_address: bool = false,
        /// Its page's length, its index's first slot, and whether it finds those that name token
        /// accounts alone.
        pub full_page_max: u64 = 100,
        pub full_pages_from: Height = 0,
        pub full_pages_by_owner: bool = true,
        /// Slots by which that index lags behind the node's head.
        pub full_pages_lag: u64 = 0,
        /// Whether transactions contain their position in the block.
        pub transaction_index: bool = true,
        pub genesis_hash: String = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d".to_owned(),
    }
}

pub(in crate::demo) fn answer(
    model: &SolanaModel,
    node: &NodeOptions,
    RpcCall { method, params, answer_faults }: RpcCall<'_>,
) -> CallReply {
    let head = model.head().saturating_sub(node.lag).saturating_sub(answer_faults.head_back);
    // A node is at a slot that has a block.
    let head = slots::at_or_below(head);
    NodeContext { model, node, head, params, answer_faults }.answer(method)
}

/// The context in which a node answers one call.
pub(super) struct NodeContext<'a> {
    pub(super) model: &'a SolanaModel,
    pub(super) node: &'a NodeOptions,
    /// The finalized head of this answer.
    pub(super) head: Height,
    pub(super) params: &'a [Value],
    pub(super) answer_faults: AnswerFaults,
}

impl NodeContext<'_> {
    fn answer(&self, method: &str) -> CallReply {
        match method {
            // What wallets and libraries ask a node first.
            "getHealth" => Ok(b"\"ok\"".to_vec()),
            "getVersion" => Ok(b"{\"feature-set\":3640012085,\"solana-core\":\"3.0.6\"}".to_vec()),
            "getBlockHeight" => plain(slots::block_height(self.selected_head()?)),
            "getGenesisHash" => Ok(format!("\"{}\"", self.node.genesis_hash).into_bytes()),
            "getSlot" => plain(self.selected_head()?),
            "getLatestBlockhash" => self.latest_blockhash(),
            "getFirstAvailableBlock" => plain(self.node.first_available),
            "getBlockTime" => self.block_time(),
            "getSignaturesForAddress" => self.signatures(),
            "getTransaction" => self.transaction(),
            "getSignatureStatuses" => self.signature_statuses(),
            "getAccountInfo" => {
                let key = key(self.params, 0)?;
                at_slot(self.head, &json!(self.model.account(&key, self.head)))
            }
            "getMultipleAccounts" => self.multiple_accounts(),
            "getTokenAccountsByOwner" => self.token_accounts(),
            "getBlock" => self.block(),
            "getBlocksWithLimit" => self.blocks_with_limit(),
            "getTransactionsForAddress" if self.node.transactions_for_address => {
                self.transactions_for_address()
            }
            _ => Err(DemoError::new(-32601, "Method not found")),
        }
    }

    /// The head that the options in the first parameter select.
    fn selected_head(&self) -> Result<Height, DemoError> {
        let options = ParamOptions(self.params.first());
        let head = self.head.saturating_add(options.commitment()?);
        options.min_context_slot(head)?;
        Ok(head)
    }

    fn check_slot(&self, slot: Height) -> Result<(), DemoError> {
        if slot < self.node.first_available {
            let first = format!("First available block: {}", self.node.first_available);
            let text = format!("Block {slot} cleaned up, does not exist on node. {first}");
            return Err(DemoError::new(-32001, text));
        }
        if slot > self.head {
            return Err(DemoError::new(-32004, format!("Block not available for slot {slot}")));
        }
        if !slots::has_block(slot) {
            let why = "was skipped, or missing due to ledger jump to recent snapshot";
            return Err(DemoError::new(-32007, format!("Slot {slot} {why}")));
        }
        Ok(())
    }

    fn latest_blockhash(&self) -> CallReply {
        let slot = slots::at_or_below(self.selected_head()?);
        let last_valid = slots::block_height(slot).saturating_add(150);
        let hash = base58_text(&self.model.block_hash(slot));
        at_slot(slot, &json!({"blockhash": hash, "lastValidBlockHeight": last_valid}))
    }

    fn block_time(&self) -> CallReply {
        let slot = number(self.params, 0)?;
        self.check_slot(slot)?;
        plain(slots::time(slot))
    }

    fn block(&self) -> CallReply {
        let slot = number(self.params, 0)?;
        let options = ParamOptions(self.params.get(1));
        at_least_confirmed(options)?;
        self.check_slot(slot)?;
        let signatures = match options.text("transactionDetails") {
            Some("signatures") => Some(self.block_signatures(slot)),
            Some("none" | "accounts") => None,
            _ => {
                let known = "accounts, signatures and none";
                let text = format!("this node answers transactionDetails {known} only");
                return Err(DemoError::invalid(text));
            }
        };
        let parent = slots::at_or_below(slot.saturating_sub(1));
        let hash = |slot| base58_text(&self.model.block_hash(slot));
        let mut block = json!({
            "blockHeight": slots::block_height(slot), "blockTime": slots::time(slot),
            "blockhash": hash(slot), "parentSlot": parent, "previousBlockhash": hash(parent),
        });
        if let Some(signatures) = signatures {
            let texts = signatures.iter().map(|signature| base58_text(signature));
            set(&mut block, "signatures", texts.collect::<Vec<_>>());
        }
        if options.text("transactionDetails") == Some("accounts") {
            set(&mut block, "transactions", references::swaps(self.model.seed(), slot));
        }
        Ok(block.to_string().into_bytes())
    }

    /// The signatures of a block in their order; positions without a known wallet are generated.
    fn block_signatures(&self, slot: Height) -> Vec<[u8; 64]> {
        let fork = self.model.fork(slot);
        let mut found: Vec<(u32, [u8; 64])> = Vec::new();
        for wallet in self.model.wallets() {
            let top = wallet.count_at(slot);
            let of_slot = (0..top).rev().map_while(|number| {
                let spot = wallet.spot(number).filter(|spot| spot.height == slot)?;
                Some((spot.index, self.model.signature(&wallet.address, number, fork)))
            });
            found.extend(of_slot);
        }
        found.sort_unstable();
        let size = found.last().map_or(12, |last| last.0 + 5).min(FILLERS_MAX);
        let mut found = found.into_iter().peekable();
        let mut signatures = Vec::new();
        for index in 0..size {
            let before = signatures.len();
            while let Some((_, signature)) = found.next_if(|(at, _)| *at == index) {
                signatures.push(signature);
            }
            if signatures.len() == before {
                signatures.push(self.model.filler(slot, index));
            }
        }
        signatures
    }

    fn blocks_with_limit(&self) -> CallReply {
        let (first, limit) = (number(self.params, 0)?, number(self.params, 1)?);
        if limit > BLOCKS_MAX {
            return Err(DemoError::invalid(format!("Limit too large; max {BLOCKS_MAX}")));
        }
        let (first, limit) =
            (first.max(self.node.first_available), usize::try_from(limit).unwrap_or(usize::MAX));
        let slots = (first..=self.head).filter(|slot| slots::has_block(*slot)).take(limit);
        let mut out = Vec::new();
        wire::list(&mut out, slots, super::number);
        Ok(out)
    }

    fn transaction(&self) -> CallReply {
        let signature = signature(string(self.params, 0)?)?;
        let options = ParamOptions(self.params.get(1));
        let head = self.head.saturating_add(at_least_confirmed(options)?);
        if !matches!(options.text("encoding"), None | Some("json")) {
            return Err(DemoError::invalid("this node answers encoding json only"));
        }
        let found = self.model.find(&signature).filter(|(_, _, spot, _)| {
            spot.height <= head && spot.height >= self.node.first_available
        });
        let Some((wallet, number, spot, _)) = found else { return Ok(b"null".to_vec()) };
        Self::check_version(&self.model.spec(&wallet, number, spot), options)?;
        let mut out = Vec::with_capacity(16 * 1024);
        self.model.write_transaction(&mut out, &wallet, number, self.node.transaction_index);
        Ok(out)
    }

    fn signature_statuses(&self) -> CallReply {
        let ids = list(self.params, STATUSES_MAX)?;
        let ids = (0..ids.len()).map(|at| signature(string(ids, at)?));
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        let options = ParamOptions(self.params.get(1));
        let searches = options.get("searchTransactionHistory") == Some(&Value::Bool(true));
        let recent = if searches { 0 } else { self.head.saturating_sub(RECENT_SLOTS) };
        let known = self.node.first_available.max(recent)..=self.head;
        let status = |id: &[u8; 64]| {
            let (wallet, number, spot, _) = self.model.find(id)?;
            let error = json!({"InstructionError": [0, {"Custom": 1}]});
            let err = matches!(wallet.class(number), Class::Failed(_)).then_some(error);
            known.contains(&spot.height).then(|| {
                json!({"slot": spot.height, "confirmations": null, "err": err,
                    "confirmationStatus": "finalized"})
            })
        };
        let statuses: Vec<Option<Value>> = ids.iter().map(status).collect();
        at_slot(self.head, &json!(statuses))
    }

    /// `maxSupportedTransactionVersion` does not count legacy transactions.
    pub(super) fn check_version(spec: &Spec, options: ParamOptions<'_>) -> Result<(), DemoError> {
        let Some(version) = spec.version else { return Ok(()) };
        let highest = options.number("maxSupportedTransactionVersion");
        if highest.is_some_and(|highest| highest >= u64::from(version)) {
            return Ok(());
        }
        let text = format!(
            "Transaction version ({version}) is not supported by the requesting client. Please try \
             the request again with the following configuration parameter: \
             \"maxSupportedTransactionVersion\": {version}"
        );
        Err(DemoError::new(-32015, text))
    }

    fn multiple_accounts(&self) -> CallReply {
        let keys = list(self.params, ACCOUNTS_MAX)?;
        let keys = (0..keys.len()).map(|at| key(keys, at)).collect::<Result<Vec<_>, _>>()?;
        at_slot(self.head, &keys.iter().map(|key| self.model.account(key, self.head)).collect())
    }

    fn token_accounts(&self) -> CallReply {
        let owner = key(self.params, 0)?;
        let filter = ParamOptions(self.params.get(1));
        let options = ParamOptions(self.params.get(2));
        options.min_context_slot(self.head)?;
        let program = filter.text("programId");
        let program = program.ok_or_else(|| DemoError::invalid("Invalid param: Invalid"))?;
        let parsed = options.text("encoding") == Some("jsonParsed");
        let fits = |(token, _): &(DemoToken, u64)| token.program().text() == program;
        let Some(ListSubject::Wallet(wallet)) = self.model.subject(&owner) else {
            return at_slot(self.head, &json!([]));
        };
        let held = self.model.holdings(&wallet, wallet.count_at(self.head)).into_iter();
        let shown = held.filter(fits).map(|held| self.model.held_account(&wallet, held, parsed));
        at_slot(self.head, &shown.collect())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the last line of several methods")]
fn at_slot(slot: Height, value: &Value) -> CallReply {
    let context = json!({"apiVersion": "3.0.6", "slot": slot});
    Ok(json!({"context": context, "value": value}).to_string().into_bytes())
}

#[expect(clippy::unnecessary_wraps, reason = "an arm of the method table")]
fn plain(value: u64) -> CallReply {
    Ok(value.to_string().into_bytes())
}

// Parameters, and the errors of nodes for invalid ones.

pub(super) fn key(params: &[Value], at: usize) -> Result<ModelKey, DemoError> {
    let text = string(params, at)?;
    let mut key = [0; 32];
    let wrong = || match bs58::decode(text).into_vec() {
        Ok(_) => DemoError::invalid("Invalid param: WrongSize"),
        Err(_) => DemoError::invalid("Invalid param: Invalid"),
    };
    five8::decode_32(text.as_bytes(), &mut key).map(|()| key).map_err(|_| wrong())
}

/// The first parameter, of so many elements at most.
fn list(params: &[Value], most: usize) -> Result<&[Value], DemoError> {
    let all = params.first().and_then(Value::as_array);
    let all = all.ok_or_else(|| DemoError::invalid("invalid type: expected a sequence"))?;
    if all.len() > most {
        return Err(DemoError::invalid(format!("Too many inputs provided; max {most}")));
    }
    Ok(all)
}

pub(super) fn signature(text: &str) -> Result<[u8; 64], DemoError> {
    let mut bytes = [0; 64];
    let decoded = five8::decode_64(text.as_bytes(), &mut bytes);
    decoded.map(|()| bytes).map_err(|_| DemoError::invalid("Invalid param: WrongSize"))
}

pub(super) fn string(params: &[Value], at: usize) -> Result<&str, DemoError> {
    params.get(at).and_then(Value::as_str).ok_or_else(|| {
        DemoError::invalid("invalid type: expected a string, or the parameter is missing")
    })
}

pub(super) fn number(params: &[Value], at: usize) -> Result<u64, DemoError> {
    let number = params.get(at).and_then(Value::as_u64);
    number.ok_or_else(|| DemoError::invalid("invalid type: expected u64"))
}

/// The options object of a call, at any parameter position.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParamOptions<'a>(pub(super) Option<&'a Value>);

impl<'a> ParamOptions<'a> {
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.get(name)?.as_str()
    }

    pub(super) fn number(self, name: &str) -> Option<u64> {
        self.get(name)?.as_u64()
    }

    /// How far above the finalized head the commitment is, in slots.
    pub(super) fn commitment(self) -> Result<u64, DemoError> {
        match self.text("commitment") {
            None | Some("finalized") => Ok(0),
            Some("confirmed") => Ok(20),
            Some("processed") => Ok(32),
            Some(other) => Err(DemoError::invalid(format!("unknown variant `{other}`"))),
        }
    }

    pub(super) fn min_context_slot(self, head: Height) -> Result<(), DemoError> {
        match self.number("minContextSlot") {
            Some(least) if least > head => Err(DemoError {
                code: -32016,
                message: "Minimum context slot has not been reached".to_owned(),
                data: Some(format!("{{\"contextSlot\":{head}}}")),
            }),
            _ => Ok(()),
        }
    }
}

/// For methods that require at least `confirmed`.
pub(super) fn at_least_confirmed(options: ParamOptions<'_>) -> Result<u64, DemoError> {
    if options.text("commitment") == Some("processed") {
        let message = "Method does not support commitment below `confirmed`";
        return Err(DemoError::invalid(message));
    }
    options.commitment()
}
