//! Rows to JSON: `cargo bench --bench encode`.
//!
//! The first member of the group `rows` is a copy of the bytes that come out, which no encoder can
//! beat; then this service's encoder, and what one would write without it: a derived serializer
//! over texts, with a fast and with a common base58. The other groups show what each trick buys.

#![expect(clippy::unwrap_used, reason = "a bench stops where its fixture is wrong")]
#![expect(clippy::indexing_slicing, reason = "as above")]

use std::hint::black_box;
use std::time::Duration;

use blotter::domain::row_json::rows_json;
use blotter::domain::{Address, Decimal, Numbers, Row, Rows, Side, Token, TxId, Units};
use criterion::{Criterion, Throughput};
use serde::Serialize;

#[expect(dead_code, reason = "other benches need more of it")]
mod synthetic;

const ROWS: u64 = 1_000;
const NATIVE_DECIMALS: u8 = 9;

fn main() {
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_secs(1))
        .configure_from_args();
    let rows = rows();
    whole(&mut criterion, &rows);
    signatures(&mut criterion, &rows);
    mints(&mut criterion, &rows);
    amounts(&mut criterion, &rows);
    criterion.final_summary();
}

/// As the store gives them: rows of one token share it.
fn rows() -> Vec<Row> {
    let mut tokens = std::collections::HashMap::new();
    (0..ROWS)
        .map(|at| {
            let trade = synthetic::trade(1, at, ROWS);
            let token = tokens.entry(trade.mint).or_insert_with(|| {
                std::sync::Arc::new(Token::new(trade.mint, Some("TOKEN".into()), Some(6)))
            });
            Row { token: std::sync::Arc::clone(token), trade }
        })
        .collect()
}

fn whole(criterion: &mut Criterion, rows: &[Row]) {
    let mut out = Vec::new();
    let stored: Rows = rows.iter().cloned().collect();
    rows_json(&stored, NATIVE_DECIMALS, Numbers::Literal, &mut out);
    let bytes = out.clone();
    let mut group = criterion.benchmark_group("rows");
    group.throughput(Throughput::Elements(ROWS));
    group.bench_function("copy", |b| {
        b.iter(|| {
            out.clear();
            out.extend_from_slice(black_box(&bytes));
        });
    });
    group.bench_function("ours", |b| {
        b.iter(|| {
            out.clear();
            rows_json(black_box(&stored), NATIVE_DECIMALS, Numbers::Literal, &mut out);
        });
    });
    let others: [(_, Base58); 2] = [("serde, five8", five8_text), ("serde, bs58", bs58_text)];
    for (name, base58) in others {
        group.bench_function(name, |b| {
            b.iter(|| {
                out.clear();
                let rows: Vec<_> =
                    black_box(rows).iter().map(|row| SerdeRow::new(row, base58)).collect();
                serde_json::to_writer(&mut out, &rows).unwrap();
            });
        });
        // The same bytes, but for the brackets of the array.
        assert_eq!(out.get(1..out.len() - 1), Some(bytes.as_slice()));
    }
    group.finish();
}

type Base58 = fn(&[u8]) -> String;

fn five8_text(bytes: &[u8]) -> String {
    let mut text = [0; 88];
    let len = match bytes.try_into() {
        Ok(bytes) => {
            let mut short = [0; 44];
            let len = usize::from(five8::encode_32(bytes, &mut short));
            text.iter_mut().zip(short).for_each(|(to, from)| *to = from);
            len
        }
        Err(_) => usize::from(five8::encode_64(bytes.try_into().unwrap(), &mut text)),
    };
    String::from_utf8(text.get(..len).unwrap().to_vec()).unwrap()
}

fn bs58_text(bytes: &[u8]) -> String {
    bs58::encode(bytes).into_string()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SerdeRow {
    signature: String,
    side: &'static str,
    token: String,
    token_mint: String,
    amount_sol: Option<Box<serde_json::value::RawValue>>,
    amount: Option<Box<serde_json::value::RawValue>>,
    dex: String,
    block_time: String,
}

impl SerdeRow {
    fn new(row: &Row, base58: Base58) -> Self {
        let trade = &row.trade;
        let number =
            |value: Decimal| serde_json::value::RawValue::from_string(value.to_string()).unwrap();
        let native = |units| Decimal { units, decimals: NATIVE_DECIMALS };
        Self {
            signature: base58(&trade.key.tx.to_bytes()),
            side: if trade.side == Side::Buy { "buy" } else { "sell" },
            token: row.token.symbol.as_deref().unwrap_or_default().to_owned(),
            token_mint: base58(row.token.mint.bytes()),
            amount_sol: trade.native.map(native).map(number),
            amount: row.amount().map(number),
            dex: trade.venue.to_string(),
            block_time: trade.key.time.to_string(),
        }
    }
}

fn signatures(criterion: &mut Criterion, rows: &[Row]) {
    let ids: Vec<TxId> = rows.iter().map(|row| row.trade.key.tx).collect();
    let bytes: Vec<Vec<u8>> = ids.iter().map(TxId::to_bytes).collect();
    let mut group = criterion.benchmark_group("signature");
    group.throughput(Throughput::Elements(ROWS));
    group.bench_function("digits kept", |b| {
        b.iter(|| ids.iter().for_each(|id| drop(black_box(id.to_string()))));
    });
    group.bench_function("from bytes, five8", |b| {
        b.iter(|| bytes.iter().for_each(|bytes| drop(black_box(five8_text(bytes)))));
    });
    group.bench_function("from bytes, bs58", |b| {
        b.iter(|| bytes.iter().for_each(|bytes| drop(black_box(bs58_text(bytes)))));
    });
    group.finish();
}

fn mints(criterion: &mut Criterion, rows: &[Row]) {
    let mut group = criterion.benchmark_group("mint");
    group.throughput(Throughput::Elements(ROWS));
    group.bench_function("kept with the token", |b| {
        b.iter(|| {
            for row in rows {
                let written = row.token.written(|token| token.mint.to_string().into());
                drop(black_box(written.to_owned()));
            }
        });
    });
    group.bench_function("base58", |b| {
        b.iter(|| rows.iter().for_each(|row| drop(black_box(row.token.mint.to_string()))));
    });
    let contract = Address::Evm([0xAB; 20]);
    group.bench_function("EIP-55", |b| {
        b.iter(|| rows.iter().for_each(|_| drop(black_box(black_box(contract).to_string()))));
    });
    group.finish();
}

/// Against a float, which is what must not be used and is often taken to be faster.
fn amounts(criterion: &mut Criterion, rows: &[Row]) {
    let units: Vec<Units> = rows.iter().filter_map(|row| row.trade.units).collect();
    let floats: Vec<f64> =
        units.iter().map(|units| units.to_string().parse::<f64>().unwrap()).collect();
    let mut group = criterion.benchmark_group("amount");
    group.throughput(Throughput::Elements(ROWS));
    group.bench_function("exact", |b| {
        b.iter(|| {
            for units in &units {
                black_box(Decimal { units: *units, decimals: 6 }.to_string());
            }
        });
    });
    group.bench_function("float", |b| {
        b.iter(|| floats.iter().for_each(|float| drop(black_box(serde_json::to_string(float)))));
    });
    group.finish();
}
