//! The answer to `getTransaction` in encoding `json`, written directly into bytes.

use super::keys::ModelKey;
use super::number;
use super::tx::{Acc, AccountState, Tx};
use crate::domain::base58::{LIMB, limb_text};

/// The fields of an answer around the transaction itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Envelope<'a> {
    pub(super) slot: u64,
    pub(super) time: u64,
    /// Omitted where the node does not report it.
    pub(super) index: Option<u32>,
    /// One signature of each signer.
    pub(super) signatures: &'a [[u8; 64]],
    pub(super) recent_blockhash: ModelKey,
    pub(super) lookup_table: ModelKey,
}

fn text(out: &mut Vec<u8>, part: &str) {
    out.extend_from_slice(part.as_bytes());
}

/// Writes a member's name, behind a comma where it is not the first of its object.
pub(super) fn member<'a>(out: &'a mut Vec<u8>, name: &str) -> &'a mut Vec<u8> {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    quoted(out, name);
    out.push(b':');
    out
}

/// Text of which nothing needs an escape.
pub(super) fn quoted(out: &mut Vec<u8>, part: &str) {
    out.push(b'"');
    text(out, part);
    out.push(b'"');
}

pub(super) fn quoted_base58<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N]) {
    out.push(b'"');
    base58(bytes, out);
    out.push(b'"');
}

/// Base units with a decimal point, without trailing zeros.
pub(super) fn decimal(out: &mut Vec<u8>, units: u64, decimals: u8) {
    let scale = 10_u64.pow(u32::from(decimals));
    number(out, units / scale);
    let rest = units % scale;
    if rest > 0 {
        let digits = usize::from(decimals);
        text(out, format!(".{rest:0digits$}").trim_end_matches('0'));
    }
}

pub(super) fn token_amount(out: &mut Vec<u8>, units: u64, decimals: u8) {
    out.push(b'{');
    quoted(member(out, "amount"), itoa::Buffer::new().format(units));
    number(member(out, "decimals"), u64::from(decimals));
    member(out, "uiAmount");
    if units == 0 {
        text(out, "null");
    } else {
        decimal(out, units, decimals);
        if units.is_multiple_of(10_u64.pow(u32::from(decimals))) {
            text(out, ".0");
        }
    }
    text(member(out, "uiAmountString"), "\"");
    decimal(out, units, decimals);
    text(out, "\"}");
}

/// Writes `items` with commas in between.
pub(super) fn list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Accounts as a message orders them: signers, writable ones, the rest, then loaded ones.
struct Order<'a> {
    accounts: Vec<&'a AccountState>,
    /// Index in the message of each account of the transaction.
    places: Vec<u64>,
}

impl<'a> Order<'a> {
    fn new(tx: &'a Tx) -> Self {
        let mut sorted: Vec<usize> = (0..tx.accounts.len()).collect();
        sorted.sort_by_key(|at| tx.accounts.get(*at).map(rank));
        let mut places = vec![0; tx.accounts.len()];
        for (place, at) in (0_u64..).zip(&sorted) {
            if let Some(slot) = places.get_mut(*at) {
                *slot = place;
            }
        }
        let accounts = sorted.iter().filter_map(|at| tx.accounts.get(*at)).collect();
        Self { accounts, places }
    }

    fn place(&self, acc: Acc) -> u64 {
        self.places.get(usize::from(acc.0)).copied().unwrap_or(0)
    }

    fn count(&self, want: impl Fn(&AccountState) -> bool) -> u64 {
        u64::try_from(self.accounts.iter().filter(|account| want(account)).count()).unwrap_or(0)
    }
}

fn rank(account: &AccountState) -> (bool, bool, bool) {
    (account.loaded, !account.signer, !account.writable)
}

pub(super) fn transaction(out: &mut Vec<u8>, tx: &Tx, envelope: &Envelope<'_>) {
    let order = Order::new(tx);
    out.push(b'{');
    number(member(out, "blockTime"), envelope.time);
    meta(member(out, "meta"), tx, &order);
    number(member(out, "slot"), envelope.slot);
    text(member(out, "transaction"), "{");
    message(member(out, "message"), tx, &order, envelope);
    list(member(out, "signatures"), envelope.signatures, quoted_base58);
    out.push(b'}');
    if let Some(index) = envelope.index {
        number(member(out, "transactionIndex"), u64::from(index));
    }
    match tx.version {
        None => quoted(member(out, "version"), "legacy"),
        Some(version) => number(member(out, "version"), version.into()),
    }
    out.push(b'}');
}

