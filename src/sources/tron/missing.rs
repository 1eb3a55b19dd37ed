//! A listed transaction that is not found by its id may still be found by its block.

use serde_json::json;
use serde_json::value::RawValue;

use super::TronSource;
use super::blocks::BLOCK_MILLIS;
use super::fetch::{Fetched, INFO, TRANSACTION, want_sent};
use super::info_answers::InfoAnswers;
use super::seen::{FAILED_ANSWERS, TxPurpose};
use super::timeline::{Taken, is_of};
use super::wire;
use crate::decode::evm::{Account, Word};
use crate::domain::Height;
use crate::rpc::{CallOptions, EndpointId, OwnFailure, Result, UpstreamError, is_answered};

const INFOS: [&str; 2] =
    ["walletsolidity/gettransactioninfobyblocknum", "wallet/gettransactioninfobyblocknum"];
/// Answers without it, after which no node has it.
const TRIES: u32 = 3;

struct BlockSearch<'a> {
    listed: &'a Taken,
    wallet: &'a Account,
    height: Height,
    options: CallOptions,
    /// Answers that it failed.
    said_failed: u32,
}

impl TronSource {
    /// Fetches a listed transaction by its id, or by its block if the attempts by its id gave
    /// nothing or every endpoint fails on it.
    pub(super) async fn fetch_listed(
        &self,
        listed: &Taken,
        wallet: &Account,
        options: &CallOptions,
    ) -> Result<Fetched> {
        if listed.tries < self.inner.limits.missing_tries_max {
            let Taken { key, seen, is_probe, .. } = listed;
            let mut own = OwnFailure::new(options, self.inner.pool.retries_max());
            loop {
                match self.fetch(key.1, wallet, seen.clone(), *is_probe, own.options()).await {
                    Err(error) if error.may_be_of_call() => {
                        if own.is_certain(error, self.answer_by_id(options)).await? {
                            break;
                        }
                    }
                    fetched => return fetched,
                }
            }
        }
        self.fetch_by_block(listed, wallet, options).await
    }

    /// Whether endpoints answer look-ups by id now: of an id that does not exist.
    async fn answer_by_id(&self, options: &CallOptions) -> bool {
        let body = json!({"value": hex::encode([0; 32])});
        for names in [INFO, TRANSACTION] {
            if !is_answered(self.post_solid(names, &body, options)).await {
                return false;
            }
        }
        true
    }

    /// Fetches by the block in which the transaction is listed; `Fetched::Lost` if that fails too.
    async fn fetch_by_block(
        &self,
        listed: &Taken,
        wallet: &Account,
        options: &CallOptions,
    ) -> Result<Fetched> {
        let seen = &listed.seen;
        let height = match listed.height {
            Some(height) => height,
            None => self.height_at(listed.key.0.0, options).await?,
        };
        let said_failed = seen.sent.as_ref().map_or(0, |sent| sent.failures);
        let mut search =
            BlockSearch { listed, wallet, height, options: options.clone(), said_failed };
        let (mut tries, mut failures, mut own) =
            (0, 0, OwnFailure::new(options, self.inner.pool.retries_max()));
        let (mut answers, mut givers) = (None::<InfoAnswers<'_>>, self.internal_givers());
        let wrapped = self.inner.references.wrapped;
        while tries < TRIES {
            search.options.fails_soon = own.options().fails_soon;
            tries += 1;
            let (fetched, kind, by) = match self.look_in_block(&mut search).await {
                Ok(Some(found)) => found,
                Ok(None) | Err(UpstreamError::Malformed { .. }) => continue,
                Err(error) if error.may_be_of_call() => {
                    if own.is_certain(error, self.answer_by_id(options)).await? {
                        break;
                    }
                    // No answer.
                    tries -= 1;
                    continue;
                }
                Err(error) if error.is_final() => continue,
                Err(error) => return Err(error),
            };
            match fetched {
                Fetched::Missing => {}
                Fetched::Transaction(tx) => {
                    let new = || InfoAnswers::new((wallet, seen), kind, wrapped);
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
        if let Some(best) = answers.and_then(InfoAnswers::into_best) {
            return Ok(Fetched::Transaction(best));
        }
        Ok(Fetched::Lost(height))
    }

    /// One answer about the transaction from the blocks of nodes; `None` if it has nothing that
    /// fits.
    async fn look_in_block(
        &self,
        search: &mut BlockSearch<'_>,
    ) -> Result<Option<(Fetched, TxPurpose, EndpointId)>> {
        let BlockSearch { listed, wallet, height, options, said_failed } = search;
        let (id, seen) = (listed.key.1, &listed.seen);
        let Some((info, by)) = self.info_in_block(*height, &id, options).await? else {
            return Ok(None);
        };
        // The list's report that it failed is one answer, and the block's transaction another.
        let given = seen.sent.as_ref().filter(|sent| sent.failures == 0);
        let tx = match given {
            Some(sent) => Some(sent.json.clone()),
            None => self.transaction_in_block(*height, &id, options).await?,
        };
        let sent = tx.map(|tx| wire::transaction(tx.as_bytes(), &id, wallet));
        let Some(Ok(Some(mut sent))) = sent else { return Ok(None) };
        if sent.failures > 0 {
            *said_failed += 1;
            sent.failures = *said_failed;
        }
        // Two blocks that state it as failed decide, also against a list of token movements.
        if !listed.is_probe && (sent.has_failed() || !want_sent(seen, &sent)) {
            return Ok(Some((Fetched::Unwanted, sent.kind, by)));
        }
        let info = (info.get().as_bytes(), by);
        let fetched = self.joined_with_info(id, (&sent.json, wallet, seen), info, options).await?;
        let fetched = fetched.held_against(&sent);
        let is_other = match &fetched {
            Fetched::Transaction(tx) | Fetched::Failed(tx) => {
                tx.call.block != *height || !is_of(&listed.key, listed.height, tx)
            }
            Fetched::Unwanted | Fetched::Missing | Fetched::Lost(_) => false,
        };
        Ok((!is_other).then_some((fetched, sent.kind, by)))
    }

    async fn info_in_block(
        &self,
        height: Height,
        id: &Word,
        options: &mut CallOptions,
    ) -> Result<Option<(Box<RawValue>, EndpointId)>> {
        let reply = self.post_solid(INFOS, &json!({"num": height}), options).await?;
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
