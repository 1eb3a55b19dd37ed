//! Reads JSON from front to back, borrowing every text: a transaction is mostly texts of which few
//! are looked at, and a general deserializer spends most of its time on the others.
//!
//! What is skipped is only held to matching brackets and ended strings.

use memchr::memchr2;

/// Levels of nesting that may be skipped.
const DEPTH_MAX: u32 = 128;

/// So many decimal digits fit into 64 bits, whatever they are.
const SAFE_DIGITS: usize = 19;

/// Not the JSON that was looked for, at this byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unread(pub(super) usize);

#[derive(Debug)]
pub(super) struct Reader<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0 }
    }

    pub(super) fn fail<T>(&self) -> Result<T, Unread> {
        Err(Unread(self.at))
    }

    /// Reads an object: `each` is given every name and must read the value behind it.
    pub(super) fn object<E: From<Unread>>(
        &mut self,
        mut each: impl FnMut(&mut Self, &'a [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'{')?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.expect(b':')?;
            each(self, name)?;
            if !self.eat(b',') {
                return Ok(self.expect(b'}')?);
            }
        }
    }

    /// Reads an array: `each` must read one element.
    pub(super) fn array<E: From<Unread>>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'[')?;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.eat(b',') {
                return Ok(self.expect(b']')?);
            }
        }
    }

    /// A string that needs no unescaping; addresses, amounts and data never do.
    pub(super) fn text(&mut self) -> Result<&'a [u8], Unread> {
        self.expect(b'"')?;
        let rest = self.json.get(self.at..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            Some(len) if rest.get(len) == Some(&b'"') => {
                self.at += len + 1;
                Ok(rest.get(..len).unwrap_or_default())
            }
            _ => self.fail(),
        }
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, Unread> {
        self.peek();
        let rest = self.json.get(self.at..).unwrap_or_default();
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = rest.get(..len).unwrap_or_default();
        let number = if len <= SAFE_DIGITS {
            digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit & 0xf))
        } else {
            let text = std::str::from_utf8(digits).unwrap_or_default();
            let Ok(number) = text.parse() else { return self.fail() };
            number
        };
        self.at += len;
        if len == 0 || matches!(rest.get(len), Some(b'.' | b'e' | b'E')) {
            return self.fail();
        }
        Ok(number)
    }

    pub(super) fn signed(&mut self) -> Result<i64, Unread> {
        let negative = self.eat(b'-');
        let Ok(number) = i64::try_from(self.unsigned()?) else { return self.fail() };
        Ok(if negative { -number } else { number })
    }

    pub(super) fn boolean(&mut self) -> Result<bool, Unread> {
        match self.skip()? {
            b"true" => Ok(true),
            b"false" => Ok(false),
            _ => self.fail(),
        }
    }

    /// `None` for `null`.
    pub(super) fn optional<T, E: From<Unread>>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        if self.peek() != Some(b'n') {
            return read(self).map(Some);
        }
        match self.skip()? {
            b"null" => Ok(None),
            _ => Ok(self.fail()?),
        }
    }

    /// Whatever value stands here, as it is written.
    pub(super) fn skip(&mut self) -> Result<&'a [u8], Unread> {
        if matches!(self.peek(), None | Some(b',' | b':' | b'}' | b']')) {
            return self.fail();
        }
        let start = self.at;
        // One bit for every open bracket: whether it is a brace.
        let (mut braces, mut depth) = (0_u128, 0_u32);
        loop {
            match self.peek() {
                Some(b'"') => drop(self.string()?),
                Some(byte @ (b'{' | b'[')) => {
                    if depth == DEPTH_MAX {
                        return self.fail();
                    }
                    braces = braces << 1 | u128::from(byte == b'{');
                    depth += 1;
                    self.at += 1;
                }
                Some(byte @ (b'}' | b']')) => {
                    if depth == 0 || (byte == b'}') != (braces & 1 == 1) {
                        return self.fail();
                    }
                    braces >>= 1;
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b':') => self.at += 1,
                Some(_) => self.skip_word(),
                None => return self.fail(),
            }
            if depth == 0 {
                return Ok(self.json.get(start..self.at).unwrap_or_default());
            }
        }
    }

    /// Holds that nothing stands behind what was read.
    pub(super) fn end(&mut self) -> Result<(), Unread> {
        if self.peek().is_none() && self.at == self.json.len() { Ok(()) } else { self.fail() }
    }

    /// The next byte that is no space, where there is one.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.json.get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Unread> {
        if self.eat(byte) { Ok(()) } else { self.fail() }
    }

    /// A string as it is written, without the quotes.
    fn string(&mut self) -> Result<&'a [u8], Unread> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let rest = self.json.get(self.at..).unwrap_or_default();
            let Some(len) = memchr2(b'"', b'\\', rest) else { return self.fail() };
            let end = self.at + len;
            if rest.get(len) == Some(&b'"') {
                self.at = end + 1;
                return Ok(self.json.get(start..end).unwrap_or_default());
            }
            // What is escaped is no end.
            self.at = end + 2;
        }
    }

    /// A number, or `true`, `false` or `null`.
    fn skip_word(&mut self) {
        self.at += 1;
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-');
        while self.json.get(self.at).is_some_and(word) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn skipped(json: &str) -> Result<&str, Unread> {
        let mut reader = Reader::new(json.as_bytes());
        let value = reader.skip()?;
        reader.end()?;
        Ok(std::str::from_utf8(value).unwrap())
    }

    #[test]
    fn skips_whole_values() {
        for json in [
            "null",
            "-1.5e+3",
            "\"\"",
            r#""a \" ] \\""#,
            "[]",
            r#"[{"a":[1,{}],"]}":"\\"},2]"#,
            " { } ",
        ] {
            assert_eq!(skipped(json), Ok(json.trim()));
        }
        for json in ["", " ", "[", "]", "[}", "{]", "\"", r#""\"#, ",", "1 2", "[1]]", "\u{feff}1"]
        {
            assert!(skipped(json).is_err(), "{json}");
        }
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(skipped(&deep(128)).is_ok() && skipped(&deep(129)).is_err());
    }

    #[test]
    fn reads_numbers_that_fit() {
        let unsigned = |json: &'static str| Reader::new(json.as_bytes()).unsigned();
        assert_eq!(unsigned("18446744073709551615"), Ok(u64::MAX));
        for json in ["18446744073709551616", "-1", "1.0", "1e3", "\"1\"", "", "null"] {
            assert!(unsigned(json).is_err(), "{json}");
        }
        let signed = |json: &'static str| Reader::new(json.as_bytes()).signed();
        assert_eq!(signed("-5"), Ok(-5));
        assert!(signed("9223372036854775808").is_err());
    }

    #[test]
    fn a_text_with_an_escape_is_none() {
        assert_eq!(Reader::new(b"\"abc\"").text(), Ok(&b"abc"[..]));
        assert!(Reader::new(br#""a\u0062c""#).text().is_err());
        assert!(Reader::new(b"\"abc").text().is_err());
    }

    proptest! {
        #[test]
        fn reads_any_bytes_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Reader::new(&bytes).skip();
            let _ = Reader::new(&bytes).text();
            let _ = Reader::new(&bytes).signed();
            let _ = Reader::new(&bytes).array::<Unread>(|reader| reader.skip().map(drop));
            let _ = Reader::new(&bytes).object::<Unread>(|reader, _| reader.skip().map(drop));
        }

        /// What another library writes is one value, to its end.
        #[test]
        fn skips_what_another_library_writes(texts in prop::collection::vec(any::<String>(), 0..5), number in any::<i64>()) {
            let json = serde_json::json!({"texts": texts, "inner": [[number], {"a": texts}]}).to_string();
            prop_assert_eq!(skipped(&json), Ok(json.as_str()));
        }
    }
}
