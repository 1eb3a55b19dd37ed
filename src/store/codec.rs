//! Encodes values: one version byte, then bincode. Keys are `key.rs`'s.
//!
//! The types here are the file format: a new field is a new struct with the next version, and the
//! reader of every older version stays. An unknown version is an error.

use std::sync::Arc;

use bincode::{BorrowDecode, Decode, Encode};

use crate::domain::{
    Address, ChainId, Coverage, Doubts, Family, KeyId, LearnedPrice, Price, Proof, Resume,
    SourceAccount, Span, TradeKey, TxId, UnixMillis, UnixSeconds, Wallet, Way,
};

use super::key::{RowKey, read_row_key};
use super::{
    Anchor, DeliveredRange, Pending, Result, StoreError, TokenRecord, WalletId, WalletRecord,
};

/// More than any value has, so that a damaged length fails before it allocates.
const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;
pub(super) const V1: u8 = 1;
/// The version of states whose spans carry their proof.
const STATE_V2: u8 = 2;

/// The changing part of a wallet's record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WalletState {
    pub(super) epoch: u64,
    pub(super) coverage: Coverage,
    pub(super) count: u64,
    pub(super) checked_at: Option<UnixMillis>,
    pub(super) cut: Option<u64>,
    /// Set once a lower height had a later time: from then on heights cannot be searched by time.
    pub(super) disordered: bool,
}

impl WalletState {
    pub(super) fn into_record(self, id: WalletId, wallet: Wallet) -> WalletRecord {
        let Self { epoch, coverage, count, checked_at, cut, disordered: _ } = self;
        WalletRecord { id, wallet, epoch, coverage, count, checked_at, cut }
    }
}

#[derive(Encode, Decode)]
struct AddressV1 {
    chain: u16,
    family: u8,
    bytes: Vec<u8>,
}

#[derive(Encode, Decode)]
struct StateV<S> {
    epoch: u64,
    spans: Vec<S>,
    count: u64,
    checked_at_ms: Option<u64>,
    cut: Option<u64>,
    disordered: bool,
}

#[derive(Encode, Decode)]
struct SpanV2 {
    low: u64,
    high: u64,
    decoder: u16,
    resume: Option<Vec<u8>>,
    way: u8,
    doubts: u16,
    missing: Vec<Vec<u8>>,
}

#[derive(Encode, Decode)]
struct SpanV1 {
    low: u64,
    high: u64,
    decoder: u16,
    resume: Option<Vec<u8>>,
}

/// Height and hash.
type AnchorV1 = (u64, [u8; 32]);

/// Key, and end in milliseconds.
type PendingV1 = (u64, u64);

/// Amount, and the height of the oldest transaction.
type AccountV1 = (Option<u64>, Option<u64>);

#[derive(Encode, Decode)]
struct TokenV1 {
    mint: AddressV1,
    symbol: Option<String>,
    decimals: Option<u8>,
    asked_at_ms: Option<u64>,
}

/// Time, price and tag.
type LearnedV1 = (u32, u128, u64);

type CandleV1 = Option<u128>;

/// Keys of the first and the last row, as in the table of trades.
type RangeV1 = (Vec<u8>, Vec<u8>);

pub(super) fn encode_wallet(wallet: &Wallet) -> Result<Vec<u8>> {
    encode(&address_v1(wallet.chain, &wallet.address))
}

pub(super) fn decode_wallet(table: &'static str, bytes: &[u8]) -> Result<Wallet> {
    let (chain, address) = read_address(table, &decode(table, bytes)?)?;
    Ok(Wallet { chain, address })
}

pub(super) fn encode_state(state: &WalletState) -> Result<Vec<u8>> {
    let span = |span: &Span| SpanV2 {
        low: span.low,
        high: span.high,
        decoder: span.decoder,
        resume: span.resume.as_ref().map(|resume| resume.0.clone()),
        way: span.proof.way.number(),
        doubts: span.proof.doubts.bits(),
        missing: span.missing.iter().map(TxId::to_bytes).collect(),
    };
    encode_as(
        STATE_V2,
        &StateV {
            epoch: state.epoch,
            spans: state.coverage.spans().iter().map(span).collect(),
            count: state.count,
            checked_at_ms: state.checked_at.map(|at| at.0),
            cut: state.cut,
            disordered: state.disordered,
        },
    )
}

