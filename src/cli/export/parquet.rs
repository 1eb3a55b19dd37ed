//! A history as an Apache Parquet file, written by row groups in bounded memory.
//!
//! Plain encoding with one page for each column of a group, compressed by Zstandard, which every
//! reader supports. Amounts are text with all digits, because 256 bits exceed readers' decimal
//! types. The footer lists the groups; between two calls the list is kept in the side file. Layout:
//! the Parquet project's `parquet.thrift` and `README.md`.

use std::io::{self, Write};

use serde_json::value::RawValue;

use super::thrift::{Struct, varint};
use crate::cli::export::ExportSubject;
use crate::cli::output::{ColumnChunk, Encode, Ending, RowGroup, State, TradeLine};

const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a group, which is held in memory until it is written.
const GROUP_ROWS: usize = 20_000;
const ZSTD_LEVEL: i32 = 3;

// Values of parquet.thrift.
const TYPE_INT64: i32 = 2;
const TYPE_BYTE_ARRAY: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const CONVERTED_UTF8: i32 = 0;
const CONVERTED_TIMESTAMP_MILLIS: i32 = 9;
const ENCODING_PLAIN: i32 = 0;
const ENCODING_RLE: i32 = 3;
const CODEC_ZSTD: i32 = 6;
const PAGE_DATA: i32 = 0;
const VERSION: i32 = 1;

struct Column {
    name: &'static str,
    value: Value,
}

impl Column {
    fn is_optional(&self) -> bool {
        !matches!(self.value, Value::Text(_))
    }
}

enum Value {
    Text(fn(&TradeLine) -> &str),
    Number(fn(&TradeLine) -> Option<&RawValue>),
    Time,
}

const COLUMNS: [Column; 8] = [
    Column { name: "signature", value: Value::Text(|row| &row.signature) },
    Column { name: "side", value: Value::Text(|row| &row.side) },
    Column { name: "token", value: Value::Text(|row| &row.token) },
    Column { name: "tokenMint", value: Value::Text(|row| &row.token_mint) },
    Column { name: "amountSol", value: Value::Number(|row| row.amount_sol.as_deref()) },
    Column { name: "amount", value: Value::Number(|row| row.amount.as_deref()) },
    Column { name: "dex", value: Value::Text(|row| &row.dex) },
    Column { name: "blockTime", value: Value::Time },
];

