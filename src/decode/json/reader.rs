//! Reads JSON in one pass, borrowing every string: a transaction is mostly strings of which few are
//! used, and a general deserializer spends most of its time on the others.
//!
//! Skipped values are checked only for matching brackets and terminated strings.

use super::scan::{digits, find, find_far, find_near, quotes, stops};

/// Greatest nesting that can be skipped.
const DEPTH_MAX: u32 = 128;

/// The number of decimal digits that always fit 64 bits.
const SAFE_DIGITS: usize = 19;

/// The byte at which the JSON is not as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::decode) struct Unread(pub(in crate::decode) usize);

#[derive(Debug, Clone, Copy)]
pub(in crate::decode) struct Reader<'a> {
    len: usize,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(in crate::decode) fn new(json: &'a [u8]) -> Self {
        Self { len: json.len(), rest: json }
    }

    #[cold]
    pub(in crate::decode) fn fail<T>(&self) -> Result<T, Unread> {
        Err(Unread(self.len - self.rest.len()))
    }

    /// Reads an object: `each` receives every name and must read its value.
    #[inline]
    pub(in crate::decode) fn object<E: From<Unread>>(
        &mut self,
        mut each: impl FnMut(&mut Self, &'a [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'{')?;
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let name = self.name()?;
            each(self, name)?;
            if !self.eat(b',') {
                return Ok(self.expect(b'}')?);
            }
        }
    }

    /// The name of a member, up to and including its colon.
    #[inline]
    fn name(&mut self) -> Result<&'a [u8], Unread> {
        if let [b'"', behind @ ..] = self.rest
            && let Some(len) = find_near(behind, quotes)
            && let Some((name, [b'"', b':', rest @ ..])) = behind.split_at_checked(len)
            && name.last() != Some(&b'\\')
        {
            self.rest = rest;
            return Ok(name);
        }
        self.any_name()
    }

    /// A long name, or one with spaces or escapes.
    fn any_name(&mut self) -> Result<&'a [u8], Unread> {
        let name = self.string()?;
        self.expect(b':')?;
        Ok(name)
    }

    /// Skips exactly these bytes, if they are next.
    #[inline]
    pub(in crate::decode) fn next<const LEN: usize>(&mut self, bytes: &[u8; LEN]) -> Option<()> {
        let (next, rest) = self.rest.split_first_chunk()?;
        (next == bytes).then(|| self.rest = rest)
    }

    /// Tries the common spelling of a value. Returns `None` and consumes nothing if the text is
    /// spelled otherwise. The common spelling allows member names to be compared in place.
    #[inline]
    pub(in crate::decode) fn usual<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let mut ahead = *self;
        let value = read(&mut ahead)?;
        *self = ahead;
        Some(value)
    }

    /// Reads an array: `each` must read one element.
    #[inline]
    pub(in crate::decode) fn array<E: From<Unread>>(
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

    /// Reads an array of texts that may be long, each given without its quotes; returns the text of
    /// the array.
    pub(in crate::decode) fn texts(
        &mut self,
        mut each: impl FnMut(&'a [u8]),
    ) -> Result<&'a [u8], Unread> {
        self.peek();
        let start = self.rest;
        self.expect(b'[')?;
        let mut goes_on = !self.eat(b']');
        while goes_on {
            self.expect(b'"')?;
            each(self.string_until(find_far(self.rest))?);
            goes_on = self.eat(b',');
            if !goes_on {
                self.expect(b']')?;
            }
        }
        Ok(start.get(..start.len() - self.rest.len()).unwrap_or_default())
    }

    /// A string without escapes; amounts and data never have any.
    #[inline]
    pub(in crate::decode) fn text(&mut self) -> Result<&'a [u8], Unread> {
        self.expect(b'"')?;
        if let Some(len) = find_near(self.rest, stops)
            && let Some((text, [b'"', rest @ ..])) = self.rest.split_at_checked(len)
        {
            self.rest = rest;
            return Ok(text);
        }
        self.text_behind(0)
    }

    /// Reads a string that is expected to have at least `len_min` bytes, which are not searched for
    /// its end. The caller checks the length; for a shorter string the returned text is arbitrary.
    #[inline]
    pub(in crate::decode) fn text_of(&mut self, len_min: usize) -> Result<&'a [u8], Unread> {
        self.expect(b'"')?;
        self.text_behind(len_min)
    }

    /// Reads a string that may be long and is expected to have no escapes.
    #[inline]
    pub(in crate::decode) fn long_text(&mut self) -> Result<&'a [u8], Unread> {
        self.expect(b'"')?;
        self.string_until(find_far(self.rest))
    }

    /// The rest of a string whose first bytes are known to be inside.
    fn text_behind(&mut self, inside: usize) -> Result<&'a [u8], Unread> {
        let stop = self.rest.get(inside..).and_then(|rest| find(rest, stops));
        let Some(len) = stop.map(|stop| inside + stop) else { return self.fail() };
        match self.rest.split_at_checked(len) {
            Some((text, [b'"', rest @ ..])) => {
                self.rest = rest;
                Ok(text)
            }
            _ => self.fail(),
        }
    }

    #[inline]
    pub(in crate::decode) fn unsigned(&mut self) -> Result<u64, Unread> {
        // Fast path: a reply has hundreds of account indices.
        match *self.rest {
            [one @ b'0'..=b'9', b',' | b']' | b'}', ..] => {
                self.pass(1);
                Ok(u64::from(one & 0xf))
            }
            [ten @ b'0'..=b'9', one @ b'0'..=b'9', b',' | b']' | b'}', ..] => {
                self.pass(2);
                Ok(u64::from(ten & 0xf) * 10 + u64::from(one & 0xf))
            }
            _ => self.any_unsigned(),
        }
    }

    fn any_unsigned(&mut self) -> Result<u64, Unread> {
        self.peek();
        let (mut rest, mut number) = (self.rest, 0_u64);
        if let Some(word) = rest.first_chunk() {
            let (len, first) = digits(u64::from_le_bytes(*word));
            number = first;
            rest = rest.get(len..).unwrap_or_default();
        }
        // Overflows only with too many digits; the number is then not used.
        while let [digit @ b'0'..=b'9', behind @ ..] = rest {
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit & 0xf));
            rest = behind;
        }
        let len = self.rest.len() - rest.len();
        if len > SAFE_DIGITS {
            number = self.long_number(len)?;
        }
        if len == 0 || matches!(rest.first(), Some(b'.' | b'e' | b'E')) {
            return self.fail();
        }
        self.rest = rest;
        Ok(number)
    }

    #[cold]
    fn long_number(&self, len: usize) -> Result<u64, Unread> {
        let digits = self.rest.get(..len).and_then(|digits| std::str::from_utf8(digits).ok());
        digits.and_then(|digits| digits.parse().ok()).map_or_else(|| self.fail(), Ok)
    }

    pub(in crate::decode) fn signed(&mut self) -> Result<i64, Unread> {
        let negative = self.eat(b'-');
        let Ok(number) = i64::try_from(self.unsigned()?) else { return self.fail() };
        Ok(if negative { -number } else { number })
    }

    pub(in crate::decode) fn boolean(&mut self) -> Result<bool, Unread> {
        // The caller checks what follows.
        if self.next(b"true").is_some() {
            return Ok(true);
        }
        match self.skip()? {
            b"true" => Ok(true),
            b"false" => Ok(false),
            _ => self.fail(),
        }
    }

    /// `None` for `null`.
    #[inline]
    pub(in crate::decode) fn optional<T, E: From<Unread>>(
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

    /// Skips any value and returns its text.
    pub(in crate::decode) fn skip(&mut self) -> Result<&'a [u8], Unread> {
        let first = self.peek();
        let start = self.rest;
        match first {
            Some(b'"') => drop(self.string()?),
            Some(b'{' | b'[') => self.skip_nested()?,
            None | Some(b',' | b':' | b'}' | b']') => return self.fail(),
            Some(_) => self.skip_word(),
        }
        Ok(start.get(..start.len() - self.rest.len()).unwrap_or_default())
    }

    /// Skips an object or array with its contents.
    fn skip_nested(&mut self) -> Result<(), Unread> {
        // One bit per open bracket: whether it is a brace.
        let (mut braces, mut depth) = (0_u128, 0_u32);
        loop {
            match self.peek() {
                Some(b'"') => self.skip_strings()?,
                Some(b',' | b':') => self.pass(1),
                Some(byte @ (b'{' | b'[')) => {
                    if depth == DEPTH_MAX {
                        return self.fail();
                    }
                    braces = braces << 1 | u128::from(byte == b'{');
                    depth += 1;
                    self.pass(1);
                }
                Some(byte @ (b'}' | b']')) => {
                    if (byte == b'}') != (braces & 1 == 1) {
                        return self.fail();
                    }
                    braces >>= 1;
                    depth -= 1;
                    self.pass(1);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Some(_) => self.skip_word(),
                None => return self.fail(),
            }
        }
    }

    /// Skips consecutive strings, such as log lines.
    fn skip_strings(&mut self) -> Result<(), Unread> {
        loop {
            self.pass(1);
            self.string_until(find_far(self.rest))?;
            match self.rest {
                [b',', rest @ ..] if rest.first() == Some(&b'"') => self.rest = rest,
                _ => return Ok(()),
            }
        }
    }

    /// Checks that nothing follows.
    pub(in crate::decode) fn end(&mut self) -> Result<(), Unread> {
        if self.peek().is_none() { Ok(()) } else { self.fail() }
    }

    /// The next byte that is not a space, if any.
    #[inline]
    pub(in crate::decode) fn peek(&mut self) -> Option<u8> {
        match self.rest.first() {
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => self.peek_behind_spaces(),
        }
    }

    #[cold]
    fn peek_behind_spaces(&mut self) -> Option<u8> {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    #[inline]
    fn pass(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.pass(1);
        }
        found
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Unread> {
        if self.eat(byte) { Ok(()) } else { self.fail() }
    }

    /// The text of a string, without its quotes.
    #[inline]
    pub(in crate::decode) fn string(&mut self) -> Result<&'a [u8], Unread> {
        self.expect(b'"')?;
        self.string_until(find(self.rest, quotes))
    }

    /// The rest of a string after its first quote.
    #[inline]
    fn string_until(&mut self, quote: Option<usize>) -> Result<&'a [u8], Unread> {
        if let Some(len) = quote
            && let Some((text, [_, rest @ ..])) = self.rest.split_at_checked(len)
            && text.last() != Some(&b'\\')
        {
            self.rest = rest;
            return Ok(text);
        }
        self.escaped_string()
    }

    /// The rest of a string in which quotes may be escaped.
    #[cold]
    fn escaped_string(&mut self) -> Result<&'a [u8], Unread> {
        let start = self.rest;
        while let Some(len) = find(self.rest, stops) {
            self.pass(len);
            if let [b'"', rest @ ..] = self.rest {
                let text = start.get(..start.len() - self.rest.len()).unwrap_or_default();
                self.rest = rest;
                return Ok(text);
            }
            // An escaped quote does not end the string.
            self.pass(2);
        }
        self.fail()
    }

    /// A number, or `true`, `false` or `null`.
    #[inline]
    fn skip_word(&mut self) {
        self.pass(1);
        while let [byte, rest @ ..] = self.rest
            && IN_WORDS.get(usize::from(*byte)) == Some(&true)
        {
            self.rest = rest;
        }
    }
}