pub(super) fn decode_state(table: &'static str, bytes: &[u8]) -> Result<WalletState> {
    if let Some(&V1) = bytes.first() {
        read_state(table, decode(table, bytes)?, |span| Ok(read_span_v1(span)))
    } else {
        let (_, stored) = decode_up_to(STATE_V2, table, bytes)?;
        read_state(table, stored, |span| read_span(table, span))
    }
}

fn read_state<S>(
    table: &'static str,
    stored: StateV<S>,
    read_span: impl Fn(S) -> Result<Span>,
) -> Result<WalletState> {
    let mut coverage = Coverage::default();
    for span in stored.spans {
        let span = read_span(span)?;
        if span.low > span.high || coverage.top().is_some_and(|top| top >= span.low) {
            return Err(corrupt(table, "spans are out of order"));
        }
        coverage.insert(span);
    }
    Ok(WalletState {
        epoch: stored.epoch,
        coverage,
        count: stored.count,
        checked_at: stored.checked_at_ms.map(UnixMillis),
        cut: stored.cut,
        disordered: stored.disordered,
    })
}

/// Spans of the first version have no proof.
fn read_span_v1(SpanV1 { low, high, decoder, resume }: SpanV1) -> Span {
    let resume = resume.map(Resume);
    Span { low, high, decoder, resume, proof: Proof::UNRECORDED, missing: Vec::new() }
}

fn read_span(table: &'static str, stored: SpanV2) -> Result<Span> {
    let SpanV2 { low, high, decoder, resume, way, doubts, missing } = stored;
    let way = Way::from_number(way).ok_or_else(|| corrupt(table, "an unknown way of reading"))?;
    let doubts =
        Doubts::from_bits(doubts).ok_or_else(|| corrupt(table, "an unknown doubt of a read"))?;
    let missing = missing.iter().map(|bytes| read_tx(table, way, bytes));
    let missing = missing.collect::<Result<Vec<_>, _>>()?;
    let resume = resume.map(Resume);
    Ok(Span { low, high, decoder, resume, proof: Proof { way, doubts }, missing })
}

/// The family of an id follows from the way of its span.
fn read_tx(table: &'static str, way: Way, bytes: &[u8]) -> Result<TxId> {
    let family = match way {
        Way::Signatures | Way::FullPages => Family::Solana,
        Way::Portal | Way::Explorer | Way::Transfers | Way::Logs => Family::Evm,
        Way::Lists | Way::Events => Family::Tron,
        Way::Unknown => return Err(corrupt(table, "a missing transaction of an unknown way")),
    };
    TxId::from_bytes(family, bytes).ok_or_else(|| corrupt(table, "a transaction of a wrong length"))
}

pub(super) fn encode_anchors(anchors: &[Anchor]) -> Result<Vec<u8>> {
    let anchor = |Anchor { height, hash }: &Anchor| -> AnchorV1 { (*height, *hash) };
    encode(&anchors.iter().map(anchor).collect::<Vec<_>>())
}

pub(super) fn decode_anchors(table: &'static str, bytes: &[u8]) -> Result<Vec<Anchor>> {
    let stored: Vec<AnchorV1> = decode(table, bytes)?;
    Ok(stored.into_iter().map(|(height, hash)| Anchor { height, hash }).collect())
}

pub(super) fn encode_pending(pending: &Pending) -> Result<Vec<u8>> {
    encode::<PendingV1>(&(pending.key.0, pending.until.0))
}

pub(super) fn decode_pending(table: &'static str, bytes: &[u8]) -> Result<Pending> {
    let (key, until_ms): PendingV1 = decode(table, bytes)?;
    Ok(Pending { key: KeyId(key), until: UnixMillis(until_ms) })
}

pub(super) fn encode_account(account: &SourceAccount) -> Result<Vec<u8>> {
    encode::<AccountV1>(&(account.amount, account.oldest))
}

