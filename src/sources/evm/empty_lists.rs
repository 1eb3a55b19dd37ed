//! Detects incomplete lists of an index: a list that is empty for every account, or that lacks rows
//! of transactions which nodes or the index's other lists return.

use super::EvmSource;
use super::discovery::Discovery;
use super::explorer_wire::ExplorerList;
use super::fetch::FetchedTx;
use super::receipts;
use crate::decode::evm::{Account, NativeFlows, NativeMove, Transaction, repeats_native};
use crate::domain::{Height, Units, Way};
use crate::registry::Chain;
use crate::rpc::{CallOptions, Pool};

/// A list that contains none of a chunk's transactions that belong to it, of which there are at
/// least this many, is incomplete however often it was read.
const LACKING_MAX: usize = 3;

impl EvmSource {
    /// Whether a list lacks rows that it must have by the fetched transactions: it may then lack
    /// transactions that no other list contains. A single missing row counts until several answers
    /// over some time lacked it too, because no index lists every token.
    pub(super) fn lacks_rows(&self, wallet: &Account, way: Way, fetched: &[FetchedTx]) -> bool {
        let (by, kinds) = if way == Way::Transfers {
            (Discovery::Alchemy, &ExplorerList::ALL[..])
        } else if way == Way::Explorer {
            // The wallet's own transactions are counted.
            (Discovery::Explorer, &[ExplorerList::Tokens][..])
        } else {
            return false;
        };
        let chain = &self.inner.chain;
        kinds.iter().any(|kind| {
            let due = fetched.iter().filter(|one| belongs(chain, *kind, wallet, &one.tx));
            let (listed, lacking): (Vec<_>, Vec<_>) = due.partition(|one| one.is_listed(*kind));
            if lacking.is_empty() || !self.inner.abilities.has_listed(by, *kind) {
                return false;
            }
            let hashes = lacking.iter().map(|one| one.tx.hash);
            self.inner.abilities.note_unlisted(*kind, hashes)
                || listed.is_empty() && lacking.len() >= LACKING_MAX
        })
    }

    /// Whether a list has never had a row of any account, although nodes returned transactions that
    /// belong to it: of this wallet, in the case of asset transfers of any wallet. An empty list of
    /// calls hides nothing of an account without code.
    pub(super) async fn has_empty_list(
        &self,
        (wallet, high): (&Account, Height),
        way: Way,
        fetched: &[FetchedTx],
        options: &CallOptions,
    ) -> bool {
        let is_empty = |list: ExplorerList| {
            let is_due =
                fetched.iter().any(|one| belongs(&self.inner.chain, list, wallet, &one.tx));
            if way == Way::Transfers {
                return self.inner.abilities.owes_transfers(list, is_due);
            }
            // An explorer's other lists are checked with busy accounts.
            let is_checked = way == Way::Explorer && list == ExplorerList::Tokens;
            is_due && is_checked && !self.lists_tokens(fetched)
        };
        is_empty(ExplorerList::Transactions)
            || is_empty(ExplorerList::Tokens)
            || is_empty(ExplorerList::Calls) && !self.is_plain(wallet, high, options).await
    }

    fn lists_tokens(&self, fetched: &[FetchedTx]) -> bool {
        let reach = &self.inner.abilities.reach;
        let mut indexes = self.inner.explorer.iter().flat_map(Pool::endpoints);
        indexes.any(|index| reach.newest(index.id, ExplorerList::Tokens).is_some())
            || fetched.iter().any(|one| one.candidate.transfer.is_some())
    }
}

impl FetchedTx {
    fn is_listed(&self, kind: ExplorerList) -> bool {
        match kind {
            ExplorerList::Transactions => self.candidate.listed.0,
            ExplorerList::Tokens => self.candidate.listed.1,
            ExplorerList::Calls => self.candidate.calls.is_some(),
        }
    }
}