/// The `err` value of a failed transaction, or `null`.
pub(super) fn error(out: &mut Vec<u8>, error: Option<(u8, u32)>) {
    let Some((instruction, code)) = error else { return text(out, "null") };
    text(out, "{\"InstructionError\":[");
    number(out, u64::from(instruction));
    text(out, ",{\"Custom\":");
    number(out, u64::from(code));
    text(out, "}]}");
}

fn meta(out: &mut Vec<u8>, tx: &Tx, order: &Order<'_>) {
    out.push(b'{');
    number(member(out, "computeUnitsConsumed"), tx.compute_units);
    error(member(out, "err"), tx.error);
    number(member(out, "fee"), tx.fee);
    inner(member(out, "innerInstructions"), tx, order);
    text(member(out, "loadedAddresses"), "{");
    for (name, writable) in [("readonly", false), ("writable", true)] {
        let of = order.accounts.iter().filter(|a| a.loaded && a.writable == writable);
        list(member(out, name), of, |out, account| quoted_base58(out, &account.key));
    }
    out.push(b'}');
    text(member(out, "logMessages"), "[");
    out.extend_from_slice(&tx.log);
    out.push(b']');
    let accounts = &order.accounts;
    list(member(out, "postBalances"), accounts, |out, account| number(out, account.after));
    token_balances(member(out, "postTokenBalances"), order, true);
    list(member(out, "preBalances"), accounts, |out, account| number(out, account.before));
    token_balances(member(out, "preTokenBalances"), order, false);
    if let Some((program, data)) = tx.return_data {
        use base64::Engine as _;
        let data = base64::engine::general_purpose::STANDARD.encode(data);
        text(member(out, "returnData"), "{");
        list(member(out, "data"), [data.as_str(), "base64"], quoted);
        quoted(member(out, "programId"), program.text());
        out.push(b'}');
    }
    text(member(out, "rewards"), "[]");
    text(member(out, "status"), "{");
    error(member(out, if tx.error.is_some() { "Err" } else { "Ok" }), tx.error);
    text(out, "}}");
}

fn token_balances(out: &mut Vec<u8>, order: &Order<'_>, after: bool) {
    let held = (0_u64..).zip(&order.accounts).filter_map(|(place, account)| {
        let state = account.token?;
        let amount = if after { state.after } else { state.before };
        Some((place, state, amount?))
    });
    list(out, held, |out, (place, state, amount)| {
        out.push(b'{');
        number(member(out, "accountIndex"), place);
        quoted_base58(member(out, "mint"), &state.token.mint());
        quoted_base58(member(out, "owner"), &state.owner);
        quoted(member(out, "programId"), state.token.program().text());
        token_amount(member(out, "uiTokenAmount"), amount, state.token.decimals());
        out.push(b'}');
    });
}

fn inner(out: &mut Vec<u8>, tx: &Tx, order: &Order<'_>) {
    let outer = (0_u64..).zip(tx.instructions.chunk_by(|_, next| next.height > 1));
    let with_inner = outer.filter_map(|(at, calls)| match calls {
        [_, inner @ ..] if !inner.is_empty() => Some((at, inner)),
        _ => None,
    });
    list(out, with_inner, |out, (at, inner)| {
        out.push(b'{');
        number(member(out, "index"), at);
        list(member(out, "instructions"), inner, |out, one| call(out, one, order));
        out.push(b'}');
    });
}

fn call(out: &mut Vec<u8>, instruction: &super::tx::InstructionState, order: &Order<'_>) {
    out.push(b'{');
    list(member(out, "accounts"), &instruction.accounts, |out, a| number(out, order.place(*a)));
    text(member(out, "data"), "\"");
    base58(&instruction.data, out);
    out.push(b'"');
    number(member(out, "programIdIndex"), order.place(instruction.program));
    number(member(out, "stackHeight"), u64::from(instruction.height));
    out.push(b'}');
}