/// An account after a rollback: it stays open or closed, and what was seen of it at a head that may
/// not be the chain's is dropped.
pub(super) fn account_without_balance(table: &'static str, bytes: &[u8]) -> Result<Vec<u8>> {
    let (amount, _): AccountV1 = decode(table, bytes)?;
    encode::<AccountV1>(&(amount.map(|_| SourceAccount::OPEN), None))
}

pub(super) fn decode_account(
    table: &'static str,
    account: [u8; 32],
    bytes: &[u8],
) -> Result<SourceAccount> {
    let (amount, oldest): AccountV1 = decode(table, bytes)?;
    Ok(SourceAccount { account, amount, oldest })
}

pub(super) fn encode_token(token: &TokenRecord) -> Result<Vec<u8>> {
    encode(&TokenV1 {
        mint: address_v1(token.chain, &token.mint),
        symbol: token.symbol.as_deref().map(str::to_owned),
        decimals: token.decimals,
        asked_at_ms: token.asked_at.map(|at| at.0),
    })
}

pub(super) fn decode_token(table: &'static str, bytes: &[u8]) -> Result<TokenRecord> {
    let stored: TokenV1 = decode(table, bytes)?;
    let (chain, mint) = read_address(table, &stored.mint)?;
    Ok(TokenRecord {
        chain,
        mint,
        symbol: stored.symbol.map(Arc::from),
        decimals: stored.decimals,
        asked_at: stored.asked_at_ms.map(UnixMillis),
    })
}

pub(super) fn encode_learned(prices: &[LearnedPrice]) -> Result<Vec<u8>> {
    let one = |p: &LearnedPrice| -> LearnedV1 { (p.time.0, p.price.0, p.tag) };
    encode(&prices.iter().map(one).collect::<Vec<_>>())
}

pub(super) fn decode_learned(table: &'static str, bytes: &[u8]) -> Result<Vec<LearnedPrice>> {
    let stored: Vec<LearnedV1> = decode(table, bytes)?;
    let one = |(time, price, tag)| {
        let (time, price) = (UnixSeconds(time), Price(price));
        LearnedPrice { time, price, tag }
    };
    Ok(stored.into_iter().map(one).collect())
}

pub(super) fn encode_candle(price: Option<Price>) -> Result<Vec<u8>> {
    encode::<CandleV1>(&price.map(|price| price.0))
}

pub(super) fn decode_candle(table: &'static str, bytes: &[u8]) -> Result<Option<Price>> {
    Ok(decode::<CandleV1>(table, bytes)?.map(Price))
}

pub(super) fn encode_ranges(id: WalletId, ranges: &[DeliveredRange]) -> Result<Vec<u8>> {
    let key = |key: &TradeKey| RowKey::new(id, key).bytes().to_vec();
    let range = |range: &DeliveredRange| -> RangeV1 { (key(&range.from), key(&range.to)) };
    encode(&ranges.iter().map(range).collect::<Vec<_>>())
}

pub(super) fn decode_ranges(
    table: &'static str,
    family: Family,
    bytes: &[u8],
) -> Result<Vec<DeliveredRange>> {
    let stored: Vec<RangeV1> = decode(table, bytes)?;
    let key = |bytes: &[u8]| {
        read_row_key(bytes, family).ok_or_else(|| corrupt(table, "a row key that is none"))
    };
    let range = |(from, to): &RangeV1| Ok(DeliveredRange { from: key(from)?, to: key(to)? });
    stored.iter().map(range).collect()
}

pub(super) fn corrupt(table: &'static str, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt { table, reason: reason.to_string() }
}

fn address_v1(chain: ChainId, address: &Address) -> AddressV1 {
    let family = family_number(address.family());
    AddressV1 { chain: chain.0, family, bytes: address.bytes().to_vec() }
}

/// Stored by both arms.
pub(super) fn family_number(family: Family) -> u8 {
    match family {
        Family::Solana => 1,
        Family::Evm => 2,
        Family::Tron => 3,
    }
}

pub(super) fn family_of_number(number: u8) -> Option<Family> {
    [Family::Solana, Family::Evm, Family::Tron].into_iter().find(|f| family_number(*f) == number)
}

