//! Compressed answers. Every piece is flushed, so that a line arrives when it was written.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::pin::Pin;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt as _, stream};
use warp::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};

/// The quickest levels: the text of trades repeats itself so much that more gains little.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;
/// Shorter bodies are sent as they are.
const BODY_BYTES_MIN: usize = 1024;

/// The pieces of a body.
pub(super) trait Frames: Stream<Item = Result<Bytes, Infallible>> + Send + 'static {}

impl<S: Stream<Item = Result<Bytes, Infallible>> + Send + 'static> Frames for S {}

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Coding {
    #[default]
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// What the client likes best of what we have (RFC 9110, section 12.5.3).
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

    fn name(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }

    /// Says how the body is encoded, and that it depends on what was asked.
    pub(super) fn tell(self, headers: &mut HeaderMap) {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        if let Some(name) = self.name() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(name));
        }
    }

    fn encoder(self) -> Option<Encoder> {
        match self {
            Self::Identity => None,
            Self::Gzip => {
                Some(Encoder::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))))
            }
            Self::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL).ok()?;
                Some(Encoder::Zstd(encoder))
            }
        }
    }

    /// A body that is all there; `None` where it stays as it is.
    pub(super) fn whole(self, body: &[u8]) -> Option<Vec<u8>> {
        if body.len() < BODY_BYTES_MIN {
            return None;
        }
        let mut encoder = self.encoder()?;
        encoder.write(body).ok()?;
        encoder.finish().ok()
    }

    /// Each piece of a body as it comes.
    pub(super) fn frames(self, frames: impl Frames) -> Pin<Box<dyn Frames>> {
        let frames = Box::pin(frames);
        if self == Self::Identity {
            return frames;
        }
        let state = (frames, self.encoder());
        Box::pin(stream::unfold(state, |(mut frames, mut encoder)| async move {
            let mut writer = encoder.take()?;
            let next = frames.next().await;
            let piece = match next {
                Some(Ok(frame)) => {
                    let piece = writer.piece(&frame);
                    encoder = Some(writer);
                    piece
                }
                None => writer.finish(),
            };
            // Writing to memory does not fail; if it did, the answer would end here.
            let piece = Bytes::from(piece.ok()?);
            Some((Ok::<_, Infallible>(piece), (frames, encoder)))
        }))
    }
}

/// The weight of an item in thousandths, where it is about this coding.
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

/// `0`, `0.5`, `1.000`; what is none of these counts as not wanted.
fn thousandths(text: &str) -> u32 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{part:0<3}");
    match (whole.parse::<u32>(), digits.get(..3).and_then(|digits| digits.parse::<u32>().ok())) {
        (Ok(whole), Some(part)) => (whole.min(1) * 1000 + part).min(1000),
        _ => 0,
    }
}

enum Encoder {
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// All of a piece, so that a reader can decode it at once.
    fn piece(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.write(bytes)?;
        Ok(std::mem::take(match self {
            Self::Gzip(encoder) => {
                encoder.flush()?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                encoder.flush()?;
                encoder.get_mut()
            }
        }))
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
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

    /// Everything sent so far can be read before more is sent.
    #[tokio::test]
    async fn every_piece_can_be_read_when_it_comes() {
        let lines = ["{\"trades\":[]}\n", "\n", "{\"complete\":true}\n"];
        for coding in [Coding::Gzip, Coding::Zstd] {
            let frames = stream::iter(lines).map(|line| Ok(Bytes::from_static(line.as_bytes())));
            let pieces: Vec<Bytes> =
                coding.frames(frames).map(|piece| piece.unwrap()).collect().await;
            assert_eq!(pieces.len(), lines.len() + 1);
            let mut sent = Vec::new();
            for (at, piece) in pieces.iter().enumerate() {
                sent.extend_from_slice(piece);
                let expected = lines[..lines.len().min(at + 1)].concat();
                let mut read = vec![0; expected.len()];
                match coding {
                    Coding::Gzip => {
                        flate2::read::GzDecoder::new(&*sent).read_exact(&mut read).unwrap();
                    }
                    Coding::Zstd | Coding::Identity => {
                        zstd::Decoder::new(&*sent).unwrap().read_exact(&mut read).unwrap();
                    }
                }
                assert_eq!(String::from_utf8(read).unwrap(), expected);
            }
        }
    }

    #[test]
    fn short_bodies_stay_as_they_are() {
        assert_eq!(Coding::Gzip.whole(&[b'a'; BODY_BYTES_MIN - 1]), None);
        assert_eq!(Coding::Identity.whole(&[b'a'; BODY_BYTES_MIN]), None);
        let packed = Coding::Zstd.whole(&[b'a'; BODY_BYTES_MIN]).unwrap();
        assert_eq!(zstd::decode_all(&*packed).unwrap(), [b'a'; BODY_BYTES_MIN]);
    }
}
