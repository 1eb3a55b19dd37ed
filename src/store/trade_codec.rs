//! Encodes trades in bincode's format without bincode: there are millions of them, and its steps
//! took a tenth of the writer's work and a seventh of a page's.

use crate::domain::{Side, Trade, Units, ValueSource};

use super::Result;
use super::codec::{V1, corrupt, split_version};

/// The version whose flags contain the value source.
const V2: u8 = 2;

/// A trade without its key, with numbers for token and venue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredTrade {
    pub(super) side: Side,
    pub(super) token: u32,
    pub(super) venue: u32,
    pub(super) units: Option<Units>,
    pub(super) native: Option<Units>,
    pub(super) valued: ValueSource,
}

impl StoredTrade {
    pub(super) fn of(trade: &Trade, token: u32, venue: u32) -> Self {
        let Trade { side, units, native, valued, .. } = *trade;
        Self { side, token, venue, units, native, valued }
    }
}

const SELL: u8 = 1;
const HAS_UNITS: u8 = 2;
const HAS_NATIVE: u8 = 4;
const FLAGS_V1: u8 = SELL | HAS_UNITS | HAS_NATIVE;
/// The first bit of the value source's number, in the second version.
const SOURCE_AT: u8 = 3;

/// Encodes into a buffer that the rows of a chunk share: version, flags, token, venue and both
/// amounts, big-endian without leading zeros.
pub(super) fn encode_trade(trade: &StoredTrade, into: &mut Vec<u8>) {
    let mut flags = if trade.side == Side::Sell { SELL } else { 0 };
    flags |= if trade.units.is_some() { HAS_UNITS } else { 0 };
    flags |= if trade.native.is_some() { HAS_NATIVE } else { 0 };
    flags |= number_of(trade.valued) << SOURCE_AT;
    into.clear();
    into.extend_from_slice(&[V2, flags]);
    write_number(trade.token, into);
    write_number(trade.venue, into);
    write_amount(trade.units, into);
    write_amount(trade.native, into);
}

