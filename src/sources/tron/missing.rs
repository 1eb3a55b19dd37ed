//! A listed transaction that is not found by its id may still be found by its block.

use serde_json::json;
use serde_json::value::RawValue;

use super::TronSource;
use super::blocks::BLOCK_MILLIS;
use super::fetch::{Fetched, want_sent};
use super::info_answers::InfoAnswers;
use super::seen::FAILED_ANSWERS;
use super::timeline::Taken;
use super::wire;
use crate::decode::evm::{Account, Word};
use crate::domain::Height;
use crate::rpc::endpoint::EndpointId;
use crate::rpc::error::{Result, UpstreamError, unless_final};
use crate::rpc::pool::CallOptions;

const INFOS: [&str; 2] =
    ["walletsolidity/gettransactioninfobyblocknum", "wallet/gettransactioninfobyblocknum"];
/// Answers without it, after which no node has it.
const TRIES: u32 = 3;

impl TronSource {
    /// Fetches by the block in which the transaction is listed; `Fetched::Lost` if that fails too.
    pub(super) async fn fetch_by_block(
        &self,
        listed: &Taken,
        wallet: &Account,
        options: &CallOptions,
    ) -> Result<Fetched> {
        let (id, seen) = (listed.key.1, &listed.seen);
        let height = match listed.height {
            Some(height) => height,
            None => self.height_at(listed.key.0.0, options).await?,
        };
        let (mut options, mut failures) = (options.clone(), 0);
        let mut said_failed = seen.sent.as_ref().map_or(0, |sent| sent.failures);
        // The list's report that it failed is one answer, and the block's transaction another.
        let given = seen.sent.as_ref().filter(|sent| sent.failures == 0);
        let (mut answers, mut givers) = (None::<InfoAnswers<'_>>, self.internal_givers());
        for _ in 0..TRIES {
            let Some((info, by)) = self.info_in_block(height, &id, &mut options).await? else {
                continue;
            };
            let tx = match given.map(|sent| sent.json.clone()) {
                Some(json) => Some(json),
                None => self.transaction_in_block(height, &id, &mut options).await?,
            };
            let Some(tx) = tx else { continue };
            let Ok(Some(mut sent)) = wire::transaction(tx.as_bytes(), &id, wallet) else {
                continue;
            };
            if sent.failures > 0 {
                said_failed += 1;
                sent.failures = said_failed;
            }
            if !listed.is_probe && !want_sent(&listed.seen, &sent) {
                return Ok(Fetched::Unwanted);
            }
            let info = (info.get().as_bytes(), by);
            let listed = (sent.json.as_str(), wallet, seen);
            match self.joined_with_info(id, listed, info, &options).await? {
                Fetched::Missing => {}
                Fetched::Transaction(tx) => {
                    let new = || InfoAnswers::new(wallet, seen, sent.kind);
                    let answers = answers.get_or_insert_with(new);
                    self.add_info(answers, tx, by);
                    // Inner calls that it lacks may come from an endpoint that has not answered.
                    givers.retain(|id| *id != by);
                    answers.is_refused = !givers.is_empty();
                    if !answers.lacks_calls() || givers.is_empty() {
                        break;
                    }
                }
                _ if answers.is_some() => {}
                Fetched::Failed(_) if failures + 1 < FAILED_ANSWERS => failures += 1,
                fetched @ (Fetched::Failed(_) | Fetched::Unwanted | Fetched::Lost(_)) => {
                    return Ok(fetched);
                }
            }
        }
        let best = answers.and_then(InfoAnswers::into_best);
        Ok(best.map_or(Fetched::Lost(height), Fetched::Transaction))
    }

    async fn info_in_block(
        &self,
        height: Height,
        id: &Word,
        options: &mut CallOptions,
    ) -> Result<Option<(Box<RawValue>, EndpointId)>> {
        let answer = self.post_solid(INFOS, &json!({"num": height}), options).await;
        let Some(reply) = unless_final(answer)? else { return Ok(None) };
        options.avoid = Some(reply.endpoint);
        let list: Option<&RawValue> = serde_json::from_slice(&reply.body).ok();
        let info = list.and_then(|list| wire::of_block(list, "id", id));
        Ok(info.map(|info| (info, reply.endpoint)))
    }

    async fn transaction_in_block(
        &self,
        height: Height,
        id: &Word,
        options: &mut CallOptions,
    ) -> Result<Option<String>> {
        let reply = self.post("wallet/getblockbynum", &json!({"num": height}), options).await?;
        options.avoid = Some(reply.endpoint);
        let list = wire::block_transactions(&reply.body);
        let found = list.and_then(|list| wire::of_block(&list, "txID", id));
        Ok(found.map(|tx| tx.get().to_owned()))
    }

    /// The height of the block at a time in milliseconds.
    async fn height_at(&self, millis: u64, options: &CallOptions) -> Result<Height> {
        let head = self.solid_head(options).await?;
        if head.millis < millis {
            let last = "no endpoint has come to the block of a listed transaction";
            return Err(UpstreamError::unavailable(last));
        }
        // Slots may be missed, so a block is at most as far below the head as its time implies.
        let below = head.millis.saturating_sub(millis).div_ceil(BLOCK_MILLIS);
        let (mut low, mut high) = (head.height.saturating_sub(below), head.height);
        while low < high {
            let middle = low.midpoint(high);
            let Some(at) = self.time_of(middle, options).await? else {
                let last = format!("no endpoint gives block {middle}");
                return Err(UpstreamError::unavailable(last));
            };
            if at < millis {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}