/// Whether a transaction that succeeded belongs to this list of the wallet.
fn belongs(chain: &Chain, list: ExplorerList, wallet: &Account, tx: &Transaction) -> bool {
    let is_own = |(from, to): (Account, Account)| from == *wallet || to == *wallet;
    match list {
        // Asset transfers are requested without those of zero value.
        ExplorerList::Transactions => tx.from == *wallet && tx.value != Units::ZERO,
        ExplorerList::Tokens => {
            let tokens = tx.logs.iter().filter(|log| !repeats_native(log, chain));
            tokens.filter_map(receipts::transfer).any(is_own)
        }
        ExplorerList::Calls => {
            let is_inner = |one: &NativeMove| one.to == *wallet && one.from != tx.from;
            matches!(&tx.native, NativeFlows::Calls(moves) if moves.iter().any(is_inner))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::super::discovery::Candidate;
    use super::super::fetch::Batch;
    use super::super::list_row::bare_row;
    use super::super::lists_model::lane;
    use super::super::node_model::nodes;
    use super::super::receipts::TokenTransfer;
    use super::*;
    use crate::decode::evm::{Log, TRANSFER, Terms};
    use crate::domain::{Doubts, Proof, UnixSeconds};
    use crate::rpc::EndpointId;

    const WALLET: Account = [5; 20];
    const POOL: Account = [8; 20];

    /// A purchase for native coin with a token's transfer to the wallet, and part of the coin back.
    fn purchase(is_listed: bool, moves_token: bool) -> FetchedTx {
        let word = |account: Account| {
            let mut word = [0; 32];
            word[12..].copy_from_slice(&account);
            word
        };
        let topics = [TRANSFER, word(POOL), word(WALLET)].into_iter().collect();
        let log = Log { address: [7; 20], topics, data: vec![1] };
        let back = NativeMove { from: POOL, to: WALLET, value: Units::from(5_u64) };
        let tx = Transaction {
            hash: [1; 32],
            block: 9,
            index: 0,
            producer: None,
            from: WALLET,
            to: Some(POOL),
            value: Units::from(100_u64),
            selector: None,
            terms: Terms::default(),
            succeeded: true,
            logs: if moves_token { vec![log] } else { Vec::new() },
            native: NativeFlows::Calls(vec![back]),
        };
        let transfer = is_listed.then_some(TokenTransfer { wallet: WALLET, is_logged: false });
        let calls = Some(vec![back]);
        let listed = (true, is_listed);
        let candidate = Candidate { calls, transfer, listed, ..Candidate::bare([1; 32], 9) };
        FetchedTx { candidate, tx, fee: None, block_hash: None }
    }

    fn source(code: &'static str) -> EvmSource {
        let nodes = nodes(move |_, method, _| match method {
            "eth_blockNumber" => Ok("0x3e8".into()),
            _ => Ok(code.into()),
        });
        nodes.source(&["one"])
    }

    async fn is_empty(source: &EvmSource, way: Way, all: &[FetchedTx]) -> bool {
        source.has_empty_list((&WALLET, 9), way, all, &CallOptions::new(lane())).await
    }

    /// An index that lists tokens of a busy account may lack those of the wallet.
    #[tokio::test(start_paused = true)]
    async fn an_index_without_any_token_is_not_believed_where_receipts_show_some() {
        let nodes = nodes(|_, _, _| Ok("0x60".into()));
        let mut source = nodes.source(&["one"]);
        Arc::get_mut(&mut source.inner).unwrap().explorer = Some(nodes.pool(&["index"]));
        let by = Way::Explorer;
        assert!(is_empty(&source, by, &[purchase(false, true), purchase(false, false)]).await);
        assert!(!is_empty(&source, by, &[purchase(false, false)]).await, "there was none");
        let one = [purchase(false, true), purchase(true, true)];
        assert!(!is_empty(&source, by, &one).await, "one is listed");
        source.inner.abilities.reach.note(EndpointId(0), ExplorerList::Tokens, &[7]);
        assert!(!is_empty(&source, by, &[purchase(false, true)]).await);
    }

    /// A token of three purchases that the list of tokens lacks, once and for good, and one of two.
    #[tokio::test(start_paused = true)]
    async fn rows_that_a_list_lacks_are_asked_for_again_and_a_missing_kind_is_never_believed() {
        let bought = |tokens: &[bool]| {
            let one = |(at, is_listed): (usize, &bool)| {
                let mut one = purchase(*is_listed, true);
                one.tx.hash = [u8::try_from(at).unwrap(); 32];
                one
            };
            tokens.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        for (way, tokens, expected) in [
            (Way::Transfers, &[true, true][..], [false; 3]),
            (Way::Transfers, &[true, false], [true, true, false]),
            (Way::Explorer, &[false], [true, true, false]),
            (Way::Transfers, &[false; 3], [true; 3]),
            (Way::Logs, &[false; 3], [false; 3]),
        ] {
            let source = source("0x60");
            assert!(!source.lacks_rows(&WALLET, way, &bought(tokens)), "it never had one");
            source.inner.abilities.note_transfers(ExplorerList::ALL.into_iter());
            let index = (EndpointId(0), ExplorerList::Tokens);
            source.inner.abilities.note_page(index, &[bare_row(9, 1)]);
            let mut lacks = Vec::new();
            for _ in 0..3 {
                lacks.push(source.lacks_rows(&WALLET, way, &bought(tokens)));
                tokio::time::advance(std::time::Duration::from_secs(10)).await;
            }
            assert_eq!(lacks, expected, "{way:?} {tokens:?}");
        }
        let source = source("0x60");
        source.inner.abilities.note_transfers(ExplorerList::ALL.into_iter());
        let mut alone = bought(&[true]);
        alone[0].candidate.listed.0 = false;
        assert!(source.lacks_rows(&WALLET, Way::Transfers, &alone));
        (alone[0].candidate.listed.0, alone[0].candidate.calls) = (true, None);
        assert!(source.lacks_rows(&WALLET, Way::Transfers, &alone));
        assert!(!source.lacks_rows(&WALLET, Way::Explorer, &alone), "these are counted");
    }

    /// Most chains offer no transfers of inner calls, while their index lists these.
    #[tokio::test(start_paused = true)]
    async fn what_a_way_is_not_asked_for_is_not_missing_though_another_one_lists_it() {
        let source = source("0x60");
        let abilities = &source.inner.abilities;
        abilities.note_page((EndpointId(0), ExplorerList::Calls), &[bare_row(9, 1)]);
        let mut sold = [purchase(true, true)];
        sold[0].candidate.calls = None;
        assert!(!source.lacks_rows(&WALLET, Way::Transfers, &sold));
        abilities.note_transfers(ExplorerList::ALL.into_iter());
        assert!(source.lacks_rows(&WALLET, Way::Transfers, &sold));
        abilities.note_unasked(ExplorerList::Calls);
        assert!(!source.lacks_rows(&WALLET, Way::Transfers, &sold));
    }

    /// Of each kind of asset transfers that the wallet has, some must have been listed.
    #[tokio::test(start_paused = true)]
    async fn asset_transfers_that_lack_a_kind_for_everyone_are_not_believed() {
        use ExplorerList::{Calls, Tokens, Transactions};
        for (listed, code, expected) in [
            (&[Transactions, Tokens, Calls][..], "0x60", false),
            (&[Tokens, Calls], "0x60", true),
            (&[Transactions, Calls], "0x60", true),
            (&[Transactions, Tokens], "0x60", true),
            (&[Transactions, Tokens], "0x", false),
        ] {
            let source = source(code);
            source.inner.abilities.note_transfers(listed.iter().copied());
            let all = [purchase(true, true)];
            assert_eq!(is_empty(&source, Way::Transfers, &all).await, expected, "{listed:?}");
            assert!(!is_empty(&source, Way::Logs, &all).await, "they have no such lists");
            // What is due of one wallet may be missing of each.
            assert_eq!(is_empty(&source, Way::Transfers, &[]).await, expected, "{listed:?}");
            source.inner.abilities.note_transfers(ExplorerList::ALL.into_iter());
            assert!(!is_empty(&source, Way::Transfers, &all).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_chunk_of_asset_transfers_that_lack_tokens_is_in_doubt() {
        use ExplorerList::{Calls, Transactions};
        for (listed, is_listed, doubts) in [
            (&[Transactions, Calls][..], true, Doubts::UNCONFIRMED),
            (&ExplorerList::ALL, true, Doubts::NONE),
            (&ExplorerList::ALL, false, Doubts::UNCONFIRMED),
        ] {
            let source = source("0x60");
            source.inner.abilities.note_transfers(listed.iter().copied());
            let FetchedTx { candidate, tx, .. } = purchase(is_listed, true);
            let (whole, time) = (Some(Box::new(tx)), Some(UnixSeconds(1)));
            let candidates = vec![Candidate { time, whole, ..candidate }];
            let proof = Proof::of(Way::Transfers);
            let (wallet, listed) = (WALLET, (Instant::now(), Instant::now()));
            let batch = Batch { wallet, low: 0, high: 9, candidates, proof, listed };
            let chunk = source.chunk(batch, CallOptions::new(lane())).await.unwrap();
            assert_eq!(chunk.proof, proof.with(doubts), "{listed:?}");
        }
    }
}