/// The inverse of [`read_number`].
fn write_number(number: u32, into: &mut Vec<u8>) {
    match (u8::try_from(number), u16::try_from(number)) {
        (Ok(byte @ ..251), _) => into.push(byte),
        (_, Ok(short)) => {
            into.push(251);
            into.extend_from_slice(&short.to_le_bytes());
        }
        _ => {
            into.push(252);
            into.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Writes length and bytes of an amount. Zero and `None` have none: the flags distinguish them.
fn write_amount(amount: Option<Units>, into: &mut Vec<u8>) {
    let amount = amount.unwrap_or_default();
    let bytes = amount.to_be_bytes::<32>();
    let digits = bytes.get(32 - amount.byte_len()..).unwrap_or_default();
    // At most 32.
    into.push(u8::try_from(digits.len()).unwrap_or_default());
    into.extend_from_slice(digits);
}

#[inline]
pub(super) fn decode_trade(table: &'static str, bytes: &[u8]) -> Result<StoredTrade> {
    let (version, body) = split_version(V2, table, bytes)?;
    read_trade(version, body).ok_or_else(|| corrupt(table, "not a trade"))
}

/// Reads the fields of either version; the versions differ in their flags.
#[inline]
fn read_trade(version: u8, body: &[u8]) -> Option<StoredTrade> {
    let (&flags, rest) = body.split_first()?;
    let (token, rest) = read_number(rest)?;
    let (venue, rest) = read_number(rest)?;
    let (units, rest) = read_amount(flags & HAS_UNITS != 0, rest)?;
    let (native, rest) = read_amount(flags & HAS_NATIVE != 0, rest)?;
    let valued = match version {
        V1 if flags & !FLAGS_V1 != 0 => None,
        V1 => Some(ValueSource::of_transaction(native)),
        _ => source_of(flags >> SOURCE_AT),
    }?;
    let trade = StoredTrade { side: side_of(flags), token, venue, units, native, valued };
    rest.is_empty().then_some(trade)
}

/// Whether a stored trade has a value that its transaction does not contain, or is pending.
pub(super) fn is_derived_or_pending(bytes: &[u8]) -> bool {
    let [V2, flags, ..] = bytes else { return false };
    source_of(flags >> SOURCE_AT)
        .is_some_and(|source| source.is_derived() || source == ValueSource::Pending)
}

/// Whether a stored trade has a value that its transaction contains.
pub(super) fn has_exact_value(bytes: &[u8]) -> bool {
    match bytes {
        [V1, flags, ..] => flags & HAS_NATIVE != 0,
        [V2, flags, ..] => {
            let source = source_of(flags >> SOURCE_AT);
            flags & HAS_NATIVE != 0 && source.is_some_and(ValueSource::is_of_transaction)
        }
        _ => false,
    }
}

/// Whether a stored trade is a sale.
pub(super) fn is_sale(bytes: &[u8]) -> bool {
    matches!(bytes, [V1 | V2, flags, ..] if side_of(*flags) == Side::Sell)
}

/// The stored number, never reused.
const fn number_of(source: ValueSource) -> u8 {
    match source {
        ValueSource::Unknown => 0,
        ValueSource::Direct => 1,
        ValueSource::Route => 2,
        ValueSource::ReferencePool => 3,
        ValueSource::Learned => 4,
        ValueSource::Candle => 5,
        ValueSource::Token => 6,
        ValueSource::Pending => 7,
    }
}

/// The inverse of [`number_of`].
static BY_NUMBER: [ValueSource; ValueSource::ALL.len()] = by_number();

#[expect(clippy::indexing_slicing, clippy::as_conversions, reason = "a table made at build time")]
const fn by_number() -> [ValueSource; ValueSource::ALL.len()] {
    let mut table = ValueSource::ALL;
    let mut at = 0;
    while at < table.len() {
        table[number_of(ValueSource::ALL[at]) as usize] = ValueSource::ALL[at];
        at += 1;
    }
    table
}

fn source_of(number: u8) -> Option<ValueSource> {
    BY_NUMBER.get(usize::from(number)).copied()
}

fn side_of(flags: u8) -> Side {
    if flags & SELL == 0 { Side::Buy } else { Side::Sell }
}

/// Side, token and venue of a trade of the second version.
#[inline]
pub(super) fn head_of(bytes: &[u8]) -> Option<(Side, u32, u32)> {
    let [V2, flags, rest @ ..] = bytes else { return None };
    let (token, rest) = read_number(rest)?;
    let (venue, _) = read_number(rest)?;
    Some((side_of(*flags), token, venue))
}

/// Reads bincode's variable-length integer: a byte up to 250, or 251 and two bytes, or 252 and four.
#[inline]
fn read_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    match bytes {
        [byte @ ..251, rest @ ..] => Some((u32::from(*byte), rest)),
        [251, a, b, rest @ ..] => Some((u32::from(u16::from_le_bytes([*a, *b])), rest)),
        [252, a, b, c, d, rest @ ..] => Some((u32::from_le_bytes([*a, *b, *c, *d]), rest)),
        _ => None,
    }
}

/// Reads an amount of at most 256 bits; an absent one has no digits.
#[inline]
fn read_amount(is_there: bool, bytes: &[u8]) -> Option<(Option<Units>, &[u8])> {
    let (len, rest) = read_number(bytes)?;
    let (digits, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    match digits {
        [] if !is_there => Some((None, rest)),
        digits => units_of(digits).filter(|_| is_there).map(|units| (Some(units), rest)),
    }
}

/// Nearly all amounts fit a word.
#[inline]
fn units_of(digits: &[u8]) -> Option<Units> {
    if digits.len() > 8 {
        return Units::try_from_be_slice(digits);
    }
    let word = digits.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Some(Units::from_limbs([word, 0, 0, 0]))
}

#[cfg(test)]
mod tests {
    use bincode::{BorrowDecode, Encode};
    use proptest::prelude::*;

    use super::*;
    use crate::store::StoreError;
    use crate::store::codec::decode_up_to;

    const T: &str = "test";

    /// The fields of both versions, as bincode reads and writes them.
    #[derive(Debug, PartialEq, Eq, BorrowDecode, Encode)]
    struct Trade<'a> {
        flags: u8,
        token: u32,
        venue: u32,
        units: &'a [u8],
        native: &'a [u8],
    }

    fn decode_by_bincode(bytes: &[u8]) -> Result<StoredTrade> {
        let (version, stored): (_, Trade<'_>) = decode_up_to(V2, T, bytes)?;
        let amount = |flag: u8, bytes: &[u8]| match (stored.flags & flag, bytes) {
            (0, []) => Ok(None),
            (0, _) => Err(corrupt(T, "an amount that should not be there")),
            (_, bytes) => Units::try_from_be_slice(bytes)
                .map(Some)
                .ok_or_else(|| corrupt(T, "an amount of more than 256 bits")),
        };
        if version == V1 && stored.flags & !FLAGS_V1 != 0 {
            return Err(corrupt(T, "unknown flags"));
        }
        let native = amount(HAS_NATIVE, stored.native)?;
        let valued = match version {
            V1 => ValueSource::of_transaction(native),
            _ => source_of(stored.flags >> SOURCE_AT).ok_or_else(|| corrupt(T, "unknown flags"))?,
        };
        Ok(StoredTrade {
            side: side_of(stored.flags),
            token: stored.token,
            venue: stored.venue,
            units: amount(HAS_UNITS, stored.units)?,
            native,
            valued,
        })
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for version in [None, Some(V1), Some(V2)] {
                let bytes: Vec<u8> = version.into_iter().chain(bytes.iter().copied()).collect();
                match (decode_trade(T, &bytes), decode_by_bincode(&bytes)) {
                    (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
                    (one, other) => prop_assert!(one.is_err() && other.is_err()),
                }
                let _ = is_derived_or_pending(&bytes);
                if let Ok(row) = decode_trade(T, &bytes) {
                    let is_exact = row.native.is_some() && row.valued.is_of_transaction();
                    prop_assert_eq!(has_exact_value(&bytes), is_exact);
                }
            }
            // A body is read only at the length at which bincode reads it.
            for end in 0..bytes.len() {
                if let Some(read) = read_trade(V2, &bytes[..end]) {
                    let bytes: Vec<u8> = [V2].into_iter().chain(bytes[..end].iter().copied()).collect();
                    prop_assert_eq!(read, decode_by_bincode(&bytes).unwrap());
                }
            }
        }
    }

    /// `codec_properties.rs` has the rest: what both versions write.
    #[test]
    fn unknown_flags_and_newer_versions_are_errors() {
        // Version, flags, token, venue, two digits, none. The first version has no sources, the
        // second none above 7.
        assert!(decode_trade(T, &[1, 3 | 1 << 3, 1, 7, 2, 1, 2, 0]).is_err());
        assert!(decode_trade(T, &[2, 3 | 8 << 3, 1, 7, 2, 1, 2, 0]).is_err());
        let newer = decode_trade(T, &[3, 3, 1, 7, 2, 1, 2, 0]);
        assert!(matches!(newer, Err(StoreError::NewerRecord { found: 3, .. })));
    }
}