fn message(out: &mut Vec<u8>, tx: &Tx, order: &Order<'_>, envelope: &Envelope<'_>) {
    out.push(b'{');
    let written = order.accounts.iter().filter(|account| !account.loaded);
    list(member(out, "accountKeys"), written, |out, account| quoted_base58(out, &account.key));
    if tx.version == Some(0) {
        lookups(member(out, "addressTableLookups"), order, &envelope.lookup_table);
    }
    text(member(out, "header"), "{");
    number(member(out, "numReadonlySignedAccounts"), order.count(|a| a.signer && !a.writable));
    let unsigned = order.count(|a| !a.signer && !a.writable && !a.loaded);
    number(member(out, "numReadonlyUnsignedAccounts"), unsigned);
    number(member(out, "numRequiredSignatures"), order.count(|a| a.signer));
    out.push(b'}');
    let outer = tx.instructions.iter().filter(|call| call.height == 1);
    list(member(out, "instructions"), outer, |out, instruction| call(out, instruction, order));
    quoted_base58(member(out, "recentBlockhash"), &envelope.recent_blockhash);
    if tx.version == Some(1) {
        text(member(out, "transactionConfig"), "{\"computeUnitLimit\":200000,\"heapSize\":null,");
        text(out, "\"loadedAccountsDataSizeLimit\":67108864");
        number(member(out, "priorityFee"), tx.fee.saturating_sub(5_000));
        out.push(b'}');
    }
    out.push(b'}');
}

/// Indices into one lookup table, whose entries are generated.
fn lookups(out: &mut Vec<u8>, order: &Order<'_>, table: &ModelKey) {
    let numbers = |writable: bool| {
        let loaded = order.accounts.iter().filter(|account| account.loaded);
        let of_kind = loaded.zip(0_u64..).filter(move |(account, _)| account.writable == writable);
        of_kind.map(|(_, at)| at * 3 + 1)
    };
    if order.accounts.iter().all(|account| !account.loaded) {
        return text(out, "[]");
    }
    text(out, "[{");
    quoted_base58(member(out, "accountKey"), table);
    list(member(out, "readonlyIndexes"), numbers(false), number);
    list(member(out, "writableIndexes"), numbers(true), number);
    text(out, "}]");
}

/// Writes base58 of any length: an answer contains kilobytes of it.
pub(super) fn base58(bytes: &[u8], out: &mut Vec<u8>) {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    out.resize(out.len() + zeros, b'1');
    let (_, rest) = bytes.split_at(zeros);
    let (head, words) = rest.split_at(rest.len() % 4);
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    // Least significant first; 29.3 bits a limb.
    let mut limbs: Vec<u64> = Vec::with_capacity(rest.len() / 4 + rest.len() / 40 + 2);
    for word in std::iter::once(word(head)).chain(words.chunks_exact(4).map(word)) {
        let mut carry = word;
        for limb in &mut limbs {
            carry += *limb << 32;
            *limb = carry % LIMB;
            carry /= LIMB;
        }
        while carry > 0 {
            limbs.push(carry % LIMB);
            carry /= LIMB;
        }
    }
    write_limbs(&limbs, out);
}

fn write_limbs(limbs: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    for limb in limbs.iter().rev() {
        let [text @ .., _, _, _] = limb_text(u32::try_from(*limb).unwrap_or(0));
        out.extend_from_slice(&text);
    }
    // Only the first limb can begin with zeros.
    let written = out.get(start..).unwrap_or_default();
    let leading = written.iter().take_while(|digit| **digit == b'1').count();
    out.drain(start..start + leading);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::demo::solana::base58_text;

    proptest! {
        #[test]
        fn writes_what_the_slow_coder_writes(bytes in proptest::collection::vec(any::<u8>(), 0..300), zeros in 0_usize..4) {
            let mut data = vec![0; zeros];
            data.extend(bytes);
            prop_assert_eq!(base58_text(&data), bs58::encode(&data).into_string());
        }
    }

    #[test]
    fn writes_the_largest_of_every_length() {
        for length in 0..600 {
            let data = vec![255; length];
            assert_eq!(base58_text(&data), bs58::encode(&data).into_string());
        }
    }
}
