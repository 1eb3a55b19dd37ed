//! Every stored version of every record decodes to what was encoded, and neither a part of its
//! bytes nor more than them decode. A second encoder here writes both versions of trades.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::codec::*;
use super::trade_codec::*;
use super::{Anchor, DeliveredRange, Pending, Result, TokenRecord, WalletId};
use crate::domain::{
    Address, ChainId, Coverage, Doubts, Family, KeyId, LearnedPrice, Price, Proof, Resume, Side,
    SourceAccount, Span, TradeKey, TxId, Units, UnixMillis, UnixSeconds, ValueSource, Wallet, Way,
};

const T: &str = "test";

/// The bytes decode to the value; a part of them, more than them, or another version is an error.
fn check<V: PartialEq + std::fmt::Debug>(
    value: &V,
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<V>,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(&decode(bytes).unwrap(), value);
    for end in 0..bytes.len() {
        prop_assert!(decode(&bytes[..end]).is_err(), "{} of {}", end, bytes.len());
    }
    prop_assert!(decode(&[bytes, &[0]].concat()).is_err());
    for version in [0, 3, 4, u8::MAX] {
        prop_assert!(decode(&[&[version], &bytes[1..]].concat()).is_err());
    }
    Ok(())
}

fn units() -> impl Strategy<Value = Option<Units>> {
    let some = (any::<[u64; 4]>(), 0_usize..256)
        .prop_map(|(limbs, shift)| Units::from_limbs(limbs) >> shift);
    option::of(prop_oneof![1 => Just(Units::ZERO), 1 => Just(Units::MAX), 6 => some])
}

fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        any::<[u8; 32]>().prop_map(Address::Solana),
        any::<[u8; 20]>().prop_map(Address::Evm),
        any::<[u8; 20]>().prop_map(Address::Tron),
    ]
}

fn coverage() -> impl Strategy<Value = Coverage> {
    let low = prop_oneof![9 => any::<u64>(), 1 => u64::MAX - 999..];
    let heights = (low, 0_u64..1000, any::<u16>());
    let resume = option::of(vec(any::<u8>(), 0..40));
    let read = (0_u8..9, 0_u16..1 << 9, vec(vec(any::<u8>(), 64), 0..3));
    vec((heights, resume, read), 0..6).prop_map(|spans| {
        let mut coverage = Coverage::default();
        for ((low, more, decoder), resume, (way, doubts, ids)) in spans {
            let (high, resume) = (low.saturating_add(more), resume.map(Resume));
            let (way, doubts) =
                (Way::from_number(way).unwrap(), Doubts::from_bits(doubts).unwrap());
            let missing = |id: Vec<u8>| match way {
                Way::Unknown => None,
                Way::Signatures | Way::FullPages => TxId::from_bytes(Family::Solana, &id),
                Way::Portal | Way::Explorer | Way::Transfers | Way::Logs => {
                    TxId::from_bytes(Family::Evm, &id[..32])
                }
                Way::Lists | Way::Events => TxId::from_bytes(Family::Tron, &id[..32]),
            };
            let missing = ids.into_iter().filter_map(missing).collect();
            coverage.insert(Span {
                low,
                high,
                decoder,
                resume,
                proof: Proof { way, doubts },
                missing,
            });
        }
        coverage
    })
}

fn state() -> impl Strategy<Value = WalletState> {
    let numbers = (any::<u64>(), any::<u64>(), any::<Option<u64>>(), any::<Option<u64>>());
    (coverage(), numbers, any::<bool>()).prop_map(
        |(coverage, (epoch, count, checked, cut), disordered)| WalletState {
            epoch,
            coverage,
            count,
            checked_at: checked.map(UnixMillis),
            cut,
            disordered,
        },
    )
}

fn key(family: Family) -> impl Strategy<Value = TradeKey> {
    let len = if family == Family::Solana { 64 } else { 32 };
    let id = vec(any::<u8>(), len);
    (any::<u32>(), any::<u64>(), any::<u32>(), id, any::<u16>()).prop_map(
        move |(time, height, index, id, leg)| TradeKey {
            time: UnixSeconds(time),
            height,
            index,
            tx: TxId::from_bytes(family, &id).unwrap(),
            leg,
        },
    )
}

fn ranges() -> impl Strategy<Value = (Family, Vec<DeliveredRange>)> {
    prop_oneof![Just(Family::Solana), Just(Family::Evm), Just(Family::Tron)].prop_flat_map(|f| {
        let range = (key(f), key(f)).prop_map(|(from, to)| DeliveredRange { from, to });
        (Just(f), vec(range, 0..5))
    })
}

fn trade() -> impl Strategy<Value = StoredTrade> {
    let number = || prop_oneof![0..300_u32, any::<u32>()];
    (any::<bool>(), number(), number(), units(), units(), 0..8_usize).prop_map(
        |(sell, token, venue, units, native, source)| StoredTrade {
            side: if sell { Side::Sell } else { Side::Buy },
            token,
            venue,
            units,
            native,
            valued: ValueSource::ALL[source],
        },
    )
}

