//! Writes rows as JSON without a serializer: exact decimals and no intermediate values.

use std::fmt::Write as _;

use crate::domain::{Decimal, Numbers, RowRef, Rows, Side, TimeText, Token};

pub const ROW_BYTES_TYPICAL: usize = 320;

/// Appends rows, as streams and pages write them: the elements of an array, without its
/// brackets.
pub fn rows_json(rows: &Rows, native_decimals: u8, numbers: Numbers, out: &mut Vec<u8>) {
    out.reserve(rows.len() * ROW_BYTES_TYPICAL);
    let venues: Vec<Vec<u8>> = rows.venues().iter().map(|name| venue(name)).collect();
    let mut times = TimeText::default();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let venue = venues.get(row.bare.venue).map(Vec::as_slice).unwrap_or_default();
        row_json(row, venue, native_decimals, numbers, out);
        out.extend_from_slice(times.of(row.bare.key.time));
        out.extend_from_slice(b"\"}");
    }
}

/// Appends a row without its time, which closes it.
fn row_json(
    row: RowRef<'_>,
    venue: &[u8],
    native_decimals: u8,
    numbers: Numbers,
    out: &mut Vec<u8>,
) {
    let bare = row.bare;
    out.extend_from_slice(b"{\"signature\":\"");
    bare.key.tx.push_text(out);
    out.extend_from_slice(match bare.side {
        Side::Buy => b"\",\"side\":\"buy\",".as_slice(),
        Side::Sell => b"\",\"side\":\"sell\",".as_slice(),
    });
    out.extend_from_slice(row.token.written(token));
    out.extend_from_slice(b",\"amountSol\":");
    numbers.push(bare.native.map(|units| Decimal { units, decimals: native_decimals }), out);
    out.extend_from_slice(b",\"amount\":");
    numbers.push(row.amount(), out);
    out.extend_from_slice(venue);
}

fn token(token: &Token) -> Vec<u8> {
    let (mut out, mint) = (b"\"token\":".to_vec(), token.mint.to_string());
    match &token.symbol {
        Some(symbol) => string(&mut out, symbol),
        None => string(&mut out, &short(&mint)),
    }
    out.extend_from_slice(b",\"tokenMint\":");
    string(&mut out, &mint);
    out
}

/// The part between the amounts and the time.
fn venue(name: &str) -> Vec<u8> {
    let mut out = b",\"dex\":".to_vec();
    string(&mut out, name);
    out.extend_from_slice(b",\"blockTime\":\"");
    out
}

/// The first and last four characters of a mint, shown in place of an unknown symbol.
pub fn short(mint: &str) -> String {
    let end = mint.len().saturating_sub(4);
    match (mint.get(..4), mint.get(end..)) {
        (Some(first), Some(last)) => format!("{first}…{last}"),
        _ => mint.to_owned(),
    }
}

/// A JSON string. Line breaks beyond ASCII are escaped too, because readers that split NDJSON with
/// a Unicode-aware line splitter would cut a line there.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    // Without an early return: names are short, and a branch-free loop is faster.
    if text.bytes().fold(true, |plain, byte| plain & is_plain(byte)) {
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    for run in text.split_inclusive(needs_escape) {
        let Some(last) = run.chars().next_back().filter(|c| needs_escape(*c)) else {
            out.extend_from_slice(run.as_bytes());
            continue;
        };
        let plain = run.len() - last.len_utf8();
        out.extend_from_slice(run.as_bytes().get(..plain).unwrap_or_default());
        escape(out, last);
    }
    out.push(b'"');
}

/// Whether a byte is ASCII and needs no escape, as in nearly all names.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

fn needs_escape(c: char) -> bool {
    matches!(c, '"' | '\\' | '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}')
}

fn escape(out: &mut Vec<u8>, c: char) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        _ => {
            let mut text = String::with_capacity(6);
            let _ = write!(text, "\\u{:04x}", u32::from(c));
            out.extend_from_slice(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::{
        Address, Family, Row, Trade, TradeKey, TxId, Units, UnixSeconds, ValueSource,
    };

    const MINT: &str = "DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263";

    fn row(symbol: Option<&str>, venue: &str, units: Option<u64>, native: Option<u64>) -> Row {
        let mint = Address::parse(Family::Solana, MINT).unwrap();
        let key = TradeKey {
            time: UnixSeconds(1_700_000_000),
            height: 1,
            index: 0,
            tx: TxId::solana(&[1; 64]),
            leg: 0,
        };
        let token = Token::new(mint, symbol.map(Arc::from), Some(5));
        let trade = Trade {
            key,
            side: Side::Sell,
            mint,
            units: units.map(Units::from),
            native: native.map(Units::from),
            valued: ValueSource::of_transaction(native.map(Units::from)),
            venue: venue.into(),
        };
        Row { trade, token: Arc::new(token) }
    }

    fn encode(row: Row, numbers: Numbers) -> String {
        let mut out = Vec::new();
        rows_json(&[row].into_iter().collect(), 9, numbers, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_as_text_are_the_same_digits_in_quotes() {
        let text = |units, native| {
            let row = row(Some("BONK"), "Orca", units, native);
            (encode(row.clone(), Numbers::Literal), encode(row, Numbers::Text))
        };
        let (literal, quoted) = text(Some(u64::MAX), Some(1));
        assert!(literal.contains("\"amountSol\":0.000000001,\"amount\":184467440737095.51615,"));
        assert!(
            quoted.contains("\"amountSol\":\"0.000000001\",\"amount\":\"184467440737095.51615\",")
        );
        let (literal, quoted) = text(None, None);
        assert_eq!(literal, quoted);
    }

    #[test]
    fn what_is_unknown_is_null_and_a_missing_symbol_is_the_mint_in_short() {
        let signature = bs58::encode([1; 64]).into_string();
        let expected = format!(
            "{{\"signature\":\"{signature}\",\"side\":\"sell\",\"token\":\"DezX…B263\",\
             \"tokenMint\":\"{MINT}\",\"amountSol\":null,\"amount\":null,\
             \"dex\":\"Orca \\\"v2\\\"\",\"blockTime\":\"2023-11-14T22:13:20+00:00\"}}"
        );
        let row = row(None, "Orca \"v2\"", None, None);
        assert_eq!(encode(row, Numbers::Literal), expected);
    }
}
