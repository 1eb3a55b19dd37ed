//! Parses the query string and the address segment, with errors that name the parameter.
//!
//! Unknown parameters are ignored, so that clients of a later version work, but a misspelt one is
//! rejected, since without it the response would be another. A repeated parameter is rejected,
//! since either value could be meant.

use std::borrow::Cow;

use percent_encoding::{
    AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_decode_str, utf8_percent_encode,
};
use strsim::osa_distance;

use super::error::ApiError;

/// All but letters, digits and `-._~` (RFC 3986).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// From this length on two letters may be wrong.
const LONG_NAME_CHARS: usize = 6;
/// Up to this length a name resembles words with another meaning.
const SHORT_NAME_CHARS: usize = 3;

/// One parameter's value; an error if it is not valid UTF-8.
pub(super) type Value = Result<Option<String>, ApiError>;

/// The values of the known parameters, in the order of `names`.
pub(super) fn parameters<const N: usize>(
    query: &str,
    names: [&'static str; N],
) -> Result<[Value; N], ApiError> {
    let mut raw = names.map(|name| (name, None));
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name);
        let known = raw.iter_mut().find(|(known, _)| *name == *known.as_bytes());
        let Some((name, slot)) = known else {
            refuse_misspelt(&name, &names)?;
            continue;
        };
        if slot.replace(decode(value)).is_some() {
            return Err(ApiError::InvalidParameter { name, rule: "it may stand once only" });
        }
    }
    Ok(raw.map(|(name, value)| value.map(|value| text(name, value)).transpose()))
}

/// Rejects parameters of other routes: if they were ignored, the response would not be the
/// requested one.
pub(super) fn refuse_named(
    query: &str,
    names: &[&'static str],
    rule: &'static str,
) -> Result<(), ApiError> {
    let sent = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    let mut found = sent.filter_map(|sent| {
        let sent = decode(sent);
        names.iter().find(|name| *sent == *name.as_bytes())
    });
    found.next().map_or(Ok(()), |name| Err(ApiError::InvalidParameter { name, rule }))
}

/// Rejects a name that resembles a known one.
pub(super) fn refuse_misspelt(name: &[u8], names: &[&'static str]) -> Result<(), ApiError> {
    let Ok(name) = std::str::from_utf8(name) else { return Ok(()) };
    match names.iter().copied().find(|known| is_near(name, known)) {
        Some(known) => Err(ApiError::MisspeltParameter { name: name.to_owned(), known }),
        None => Ok(()),
    }
}

/// Whether names differ by one edit, or by two if the known one is long. Many words resemble a
/// short name, so there only letters added behind or between its own count.
fn is_near(name: &str, known: &str) -> bool {
    let most = if known.len() >= LONG_NAME_CHARS { 2 } else { 1 };
    if name.len().abs_diff(known.len()) > most {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let kept = if known.len() < SHORT_NAME_CHARS { known } else { known.get(..1).unwrap_or(known) };
    let is_other =
        known.len() <= SHORT_NAME_CHARS && (name.len() < known.len() || !name.starts_with(kept));
    // Insertions, deletions, substitutions and transpositions.
    !is_other && osa_distance(&name, known) <= most
}

fn text(name: &'static str, bytes: Cow<'_, [u8]>) -> Result<String, ApiError> {
    let rule = "its percent-encoding is not valid UTF-8";
    String::from_utf8(bytes.into_owned()).map_err(|_| ApiError::InvalidParameter { name, rule })
}

pub(super) fn decode_segment(segment: &str) -> Result<String, ApiError> {
    percent_decode_str(segment)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| ApiError::UnreadableAddress)
}

/// Percent-encodes all characters that may have a meaning in a URL.
pub(super) fn escape(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

/// Decodes a name or a value of a query, where `+` is a space.
fn decode(text: &str) -> Cow<'_, [u8]> {
    if text.contains('+') {
        percent_decode_str(&text.replace('+', " ")).collect::<Vec<_>>().into()
    } else if !text.contains('%') {
        // A cursor is long, and decoding looks at each byte.
        text.as_bytes().into()
    } else {
        percent_decode_str(text).into()
    }
}
