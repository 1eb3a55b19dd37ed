//! Negotiates the content coding and compresses complete bodies; `packing` compresses streams.

use std::convert::Infallible;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::Stream;
use warp::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};

// The fastest levels: trades are so repetitive that higher levels gain little.
pub(super) const GZIP_LEVEL: u32 = 1;
pub(super) const ZSTD_LEVEL: i32 = 1;
/// Shorter bodies are sent as they are.
const BODY_BYTES_MIN: usize = 1024;

pub(super) trait Frames: Stream<Item = Result<Bytes, Infallible>> + Send + 'static {}

impl<S: Stream<Item = Result<Bytes, Infallible>> + Send + 'static> Frames for S {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Coding {
    #[default]
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// The coding that the client prefers (RFC 9110, section 12.5.3).
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let values = headers.get_all(ACCEPT_ENCODING).into_iter();
        let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        let items = || texts.iter().flat_map(|text| text.split(',')).map(str::trim);
        let weight = |name: &str| {
            let of = |wanted: &str| items().find_map(|item| weight_of(item, wanted));
            of(name).or_else(|| of("*")).unwrap_or(0)
        };
        let (gzip, zstd) = (weight("gzip"), weight("zstd"));
        match (gzip, zstd) {
            (0, 0) => Self::Identity,
            (gzip, zstd) if zstd >= gzip => Self::Zstd,
            _ => Self::Gzip,
        }
    }

    /// Sets `content-encoding`, and `vary`, as the coding depends on the request.
    pub(super) fn set_headers(self, headers: &mut HeaderMap) {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        let name = match self {
            Self::Identity => return,
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        };
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
    }

    /// Compresses a complete body; `None` if it stays as it is.
    pub(super) fn whole(self, body: &[u8]) -> Option<Vec<u8>> {
        if body.len() < BODY_BYTES_MIN {
            return None;
        }
        match self {
            Self::Identity => None,
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
                encoder.write_all(body).ok()?;
                encoder.finish().ok()
            }
            Self::Zstd => zstd::encode_all(body, ZSTD_LEVEL).ok(),
        }
    }
}

/// The weight of an item in thousandths, if it is about this coding.
fn weight_of(item: &str, wanted: &str) -> Option<u32> {
    let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
    if !name.trim().eq_ignore_ascii_case(wanted) {
        return None;
    }
    let quality = parameters.split(';').find_map(|one| {
        let (key, value) = one.split_once('=')?;
        key.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    Some(quality.map_or(1000, thousandths))
}

/// Parses a weight such as `0`, `0.5` or `1.000`; invalid text counts as 0.
fn thousandths(text: &str) -> u32 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{part:0<3}");
    match (whole.parse::<u32>(), digits.get(..3).and_then(|digits| digits.parse::<u32>().ok())) {
        (Ok(whole), Some(part)) => (whole.min(1) * 1000 + part).min(1000),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[track_caller]
    fn accepts(text: &str, expected: Coding) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_str(text).unwrap());
        assert_eq!(Coding::accepted(&headers), expected, "{text}");
    }

    #[test]
    fn takes_what_the_client_likes_best() {
        accepts("gzip, deflate, br, zstd", Coding::Zstd);
        accepts("gzip, deflate, br", Coding::Gzip);
        accepts("GZIP;q=0.5, zstd;q=0.4", Coding::Gzip);
        accepts("gzip;q=0, zstd;q=0.000", Coding::Identity);
        accepts("identity", Coding::Identity);
        accepts("*", Coding::Zstd);
        accepts("*;q=0.1, zstd;q=0", Coding::Gzip);
        accepts("gzip;q=often", Coding::Identity);
        accepts("", Coding::Identity);
        assert_eq!(Coding::accepted(&HeaderMap::new()), Coding::Identity);
    }

    #[test]
    fn short_bodies_stay_as_they_are() {
        assert_eq!(Coding::Gzip.whole(&[b'a'; BODY_BYTES_MIN - 1]), None);
        assert_eq!(Coding::Identity.whole(&[b'a'; BODY_BYTES_MIN]), None);
        let packed = Coding::Zstd.whole(&[b'a'; BODY_BYTES_MIN]).unwrap();
        assert_eq!(zstd::decode_all(&*packed).unwrap(), [b'a'; BODY_BYTES_MIN]);
        let packed = Coding::Gzip.whole(&[b'a'; BODY_BYTES_MIN]).unwrap();
        let mut read = Vec::new();
        flate2::read::GzDecoder::new(&*packed).read_to_end(&mut read).unwrap();
        assert_eq!(read, [b'a'; BODY_BYTES_MIN]);
    }
}