/// bincode's integers: small ones are one byte, others follow a marker of their width.
fn number(value: u32, out: &mut Vec<u8>) {
    match value {
        0..=250 => out.push(u8::try_from(value).unwrap()),
        251..=0xFFFF => {
            out.push(251);
            out.extend(u16::try_from(value).unwrap().to_le_bytes());
        }
        0x1_0000.. => {
            out.push(252);
            out.extend(value.to_le_bytes());
        }
    }
}

/// Encodes a trade in either version, with the stored numbers of the sources.
fn by_hand(version: u8, trade: &StoredTrade) -> Vec<u8> {
    let source = match trade.valued {
        ValueSource::Unknown => 0,
        ValueSource::Direct => 1,
        ValueSource::Route => 2,
        ValueSource::ReferencePool => 3,
        ValueSource::Learned => 4,
        ValueSource::Candle => 5,
        ValueSource::Token => 6,
        ValueSource::Pending => 7,
    };
    let mut flags = u8::from(trade.side == Side::Sell);
    flags += 2 * u8::from(trade.units.is_some()) + 4 * u8::from(trade.native.is_some());
    flags += if version == 1 { 0 } else { 8 * source };
    let mut out = vec![version, flags];
    number(trade.token, &mut out);
    number(trade.venue, &mut out);
    for amount in [trade.units, trade.native] {
        let mut digits = Vec::new();
        let mut rest = amount.unwrap_or_default();
        while !rest.is_zero() {
            let (next, digit) = rest.div_rem(Units::from(256));
            digits.insert(0, u8::try_from(digit).unwrap());
            rest = next;
        }
        out.push(u8::try_from(digits.len()).unwrap());
        out.extend(digits);
    }
    out
}

proptest! {
    #[test]
    fn both_versions_of_a_trade_are_read_as_written_by_hand(trade in trade()) {
        let first = StoredTrade { valued: ValueSource::of_transaction(trade.native), ..trade };
        check(&first, &by_hand(1, &trade), |bytes| decode_trade(T, bytes))?;
        let second = by_hand(2, &trade);
        check(&trade, &second, |bytes| decode_trade(T, bytes))?;
        let mut written = vec![7; 9];
        encode_trade(&trade, &mut written);
        prop_assert_eq!(&written, &second);
        let expected = trade.valued.is_derived() || trade.valued == ValueSource::Pending;
        prop_assert_eq!(is_derived_or_pending(&second), expected);
        prop_assert!(!is_derived_or_pending(&by_hand(1, &trade)));
    }

    #[test]
    fn a_wallets_state_comes_back(state in state()) {
        check(&state, &encode_state(&state).unwrap(), |bytes| decode_state(T, bytes))?;
    }

    #[test]
    fn wallets_and_tokens_come_back(
        address in address(), chain in any::<u16>(), symbol in option::of(vec(any::<char>(), 0..9)),
        decimals in any::<Option<u8>>(), asked in any::<Option<u64>>(),
    ) {
        let chain = ChainId(chain);
        let wallet = Wallet { chain, address };
        check(&wallet, &encode_wallet(&wallet).unwrap(), |bytes| decode_wallet(T, bytes))?;
        let token = TokenRecord {
            chain,
            mint: address,
            symbol: symbol.map(|symbol| Arc::from(String::from_iter(symbol))),
            decimals,
            asked_at: asked.map(UnixMillis),
        };
        check(&token, &encode_token(&token).unwrap(), |bytes| decode_token(T, bytes))?;
    }

    #[test]
    fn anchors_demands_and_accounts_come_back(
        anchors in vec((any::<u64>(), any::<[u8; 32]>()), 0..9), numbers in any::<(u64, u64)>(),
        account in any::<([u8; 32], Option<u64>, Option<u64>)>(),
    ) {
        let anchors: Vec<Anchor> =
            anchors.into_iter().map(|(height, hash)| Anchor { height, hash }).collect();
        check(&anchors, &encode_anchors(&anchors).unwrap(), |bytes| decode_anchors(T, bytes))?;
        let pending = Pending { key: KeyId(numbers.0), until: UnixMillis(numbers.1) };
        check(&pending, &encode_pending(&pending).unwrap(), |bytes| decode_pending(T, bytes))?;
        let (id, amount, oldest) = account;
        let account = SourceAccount { account: id, amount, oldest };
        let bytes = encode_account(&account).unwrap();
        check(&account, &bytes, |bytes| decode_account(T, id, bytes))?;
    }

    #[test]
    fn what_was_delivered_comes_back((family, ranges) in ranges(), id in any::<u32>()) {
        let bytes = encode_ranges(WalletId(id), &ranges).unwrap();
        check(&ranges, &bytes, |bytes| decode_ranges(T, family, bytes))?;
    }

    #[test]
    fn prices_come_back(
        learned in vec(any::<(u32, u128, u64)>(), 0..9), candle in any::<Option<u128>>(),
    ) {
        let one = |(time, price, tag)| LearnedPrice { time: UnixSeconds(time), price: Price(price), tag };
        let learned: Vec<LearnedPrice> = learned.into_iter().map(one).collect();
        check(&learned, &encode_learned(&learned).unwrap(), |bytes| decode_learned(T, bytes))?;
        let candle = candle.map(Price);
        check(&candle, &encode_candle(candle).unwrap(), |bytes| decode_candle(T, bytes))?;
    }
}
