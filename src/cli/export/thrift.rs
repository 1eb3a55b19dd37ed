//! The part of Thrift's compact protocol that Parquet's metadata uses (thrift-compact-protocol.md).

// Types of fields and list elements.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Writes one struct; callers add fields in ascending order.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn field(&mut self, number: u8, kind: u8) {
        let step = number.saturating_sub(self.last);
        self.last = number;
        // The short form: consecutive fields of these structs are at most 15 apart.
        self.bytes.push((step << 4) | kind);
    }

    pub(super) fn boolean(&mut self, number: u8, value: bool) {
        self.field(number, if value { TRUE } else { FALSE });
    }

    pub(super) fn i32(&mut self, number: u8, value: i32) {
        self.field(number, I32);
        zigzag(&mut self.bytes, i64::from(value));
    }

    pub(super) fn i64(&mut self, number: u8, value: u64) {
        self.field(number, I64);
        zigzag(&mut self.bytes, i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(super) fn text(&mut self, number: u8, value: &str) {
        self.field(number, BINARY);
        binary(&mut self.bytes, value);
    }

    pub(super) fn structure(&mut self, number: u8, value: Self) {
        self.field(number, STRUCT);
        self.bytes.extend(value.finish());
    }

    pub(super) fn structures(&mut self, number: u8, values: Vec<Self>) {
        self.list(number, STRUCT, values.len());
        for value in values {
            self.bytes.extend(value.finish());
        }
    }

    pub(super) fn i32s(&mut self, number: u8, values: &[i32]) {
        self.list(number, I32, values.len());
        for value in values {
            zigzag(&mut self.bytes, i64::from(*value));
        }
    }

    pub(super) fn texts(&mut self, number: u8, values: &[&str]) {
        self.list(number, BINARY, values.len());
        for value in values {
            binary(&mut self.bytes, value);
        }
    }

    fn list(&mut self, number: u8, of: u8, len: usize) {
        self.field(number, LIST);
        match u8::try_from(len) {
            Ok(len) if len < 15 => self.bytes.push((len << 4) | of),
            _ => {
                self.bytes.push(0xf0 | of);
                varint(&mut self.bytes, u64::try_from(len).unwrap_or(u64::MAX));
            }
        }
    }

    /// The bytes with the stop field.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    varint(bytes, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

fn binary(bytes: &mut Vec<u8>, value: &str) {
    varint(bytes, u64::try_from(value.len()).unwrap_or(u64::MAX));
    bytes.extend_from_slice(value.as_bytes());
}