pub(in crate::cli) struct Parquet {
    about: [(&'static str, String); 2],
    held: Vec<TradeLine>,
    groups: Vec<RowGroup>,
    at: u64,
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn size(bytes: &[u8]) -> io::Result<i32> {
    i32::try_from(bytes.len()).map_err(io::Error::other)
}

impl Parquet {
    pub(in crate::cli) fn new(subject: &ExportSubject) -> Self {
        let about = [("wallet", subject.wallet.clone()), ("chain", subject.chain.clone())];
        Self { about, held: Vec::new(), groups: Vec::new(), at: 0 }
    }

    fn put(&mut self, to: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
        self.at += length(bytes);
        to.write_all(bytes)
    }

    fn write_group(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let rows = std::mem::take(&mut self.held);
        if rows.is_empty() {
            return Ok(());
        }
        let mut columns = Vec::with_capacity(COLUMNS.len());
        for column in &COLUMNS {
            let plain = page(column, &rows)?;
            let packed = zstd::bulk::compress(&plain, ZSTD_LEVEL)?;
            let head = page_head(rows.len(), &plain, &packed)?;
            let offset = self.at;
            self.put(to, &head)?;
            self.put(to, &packed)?;
            let (plain_bytes, bytes) =
                (length(&head) + length(&plain), length(&head) + length(&packed));
            columns.push(ColumnChunk { offset, plain_bytes, bytes });
        }
        let rows = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        self.groups.push(RowGroup { rows, columns });
        Ok(())
    }

    fn footer(&self, complete: bool) -> Vec<u8> {
        let mut file = Struct::default();
        file.i32(1, VERSION);
        file.structures(2, schema());
        file.i64(3, self.groups.iter().map(|group| group.rows).sum());
        file.structures(4, self.groups.iter().map(group).collect());
        let about = self.about.iter().map(|(key, value)| pair(key, value));
        let complete = pair("complete", if complete { "true" } else { "false" });
        file.structures(5, about.chain([complete]).collect());
        file.text(6, concat!("blotter version ", env!("CARGO_PKG_VERSION")));
        file.finish()
    }
}

fn pair(key: &str, value: &str) -> Struct {
    let mut pair = Struct::default();
    pair.text(1, key);
    pair.text(2, value);
    pair
}

fn schema() -> Vec<Struct> {
    let mut root = Struct::default();
    root.text(4, "trade");
    root.i32(5, i32::try_from(COLUMNS.len()).unwrap_or_default());
    std::iter::once(root).chain(COLUMNS.iter().map(element)).collect()
}

fn element(column: &Column) -> Struct {
    let is_time = matches!(column.value, Value::Time);
    let mut element = Struct::default();
    element.i32(1, kind(column));
    element.i32(3, if column.is_optional() { OPTIONAL } else { REQUIRED });
    element.text(4, column.name);
    element.i32(6, if is_time { CONVERTED_TIMESTAMP_MILLIS } else { CONVERTED_UTF8 });
    let mut logical = Struct::default();
    if is_time {
        let mut unit = Struct::default();
        unit.structure(1, Struct::default());
        let mut time = Struct::default();
        time.boolean(1, true);
        time.structure(2, unit);
        logical.structure(8, time);
    } else {
        logical.structure(1, Struct::default());
    }
    element.structure(10, logical);
    element
}

fn kind(column: &Column) -> i32 {
    match column.value {
        Value::Text(_) | Value::Number(_) => TYPE_BYTE_ARRAY,
        Value::Time => TYPE_INT64,
    }
}

fn group(group: &RowGroup) -> Struct {
    let columns = COLUMNS.iter().zip(&group.columns).map(|(column, chunk)| {
        let mut meta = Struct::default();
        meta.i32(1, kind(column));
        meta.i32s(2, &[ENCODING_PLAIN, ENCODING_RLE]);
        meta.texts(3, &[column.name]);
        meta.i32(4, CODEC_ZSTD);
        meta.i64(5, group.rows);
        meta.i64(6, chunk.plain_bytes);
        meta.i64(7, chunk.bytes);
        meta.i64(9, chunk.offset);
        let mut at = Struct::default();
        at.i64(2, chunk.offset);
        at.structure(3, meta);
        at
    });
    let mut this = Struct::default();
    this.structures(1, columns.collect());
    this.i64(2, group.columns.iter().map(|chunk| chunk.plain_bytes).sum());
    this.i64(3, group.rows);
    this
}

fn page_head(rows: usize, plain: &[u8], packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut data = Struct::default();
    data.i32(1, i32::try_from(rows).map_err(io::Error::other)?);
    data.i32(2, ENCODING_PLAIN);
    data.i32(3, ENCODING_RLE);
    data.i32(4, ENCODING_RLE);
    let mut head = Struct::default();
    head.i32(1, PAGE_DATA);
    head.i32(2, size(plain)?);
    head.i32(3, size(packed)?);
    head.structure(5, data);
    Ok(head.finish())
}

/// A data page: for an optional column the definition levels, then the values that are present.
fn page(column: &Column, rows: &[TradeLine]) -> io::Result<Vec<u8>> {
    let (mut present, mut values) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let text = match column.value {
            Value::Text(of) => Some(of(row)),
            Value::Number(of) => of(row).map(RawValue::get),
            Value::Time => {
                let millis = millis(&row.block_time);
                values.extend(millis.into_iter().flat_map(i64::to_le_bytes));
                present.push(millis.is_some());
                continue;
            }
        };
        present.push(text.is_some());
        if let Some(text) = text {
            let length = u32::try_from(text.len()).map_err(io::Error::other)?;
            values.extend(length.to_le_bytes());
            values.extend_from_slice(text.as_bytes());
        }
    }
    if !column.is_optional() {
        return Ok(values);
    }
    let levels = levels(&present);
    let length = u32::try_from(levels.len()).map_err(io::Error::other)?;
    Ok([length.to_le_bytes().as_slice(), &levels, &values].concat())
}

fn millis(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// Definition levels of one bit, run-length encoded: twice the run's length, then the level.
fn levels(present: &[bool]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in present.chunk_by(|one, next| one == next) {
        varint(&mut bytes, u64::try_from(run.len()).unwrap_or(u64::MAX) << 1);
        bytes.push(u8::from(run.first() == Some(&true)));
    }
    bytes
}

impl Encode for Parquet {
    fn begin(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.put(to, MAGIC)
    }

    fn rows(&mut self, to: &mut dyn Write, rows: Vec<TradeLine>, _cursor: &str) -> io::Result<()> {
        self.held.extend(rows);
        if self.held.len() >= GROUP_ROWS { self.write_group(to) } else { Ok(()) }
    }

    fn end(&mut self, to: &mut dyn Write, ending: &Ending) -> io::Result<()> {
        self.write_group(to)?;
        let footer = self.footer(ending.is_whole());
        self.put(to, &footer)?;
        self.put(to, &u32::try_from(footer.len()).map_err(io::Error::other)?.to_le_bytes())?;
        self.put(to, MAGIC)?;
        to.flush()
    }

    fn pause(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.write_group(to)
    }

    /// Only between two groups, since buffered rows are not in the file yet.
    fn state(&self) -> Option<State> {
        let groups = self.groups.clone();
        self.held.is_empty().then_some(State { groups, ..State::default() })
    }

    fn restore(&mut self, state: State, _rows: u64) {
        let end = |chunk: &ColumnChunk| chunk.offset + chunk.bytes;
        let last = state.groups.last().and_then(|group| group.columns.last());
        self.at = last.map_or(length(MAGIC), end);
        self.groups = state.groups;
    }
}
