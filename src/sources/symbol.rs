//! What a chain reports of a token, and its symbol, which is arbitrary text of any length.

use std::sync::Arc;

use crate::domain::Address;

const CHARS_MAX: usize = 32;

/// A token's symbol and decimals, as far as the chain has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMeta {
    pub mint: Address,
    pub symbol: Option<Arc<str>>,
    pub decimals: Option<u8>,
}

/// The text without invisible characters; `None` if nothing is left.
pub(super) fn symbol(text: &[u8]) -> Option<Arc<str>> {
    let text = String::from_utf8_lossy(text);
    let clean: String = text.chars().filter(|c| is_seen(*c)).take(CHARS_MAX).collect();
    let clean = clean.trim();
    (!clean.is_empty()).then(|| clean.into())
}

/// Whether a character is visible: no control character, and none that joins, separates or reverses
/// others, with which one symbol can imitate another (Unicode categories Cc, Cf, Zl and Zp).
fn is_seen(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            char::REPLACEMENT_CHARACTER
            | '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(symbol(text.as_bytes()).as_deref().unwrap_or(""), expected, "{text:?}");
    }

    #[test]
    fn nothing_unseen_is_kept() {
        check("USDC", "USDC");
        check(" Bonk \0\0\0", "Bonk");
        check("US\u{7}DC\n ₮", "USDC ₮");
        check("\u{1b}[31mRED\u{1b}[0m", "[31mRED[0m");
        // Shown from right to left: USDC.
        check("\u{202e}CDSU\u{202c}", "CDSU");
        check("\u{feff}U\u{200b}S\u{200d}D\u{2060}C\u{e0041}", "USDC");
        check("one\u{2028}two\u{2029}\u{85}", "onetwo");
        check("\u{200f}\u{200e} \u{2066}\u{2069}", "");
        assert_eq!(symbol(&[0xff, 0xfe, b'A', 0xc0, 0xae]).as_deref(), Some("A"));
    }

    #[test]
    fn of_megabytes_a_little_is_kept() {
        check(&"x".repeat(8 << 20), &"x".repeat(CHARS_MAX));
        check(&"₮".repeat(1 << 20), &"₮".repeat(CHARS_MAX));
        check(&"\u{202e}".repeat(1 << 20), "");
    }
}