/// The bytes of numbers and of `true`, `false` and `null`.
const IN_WORDS: [bool; 256] = in_words();

#[expect(clippy::indexing_slicing, clippy::as_conversions, reason = "a table made at build time")]
const fn in_words() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-');
        byte += 1;
    }
    table
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
    fn a_text_of_some_length_ends_at_a_quote() {
        let address = |json: &'static str| Reader::new(json.as_bytes()).text_of(32);
        let shortest = "11111111111111111111111111111111";
        let longest = "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG";
        for text in [shortest, longest] {
            let json = format!("[\"{text}\",\n  \"{text}\"]");
            let mut read = Vec::new();
            let mut reader = Reader::new(json.as_bytes());
            reader.array::<Unread>(|r| r.text_of(32).map(|text| read.push(text))).unwrap();
            assert_eq!(read, [text.as_bytes(); 2]);
        }
        assert!(address("\"\"").is_err() && address("\"11111111111111111111111111111111").is_err());
    }

    #[test]
    fn strings_end_where_they_end_however_long_they_are() {
        for len in 0..70 {
            for end in ["", r"\\", r#"\""#, r#"\\\""#] {
                let line = format!("\"{}{end}\"", "a".repeat(len));
                for json in [format!("[{line},{line}]"), format!("[{line} , {line},\n{line}]")] {
                    assert_eq!(skipped(&json), Ok(json.as_str()));
                    let cut = &json[..json.len() - 2];
                    assert!(skipped(cut).is_err() && skipped(&format!("{cut}]")).is_err());
                }
                let (mut names, json) = (Vec::new(), format!("{{{line}:1,{line} : [2]}}"));
                let mut reader = Reader::new(json.as_bytes());
                let read = reader.object::<Unread>(|reader, name| {
                    names.push(name);
                    reader.skip().map(drop)
                });
                assert_eq!(read.and_then(|()| reader.end()), Ok(()));
                assert_eq!(names, [&line.as_bytes()[1..line.len() - 1]; 2]);
            }
        }
    }

    #[test]
    fn reads_numbers_that_fit() {
        let unsigned = |json: &'static str| Reader::new(json.as_bytes()).unsigned();
        assert_eq!(unsigned("18446744073709551615"), Ok(u64::MAX));
        for json in ["18446744073709551616", "-1", "1.0", "1e3", "\"1\"", "", "null"] {
            assert!(unsigned(json).is_err(), "{json}");
        }
        for (len, number) in (0..20).map(|len| (len, "98765432101234567890"[..len].parse::<u64>()))
        {
            let json = format!("{}, 1234567", &"98765432101234567890"[..len]);
            assert_eq!(Reader::new(json.as_bytes()).unsigned().ok(), number.ok(), "{json}");
        }
        for (json, wanted) in [("[0]", vec![0]), ("[7,10,255,09 ,\n3]", vec![7, 10, 255, 9, 3])] {
            let mut numbers = Vec::new();
            let mut reader = Reader::new(json.as_bytes());
            reader.array::<Unread>(|r| r.unsigned().map(|number| numbers.push(number))).unwrap();
            assert_eq!(numbers, wanted);
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

        /// Every document that another library writes is skipped as one value, to its end.
        #[test]
        fn skips_what_another_library_writes(texts in prop::collection::vec(any::<String>(), 0..5), number in any::<i64>()) {
            let json = serde_json::json!({"texts": texts, "inner": [[number], {"a": texts}]}).to_string();
            prop_assert_eq!(skipped(&json), Ok(json.as_str()));
        }
    }
}