fn read_address(table: &'static str, stored: &AddressV1) -> Result<(ChainId, Address)> {
    let number = stored.family;
    let family = family_of_number(number)
        .ok_or_else(|| corrupt(table, format_args!("no family has number {number}")))?;
    let address = Address::from_bytes(family, &stored.bytes);
    let address = address.ok_or_else(|| corrupt(table, "an address of a wrong length"))?;
    Ok((ChainId(stored.chain), address))
}

fn encode<T: Encode>(value: &T) -> Result<Vec<u8>> {
    encode_as(V1, value)
}

fn encode_as(version: u8, value: &impl Encode) -> Result<Vec<u8>> {
    let mut bytes = vec![version];
    bincode::encode_into_std_write(value, &mut bytes, bincode::config::standard())
        .map(|_| bytes)
        .map_err(|error| StoreError::Engine(error.to_string()))
}

fn decode<'a, T: BorrowDecode<'a, ()>>(table: &'static str, bytes: &'a [u8]) -> Result<T> {
    decode_up_to(V1, table, bytes).map(|(_, value)| value)
}

/// A value of any version up to `newest`, with its version.
pub(super) fn decode_up_to<'a, T: BorrowDecode<'a, ()>>(
    newest: u8,
    table: &'static str,
    bytes: &'a [u8],
) -> Result<(u8, T)> {
    let (version, body) = split_version(newest, table, bytes)?;
    let config = bincode::config::standard().with_limit::<VALUE_BYTES_MAX>();
    match bincode::borrow_decode_from_slice(body, config) {
        Ok((value, read)) if read == body.len() => Ok((version, value)),
        Ok(_) => Err(corrupt(table, "bytes after the end")),
        Err(error) => Err(corrupt(table, error)),
    }
}

/// The version of a value, up to `newest`, and what follows it.
#[inline]
pub(super) fn split_version<'a>(
    newest: u8,
    table: &'static str,
    bytes: &'a [u8],
) -> Result<(u8, &'a [u8])> {
    match bytes.split_first() {
        Some((&found, _)) if found > newest => Err(StoreError::NewerRecord { table, found }),
        Some((0, _)) | None => Err(corrupt(table, "no version")),
        Some((&version, body)) => Ok((version, body)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const T: &str = "test";

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for version in [None, Some(V1)] {
                let bytes: Vec<u8> = version.into_iter().chain(bytes.iter().copied()).collect();
                let _ = decode_state(T, &bytes);
                let _ = decode_wallet(T, &bytes);
                let _ = decode_token(T, &bytes);
                let _ = decode_anchors(T, &bytes);
                let _ = decode_pending(T, &bytes);
                let _ = decode_account(T, [0; 32], &bytes);
                let _ = decode_ranges(T, Family::Evm, &bytes);
                let _ = decode_learned(T, &bytes);
                let _ = decode_candle(T, &bytes);
            }
        }
    }

    #[test]
    fn spans_of_the_first_version_are_kept_without_a_proof() {
        // Version, epoch, one span (5 to 9, decoder 2, no resume), 6 rows, no check, no cut, ordered.
        let state = decode_state(T, &[V1, 4, 1, 5, 9, 2, 0, 6, 0, 0, 0]).unwrap();
        let span = Span {
            low: 5,
            high: 9,
            decoder: 2,
            resume: None,
            proof: Proof::UNRECORDED,
            missing: vec![],
        };
        assert_eq!(state.coverage.spans(), [span]);
        assert_eq!((state.epoch, state.count), (4, 6));
    }

    #[test]
    fn a_newer_record_and_damage_are_reported_with_their_table() {
        let newer = decode_pending("pending", &[V1 + 1, 0, 0]);
        assert!(matches!(newer, Err(StoreError::NewerRecord { table: "pending", found: 2 })));
        for bytes in [&[][..], &[0, 1, 2], &[V1], &[V1, 1], &[V1, 1, 2, 3]] {
            let damaged = decode_pending("pending", bytes);
            assert!(matches!(damaged, Err(StoreError::Corrupt { table: "pending", .. })));
        }
    }
}
